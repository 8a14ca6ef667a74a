#ifndef AGENT_LOAD_TRANSPORT_H
#define AGENT_LOAD_TRANSPORT_H
/*
 * How bytes move: one small interface over the kernel's ways to wait for many sockets. Connections are
 * slots, numbered by the owner. Owned by one worker and used on its thread alone.
 *
 * A sink function may call connect, send, skip and close, for any slot. After close nothing more is said
 * about a slot until it is connected again.
 */
#include "common/err.h"

#include <sys/socket.h>

/* What the transport tells its owner, always from within transport_wait. */
struct transport_sink {
    void (*opened)(void *owner, uint32_t slot, int error); /* errno, or 0: connected */
    void (*bytes)(void *owner, uint32_t slot, const uint8_t *data, size_t len);
    void (*skipped)(void *owner, uint32_t slot, size_t len); /* read and thrown away, see transport_skip */
    void (*sent)(void *owner, uint32_t slot);                /* only for a send that returned false */
    void (*ended)(void *owner, uint32_t slot, int error);    /* errno, or 0: the peer closed */
};

struct transport;

struct transport_ops {
    const char *name;
    int socket_flags; /* of socket(2): some back-ends need SOCK_NONBLOCK, others must not have it */
    void (*free)(struct transport *t);
    void (*connect)(struct transport *t, uint32_t slot, int fd, const struct sockaddr *addr, socklen_t len);
    bool (*send)(struct transport *t, uint32_t slot, const uint8_t *data, size_t len);
    void (*flush)(struct transport *t, uint32_t slot);
    void (*skip)(struct transport *t, uint32_t slot, uint64_t len);
    void (*close)(struct transport *t, uint32_t slot);
    int (*socket)(const struct transport *t, uint32_t slot);
    void (*wait)(struct transport *t, uint64_t deadline_ns);
};

/* The head of every back-end's own struct. */
struct transport {
    const struct transport_ops *ops;
    const struct transport_sink *sink; /* borrowed */
    void *owner;                       /* passed to the sink */
};

enum transport_kind {
    TRANSPORT_AUTO,  /* io_uring where it is allowed and new enough, else libuv */
    TRANSPORT_URING, /* completions, in batches */
    TRANSPORT_UV     /* readiness, through libuv: works everywhere */
};

/* The caller sets `sink` and `owner`. May be made on one thread and used on another. ERR_UNSUPPORTED when
 * this host does not offer the kind. */
NODISCARD enum err transport_new(struct transport **out, enum transport_kind kind, uint32_t slots,
                                 struct err_detail *d);

/* The back-ends, for transport_new. */
NODISCARD enum err transport_uv_new(struct transport **out, uint32_t slots, struct err_detail *d);
NODISCARD enum err transport_uring_new(struct transport **out, uint32_t slots, struct err_detail *d);

/* Of the liburing that runs; of one that cannot say what it is older than. The main thread. */
const char *transport_uring_version(void);

static inline void transport_free(struct transport *t)
{
    if (t != NULL)
        t->ops->free(t);
}

/* Takes `fd`, made with ops->socket_flags, and connects it. Every result comes through `opened`. */
static inline void transport_connect(struct transport *t, uint32_t slot, int fd, const struct sockaddr *addr,
                                     socklen_t len)
{
    t->ops->connect(t, slot, fd, addr, len);
}

/* Sends all of `data`, which is borrowed and may not change before the peer has answered or the slot is
 * closed, or flushed. True: the kernel takes it all by the next wait. False: `sent` will say when it has. One
 * send at a time per slot. A failure comes through `ended`. */
static inline bool transport_send(struct transport *t, uint32_t slot, const uint8_t *data, size_t len)
{
    return t->ops->send(t, slot, data, len);
}

/* The kernel takes now what earlier sends that returned true were given: it may change from here on. Costs a
 * call into the kernel when one of them is of this round. */
static inline void transport_flush(struct transport *t, uint32_t slot)
{
    t->ops->flush(t, slot);
}

/* The next `len` bytes from the peer are of no interest: they may be dropped in the kernel without a copy
 * and are then reported by `skipped` instead of `bytes`. TCP only. Call it from within `bytes`. */
static inline void transport_skip(struct transport *t, uint32_t slot, uint64_t len)
{
    t->ops->skip(t, slot, len);
}

static inline void transport_close(struct transport *t, uint32_t slot)
{
    t->ops->close(t, slot);
}

/* The socket of a slot that is open; for looking at, no more. */
static inline int transport_socket(const struct transport *t, uint32_t slot)
{
    return t->ops->socket(t, slot);
}

/* Waits for events until `deadline_ns` (monotonic; past means: do not wait) and hands them to the sink. */
static inline void transport_wait(struct transport *t, uint64_t deadline_ns)
{
    t->ops->wait(t, deadline_ns);
}

#endif
