#include "agent/load/transport.h"
#include "common/clock.h"
#include "common/mem.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define SLOTS       4u
#define DEADLINE_NS (20 * NS_PER_S)

/* What the sink has heard, by slot. */
struct world {
    struct transport *t;
    int listener;
    struct sockaddr_in at;
    bool opened[SLOTS];
    int open_error[SLOTS];
    size_t received[SLOTS];
    size_t skipped[SLOTS];
    uint64_t sum[SLOTS]; /* of the bytes */
    bool sent[SLOTS];
    bool ended[SLOTS];
    int end_error[SLOTS];
    size_t skip_after_first; /* tell the transport to skip this many, at the first bytes */
};

static void on_opened(void *owner, uint32_t slot, int error)
{
    struct world *w = owner;
    w->opened[slot] = true;
    w->open_error[slot] = error;
}

static void on_bytes(void *owner, uint32_t slot, const uint8_t *data, size_t len)
{
    struct world *w = owner;
    for (size_t i = 0; i < len; i++)
        w->sum[slot] += data[i];
    w->received[slot] += len;
    size_t done = w->received[slot] + w->skipped[slot];
    if (w->skip_after_first > done)
        transport_skip(w->t, slot, w->skip_after_first - done);
}

static void on_skipped(void *owner, uint32_t slot, size_t len)
{
    struct world *w = owner;
    w->skipped[slot] += len;
}

static void on_sent(void *owner, uint32_t slot)
{
    struct world *w = owner;
    w->sent[slot] = true;
}

static void on_ended(void *owner, uint32_t slot, int error)
{
    struct world *w = owner;
    w->ended[slot] = true;
    w->end_error[slot] = error;
    transport_close(w->t, slot);
}

static const struct transport_sink sink = {
    .opened = on_opened, .bytes = on_bytes, .skipped = on_skipped, .sent = on_sent, .ended = on_ended};

/* A world on the back-end under test; skips the test where the host does not offer it. */
static struct world *world_new(void **state)
{
    struct world *w = mem_zalloc(1, sizeof *w);
    struct err_detail d = {0};
    if (transport_new(&w->t, *(enum transport_kind *)*state, SLOTS, &d) != ERR_OK) {
        print_message("%s\n", d.text);
        free(w);
        skip();
    }
    w->t->sink = &sink;
    w->t->owner = w;
    w->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    w->at = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof w->at;
    assert_int_equal(bind(w->listener, (struct sockaddr *)&w->at, len), 0);
    assert_int_equal(listen(w->listener, 64), 0);
    assert_int_equal(getsockname(w->listener, (struct sockaddr *)&w->at, &len), 0);
    return w;
}

static void world_free(struct world *w)
{
    transport_free(w->t);
    if (w->listener >= 0)
        close(w->listener);
    free(w);
}

/* Runs the transport until the condition holds; it is an error when it never does. */
#define AWAIT(w, condition)                                                                                  \
    do {                                                                                                     \
        uint64_t limit_ns_ = clock_now_ns() + DEADLINE_NS;                                                   \
        while (!(condition) && clock_now_ns() < limit_ns_)                                                   \
            transport_wait((w)->t, clock_now_ns() + NS_PER_MS);                                              \
        assert_true(condition);                                                                              \
    } while (0)

static void dial(struct world *w, uint32_t slot)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | w->t->ops->socket_flags, 0);
    assert_true(fd >= 0);
    w->opened[slot] = false;
    transport_connect(w->t, slot, fd, (struct sockaddr *)&w->at, sizeof w->at);
}

/* Connects the slot and returns the server's end. */
static int connected(struct world *w, uint32_t slot)
{
    dial(w, slot);
    AWAIT(w, w->opened[slot]);
    assert_int_equal(w->open_error[slot], 0);
    int fd = accept4(w->listener, NULL, NULL, SOCK_CLOEXEC);
    assert_true(fd >= 0);
    return fd;
}

static void bytes_go_both_ways(void **state)
{
    struct world *w = world_new(state);
    int peers[SLOTS];
    for (uint32_t i = 0; i < SLOTS; i++)
        peers[i] = connected(w, i);
    for (uint32_t i = 0; i < SLOTS; i++) {
        static const uint8_t hello[] = "hello";
        assert_true(transport_send(w->t, i, hello, 5));
        transport_wait(w->t, 0);
        char got[8];
        assert_int_equal(recv(peers[i], got, sizeof got, 0), 5);
        assert_int_equal(send(peers[i], "abc", 3, 0), 3);
        AWAIT(w, w->received[i] == 3);
        assert_int_equal(w->sum[i], 'a' + 'b' + 'c');
        close(peers[i]);
        AWAIT(w, w->ended[i]);
        assert_int_equal(w->end_error[i], 0);
    }
    world_free(w);
}

/* Two sends of one round from the same memory: the second may only overwrite what has been taken. */
static void what_is_flushed_may_change(void **state)
{
    struct world *w = world_new(state);
    int peer = connected(w, 3);
    uint8_t data[] = "first";
    char got[16] = "";
    assert_true(transport_send(w->t, 3, data, 5));
    transport_flush(w->t, 3);
    memcpy(data, "again", 5);
    assert_true(transport_send(w->t, 3, data, 5));
    transport_wait(w->t, 0);
    assert_int_equal(recv(peer, got, 10, MSG_WAITALL), 10);
    assert_string_equal(got, "firstagain");
    transport_flush(w->t, 3);
    close(peer);
    world_free(w);
}

static void a_refusal_is_told_and_the_slot_is_free_again(void **state)
{
    struct world *w = world_new(state);
    close(w->listener);
    w->listener = -1;
    for (int i = 0; i < 3; i++) {
        dial(w, 0);
        AWAIT(w, w->opened[0]);
        assert_int_equal(w->open_error[0], ECONNREFUSED);
        transport_close(w->t, 0);
    }
    world_free(w);
}

static void a_reset_is_told_after_the_bytes_before_it(void **state)
{
    struct world *w = world_new(state);
    int peer = connected(w, 1);
    assert_int_equal(send(peer, "last words", 10, 0), 10);
    AWAIT(w, w->received[1] == 10);
    struct linger hard = {.l_onoff = 1};
    assert_int_equal(setsockopt(peer, SOL_SOCKET, SO_LINGER, &hard, sizeof hard), 0);
    close(peer);
    AWAIT(w, w->ended[1]);
    assert_int_equal(w->end_error[1], ECONNRESET);
    world_free(w);
}

/* More than any socket takes at once, to a peer that reads later. */
static void a_large_send_is_finished_and_told(void **state)
{
    struct world *w = world_new(state);
    size_t len = 32u * 1024 * 1024;
    uint8_t *data = mem_zalloc(1, len);
    uint8_t *got = mem_alloc(len);
    int peer = connected(w, 2);
    assert_false(transport_send(w->t, 2, data, len));
    transport_wait(w->t, 0);
    assert_false(w->sent[2]);
    size_t received = 0;
    uint64_t limit_ns = clock_now_ns() + DEADLINE_NS;
    while (received < len && clock_now_ns() < limit_ns) {
        ssize_t n = recv(peer, got, len, MSG_DONTWAIT);
        received += n > 0 ? (size_t)n : 0;
        transport_wait(w->t, clock_now_ns() + NS_PER_MS);
    }
    assert_int_equal(received, len);
    AWAIT(w, w->sent[2]);
    close(peer);
    free(data);
    free(got);
    world_free(w);
}

/* Skipped bytes are counted, the ones after them are delivered again. */
static void skipping_ends_where_it_should(void **state)
{
    struct world *w = world_new(state);
    size_t skip = 3u * 1024 * 1024;
    int peer = connected(w, 0);
    for (int round = 0; round < 3; round++) {
        memset(w->received, 0, sizeof w->received);
        memset(w->skipped, 0, sizeof w->skipped);
        w->sum[0] = 0;
        w->skip_after_first = skip;
        uint8_t *data = mem_zalloc(1, skip + 3);
        memcpy(data + skip, "end", 3);
        size_t at = 0;
        uint64_t limit_ns = clock_now_ns() + DEADLINE_NS;
        while (at < skip + 3 && clock_now_ns() < limit_ns) {
            ssize_t n = send(peer, data + at, skip + 3 - at, MSG_DONTWAIT);
            at += n > 0 ? (size_t)n : 0;
            transport_wait(w->t, clock_now_ns() + NS_PER_MS);
        }
        AWAIT(w, w->received[0] + w->skipped[0] == skip + 3);
        assert_true(w->skipped[0] > skip / 2); /* the first bytes may come as bytes */
        assert_int_equal(w->sum[0], 'e' + 'n' + 'd');
        free(data);
    }
    close(peer);
    world_free(w);
}

/* What is left of a slot's earlier life is not taken for the new one's. */
static void a_slot_is_reused_at_once(void **state)
{
    struct world *w = world_new(state);
    for (int i = 0; i < 50; i++) {
        int peer = connected(w, 3);
        assert_int_equal(send(peer, "old", 3, 0), 3);
        transport_close(w->t, 3); /* whatever was on its way */
        w->received[3] = 0;
        int next = connected(w, 3);
        assert_int_equal(send(next, "fresh", 5, 0), 5);
        AWAIT(w, w->received[3] >= 5);
        assert_int_equal(w->received[3], 5);
        transport_close(w->t, 3);
        char byte;
        assert_true(recv(next, &byte, 1, 0) <= 0); /* the peer sees the end */
        close(peer);
        close(next);
    }
    world_free(w);
}

static void closing_while_connecting_is_silent(void **state)
{
    struct world *w = world_new(state);
    for (int i = 0; i < 20; i++) {
        dial(w, 0);
        transport_close(w->t, 0);
        transport_wait(w->t, 0);
        assert_false(w->opened[0]);
    }
    int peer = connected(w, 0);
    close(peer);
    world_free(w);
}

static void waiting_ends_at_the_deadline(void **state)
{
    struct world *w = world_new(state);
    for (int i = 0; i < 20; i++) {
        uint64_t until_ns = clock_now_ns() + 2 * NS_PER_MS;
        while (clock_now_ns() < until_ns)
            transport_wait(w->t, until_ns); /* may return early, but not spin for ever */
        transport_wait(w->t, until_ns);     /* past: returns at once */
    }
    world_free(w);
}

/* From now on this process may not use io_uring, as in many containers. */
static void forbid_io_uring(void)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_io_uring_setup, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = ARRAY_LEN(filter), .filter = filter};
    must(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    must(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
}

static void test_where_io_uring_is_refused_libuv_takes_over(void **unused)
{
    (void)unused;
    pid_t pid = fork();
    if (pid == 0) {
        struct transport *t = NULL;
        struct err_detail d = {0};
        forbid_io_uring();
        bool refused = transport_new(&t, TRANSPORT_URING, SLOTS, &d) == ERR_UNSUPPORTED && d.text[0] != '\0';
        bool replaced =
            transport_new(&t, TRANSPORT_AUTO, SLOTS, &d) == ERR_OK && strcmp(t->ops->name, "libuv") == 0;
        transport_free(t);
        _exit(refused && replaced ? 0 : 1);
    }
    int status = -1;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
    static enum transport_kind uv = TRANSPORT_UV;
    static enum transport_kind uring = TRANSPORT_URING;
#define BOTH(test)                                                                                           \
    {#test " (libuv)", test, NULL, NULL, &uv},                                                               \
    {                                                                                                        \
#test " (io_uring)", test, NULL, NULL, &uring                                                        \
    }
    const struct CMUnitTest tests[] = {
        BOTH(bytes_go_both_ways),
        BOTH(what_is_flushed_may_change),
        BOTH(a_refusal_is_told_and_the_slot_is_free_again),
        BOTH(a_reset_is_told_after_the_bytes_before_it),
        BOTH(a_large_send_is_finished_and_told),
        BOTH(skipping_ends_where_it_should),
        BOTH(a_slot_is_reused_at_once),
        BOTH(closing_while_connecting_is_silent),
        BOTH(waiting_ends_at_the_deadline),
        cmocka_unit_test(test_where_io_uring_is_refused_libuv_takes_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
