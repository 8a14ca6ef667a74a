#ifndef CONTROLLER_EXPERIMENT_DESIGN_H
#define CONTROLLER_EXPERIMENT_DESIGN_H
/*
 * The order of measurement: an experiment's design unrolled into its exact list of windows. A pure function
 * of the experiment, so that plan, run, resume and the progress bar all see the same list. Owned by the
 * caller.
 */
#include "controller/experiment/experiment.h"

struct design_cell { /* target x workload x swept value */
    uint32_t target;
    uint32_t workload;
    uint32_t connections;
};

struct design_window {
    uint32_t index; /* position in the schedule; the key of a window in the store */
    uint32_t cell;
    uint32_t round;            /* 0-based */
    uint32_t slot;             /* 0-based position of the target within its round */
    uint64_t planned_start_ns; /* of the window, after its warm-up; from the start of the job */
};

struct design {
    struct design_cell *cells; /* ordered by target, workload, connections as in the file */
    size_t cell_count;
    struct design_window *windows; /* in order of execution */
    size_t window_count;
    uint64_t
        duration_ns; /* of the whole schedule: cooldowns, warm-ups, windows, gaps; start-up not counted */
};

/* ERR_INVALID: no window, or more than LIMIT_WINDOWS (an experiment that was read has neither). */
NODISCARD enum err design_build(const struct experiment *e, struct design **out, struct err_detail *d);
void design_free(struct design *d);

/* Target of slot `slot` in round `round`. Latin square: the cyclic one, target (slot + round) mod n. */
uint32_t design_target_at(const struct experiment *e, uint32_t round, uint32_t slot);

/* What remains from window `index` on, with the pause and the warm-up before it, ns. 0 past the last one. */
uint64_t design_remaining_ns(const struct experiment *e, const struct design *d, size_t index);
/* The same without that pause: from the start of the generator on. */
uint64_t design_load_to_end_ns(const struct experiment *e, const struct design *d, size_t index);

/* "nginx /small c=100" into `out`. Returns `out`. */
const char *design_cell_name(const struct experiment *e, const struct design *d, uint32_t cell, char *out,
                             size_t size);

#endif
