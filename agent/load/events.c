#include "agent/load/events.h"

#include <inttypes.h>

static bool enabled;

void events_enable(void)
{
    enabled = true;
}

void events_edge(const char *name, uint64_t t_ns)
{
    if (enabled)
        fprintf(stderr, "{\"event\":\"%s\",\"t_ns\":\"%" PRIu64 "\"}\n", name, t_ns);
}

void events_progress(uint64_t t_ns, uint64_t ok, uint64_t failed)
{
    if (enabled)
        fprintf(stderr,
                "{\"event\":\"progress\",\"t_ns\":\"%" PRIu64 "\",\"ok\":%" PRIu64 ",\"failed\":%" PRIu64
                "}\n",
                t_ns, ok, failed);
}
