#ifndef AGENT_LOAD_EVENTS_H
#define AGENT_LOAD_EVENTS_H
/*
 * What a harness wants to know while the load runs: one JSON line per event on standard error, written at
 * once. Silent until switched on. Main's thread.
 */
#include "common/base.h"

void events_enable(void);

/* {"event":NAME,"t_ns":"..."}: an edge of the run, with the exact instant of the edge. */
void events_edge(const char *name, uint64_t t_ns);

/* {"event":"progress",...}: counts of the window so far. */
void events_progress(uint64_t t_ns, uint64_t ok, uint64_t failed);

#endif
