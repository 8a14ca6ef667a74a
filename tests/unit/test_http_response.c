#include "agent/probe/http_response.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define CRLF "\r\n"

struct sample {
    const char *input;
    bool then_close;
    bool to_head;
    enum err e;
    uint32_t status;
    const char *body; /* when good */
};

static const struct sample samples[] = {
    /* good */
    {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nHi", .status = 200, .body = "Hi"},
    {"HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n", .status = 200, .body = ""},
    {"HTTP/1.0 404 Not Found\r\n\r\ngone", .then_close = true, .status = 404, .body = "gone"},
    {"HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n", .status = 204, .body = ""},
    {"HTTP/1.1 304 Not Modified\r\nTransfer-Encoding: chunked\r\n\r\n", .status = 304, .body = ""},
    {"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n", .to_head = true, .status = 200, .body = ""},
    {"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 201 Created\r\n"
     "Content-Length: 1\r\n\r\nx",
     .status = 201, .body = "x"},
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n3\r\nabc\r\nA;x=y\r\n0123456789\r\n0\r\nT: "
     "1\r\n\r\n",
     .status = 200, .body = "abc0123456789"},
    {"HTTP/1.1 200 OK\r\n\r\n", .then_close = true, .status = 200, .body = ""},
    /* not HTTP/1 */
    {"SSH-2.0-OpenSSH_9.2\r\n", .e = ERR_INVALID},
    {"HTTP/2.0 200 OK\r\n\r\n", .e = ERR_INVALID},
    {"http/1.1 200 OK\r\n\r\n", .e = ERR_INVALID},
    {"HTTP/1.1 20 OK\r\n\r\n", .e = ERR_INVALID},
    {"HTTP/1.1 2000 OK\r\n\r\n", .e = ERR_INVALID},
    {"HTTP/1.1 099 OK\r\n\r\n", .e = ERR_INVALID},
    {"HTTP/1.1  200 OK\r\n\r\n", .e = ERR_INVALID},
    {"\r\nHTTP/1.1 200 OK\r\n\r\n", .e = ERR_INVALID},
    {"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n", .e = ERR_INVALID},
    /* lines */
    {"HTTP/1.1 200 OK\nContent-Length: 0\n\n", .e = ERR_INVALID},
    {"HTTP/1.1 200 OK\r\nA: b\r\n c\r\n\r\n", .e = ERR_INVALID},
    {"HTTP/1.1 200 OK\r\nA : b\r\n\r\n", .e = ERR_INVALID},
    {"HTTP/1.1 200 OK\r\n: b\r\n\r\n", .e = ERR_INVALID},
    {"HTTP/1.1 200 OK\r\nno colon\r\n\r\n", .e = ERR_INVALID},
    {"HTTP/1.1 200 OK\r\nA: b\rc\r\n\r\n", .e = ERR_INVALID},
    {"HTTP/1.1 200 OK\r\nA: \x01\r\n\r\n", .e = ERR_INVALID},
    /* framing */
    {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nHi", .e = ERR_INVALID},
    {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nHi", .e = ERR_INVALID},
    {"HTTP/1.1 200 OK\r\nContent-Length: 2, 2\r\n\r\nHi", .e = ERR_INVALID},
    {"HTTP/1.1 200 OK\r\nContent-Length: -2\r\n\r\nHi", .e = ERR_INVALID},
    {"HTTP/1.1 200 OK\r\nContent-Length: +2\r\n\r\nHi", .e = ERR_INVALID},
    {"HTTP/1.1 200 OK\r\nContent-Length: 0x2\r\n\r\nHi", .e = ERR_INVALID},
    {"HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\nHi", .e = ERR_INVALID},
    {"HTTP/1.1 200 OK\r\nContent-Length: 9223372036854775808\r\n\r\nHi", .e = ERR_INVALID},
    {"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\nHi", .e = ERR_INVALID},
    {"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n", .e = ERR_INVALID},
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", .e = ERR_INVALID},
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n", .e = ERR_INVALID},
    {"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", .e = ERR_INVALID},
    {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nHi!", .e = ERR_INVALID},
    {"HTTP/1.1 204 No Content\r\n\r\nbody", .e = ERR_INVALID},
    {"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nHi", .then_close = true, .e = ERR_CLOSED},
    {"HTTP/1.1 200 OK\r\nContent-Le", .then_close = true, .e = ERR_CLOSED},
    {"", .then_close = true, .e = ERR_CLOSED},
    {"HTTP/1.1 100 Continue\r\n\r\n", .then_close = true, .e = ERR_CLOSED},
    /* chunks */
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", .e = ERR_INVALID},
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n", .e = ERR_INVALID},
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\r\n", .e = ERR_INVALID},
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n10000000000000000\r\n", .e = ERR_INVALID},
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nabc\r\n0\r\n\r\n", .e = ERR_INVALID},
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\n0\r\n\r\n", .e = ERR_INVALID},
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n", .then_close = true, .e = ERR_CLOSED},
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n", .then_close = true, .e = ERR_CLOSED},
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nbad trailer\r\n\r\n", .e = ERR_INVALID},
};

static enum err read_all(struct http_response *r, const struct sample *s, size_t piece, struct err_detail *d)
{
    enum err e = ERR_OK;
    size_t len = strlen(s->input);
    for (size_t i = 0; i < len && e == ERR_OK; i += piece)
        e = http_response_feed(r, s->input + i, len - i < piece ? len - i : piece, d);
    if (e == ERR_OK && s->then_close)
        e = http_response_end(r, d);
    return e;
}

static void test_samples_in_pieces(void **state)
{
    (void)state;
    static const size_t pieces[] = {1, 2, 7, 4096};
    for (size_t i = 0; i < ARRAY_LEN(samples) * ARRAY_LEN(pieces); i++) {
        const struct sample *s = &samples[i / ARRAY_LEN(pieces)];
        struct http_response r;
        struct err_detail d = {""};
        http_response_init(&r, s->to_head, 1000);
        enum err e = read_all(&r, s, pieces[i % ARRAY_LEN(pieces)], &d);
        if (e != s->e || (e != ERR_OK && d.text[0] == '\0'))
            fail_msg("%s: %s (%s), expected %s", s->input, err_text(e), d.text, err_text(s->e));
        if (e == ERR_OK) {
            assert_true(http_response_is_done(&r));
            assert_int_equal(r.framing.status, s->status);
            assert_int_equal(r.framing.body_len, strlen(s->body));
            assert_memory_equal(r.body.len > 0 ? r.body.data : "", s->body, strlen(s->body));
        }
        http_response_fini(&r);
    }
}

static void test_headers_are_lowered_and_trimmed(void **state)
{
    (void)state;
    struct http_response r;
    http_response_init(&r, false, 0);
    const char *text = "HTTP/1.1 200 OK\r\nX-Name: \t a b \t\r\nEmpty:\r\nContent-Length: 3\r\n\r\nabc";
    assert_int_equal(http_response_feed(&r, text, strlen(text), NULL), ERR_OK);
    assert_int_equal(r.headers.count, 3);
    assert_string_equal(r.headers.items[0].name, "x-name");
    assert_string_equal(r.headers.items[0].value, "a b");
    assert_string_equal(r.headers.items[1].value, "");
    assert_int_equal(r.framing.body_len, 3);
    assert_int_equal(r.body.len, 0); /* nothing is kept, everything is counted */
    http_response_fini(&r);
}

/* `count` header lines of `width` bytes each, CRLF included. */
static enum err feed_lines(size_t count, size_t width)
{
    struct http_response r;
    http_response_init(&r, false, 0);
    enum err e = http_response_feed(&r, "HTTP/1.1 200 OK\r\n", 17, NULL);
    char *line = test_malloc(width);
    memset(line, 'v', width);
    memcpy(line, "n:", 2);
    memcpy(line + width - 2, CRLF, 2);
    for (size_t i = 0; i < count && e == ERR_OK; i++)
        e = http_response_feed(&r, line, width, NULL);
    if (e == ERR_OK)
        e = http_response_feed(&r, CRLF, 2, NULL);
    test_free(line);
    http_response_fini(&r);
    return e;
}

static void test_limits(void **state)
{
    (void)state;
    assert_int_equal(feed_lines(LIMIT_HEADERS, 10), ERR_OK);
    assert_int_equal(feed_lines(LIMIT_HEADERS + 1, 10), ERR_TOO_BIG);
    size_t room = RESPONSE_HEAD_BYTES_MAX - strlen("HTTP/1.1 200 OK\r\n") - strlen(CRLF);
    assert_int_equal(feed_lines(1, room), ERR_OK);
    assert_int_equal(feed_lines(1, room + 1), ERR_TOO_BIG);
}

static void test_body_is_kept_up_to_its_limit(void **state)
{
    (void)state;
    struct http_response r;
    http_response_init(&r, false, 4);
    const char *text =
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n3\r\ndef\r\n0\r\n\r\n";
    assert_int_equal(http_response_feed(&r, text, strlen(text), NULL), ERR_OK);
    assert_int_equal(r.framing.body_len, 6);
    assert_int_equal(r.body.len, 4);
    assert_memory_equal(r.body.data, "abcd", 4);
    http_response_fini(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_samples_in_pieces),
        cmocka_unit_test(test_headers_are_lowered_and_trimmed),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_body_is_kept_up_to_its_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
