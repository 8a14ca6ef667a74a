#ifndef CONTROLLER_RUN_WINDOW_H
#define CONTROLLER_RUN_WINDOW_H
/*
 * One attempt at a window, between the file that conducts it and the one that judges what came of it. Not for
 * others. The job's thread.
 */
#include "controller/run/run_inner.h"

enum { BEFORE, AFTER, EDGES };

struct window_load {        /* one load host's part */
    struct run_reply reply; /* to LOAD: its result */
    uint32_t proc;          /* its generator's number */
    uint32_t connections;   /* its share of the cell's */
    uint32_t threads;
    uint64_t heard_ns; /* controller's time: its window's first instant was heard of; 0 = never */
    /* Live: */
    uint64_t last_ns; /* load host's time of the newest progress; 0 = none yet */
    uint64_t last_ok;
    double ok_per_s;
};

struct window {
    const struct design_window *w;
    const struct design_cell *cell;
    const struct experiment_workload *workload;
    char name[256];
    uint32_t attempt;
    uint64_t started_wall_ns;
    uint64_t asked_ns;                /* controller's time: LOAD was sent */
    struct window_load *loads;        /* per load host, in the run's order; the first one's edges count */
    struct run_reply *samples[EDGES]; /* counters, per host; NULL until asked */
    uint64_t own_ns[EDGES];           /* the controller's own CPU time */
    bool valid;                       /* it passed the gates */
    bool final;                       /* no further attempt is made */
};

/* window_judge.c: when every generator has ended. Fills `valid` and `final`, stores the attempt, and says in
 * the job's history what came of it. */
NODISCARD enum err window_judge(struct run *r, struct window *x, struct err_detail *d);

#endif
