#include "agent/load/audit.h"

#include <math.h>

void audit_send(struct audit *a, uint64_t intended_ns, uint64_t now_ns)
{
    if (now_ns - intended_ns > AUDIT_LATE_NS)
        a->late++;
    if (a->last_send_ns != 0) {
        double gap = (double)(now_ns - a->last_send_ns);
        a->gaps++;
        a->gap_sum_ns += gap;
        a->gap_square_sum_ns += gap * gap;
    }
    a->last_send_ns = now_ns;
    uint64_t ms = now_ns / NS_PER_MS;
    a->burst = ms == a->burst_ms ? a->burst + 1 : 1;
    a->burst_ms = ms;
    if (a->burst > a->burst_max)
        a->burst_max = a->burst;
}

void audit_merge(struct audit *a, const struct audit *from)
{
    a->late += from->late;
    a->gaps += from->gaps;
    a->gap_sum_ns += from->gap_sum_ns;
    a->gap_square_sum_ns += from->gap_square_sum_ns;
    if (from->burst_max > a->burst_max)
        a->burst_max = from->burst_max;
}

double audit_gap_cv(const struct audit *a)
{
    if (a->gaps < 2)
        return -1;
    double mean = a->gap_sum_ns / (double)a->gaps;
    double variance = a->gap_square_sum_ns / (double)a->gaps - mean * mean;
    return mean > 0 ? sqrt(fmax(variance, 0)) / mean : -1;
}

struct audit_verdict audit_judge(double busiest, const struct hist *own_lag, const struct hist *latency)
{
    if (busiest > AUDIT_CPU_SHARE_MAX)
        return (struct audit_verdict){LIMIT_CPU, busiest, AUDIT_CPU_SHARE_MAX};
    if (own_lag != NULL) {
        double lag = (double)hist_percentile(own_lag, 99);
        double bound =
            fmax((double)AUDIT_LAG_NS_MAX, AUDIT_LAG_LATENCY_SHARE * (double)hist_percentile(latency, 50));
        if (lag > bound)
            return (struct audit_verdict){LIMIT_LAG, lag, bound};
    }
    return (struct audit_verdict){.limit = LIMIT_NONE};
}

const char *audit_limit_text(enum audit_limit limit)
{
    static const char *const texts[] = {[LIMIT_NONE] = "none", [LIMIT_CPU] = "cpu", [LIMIT_LAG] = "send_lag"};
    return texts[limit];
}
