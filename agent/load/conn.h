#ifndef AGENT_LOAD_CONN_H
#define AGENT_LOAD_CONN_H
/*
 * One connection: opening it, one request and its answer at a time, and every way it can end. Lives in its
 * worker's set for the whole run, reconnecting as needed. Worker's thread only.
 *
 * What happens is an event; the state's handler for it returns the next state, and conn_handle alone assigns
 * it. Handlers never raise events.
 */
#include "agent/load/fault.h"
#include "agent/load/meter.h"
#include "agent/load/tls.h"
#include "common/response.h"

struct conn_set;
struct request;
struct sha256;

#define CONN_STATES(X)                                                                                       \
    /* before the run, and after its end */                                                                  \
    X(CLOSED)                                                                                                \
    /* waits for the deadline, which starts the next attempt */                                              \
    X(BACKOFF)                                                                                               \
    X(CONNECTING)                                                                                            \
    /* TLS */                                                                                                \
    X(HANDSHAKE)                                                                                             \
    /* open, no request: among the idle connections of the dispatch */                                       \
    X(READY)                                                                                                 \
    /* the kernel has not taken the whole request yet */                                                     \
    X(SENDING)                                                                                               \
    /* request sent, no byte of the answer yet */                                                            \
    X(WAITING)                                                                                               \
    X(RECEIVING)

#define CONN_EVENTS(X)                                                                                       \
    /* the run begins: connect, at an instant */                                                             \
    X(START)                                                                                                 \
    X(OPENED)                                                                                                \
    /* to open */                                                                                            \
    X(FAILED)                                                                                                \
    /* a request is due */                                                                                   \
    X(DUE)                                                                                                   \
    /* the kernel has taken all that it was given */                                                         \
    X(SENT)                                                                                                  \
    /* of HTTP */                                                                                            \
    X(BYTES)                                                                                                 \
    /* bytes of a body were dropped unseen */                                                                \
    X(SKIPPED)                                                                                               \
    /* the TLS session was fed: it may have something to send */                                             \
    X(FED)                                                                                                   \
    /* the TLS session has failed */                                                                         \
    X(BROKEN)                                                                                                \
    /* the peer closed, or the connection broke */                                                           \
    X(ENDED)                                                                                                 \
    /* the deadline has passed */                                                                            \
    X(EXPIRED)                                                                                               \
    /* the run is over; what is in flight is the caller's to account for */                                  \
    X(CLOSE)

enum conn_state {
#define X(name) CONN_##name,
    CONN_STATES(X)
#undef X
        CONN_STATE_COUNT
};

enum conn_event {
#define X(name) CONN_EVENT_##name,
    CONN_EVENTS(X)
#undef X
        CONN_EVENT_COUNT
};

/* What an event brings along. */
struct conn_input {
    int error;           /* FAILED, ENDED: errno, 0 for an orderly close */
    bool truncated;      /* ENDED: within TLS, and the peer had not said that it would */
    const uint8_t *data; /* BYTES */
    size_t len;          /* BYTES, SKIPPED */
    uint64_t at_ns;      /* START: when to connect; DUE: when the request was due */
};

struct conn {
    uint8_t state;     /* enum conn_state; changed by conn_handle alone */
    bool send_pending; /* the transport still holds bytes of ours */
    uint32_t slot;
    uint64_t deadline_ns;           /* UINT64_MAX: none */
    uint64_t opening_ns;            /* when connecting began */
    uint64_t shaking_ns;            /* when the hand-shake began */
    struct tls *tls;                /* NULL for plain HTTP, and while closed */
    struct ssl_session_st *session; /* the TLS session before, with --tls-resume; NULL: none */
    uint64_t given_bytes;           /* to the transport, since the connection was opened */
    uint64_t counted_bytes;         /* of those, as having left */
    struct response response;
    const struct request *request; /* in flight, or the last one; as the next */
    struct meter_request metered;
    struct sha256 *sum; /* of the body, where one is expected; else NULL */
    uint8_t *space;     /* for a rendered request; NULL without templates */
    uint64_t answered;  /* requests answered on this connection since it was opened */
    uint32_t failures;  /* to open, in a row: until an answer has come */
    uint32_t opens;
};

/* `space` for rendered requests and `sum` for hashes are borrowed; NULL when there is no need for them. */
void conn_init(struct conn *c, uint32_t slot, uint8_t *space, struct sha256 *sum);
void conn_fini(struct conn *c);

/* Something happened. An event that the state does not allow is our own bug. */
void conn_handle(struct conn_set *s, struct conn *c, enum conn_event event, const struct conn_input *in);

/* Bytes came from the peer, of TLS or of HTTP; the peer closed, or the connection broke. They make events. */
void conn_receive(struct conn_set *s, struct conn *c, const uint8_t *data, size_t len);
void conn_end(struct conn_set *s, struct conn *c, int error);

#endif
