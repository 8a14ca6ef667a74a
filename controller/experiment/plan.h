#ifndef CONTROLLER_EXPERIMENT_PLAN_H
#define CONTROLLER_EXPERIMENT_PLAN_H
/*
 * What `splitbench plan` prints: the exact schedule of an experiment and how long it takes, nothing run.
 * Owns nothing; one thread.
 */
#include "common/buf.h"
#include "controller/experiment/design.h"

/* A line per window, and the sums. ERR_TOO_BIG when `out` is full. */
NODISCARD enum err plan_write_text(const struct experiment *e, const struct design *d, struct buf *out);

/* "splitbench-plan/1": { format, name, hash, windows_total, duration_ns, cells, windows }. */
NODISCARD enum err plan_write_json(const struct experiment *e, const struct design *d, struct buf *out);

/* Either of them to standard output. */
NODISCARD enum err plan_print(const struct experiment *e, const struct design *d, bool json,
                              struct err_detail *detail);

#endif
