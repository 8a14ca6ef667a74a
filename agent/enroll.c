#include "agent/enroll.h"

#include "common/address.h"
#include "common/clock.h"
#include "common/file.h"
#include "common/limits.h"
#include "common/mem.h"
#include "common/path.h"
#include "proto/link/link.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TIMEOUT_NS        (20ull * NS_PER_S)
#define ADDRESS_BYTES_MAX LIMIT_PATH_BYTES

char *enroll_default_name(void)
{
    char name[LIMIT_NAME_BYTES + 1];
    if (gethostname(name, sizeof name) != 0 || name[0] == '\0')
        return mem_strdup("agent");
    name[sizeof name - 1] = '\0';
    for (char *p = name; *p != '\0'; p++) {
        if (strchr(PATH_NAME_LETTERS, *p) == NULL)
            *p = '-';
        if (p == name && strchr("-_.", *p) != NULL) /* a name begins with a letter or digit */
            *p = 'x';
    }
    return mem_strdup(name);
}

/* One line from standard input. The caller frees. */
static enum err read_token(char **out, struct err_detail *d)
{
    char line[IDENTITY_TOKEN_BYTES_MAX + 2];
    if (fgets(line, sizeof line, stdin) == NULL)
        return err_set(d, ERR_INVALID, "no token on standard input");
    line[strcspn(line, "\r\n")] = '\0';
    *out = mem_strdup(line);
    return ERR_OK;
}

static enum err write_controller(const char *dir, const char *address, struct err_detail *d)
{
    char *path = mem_printf("%s/controller", dir);
    char *text = mem_printf("%s\n", address);
    enum err e = file_write(path, 0644, text, strlen(text), d);
    free(text);
    free(path);
    return e;
}

enum err enroll_run(const struct invocation *options, struct err_detail *d)
{
    char *name = options->name != NULL ? mem_strdup(options->name) : enroll_default_name();
    char *token = NULL;
    char *cert = mem_printf("%s/cert.pem", options->identity_dir);
    enum err e = ERR_OK;
    if (strncmp(options->controller, "tls+tcp://", 10) != 0) {
        e = err_set(d, ERR_INVALID, "a socket on this machine needs no enrollment: run --controller %s",
                    options->controller);
        goto out;
    }
    if (access(cert, F_OK) == 0) {
        e = err_set(d, ERR_EXISTS,
                    "%s is there already: this machine is enrolled. To enroll it anew, remove %s", cert,
                    options->identity_dir);
        goto out;
    }
    if (strcmp(options->token, "-") != 0)
        token = mem_strdup(options->token);
    else if ((e = read_token(&token, d)) != ERR_OK)
        goto out;
    if ((e = file_make_dirs(options->identity_dir, d)) != ERR_OK)
        goto out;
    e = link_enroll(&(struct link_enroll_options){.address = options->controller,
                                                  .token = token,
                                                  .name = name,
                                                  .role = MSG_ROLE_AGENT,
                                                  .dir = options->identity_dir,
                                                  .timeout_ns = TIMEOUT_NS},
                    d);
    if (e == ERR_OK)
        e = write_controller(options->identity_dir, options->controller, d);
    if (e == ERR_OK)
        printf("%s is enrolled at %s\nNext: splitbench-agent run%s%s\n", name, options->controller,
               options->identity != NULL ? " --identity " : "",
               options->identity != NULL ? options->identity_dir : "");
out:
    free(cert);
    free(token);
    free(name);
    return e;
}

enum err enroll_read_controller(const char *identity_dir, char **out, struct err_detail *d)
{
    char *path = mem_printf("%s/controller", identity_dir);
    char *text = NULL;
    size_t len = 0;
    enum err e = file_read(path, FILE_REGULAR, ADDRESS_BYTES_MAX, &text, &len, d);
    if (e == ERR_NOT_FOUND)
        err_set(d, e,
                "no controller: %s does not exist. Enroll this machine (splitbench-agent enroll), or say "
                "--controller",
                path);
    if (e == ERR_OK) {
        text[strcspn(text, "\r\n")] = '\0';
        e = err_prefix(d, address_parse(text, out, d), "%s", path);
    }
    free(text);
    free(path);
    return e;
}

enum err enroll_advise(struct err_detail *d, enum err e, const char *identity_dir)
{
    if (e != ERR_DENIED)
        return e;
    const struct err_detail why = *d;
    return err_set(
        d, e,
        "%.600s; to let this machine in again: rm -r %s, then 'splitbench-agent enroll' with a token "
        "from 'splitbench token agent'",
        why.text, identity_dir);
}
