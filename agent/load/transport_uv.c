#include "agent/load/transport.h"

#include "common/clock.h"
#include "common/mem.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/timerfd.h>
#include <unistd.h>
#include <uv.h>

/*
 * Sockets are polled level-triggered for reading all their life; writing is tried at once and polled for
 * only when the kernel refuses, so an ordinary request costs one send, one recv and a share of an epoll_wait.
 */
#define READ_BYTES (64u * 1024u)
/* Address space for skipped bytes: the kernel writes nothing there, so no page of it is ever resident. */
#define SKIP_BYTES (1024u * 1024u)

/* One socket. Lives until libuv has closed its handle, which is after the slot may be in use again. */
struct link {
    uv_poll_t poll;
    struct uv_transport *transport;
    uint32_t slot;
    int fd;
    bool open;
    int connect_error;
    int send_error;
    const uint8_t *unsent; /* rest of a send that the kernel did not take at once */
    size_t unsent_len;
    uint64_t skip;
};

struct uv_transport {
    struct transport base;
    uv_loop_t loop;
    uv_poll_t timer_poll;
    int timer_fd;
    uint64_t timer_ns;   /* what the timer is set to; 0: nothing */
    struct link **links; /* by slot; NULL when closed */
    uint32_t slots;
    uint8_t *skip_area;
    uint8_t read_buffer[READ_BYTES];
};

static struct uv_transport *from_base(struct transport *t)
{
    return (struct uv_transport *)t;
}

static void on_timer(uv_poll_t *handle, int status, int events)
{
    (void)status;
    (void)events;
    struct uv_transport *t = handle->data;
    uint64_t expirations = 0;
    (void)!read(t->timer_fd, &expirations, sizeof expirations);
    t->timer_ns = 0;
}

static void on_closed(uv_handle_t *handle)
{
    struct link *l = CONTAINER_OF(handle, struct link, poll);
    free(l);
}

static void uv_transport_close(struct transport *base, uint32_t slot)
{
    struct uv_transport *t = from_base(base);
    struct link *l = t->links[slot];
    if (l == NULL)
        return;
    t->links[slot] = NULL;
    uv_poll_stop(&l->poll);
    close(l->fd);
    uv_close((uv_handle_t *)&l->poll, on_closed);
}

static int uv_transport_socket(const struct transport *base, uint32_t slot)
{
    return ((const struct uv_transport *)base)->links[slot]->fd;
}

static void watch(struct link *l);

static void on_connect_ready(struct link *l)
{
    int error = l->connect_error;
    socklen_t len = sizeof error;
    if (error == 0 && getsockopt(l->fd, SOL_SOCKET, SO_ERROR, &error, &len) != 0)
        error = errno;
    struct transport *base = &l->transport->base;
    if (error == 0) {
        l->open = true;
        watch(l);
    }
    base->sink->opened(base->owner, l->slot, error);
}

/* Goes on with a send. False when the socket is still full. */
static bool push(struct link *l)
{
    ssize_t n = send(l->fd, l->unsent, l->unsent_len, MSG_NOSIGNAL);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        n = 0;
    if (n < 0) {
        l->send_error = errno; /* told when the socket reports it, never from within the caller's send */
        l->unsent_len = 0;
        return true;
    }
    l->unsent += n;
    l->unsent_len -= (size_t)n;
    return l->unsent_len == 0;
}

static void on_writable(struct link *l)
{
    if (l->unsent_len == 0 || !push(l))
        return;
    watch(l);
    struct transport *base = &l->transport->base;
    if (l->send_error != 0)
        base->sink->ended(base->owner, l->slot, l->send_error);
    else
        base->sink->sent(base->owner, l->slot);
}

static void on_readable(struct link *l)
{
    struct uv_transport *t = l->transport;
    bool skip = l->skip != 0;
    size_t want = !skip ? READ_BYTES : l->skip < SKIP_BYTES ? (size_t)l->skip : SKIP_BYTES;
    ssize_t n = recv(l->fd, skip ? t->skip_area : t->read_buffer, want, skip ? MSG_TRUNC : 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        int error = n < 0 ? errno : l->send_error;
        t->base.sink->ended(t->base.owner, l->slot, error);
        return;
    }
    if (skip) {
        l->skip -= (uint64_t)n;
        t->base.sink->skipped(t->base.owner, l->slot, (size_t)n);
    } else {
        t->base.sink->bytes(t->base.owner, l->slot, t->read_buffer, (size_t)n);
    }
}

static void on_poll(uv_poll_t *handle, int status, int events)
{
    struct link *l = CONTAINER_OF(handle, struct link, poll);
    struct uv_transport *t = l->transport;
    uint32_t slot = l->slot;
    if (!l->open) {
        on_connect_ready(l);
        return;
    }
    if ((events & UV_WRITABLE) != 0)
        on_writable(l);
    /* An error status stops the handle; what arrived before the error is still to be read. */
    while (t->links[slot] == l && (status < 0 || (events & (UV_READABLE | UV_DISCONNECT)) != 0)) {
        on_readable(l);
        if (status >= 0)
            break;
    }
}

static void watch(struct link *l)
{
    int events = !l->open || l->unsent_len != 0 ? UV_WRITABLE : 0;
    if (l->open)
        events |= UV_READABLE;
    must(uv_poll_start(&l->poll, events, on_poll) == 0);
}

static void uv_transport_connect(struct transport *base, uint32_t slot, int fd, const struct sockaddr *addr,
                                 socklen_t len)
{
    struct uv_transport *t = from_base(base);
    must(slot < t->slots && t->links[slot] == NULL);
    struct link *l = mem_zalloc(1, sizeof *l);
    l->transport = t;
    l->slot = slot;
    l->fd = fd;
    must(uv_poll_init(&t->loop, &l->poll, fd) == 0);
    t->links[slot] = l;
    if (connect(fd, addr, len) != 0 && errno != EINPROGRESS)
        l->connect_error = errno; /* told when the poll fires, which it does for a socket without a peer */
    watch(l);
}

static bool uv_transport_send(struct transport *base, uint32_t slot, const uint8_t *data, size_t len)
{
    struct link *l = from_base(base)->links[slot];
    must(l != NULL && l->unsent_len == 0);
    l->unsent = data;
    l->unsent_len = len;
    if (push(l))
        return true;
    watch(l);
    return false;
}

/* Nothing to do: what send(2) took, it has copied. */
static void uv_transport_flush(struct transport *base, uint32_t slot)
{
    (void)base;
    (void)slot;
}

static void uv_transport_skip(struct transport *base, uint32_t slot, uint64_t len)
{
    from_base(base)->links[slot]->skip = len;
}

static void set_timer(struct uv_transport *t, uint64_t deadline_ns)
{
    if (deadline_ns == t->timer_ns)
        return;
    struct itimerspec at = {
        .it_value = {.tv_sec = (time_t)(deadline_ns / NS_PER_S), .tv_nsec = (long)(deadline_ns % NS_PER_S)}};
    must(timerfd_settime(t->timer_fd, TFD_TIMER_ABSTIME, &at, NULL) == 0);
    t->timer_ns = deadline_ns;
}

static void uv_transport_wait(struct transport *base, uint64_t deadline_ns)
{
    struct uv_transport *t = from_base(base);
    if (deadline_ns <= clock_now_ns()) {
        uv_run(&t->loop, UV_RUN_NOWAIT);
        return;
    }
    set_timer(t, deadline_ns);
    uv_run(&t->loop, UV_RUN_ONCE);
}

static void uv_transport_free(struct transport *base)
{
    struct uv_transport *t = from_base(base);
    for (uint32_t i = 0; i < t->slots; i++)
        uv_transport_close(base, i);
    uv_poll_stop(&t->timer_poll);
    uv_close((uv_handle_t *)&t->timer_poll, NULL);
    uv_run(&t->loop, UV_RUN_DEFAULT); /* runs the close callbacks; nothing else is alive */
    must(uv_loop_close(&t->loop) == 0);
    close(t->timer_fd);
    munmap(t->skip_area, SKIP_BYTES);
    free(t->links);
    free(t);
}

static const struct transport_ops uv_ops = {
    .name = "libuv",
    .socket_flags = SOCK_NONBLOCK,
    .free = uv_transport_free,
    .connect = uv_transport_connect,
    .send = uv_transport_send,
    .flush = uv_transport_flush,
    .skip = uv_transport_skip,
    .close = uv_transport_close,
    .socket = uv_transport_socket,
    .wait = uv_transport_wait,
};

enum err transport_uv_new(struct transport **out, uint32_t slots, struct err_detail *d)
{
    int timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    if (timer_fd < 0)
        return err_set(d, err_from_errno(errno), "cannot make a timer: %s", strerror(errno));
    struct uv_transport *t = mem_zalloc(1, sizeof *t);
    t->base.ops = &uv_ops;
    t->timer_fd = timer_fd;
    t->slots = slots;
    t->links = mem_zalloc(slots, sizeof(struct link *));
    t->skip_area =
        mmap(NULL, SKIP_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    must(t->skip_area != MAP_FAILED && uv_loop_init(&t->loop) == 0);
    must(uv_poll_init(&t->loop, &t->timer_poll, timer_fd) == 0);
    t->timer_poll.data = t;
    must(uv_poll_start(&t->timer_poll, UV_READABLE, on_timer) == 0);
    *out = &t->base;
    return ERR_OK;
}
