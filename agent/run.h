#ifndef AGENT_RUN_H
#define AGENT_RUN_H
/*
 * The `run` command: everything around one agent in one process, from the lock on its state directory to the
 * signal that ends it. Owned by main(); has the loop for as long as it runs.
 */
#include "agent/invocation.h"

/* Blocks until SIGTERM, SIGINT, the end of the leash (ERR_OK), or a failure that trying again cannot mend. */
NODISCARD enum err run_agent(const struct invocation *options, struct err_detail *d);

#endif
