#ifndef AGENT_LOAD_TIMELINE_H
#define AGENT_LOAD_TIMELINE_H
/*
 * The window, interval by interval: adds up what the workers send, keeps one point per interval, and passes
 * each whole interval on. Main's thread.
 */
#include "agent/load/interval.h"

#define TIMELINE_POINTS_MAX 7200u /* two hours of seconds */

struct timeline_point {
    uint64_t start_ns;
    uint64_t end_ns;
    uint64_t ok;
    uint64_t failed;
    uint64_t p50_ns; /* of ok requests; 0 without any, as the next three */
    uint64_t p90_ns;
    uint64_t p99_ns;
    uint64_t max_ns;
};

/* A whole interval, all workers' together; `latency` is borrowed for the call. */
typedef void timeline_fn(void *arg, const struct timeline_point *p, const struct hist *latency);

struct timeline {
    uint32_t workers;
    struct timeline_point *points;
    size_t count;
    timeline_fn *on_point; /* may be NULL */
    void *arg;
    struct interval *open; /* that some worker has still to deliver, oldest first */
};

void timeline_init(struct timeline *t, uint32_t workers, timeline_fn *on_point, void *arg);
void timeline_fini(struct timeline *t);

/* Takes over a list from interval_box_take. */
void timeline_add(struct timeline *t, struct interval *list);

/* The length of an interval when the window is `duration_ns` long and the user has no wish: a second, or as
 * many as keep the points within their maximum. */
uint64_t timeline_interval(uint64_t duration_ns);

#endif
