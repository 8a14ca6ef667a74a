#include "proto/link/nng_faults/shut_first.h"

#if NNG_FAULT_CLOSE_HANGS

#include "common/mem.h"
#include "proto/link/attempt.h"
#include "proto/link/link_nng.h"
#include "proto/link/link_peer.h"

#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define GATHER_MS 20u            /* what is dropped at the same time: each look costs all descriptors */
#define SHUT_NS   (2 * NS_PER_S) /* from the shutdown of a connection to the end of its pipe */
#define GONE_MS   200u           /* for a connection that was shut down to be noticed */
#define ALL_MS    50u            /* the same for all of a server's */
#define CLOSE_MS  5000u

/* ---- the server's side --------------------------------------------------------------------------------- */

struct shut_timer {
    uv_timer_t timer;
    struct link_server *server;
};

static void shut_dropped(void *arg, const struct own_socket *socket)
{
    const struct link_server *s = arg;
    if (!guard_watches(&s->guard, socket))
        return;
    const struct link_peer *p = link_server_find_peer(s, socket);
    if (p != NULL && p->shut_wanted)
        (void)shutdown(socket->fd, SHUT_RDWR); /* or it is gone already */
}

static void on_shut(uv_timer_t *timer)
{
    const struct shut_timer *t = timer->data;
    own_sockets_visit(shut_dropped, t->server);
}

static void on_stopped(uv_handle_t *handle)
{
    free(handle->data);
}

static struct shut_timer *new_timer(struct link_server *s)
{
    struct shut_timer *t = mem_zalloc(1, sizeof *t);
    t->server = s;
    must(uv_timer_init(s->tick.loop, &t->timer) == 0);
    t->timer.data = t;
    return t;
}

bool shut_first_peer(struct link_peer *peer)
{
    struct link_server *s = peer->server;
    if (peer->ipc || (peer->shut_wanted && peer->deadline_ns == 0))
        return false;
    if (peer->shut_wanted)
        return true;
    peer->shut_wanted = true;
    peer->deadline_ns = clock_now_ns() + SHUT_NS;
    if (s->shut == NULL)
        s->shut = new_timer(s);
    if (!uv_is_active((uv_handle_t *)&s->shut->timer))
        uv_timer_start(&s->shut->timer, on_shut, GATHER_MS, 0);
    return true;
}

void shut_first_stop(struct link_server *s)
{
    if (s->shut != NULL)
        uv_close((uv_handle_t *)&s->shut->timer, on_stopped);
    s->shut = NULL;
}

static void shut_any(void *arg, const struct own_socket *socket)
{
    const struct link_server *s = arg;
    if (guard_watches(&s->guard, socket))
        (void)shutdown(socket->fd, SHUT_RDWR);
}

void shut_first_all(struct link_server *s)
{
    if (s->guard.port_count == 0)
        return;
    own_sockets_visit(shut_any, s);
    uv_sleep(ALL_MS);
}

/* ---- the client's side --------------------------------------------------------------------------------- */

static void on_pipe_arriving(nng_pipe pipe, nng_pipe_ev ev, void *arg)
{
    (void)ev;
    struct shut_first_target *t = arg;
    if (nng_pipe_get_addr(pipe, NNG_OPT_LOCADDR, &t->local) != 0 ||
        nng_pipe_get_addr(pipe, NNG_OPT_REMADDR, &t->remote) != 0)
        t->remote.s_family = NNG_AF_UNSPEC;
}

void shut_first_watch(struct attempt *a)
{
    must(nng_pipe_notify(a->socket, NNG_PIPE_EV_ADD_PRE, on_pipe_arriving, &a->target) == 0);
}

void shut_first_note_end(struct attempt *a)
{
    atomic_store(&a->target.gone, true);
}

static uint16_t port_of(const nng_sockaddr *sa)
{
    return ntohs(sa->s_family == NNG_AF_INET ? sa->s_in.sa_port : sa->s_in6.sa_port);
}

struct search {
    const struct shut_first_target *target;
    const char *path; /* of ipc */
    int found;
    bool shut; /* what is found */
};

static void visit(void *arg, const struct own_socket *s)
{
    struct search *search = arg;
    const struct shut_first_target *t = search->target;
    bool same = t->remote.s_family == NNG_AF_IPC
                    ? s->ipc && strcmp(s->remote_path, search->path) == 0
                    : !s->ipc && s->local_port == port_of(&t->local) && s->remote_port == port_of(&t->remote);
    if (!same)
        return;
    search->found++;
    if (search->shut)
        (void)shutdown(s->fd, SHUT_RDWR);
}

/* Where the socket cannot be told from another, it is left alone: an answer that arrives in the very
 * microsecond is all there is to fear. */
void shut_first_attempt(struct attempt *a)
{
    const struct shut_first_target *t = &a->target;
    struct search search = {.target = t, .path = a->address + strlen(LINK_IPC)};
    if (t->remote.s_family == NNG_AF_UNSPEC || atomic_load(&t->gone))
        return;
    own_sockets_visit(visit, &search);
    if (search.found != 1)
        return;
    search.shut = true;
    own_sockets_visit(visit, &search);
    for (unsigned i = 0; i < GONE_MS && !atomic_load(&t->gone); i++)
        uv_sleep(1);
}

/* ---- both ---------------------------------------------------------------------------------------------- */

void shut_first_limit(struct side_thread *closing)
{
    side_thread_limit(closing, CLOSE_MS);
}

#endif
