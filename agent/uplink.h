#ifndef AGENT_UPLINK_H
#define AGENT_UPLINK_H
/*
 * The agent's line to its controller: one long poll that brings commands and renews the lease, one push that
 * takes events away, both re-sent until answered; events nobody has taken yet are spooled to disk. Owned by
 * the agent's main; everything on its loop.
 */
#include "proto/link.h"

#include <uv.h>

struct uplink;

struct uplink_handlers {
    void *arg;
    /* A command that has not been delivered before, in order. */
    void (*on_command)(void *arg, const struct msg_command *command);
    /* A poll was answered: the lease runs anew from `sent_at_ns`, when that poll left. */
    void (*on_renew)(void *arg, uint64_t sent_at_ns, uint64_t lease_ns);
    /* Refused for good (revoked, wrong version): the program should end with this text. */
    void (*on_final)(void *arg, enum err e, const char *why);
};

struct uplink_options {
    uv_loop_t *loop;
    const char *address;
    const struct identity *identity; /* NULL over ipc */
    const char *name;
    const struct msg_host *host;
    const char *spool_dir;
    struct uplink_handlers handlers;
};

NODISCARD enum err uplink_new(const struct uplink_options *options, struct uplink **out,
                              struct err_detail *d);
void uplink_close(struct uplink **uplink, void (*cb)(void *arg), void *arg);

/* Queues an event (copied, numbered). Results (LOADED, EXITED, CHECKED, ...) are on disk before this returns;
 * PROGRESS is not spooled and may be dropped, oldest first. */
void uplink_emit(struct uplink *uplink, const struct msg_event *event);

/* Which job is held here now, "" for none: said in the next HELLO. */
void uplink_set_job(struct uplink *uplink, const char *job);

#endif
