#ifndef AGENT_TELEMETRY_CPU_H
#define AGENT_TELEMETRY_CPU_H
/*
 * CPU counters of the whole host and of this process. The difference of two readings, less what the job's
 * trees used, is what everything else took. Owned by whoever made it; one thread at a time.
 */
#include "common/err.h"

/*
 * /proc/stat counts in ticks (10 ms) which the kernel takes by sampling on most configurations: over a
 * window of a second a figure is good to about 1 % of one core, over 100 ms it means little.
 */
struct cpu_reading {
    uint64_t taken_at_ns; /* monotonic, between the two reads */
    uint64_t busy_ns;     /* all CPUs: all but idle, iowait and steal; guests are in user time already */
    uint64_t steal_ns;    /* all CPUs: the hypervisor ran somebody else */
    uint64_t own_ns;      /* CPU of this process, exact */
    uint32_t cpus;        /* online */
};

struct cpu_counters;

/* `proc_root` is "/proc", or a recorded tree in tests. The file is kept open. */
NODISCARD enum err cpu_counters_new(const char *proc_root, struct cpu_counters **out, struct err_detail *d);
void cpu_counters_free(struct cpu_counters *c);

/* About 5 us and 10 us for every hundred interrupts. ERR_INVALID when the text is not that of /proc/stat. */
NODISCARD enum err cpu_counters_read(struct cpu_counters *c, struct cpu_reading *out, struct err_detail *d);

#endif
