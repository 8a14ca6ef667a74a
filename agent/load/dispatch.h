#ifndef AGENT_LOAD_DISPATCH_H
#define AGENT_LOAD_DISPATCH_H
/*
 * Which request goes out next, when, and on which connection. In closed loop a connection that is free sends
 * at once. In open loop the pacer says when a request is due: it goes to the connection that has been idle
 * longest or, when none is, to the first that becomes free. Connections are slots, numbered by the owner.
 * Owned by one worker; its thread alone.
 */
#include "agent/load/meter.h"
#include "agent/load/options.h"
#include "agent/load/pacer.h"

/* One thread's part of the load. Fixed beforehand; all borrowed. */
struct share {
    const struct options *options;
    const struct target *target;
    const struct request_set *requests;
    uint32_t thread; /* of options->threads */
    uint32_t connections;
    uint32_t first_slot; /* of the run's connections: spreads addresses, and the cycle of requests */
};

struct dispatch {
    struct meter *meter; /* borrowed, as the next */
    const struct share *share;
    bool loading;       /* between the beginning and the window's end: requests may be sent */
    struct pacer pacer; /* open loop; never due in closed loop */
    uint32_t turn;      /* in the cycle of requests */
    struct template_state template_state;
    uint32_t *idle; /* ring of slots, longest idle first */
    uint32_t idle_head;
    uint32_t idle_count;
};

void dispatch_init(struct dispatch *d, const struct share *share, struct meter *meter);
void dispatch_fini(struct dispatch *d);

/* Open loop: requests are due on this schedule from `start_ns` on. */
void dispatch_follow(struct dispatch *d, const struct pacer_schedule *s, uint64_t start_ns);
/* A phase ends at `edge_ns`. What was due before it and is still unsent will never be sent: the next phase
 * has its own schedule. */
void dispatch_give_up(struct dispatch *d, uint64_t edge_ns);

/* The connection `slot` is free. True when it is to send a request now, the one that was due at
 * `*intended_ns`; else it is idle from now on. */
bool dispatch_claim(struct dispatch *d, uint32_t slot, uint64_t *intended_ns);
/* An idle connection is no longer of use. */
void dispatch_withdraw(struct dispatch *d, uint32_t slot);
/* True when a request is due now and a connection is idle: this one is to send that one. */
bool dispatch_match(struct dispatch *d, uint32_t *slot, uint64_t *intended_ns);
/* A connection could not be opened: takes the request that would have gone out on it, for the caller to count
 * as failed. False when none was waiting for a connection; in closed loop one always is. */
bool dispatch_take_waiting(struct dispatch *d);

/* The request whose turn it is. */
static inline const struct request *dispatch_next(struct dispatch *d)
{
    const struct request_set *s = d->share->requests;
    const struct request *r = &s->items[s->cycle[d->turn]];
    if (++d->turn == s->cycle_len)
        d->turn = 0;
    return r;
}

/* When an idle connection will have something to send; UINT64_MAX: not by the clock. */
static inline uint64_t dispatch_wake_ns(const struct dispatch *d)
{
    return d->idle_count != 0 ? d->pacer.next_ns : UINT64_MAX;
}

#endif
