#ifndef PROTO_LINK_NNG_FAULTS_SHUT_FIRST_H
#define PROTO_LINK_NNG_FAULTS_SHUT_FIRST_H
/*
 * Bends around NNG_FAULT_CLOSE_HANGS: a connection is shut down at its socket, so that nng notices its end by
 * itself, and only a pipe that is left over after that is closed; a close that hangs all the same is
 * abandoned. Without the fault nothing is shut down and no close has a limit. The structs are the
 * callers' and live as long as the nng socket they are for. The loop's thread, unless said otherwise.
 *
 * Over ipc a server cannot tell its sockets apart. There the peer is of our own user, and the pipe is closed.
 */
#include "proto/link/nng_faults/faults.h"
#include "proto/link/nng_faults/link_guard.h"
#include "proto/link/nng_faults/side_thread.h"

#include <stdatomic.h>

struct shut_first_server {
    uv_loop_t *loop;
    const struct link_guard *guard; /* borrowed; knows the ports that are listened on */
    /* Whether the peer behind this socket, of a port that the guard watches, is to be shut down. */
    bool (*is_wanted)(void *arg, const struct own_socket *socket);
    void *arg;
    struct shut_timer *timer; /* NULL until something is dropped */
};

struct shut_first_client {
    const char *path; /* borrowed; of an ipc address */
    nng_sockaddr local;
    nng_sockaddr remote; /* tells its socket from the others; family UNSPEC until there is one */
    atomic_bool gone;
};

/* Whether the peer's connection is being shut down: its pipe is not to be closed, yet. The first call sets
 * `*wanted`, which is_wanted asks for, and `*deadline_ns`, which the caller zeroes when it has passed: then
 * this is false. Both belong to the peer. */
bool shut_first_peer(struct shut_first_server *s, bool *wanted, uint64_t *deadline_ns);
/* Nothing is shut down from now on. */
void shut_first_stop(struct shut_first_server *s);
/* Before the server's socket is closed. Blocks for a moment; on the thread that closes. */
void shut_first_all(struct shut_first_server *s);

/* Before dialling: lets nng tell which socket is this client's. */
void shut_first_watch(struct shut_first_client *c, nng_socket socket, const char *path);
/* On nng's thread: the connection has ended. */
void shut_first_note_end(struct shut_first_client *c);
/* Before the client's socket is closed. Blocks until nng has noticed, for a moment; on the thread that
 * closes. */
void shut_first_end(const struct shut_first_client *c);

/* What nng needs for a close, and then it has hung. */
void shut_first_limit(struct side_thread *closing);

#endif
