#ifndef CONTROLLER_RUN_RUN_CPU_H
#define CONTROLLER_RUN_RUN_CPU_H
/*
 * CPU figures of a window from counters read at its edges. Pure; the counters come from agents and are not
 * trusted: what runs backwards or is missing makes a figure unknown (negative), never wrong by wrap-around.
 */
#include "proto/msg/msg.h"

struct run_cpu_host {
    const char *boot_id;              /* hosts with the same one are one machine */
    const struct msg_sampled *before; /* NULL = missing */
    const struct msg_sampled *after;
};

/* CPU of process `proc` on that host between the samples, ns. */
bool run_cpu_of_proc(const struct run_cpu_host *h, uint32_t proc, uint64_t *out_ns);
/* What the kernel counted for that process's tree between the samples. `out` holds FIGURE_TREE_COUNT and
 * comes zeroed: unknown. */
void run_cpu_counters(const struct run_cpu_host *h, uint32_t proc, struct figure *out);
/* The time between the samples, ns; false when it is not known. */
bool run_cpu_interval(const struct run_cpu_host *h, uint64_t *out_ns);

/* What everybody but this job used on host `i`, in cores: busy - all trees of the job on that machine - its
 * agents and supervisors - `more_own_ns` (the controller's own, when it runs there). */
double run_cpu_foreign(const struct run_cpu_host *hosts, size_t count, size_t i, uint64_t more_own_ns);

/* What agents and supervisors used on all hosts together, in cores. */
double run_cpu_own(const struct run_cpu_host *hosts, size_t count);

#endif
