#include "controller/run/run_merge.h"

#include "common/hist.h"
#include "common/mem.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static struct msg_bytes encoded(uint64_t value, unsigned count)
{
    struct hist *h = hist_new();
    struct buf text;
    buf_init(&text, HIST_TEXT_BYTES_MAX);
    for (unsigned i = 0; i < count; i++)
        hist_record(h, value);
    assert_int_equal(hist_encode(h, &text), ERR_OK);
    hist_free(h);
    struct msg_bytes out = {.len = text.len};
    out.data = (uint8_t *)buf_take(&text);
    return out;
}

static void test_counts_and_histograms(void **state)
{
    struct msg_error_class reset = {
        .phase = (char *)(uintptr_t) "wait", .cause = (char *)(uintptr_t) "reset", .count = 2};
    struct msg_error_class others[] = {
        {.phase = (char *)(uintptr_t) "wait", .cause = (char *)(uintptr_t) "reset", .count = 3},
        {.phase = (char *)(uintptr_t) "connect", .cause = (char *)(uintptr_t) "refused", .count = 1}};
    struct msg_status_count statuses[] = {{200, 10}, {404, 1}};
    struct msg_loaded a = {
        .window = {.scheduled = 12, .ok = 10, .failed = 2},
        .errors = &reset,
        .error_count = 1,
        .statuses = statuses,
        .status_count = 1,
        .figures = {[FIGURE_BODY_BYTES] = figure_known(5), [FIGURE_RSS_BYTES_MAX] = figure_known(1)},
        .latency_hist = encoded(1000, 10)};
    struct msg_loaded b = {.window = {.scheduled = 30, .ok = 25, .failed = 4, .in_flight = 1},
                           .errors = others,
                           .error_count = 2,
                           .statuses = statuses,
                           .status_count = 2,
                           .figures = {[FIGURE_BODY_BYTES] = figure_known(7)},
                           .latency_hist = encoded(900000, 25)};
    const struct msg_loaded *parts[] = {&a, &b};
    struct msg_loaded m;
    struct err_detail d;
    (void)state;
    assert_int_equal(run_merge(parts, 2, &m, &d), ERR_OK);
    assert_int_equal(m.window.scheduled, 42);
    assert_int_equal(m.window.ok, 35);
    assert_int_equal(m.window.failed, 6);
    assert_int_equal(m.window.in_flight, 1);
    assert_int_equal(m.figures[FIGURE_BODY_BYTES].value, 12);
    assert_true(m.figures[FIGURE_BODY_BYTES].known);
    assert_false(m.figures[FIGURE_RSS_BYTES_MAX].known); /* one host does not know it */
    assert_int_equal(m.error_count, 2);
    assert_int_equal(m.errors[0].count, 5);
    assert_int_equal(m.status_count, 2);
    assert_int_equal(m.statuses[0].count, 20);
    assert_int_equal(m.statuses[1].count, 1);
    struct hist *h = hist_new();
    assert_int_equal(hist_decode(h, (char *)m.latency_hist.data, m.latency_hist.len, &d), ERR_OK);
    assert_int_equal(h->count, 35);
    assert_true(hist_percentile(h, 20) < 2000 && hist_percentile(h, 50) > 800000);
    hist_free(h);
    msg_loaded_fini(&m);
    free(a.latency_hist.data);
    free(b.latency_hist.data);
}

static void test_half_a_histogram_is_none(void **state)
{
    struct msg_loaded a = {.latency_hist = encoded(1000, 10)}, b = {.window = {.ok = 1}};
    const struct msg_loaded *parts[] = {&a, &b};
    struct msg_loaded m;
    struct err_detail d;
    (void)state;
    assert_int_equal(run_merge(parts, 2, &m, &d), ERR_OK);
    assert_int_equal(m.latency_hist.len, 0);
    msg_loaded_fini(&m);
    free(a.latency_hist.data);
}

static void test_what_agents_send_is_not_trusted(void **state)
{
    struct msg_loaded a = {.window = {.ok = UINT64_MAX}}, b = {.window = {.ok = 5}};
    const struct msg_loaded *parts[] = {&a, &b};
    struct msg_loaded m;
    struct err_detail d;
    (void)state;
    assert_int_equal(run_merge(parts, 2, &m, &d), ERR_OK);
    assert_true(m.window.ok == UINT64_MAX);
    msg_loaded_fini(&m);
    uint8_t garbage[] = "not a histogram";
    a.latency_hist = b.latency_hist = (struct msg_bytes){.data = garbage, .len = sizeof(garbage)};
    assert_int_equal(run_merge(parts, 2, &m, &d), ERR_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counts_and_histograms),
        cmocka_unit_test(test_half_a_histogram_is_none),
        cmocka_unit_test(test_what_agents_send_is_not_trusted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
