#include "common/buf.h"
#include "common/clock.h"
#include "common/hist.h"
#include "common/mem.h"
#include "controller/run/result_check.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define WINDOW_NS (2 * NS_PER_S)

/* A result of two seconds with three answers and two failures in two classes. */
static struct msg_loaded good(void)
{
    struct hist *h = hist_new();
    struct buf text;
    buf_init(&text, HIST_TEXT_BYTES_MAX);
    for (uint64_t i = 1; i <= 3; i++)
        hist_record(h, i * NS_PER_MS);
    assert_int_equal(hist_encode(h, &text), ERR_OK);
    hist_free(h);
    struct msg_loaded l = {.window_start_ns = 5 * NS_PER_S,
                           .window_end_ns = 5 * NS_PER_S + WINDOW_NS,
                           .window = {.scheduled = 5, .ok = 3, .failed = 2},
                           .error_count = 2};
    l.errors = mem_zalloc(2, sizeof *l.errors);
    l.errors[0].count = l.errors[1].count = 1;
    l.latency_hist.len = text.len;
    l.latency_hist.data = (uint8_t *)buf_take(&text);
    return l;
}

static void expect(struct msg_loaded *l, const char *words)
{
    struct err_detail d = {""};
    enum err e = result_check(l, WINDOW_NS, &d);
    if (words == NULL && e != ERR_OK)
        fail_msg("refused: %s", d.text);
    if (words != NULL && (e != ERR_INVALID || strstr(d.text, words) == NULL))
        fail_msg("expected \"%s\", got %s: %s", words, err_text(e), d.text);
    free(l->errors);
    free(l->latency_hist.data);
}

static void test_good(void **state)
{
    (void)state;
    struct msg_loaded l = good();
    expect(&l, NULL);
}

static void test_window_lengths(void **state)
{
    (void)state;
    static const struct {
        int64_t off_ns;
        bool ok;
    } cases[] = {{(int64_t)NS_PER_MS, true},      {-(int64_t)NS_PER_MS, true},
                 {(int64_t)NS_PER_MS + 1, false}, {-(int64_t)NS_PER_MS - 1, false},
                 {1 - (int64_t)WINDOW_NS, false}, {-(int64_t)WINDOW_NS, false}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct msg_loaded l = good();
        l.window_end_ns = (uint64_t)((int64_t)l.window_end_ns + cases[i].off_ns);
        expect(&l, cases[i].ok ? NULL : "window");
    }
}

static void test_histogram_and_account_agree(void **state)
{
    (void)state;
    struct msg_loaded l = good();
    l.window.ok = 1000000000000;
    expect(&l, "histogram holds 3 requests, its account says 1000000000000 ok");
    l = good();
    l.latency_hist.len = 0;
    expect(&l, "histogram cannot be read");
    l = good();
    l.latency_hist.data[3] ^= 0x55;
    expect(&l, "histogram cannot be read");
}

static void test_errors_and_account_agree(void **state)
{
    (void)state;
    struct msg_loaded l = good();
    l.errors[0].count = 5;
    expect(&l, "classes of errors hold 6 requests, its account says 2 failed");
    l = good();
    l.errors[0].count = l.errors[1].count = UINT64_MAX;
    expect(&l, "more than can be counted");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good),
        cmocka_unit_test(test_window_lengths),
        cmocka_unit_test(test_histogram_and_account_agree),
        cmocka_unit_test(test_errors_and_account_agree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
