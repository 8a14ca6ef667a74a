#ifndef AGENT_PROCESS_SUPERVISOR_H
#define AGENT_PROCESS_SUPERVISOR_H
/*
 * The small process between the agent and one tree: it starts the tree's first process, is the subreaper of
 * all that descends from it, keeps its logs, and clears the tree when it is told to, when the first process
 * ends, when the agent is gone and when the lease runs out. One for each tree, because only a subreaper of
 * its own tells whose an orphan is. It is the agent's own program, started as `splitbench-agent --supervise
 * FD`; one thread, no allocation to speak of, asleep unless something happens.
 */
#include "common/base.h"

#define SUPERVISOR_OPTION "--supervise"
#define SUPERVISOR_NAME   "sb-supervisor" /* in ps; at most 15 bytes */

/* First thing in main() of every program that uses agent/process/process.h: true when this process is to be a
 * supervisor, which it then was; main returns `*exit_code`. Nothing else of the program may have run yet
 * (no threads). */
bool supervisor_main(int argc, char **argv, int *exit_code);

/* For the test of every pair, see common/machine.h. */
bool supervisor_permits(unsigned state, unsigned event);

#endif
