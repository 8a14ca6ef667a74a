#ifndef PROTO_LINK_NNG_FAULTS_SHUT_FIRST_H
#define PROTO_LINK_NNG_FAULTS_SHUT_FIRST_H
/*
 * Bends around NNG_FAULT_CLOSE_HANGS: a connection is shut down at its socket, so that nng notices its end by
 * itself, and only a pipe that is left over after that is closed; a close that hangs all the same is
 * abandoned. Without the fault these functions do nothing. The loop's thread, unless said otherwise. For
 * proto/link/link_*.c and proto/link/attempt.c only.
 *
 * Over ipc a server cannot tell its sockets apart. There the peer is of our own user, and the pipe is closed.
 */
#include "proto/link/nng_faults/faults.h"
#include "proto/link/nng_faults/own_sockets.h"

struct side_thread;
struct attempt;
struct link_peer;
struct link_server;

#if NNG_FAULT_CLOSE_HANGS

#include <stdatomic.h>

struct shut_timer;

struct shut_first_target { /* a client's connection */
    nng_sockaddr local;
    nng_sockaddr remote; /* tells its socket from the others; family UNSPEC until there is one */
    atomic_bool gone;
};

/* Whether the connection is being shut down: its pipe is not to be closed, yet. */
bool shut_first_peer(struct link_peer *peer);
/* Nothing is shut down from now on. */
void shut_first_stop(struct link_server *s);
/* Before the server's socket is closed. Blocks for a moment; on the thread that closes. */
void shut_first_all(struct link_server *s);

/* Lets nng tell which socket is this attempt's. */
void shut_first_watch(struct attempt *a);
/* On nng's thread: the connection has ended. */
void shut_first_note_end(struct attempt *a);
/* Before the attempt's socket is closed. Blocks until nng has noticed, for a moment; on the thread that
 * closes. */
void shut_first_attempt(struct attempt *a);

/* What nng needs for a close, and then it has hung. */
void shut_first_limit(struct side_thread *closing);

#else

static inline bool shut_first_peer(struct link_peer *peer)
{
    (void)peer;
    return false;
}

static inline void shut_first_stop(struct link_server *s)
{
    (void)s;
}

static inline void shut_first_all(struct link_server *s)
{
    (void)s;
}

static inline void shut_first_watch(struct attempt *a)
{
    (void)a;
}

static inline void shut_first_note_end(struct attempt *a)
{
    (void)a;
}

static inline void shut_first_attempt(struct attempt *a)
{
    (void)a;
}

static inline void shut_first_limit(struct side_thread *closing)
{
    (void)closing;
}

#endif
#endif
