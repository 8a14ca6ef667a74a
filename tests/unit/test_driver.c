#include "agent/driver/driver.h"

#include "common/hist.h"
#include "common/mem.h"
#include "tests/support/scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* As splitbench-load 0.1.0 printed it against a server that had no such page; some fields it also printed,
 * and which nobody reads here, were taken out. */
static const char recorded_404[] =
    "{\"format\":\"splitbench-load/1\",\"version\":\"0.1.0\",\"url\":\"http://127.0.0.1:18099/nope\","
    "\"mode\":\"closed\",\"connections\":2,\"threads\":1,\"backend\":\"libuv\",\"interrupted\":false,"
    "\"window\":{\"start_ns\":\"2146664810352\",\"end_ns\":\"2146864810352\"},"
    "\"accounts\":{\"scheduled\":296,\"carried_in\":0,\"ok\":0,\"failed\":294,\"in_flight\":2,\"never_sent\":"
    "0,"
    "\"balanced\":true,\"sent\":296,\"responses\":294},"
    "\"warmup\":{\"scheduled\":0,\"carried_in\":0,\"ok\":0,\"failed\":0,\"in_flight\":0,\"never_sent\":0,"
    "\"balanced\":true},"
    "\"drain\":{\"scheduled\":2,\"carried_in\":2,\"ok\":0,\"failed\":2,\"in_flight\":0,\"never_sent\":0,"
    "\"balanced\":true},"
    "\"totals\":{\"requests_sent\":296,\"responses\":296},"
    "\"bytes\":{\"body\":0,\"wire_in\":152880,\"wire_out\":13320},\"short_bodies\":0,\"status\":{\"404\":294}"
    ","
    "\"errors\":[{\"phase\":\"receive\",\"cause\":\"status\",\"count\":294,\"sample\":\"status 404\"}],"
    "\"warmup_errors\":[],\"rate\":{\"ok_per_s\":0},\"latency_ns\":{\"count\":0},"
    "\"latency_hist\":\"HISTFAAAAB14nJNpmSzMgADMUJoRyHQz2LGAwf4DRAAATjkESw==\","
    "\"cpu\":{\"user_ns\":11001000,\"system_ns\":22548000},\"rss_bytes_max\":2764800}";

static const char recorded_refused[] =
    "{\"format\":\"splitbench-load/1\",\"version\":\"0.1.0\",\"interrupted\":false,"
    "\"window\":{\"start_ns\":\"2146909369630\",\"end_ns\":\"2146909369630\"},"
    "\"warmup_errors\":[{\"phase\":\"connect\",\"cause\":\"refused\",\"count\":12,\"sample\":\"Connection "
    "refused\"}]}";

static const struct driver_span recorded_span = {2146000000000, 2147000000000};

/* `text` with its first `from` replaced by `to`; fails the test when there is none. */
static char *changed(const char *text, const char *from, const char *to)
{
    const char *at = strstr(text, from);
    if (at == NULL)
        fail_msg("no \"%s\" in the output", from);
    return mem_printf("%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
}

static enum err parse(const char *text, size_t len, struct msg_event *event, struct err_detail *d)
{
    *event = (struct msg_event){.kind = MSG_EVENT_LOADED};
    return driver_builtin.parse(text, len, &recorded_span, &event->u.loaded, d);
}

static void test_recorded_result(void **state)
{
    (void)state;
    struct msg_event event;
    struct err_detail d = {""};
    if (parse(recorded_404, strlen(recorded_404), &event, &d) != ERR_OK)
        fail_msg("%s", d.text);
    const struct msg_loaded *l = &event.u.loaded;
    assert_string_equal(l->generator, "splitbench-load 0.1.0");
    assert_int_equal(l->window_start_ns, 2146664810352);
    assert_int_equal(l->window_end_ns, 2146864810352);
    assert_int_equal(l->window.scheduled, 296);
    assert_int_equal(l->window.failed, 294);
    assert_int_equal(l->window.in_flight, 2);
    assert_int_equal(l->figures[FIGURE_REQUESTS_SENT].value, 296);
    assert_int_equal(l->figures[FIGURE_RESPONSES].value, 296);
    assert_int_equal(l->figures[FIGURE_WIRE_IN_BYTES].value, 152880);
    assert_int_equal(l->figures[FIGURE_WIRE_OUT_BYTES].value, 13320);
    assert_int_equal(l->status_count, 1);
    assert_int_equal(l->statuses[0].status, 404);
    assert_int_equal(l->statuses[0].count, 294);
    assert_int_equal(l->error_count, 1);
    assert_string_equal(l->errors[0].phase, "receive");
    assert_string_equal(l->errors[0].cause, "status");
    assert_string_equal(l->errors[0].sample, "status 404");
    assert_int_equal(l->figures[FIGURE_CPU_USER_NS].value, 11001000);
    assert_int_equal(l->figures[FIGURE_CPU_SYSTEM_NS].value, 22548000);
    assert_int_equal(l->figures[FIGURE_RSS_BYTES_MAX].value, 2764800);
    assert_string_equal(l->raw, recorded_404);
    assert_int_equal(l->latency_hist.len, 52);
    msg_event_fini(&event);
}

/* The window is all of the time that the generator ran, at most: not a nanosecond more at either end. */
static void test_window_lies_in_the_span(void **state)
{
    (void)state;
    const uint64_t start_ns = 2146664810352;
    const uint64_t end_ns = 2146864810352;
    const struct {
        struct driver_span span;
        enum err e;
    } rows[] = {
        {{start_ns, end_ns}, ERR_OK},
        {{start_ns + 1, end_ns}, ERR_INVALID},
        {{start_ns, end_ns - 1}, ERR_INVALID},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct msg_event event = {.kind = MSG_EVENT_LOADED};
        struct err_detail d = {""};
        assert_int_equal(
            driver_builtin.parse(recorded_404, strlen(recorded_404), &rows[i].span, &event.u.loaded, &d),
            rows[i].e);
        if (rows[i].e != ERR_OK)
            assert_non_null(strstr(d.text, "does not lie within the time the generator ran"));
        msg_event_fini(&event);
    }
}

static void test_histogram_is_checked_and_kept(void **state)
{
    (void)state;
    struct hist *h = hist_new();
    struct buf text;
    buf_init(&text, HIST_TEXT_BYTES_MAX);
    for (uint64_t i = 0; i < 294; i++)
        hist_record(h, 1000000 + i * 1000);
    assert_int_equal(hist_encode(h, &text), ERR_OK);
    char *ok = changed(recorded_404, "\"ok\":0,\"failed\":294", "\"ok\":294,\"failed\":0");
    char *whole = changed(ok, "HISTFAAAAB14nJNpmSzMgADMUJoRyHQz2LGAwf4DRAAATjkESw==", text.data);
    struct msg_event event;
    struct err_detail d = {""};
    if (parse(whole, strlen(whole), &event, &d) != ERR_OK)
        fail_msg("%s", d.text);
    assert_int_equal(event.u.loaded.latency_hist.len, text.len);
    assert_memory_equal(event.u.loaded.latency_hist.data, text.data, text.len);
    msg_event_fini(&event);
    assert_int_equal(parse(ok, strlen(ok), &event, &d), ERR_INVALID); /* 294 were ok, none was recorded */
    assert_non_null(strstr(d.text, "latency_hist holds 0 requests, but 294 were ok"));
    msg_event_fini(&event);
    free(ok);
    free(whole);
    buf_fini(&text);
    hist_free(h);
}

/* Figures that came after the first release may be absent (an older generator) or null (it does not know). */
static void test_later_figures(void **state)
{
    (void)state;
    static const struct {
        const char *figures;
        bool known;
        enum err e;
    } cases[] = {{"}", false, ERR_OK},
                 {",\"figures\":{}}", false, ERR_OK},
                 {",\"figures\":{\"context_switches_voluntary\":null}}", false, ERR_OK},
                 {",\"figures\":{\"context_switches_voluntary\":71}}", true, ERR_OK},
                 {",\"figures\":{\"context_switches_voluntary\":-1}}", false, ERR_INVALID}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char *end = mem_printf("\"rss_bytes_max\":2764800%s", cases[i].figures);
        char *text = changed(recorded_404, "\"rss_bytes_max\":2764800}", end);
        struct msg_event event;
        struct err_detail d = {""};
        assert_int_equal(parse(text, strlen(text), &event, &d), cases[i].e);
        const struct figure *f = &event.u.loaded.figures[FIGURE_CONTEXT_SWITCHES_VOLUNTARY];
        assert_int_equal(f->known, cases[i].known);
        assert_true(!f->known || f->value == 71);
        msg_event_fini(&event);
        free(text);
        free(end);
    }
}

static void test_broken_results(void **state)
{
    (void)state;
    static const struct {
        const char *from;
        const char *to;
        enum err e;
        const char *text;
    } cases[] = {
        {"splitbench-load/1", "splitbench-load/2", ERR_UNSUPPORTED, "splitbench-load/2"},
        {"\"format\":\"splitbench-load/1\",", "", ERR_INVALID, "format"},
        {"\"rss_bytes_max\":2764800}", "\"rss_bytes_max\":2764800} trailing", ERR_INVALID, ""},
        {"\"short_bodies\":0", "\"short_bodies\":0,\"short_bodies\":1", ERR_INVALID, "short_bodies"},
        {"\"short_bodies\":0", "\"short_bodies\":-1", ERR_INVALID, "short_bodies"},
        {"\"short_bodies\":0", "\"short_bodies\":1.5", ERR_INVALID, "short_bodies"},
        {"\"short_bodies\":0", "\"short_bodies\":\"x\"", ERR_INVALID, "short_bodies"},
        {"\"short_bodies\":0", "\"short_bodies\":null", ERR_INVALID, "short_bodies"},
        {"\"short_bodies\":0", "\"short_bodies\":\"18446744073709551615\"", ERR_INVALID, "short_bodies"},
        {"\"scheduled\":296", "\"scheduled\":297", ERR_INVALID, "accounts of the window do not balance"},
        {"\"scheduled\":296", "\"scheduled\":0", ERR_INVALID, "accounts of the window do not balance"},
        {"\"balanced\":true,\"sent\"", "\"balanced\":false,\"sent\"", ERR_INVALID, "do not balance"},
        {"\"warmup\":{\"scheduled\":0", "\"warmup\":{\"scheduled\":1", ERR_INVALID, "accounts of the warmup"},
        {"\"interrupted\":false", "\"interrupted\":true", ERR_CANCELLED, "interrupted"},
        {"\"start_ns\":\"2146664810352\"", "\"start_ns\":\"2145999999999\"", ERR_INVALID, "within the time"},
        {"\"end_ns\":\"2146864810352\"", "\"end_ns\":\"2147000000001\"", ERR_INVALID, "within the time"},
        {"\"end_ns\":\"2146864810352\"", "\"end_ns\":\"2146664810351\"", ERR_INVALID, "within the time"},
        {"{\"404\":294}", "{\"4044\":294}", ERR_INVALID, "not an HTTP status"},
        {"{\"404\":294}", "{\"abc\":294}", ERR_INVALID, "not an HTTP status"},
        {"{\"404\":294}", "[404]", ERR_INVALID, "status"},
        {"\"phase\":\"receive\"", "\"phase\":\"\\u001b[2J\"", ERR_INVALID, "no class of errors"},
        {"\"cause\":\"status\"", "\"cause\":\"Status Code\"", ERR_INVALID, "no class of errors"},
        {"\"phase\":\"receive\",", "", ERR_INVALID, "phase"},
        {"HISTFAAAAB14", "HISTFAAAAB15", ERR_INVALID, "latency_hist"},
        {"HISTFAAAAB14", "!!!!", ERR_INVALID, "latency_hist"},
        {"\"cpu\":{\"user_ns\":11001000,\"system_ns\":22548000}", "\"cpu\":[]", ERR_INVALID, "cpu"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char *text = changed(recorded_404, cases[i].from, cases[i].to);
        struct msg_event event;
        struct err_detail d = {""};
        enum err e = parse(text, strlen(text), &event, &d);
        if (e != cases[i].e || strstr(d.text, cases[i].text) == NULL || d.text[0] == '\0')
            fail_msg("case %zu (%s): %s, \"%s\"", i, cases[i].to, err_text(e), d.text);
        msg_event_fini(&event);
        free(text);
    }
}

static void test_every_cut_is_refused(void **state)
{
    (void)state;
    for (size_t len = 0; len < strlen(recorded_404); len++) {
        struct msg_event event;
        struct err_detail d = {""};
        char *cut = mem_dup(recorded_404, len); /* no byte behind it, for the sanitizer to see */
        assert_int_not_equal(parse(cut, len, &event, &d), ERR_OK);
        assert_true(d.text[0] != '\0');
        msg_event_fini(&event);
        free(cut);
    }
}

static void test_no_connection_is_named(void **state)
{
    (void)state;
    struct msg_event event;
    struct err_detail d = {""};
    assert_int_equal(parse(recorded_refused, strlen(recorded_refused), &event, &d), ERR_UNREACHABLE);
    assert_non_null(strstr(d.text, "no connection could be opened: refused, 12 times (Connection refused)"));
    msg_event_fini(&event);
}

static void test_too_many_classes(void **state)
{
    (void)state;
    struct buf text;
    buf_init(&text, 1024u * 1024u);
    assert_int_equal(buf_append_text(&text, "\"errors\":["), ERR_OK);
    for (unsigned i = 0; i <= MSG_ERRORS_MAX; i++)
        assert_int_equal(buf_printf(&text,
                                    "%s{\"phase\":\"send\",\"cause\":\"reset\",\"count\":1,\"sample\":\"\"}",
                                    i > 0 ? "," : ""),
                         ERR_OK);
    assert_int_equal(buf_append_text(&text, ",{"), ERR_OK);
    char *whole = changed(recorded_404, "\"errors\":[{", text.data);
    struct msg_event event;
    assert_int_equal(parse(whole, strlen(whole), &event, NULL), ERR_TOO_BIG);
    msg_event_fini(&event);
    free(whole);
    buf_fini(&text);
}

static void test_events(void **state)
{
    (void)state;
    struct msg_progress p;
    assert_true(driver_builtin.read_event("{\"event\":\"warmup_start\",\"t_ns\":\"17\"}", &p));
    assert_int_equal(p.kind, MSG_PROGRESS_WARMUP_START);
    assert_int_equal(p.at_ns, 17);
    assert_true(driver_builtin.read_event("{\"event\":\"window_start\",\"t_ns\":\"18\"}", &p));
    assert_int_equal(p.kind, MSG_PROGRESS_WINDOW_START);
    assert_true(
        driver_builtin.read_event("{\"event\":\"progress\",\"t_ns\":\"19\",\"ok\":1290,\"failed\":3}", &p));
    assert_int_equal(p.kind, MSG_PROGRESS_TICK);
    assert_int_equal(p.ok, 1290);
    assert_int_equal(p.failed, 3);
    assert_true(driver_builtin.read_event("{\"event\":\"window_end\",\"t_ns\":\"20\"}", &p));
    assert_int_equal(p.kind, MSG_PROGRESS_WINDOW_END);
    static const char *const no_events[] = {
        "",
        "splitbench-load: something",
        "{",
        "[]",
        "{}",
        "{\"event\":\"window_start\"}",
        "{\"event\":\"window_start\",\"t_ns\":\"-1\"}",
        "{\"event\":\"window_start\",\"t_ns\":\"18446744073709551616\"}",
        "{\"event\":\"window_start\",\"t_ns\":\"1\"} x",
        "{\"event\":\"window_stop\",\"t_ns\":\"1\"}",
        "{\"event\":1,\"t_ns\":\"1\"}",
        "{\"event\":\"progress\",\"t_ns\":\"19\",\"ok\":1290}",
        "{\"event\":\"progress\",\"t_ns\":\"19\",\"ok\":-1,\"failed\":0}",
    };
    for (size_t i = 0; i < ARRAY_LEN(no_events); i++)
        if (driver_builtin.read_event(no_events[i], &p))
            fail_msg("taken: %s", no_events[i]);
}

static enum err prove(const char *output, char **generator)
{
    struct err_detail d = {""};
    enum err e = driver_builtin.prove(output, strlen(output), generator, &d);
    assert_true((e == ERR_OK) == (d.text[0] == '\0'));
    return e;
}

static void test_program_proves_itself(void **state)
{
    (void)state;
    char *generator = NULL;
    assert_int_equal(prove("splitbench-load 0.1.0\n", &generator), ERR_OK);
    assert_string_equal(generator, "splitbench-load 0.1.0");
    free(generator);
    assert_int_equal(prove("splitbench-load 0.2.0\n  liburing 2.9\n  libuv 1.50.0\n", &generator), ERR_OK);
    assert_string_equal(generator, "splitbench-load 0.2.0");
    free(generator);
    static const char *const others[] = {"",
                                         "\n",
                                         "splitbench-load",
                                         "splitbench-load \n",
                                         "wrk 4.1.0 [epoll]\n",
                                         "splitbench-load 0.1.0 and more\n",
                                         "splitbench-load 0.1.0\nsecond line\n",
                                         "splitbench-load 0.1.0\n  zlib 1\nthird line\n",
                                         "splitbench-load 0.1.0\n\n",
                                         "splitbench-loader 1\n",
                                         "splitbench-load \x1b[2J\n"};
    for (size_t i = 0; i < ARRAY_LEN(others); i++)
        assert_int_equal(prove(others[i], &generator), ERR_INVALID);
}

static char *word(const char *text)
{
    return (char *)(uintptr_t)text; /* only read */
}

static struct msg_load plain_load(void)
{
    return (struct msg_load){.proc = 7,
                             .tool = word("builtin"),
                             .host = word("127.0.0.1"),
                             .port = 8080,
                             .request = {.method = word("GET"), .path = word("/a?b=c")},
                             .connections = 100,
                             .threads = 2,
                             .warmup_ns = 500000000,
                             .duration_ns = 30000000001,
                             .timeout_ns = 5000000000};
}

/* The command line as one text, words between blanks; the caller frees. NULL when it was refused. */
static char *command_line(const struct msg_load *load, const char *dir)
{
    struct driver_input in = {.load = load, .program = "prog", .work_dir = dir};
    struct msg_strings argv = {0};
    struct err_detail d = {""};
    enum err e = driver_builtin.build(&in, &argv, &d);
    struct buf text;
    buf_init(&text, 1024u * 1024u);
    for (size_t i = 0; i < argv.count; i++)
        assert_int_equal(buf_printf(&text, "%s%s", i > 0 ? " " : "", argv.items[i]), ERR_OK);
    mem_free_strings(&argv.items, &argv.count);
    char *line = buf_take(&text);
    if (e == ERR_OK)
        return line;
    assert_true(d.text[0] != '\0');
    free(line);
    return NULL;
}

static void expect_line(const struct msg_load *load, const char *expected)
{
    char *line = command_line(load, "/nonexistent");
    assert_non_null(line);
    assert_string_equal(line, expected);
    free(line);
}

static void test_command_line(void **state)
{
    (void)state;
    struct msg_load load = plain_load();
    expect_line(&load,
                "prog -c 100 -t 2 -d 30.000000001s --warmup 0.500000000s --timeout 5.000000000s -m GET "
                "-o json --events http://127.0.0.1:8080/a?b=c");
    struct msg_header header = {word("X-A"), word("one two")};
    load.request.headers = (struct msg_headers){&header, 1};
    load.request.method = NULL;
    load.host = word("fe80::1");
    load.connections = 1; /* then one thread is all there can be */
    load.cpus = word("2-3");
    load.has_body_bytes = true;
    load.body_bytes = 0;
    expect_line(
        &load, "prog -c 1 -t 1 -d 30.000000001s --warmup 0.500000000s --timeout 5.000000000s -H X-A: one two "
               "--cpus 2-3 --expect-length 0 -o json --events http://[fe80::1]:8080/a?b=c");
}

static void test_body_goes_through_a_file(void **state)
{
    (void)state;
    struct scratch s;
    scratch_init(&s);
    const char *dir = s.dir;
    struct msg_load load = plain_load();
    uint8_t body[] = {'@', 0, 'x'};
    load.request.body = (struct msg_bytes){body, sizeof body};
    char *line = command_line(&load, dir);
    char *path = mem_printf("%s/body-7", dir);
    char *expected = mem_printf("-b @%s ", path);
    assert_non_null(strstr(line, expected));
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    char got[8];
    assert_int_equal(fread(got, 1, sizeof got, file), sizeof body);
    assert_memory_equal(got, body, sizeof body);
    fclose(file);
    free(line);
    line = command_line(&load, "/nonexistent");
    assert_null(line);
    struct driver_input in = {.load = &load, .work_dir = dir};
    driver_remove_body(&in);
    assert_int_equal(rmdir(dir), 0); /* nothing is left in it */
    free(path);
    free(expected);
}

static void test_bad_loads_are_refused(void **state)
{
    (void)state;
    struct msg_header header = {word("X"), word("a\r\nb: c")};
    struct msg_load bad[] = {plain_load(), plain_load(), plain_load(), plain_load(),
                             plain_load(), plain_load(), plain_load(), plain_load(),
                             plain_load(), plain_load(), plain_load()};
    bad[0].connections = 0;
    bad[1].connections = LIMIT_CONNECTIONS + 1;
    bad[2].duration_ns = 0;
    bad[3].timeout_ns = 0;
    bad[4].host = word("");
    bad[5].host = word("host/../");
    bad[6].port = 0;
    bad[7].request.path = word("no-slash");
    bad[8].request.path = word("/a b");
    bad[9].request.headers = (struct msg_headers){&header, 1};
    bad[10].request.method = word("--help");
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        if (command_line(&bad[i], "/nonexistent") != NULL)
            fail_msg("load %zu was taken", i);
    struct msg_load most = plain_load();
    most.connections = LIMIT_CONNECTIONS;
    char *line = command_line(&most, "/nonexistent");
    assert_non_null(line);
    free(line);
}

static void test_names(void **state)
{
    (void)state;
    const struct driver *d = NULL;
    struct err_detail detail;
    assert_int_equal(driver_find("builtin", &d, &detail), ERR_OK);
    assert_ptr_equal(d, &driver_builtin);
    assert_int_equal(driver_find("bombard", &d, &detail), ERR_UNSUPPORTED);
    assert_non_null(strstr(detail.text, "it knows: builtin"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_recorded_result),
        cmocka_unit_test(test_window_lies_in_the_span),
        cmocka_unit_test(test_histogram_is_checked_and_kept),
        cmocka_unit_test(test_later_figures),
        cmocka_unit_test(test_broken_results),
        cmocka_unit_test(test_every_cut_is_refused),
        cmocka_unit_test(test_no_connection_is_named),
        cmocka_unit_test(test_too_many_classes),
        cmocka_unit_test(test_events),
        cmocka_unit_test(test_program_proves_itself),
        cmocka_unit_test(test_command_line),
        cmocka_unit_test(test_body_goes_through_a_file),
        cmocka_unit_test(test_bad_loads_are_refused),
        cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
