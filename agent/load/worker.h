#ifndef AGENT_LOAD_WORKER_H
#define AGENT_LOAD_WORKER_H
/*
 * One thread of load: its connections, its loop, its measurements. Made and read by main before and after
 * the thread lives; in between only the fields of `struct worker_shared` and `struct worker_public` are
 * touched by others, all of them atomic.
 */
#include "agent/load/conn.h"
#include "agent/load/interval.h"
#include "agent/load/options.h"
#include "agent/load/pacer.h"
#include "agent/load/quick.h"
#include "agent/load/request.h"
#include "agent/load/tally.h"
#include "agent/load/target.h"
#include "agent/load/transport.h"

#include <pthread.h>
#include <stdatomic.h>

/* The plaintext of one TLS record. */
#define WORKER_PLAIN_BYTES (16u * 1024u)

/* Between the edges: main tells the workers when, the workers tell main how it goes. */
struct worker_shared {
    _Atomic uint64_t begin_ns;        /* 0 until main has fixed it; load starts here */
    _Atomic uint64_t window_start_ns; /* set before begin_ns */
    _Atomic uint64_t window_end_ns;   /* may only be moved to an earlier instant, for an early end */
    _Atomic uint64_t drain_end_ns;    /* moved together with it */
    uint64_t interval_ns;             /* fixed beforehand, as the next */
    struct interval_box *intervals;
    _Atomic uint32_t settled; /* workers whose connections are open or have failed */
};

struct worker_public {
    _Atomic uint64_t ok; /* in the window, so far */
    _Atomic uint64_t failed;
    _Atomic bool opened; /* a connection, at least once */
};

struct worker {
    /* What every event touches. */
    struct transport *transport;
    uint64_t now_ns;  /* of the event being handled */
    bool may_skip;    /* bytes of large bodies may be dropped unseen */
    bool heard;       /* events since the loop last looked at the clock */
    uint64_t edge_ns; /* when the phase ends, or the interval */
    enum run_phase phase;
    bool loading; /* between begin and the window's end: requests may be sent */
    uint64_t in_flight;
    struct pacer pacer;        /* open loop; never due in closed loop */
    struct accounts *accounts; /* of the phase */
    struct quick *quick;       /* one per request of the set */
    uint32_t turn;             /* in the cycle of requests */
    struct template_state template_state;
    uint64_t next_deadline_ns; /* no connection's deadline is earlier */
    struct conn *conns;
    uint32_t conn_count;
    uint32_t *idle; /* ring of ready connections, longest idle first */
    uint32_t idle_head;
    uint32_t idle_count;

    const struct options *options; /* borrowed, as the next two */
    const struct target *target;
    const struct request_set *requests;
    struct tls_config *tls; /* NULL: plain HTTP */
    struct worker_shared *shared;
    struct worker_public public;

    uint32_t index;
    uint32_t first_slot;        /* of the run's connections, to spread over addresses */
    uint32_t unsettled;         /* connections that have neither opened nor failed yet */
    uint64_t lead_ns;           /* how late a paced wake-up lately was: it is asked for that much earlier */
    uint64_t tick_ns;           /* looks at `shared` again then */
    uint64_t cpu_start_user_ns; /* of the thread, at the window's start */
    uint64_t cpu_start_system_ns;
    struct sha256 *sums; /* per connection; NULL when nothing is hashed */
    uint8_t *spaces;     /* per connection, for rendered requests; NULL without any */
    struct tally *tally;
    struct interval *interval; /* being filled; NULL outside the window */
    uint64_t interval_edge_ns;
    uint64_t failed_before;            /* requests of the window, when the interval began */
    uint8_t plain[WORKER_PLAIN_BYTES]; /* out of TLS */
    pthread_t thread;
    bool done;
};

struct worker_config {
    const struct options *options;
    const struct target *target;
    const struct request_set *requests;
    struct worker_shared *shared;
    uint32_t index;
    uint32_t connections;
    uint32_t first_slot;
};

NODISCARD enum err worker_new(struct worker **out, const struct worker_config *config, struct err_detail *d);
NODISCARD enum err worker_start(struct worker *w, struct err_detail *d);
void worker_join(struct worker *w);
void worker_free(struct worker *w); /* after worker_join, or never started */

/* For conn.c. */

/* In open loop, whether a request is waiting for a connection; in closed loop one always is. */
static inline bool worker_wants_connection(const struct worker *w)
{
    return !w->loading || !w->options->open_loop || w->pacer.next_ns <= w->now_ns;
}

/* The request whose turn it is. */
static inline const struct request *worker_next_request(struct worker *w)
{
    const struct request_set *s = w->requests;
    const struct request *r = &s->items[s->cycle[w->turn]];
    if (++w->turn == s->cycle_len)
        w->turn = 0;
    return r;
}

/* A connection can take a request: sends the next one or puts it among the idle. */
void worker_ready(struct worker *w, struct conn *c);
/* Takes a connection that is closing off the idle ones. */
void worker_unready(struct worker *w, struct conn *c);
/* A connection has opened or failed for the first time. */
void worker_settled(struct worker *w, bool opened);

static inline void worker_set_deadline(struct worker *w, struct conn *c, uint64_t deadline_ns)
{
    c->deadline_ns = deadline_ns;
    if (deadline_ns < w->next_deadline_ns)
        w->next_deadline_ns = deadline_ns;
}

#endif
