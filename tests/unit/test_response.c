#include "agent/load/quick.h"
#include "common/mem.h"
#include "common/response.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* What a whole answer should read as; `closed` means that the peer closes after the text. */
struct sample {
    const char *name;
    const char *text;
    bool to_head;
    bool closed;
    enum response_fault fault;
    uint16_t status;
    uint64_t body_len;
    bool keep_alive;
    size_t surplus;
};

#define OK "HTTP/1.1 200 OK\r\n"

static const struct sample samples[] = {
    {"length", OK "Content-Length: 5\r\n\r\nhello", .status = 200, .body_len = 5, .keep_alive = true},
    {"any case", OK "CONTENT-length:5 \r\ncOnNeCtIoN: CLOSE\r\n\r\nhello", .status = 200, .body_len = 5},
    {"empty", OK "Content-Length: 0\r\n\r\n", .status = 200, .keep_alive = true},
    {"surplus", OK "Content-Length: 2\r\n\r\nhello", .status = 200, .body_len = 2, .keep_alive = true,
     .surplus = 3},
    {"no reason", "HTTP/1.1 204 \r\n\r\n", .status = 204, .keep_alive = true},
    {"nothing after the code", "HTTP/1.1 204\r\n\r\n", .status = 204, .keep_alive = true},
    {"204 with length", "HTTP/1.1 204 N\r\nContent-Length: 7\r\n\r\n", .status = 204, .keep_alive = true},
    {"304 with length", "HTTP/1.1 304 N\r\nContent-Length: 7\r\n\r\n", .status = 304, .keep_alive = true},
    {"head", OK "Content-Length: 7\r\n\r\n", .to_head = true, .status = 200, .keep_alive = true},
    {"head, chunked", OK "Transfer-Encoding: chunked\r\n\r\n", .to_head = true, .status = 200,
     .keep_alive = true},
    {"head, close-delimited", OK "\r\n", .to_head = true, .status = 200, .keep_alive = true},
    {"interim",
     "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nLink: </a>\r\n\r\n" OK "Content-Length: 1\r\n\r\nx",
     .status = 200, .body_len = 1, .keep_alive = true},
    {"chunked", OK "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n00\r\n\r\n", .status = 200, .body_len = 5,
     .keep_alive = true},
    {"chunked, extensions, trailers",
     OK "Transfer-Encoding: Chunked\r\n\r\n5;a=\"b\"\r\nhello\r\nA ; x\r\n0123456789\r\n0\r\nX-Sum: "
        "1\r\nY:2\r\n\r\n",
     .status = 200, .body_len = 15, .keep_alive = true},
    {"chunked, surplus", OK "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\nHTTP", .status = 200,
     .keep_alive = true, .surplus = 4},
    {"until close", OK "\r\nwhatever", .closed = true, .status = 200, .body_len = 8},
    {"until close, empty", OK "X: y\r\n\r\n", .closed = true, .status = 200},
    {"1.0", "HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\nx", .status = 200, .body_len = 1},
    {"1.0 keep-alive", "HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\nContent-Length: 1\r\n\r\nx",
     .status = 200, .body_len = 1, .keep_alive = true},
    {"close in a list", OK "Connection: x, close ,keep-alive\r\nContent-Length: 0\r\n\r\n", .status = 200},
    {"other status", "HTTP/1.1 999 What\r\nContent-Length: 0\r\n\r\n", .status = 999, .keep_alive = true},

    {"not HTTP", "SSH-2.0-OpenSSH\r\n\r\n", .fault = RESPONSE_STATUS_LINE},
    {"HTTP/2", "HTTP/2 200\r\n\r\n", .fault = RESPONSE_STATUS_LINE},
    {"status 099", "HTTP/1.1 099 X\r\n\r\n", .fault = RESPONSE_STATUS_LINE},
    {"status of 4 digits", "HTTP/1.1 2000 X\r\n\r\n", .fault = RESPONSE_STATUS_LINE},
    {"empty line first", "\r\nHTTP/1.1 200 OK\r\n\r\n", .fault = RESPONSE_STATUS_LINE},
    {"bare LF", "HTTP/1.1 200 OK\nContent-Length: 0\n\n", .fault = RESPONSE_BARE_LF},
    {"no colon", OK "Content-Length 5\r\n\r\n", .fault = RESPONSE_HEADER_LINE},
    {"blank before colon", OK "Content-Length : 5\r\n\r\n", .fault = RESPONSE_HEADER_LINE},
    {"no name", OK ": 5\r\n\r\n", .fault = RESPONSE_HEADER_LINE},
    {"control byte", OK "X: a\001b\r\n\r\n", .fault = RESPONSE_HEADER_LINE},
    {"CR in a value", OK "X: a\rb\r\n\r\n", .fault = RESPONSE_HEADER_LINE},
    {"folding", OK "X: a\r\n b\r\n\r\n", .fault = RESPONSE_FOLDING},
    {"length twice", OK "Content-Length: 5\r\nContent-Length: 5\r\n\r\n", .fault = RESPONSE_LENGTH_CONFLICT},
    {"lengths differ", OK "Content-Length: 5\r\nContent-Length: 6\r\n\r\n",
     .fault = RESPONSE_LENGTH_CONFLICT},
    {"length list", OK "Content-Length: 5, 5\r\n\r\n", .fault = RESPONSE_LENGTH_CONFLICT},
    {"length with a sign", OK "Content-Length: +5\r\n\r\n", .fault = RESPONSE_LENGTH_VALUE},
    {"length in hex", OK "Content-Length: 0x5\r\n\r\n", .fault = RESPONSE_LENGTH_VALUE},
    {"no length", OK "Content-Length:\r\n\r\n", .fault = RESPONSE_LENGTH_VALUE},
    {"huge length", OK "Content-Length: 9999999999999999999\r\n\r\n", .fault = RESPONSE_LENGTH_VALUE},
    {"length and chunked", OK "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
     .fault = RESPONSE_LENGTH_AND_CHUNKED},
    {"gzip", OK "Transfer-Encoding: gzip, chunked\r\n\r\n", .fault = RESPONSE_CODING},
    {"chunked twice", OK "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
     .fault = RESPONSE_CODING},
    {"1.0 chunked", "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", .fault = RESPONSE_CODING_HTTP10},
    {"switching", "HTTP/1.1 101 S\r\n\r\n", .fault = RESPONSE_SWITCHING},
    {"chunk size", OK "Transfer-Encoding: chunked\r\n\r\nxyz\r\n", .fault = RESPONSE_CHUNK_SIZE},
    {"chunk size missing", OK "Transfer-Encoding: chunked\r\n\r\n\r\n", .fault = RESPONSE_CHUNK_SIZE},
    {"chunk size huge", OK "Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n",
     .fault = RESPONSE_CHUNK_SIZE},
    {"chunk size, bare LF", OK "Transfer-Encoding: chunked\r\n\r\n5\nhello\r\n",
     .fault = RESPONSE_CHUNK_SIZE},
    {"extension, bare LF", OK "Transfer-Encoding: chunked\r\n\r\n5;x\nhello\r\n", .fault = RESPONSE_BARE_LF},
    {"chunk too long", OK "Transfer-Encoding: chunked\r\n\r\n5\r\nhello!\r\n", .fault = RESPONSE_CHUNK_END},
    {"chunk without LF", OK "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\r", .fault = RESPONSE_CHUNK_END},
    {"trailer folded", OK "Transfer-Encoding: chunked\r\n\r\n0\r\n x\r\n\r\n", .fault = RESPONSE_FOLDING},
    {"trailer, bare LF", OK "Transfer-Encoding: chunked\r\n\r\n0\r\nX: y\n\r\n", .fault = RESPONSE_BARE_LF},
    {"short body", OK "Content-Length: 5\r\n\r\nhell", .closed = true, .fault = RESPONSE_CLOSED_IN_BODY,
     .status = 200, .body_len = 4, .keep_alive = true},
    {"short chunk", OK "Transfer-Encoding: chunked\r\n\r\n5\r\nhell", .closed = true,
     .fault = RESPONSE_CLOSED_IN_BODY, .status = 200, .body_len = 4, .keep_alive = true},
    {"no last chunk", OK "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", .closed = true,
     .fault = RESPONSE_CLOSED_IN_BODY, .status = 200, .body_len = 5, .keep_alive = true},
    {"short head", OK "Content-Length: 5\r\n", .closed = true, .fault = RESPONSE_CLOSED_IN_HEAD},
};

/* Feeds the text in the given pieces and checks the outcome. */
static void check(const struct sample *s, const size_t *cuts, size_t cut_count)
{
    struct response r = {0};
    response_init(&r, s->to_head);
    size_t len = strlen(s->text);
    size_t at = 0;
    size_t eaten = 0;
    for (size_t i = 0; i <= cut_count && r.fault == RESPONSE_NONE && r.state != RESPONSE_DONE; i++) {
        size_t end = i < cut_count ? cuts[i] : len;
        /* A copy of the exact size lets the sanitizer see every byte read too far. */
        uint8_t *piece = mem_dup(s->text + at, end - at);
        eaten += response_feed(&r, piece, end - at, NULL);
        free(piece);
        at = end;
    }
    if (s->closed)
        response_end(&r);
    if (r.fault != s->fault)
        fail_msg("%s: fault '%s', expected '%s'", s->name, response_fault_text((enum response_fault)r.fault),
                 response_fault_text(s->fault));
    if (s->fault == RESPONSE_NONE) {
        assert_int_equal(r.state, RESPONSE_DONE);
        assert_int_equal(r.status, s->status);
        assert_int_equal(r.body_len, s->body_len);
        assert_int_equal(r.keep_alive, s->keep_alive);
        assert_int_equal(len - eaten, s->surplus);
    }
    response_fini(&r);
}

static void test_reads_whole_answers(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < ARRAY_LEN(samples); i++)
        check(&samples[i], NULL, 0);
}

static void test_reads_answers_split_at_every_byte(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < ARRAY_LEN(samples); i++)
        for (size_t cut = 0; cut <= strlen(samples[i].text); cut++)
            check(&samples[i], &cut, 1);
}

static void test_reads_answers_split_at_every_pair_of_bytes(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < ARRAY_LEN(samples); i++) {
        size_t len = strlen(samples[i].text);
        for (size_t a = 0; a <= len; a++)
            for (size_t b = a; b <= len; b++)
                check(&samples[i], (size_t[]){a, b}, 2);
    }
}

static void test_reads_answers_byte_by_byte(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < ARRAY_LEN(samples); i++) {
        size_t cuts[512];
        size_t len = strlen(samples[i].text);
        assert_true(len < ARRAY_LEN(cuts));
        for (size_t k = 0; k < len; k++)
            cuts[k] = k + 1;
        check(&samples[i], cuts, len);
    }
}

/* A head of exactly `len` bytes. */
static char *head_of(size_t len)
{
    static const char start[] = OK "Content-Length: 0\r\nX: ";
    char *head = mem_alloc(len);
    memset(head, 'x', len);
    memcpy(head, start, sizeof start - 1);
    memcpy(head + len - 4, "\r\n\r\n", 4);
    return head;
}

static enum response_fault feed_in_pieces(const char *text, size_t len, size_t piece)
{
    struct response r = {0};
    response_init(&r, false);
    for (size_t at = 0; at < len && r.fault == RESPONSE_NONE && r.state != RESPONSE_DONE; at += piece)
        (void)response_feed(&r, (const uint8_t *)text + at, len - at < piece ? len - at : piece, NULL);
    enum response_fault f = (enum response_fault)r.fault;
    if (f == RESPONSE_NONE)
        assert_int_equal(r.state, RESPONSE_DONE);
    response_fini(&r);
    return f;
}

static void test_heads_have_a_limit(void **unused)
{
    (void)unused;
    static const size_t pieces[] = {1024, 4096, RESPONSE_HEAD_BYTES_MAX * 2};
    for (size_t i = 0; i < ARRAY_LEN(pieces); i++) {
        char *at_limit = head_of(RESPONSE_HEAD_BYTES_MAX);
        assert_int_equal(feed_in_pieces(at_limit, RESPONSE_HEAD_BYTES_MAX, pieces[i]), RESPONSE_NONE);
        free(at_limit);
        char *over = head_of(RESPONSE_HEAD_BYTES_MAX + 1);
        assert_int_equal(feed_in_pieces(over, RESPONSE_HEAD_BYTES_MAX + 1, pieces[i]), RESPONSE_HEAD_TOO_BIG);
        free(over);
    }
}

static void repeated(struct buf *b, const char *start, const char *text, size_t count, const char *end)
{
    buf_init(b, 1024 * 1024);
    assert_int_equal(buf_append_text(b, start), ERR_OK);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(buf_append_text(b, text), ERR_OK);
    assert_int_equal(buf_append_text(b, end), ERR_OK);
}

static void test_counts_have_limits(void **unused)
{
    (void)unused;
    static const struct {
        const char *start;
        const char *text;
        const char *end;
        size_t at_limit;
        enum response_fault fault;
    } cases[] = {
        {"", "HTTP/1.1 100 C\r\n\r\n", OK "Content-Length: 0\r\n\r\n", RESPONSE_INTERIM_MAX,
         RESPONSE_INTERIM_TOO_MANY},
        {OK "Transfer-Encoding: chunked\r\n\r\n1;", "x", "\r\na\r\n0\r\n\r\n",
         RESPONSE_CHUNK_LINE_BYTES_MAX - 3, RESPONSE_CHUNK_LINE_TOO_BIG},
        {OK "Transfer-Encoding: chunked\r\n\r\n0\r\nn:", "x", "\r\n\r\n", RESPONSE_TRAILER_BYTES_MAX - 6,
         RESPONSE_TRAILER_TOO_BIG},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct buf b;
        repeated(&b, cases[i].start, cases[i].text, cases[i].at_limit, cases[i].end);
        assert_int_equal(feed_in_pieces(b.data, b.len, b.len), RESPONSE_NONE);
        buf_fini(&b);
        repeated(&b, cases[i].start, cases[i].text, cases[i].at_limit + 1, cases[i].end);
        assert_int_equal(feed_in_pieces(b.data, b.len, b.len), cases[i].fault);
        buf_fini(&b);
    }
}

static void test_one_reader_takes_answer_after_answer(void **unused)
{
    (void)unused;
    struct response r = {0};
    for (int round = 0; round < 3; round++) {
        for (size_t i = 0; i < ARRAY_LEN(samples); i++) {
            response_init(&r, samples[i].to_head);
            assert_true(response_untouched(&r));
            (void)response_feed(&r, (const uint8_t *)samples[i].text, strlen(samples[i].text), NULL);
            if (samples[i].closed)
                response_end(&r);
            assert_int_equal(r.fault, samples[i].fault);
        }
    }
    response_fini(&r);
}

static void collect(void *arg, const uint8_t *data, size_t len)
{
    assert_int_equal(buf_append(arg, data, len), ERR_OK);
}

static void test_hands_out_the_body_without_framing(void **unused)
{
    (void)unused;
    static const char text[] = OK "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n4\r\ndefg\r\n0\r\n\r\n";
    for (size_t cut = 0; cut < sizeof text - 1; cut++) {
        struct buf body;
        buf_init(&body, 64);
        const struct response_sink sink = {.arg = &body, .on_body = collect};
        struct response r = {0};
        response_init(&r, false);
        (void)response_feed(&r, (const uint8_t *)text, cut, &sink);
        (void)response_feed(&r, (const uint8_t *)text + cut, sizeof text - 1 - cut, &sink);
        assert_string_equal(body.data, "abcdefg");
        response_fini(&r);
        buf_fini(&body);
    }
}

/* Whatever `quick` knows must be what the patient reader says. */
static void test_quick_and_patient_agree(void **unused)
{
    (void)unused;
    struct quick *q = mem_zalloc(1, sizeof *q);
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < ARRAY_LEN(samples); i++) {
            const uint8_t *text = (const uint8_t *)samples[i].text;
            size_t len = strlen(samples[i].text);
            if (!quick_know(q, text, len))
                continue;
            assert_true(quick_know(q, text, len));
            struct response_head h;
            assert_int_equal(response_head_parse(text, q->head_len, &h), RESPONSE_NONE);
            assert_int_equal(h.status, q->head.status);
            assert_int_equal(h.length, q->head.length);
            assert_int_equal(h.keep_alive, q->head.keep_alive);
            assert_int_equal(h.chunked, q->head.chunked);
        }
    }
    static const char learnt[] = OK "Content-Length: 5\r\n\r\n";
    assert_true(quick_know(q, (const uint8_t *)learnt, sizeof learnt - 1));
    assert_false(quick_know(q, (const uint8_t *)learnt, sizeof learnt - 2));
    free(q);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reads_whole_answers),
        cmocka_unit_test(test_reads_answers_split_at_every_byte),
        cmocka_unit_test(test_reads_answers_split_at_every_pair_of_bytes),
        cmocka_unit_test(test_reads_answers_byte_by_byte),
        cmocka_unit_test(test_heads_have_a_limit),
        cmocka_unit_test(test_counts_have_limits),
        cmocka_unit_test(test_one_reader_takes_answer_after_answer),
        cmocka_unit_test(test_hands_out_the_body_without_framing),
        cmocka_unit_test(test_quick_and_patient_agree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
