#ifndef AGENT_LOAD_AUDIT_H
#define AGENT_LOAD_AUDIT_H
/*
 * The generator watches itself: how evenly it sent, how late, and whether it was itself the limit. The
 * counters are a worker's, in the window; the verdict is main's, afterwards.
 */
#include "common/clock.h"
#include "common/hist.h"

/* A request sent later than this after it was due counts as late. */
#define AUDIT_LATE_NS NS_PER_MS
/* The generator limits when a thread is busy for this share of the window, or when the 99th percentile of its
 * own lateness (a connection was free) exceeds both of these. */
#define AUDIT_CPU_SHARE_MAX     0.9
#define AUDIT_LAG_NS_MAX        NS_PER_MS
#define AUDIT_LAG_LATENCY_SHARE 0.1

struct audit {
    uint64_t late;
    uint64_t last_send_ns; /* 0: none yet */
    uint64_t gaps;
    double gap_sum_ns;
    double gap_square_sum_ns;
    uint64_t burst_ms; /* the millisecond that is being counted */
    uint64_t burst;
    uint64_t burst_max; /* requests sent by one thread in one millisecond */
};

enum audit_limit { LIMIT_NONE, LIMIT_CPU, LIMIT_LAG };

struct audit_verdict {
    enum audit_limit limit;
    double value; /* share of a CPU, or ns */
    double bound; /* that it exceeds */
};

/* A request that was due at `intended_ns` goes out at `now_ns`. Open loop only. */
void audit_send(struct audit *a, uint64_t intended_ns, uint64_t now_ns);
void audit_merge(struct audit *a, const struct audit *from);

/* Standard deviation of the gaps between sends of a thread by their mean; negative when there are too few. */
double audit_gap_cv(const struct audit *a);

/* `busiest` is the largest share of the window that a thread was on a CPU. `own_lag` is NULL in closed loop.
 */
struct audit_verdict audit_judge(double busiest, const struct hist *own_lag, const struct hist *latency);

const char *audit_limit_text(enum audit_limit limit);

#endif
