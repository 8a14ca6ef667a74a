#ifndef CONTROLLER_CLI_WATCH_H
#define CONTROLLER_CLI_WATCH_H
/*
 * Following a job on the terminal: lines as they come and, on a terminal, a bar with the time left and the
 * live throughput. Main thread only.
 */
#include "controller/cli/cli.h"
#include "controller/cli/client.h"

struct watch_options {
    const char *job;     /* its id, or a beginning of it */
    bool quiet;          /* no lines, no bar */
    bool cancel_on_intr; /* ^C cancels the job and waits for its end; a second ^C leaves at once */
    uint64_t from_line;  /* lines before this one are old */
    uint32_t windows_done, windows_total; /* set by watch_skip */
    /* Asked again and again: is what the job needs still there? NULL when nothing can be known here. */
    enum err (*check)(void *arg, bool queued, struct err_detail *d);
    void *check_arg;
};

/* Takes what a job has said until now as read. */
NODISCARD enum err watch_skip(struct client *client, struct watch_options *options, struct err_detail *d);

struct watch_end {
    bool ended;                     /* else ^C asked to leave */
    int exit_code;                  /* the job's own; of one that goes on, CLI_EXIT_INFRA */
    uint32_t windows_total;         /* 0: it measures nothing */
    char job[LIMIT_NAME_BYTES + 1]; /* its whole id */
};

/* Returns when the job has ended, or when ^C asked to leave. */
NODISCARD enum err watch_job(struct client *client, const struct watch_options *options,
                             struct watch_end *end, struct err_detail *d);

#endif
