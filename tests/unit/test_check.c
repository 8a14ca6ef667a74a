#include "agent/probe/check.h"

#include "common/clock.h"
#include "common/mem.h"
#include "tests/support/scripted_server.h"
#include "tests/support/wait.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define OK_HEAD "HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=utf-8\r\n"
#define OK_HI   OK_HEAD "Content-Length: 2\r\n\r\nHi"

struct outcome {
    unsigned calls;
    enum err e;
    bool ok;
    char *difference;
};

static void on_checked(void *arg, enum err e, const struct msg_checked *result)
{
    struct outcome *o = arg;
    o->calls++;
    o->e = e;
    o->ok = result->ok;
    o->difference = mem_strdup(result->difference);
}

static struct msg_match exact(char *name, const char *text)
{
    return (struct msg_match){
        .kind = MSG_MATCH_EXACT, .name = name, .text = {(uint8_t *)(uintptr_t)text, strlen(text)}};
}

static struct msg_match contains(char *name, const char *text)
{
    struct msg_match m = exact(name, text);
    m.kind = MSG_MATCH_CONTAINS;
    return m;
}

static char *word(const char *text)
{
    return (char *)(uintptr_t)text; /* the check copies it */
}

/* A check for status 200 and body "Hi" with a long time-out; the caller changes what it is about. */
static struct msg_check plain_check(void)
{
    return (struct msg_check){.name = word("plain"),
                              .host = word("127.0.0.1"),
                              .request = {.method = word("GET"), .path = word("/")},
                              .status = 200,
                              .body = exact(word(""), "Hi"),
                              .timeout_ns = 30 * NS_PER_S};
}

/* Runs one check against one scripted answer; `requests` (may be NULL) gets what the server saw. */
static struct outcome run(struct msg_check *check, const struct script *script, char **requests)
{
    uv_loop_t loop;
    must(uv_loop_init(&loop) == 0);
    struct scripted_server *server = scripted_server_new(&loop, script);
    check->port = scripted_server_port(server);
    struct outcome o = {0};
    struct check *c = NULL;
    struct err_detail d;
    must(check_start(&loop, check, on_checked, &o, &c, &d) == ERR_OK);
    for (uint64_t limit_ns = wait_limit(); o.calls == 0;)
        assert_true(wait_turn(&loop, limit_ns));
    if (requests != NULL)
        *requests = mem_strdup(scripted_server_requests(server));
    scripted_server_free(server);
    uv_run(&loop, UV_RUN_DEFAULT);
    must(uv_loop_close(&loop) == 0);
    return o;
}

static void expect_difference(struct msg_check *check, const char *answer, bool close_after, const char *part)
{
    struct script script = {.answer = answer, .close_after = close_after};
    struct outcome o = run(check, &script, NULL);
    assert_int_equal(o.calls, 1);
    if (part == NULL ? !o.ok : o.ok || strstr(o.difference, part) == NULL)
        fail_msg("expected \"%s\", got \"%s\"", part != NULL ? part : "", o.difference);
    free(o.difference);
}

static void test_right_answers(void **state)
{
    (void)state;
    struct msg_check check = plain_check();
    struct msg_match headers[] = {contains(word("content-type"), "text/plain"), exact(word("x"), "b")};
    check.headers = headers;
    check.header_count = 1;
    check.has_body_bytes = true;
    check.body_bytes = 2;
    expect_difference(&check, OK_HI, false, NULL);
    expect_difference(&check, OK_HEAD "Transfer-Encoding: chunked\r\n\r\n1\r\nH\r\n1\r\ni\r\n0\r\n\r\n",
                      false, NULL);
    expect_difference(&check, OK_HEAD "\r\nHi", true, NULL);
    check.header_count = 2;
    expect_difference(&check, OK_HEAD "X: a\r\nX: b\r\nContent-Length: 2\r\n\r\nHi", false, NULL);
}

static void test_wrong_answers(void **state)
{
    (void)state;
    struct msg_check check = plain_check();
    expect_difference(&check, "HTTP/1.1 500 Oops\r\nContent-Length: 2\r\n\r\nHi", false,
                      "status: expected 200, got 500");
    expect_difference(&check, OK_HEAD "Content-Length: 5\r\n\r\nHello", false,
                      "body: expected \"Hi\" (2 bytes), got \"Hello\" (5 bytes)");
    expect_difference(&check, OK_HEAD "Content-Length: 3\r\n\r\nHi\n", false, "got \"Hi\\n\" (3 bytes)");
    expect_difference(&check, OK_HEAD "Content-Length: 0\r\n\r\n", false, "got \"\" (0 bytes)");
    expect_difference(&check, "HTTP/1.1 404 No\r\nContent-Length: 1\r\n\r\nx", false,
                      "got 404; body: expected");

    check.body = contains(word(""), "needle");
    expect_difference(&check, OK_HEAD "Content-Length: 4\r\n\r\nneed", false,
                      "body: expected to contain \"needle\", got \"need\" (4 bytes)");
    check.body = (struct msg_match){0};
    check.has_body_bytes = true;
    check.body_bytes = 3;
    expect_difference(&check, OK_HI, false, "body size: expected exactly 3 bytes, got 2");

    check = plain_check();
    struct msg_match header = exact(word("content-type"), "text/plain");
    check.headers = &header;
    check.header_count = 1;
    expect_difference(&check, OK_HI, false,
                      "header content-type: expected \"text/plain\", got \"text/plain; charset=utf-8\"");
    header = contains(word("etag"), "x");
    expect_difference(&check, OK_HI, false, "header etag: expected to contain \"x\", got no such header");
}

static void test_broken_answers(void **state)
{
    (void)state;
    struct msg_check check = plain_check();
    expect_difference(&check, "garbage\r\n\r\n", false, "not HTTP/1");
    expect_difference(&check, OK_HEAD "Content-Length: 5\r\n\r\nHi", true,
                      "closed inside the body, after 2 bytes");
    expect_difference(&check, "HTTP/1.1 200 OK\r\nConte", true, "closed before the answer's head");
    expect_difference(&check, OK_HEAD "Content-Length: 2\r\n\r\nHi!!", false, "more bytes than");
    expect_difference(&check, OK_HEAD "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\nHi", false,
                      "Content-Length and Transfer-Encoding are both given");
}

static void test_reset_is_no_end_of_a_body(void **state)
{
    (void)state;
    struct msg_check check = plain_check();
    struct script reset = {.answer = OK_HEAD "\r\nHi", .reset = true}; /* whole, had it been closed */
    struct outcome o = run(&check, &reset, NULL);
    assert_false(o.ok);
    assert_non_null(strstr(o.difference, "connection reset"));
    free(o.difference);
}

static void test_silence_times_out(void **state)
{
    (void)state;
    struct msg_check check = plain_check();
    check.timeout_ns = 20 * NS_PER_MS;
    expect_difference(&check, NULL, false, "no answer within 20ms");
    expect_difference(&check, OK_HEAD "Content-Length: 5\r\n\r\nHi", false,
                      "not complete after 20ms: 2 bytes");
}

static void test_long_texts_are_shortened(void **state)
{
    (void)state;
    char body[401];
    memset(body, 'a', 400);
    body[400] = '\0';
    char *answer = mem_printf(OK_HEAD "Content-Length: 400\r\n\r\n%.*sb", 399, body);
    struct msg_check check = plain_check();
    check.body = exact(word(""), body);
    expect_difference(&check, answer, false, "\"... (400 bytes), got \"");
    expect_difference(&check, answer, false, "they differ from byte 399 on");
    free(answer);
}

static void test_request_is_sent_as_asked(void **state)
{
    (void)state;
    struct msg_header header = {word("X-Test"), word("one two")};
    struct msg_check check = plain_check();
    check.request = (struct msg_request){.method = word("POST"),
                                         .path = word("/echo?a=b"),
                                         .headers = {&header, 1},
                                         .body = {(uint8_t *)word("body!"), 5}};
    char *requests = NULL;
    struct script script = {.answer = OK_HI};
    struct outcome o = run(&check, &script, &requests);
    assert_true(o.ok);
    char *expected = mem_printf("POST /echo?a=b HTTP/1.1\r\nX-Test: one two\r\nHost: 127.0.0.1:%u\r\n"
                                "Content-Length: 5\r\n\r\nbody!",
                                check.port);
    assert_string_equal(requests, expected);
    free(expected);
    free(requests);
    free(o.difference);
}

static void test_head_has_no_body(void **state)
{
    (void)state;
    struct msg_check check = plain_check();
    check.request.method = word("HEAD");
    check.body = exact(word(""), "");
    expect_difference(&check, OK_HEAD "Content-Length: 1234\r\n\r\n", false, NULL);
}

static void test_bad_requests_are_refused(void **state)
{
    (void)state;
    struct msg_header header = {word("X"), word("a\r\nEvil: 1")};
    struct {
        const char *method;
        const char *path;
        struct msg_headers headers;
    } bad[] = {
        {"GE T", "/", {NULL, 0}},    {"GET", "/a b", {NULL, 0}}, {"GET", "relative", {NULL, 0}},
        {"GET", "/\r\n", {NULL, 0}}, {"GET", "/", {&header, 1}},
    };
    uv_loop_t loop;
    must(uv_loop_init(&loop) == 0);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct msg_check check = plain_check();
        check.port = 1;
        check.request = (struct msg_request){
            .method = word(bad[i].method), .path = word(bad[i].path), .headers = bad[i].headers};
        struct check *c = NULL;
        struct err_detail d = {""};
        assert_int_equal(check_start(&loop, &check, on_checked, NULL, &c, &d), ERR_INVALID);
        assert_true(d.text[0] != '\0');
    }
    must(uv_loop_close(&loop) == 0);
}

static void test_cancel(void **state)
{
    (void)state;
    uv_loop_t loop;
    must(uv_loop_init(&loop) == 0);
    struct script silent = {.answer = NULL};
    struct scripted_server *server = scripted_server_new(&loop, &silent);
    struct msg_check check = plain_check();
    check.port = scripted_server_port(server);
    struct outcome o = {0};
    struct check *c = NULL;
    assert_int_equal(check_start(&loop, &check, on_checked, &o, &c, NULL), ERR_OK);
    for (uint64_t limit_ns = wait_limit(); scripted_server_requests(server)[0] == '\0';)
        assert_true(wait_turn(&loop, limit_ns));
    check_cancel(c);
    scripted_server_free(server);
    uv_run(&loop, UV_RUN_DEFAULT);
    must(uv_loop_close(&loop) == 0);
    assert_int_equal(o.calls, 1);
    assert_int_equal(o.e, ERR_CANCELLED);
    free(o.difference);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_right_answers),
        cmocka_unit_test(test_wrong_answers),
        cmocka_unit_test(test_broken_answers),
        cmocka_unit_test(test_reset_is_no_end_of_a_body),
        cmocka_unit_test(test_silence_times_out),
        cmocka_unit_test(test_long_texts_are_shortened),
        cmocka_unit_test(test_request_is_sent_as_asked),
        cmocka_unit_test(test_head_has_no_body),
        cmocka_unit_test(test_bad_requests_are_refused),
        cmocka_unit_test(test_cancel),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
