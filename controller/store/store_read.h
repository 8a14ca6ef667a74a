#ifndef CONTROLLER_STORE_STORE_READ_H
#define CONTROLLER_STORE_STORE_READ_H
/*
 * Everything the store knows of one job: what a report is made of. Jobs, hosts and runs are read into memory,
 * attempts one after another: there may be a hundred thousand. Results are the caller's. Counts, times and
 * texts are as they were stored. The thread of the store's handle.
 */
#include "controller/store/store.h"

struct store_read_host {
    int64_t id;
    const char *role; /* owned, as all here */
    uint32_t ordinal;
    const char *agent;
    struct msg_host facts;
    uint64_t put_wall_ns;
};

#define STORE_LOG_TAIL_BYTES 4096u

struct store_read_run {
    int64_t id;
    uint32_t target;
    uint32_t round;
    uint32_t slot;
    bool ok;
    char *error;
    char *failed_check; /* "" = none */
    uint64_t startup_ns;
    uint64_t rss_before_bytes;
    bool ended; /* the next two are known */
    uint64_t rss_after_bytes;
    struct msg_bytes log_tail; /* the last STORE_LOG_TAIL_BYTES of the server's log, only when not ok */
    uint64_t started_wall_ns;
    enum store_placement placement; /* when it started */
    int64_t *hosts;                 /* ids of the machines it was measured on */
    size_t host_count;
};

struct store_results {
    struct store_job job;
    struct store_read_host *hosts; /* oldest first: all that ever worked for the job */
    size_t host_count;
    struct store_read_run *runs; /* in order of their starts */
    size_t run_count;
    uint64_t late_events; /* results that came too late and are part of nothing here */
};

/* ERR_NOT_FOUND when there is no such job. */
NODISCARD enum err store_read_results(struct store *s, const char *job, struct store_results *out,
                                      struct err_detail *d);
void store_results_fini(struct store_results *r);

/* All that is read between the two is of one moment, whatever others write meanwhile. Nothing is written
 * through this handle until the end. */
NODISCARD enum err store_snapshot_begin(struct store *s, struct err_detail *d);
void store_snapshot_end(struct store *s);

/* Takes one attempt after another. What it points to is gone when the call returns; it asks this store
 * nothing. A generator's raw output is never read: it is in the file for other programs. */
typedef void store_visit(void *arg, const struct store_attempt *a);

/* The attempts of a window in their order; `whole`: with the classes of errors and statuses of each. */
NODISCARD enum err store_visit_window(struct store *s, const char *job, uint32_t window, bool whole,
                                      store_visit *visit, void *arg, struct err_detail *d);
/* The first `max` attempts that are not valid, by window, of the windows below `window_count`; `loaded` is
 * NULL. */
NODISCARD enum err store_visit_invalid(struct store *s, const char *job, size_t window_count, size_t max,
                                       store_visit *visit, void *arg, struct err_detail *d);
/* Attempts of the windows from `from_window` on. */
NODISCARD enum err store_count_attempts(struct store *s, const char *job, size_t from_window, size_t *out,
                                        struct err_detail *d);

#endif
