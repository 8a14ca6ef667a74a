#ifndef PROTO_LINK_LINK_PEER_H
#define PROTO_LINK_LINK_PEER_H
/*
 * The server's side of one connection: its session from HELLO to the end, and the requests it has open.
 * Owned by the server's table, which link_server.c keeps; the loop's thread. For proto/link/ only.
 *
 * Limits: LIMIT_PEERS connections; LINK_REQUESTS_MAX unanswered requests of one; LINK_SHY_NS for a
 * connection without a session, LINK_SILENT_NS for one that says nothing more.
 */
#include "common/clock.h"
#include "proto/link/link.h"
#include "proto/link/mailbox.h"
#include "proto/link/nng_faults/shut_first.h"
#include "proto/link/session.h"

#include <nng/nng.h>

#include <stdatomic.h>

#define LINK_REQUESTS_MAX 16u               /* a client has at most 8 calls open */
#define LINK_SHY_NS       (10 * NS_PER_S)   /* a TLS handshake over a bad line takes two or three */
#define LINK_LINGER_NS    (500 * NS_PER_MS) /* for a refusal to arrive before the connection goes */
#define LINK_SILENT_NS    (300 * NS_PER_S)  /* an agent polls every few seconds: this one is gone */
#define LINK_WAITING_MAX  256u              /* messages before the server stops reading until it caught up */
#define LINK_PEER_BUCKETS 1024u

struct link_bound { /* one address listened on */
    char *address;  /* as given, port 0 replaced by the real one */
    nng_listener listener;
    int lock_fd; /* ipc: held as long as the socket file is ours; else -1 */
    bool ipc;
};

struct link_server {
    struct link_server_handlers handlers;
    const struct identity *identity; /* borrowed */
    nng_socket socket;
    nng_aio *recv;
    struct mailbox box;
    uv_timer_t tick;       /* deadlines: runs while there are peers */
    uv_timer_t guard_tick; /* runs while there is a port */
    struct link_guard guard;
    struct shut_first_server shut;
    struct link_bound *bound;
    size_t bound_count;
    struct link_peer *buckets[LINK_PEER_BUCKETS];
    size_t peer_count;
    atomic_uint pipe_count; /* counted on nng's threads: the cap holds before the loop knows */
    atomic_bool paused;     /* no receive is posted to nng: too much waits */
    atomic_bool stopping;
    bool abandoned;
    void (*on_closed)(void *arg);
    void *on_closed_arg;
};

struct link_peer {
    struct link_server *server;
    struct link_peer *next; /* in its bucket */
    nng_pipe pipe;
    bool ipc;
    bool trusted;     /* ipc: our own user or root; TLS: the certificate of the handshake is the lab's */
    bool announced;   /* on_hello has taken it: on_gone will follow */
    char address[64]; /* "10.1.0.2", "" over ipc */
    struct in6_addr remote;
    uint16_t remote_port;
    struct session session;
    uint64_t deadline_ns; /* when it is dropped or, if ended, closed; 0 = never */
    bool shut_wanted;     /* of shut_first */
    struct msg hello;
    struct identity_facts facts;
    uint8_t nonce[MSG_NONCE_BYTES];
    char why[256]; /* first reason it was dropped for */
    void *data;
    struct link_request *requests;
    size_t request_count;
};

struct link_request {
    struct link_peer *peer; /* NULL when it has gone */
    struct link_request *prev;
    struct link_request *next;
    uint32_t number; /* nng's, to be given back */
    enum msg_kind kind;
    uint64_t serial;
};

/* One message from this peer; `number` is nng's request number. */
void link_peer_hear(struct link_peer *peer, uint32_t number, const void *data, size_t len);

/* Called by the tick. */
void link_peer_check_deadline(struct link_peer *peer, uint64_t now_ns);

/* The connection is gone: requests are orphaned, on_gone is told, memory freed. */
void link_peer_free(struct link_peer *peer, const char *why);

#endif
