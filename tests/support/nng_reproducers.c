#include "tests/support/nng_reproducers.h"

#include "common/clock.h"
#include "common/mem.h"
#include "proto/link/link_nng.h"
#include "tests/support/raw_peer.h"

#include <nng/protocol/reqrep0/rep.h>
#include <nng/protocol/reqrep0/req.h>

#include <dirent.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <uv.h>

#define SOON_NS    (2 * NS_PER_S) /* what takes longer than this does not come */
#define NOTICED_MS 11000          /* beyond nng's 10 s for a greeting */

static void need(bool cond, const char *what)
{
    if (cond)
        return;
    printf("the reproducer needs: %s\n", what);
    fflush(stdout);
    _exit(REPRODUCER_BROKEN);
}

#define NEED(cond) need((cond), #cond)

/* ---- what most of them need ---------------------------------------------------------------------------- */

/* A socket whose pipes are counted. */
struct counted {
    nng_socket socket;
    uv_mutex_t lock;
    uv_cond_t changed;
    unsigned come;
    unsigned gone;
    nng_pipe last;
    nng_aio *recv; /* of a server that takes what comes and drops it */
};

static void on_pipe(nng_pipe pipe, nng_pipe_ev ev, void *arg)
{
    struct counted *c = arg;
    uv_mutex_lock(&c->lock);
    if (ev == NNG_PIPE_EV_ADD_POST) {
        c->come++;
        c->last = pipe;
    } else {
        c->gone++;
    }
    uv_cond_broadcast(&c->changed);
    uv_mutex_unlock(&c->lock);
}

static void counted_init(struct counted *c, int (*open)(nng_socket *socket))
{
    memset(c, 0, sizeof *c);
    NEED(uv_mutex_init(&c->lock) == 0 && uv_cond_init(&c->changed) == 0);
    NEED(open(&c->socket) == 0);
    NEED(nng_pipe_notify(c->socket, NNG_PIPE_EV_ADD_POST, on_pipe, c) == 0);
    NEED(nng_pipe_notify(c->socket, NNG_PIPE_EV_REM_POST, on_pipe, c) == 0);
}

/* Whether one of the counters is this high, soon. */
static bool counted_wait(struct counted *c, const unsigned *counter, unsigned value)
{
    uint64_t end_ns = uv_hrtime() + SOON_NS;
    uv_mutex_lock(&c->lock);
    for (uint64_t now_ns; *counter < value && (now_ns = uv_hrtime()) < end_ns;)
        (void)uv_cond_timedwait(&c->changed, &c->lock, end_ns - now_ns);
    bool there = *counter >= value;
    uv_mutex_unlock(&c->lock);
    return there;
}

static void on_message(void *arg)
{
    struct counted *c = arg;
    if (nng_aio_result(c->recv) != 0)
        return;
    nng_msg_free(nng_aio_get_msg(c->recv));
    nng_recv_aio(c->socket, c->recv);
}

static void counted_drop_messages(struct counted *c)
{
    NEED(nng_aio_alloc(&c->recv, on_message, c) == 0);
    nng_recv_aio(c->socket, c->recv);
}

/* A listening socket without nng. */
static int listen_plainly(const char *path)
{
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    NEED(strlen(path) < sizeof sa.sun_path);
    memcpy(sa.sun_path, path, strlen(path));
    NEED(fd >= 0 && bind(fd, (struct sockaddr *)&sa, sizeof sa) == 0 && listen(fd, SOMAXCONN) == 0);
    return fd;
}

static bool is_readable(int fd, int ms)
{
    struct pollfd pfd = {.fd = fd, .events = POLLIN};
    return poll(&pfd, 1, ms) == 1;
}

static void spin(unsigned turns)
{
    for (volatile unsigned i = 0; i < turns;)
        i = i + 1;
}

/* ---- ipc ----------------------------------------------------------------------------------------------- */

bool reproduce_greeting_ends_listener(const struct reproducer_place *place, unsigned tries)
{
    struct counted server;
    char *address = mem_printf("ipc://%s/socket", place->dir);
    const char *path = address + strlen("ipc://");
    counted_init(&server, nng_rep0_open_raw);
    NEED(nng_listen(server.socket, address, NULL, 0) == 0);
    for (unsigned i = 0; i < tries; i++) {
        raw_free(raw_open_ipc(path));
        struct raw_peer *late = raw_open_ipc(path);
        NEED(late != NULL && raw_greet(late));
        if (!counted_wait(&server, &server.come, i + 1))
            return true;
        raw_free(late);
    }
    return false;
}

/* Many small requests as they are on an ipc connection: a type, a length, a number, a body. */
static size_t fill_frames(uint8_t *buf, size_t size)
{
    static const uint8_t frame[] = {1, 0, 0, 0, 0, 0, 0, 0, 8, 0x80, 0, 0, 1, 'b', 'o', 'd', 'y'};
    size_t len = 0;
    for (; len + sizeof frame <= size; len += sizeof frame)
        memcpy(buf + len, frame, sizeof frame);
    return len;
}

bool reproduce_close_hangs(const struct reproducer_place *place, unsigned tries)
{
    static uint8_t frames[60000];
    struct counted server;
    size_t len = fill_frames(frames, sizeof frames);
    char *address = mem_printf("ipc://%s/socket", place->dir);
    counted_init(&server, nng_rep0_open_raw);
    NEED(nng_socket_set_int(server.socket, NNG_OPT_RECVBUF, 8192) ==
         0); /* keeps ABORT_IS_EARLY out of this */
    counted_drop_messages(&server);
    NEED(nng_listen(server.socket, address, NULL, 0) == 0);
    for (unsigned i = 0; i < tries; i++) {
        struct raw_peer *peer = raw_open_ipc(address + strlen("ipc://"));
        NEED(peer != NULL && raw_greet(peer));
        NEED(counted_wait(&server, &server.come, i + 1));
        NEED(raw_send(peer, frames, len));
        spin(i % 100 * 500);
        nng_pipe_close(server.last);
        if (!counted_wait(&server, &server.gone, i + 1))
            return true;
        raw_free(peer);
    }
    return false;
}

/* ---- one thread against another ------------------------------------------------------------------------ */

static void abort_for_ever(void *arg)
{
    for (;;)
        nng_aio_abort(arg, NNG_ECANCELED);
}

/* Nobody connects, so nothing but the abort can end this receive. */
bool reproduce_abort_is_early(const struct reproducer_place *place, unsigned tries)
{
    nng_socket socket;
    nng_aio *aio = NULL;
    uv_thread_t thread;
    (void)place;
    NEED(nng_rep0_open_raw(&socket) == 0 && nng_aio_alloc(&aio, NULL, NULL) == 0);
    NEED(uv_thread_create(&thread, abort_for_ever, aio) == 0);
    for (unsigned i = 0; i < tries; i++) {
        nng_recv_aio(socket, aio);
        nng_aio_wait(aio);
        if (nng_aio_result(aio) == 0)
            return true; /* over, and no message */
    }
    return false;
}

/* Two threads that begin each round at the same time. */
struct duel {
    atomic_uint round;
    atomic_uint over; /* the last round the second thread has ended */
    nng_dialer dialer;
    nng_ctx ctx;
};

static unsigned duel_wait_round(struct duel *d, unsigned last)
{
    while (atomic_load(&d->round) == last) {
    }
    return last + 1;
}

static void dial_each_round(void *arg)
{
    struct duel *d = arg;
    for (unsigned round = 0;;) {
        round = duel_wait_round(d, round);
        (void)nng_dialer_start(d->dialer, 0);
        atomic_store(&d->over, round);
    }
}

bool reproduce_dial_never_ends(const struct reproducer_place *place, unsigned tries)
{
    struct duel d = {0};
    uv_thread_t thread;
    char *address = mem_printf("ipc://%s/socket", place->dir);
    int listener = listen_plainly(address + strlen("ipc://"));
    NEED(uv_thread_create(&thread, dial_each_round, &d) == 0);
    for (unsigned i = 1; i <= tries; i++) {
        nng_socket socket;
        NEED(nng_req0_open(&socket) == 0 && nng_dialer_create(&d.dialer, socket, address) == 0);
        atomic_store(&d.round, i);
        spin(i % 200 * 5);
        (void)nng_dialer_close(d.dialer);
        uint64_t end_ns = clock_now_ns() + SOON_NS;
        while (atomic_load(&d.over) != i)
            if (clock_now_ns() > end_ns)
                return true;
        nng_close(socket);
        while (is_readable(listener, 0))
            close(accept(listener, NULL, NULL));
    }
    return false;
}

static void use_context_each_round(void *arg)
{
    struct duel *d = arg;
    for (unsigned round = 0;;) {
        round = duel_wait_round(d, round);
        while (nng_ctx_set_ms(d->ctx, NNG_OPT_REQ_RESENDTIME, 1000) == 0) {
        }
        atomic_store(&d->over, round);
    }
}

/* With the fault it aborts. */
bool reproduce_context_outlives_socket(const struct reproducer_place *place, unsigned tries)
{
    struct duel d = {0};
    uv_thread_t thread;
    (void)place;
    NEED(uv_thread_create(&thread, use_context_each_round, &d) == 0);
    for (unsigned i = 1; i <= tries; i++) {
        nng_socket socket;
        NEED(nng_req0_open(&socket) == 0 && nng_ctx_open(&d.ctx, socket) == 0);
        atomic_store(&d.round, i);
        spin(1000 + i % 100);
        nng_close(socket);
        while (atomic_load(&d.over) != i) {
        }
    }
    return false;
}

/* ---- dialling again ------------------------------------------------------------------------------------ */

/* At random within a minute is right; within 50 ms that is one of 1,200. */
bool reproduce_redials_at_once(const struct reproducer_place *place, unsigned tries)
{
    char *address = mem_printf("ipc://%s/socket", place->dir);
    int listener = listen_plainly(address + strlen("ipc://"));
    unsigned early = 0;
    for (unsigned i = 0; i < tries; i++) {
        struct counted client;
        counted_init(&client, nng_req0_open);
        NEED(nng_socket_set_ms(client.socket, NNG_OPT_RECONNMINT, 60000) == 0);
        NEED(nng_socket_set_ms(client.socket, NNG_OPT_RECONNMAXT, 60000) == 0);
        NEED(nng_dial(client.socket, address, NULL, NNG_FLAG_NONBLOCK) == 0);
        int fd = accept(listener, NULL, NULL);
        NEED(fd >= 0 && write(fd, "\0SP\0\0\x31\0\0", 8) == 8);
        NEED(counted_wait(&client, &client.come, 1));
        close(fd);
        NEED(counted_wait(&client, &client.gone, 1));
        if (is_readable(listener, 50)) {
            early++;
            NEED(accept(listener, NULL, NULL) >= 0); /* and stays, so that it is not dialled once more */
        }
    }
    return early * 8 > tries;
}

/* ---- TLS ----------------------------------------------------------------------------------------------- */

static void listen_with_tls(const struct reproducer_place *place, nng_socket *socket, char port[16])
{
    struct err_detail d;
    nng_tls_config *tls;
    nng_listener listener;
    int number;
    NEED(link_tls_server(place->identity, &tls, &d) == ERR_OK);
    NEED(nng_rep0_open_raw(socket) == 0);
    NEED(nng_listener_create(&listener, *socket, "tls+tcp://127.0.0.1:0") == 0);
    NEED(nng_listener_set_ptr(listener, NNG_OPT_TLS_CONFIG, tls) == 0);
    NEED(nng_listener_start(listener, 0) == 0);
    NEED(nng_listener_get_int(listener, NNG_OPT_TCP_BOUND_PORT, &number) == 0);
    snprintf(port, 16, "%d", number);
}

bool reproduce_handshake_never_ends(const struct reproducer_place *place, unsigned tries)
{
    nng_socket socket;
    char port[16];
    (void)tries;
    listen_with_tls(place, &socket, port);
    struct raw_peer *silent = raw_open_tcp("127.0.0.1", port);
    NEED(silent != NULL);
    return !raw_readable(silent, NOTICED_MS); /* an end can be read, too */
}

static unsigned count_descriptors(void)
{
    unsigned count = 0;
    DIR *dir = opendir("/proc/self/fd");
    NEED(dir != NULL);
    while (readdir(dir) != NULL)
        count++;
    closedir(dir);
    return count;
}

bool reproduce_end_unnoticed(const struct reproducer_place *place, unsigned tries)
{
    nng_socket socket;
    char port[16];
    listen_with_tls(place, &socket, port);
    unsigned before = count_descriptors();
    for (unsigned i = 0; i < tries; i++) {
        struct raw_peer *peer = raw_open_tcp("127.0.0.1", port);
        NEED(peer != NULL && raw_start_tls(peer, NULL));
        if (i % 2 == 0)
            raw_free(peer);
        else
            raw_reset(peer);
    }
    uint64_t end_ns = clock_now_ns() + (uint64_t)NOTICED_MS * NS_PER_MS;
    while (count_descriptors() > before && clock_now_ns() < end_ns)
        (void)poll(NULL, 0, 50);
    return count_descriptors() > before;
}
