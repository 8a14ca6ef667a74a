#ifndef AGENT_LOAD_RUN_H
#define AGENT_LOAD_RUN_H
/*
 * One whole run: starts the workers, waits until their connections are open, fixes the instants of the
 * window, waits for its end, adds everything up. Main's thread.
 */
#include "agent/load/options.h"
#include "agent/load/request_set.h"
#include "agent/load/tally.h"
#include "agent/load/target.h"
#include "agent/load/timeline.h"
#include "common/figure.h"

/* Everything that is fixed beforehand: borrowed. */
struct run_plan {
    const struct options *options;
    const struct target *target;
    const struct request_set *requests;
};

struct run_result {
    struct tally *tally; /* of all threads */
    uint64_t warmup_start_ns;
    uint64_t window_start_ns;
    uint64_t window_end_ns;
    bool interrupted;    /* ended early by a signal; the window is shorter then */
    const char *backend; /* static text */
    struct figure figures[FIGURE_LOAD_COUNT];
    uint64_t interval_ns;
    struct timeline_point *points; /* of the window, one per interval */
    size_t point_count;
    double *thread_shares; /* of the window that each thread was on a CPU */
    struct audit_verdict verdict;
};

/* From now on SIGINT and SIGTERM wait for run_load, and SIGPIPE is ignored. First thing in main: threads
 * inherit it. */
void run_take_signals(void);

/* Blocks until the run is over. SIGINT and SIGTERM end it early: there is a result all the same. */
NODISCARD enum err run_load(struct run_result *out, const struct run_plan *plan, struct err_detail *d);
void run_result_fini(struct run_result *r);

#endif
