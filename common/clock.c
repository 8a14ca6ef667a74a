#include "common/clock.h"

#include <time.h>

static uint64_t read_clock(clockid_t id)
{
    struct timespec t;
    must(clock_gettime(id, &t) == 0);
    return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

uint64_t clock_now_ns(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

uint64_t clock_boot_ns(void)
{
    return read_clock(CLOCK_BOOTTIME);
}

uint64_t clock_cpu_ns(pid_t pid)
{
    clockid_t id;
    struct timespec t;
    if (clock_getcpuclockid(pid, &id) != 0 || clock_gettime(id, &t) != 0)
        return 0;
    return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

uint64_t clock_wall_ns(void)
{
    return read_clock(CLOCK_REALTIME);
}

const char *clock_wall_text(uint64_t wall_ns, char *out)
{
    time_t seconds = (time_t)(wall_ns / NS_PER_S);
    struct tm tm;
    if (gmtime_r(&seconds, &tm) == NULL || strftime(out, CLOCK_TEXT_BYTES, "%Y-%m-%dT%H:%M:%SZ", &tm) == 0)
        snprintf(out, CLOCK_TEXT_BYTES, "?");
    return out;
}
