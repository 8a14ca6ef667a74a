#include "agent/probe/probe.h"

#include "agent/probe/port.h"
#include "common/clock.h"
#include "tests/support/scripted_server.h"
#include "tests/support/wait.h"

#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

struct outcome {
    unsigned calls;
    enum err e;
    uint64_t startup_ns;
    struct err_detail d;
};

static void on_ready(void *arg, enum err e, uint64_t startup_ns, const struct err_detail *d)
{
    struct outcome *o = arg;
    o->calls++;
    o->e = e;
    o->startup_ns = startup_ns;
    o->d = *d;
}

/* A socket that holds a free port of 127.0.0.1; connections are refused until listen(). */
static int bound_socket(uint16_t *port)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof at;
    must(fd >= 0 && bind(fd, (const struct sockaddr *)&at, sizeof at) == 0);
    must(getsockname(fd, (struct sockaddr *)&at, &len) == 0);
    *port = ntohs(at.sin_port);
    return fd;
}

static struct probe *start(uv_loop_t *loop, enum msg_ready_kind kind, uint16_t port, uint64_t timeout_ns,
                           struct outcome *o)
{
    struct probe_options options = {.loop = loop,
                                    .kind = kind,
                                    .host = "",
                                    .port = port,
                                    .path = "",
                                    .since_ns = clock_now_ns(),
                                    .timeout_ns = timeout_ns,
                                    .cb = on_ready,
                                    .arg = o};
    struct probe *p = NULL;
    struct err_detail d;
    must(probe_start(&options, &p, &d) == ERR_OK);
    return p;
}

struct late_listener {
    uv_timer_t timer;
    int fd;
    uint64_t listening_at_ns;
};

static void on_listen_time(uv_timer_t *timer)
{
    struct late_listener *l = CONTAINER_OF(timer, struct late_listener, timer);
    l->listening_at_ns = clock_now_ns();
    must(listen(l->fd, 8) == 0);
    uv_close((uv_handle_t *)timer, NULL);
}

static void test_tcp_is_met_once_it_listens(void **state)
{
    (void)state;
    uv_loop_t loop;
    must(uv_loop_init(&loop) == 0);
    uint16_t port = 0;
    struct late_listener late = {.fd = bound_socket(&port)};
    struct outcome o = {0};
    uint64_t before_ns = clock_now_ns();
    start(&loop, MSG_READY_TCP, port, 30 * NS_PER_S, &o);
    uint64_t after_ns = clock_now_ns();
    uv_timer_init(&loop, &late.timer);
    uv_timer_start(&late.timer, on_listen_time, 20, 0);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(o.calls, 1);
    assert_int_equal(o.e, ERR_OK);
    assert_true(o.startup_ns >= late.listening_at_ns - after_ns);
    assert_true(o.startup_ns <= clock_now_ns() - before_ns);
    close(late.fd);
    must(uv_loop_close(&loop) == 0);
}

static void expect_http(const char *answer, bool close_after, uint64_t timeout_ns, enum err e,
                        const char *text)
{
    uv_loop_t loop;
    must(uv_loop_init(&loop) == 0);
    struct script script = {.answer = answer, .close_after = close_after};
    struct scripted_server *server = scripted_server_new(&loop, &script);
    struct outcome o = {0};
    start(&loop, MSG_READY_HTTP, scripted_server_port(server), timeout_ns, &o);
    for (uint64_t limit_ns = wait_limit(); o.calls == 0;)
        assert_true(wait_turn(&loop, limit_ns));
    scripted_server_free(server);
    uv_run(&loop, UV_RUN_DEFAULT);
    must(uv_loop_close(&loop) == 0);
    if (o.e != e || (text != NULL && strstr(o.d.text, text) == NULL))
        fail_msg("%s: %s %s", answer, err_text(o.e), o.d.text);
}

static void test_any_http_answer_counts(void **state)
{
    (void)state;
    expect_http("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nHi", false, 30 * NS_PER_S, ERR_OK, NULL);
    expect_http("HTTP/1.1 503 Wait\r\nContent-Length: 0\r\n\r\n", true, 30 * NS_PER_S, ERR_OK, NULL);
    expect_http("HTTP/1.0 404 No\r\n\r\n", false, 30 * NS_PER_S, ERR_OK, NULL);
    /* the head is the answer, whatever becomes of the body */
    expect_http("HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\nH", true, 30 * NS_PER_S, ERR_OK, NULL);
}

static void test_other_answers_do_not(void **state)
{
    (void)state;
    expect_http("220 mail.example ESMTP\r\n", false, 30 * NS_PER_MS, ERR_TIMEOUT, "not HTTP/1");
    expect_http(NULL, false, 30 * NS_PER_MS, ERR_TIMEOUT, "not ready after 30ms");
}

static void test_refused_until_the_end(void **state)
{
    (void)state;
    uv_loop_t loop;
    must(uv_loop_init(&loop) == 0);
    uint16_t port = 0;
    int fd = bound_socket(&port);
    struct outcome o = {0};
    start(&loop, MSG_READY_HTTP, port, 20 * NS_PER_MS, &o);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(o.calls, 1);
    assert_int_equal(o.e, ERR_TIMEOUT);
    assert_non_null(strstr(o.d.text, "not ready after 20ms"));
    assert_non_null(strstr(o.d.text, "refused"));
    close(fd);
    must(uv_loop_close(&loop) == 0);
}

static void test_cancel(void **state)
{
    (void)state;
    uv_loop_t loop;
    must(uv_loop_init(&loop) == 0);
    uint16_t port = 0;
    int fd = bound_socket(&port);
    struct outcome o = {0};
    struct probe *p = start(&loop, MSG_READY_TCP, port, 30 * NS_PER_S, &o);
    for (int i = 0; i < 5; i++)
        uv_run(&loop, UV_RUN_ONCE);
    probe_cancel(p);
    probe_cancel(p);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(o.calls, 1);
    assert_int_equal(o.e, ERR_CANCELLED);
    close(fd);
    must(uv_loop_close(&loop) == 0);
}

static void test_bad_path_is_refused(void **state)
{
    (void)state;
    uv_loop_t loop;
    must(uv_loop_init(&loop) == 0);
    struct probe_options options = {.loop = &loop,
                                    .kind = MSG_READY_HTTP,
                                    .host = "",
                                    .port = 1,
                                    .path = "no slash",
                                    .since_ns = clock_now_ns(),
                                    .timeout_ns = NS_PER_S,
                                    .cb = on_ready};
    struct probe *p = NULL;
    struct err_detail d;
    assert_int_equal(probe_start(&options, &p, &d), ERR_INVALID);
    must(uv_loop_close(&loop) == 0);
}

static void test_port_in_use_names_its_holder(void **state)
{
    (void)state;
    uint16_t port = 0;
    int fd = bound_socket(&port);
    struct err_detail d;
    assert_int_equal(port_check_free(port, &d), ERR_BUSY);
    assert_non_null(strstr(d.text, "a socket that is only bound"));
    must(listen(fd, 1) == 0);
    assert_int_equal(port_check_free(port, &d), ERR_BUSY);
    char expected[64];
    snprintf(expected, sizeof expected, "port %u is in use by test_probe (pid %d)", port, (int)getpid());
    assert_non_null(strstr(d.text, expected));
    close(fd);
    assert_int_equal(port_check_free(port, &d), ERR_OK);
}

static void test_connections_that_are_over_do_not_count(void **state)
{
    (void)state;
    uint16_t port = 0;
    int fd = bound_socket(&port);
    struct sockaddr_in at = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int one = 1; /* as servers do: without it nobody can have the port for a minute */
    must(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) == 0 && listen(fd, 1) == 0);
    int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    must(client >= 0 && connect(client, (const struct sockaddr *)&at, sizeof at) == 0);
    int peer = accept(fd, NULL, NULL);
    must(peer >= 0 && close(peer) == 0); /* the server's side closes first: its port stays in TIME_WAIT */
    char byte;
    must(read(client, &byte, 1) == 0);
    close(client);
    close(fd);
    assert_int_equal(port_check_free(port, NULL), ERR_OK);
}

static void test_port_in_use_over_ipv6(void **state)
{
    (void)state;
    int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in6 at = {.sin6_family = AF_INET6, .sin6_addr = in6addr_any};
    socklen_t len = sizeof at;
    if (fd < 0 || bind(fd, (const struct sockaddr *)&at, sizeof at) != 0) {
        if (fd >= 0)
            close(fd);
        skip(); /* no IPv6 on this machine */
    }
    must(getsockname(fd, (struct sockaddr *)&at, &len) == 0 && listen(fd, 1) == 0);
    assert_int_equal(port_check_free(ntohs(at.sin6_port), NULL), ERR_BUSY);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tcp_is_met_once_it_listens),
        cmocka_unit_test(test_any_http_answer_counts),
        cmocka_unit_test(test_other_answers_do_not),
        cmocka_unit_test(test_refused_until_the_end),
        cmocka_unit_test(test_cancel),
        cmocka_unit_test(test_bad_path_is_refused),
        cmocka_unit_test(test_port_in_use_names_its_holder),
        cmocka_unit_test(test_connections_that_are_over_do_not_count),
        cmocka_unit_test(test_port_in_use_over_ipv6),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
