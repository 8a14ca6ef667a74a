#ifndef AGENT_AGENT_H
#define AGENT_AGENT_H
/*
 * The agent: an uplink that brings commands and, while a job holds this host, the task that does them. Owns
 * both and the lease between them: a job whose lease is not renewed ends here. Owned by main(); everything on
 * its loop.
 *
 * A host works for one job. JOB_OPEN for the held job is answered well again; for another one with BUSY. A
 * JOB_CLOSE is answered when nothing of the job lives, and well at once when this host does not hold it.
 * Other commands for a job that is not held are answered with STATE. What comes while a job is being ended
 * waits. When the lease runs out, a DONE that answers nothing (code TIMEOUT) tells the controller afterwards.
 */
#include "proto/link/link.h"

#include <uv.h>

#define AGENT_WAITING_MAX 256u /* commands that wait for a job's end; more are answered with BUSY */

struct agent;

struct agent_options {
    uv_loop_t *loop;
    const char *address;
    const struct identity *identity; /* NULL over ipc; borrowed for the agent's life */
    const char *name;
    const struct msg_host *host;
    const char *state_dir;    /* exists; spool/ and the task's directories are below it */
    const char *load_program; /* path of splitbench-load */
    /* The controller refuses this agent for good: close it and end the program. */
    void (*on_final)(void *arg, enum err e, const char *why);
    void *arg;
};

NODISCARD enum err agent_new(const struct agent_options *options, struct agent **out, struct err_detail *d);
/* Ends the job first, every process of it; `cb` runs when all is freed. */
void agent_close(struct agent **agent, void (*cb)(void *arg), void *arg);

/* The job held here, "" for none. */
const char *agent_job(const struct agent *agent);

/* For the test of every pair, see common/machine.h. */
bool agent_permits(unsigned state, unsigned event);

#endif
