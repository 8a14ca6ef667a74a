#include "controller/cli/outcome.h"

#include "controller/cli/show.h"

enum err outcome_follow(struct client *client, const struct cli_flags *flags, struct watch_options *options,
                        int *exit_code, struct err_detail *d)
{
    struct watch_end end;
    options->quiet = flags->quiet;
    enum err e = watch_job(client, options, &end, d);
    if (e != ERR_OK)
        return e;
    *exit_code = end.exit_code;
    bool shown = end.ended && (flags->json || end.windows_total != 0); /* to verify has no windows */
    return shown ? show_report(client, options->job, flags->json, d) : ERR_OK;
}
