#ifndef CONTROLLER_ANALYSIS_STATS_H
#define CONTROLLER_ANALYSIS_STATS_H
/*
 * Figures of a few numbers, one per round. Definitions and sources: docs/statistics.md. Pure functions; any
 * thread. What cannot be known (an SD of one value) is NAN, never zero.
 */
#include "common/base.h"

struct stats_summary {
    size_t n;
    double mean;
    double median; /* of an even count: the mean of the two in the middle */
    double sd;     /* of the sample, n - 1; NAN below two values */
    double cv;     /* sd / mean, a fraction; NAN without an SD and for a mean of zero */
    double min;
    double max;
};

/* All figures are NAN when `n` is 0. Values must be finite. */
void stats_summarise(const double *values, size_t n, struct stats_summary *out);

/* Do [min, max] of the two share a point? False when either has no values. */
bool stats_ranges_overlap(const struct stats_summary *a, const struct stats_summary *b);

#endif
