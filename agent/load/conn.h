#ifndef AGENT_LOAD_CONN_H
#define AGENT_LOAD_CONN_H
/*
 * One connection: opening it, one request and its answer at a time, and every way it can end. Lives in its
 * worker's array for the whole run, reconnecting as needed. Worker's thread only.
 */
#include "agent/load/fault.h"
#include "agent/load/tls.h"
#include "common/response.h"

struct request;
struct sha256;
struct worker;

#define CONN_STATES(X)                                                                                       \
    X(CLOSED, "closed")         /* before the run, and after its end */                                      \
    X(BACKOFF, "backoff")       /* waits for the deadline, which starts the next attempt */                  \
    X(CONNECTING, "connecting") /* */                                                                        \
    X(HANDSHAKE, "handshake")   /* TLS */                                                                    \
    X(READY, "ready")           /* open, no request */                                                       \
    X(SENDING, "sending")       /* the kernel has not taken the whole request yet */                         \
    X(WAITING, "waiting")       /* request sent, no byte of the answer yet */                                \
    X(RECEIVING, "receiving")

#define CONN_EVENTS(X)                                                                                       \
    X(OPENED, "opened")                                                                                      \
    X(FAILED, "failed") /* to open */                                                                        \
    X(SENT, "sent")                                                                                          \
    X(BYTES, "bytes")                                                                                        \
    X(SKIPPED, "skipped")                                                                                    \
    X(ENDED, "ended")                                                                                        \
    X(EXPIRED, "expired") /* the deadline has passed */

enum conn_state {
#define X(name, text) CONN_##name,
    CONN_STATES(X)
#undef X
        CONN_STATE_COUNT
};

enum conn_event {
#define X(name, text) CONN_EVENT_##name,
    CONN_EVENTS(X)
#undef X
        CONN_EVENT_COUNT
};

/* What an event brings along. */
struct conn_input {
    int error;           /* FAILED, ENDED: errno, 0 for an orderly close */
    const uint8_t *data; /* BYTES */
    size_t len;          /* BYTES, SKIPPED */
    bool truncated;      /* ENDED: within TLS, and the peer had not said that it would */
};

struct conn {
    uint8_t state; /* enum conn_state; changed by conn_handle and conn_send alone */
    uint32_t slot;
    uint64_t deadline_ns;     /* UINT64_MAX: none */
    uint64_t intended_ns;     /* when the request was due */
    uint64_t sent_ns;         /* when it was handed to the kernel */
    struct tls *tls;          /* NULL for plain HTTP, and while closed */
    struct tls_memory memory; /* of the session before, with --tls-resume */
    uint64_t given_bytes;     /* to the transport, since the connection was opened */
    uint64_t counted_bytes;   /* of those, as having left */
    bool send_pending;        /* the transport still holds bytes of ours */
    uint64_t shaking_ns;      /* when the hand-shake began */
    uint64_t opening_ns;      /* when connecting began */
    struct response response;
    const struct request *request; /* in flight, or the last one */
    struct sha256 *sum;            /* of the body, where one is expected; else NULL */
    uint8_t *space;                /* for a rendered request; NULL without templates */
    uint64_t answered;             /* requests answered on this connection since it was opened */
    uint32_t failures;             /* to open, in a row: until an answer has come */
    uint32_t opens;
};

/* `space` for rendered requests and `sum` for hashes are borrowed; NULL when there is no need for them. */
void conn_init(struct conn *c, uint32_t slot, uint8_t *space, struct sha256 *sum);
void conn_fini(struct conn *c);

/* Will connect at `at_ns`, at once when that has passed. State CLOSED only. */
void conn_open_at(struct worker *w, struct conn *c, uint64_t at_ns);

/* Starts to connect. State CLOSED or BACKOFF only. */
void conn_open(struct worker *w, struct conn *c);

/* Sends one request that was due at `intended_ns`. State READY only. */
void conn_send(struct worker *w, struct conn *c, uint64_t intended_ns);

/* Closes without a word; a request in flight is dropped, for the caller to account for. */
void conn_close(struct worker *w, struct conn *c);

/* Sends what the TLS session has to say, unless it is still busy with the last of it. */
void conn_flush(struct worker *w, struct conn *c);

/* The TLS session has failed: the alert that tells the peer why goes out before all else. Close it then. */
void conn_send_alert(struct worker *w, struct conn *c);

/* Bytes came from the peer; the peer closed, or the connection broke. For the transport's sink. */
void conn_receive(struct worker *w, struct conn *c, const uint8_t *data, size_t len);
void conn_end(struct worker *w, struct conn *c, int error);

/* Something happened. An event that the state does not allow is our own bug. */
void conn_handle(struct worker *w, struct conn *c, enum conn_event event, const struct conn_input *in);

/* Whether the state has an answer to the event. */
bool conn_welcomes(enum conn_state state, enum conn_event event);

static inline bool conn_in_flight(const struct conn *c)
{
    return c->state >= CONN_SENDING;
}

#endif
