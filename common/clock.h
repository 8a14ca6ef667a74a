#ifndef COMMON_CLOCK_H
#define COMMON_CLOCK_H
/*
 * Time. Everything measured is CLOCK_MONOTONIC in nanoseconds; wall time is only for what people read.
 * Any thread.
 */
#include "common/base.h"

#include <sys/types.h>

#define NS_PER_US UINT64_C(1000)
#define NS_PER_MS UINT64_C(1000000)
#define NS_PER_S  UINT64_C(1000000000)

/* Monotonic time of this host, ns. */
uint64_t clock_now_ns(void);

/* The same, counting the time in which the host was suspended, ns. */
uint64_t clock_boot_ns(void);

/* CPU time of a process, 0 = our own; 0 ns when there is none of that number. */
uint64_t clock_cpu_ns(pid_t pid);

/* Wall time, ns since 1970-01-01 UTC. For display and for certificates only. */
uint64_t clock_wall_ns(void);

/* "2026-11-30T13:05:43Z" for a wall time; `out` holds at least CLOCK_TEXT_BYTES. Returns `out`. */
#define CLOCK_TEXT_BYTES 24u
const char *clock_wall_text(uint64_t wall_ns, char *out);

#endif
