#ifndef CONTROLLER_STORE_STORE_READ_H
#define CONTROLLER_STORE_STORE_READ_H
/*
 * Everything the store knows of one job, read in one snapshot: what a report is made of. The result is the
 * caller's. Counts, times and texts are as they were stored.
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
    struct store_attempt *attempts; /* by window, then attempt */
    size_t attempt_count;
    struct msg_loaded *loads; /* those of the attempts */
    size_t load_count;
    uint64_t late_events; /* results that came too late and are part of nothing here */
};

/* ERR_NOT_FOUND when there is no such job. */
NODISCARD enum err store_read_results(struct store *s, const char *job, struct store_results *out,
                                      struct err_detail *d);
void store_results_fini(struct store_results *r);

#endif
