#ifndef CONTROLLER_CLI_OUTCOME_H
#define CONTROLLER_CLI_OUTCOME_H
/*
 * A job followed to its end, and what is printed then: the same for all that follow one. Main thread only.
 */
#include "controller/cli/watch.h"

/* The report of a job that has ended is on standard output: as JSON when asked for, as text when the job
 * measures. One that was left has none. `exit_code` is the job's own. */
NODISCARD enum err outcome_follow(struct client *client, const struct cli_flags *flags,
                                  struct watch_options *options, int *exit_code, struct err_detail *d);

#endif
