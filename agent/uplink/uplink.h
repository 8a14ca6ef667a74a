#ifndef AGENT_UPLINK_UPLINK_H
#define AGENT_UPLINK_UPLINK_H
/*
 * The agent's line to its controller: one long poll that brings commands and renews the lease, one push that
 * takes events away, both re-sent until answered; what nobody has taken yet waits in the outbox. Owned by the
 * agent; everything on its loop. Dialling again, and how long it waits before that, is
 * proto/link/link_client.c's.
 *
 * While a window is open (from the job's WINDOW_START to its WINDOW_END) at most one push a second is sent;
 * window edges, failures and processes that end unasked go at once.
 */
#include "common/clock.h"
#include "proto/link/link.h"

#include <uv.h>

#define UPLINK_SILENCE_NS      (2ull * NS_PER_S) /* past the controller's hold: then the line is dead */
#define UPLINK_PUSH_TIMEOUT_NS (10ull * NS_PER_S)
#define UPLINK_BATCH_GAP_NS    NS_PER_S /* between pushes while a window is open */

struct uplink;

struct uplink_handlers {
    void *arg;
    /* A command that has not been delivered before, in order. */
    void (*on_command)(void *arg, const struct msg_command *command);
    /* A poll was answered: the lease runs anew from `sent_at_ns`, when that poll left. Comes before the
     * commands of the same answer. */
    void (*on_renew)(void *arg, uint64_t sent_at_ns, uint64_t lease_ns);
    /* Refused for good (revoked, wrong version): the program should end with this text. */
    void (*on_final)(void *arg, enum err e, const char *why);
};

struct uplink_options {
    uv_loop_t *loop;
    const char *address;
    const struct identity *identity; /* NULL over ipc; borrowed for the uplink's life */
    const char *name;
    const struct msg_host *host; /* copied */
    const char *spool_dir;
    struct uplink_handlers handlers;
};

NODISCARD enum err uplink_new(const struct uplink_options *options, struct uplink **out,
                              struct err_detail *d);
/* What waits is sent if that takes less than a second; results that were not taken stay in the spool. No
 * handler is called any more; `cb` runs when all is freed. */
void uplink_close(struct uplink **uplink, void (*cb)(void *arg), void *arg);

/* Queues an event (copied, numbered). Results (LOADED, EXITED, CHECKED) are on disk before this returns;
 * ticks of PROGRESS are not spooled and may be dropped, oldest first. */
void uplink_emit(struct uplink *uplink, const struct msg_event *event);

/* Which run of which job is held here now, "" for none: said in the next HELLO. */
void uplink_set_job(struct uplink *uplink, const char *job, uint64_t run);

/* Names this program's run to the controller; event numbers are its own. */
uint64_t uplink_incarnation(const struct uplink *uplink);

/* Everything emitted has been acknowledged. */
bool uplink_is_idle(const struct uplink *uplink);

/* For the test of every pair, see common/machine.h. */
bool uplink_permits(unsigned state, unsigned event);

#endif
