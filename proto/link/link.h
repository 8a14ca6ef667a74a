#ifndef PROTO_LINK_LINK_H
#define PROTO_LINK_LINK_H
/*
 * Connections: the only user of nng. A server (the controller) listens on tls+tcp:// and ipc:// addresses and
 * answers; a client (an agent or an operator) dials, proves who it is and asks. All callbacks run on the uv
 * loop given at creation; nng's own threads only post to it. Everything is owned by the loop's thread.
 *
 * The session (HELLO, CHALLENGE, PROOF, WELCOME), the permit table (who may say what in which state,
 * proto/link/session.h), serials, frame caps and decoding are done below this interface: a handler sees only
 * messages that are well formed, permitted and from the peer they claim.
 */
#include "proto/identity/identity.h"
#include "proto/msg/msg.h"

#include <uv.h>

/* ---- server -------------------------------------------------------------------------------------------- */

struct link_server;
struct link_peer;    /* one authenticated session; valid until on_gone returns */
struct link_request; /* one unanswered message; answering consumes it */

struct link_server_handlers {
    void *arg;
    /* A peer has proved its certificate (or came over ipc): accept it by filling `welcome` (session is set by
     * the link) or refuse with a code and text. */
    enum err (*on_hello)(void *arg, struct link_peer *peer, const struct msg_hello *hello,
                         struct msg_welcome *welcome, struct err_detail *d);
    /* A permitted request. Answer it exactly once with link_answer or link_refuse, now or later. `m` is
     * borrowed. */
    void (*on_request)(void *arg, struct link_peer *peer, const struct msg *m, struct link_request *request);
    /* A stranger asks for a certificate. Answer like a request; to refuse it ends the connection. */
    void (*on_enroll)(void *arg, const struct msg_enroll *m, struct link_request *request);
    void (*on_gone)(void *arg, struct link_peer *peer, const char *why);
    /* Something was refused below: for the log only. */
    void (*on_refused)(void *arg, const char *from, const char *why);
};

struct link_server_options {
    uv_loop_t *loop;
    const char *const *addresses; /* "tls+tcp://[::]:7411", "ipc:///run/..."; port 0 is read back */
    size_t address_count;
    const struct identity
        *identity; /* NULL when there is no tls+tcp address; borrowed for the server's life */
    struct link_server_handlers handlers;
};

NODISCARD enum err link_server_new(const struct link_server_options *options, struct link_server **out,
                                   struct err_detail *d);
/* Closes listeners and peers; `cb` runs when no callback will come any more; then the server is freed. */
void link_server_close(struct link_server **server, void (*cb)(void *arg), void *arg);

/* The address really bound (port 0 resolved), for address `i`. */
const char *link_server_address(const struct link_server *server, size_t i);

/* `m` is borrowed for the call. A vanished peer makes these no-ops. */
void link_answer(struct link_request **request, const struct msg *m);
void link_refuse(struct link_request **request, enum err code, const char *fmt, ...) PRINTF_LIKE(3, 4);

/* Where it came from, as far as addresses are one party's: one of IPv4, 64 bits of IPv6; 0: over ipc, or
 * gone. */
uint64_t link_request_network(const struct link_request *request);

const char *link_peer_name(const struct link_peer *peer);
enum msg_role link_peer_role(const struct link_peer *peer);
const char *link_peer_serial(const struct link_peer *peer);  /* certificate serial, "" over ipc */
const char *link_peer_address(const struct link_peer *peer); /* "10.1.0.2", "" over ipc */
void link_peer_set_data(struct link_peer *peer, void *data);
void *link_peer_data(const struct link_peer *peer);
/* Ends the connection; on_gone follows. */
void link_peer_drop(struct link_peer *peer, const char *why);
/* The same, once what was answered has had time to arrive; nothing more is heard of it. */
void link_peer_dismiss(struct link_peer *peer, const char *why);

/* ---- client -------------------------------------------------------------------------------------------- */

struct link_client;

typedef void link_reply_cb(void *arg, enum err e, const struct msg *reply, const struct err_detail *d);

struct link_client_handlers {
    void *arg;
    /* The session stands; calls may be made. */
    void (*on_up)(void *arg, const struct msg_welcome *welcome);
    /* The session is gone or could not be made; every open call has been answered with ERR_CLOSED before. The
     * link dials again by itself with jittered back-off unless `final` (refused: wrong version, revoked,
     * ...). */
    void (*on_down)(void *arg, enum err e, const char *why, bool final);
};

struct link_client_options {
    uv_loop_t *loop;
    const char *address;             /* one of the controller's addresses */
    const struct identity *identity; /* NULL over ipc; borrowed for the client's life */
    uint64_t connect_timeout_ns;     /* for one attempt, handshake and proof included */
    struct link_client_handlers handlers;
};

/* `hello` is copied; its certificate is filled from the identity. Dialling starts at once. */
NODISCARD enum err link_client_new(const struct link_client_options *options, const struct msg_hello *hello,
                                   struct link_client **out, struct err_detail *d);
/* Open calls are answered with ERR_CLOSED on the loop's next turn, on_down is not called any more; `cb` (may
 * be NULL) comes last. */
void link_client_close(struct link_client **client, void (*cb)(void *arg), void *arg);

/* Says from now on that this run of this job is held here (it goes into the next HELLO). */
void link_client_set_held_job(struct link_client *client, const char *job, uint64_t run);

/* Sends `m` (borrowed; session and serial are filled in) and calls `cb` exactly once: with the answer, with
 * the code and text of a REFUSED, with ERR_TIMEOUT, or with ERR_CLOSED. `reply` and `d` are borrowed. Where
 * this itself fails, `cb` is not called: ERR_CLOSED without a session, ERR_BUSY with 8 calls open,
 * ERR_INVALID or ERR_TOO_BIG when `m` cannot be encoded. */
NODISCARD enum err link_client_call(struct link_client *client, const struct msg *m, uint64_t timeout_ns,
                                    link_reply_cb *cb, void *arg);

/* Drops the connection and dials again: the caller has noticed a silence. Open calls and on_down are told on
 * the loop's next turn. */
void link_client_redial(struct link_client *client, const char *why);

/* For the test of every pair, see common/machine.h. */
bool link_client_permits(unsigned state, unsigned event);

/* ---- enrollment ---------------------------------------------------------------------------------------- */

/* Blocking, on a private loop: fetches the CA, checks its fingerprint against the token, connects again with
 * the controller verified, sends the request, stores the identity in `dir`. */
struct link_enroll_options {
    const char *address;
    const char *token;
    const char *name;
    enum msg_role role;
    const char *dir;
    uint64_t timeout_ns;
};
NODISCARD enum err link_enroll(const struct link_enroll_options *options, struct err_detail *d);

#endif
