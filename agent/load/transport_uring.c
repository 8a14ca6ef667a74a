#include "agent/load/transport.h"

#include "common/clock.h"
#include "common/mem.h"

#include <errno.h>
#include <liburing.h>
#include <sys/mman.h>
#include <unistd.h>

/*
 * All sends and receives of one round go to the kernel in one call. Each socket always has a receive
 * waiting; it takes a buffer from a shared ring when bytes are there, so idle connections hold none. It
 * stays in place from answer to answer, but on sockets with large bodies, where it gives way to one that
 * drops bytes. Needs deferred task running, which io_uring_setup(2) has since Linux 6.1; where io_uring is
 * forbidden, transport_new falls back.
 */
#define BUFFER_BYTES    (8u * 1024u)
#define BUFFERS_MIN     16u
#define BUFFERS_MAX     1024u
#define BUFFER_GROUP    0
#define SQ_ENTRIES_MIN  64u
#define SQ_ENTRIES_MAX  4096u
#define CQ_ENTRIES_MAX  65536u
#define SKIP_BYTES      (1024u * 1024u) /* address space only, see transport_uv.c */
#define SEND_UNTRACKED  4096u           /* an idle socket always takes this much at once */
#define GENERATION_MASK 0xffffffu

enum op { OP_NONE, OP_TIMER, OP_CONNECT, OP_SEND, OP_RECEIVE, OP_SKIP };

struct link {
    int fd;              /* -1: closed */
    uint32_t generation; /* completions of an earlier life are dropped */
    bool connected;
    bool bulky;      /* has had bytes to skip: receives one at a time from then on */
    bool cancelling; /* the lasting receive is on its way out */
    unsigned sent;   /* how many entries the queue had ever had, the last send among them */
    uint64_t skip;
};

struct uring_transport {
    struct transport base;
    struct io_uring ring;
    bool enabled;      /* the first use, on the worker's thread, makes that thread the only submitter */
    uint64_t timer_ns; /* when the earliest timer fires; UINT64_MAX: none is set */
    struct __kernel_timespec timer_ts; /* read by the kernel at submission */
    struct link *links;
    uint32_t slots;
    struct io_uring_buf_ring *buffer_ring;
    uint32_t buffer_count;
    uint8_t *buffers;
    uint8_t *skip_area;
};

static struct uring_transport *from_base(struct transport *t)
{
    return (struct uring_transport *)t;
}

/* Which life of which slot a completion belongs to. */
static uint64_t tag(const struct uring_transport *t, uint32_t slot, enum op op)
{
    return (uint64_t)(t->links[slot].generation & GENERATION_MASK) << 40 | (uint64_t)op << 32 | slot;
}

static void submit(struct uring_transport *t)
{
    int rc = io_uring_submit(&t->ring);
    must(rc >= 0 || rc == -EINTR || rc == -EAGAIN || rc == -EBUSY);
}

static struct io_uring_sqe *next_sqe(struct uring_transport *t)
{
    struct io_uring_sqe *sqe = io_uring_get_sqe(&t->ring);
    while (sqe == NULL) {
        submit(t);
        sqe = io_uring_get_sqe(&t->ring);
    }
    return sqe;
}

static void enable(struct uring_transport *t)
{
    if (t->enabled)
        return;
    /* liburing before 2.4 declares io_uring_enable_rings, but does not export it: its commit 19424b0b. */
    must(io_uring_register((unsigned)t->ring.ring_fd, IORING_REGISTER_ENABLE_RINGS, NULL, 0) == 0);
    (void)io_uring_register_ring_fd(&t->ring); /* saves a look-up per call; as well without */
    t->enabled = true;
}

static void arm_receive(struct uring_transport *t, uint32_t slot)
{
    struct link *l = &t->links[slot];
    struct io_uring_sqe *sqe = next_sqe(t);
    if (l->skip != 0) {
        size_t want = l->skip < SKIP_BYTES ? (size_t)l->skip : SKIP_BYTES;
        io_uring_prep_recv(sqe, (int)slot, t->skip_area, want, MSG_TRUNC);
        sqe->flags |= IOSQE_FIXED_FILE;
        sqe->user_data = tag(t, slot, OP_SKIP);
    } else {
        if (l->bulky)
            io_uring_prep_recv(sqe, (int)slot, NULL, BUFFER_BYTES, 0);
        else
            io_uring_prep_recv_multishot(sqe, (int)slot, NULL, 0, 0);
        sqe->flags |= IOSQE_FIXED_FILE | IOSQE_BUFFER_SELECT;
        sqe->buf_group = BUFFER_GROUP;
        sqe->user_data = tag(t, slot, OP_RECEIVE);
    }
    sqe->ioprio |= IORING_RECVSEND_POLL_FIRST; /* there is hardly ever an answer before we wait */
}

static void uring_connect(struct transport *base, uint32_t slot, int fd, const struct sockaddr *addr,
                          socklen_t len)
{
    struct uring_transport *t = from_base(base);
    struct link *l = &t->links[slot];
    must(slot < t->slots && l->fd < 0);
    enable(t);
    *l = (struct link){.fd = fd, .generation = l->generation, .sent = t->ring.sq.sqe_tail};
    struct io_uring_sqe *sqe = next_sqe(t);
    io_uring_prep_connect(sqe, fd, addr, len);
    sqe->user_data = tag(t, slot, OP_CONNECT);
}

static bool uring_send(struct transport *base, uint32_t slot, const uint8_t *data, size_t len)
{
    struct uring_transport *t = from_base(base);
    must(t->links[slot].connected);
    bool untracked = len <= SEND_UNTRACKED;
    struct io_uring_sqe *sqe = next_sqe(t);
    /* MSG_WAITALL: the kernel goes on until all is sent; a short send would be a failure. */
    io_uring_prep_send(sqe, (int)slot, data, len, MSG_NOSIGNAL | MSG_WAITALL);
    sqe->flags |= IOSQE_FIXED_FILE;
    if (untracked)
        sqe->flags |= IOSQE_CQE_SKIP_SUCCESS;
    sqe->user_data = tag(t, slot, OP_SEND);
    t->links[slot].sent = t->ring.sq.sqe_tail;
    return untracked;
}

/* The bytes of a small send are copied when the kernel takes its entry from the queue. */
static void uring_flush(struct transport *base, uint32_t slot)
{
    struct uring_transport *t = from_base(base);
    while (t->ring.sq.sqe_tail - t->links[slot].sent < io_uring_sq_ready(&t->ring))
        submit(t);
}

/* The next receive takes it up; the one that stays in place has to go first. */
static void uring_skip(struct transport *base, uint32_t slot, uint64_t len)
{
    struct uring_transport *t = from_base(base);
    struct link *l = &t->links[slot];
    l->skip = len;
    if (l->bulky)
        return;
    l->bulky = true;
    l->cancelling = true;
    struct io_uring_sqe *sqe = next_sqe(t);
    io_uring_prep_cancel64(sqe, tag(t, slot, OP_RECEIVE), 0);
    sqe->user_data = OP_NONE;
}

static void uring_close(struct transport *base, uint32_t slot)
{
    struct uring_transport *t = from_base(base);
    struct link *l = &t->links[slot];
    if (l->fd < 0)
        return;
    if (l->connected) {
        /* The ring holds the file until the slot is used again: only this ends it for the peer, and the
         * receive that waits. */
        (void)shutdown(l->fd, SHUT_RDWR);
    } else {
        struct io_uring_sqe *sqe = next_sqe(t);
        io_uring_prep_cancel64(sqe, tag(t, slot, OP_CONNECT), 0);
        sqe->user_data = OP_NONE;
    }
    close(l->fd);
    *l = (struct link){.fd = -1, .generation = l->generation + 1};
}

static int uring_socket(const struct transport *base, uint32_t slot)
{
    return ((const struct uring_transport *)base)->links[slot].fd;
}

static void on_connected(struct uring_transport *t, uint32_t slot, int result)
{
    struct link *l = &t->links[slot];
    if (result == 0) {
        int rc = io_uring_register_files_update(&t->ring, slot, &l->fd, 1);
        must(rc == 1);
        l->connected = true;
        arm_receive(t, slot);
    }
    t->base.sink->opened(t->base.owner, slot, -result);
}

static void on_received(struct uring_transport *t, uint32_t slot, const struct io_uring_cqe *cqe)
{
    struct link *l = &t->links[slot];
    uint32_t life = l->generation;
    bool stays = (cqe->flags & IORING_CQE_F_MORE) != 0;
    /* All buffers were in use, and this round has given them back; or it was called off, see uring_skip. */
    if (cqe->res == -ENOBUFS || (cqe->res == -ECANCELED && l->cancelling)) {
        l->cancelling = false;
        if (!stays)
            arm_receive(t, slot);
        return;
    }
    if (cqe->res <= 0) {
        t->base.sink->ended(t->base.owner, slot, -cqe->res);
        return;
    }
    const uint8_t *data = t->buffers + (size_t)(cqe->flags >> IORING_CQE_BUFFER_SHIFT) * BUFFER_BYTES;
    l->skip = 0; /* the sink says what is left to skip when bytes came while the receive was called off */
    t->base.sink->bytes(t->base.owner, slot, data, (size_t)cqe->res);
    if (l->generation == life && !stays) {
        l->cancelling = false;
        arm_receive(t, slot);
    }
}

static void on_skipped(struct uring_transport *t, uint32_t slot, int result)
{
    struct link *l = &t->links[slot];
    uint32_t life = l->generation;
    if (result <= 0) {
        t->base.sink->ended(t->base.owner, slot, -result);
        return;
    }
    l->skip -= (uint64_t)result;
    t->base.sink->skipped(t->base.owner, slot, (size_t)result);
    if (l->generation == life)
        arm_receive(t, slot);
}

/* Gives the buffer of a completion back to the ring. */
static void return_buffer(struct uring_transport *t, const struct io_uring_cqe *cqe)
{
    if ((cqe->flags & IORING_CQE_F_BUFFER) == 0)
        return;
    uint16_t id = (uint16_t)(cqe->flags >> IORING_CQE_BUFFER_SHIFT);
    io_uring_buf_ring_add(t->buffer_ring, t->buffers + (size_t)id * BUFFER_BYTES, BUFFER_BYTES, id,
                          io_uring_buf_ring_mask(t->buffer_count), 0);
    io_uring_buf_ring_advance(t->buffer_ring, 1);
}

static void dispatch(struct uring_transport *t, const struct io_uring_cqe *cqe)
{
    uint32_t slot = (uint32_t)cqe->user_data;
    enum op op = (enum op)(cqe->user_data >> 32 & 0xff);
    if (op == OP_TIMER)
        t->timer_ns = UINT64_MAX;
    if (op == OP_NONE || op == OP_TIMER ||
        cqe->user_data >> 40 != (t->links[slot].generation & GENERATION_MASK))
        return;
    switch (op) {
    case OP_CONNECT:
        on_connected(t, slot, cqe->res);
        break;
    case OP_SEND:
        if (cqe->res < 0)
            t->base.sink->ended(t->base.owner, slot, -cqe->res);
        else
            t->base.sink->sent(t->base.owner, slot);
        break;
    case OP_RECEIVE:
        on_received(t, slot, cqe);
        break;
    case OP_SKIP:
        on_skipped(t, slot, cqe->res);
        break;
    case OP_NONE:
    case OP_TIMER:
        break;
    }
}

/* A timer is set when the deadline comes closer, not for every wait; one that is no longer needed only
 * costs a needless return. */
static void set_timer(struct uring_transport *t, uint64_t deadline_ns, uint64_t now_ns)
{
    if (deadline_ns >= t->timer_ns)
        return;
    t->timer_ns = deadline_ns;
    /* From now on rather than until then: the kernel's absolute ones do not follow a time namespace. */
    uint64_t wait_ns = deadline_ns - now_ns;
    t->timer_ts = (struct __kernel_timespec){.tv_sec = (int64_t)(wait_ns / NS_PER_S),
                                             .tv_nsec = (int64_t)(wait_ns % NS_PER_S)};
    struct io_uring_sqe *sqe = next_sqe(t);
    io_uring_prep_timeout(sqe, &t->timer_ts, 0, 0); /* of CLOCK_MONOTONIC */
    sqe->user_data = (uint64_t)OP_TIMER << 32;
}

static void uring_wait(struct transport *base, uint64_t deadline_ns)
{
    struct uring_transport *t = from_base(base);
    enable(t);
    int rc;
    uint64_t now_ns = clock_now_ns();
    if (deadline_ns <= now_ns) {
        rc = io_uring_submit_and_get_events(&t->ring);
    } else {
        set_timer(t, deadline_ns, now_ns);
        rc = io_uring_submit_and_wait(&t->ring, 1);
    }
    must(rc >= 0 || rc == -EINTR || rc == -EAGAIN || rc == -EBUSY);
    struct io_uring_cqe *cqe = NULL;
    unsigned head = 0;
    unsigned count = 0;
    io_uring_for_each_cqe(&t->ring, head, cqe)
    {
        struct io_uring_cqe copy = {.user_data = cqe->user_data, .res = cqe->res, .flags = cqe->flags};
        dispatch(t, &copy);
        return_buffer(t, &copy);
        count++;
    }
    io_uring_cq_advance(&t->ring, count);
}

static void uring_free(struct transport *base)
{
    struct uring_transport *t = from_base(base);
    for (uint32_t i = 0; i < t->slots; i++)
        if (t->links[i].fd >= 0)
            close(t->links[i].fd);
    io_uring_queue_exit(&t->ring);
    if (t->buffer_ring != NULL)
        munmap(t->buffer_ring, t->buffer_count * sizeof(struct io_uring_buf));
    if (t->buffers != NULL)
        munmap(t->buffers, (size_t)t->buffer_count * BUFFER_BYTES);
    munmap(t->skip_area, SKIP_BYTES);
    free(t->links);
    free(t);
}

static const struct transport_ops uring_ops = {
    .name = "io_uring",
    .socket_flags = 0,
    .free = uring_free,
    .connect = uring_connect,
    .send = uring_send,
    .flush = uring_flush,
    .skip = uring_skip,
    .close = uring_close,
    .socket = uring_socket,
    .wait = uring_wait,
};

static void *map(size_t size)
{
    void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    must(p != MAP_FAILED);
    return p;
}

/* The smallest power of two from `n` on, within the bounds (powers of two). */
static uint32_t power_of_two(uint32_t n, uint32_t min, uint32_t max)
{
    uint32_t p = min;
    while (p < n && p < max)
        p *= 2;
    return p;
}

static int add_buffers(struct uring_transport *t)
{
    t->buffer_count = power_of_two(t->slots, BUFFERS_MIN, BUFFERS_MAX);
    t->buffers = map((size_t)t->buffer_count * BUFFER_BYTES);
    t->buffer_ring = map(t->buffer_count * sizeof(struct io_uring_buf));
    struct io_uring_buf_reg reg = {
        .ring_addr = (uintptr_t)t->buffer_ring, .ring_entries = t->buffer_count, .bgid = BUFFER_GROUP};
    int rc = io_uring_register_buf_ring(&t->ring, &reg, 0);
    if (rc != 0)
        return rc;
    for (uint32_t i = 0; i < t->buffer_count; i++)
        io_uring_buf_ring_add(t->buffer_ring, t->buffers + (size_t)i * BUFFER_BYTES, BUFFER_BYTES,
                              (uint16_t)i, io_uring_buf_ring_mask(t->buffer_count), (int)i);
    io_uring_buf_ring_advance(t->buffer_ring, (int)t->buffer_count);
    return 0;
}

const char *transport_uring_version(void)
{
#ifdef IO_URING_CHECK_VERSION /* liburing 2.4 brings it together with the functions: its CHANGELOG */
    static char text[32];
    snprintf(text, sizeof text, "%d.%d", io_uring_major_version(), io_uring_minor_version());
    return text;
#else
    return "before 2.4";
#endif
}

enum err transport_uring_new(struct transport **out, uint32_t slots, struct err_detail *d)
{
    struct uring_transport *t = mem_zalloc(1, sizeof *t);
    uint32_t entries = power_of_two(2 * slots, SQ_ENTRIES_MIN, SQ_ENTRIES_MAX);
    struct io_uring_params p = {.flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN |
                                         IORING_SETUP_R_DISABLED | IORING_SETUP_CQSIZE,
                                .cq_entries = power_of_two(4 * slots, 2 * entries, CQ_ENTRIES_MAX)};
    int rc = io_uring_queue_init_params(entries, &t->ring, &p);
    if (rc != 0) {
        free(t);
        return err_set(d, ERR_UNSUPPORTED, "io_uring is not available here: %s", strerror(-rc));
    }
    t->base.ops = &uring_ops;
    t->timer_ns = UINT64_MAX;
    t->slots = slots;
    t->links = mem_zalloc(slots, sizeof *t->links);
    for (uint32_t i = 0; i < slots; i++)
        t->links[i].fd = -1;
    t->skip_area = map(SKIP_BYTES);
    rc = io_uring_register_files_sparse(&t->ring, slots);
    if (rc == 0)
        rc = add_buffers(t);
    if (rc != 0) {
        uring_free(&t->base);
        return err_set(d, ERR_UNSUPPORTED, "io_uring lacks what is needed here: %s", strerror(-rc));
    }
    *out = &t->base;
    return ERR_OK;
}
