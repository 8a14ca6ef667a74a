#ifndef AGENT_LOAD_CONN_SET_H
#define AGENT_LOAD_CONN_SET_H
/*
 * The connections of one worker, and all that they have in common. Made and freed by main, used by the
 * worker's thread alone in between.
 */
#include "agent/load/conn.h"
#include "agent/load/dispatch.h"
#include "agent/load/quick.h"
#include "agent/load/transport.h"

/* The plaintext of one TLS record. */
#define CONN_SET_PLAIN_BYTES (16u * 1024u)

struct conn_set {
    struct share share;
    struct transport *transport; /* borrowed, as the next */
    struct tls_config *tls;      /* NULL: plain HTTP */
    struct meter meter;
    struct dispatch dispatch;
    bool may_skip;             /* bytes of large bodies may be dropped unseen */
    struct quick *quick;       /* one per request of the set of requests */
    uint64_t next_deadline_ns; /* no connection's deadline is earlier */
    struct conn *conns;
    struct sha256 *sums;                 /* per connection; NULL when nothing is hashed */
    uint8_t *spaces;                     /* per connection, for rendered requests; NULL without any */
    uint8_t plain[CONN_SET_PLAIN_BYTES]; /* out of TLS */
};

void conn_set_init(struct conn_set *s, const struct share *share, struct transport *transport,
                   struct tls_config *tls);
void conn_set_fini(struct conn_set *s);

/* The run begins: each connection is opened now or, with --ramp, when its time has come. */
void conn_set_start(struct conn_set *s);
/* Handles the deadlines that have passed. */
void conn_set_sweep(struct conn_set *s);
/* Requests that are due go out on connections that are idle. */
void conn_set_send_due(struct conn_set *s);
/* The run is over. */
void conn_set_close(struct conn_set *s);

static inline void conn_set_deadline(struct conn_set *s, struct conn *c, uint64_t deadline_ns)
{
    c->deadline_ns = deadline_ns;
    if (deadline_ns < s->next_deadline_ns)
        s->next_deadline_ns = deadline_ns;
}

#endif
