#ifndef CONTROLLER_DAEMON_LATE_GATE_H
#define CONTROLLER_DAEMON_LATE_GATE_H
/*
 * Which late results are kept: those of jobs that their agent was part of, up to its share of the disk. The
 * others are counted: in the store, by agent, with one write under way however many come. Owned by the
 * server; the loop's thread.
 */
#include "controller/store/store_worker.h"

struct late_gate;

/* `store` is the loop's own, to read from; both are borrowed. */
struct late_gate *late_gate_new(struct store *store, struct store_worker *worker);
/* When the worker has ended all that it was given. */
void late_gate_free(struct late_gate *g);

/* Is it to be kept? One that is not has been counted. */
bool late_gate_admits(struct late_gate *g, const char *agent, const struct msg_event *e);

#endif
