#include "proto/link/nng_faults/shut_first.h"

#include "common/mem.h"

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

/* Memory of its own: nobody waits for the end of its closing, which may come after the server's. */
struct shut_timer {
    uv_timer_t timer;
    struct shut_first_server *server;
};

static void shut_wanted(void *arg, const struct own_socket *socket)
{
    const struct shut_first_server *s = arg;
    if (guard_watches(s->guard, socket) && s->is_wanted(s->arg, socket))
        (void)shutdown(socket->fd, SHUT_RDWR); /* or it is gone already */
}

static void on_gathered(uv_timer_t *timer)
{
    const struct shut_timer *t = timer->data;
    own_sockets_visit(shut_wanted, t->server);
}

static void on_stopped(uv_handle_t *handle)
{
    free(handle->data);
}

static struct shut_timer *new_timer(struct shut_first_server *s)
{
    struct shut_timer *t = mem_zalloc(1, sizeof *t);
    t->server = s;
    must(uv_timer_init(s->loop, &t->timer) == 0);
    t->timer.data = t;
    return t;
}

bool shut_first_peer(struct shut_first_server *s, bool *wanted, uint64_t *deadline_ns)
{
    if (!NNG_FAULT_CLOSE_HANGS)
        return false;
    if (*wanted)
        return *deadline_ns != 0;
    *wanted = true;
    *deadline_ns = clock_now_ns() + SHUT_NS;
    if (s->timer == NULL)
        s->timer = new_timer(s);
    if (!uv_is_active((uv_handle_t *)&s->timer->timer))
        uv_timer_start(&s->timer->timer, on_gathered, GATHER_MS, 0);
    return true;
}

void shut_first_stop(struct shut_first_server *s)
{
    if (s->timer != NULL)
        uv_close((uv_handle_t *)&s->timer->timer, on_stopped);
    s->timer = NULL;
}

static void shut_any(void *arg, const struct own_socket *socket)
{
    const struct shut_first_server *s = arg;
    if (guard_watches(s->guard, socket))
        (void)shutdown(socket->fd, SHUT_RDWR);
}

void shut_first_all(struct shut_first_server *s)
{
    if (!NNG_FAULT_CLOSE_HANGS || s->guard->port_count == 0)
        return;
    own_sockets_visit(shut_any, s);
    uv_sleep(ALL_MS);
}

/* ---- the client's side --------------------------------------------------------------------------------- */

static void on_pipe_arriving(nng_pipe pipe, nng_pipe_ev ev, void *arg)
{
    (void)ev;
    struct shut_first_client *c = arg;
    if (nng_pipe_get_addr(pipe, NNG_OPT_LOCADDR, &c->local) != 0 ||
        nng_pipe_get_addr(pipe, NNG_OPT_REMADDR, &c->remote) != 0)
        c->remote.s_family = NNG_AF_UNSPEC;
}

void shut_first_watch(struct shut_first_client *c, nng_socket socket, const char *path)
{
    if (!NNG_FAULT_CLOSE_HANGS)
        return; /* shut_first_end finds no address, and does nothing */
    c->path = path;
    must(nng_pipe_notify(socket, NNG_PIPE_EV_ADD_PRE, on_pipe_arriving, c) == 0);
}

void shut_first_note_end(struct shut_first_client *c)
{
    atomic_store(&c->gone, true);
}

static uint16_t port_of(const nng_sockaddr *sa)
{
    return ntohs(sa->s_family == NNG_AF_INET ? sa->s_in.sa_port : sa->s_in6.sa_port);
}

struct search {
    const struct shut_first_client *client;
    int found;
    bool shut; /* what is found */
};

static void visit(void *arg, const struct own_socket *s)
{
    struct search *search = arg;
    const struct shut_first_client *c = search->client;
    bool same = c->remote.s_family == NNG_AF_IPC
                    ? s->ipc && strcmp(s->remote_path, c->path) == 0
                    : !s->ipc && s->local_port == port_of(&c->local) && s->remote_port == port_of(&c->remote);
    if (!same)
        return;
    search->found++;
    if (search->shut)
        (void)shutdown(s->fd, SHUT_RDWR);
}

/* Where the socket cannot be told from another, it is left alone: an answer that arrives in the very
 * microsecond is all there is to fear. */
void shut_first_end(const struct shut_first_client *c)
{
    struct search search = {.client = c};
    if (c->remote.s_family == NNG_AF_UNSPEC || atomic_load(&c->gone))
        return;
    own_sockets_visit(visit, &search);
    if (search.found != 1)
        return;
    search.shut = true;
    own_sockets_visit(visit, &search);
    for (unsigned i = 0; i < GONE_MS && !atomic_load(&c->gone); i++)
        uv_sleep(1);
}

/* ---- both ---------------------------------------------------------------------------------------------- */

void shut_first_limit(struct side_thread *closing)
{
    if (NNG_FAULT_CLOSE_HANGS)
        side_thread_limit(closing, CLOSE_MS);
}
