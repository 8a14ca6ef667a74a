#include "controller/analysis/stats.h"

#include "common/mem.h"

#include <math.h>
#include <stdlib.h>

/* Neumaier's compensated sum: the order of the rounds does not change the last digits. */
struct sum {
    double total;
    double lost;
};

static void add(struct sum *s, double v)
{
    double t = s->total + v;
    s->lost += fabs(s->total) >= fabs(v) ? (s->total - t) + v : (v - t) + s->total;
    s->total = t;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

void stats_summarise(const double *values, size_t n, struct stats_summary *out)
{
    *out = (struct stats_summary){
        .n = n, .mean = NAN, .median = NAN, .sd = NAN, .cv = NAN, .min = NAN, .max = NAN};
    if (n == 0)
        return;
    double *sorted = mem_dup(values, n * sizeof(*values));
    qsort(sorted, n, sizeof(*sorted), by_value);
    must(isfinite(sorted[0]) && isfinite(sorted[n - 1]));
    struct sum sum = {0};
    for (size_t i = 0; i < n; i++)
        add(&sum, sorted[i]);
    out->mean = (sum.total + sum.lost) / (double)n;
    out->min = sorted[0];
    out->max = sorted[n - 1];
    out->median = n % 2 == 1 ? sorted[n / 2] : sorted[n / 2 - 1] + (sorted[n / 2] - sorted[n / 2 - 1]) / 2;
    if (n >= 2) {
        struct sum squares = {0};
        for (size_t i = 0; i < n; i++)
            add(&squares, (sorted[i] - out->mean) * (sorted[i] - out->mean));
        out->sd = sqrt((squares.total + squares.lost) / (double)(n - 1));
        if (out->mean != 0)
            out->cv = out->sd / out->mean;
    }
    free(sorted);
}

bool stats_ranges_overlap(const struct stats_summary *a, const struct stats_summary *b)
{
    return a->n != 0 && b->n != 0 && a->min <= b->max && b->min <= a->max;
}
