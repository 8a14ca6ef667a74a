#ifndef AGENT_LOAD_WORKER_H
#define AGENT_LOAD_WORKER_H
/*
 * One thread of load: its loop, the edges of its phases, its set of connections. Made and read by main before
 * and after the thread lives; in between only `struct worker_shared` and `struct meter_public` are touched by
 * others.
 */
#include "agent/load/conn_set.h"

#include <pthread.h>

/* Between the edges: main tells the workers when. */
struct worker_shared {
    _Atomic uint64_t begin_ns;        /* 0 until main has fixed it; load starts here */
    _Atomic uint64_t window_start_ns; /* set before begin_ns */
    _Atomic uint64_t window_end_ns;   /* may only be moved to an earlier instant, for an early end */
    _Atomic uint64_t drain_end_ns;    /* moved together with it */
    uint64_t interval_ns;             /* fixed beforehand, as the next */
    struct interval_box *intervals;
};

struct worker {
    /* What every event touches. */
    struct conn_set set;
    bool heard;       /* events since the loop last looked at the clock */
    uint64_t edge_ns; /* when the phase ends, or the interval; UINT64_MAX until the beginning */

    struct worker_shared *shared;
    uint64_t lead_ns; /* how late a paced wake-up lately was: it is asked for that much earlier */
    uint64_t tick_ns; /* looks at `shared` again then */
    uint64_t interval_edge_ns;
    uint64_t cpu_start_user_ns; /* of the thread, at the window's start */
    uint64_t cpu_start_system_ns;
    pthread_t thread;
    bool done;
};

/* `shared` is borrowed until the end; `share` is copied. */
NODISCARD enum err worker_new(struct worker **out, const struct share *share, struct worker_shared *shared,
                              struct err_detail *d);
NODISCARD enum err worker_start(struct worker *w, struct err_detail *d);
void worker_join(struct worker *w);
void worker_free(struct worker *w); /* after worker_join, or never started */

#endif
