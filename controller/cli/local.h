#ifndef CONTROLLER_CLI_LOCAL_H
#define CONTROLLER_CLI_LOCAL_H
/*
 * A whole lab on this machine for one run: a private controller and one agent per host the experiment asks
 * for, over ipc. All hang on one leash (a pipe): whatever ends this process ends them, and they end what they
 * started. Owned by the subcommand; main thread only.
 */
#include "controller/cli/client.h"
#include "controller/experiment/experiment.h"

struct local;

/* Starts it and waits until every agent is known to the controller. Results go to STATE/local. ERR_BUSY when
 * another local run is under way: the two would disturb each other. */
NODISCARD enum err local_start(const struct place *place, const struct experiment *e, struct local **out,
                               struct err_detail *d);

/* A connection to its controller: when that process ends, calls end at once instead of waiting for its
 * return. Closed by the caller, before local_stop. */
NODISCARD enum err local_open_client(struct local *local, struct client **out, struct err_detail *d);

/* Is every part alive that the job needs? `local` is a struct local; `queued`: no host works for it yet. The
 * error says which part has ended, and why by its log. */
NODISCARD enum err local_check(void *local, bool queued, struct err_detail *d);

/* Lets go of the leash and waits until every process has ended. */
void local_stop(struct local **local);

#endif
