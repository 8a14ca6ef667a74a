#include "agent/enroll.h"
#include "agent/invocation.h"
#include "agent/process/supervisor.h"
#include "agent/run.h"

#include "common/sha256.h"
#include "common/streams.h"
#include "common/utf8.h"

#include <stdio.h>

enum { EXIT_OK = 0, EXIT_USAGE = 2, EXIT_INFRASTRUCTURE = 3 };

static int fail(enum err e, int code, struct err_detail *d)
{
    const char *text = d->text[0] != '\0' ? utf8_clean(d->text, "\n") : err_text(e);
    fprintf(stderr, "splitbench-agent: %s\n", text);
    return code;
}

/* Either the command line is wrong, or this machine or the network does not allow what it asks for. */
static int exit_code(enum err e)
{
    return e == ERR_OK ? EXIT_OK : e == ERR_INVALID || e == ERR_EXISTS ? EXIT_USAGE : EXIT_INFRASTRUCTURE;
}

int main(int argc, char **argv)
{
    int code = EXIT_OK;
    streams_init();
    if (supervisor_main(argc, argv, &code))
        return code;
    struct invocation options;
    struct err_detail d = {""};
    enum err e = invocation_parse(argc, argv, &options, &d);
    if (e != ERR_OK) {
        code = fail(e, EXIT_USAGE, &d);
        goto out;
    }
    switch (options.command) {
    case INVOCATION_DONE:
        break;
    case INVOCATION_ENROLL:
        e = sha256_check(&d);
        if (e == ERR_OK)
            e = enroll_run(&options, &d);
        break;
    case INVOCATION_RUN:
        e = sha256_check(&d);
        if (e == ERR_OK)
            e = run_agent(&options, &d);
        break;
    }
    if (e != ERR_OK)
        code = fail(e, exit_code(e), &d);
out:
    invocation_fini(&options);
    return streams_end("splitbench-agent", code, EXIT_INFRASTRUCTURE);
}
