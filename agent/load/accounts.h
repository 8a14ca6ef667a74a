#ifndef AGENT_LOAD_ACCOUNTS_H
#define AGENT_LOAD_ACCOUNTS_H
/*
 * Where every request went, by phase of the run. Each phase balances by itself:
 *     scheduled = ok + failed + in_flight + never_sent
 * A request that is in flight at an edge is in_flight in the phase that ends there, and carried_in (and so
 * scheduled again) in the next. Owned by one worker; merged after the threads end.
 */
#include "common/base.h"

enum run_phase {
    PHASE_WARMUP, /* everything before the window, opening the connections included */
    PHASE_WINDOW,
    PHASE_DRAIN, /* nothing new is sent */
    PHASE_COUNT
};

struct accounts {
    uint64_t scheduled;  /* requests that were due in this phase, and those carried in */
    uint64_t carried_in; /* of those: sent, or queued, in the phase before */
    uint64_t ok;
    uint64_t failed;
    uint64_t in_flight;    /* sent and unanswered when the phase ended */
    uint64_t never_sent;   /* due, but still queued when the phase ended */
    uint64_t sent;         /* first byte handed to the kernel in this phase */
    uint64_t responses;    /* answers that came whole in this phase, whatever they said */
    uint64_t short_bodies; /* answers cut off in their body */
    uint64_t body_bytes;   /* of ok answers */
    uint64_t wire_in;      /* bytes read, framing included */
    uint64_t wire_out;     /* bytes that left, of requests answered and connections ended in this phase */
    uint64_t idle_closes;  /* connections the peer closed between requests */
    uint64_t idle_surplus; /* connections given up because bytes came between requests */
    uint64_t
        open_failures;   /* failed attempts to open a connection, whether a request failed with it or not */
    uint64_t reconnects; /* connections opened again in this phase, for whatever reason */
};

void accounts_merge(struct accounts *a, const struct accounts *from);
bool accounts_balanced(const struct accounts *a);

#endif
