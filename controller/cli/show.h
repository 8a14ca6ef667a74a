#ifndef CONTROLLER_CLI_SHOW_H
#define CONTROLLER_CLI_SHOW_H
/*
 * Printing what a controller, or this machine's own results file, knows: now, or when a job has ended. Main
 * thread only.
 */
#include "controller/cli/watch.h"
#include "controller/store/store.h"

/* The results of local runs, to be read. ERR_NOT_FOUND says how to make some. */
NODISCARD enum err show_open_store(const struct place *place, struct store **out, struct err_detail *d);
/* The same error, with its advice fit for local runs when it is that `job` is not there. */
NODISCARD enum err show_local_error(enum err e, const char *job, struct err_detail *d);

/* The whole id of what was typed, from this machine's results; the caller frees. "" (the newest) stays. */
NODISCARD enum err show_find_local(struct store *store, const char *typed, char **id, struct err_detail *d);

/* A job's report on standard output. */
NODISCARD enum err show_report(struct client *client, const char *job, bool json, struct err_detail *d);
/* Follows a job to its end; then its report, as text only when it measures. One that was left has none.
 * `exit_code` is the job's own. */
NODISCARD enum err show_followed(struct client *client, const struct cli_flags *flags,
                                 struct watch_options *options, int *exit_code, struct err_detail *d);

/* A piece of a text on standard output; show_end after the last: only then is it known to be out. */
NODISCARD enum err show_piece(void *arg, const char *data, size_t len, struct err_detail *d);
NODISCARD enum err show_end(struct err_detail *d);

/* Text on standard output, with a newline at its end. */
NODISCARD enum err show_text(const struct buf *text, struct err_detail *d);

/* Columns of the terminal on standard output; 80 when it is none. */
unsigned show_width(void);

#endif
