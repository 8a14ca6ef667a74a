#ifndef CONTROLLER_ANALYSIS_LATENCY_H
#define CONTROLLER_ANALYSIS_LATENCY_H
/*
 * Latency of a cell: percentiles of one histogram merged from those of its windows, never an average of
 * percentiles. Owned by the caller; one thread.
 */
#include "common/hist.h"
#include "proto/msg/msg.h"

struct latency_figures { /* ns; valid when count is not 0 */
    uint64_t count;
    uint64_t min, p50, p90, p99, p999, max;
    double mean;
};

/* A window's histogram into `out`, whose content is lost. ERR_NOT_FOUND: it has none; ERR_INVALID: it cannot
 * be read. */
NODISCARD enum err latency_decode(struct hist *out, const struct msg_bytes *encoded, struct err_detail *d);

void latency_read(const struct hist *merged, struct latency_figures *out);

#endif
