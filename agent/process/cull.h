#ifndef AGENT_PROCESS_CULL_H
#define AGENT_PROCESS_CULL_H
/*
 * Killing what descends from this process, which must be a subreaper. Owns nothing; one thread at a time.
 *
 * Orphans rise to their subreaper as their parents die, so that killing our children again and again, until
 * there are none, reaches every descendant whatever it did: forked twice, left its session, ignored signals.
 */
#include "agent/process/procstat.h"

/* SIGKILL to each child of the calling thread. Cheap (one file). The caller waits for them, calls again. */
void cull_children(void);

/* SIGKILL to everything below us at once, for trees that grow at the bottom faster than they rise at the top.
 * `skip` (may be NULL) answers true for those to leave alone, with all below them. How many are alive. */
size_t cull_descendants(bool (*skip)(const struct procstat *p));

/* In an agent whose supervisor was killed: SIGKILL to every descendant that is neither a supervisor nor below
 * one, and waits for those that are dead. How many there were; call it again until there are none. An agent
 * must have no other children than its supervisors. */
size_t cull_strays(void);

/* "123 (nginx, state D) 124 (...)": what lives below us. Returns `out`. */
const char *cull_describe(char *out, size_t size);

#endif
