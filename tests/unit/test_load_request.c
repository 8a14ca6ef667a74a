#include "agent/load/request_set.h"
#include "agent/load/target.h"
#include "common/mem.h"

#include <netdb.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

static char file_path[64];

/* A file with this text; its path. */
static const char *file_with(const char *text)
{
    if (file_path[0] != '\0')
        unlink(file_path);
    snprintf(file_path, sizeof file_path, "/tmp/test_load_request.XXXXXX");
    int fd = mkstemp(file_path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
    return file_path;
}

static int remove_file(void **unused)
{
    (void)unused;
    if (file_path[0] != '\0')
        unlink(file_path);
    return 0;
}

/* --- URLs --- */

static void test_reads_urls(void **unused)
{
    (void)unused;
    static const struct {
        const char *url;
        const char *host;
        const char *authority;
        uint16_t port;
        const char *path;
        bool tls;
    } cases[] = {
        {"http://a.b", "a.b", "a.b", 80, "/", false},
        {"HTTP://a:81/x?y=1", "a", "a:81", 81, "/x?y=1", false},
        {"https://a:443/", "a", "a", 443, "/", true},
        {"https://a:80?q", "a", "a:80", 80, "/?q", true},
        {"http://[::1]:8080/p", "::1", "[::1]:8080", 8080, "/p", false},
        {"http://[fe80::1]", "fe80::1", "[fe80::1]", 80, "/", false},
        {"http://127.0.0.1:65535//", "127.0.0.1", "127.0.0.1:65535", 65535, "//", false},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct target t;
        struct err_detail d = {0};
        if (target_parse(&t, cases[i].url, NULL, &d) != ERR_OK)
            fail_msg("%s: %s", cases[i].url, d.text);
        assert_string_equal(t.host, cases[i].host);
        assert_string_equal(t.authority, cases[i].authority);
        assert_int_equal(t.port, cases[i].port);
        assert_string_equal(t.path, cases[i].path);
        assert_int_equal(t.tls, cases[i].tls);
        target_fini(&t);
    }
}

static void test_refuses_other_urls(void **unused)
{
    (void)unused;
    static const char *const bad[] = {"",
                                      "a",
                                      "ftp://a/",
                                      "http://",
                                      "http:///x",
                                      "http://a:0",
                                      "http://a:x",
                                      "http://a:65536",
                                      "http://u@a/",
                                      "http://u:p@a/",
                                      "http://a/#x",
                                      "http://a/ b",
                                      "http://a/\n",
                                      "http://[::1",
                                      "http://[::1]x",
                                      "http://a:/",
                                      "http://a/\xc3\xa9"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct target t;
        struct err_detail d = {0};
        if (target_parse(&t, bad[i], NULL, &d) == ERR_OK)
            fail_msg("'%s' was accepted", bad[i]);
        assert_true(strlen(d.text) > 10);
        target_fini(&t);
    }
    char *large = mem_alloc(TARGET_URL_BYTES_MAX + 2);
    memset(large, 'a', TARGET_URL_BYTES_MAX + 1);
    memcpy(large, "http://a/", 9);
    large[TARGET_URL_BYTES_MAX + 1] = '\0';
    struct target t;
    assert_int_equal(target_parse(&t, large, NULL, NULL), ERR_TOO_BIG);
    target_fini(&t);
    large[TARGET_URL_BYTES_MAX] = '\0';
    assert_int_equal(target_parse(&t, large, NULL, NULL), ERR_OK);
    target_fini(&t);
    free(large);
}

#define ADDRESS_TEXT_BYTES 128u

/* "127.0.0.1:80", "[::1]:80" or the socket's path. */
static const char *address_text(const struct target_address *a, char *out, size_t size)
{
    if (a->addr.ss_family == AF_UNIX) {
        snprintf(out, size, "%s", ((const struct sockaddr_un *)&a->addr)->sun_path);
        return out;
    }
    char host[64] = "?";
    char port[16] = "?";
    (void)getnameinfo((const struct sockaddr *)&a->addr, a->len, host, sizeof host, port, sizeof port,
                      NI_NUMERICHOST | NI_NUMERICSERV);
    snprintf(out, size, a->addr.ss_family == AF_INET6 ? "[%s]:%s" : "%s:%s", host, port);
    return out;
}

static void test_resolves_addresses_and_sockets(void **unused)
{
    (void)unused;
    char text[ADDRESS_TEXT_BYTES];
    struct target t;
    assert_int_equal(target_parse(&t, "http://127.0.0.1:5/", NULL, NULL), ERR_OK);
    assert_int_equal(target_resolve(&t, 1000000, NULL), ERR_OK);
    assert_int_equal(t.address_count, 1);
    assert_string_equal(address_text(&t.addresses[0], text, sizeof text), "127.0.0.1:5");
    target_fini(&t);
    assert_int_equal(target_parse(&t, "http://[::1]:5/", NULL, NULL), ERR_OK);
    assert_int_equal(target_resolve(&t, 1000000, NULL), ERR_OK);
    assert_string_equal(address_text(&t.addresses[0], text, sizeof text), "[::1]:5");
    target_fini(&t);
    assert_int_equal(target_parse(&t, "http://name/", "/tmp/x.sock", NULL), ERR_OK);
    assert_int_equal(target_resolve(&t, 1000000, NULL), ERR_OK);
    assert_string_equal(address_text(&t.addresses[0], text, sizeof text), "/tmp/x.sock");
    target_fini(&t);

    char path[sizeof((struct sockaddr_un *)NULL)->sun_path + 1];
    memset(path, 'p', sizeof path);
    path[sizeof path - 2] = '\0';
    assert_int_equal(target_parse(&t, "http://name/", path, NULL), ERR_OK);
    target_fini(&t);
    path[sizeof path - 2] = 'p';
    path[sizeof path - 1] = '\0';
    assert_int_equal(target_parse(&t, "http://name/", path, NULL), ERR_TOO_BIG);
    target_fini(&t);

    struct target_address a;
    assert_int_equal(target_parse_source(&a, "127.0.0.9", NULL), ERR_OK);
    assert_int_equal(a.addr.ss_family, AF_INET);
    assert_int_equal(target_parse_source(&a, "::1", NULL), ERR_OK);
    assert_int_equal(a.addr.ss_family, AF_INET6);
    assert_int_equal(target_parse_source(&a, "localhost", NULL), ERR_INVALID);
}

/* --- bytes --- */

static struct request_set *build(struct options *o, const char *url, enum err expected)
{
    struct request_set *s = mem_zalloc(1, sizeof *s);
    struct target t;
    struct err_detail d = {0};
    assert_int_equal(target_parse(&t, url, NULL, &d), ERR_OK);
    enum err e = request_set_build(s, &t, o, &d);
    if (e != expected)
        fail_msg("%s: %s", err_text(e), d.text);
    if (e != ERR_OK)
        assert_true(strlen(d.text) > 10);
    target_fini(&t);
    return s;
}

static void drop(struct request_set *s)
{
    request_set_fini(s);
    free(s);
}

static void expect_bytes(struct options o, const char *text)
{
    expect_init(&o.expect);
    struct request_set *s = build(&o, "http://h:8/p?q", ERR_OK);
    assert_int_equal(s->items[0].len, strlen(text));
    assert_memory_equal(s->items[0].bytes, text, strlen(text));
    drop(s);
}

static void test_sends_what_was_asked_for_and_nothing_else(void **unused)
{
    (void)unused;
    expect_bytes((struct options){0}, "GET /p?q HTTP/1.1\r\nHost: h:8\r\n\r\n");
    expect_bytes((struct options){.method = "HEAD"}, "HEAD /p?q HTTP/1.1\r\nHost: h:8\r\n\r\n");
    expect_bytes((struct options){.method = "PUT"},
                 "PUT /p?q HTTP/1.1\r\nHost: h:8\r\nContent-Length: 0\r\n\r\n");
    expect_bytes((struct options){.has_body = true, .body = (char *)"abc", .body_len = 3},
                 "POST /p?q HTTP/1.1\r\nHost: h:8\r\nContent-Length: 3\r\n\r\nabc");
    expect_bytes((struct options){.keep_alive_off = true},
                 "GET /p?q HTTP/1.1\r\nHost: h:8\r\nConnection: close\r\n\r\n");
    expect_bytes((struct options){.keep_alive_off = true, .headers = {{"connection: Close"}, 1}},
                 "GET /p?q HTTP/1.1\r\nconnection: Close\r\nHost: h:8\r\n\r\n");
    expect_bytes((struct options){.headers = {{"host: other", "X-A:b"}, 2}},
                 "GET /p?q HTTP/1.1\r\nhost: other\r\nX-A:b\r\n\r\n");
}

/* None may follow on its connection. */
static void test_knows_a_request_that_closes(void **unused)
{
    (void)unused;
    static const struct {
        const char *header;
        bool closes;
    } cases[] = {
        {"Connection: close", true},     {"connection:CLOSE", true},    {"Connection: TE, close", true},
        {"Connection: close ,TE", true}, {"Connection: closed", false}, {"Connection: keep-alive", false},
        {"Connection:", false},          {"Connection: ,, \t", false},  {"X-Connection: close", false},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct options o = {.headers = {{cases[i].header}, 1}};
        struct request_set *s = build(&o, "http://h/", ERR_OK);
        assert_int_equal(s->items[0].closes, cases[i].closes);
        drop(s);
    }
}

static void test_refuses_what_would_break_the_framing(void **unused)
{
    (void)unused;
    static const char *const headers[] = {
        "no colon", ": empty", "a b: c", "a: b\r\nc: d", "Content-Length: 3", "transfer-encoding: chunked",
        "a\x01: b", ""};
    for (size_t i = 0; i < ARRAY_LEN(headers); i++) {
        struct options o = {.headers = {{headers[i]}, 1}};
        drop(build(&o, "http://h/", ERR_INVALID));
    }
    static const char *const methods[] = {"",        "G T", "CONNECT",
                                          "GET\r\n", "a:b", "aaaaaaaaaabbbbbbbbbbccccccccccddd"};
    for (size_t i = 0; i < ARRAY_LEN(methods); i++) {
        struct options o = {.method = methods[i]};
        drop(build(&o, "http://h/", ERR_INVALID));
    }
}

/* --- several --- */

static void test_weights_are_kept_and_mixed(void **unused)
{
    (void)unused;
    struct options o = {0};
    expect_init(&o.expect);
    o.requests_path = file_with("[ // comments are fine\n"
                                "{\"name\": \"a\", \"weight\": 5, \"path\": \"/a\"},"
                                "{\"weight\": 3, \"path\": \"/b\", \"method\": \"PUT\", \"headers\": {\"X\": "
                                "\"1\"}, \"body\": \"xy\","
                                " \"expect\": {\"status\": \"201,3xx\", \"body_bytes\": 7}},"
                                "{\"weight\": 2}]");
    struct request_set *s = build(&o, "http://h/default", ERR_OK);
    assert_int_equal(s->count, 3);
    assert_int_equal(s->cycle_len, 10);
    unsigned counts[3] = {0};
    unsigned in_a_row = 0;
    for (uint32_t i = 0; i < s->cycle_len; i++) {
        counts[s->cycle[i]]++;
        in_a_row = i != 0 && s->cycle[i] == s->cycle[i - 1] ? in_a_row + 1 : 1;
        assert_true(in_a_row <= 2);
    }
    assert_true(counts[0] == 5 && counts[1] == 3 && counts[2] == 2);
    assert_string_equal(s->items[0].name, "a");
    static const char second[] = "PUT /b HTTP/1.1\r\nX: 1\r\nHost: h\r\nContent-Length: 2\r\n\r\nxy";
    assert_int_equal(s->items[1].len, sizeof second - 1);
    assert_memory_equal(s->items[1].bytes, second, sizeof second - 1);
    assert_true(expect_has_status(&s->items[1].expect, 201) && expect_has_status(&s->items[1].expect, 304));
    assert_false(expect_has_status(&s->items[1].expect, 200));
    assert_int_equal(s->items[1].expect.length, 7);
    assert_memory_equal(s->items[2].bytes, "GET /default ", 13);
    drop(s);
}

static void test_refuses_bad_files(void **unused)
{
    (void)unused;
    static const char *const bad[] = {
        "",
        "{}",
        "[]",
        "[1]",
        "[{\"wait\": 1}]",
        "[{\"weight\": 0}]",
        "[{\"weight\": 1001}]",
        "[{\"weight\": 1.5}]",
        "[{\"path\": \"no slash\"}]",
        "[{\"path\": \"/a b\"}]",
        "[{\"path\": 5}]",
        "[{\"headers\": {\"A\": 1}}]",
        "[{\"headers\": [\"A: b\"]}]",
        "[{\"headers\": {\"A\": \"b\\nc\"}}]",
        "[{\"body\": \"a\", \"body_file\": \"/dev/null\"}]",
        "[{\"body_file\": \"/nonexistent/file\"}]",
        "[{\"expect\": {\"status\": \"2x\"}}]",
        "[{\"expect\": {\"body_sha256\": \"12\"}}]",
        "[{\"expect\": {\"other\": 1}}]",
        "[{\"template\": true, \"path\": \"/{{nothing}}\"}]",
        "[{}] x",
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct options o = {.requests_path = file_with(bad[i])};
        struct request_set *s = mem_zalloc(1, sizeof *s);
        struct target t;
        struct err_detail d = {0};
        assert_int_equal(target_parse(&t, "http://h/", NULL, &d), ERR_OK);
        if (request_set_build(s, &t, &o, &d) == ERR_OK)
            fail_msg("accepted: %s", bad[i]);
        assert_non_null(strstr(d.text, "--requests"));
        target_fini(&t);
        drop(s);
    }
}

/* --- templates --- */

static void test_renders_places(void **unused)
{
    (void)unused;
    struct options o = {.is_template = true, .headers = {{"X-N: {{counter}}"}, 1}};
    expect_init(&o.expect);
    char *line = mem_printf("{{line:%s}}-{{counter}}", file_with("one\ntwo\r\nthree"));
    o.body = line;
    o.body_len = strlen(line);
    o.has_body = true;
    struct request_set *s = build(&o, "http://h/x{{random:7-7}}", ERR_OK);
    uint8_t *space = mem_alloc(s->render_bytes);
    struct template_state state;
    template_state_init(&state, 1, 3, 1); /* thread 1 of 3: requests 1, 4, 7 ... */
    static const char *const expected[] = {
        "POST /x7 HTTP/1.1\r\nX-N: 1\r\nHost: h\r\nContent-Length: 5\r\n\r\ntwo-1",
        "POST /x7 HTTP/1.1\r\nX-N: 4\r\nHost: h\r\nContent-Length: 5\r\n\r\ntwo-4",
        "POST /x7 HTTP/1.1\r\nX-N: 7\r\nHost: h\r\nContent-Length: 5\r\n\r\ntwo-7",
    };
    for (size_t i = 0; i < ARRAY_LEN(expected); i++) {
        size_t n = request_render(&s->items[0], &state, space);
        assert_true(n <= s->render_bytes);
        assert_int_equal(n, strlen(expected[i]));
        assert_memory_equal(space, expected[i], n);
    }
    state.number = UINT64_MAX; /* the longest number fits */
    assert_true(request_render(&s->items[0], &state, space) <= s->render_bytes);
    free(space);
    free(line);
    drop(s);
}

static void test_random_numbers_stay_in_range(void **unused)
{
    (void)unused;
    struct template t;
    static const char text[] = "{{random:10-12}}";
    assert_int_equal(template_parse(&t, text, sizeof text - 1, TEMPLATE_HEAD, NULL), ERR_OK);
    struct template_state state;
    template_state_init(&state, 0, 1, 1);
    unsigned seen[3] = {0};
    for (int i = 0; i < 3000; i++) {
        uint8_t out[32];
        assert_int_equal(template_render(&t, &state, out), 2);
        assert_true(out[0] == '1' && out[1] >= '0' && out[1] <= '2');
        seen[out[1] - '0']++;
    }
    assert_true(seen[0] > 900 && seen[1] > 900 && seen[2] > 900);
    template_fini(&t);
}

static void test_refuses_bad_templates(void **unused)
{
    (void)unused;
    static const char *const bad[] = {"{{",
                                      "{{counter",
                                      "{{}}",
                                      "{{ counter }}",
                                      "{{random}}",
                                      "{{random:5}}",
                                      "{{random:5-4}}",
                                      "{{random:a-b}}",
                                      "{{line:}}",
                                      "{{line:/nonexistent}}",
                                      "{{line:/dev/null}}"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct template t;
        struct err_detail d = {0};
        if (template_parse(&t, bad[i], strlen(bad[i]), TEMPLATE_HEAD, &d) == ERR_OK)
            fail_msg("accepted: %s", bad[i]);
        assert_true(strlen(d.text) > 10);
        template_fini(&t);
    }
    char *text = mem_printf("{{line:%s}}", file_with("fine\nwith blank\n"));
    struct template t;
    assert_int_equal(template_parse(&t, text, strlen(text), TEMPLATE_HEAD, NULL), ERR_INVALID);
    template_fini(&t);
    assert_int_equal(template_parse(&t, text, strlen(text), TEMPLATE_BODY, NULL), ERR_OK);
    template_fini(&t);
    free(text);
}

static void test_templates_have_a_limit(void **unused)
{
    (void)unused;
    char text[12 * TEMPLATE_PARTS_MAX];
    for (unsigned places = TEMPLATE_PARTS_MAX - 1; places <= TEMPLATE_PARTS_MAX; places++) {
        size_t n = 0;
        for (unsigned i = 0; i < places; i++)
            n += (size_t)snprintf(text + n, sizeof text - n, "{{counter}}");
        struct template t;
        assert_int_equal(template_parse(&t, text, n, TEMPLATE_HEAD, NULL),
                         places < TEMPLATE_PARTS_MAX ? ERR_OK : ERR_TOO_BIG);
        template_fini(&t);
    }
}

static void test_reads_expectations(void **unused)
{
    (void)unused;
    struct expect e;
    expect_init(&e);
    assert_true(expect_has_status(&e, 200) && expect_has_status(&e, 299));
    assert_false(expect_has_status(&e, 199) || expect_has_status(&e, 300) || expect_has_status(&e, 999));
    assert_int_equal(expect_parse_status(&e, "999,100", "x", NULL), ERR_OK);
    assert_true(expect_has_status(&e, 999) && expect_has_status(&e, 100) && !expect_has_status(&e, 200));
    static const char *const bad[] = {"", "99", "1000", "2xx,", "xxx", "0xx", "2XX", "200 ", "+200"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        assert_int_equal(expect_parse_status(&e, bad[i], "x", NULL), ERR_INVALID);
    static const char hash[] = "00112233445566778899aabbccddeeffFFEEDDCCBBAA99887766554433221100";
    assert_int_equal(expect_parse_hash(&e, hash, "x", NULL), ERR_OK);
    assert_true(e.has_hash && e.hash[1] == 0x11 && e.hash[15] == 0xff && e.hash[31] == 0);
    assert_int_equal(expect_parse_hash(&e, hash + 1, "x", NULL), ERR_INVALID);
    char odd[sizeof hash];
    memcpy(odd, hash, sizeof hash);
    odd[5] = 'g';
    assert_int_equal(expect_parse_hash(&e, odd, "x", NULL), ERR_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reads_urls),
        cmocka_unit_test(test_refuses_other_urls),
        cmocka_unit_test(test_resolves_addresses_and_sockets),
        cmocka_unit_test(test_sends_what_was_asked_for_and_nothing_else),
        cmocka_unit_test(test_knows_a_request_that_closes),
        cmocka_unit_test(test_refuses_what_would_break_the_framing),
        cmocka_unit_test(test_weights_are_kept_and_mixed),
        cmocka_unit_test(test_refuses_bad_files),
        cmocka_unit_test(test_renders_places),
        cmocka_unit_test(test_random_numbers_stay_in_range),
        cmocka_unit_test(test_refuses_bad_templates),
        cmocka_unit_test(test_templates_have_a_limit),
        cmocka_unit_test(test_reads_expectations),
    };
    return cmocka_run_group_tests(tests, NULL, remove_file);
}
