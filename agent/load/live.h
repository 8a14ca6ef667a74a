#ifndef AGENT_LOAD_LIVE_H
#define AGENT_LOAD_LIVE_H
/*
 * What a person sees on standard error while the load runs: a line that is redrawn on a terminal, and a line
 * per interval when asked for. Main's thread.
 */
#include "agent/load/timeline.h"

struct live {
    bool redraw; /* standard error is a terminal, and nothing else is written there */
    bool lines;  /* --report-every */
    bool drawn;  /* there is a line to wipe */
};

/* One interval is over, `elapsed_ns` of `total_ns` of the window. */
void live_point(struct live *l, const struct timeline_point *p, uint64_t elapsed_ns, uint64_t total_ns);
/* Before the window: what is going on. */
void live_say(struct live *l, const char *text);
/* Wipes the line. */
void live_end(struct live *l);

struct live_text {
    char text[32];
};

/* "812us", "1.49ms", "2.10s": three digits. */
struct live_text live_time(uint64_t ns);

#endif
