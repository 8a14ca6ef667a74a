#ifndef AGENT_LOAD_PACER_H
#define AGENT_LOAD_PACER_H
/*
 * When requests are due in open loop: a schedule of stages, each with a rate that is constant or changes
 * linearly, shared evenly by the threads. The schedule is a function, not a queue: what is due and not yet
 * sent needs no memory. A pacer is owned by one worker; the schedule is read by all.
 */
#include "common/err.h"

#define PACER_STAGES_MAX     256u
#define PACER_RATE_MAX       10000000u /* per second in total: far more than a host can send */
#define PACER_DURATION_MAX_H 1000u

enum pacer_arrivals { ARRIVALS_EVEN, ARRIVALS_POISSON };

struct pacer_stage {
    uint64_t duration_ns;
    double from_per_s;
    double to_per_s;
};

struct pacer_schedule {
    enum pacer_arrivals arrivals;
    size_t count;
    struct pacer_stage stages[PACER_STAGES_MAX];
};

struct pacer {
    const struct pacer_schedule *schedule; /* borrowed */
    uint64_t start_ns;
    uint64_t next_ns;   /* when the next request is due; UINT64_MAX after the last */
    double position;    /* of the next one in the count of all arrivals */
    double step;        /* from this thread's arrival to its next: the number of threads */
    size_t stage;       /* that `position` lies in */
    double stage_first; /* arrivals before this stage */
    uint64_t stage_ns;  /* start of this stage, from start_ns */
    uint64_t random;    /* state of the generator for Poisson arrivals */
};

/* "10s:1000,30s:1000-5000,5s:5000": durations, each with its rate, or the rates it goes from and to. */
NODISCARD enum err pacer_schedule_parse(struct pacer_schedule *s, const char *text, struct err_detail *d);
uint64_t pacer_schedule_duration(const struct pacer_schedule *s);
/* The arrivals that an even schedule has. */
double pacer_schedule_total(const struct pacer_schedule *s);

/* Thread `index` of `threads` takes every threads-th arrival (even), or a process of its own at its share of
 * the rate (Poisson, different for each `seed` and thread). */
void pacer_init(struct pacer *p, const struct pacer_schedule *s, uint64_t start_ns, uint32_t index,
                uint32_t threads, uint64_t seed);

/* The request due at `next_ns` is taken; moves on to the next one. */
void pacer_advance(struct pacer *p);

#endif
