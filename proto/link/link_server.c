#include "proto/link/link.h"

#include "common/file.h"
#include "common/mem.h"
#include "proto/link/link_nng.h"
#include "proto/link/link_peer.h"

#include <nng/protocol/reqrep0/rep.h>

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define TICK_MS          500u
#define GUARD_TICK_MS    2000u
#define LINK_DESCRIPTORS 16384u /* LIMIT_PEERS, as many strangers, and the rest of the program */

/* What nng's threads tell the loop. */
struct note {
    struct mailbox_node node;
    enum { NOTE_ARRIVED, NOTE_MESSAGE, NOTE_GONE } kind;
    nng_pipe pipe;
    nng_msg *msg;
    bool ipc;
    bool trusted;
    char address[64];
    struct in6_addr remote;
    uint16_t remote_port;
};

/* ---- on nng's threads ---------------------------------------------------------------------------------- */

static void post(struct link_server *s, struct note *n)
{
    mailbox_post(&s->box, &n->node);
}

static void describe_ipc(nng_pipe pipe, struct note *n)
{
    uint64_t uid;
    n->ipc = true;
    n->trusted = nng_pipe_get_uint64(pipe, NNG_OPT_IPC_PEER_UID, &uid) == 0 && (uid == geteuid() || uid == 0);
}

static void describe_tls(nng_pipe pipe, const nng_sockaddr *remote, struct note *n)
{
    bool verified = false;
    n->trusted = nng_pipe_get_bool(pipe, NNG_OPT_TLS_VERIFIED, &verified) == 0 && verified;
    uint8_t *bytes = n->remote.s6_addr;
    if (remote->s_family == NNG_AF_INET6) {
        memcpy(bytes, remote->s_in6.sa_addr, sizeof n->remote);
        n->remote_port = ntohs(remote->s_in6.sa_port);
    } else {
        bytes[10] = bytes[11] = 0xff;
        memcpy(bytes + 12, &remote->s_in.sa_addr, 4);
        n->remote_port = ntohs(remote->s_in.sa_port);
    }
    if (IN6_IS_ADDR_V4MAPPED(&n->remote))
        inet_ntop(AF_INET, bytes + 12, n->address, sizeof n->address);
    else
        inet_ntop(AF_INET6, bytes, n->address, sizeof n->address);
}

static void on_pipe_arriving(nng_pipe pipe, nng_pipe_ev ev, void *arg)
{
    (void)ev;
    struct link_server *s = arg;
    nng_sockaddr remote;
    struct note *n = mem_zalloc(1, sizeof *n);
    n->kind = NOTE_ARRIVED;
    n->pipe = pipe;
    if (nng_pipe_get_addr(pipe, NNG_OPT_REMADDR, &remote) == 0 &&
        (remote.s_family == NNG_AF_INET || remote.s_family == NNG_AF_INET6))
        describe_tls(pipe, &remote, n);
    else
        describe_ipc(pipe, n);
    bool full = atomic_fetch_add(&s->pipe_count, 1) >= LIMIT_PEERS;
    post(s, n);
    if (full)
        nng_pipe_close(pipe);
}

static void on_pipe_gone(nng_pipe pipe, nng_pipe_ev ev, void *arg)
{
    (void)ev;
    struct link_server *s = arg;
    struct note *n = mem_zalloc(1, sizeof *n);
    n->kind = NOTE_GONE;
    n->pipe = pipe;
    atomic_fetch_sub(&s->pipe_count, 1);
    post(s, n);
}

static void on_message(void *arg)
{
    struct link_server *s = arg;
    if (nng_aio_result(s->recv) != 0)
        return; /* closing */
    struct note *n = mem_zalloc(1, sizeof *n);
    n->kind = NOTE_MESSAGE;
    n->msg = nng_aio_get_msg(s->recv);
    n->pipe = nng_msg_get_pipe(n->msg);
    /* With too many waiting, the loop goes on with receiving once it has caught up; nng and TCP hold the
     * peers back meanwhile. It may have caught up just now: then it is us again. */
    if (mailbox_post(&s->box, &n->node) >= LINK_WAITING_MAX) {
        atomic_store(&s->paused, true);
        if (mailbox_count(&s->box) != 0 || !atomic_exchange(&s->paused, false))
            return;
    }
    nng_recv_aio(s->socket, s->recv);
}

/* ---- on the loop --------------------------------------------------------------------------------------- */

static struct link_peer **slot_of(struct link_server *s, nng_pipe pipe)
{
    struct link_peer **slot = &s->buckets[(uint32_t)nng_pipe_id(pipe) % LINK_PEER_BUCKETS];
    while (*slot != NULL && nng_pipe_id((*slot)->pipe) != nng_pipe_id(pipe))
        slot = &(*slot)->next;
    return slot;
}

static void on_tick(uv_timer_t *timer)
{
    struct link_server *s = timer->data;
    uint64_t now = clock_now_ns();
    bool waiting = false;
    for (size_t i = 0; i < LINK_PEER_BUCKETS; i++)
        for (struct link_peer *p = s->buckets[i], *next; p != NULL; p = next) {
            next = p->next; /* no peer is freed here: the end of a pipe that is closed comes as a NOTE_GONE */
            link_peer_check_deadline(p, now);
            waiting = waiting || p->deadline_ns != 0;
        }
    if (!waiting)
        uv_timer_stop(timer);
}

/* Whose socket this is, or NULL; not over ipc. */
static struct link_peer *find_peer(const struct link_server *s, const struct own_socket *socket)
{
    for (size_t i = 0; i < LINK_PEER_BUCKETS; i++)
        for (struct link_peer *p = s->buckets[i]; p != NULL; p = p->next)
            if (p->remote_port == socket->remote_port &&
                memcmp(&p->remote, &socket->remote, sizeof p->remote) == 0)
                return p;
    return NULL;
}

static bool is_known(void *arg, const struct own_socket *socket)
{
    return find_peer(arg, socket) != NULL;
}

static bool is_shut_wanted(void *arg, const struct own_socket *socket)
{
    const struct link_peer *p = find_peer(arg, socket);
    return p != NULL && p->shut_wanted;
}

static void on_guard_tick(uv_timer_t *timer)
{
    struct link_server *s = timer->data;
    size_t ended = guard_check(&s->guard, clock_now_ns());
    if (ended == 0 || s->handlers.on_refused == NULL)
        return;
    char why[96];
    snprintf(why, sizeof why, "%zu connections that never finished the TLS handshake", ended);
    s->handlers.on_refused(s->handlers.arg, "strangers", why);
}

static void handle_arrived(struct link_server *s, const struct note *n)
{
    struct link_peer **slot = slot_of(s, n->pipe);
    must(*slot == NULL);
    struct link_peer *p = mem_zalloc(1, sizeof *p);
    p->server = s;
    p->pipe = n->pipe;
    p->ipc = n->ipc;
    p->trusted = n->trusted;
    memcpy(p->address, n->address, sizeof p->address);
    p->remote = n->remote;
    p->remote_port = n->remote_port;
    session_init(&p->session, MSG_ROLE_NONE);
    p->deadline_ns = clock_now_ns() + LINK_SHY_NS;
    *slot = p;
    s->peer_count++;
    if (!uv_is_active((uv_handle_t *)&s->tick))
        uv_timer_start(&s->tick, on_tick, TICK_MS, TICK_MS);
}

static void handle_message(struct link_server *s, const struct note *n)
{
    struct link_peer *p = *slot_of(s, n->pipe);
    if (p != NULL && nng_msg_header_len(n->msg) == 2 * sizeof(uint32_t)) { /* pipe, request number */
        const uint8_t *h = (const uint8_t *)nng_msg_header(n->msg) + 4;
        uint32_t number = (uint32_t)h[0] << 24 | (uint32_t)h[1] << 16 | (uint32_t)h[2] << 8 | h[3];
        link_peer_hear(p, number, nng_msg_body(n->msg), nng_msg_len(n->msg));
    } else if (p != NULL) {
        link_peer_drop(p, "a message that was forwarded");
    }
    nng_msg_free(n->msg);
}

static void handle_gone(struct link_server *s, nng_pipe pipe)
{
    struct link_peer **slot = slot_of(s, pipe);
    struct link_peer *p = *slot;
    if (p == NULL)
        return;
    *slot = p->next;
    s->peer_count--;
    link_peer_free(p, "the connection ended");
}

static void on_note(void *arg, struct mailbox_node *node)
{
    struct link_server *s = arg;
    struct note *n = CONTAINER_OF(node, struct note, node);
    bool stopping = atomic_load(&s->stopping);
    if (n->kind == NOTE_ARRIVED && !stopping)
        handle_arrived(s, n);
    else if (n->kind == NOTE_MESSAGE)
        handle_message(s, n);
    else if (n->kind == NOTE_GONE)
        handle_gone(s, n->pipe);
    free(n);
    if (stopping)
        return;
    if (atomic_load(&s->paused) && mailbox_count(&s->box) == 0 && atomic_exchange(&s->paused, false))
        nng_recv_aio(s->socket, s->recv);
}

/* ---- listening ----------------------------------------------------------------------------------------- */

/* Half-open connections cost a descriptor each until they are closed. */
static void raise_descriptor_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= LINK_DESCRIPTORS)
        return;
    limit.rlim_cur = limit.rlim_max < LINK_DESCRIPTORS ? limit.rlim_max : LINK_DESCRIPTORS;
    /* Where it fails, fewer connections fit: no reason not to serve. */
    (void)setrlimit(RLIMIT_NOFILE, &limit);
}

/* Where a socket file is in the way and nobody accepts there, nng removes it, even when its owner is a
 * controller that is just starting. So whoever listens first holds a lock beside the file. */
static enum err lock_path(struct link_bound *b, const char *path, struct err_detail *d)
{
    char name[256];
    snprintf(name, sizeof name, "%s.lock", path);
    enum err e = file_lock(name, &b->lock_fd, d);
    return e == ERR_BUSY ? err_set(d, e, "%s is in use: another controller runs there", path) : e;
}

static enum err listen_failed(const char *address, int rv, struct err_detail *d)
{
    if (rv == NNG_EADDRINUSE)
        return err_set(d, ERR_BUSY, "%s is in use: another program listens there", address);
    return err_set(d, link_err(rv), "cannot listen on %s: %s", address, nng_strerror(rv));
}

static enum err listen_on(struct link_server *s, struct link_bound *b, const char *address,
                          struct err_detail *d)
{
    nng_tls_config *tls = NULL;
    enum err e = link_check_address(address, d);
    if (e != ERR_OK)
        return e;
    b->ipc = link_is_ipc(address);
    if (b->ipc)
        e = lock_path(b, address + strlen(LINK_IPC), d);
    else if (s->identity == NULL)
        e = err_set(d, ERR_INVALID, "%s needs a certificate: run 'splitbench controller init'", address);
    else
        e = link_tls_server(s->identity, &tls, d);
    if (e != ERR_OK)
        return e;
    int port = 0, rv = nng_listener_create(&b->listener, s->socket, address);
    if (rv == 0)
        rv = b->ipc ? nng_listener_set_int(b->listener, NNG_OPT_IPC_PERMISSIONS, 0600)
                    : nng_listener_set_ptr(b->listener, NNG_OPT_TLS_CONFIG, tls);
    if (rv == 0)
        rv = nng_listener_start(b->listener, 0);
    if (rv == 0 && !b->ipc)
        rv = nng_listener_get_int(b->listener, NNG_OPT_TCP_BOUND_PORT, &port);
    if (tls != NULL)
        nng_tls_config_free(tls);
    if (rv != 0)
        return listen_failed(address, rv, d);
    if (!b->ipc)
        guard_add_port(&s->guard, (uint16_t)port);
    const char *colon = strrchr(address, ':');
    b->address = b->ipc ? mem_strdup(address) : mem_printf("%.*s:%d", (int)(colon - address), address, port);
    return ERR_OK;
}

static void free_server(struct link_server *s)
{
    for (size_t i = 0; i < s->bound_count; i++)
        free(s->bound[i].address);
    free(s->bound);
    guard_fini(&s->guard);
    nng_aio_free(s->recv);
    free(s);
}

/* With room in the queue, the thread that received a message puts it there, and nng waits for that thread
 * before it frees the pipe. Without room the pipe waits, and the thread that takes the next message ends that
 * waiting, while the pipe may be closed and freed by a third: that is the fault. So the queue has a place for
 * each connection there can be, and only peers that send faster than they are heard can fill it. */
static int queue_messages(nng_socket socket)
{
    return NNG_FAULT_ABORT_IS_EARLY ? nng_socket_set_int(socket, NNG_OPT_RECVBUF, LIMIT_PEERS) : 0;
}

static enum err open_socket(struct link_server *s, struct err_detail *d)
{
    int rv = nng_rep0_open_raw(&s->socket);
    if (rv != 0)
        return err_set(d, link_err(rv), "cannot open a socket: %s", nng_strerror(rv));
    rv = nng_socket_set_size(s->socket, NNG_OPT_RECVMAXSZ, LINK_RECV_BYTES_MAX);
    if (rv == 0)
        rv = nng_socket_set_int(s->socket, NNG_OPT_MAXTTL, 1); /* nothing is forwarded */
    if (rv == 0)
        rv = queue_messages(s->socket);
    if (rv == 0)
        rv = nng_socket_set_ms(s->socket, NNG_OPT_SENDTIMEO, 1000);
    if (rv == 0)
        rv = nng_pipe_notify(s->socket, NNG_PIPE_EV_ADD_PRE, on_pipe_arriving, s);
    if (rv == 0)
        rv = nng_pipe_notify(s->socket, NNG_PIPE_EV_REM_POST, on_pipe_gone, s);
    if (rv == 0)
        rv = nng_aio_alloc(&s->recv, on_message, s);
    must(rv == 0);
    return ERR_OK;
}

enum err link_server_new(const struct link_server_options *options, struct link_server **out,
                         struct err_detail *d)
{
    struct link_server *s = mem_zalloc(1, sizeof *s);
    s->handlers = options->handlers;
    s->identity = options->identity;
    s->bound_count = options->address_count;
    s->bound = mem_zalloc(s->bound_count, sizeof *s->bound);
    for (size_t i = 0; i < s->bound_count; i++)
        s->bound[i].lock_fd = -1;
    enum err e = open_socket(s, d);
    if (e != ERR_OK) {
        free_server(s);
        return e;
    }
    raise_descriptor_limit();
    mailbox_init(&s->box, options->loop, on_note, s);
    must(uv_timer_init(options->loop, &s->tick) == 0);
    must(uv_timer_init(options->loop, &s->guard_tick) == 0);
    s->tick.data = s->guard_tick.data = s;
    s->guard.is_known = is_known;
    s->guard.arg = s;
    s->shut = (struct shut_first_server){
        .loop = options->loop, .guard = &s->guard, .is_wanted = is_shut_wanted, .arg = s};
    for (size_t i = 0; i < s->bound_count && e == ERR_OK; i++)
        e = listen_on(s, &s->bound[i], options->addresses[i], d);
    if (e != ERR_OK) {
        /* Timers and mailbox are on the loop already, and need its turns to end. */
        link_server_close(&s, NULL, NULL);
        return e;
    }
    if (s->guard.port_count != 0)
        uv_timer_start(&s->guard_tick, on_guard_tick, GUARD_TICK_MS, GUARD_TICK_MS);
    nng_recv_aio(s->socket, s->recv);
    *out = s;
    return ERR_OK;
}

/* ---- closing ------------------------------------------------------------------------------------------- */

static void release_paths(struct link_server *s)
{
    for (size_t i = 0; i < s->bound_count; i++) {
        if (s->bound[i].lock_fd >= 0)
            close(s->bound[i].lock_fd);
        s->bound[i].lock_fd = -1;
    }
}

static void on_guard_closed(uv_handle_t *handle)
{
    struct link_server *s = handle->data;
    void (*cb)(void *arg) = s->on_closed;
    void *arg = s->on_closed_arg;
    release_paths(s);
    if (!s->abandoned)
        free_server(s);
    if (cb != NULL)
        cb(arg);
}

static void on_tick_closed(uv_handle_t *handle)
{
    struct link_server *s = handle->data;
    uv_close((uv_handle_t *)&s->guard_tick, on_guard_closed);
}

static void on_box_closed(uv_handle_t *handle)
{
    struct link_server *s = handle->data;
    uv_close((uv_handle_t *)&s->tick, on_tick_closed);
}

/* On a thread of its own: waits until nng has let go of everything. */
static void close_socket(void *arg)
{
    struct link_server *s = arg;
    nng_aio_stop(s->recv);
    shut_first_all(&s->shut);
    nng_close(s->socket);
}

/* nng_close returns when the last pipe's callback has: nothing is posted after it. */
static void on_socket_closed(void *arg, bool abandoned)
{
    struct link_server *s = arg;
    s->abandoned = abandoned; /* nng's threads may still use it: it stays behind */
    if (!abandoned)
        mailbox_drain(&s->box);
    mailbox_close(&s->box, on_box_closed);
}

void link_server_close(struct link_server **server, void (*cb)(void *arg), void *arg)
{
    struct link_server *s = *server;
    *server = NULL;
    s->on_closed = cb;
    s->on_closed_arg = arg;
    atomic_store(&s->stopping, true);
    uv_timer_stop(&s->tick);
    uv_timer_stop(&s->guard_tick);
    for (size_t i = 0; i < LINK_PEER_BUCKETS; i++)
        while (s->buckets[i] != NULL) {
            struct link_peer *p = s->buckets[i];
            s->buckets[i] = p->next;
            link_peer_free(p, "the controller stopped");
        }
    shut_first_stop(&s->shut);
    shut_first_limit(side_thread_start(s->tick.loop, close_socket, on_socket_closed, s));
}

const char *link_server_address(const struct link_server *server, size_t i)
{
    must(i < server->bound_count);
    return server->bound[i].address;
}
