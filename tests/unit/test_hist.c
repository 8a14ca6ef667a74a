#include "common/hist.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* A small generator, so that every run sees the same numbers. */
static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static void test_records_with_three_digits(void **unused)
{
    (void)unused;
    uint64_t seed = 7;
    for (int i = 0; i < 100000; i++) {
        uint64_t v = next_random(&seed) >> (next_random(&seed) % 60);
        if (v > HIST_VALUE_MAX)
            continue;
        uint64_t high = hist_highest_equivalent(v);
        assert_true(v <= high);
        assert_true((high - v) * 1000 <= v);
        assert_true(hist_slot(v) < HIST_SLOT_COUNT);
        assert_int_equal(hist_slot(v), hist_slot(high));
        assert_int_equal(hist_slot(high + 1), hist_slot(high) + 1);
    }
}

static void test_clamps_what_is_over_an_hour(void **unused)
{
    (void)unused;
    struct hist *h = hist_new();
    hist_record(h, 0);
    hist_record(h, HIST_VALUE_MAX);
    hist_record(h, HIST_VALUE_MAX + 1);
    hist_record(h, UINT64_MAX);
    assert_int_equal(h->count, 4);
    assert_int_equal(h->min, 0);
    assert_int_equal(h->max, HIST_VALUE_MAX);
    assert_int_equal(hist_percentile(h, 100), HIST_VALUE_MAX);
    assert_int_equal(hist_percentile(h, 0), 0);
    hist_free(h);
}

static void test_an_empty_one_has_no_figures(void **unused)
{
    (void)unused;
    struct hist *h = hist_new();
    assert_int_equal(hist_percentile(h, 50), 0);
    assert_true(hist_mean(h) == 0 && hist_stddev(h) == 0);
    struct buf text;
    buf_init(&text, HIST_TEXT_BYTES_MAX);
    assert_int_equal(hist_encode(h, &text), ERR_OK);
    hist_record(h, 5);
    assert_int_equal(hist_decode(h, text.data, text.len, NULL), ERR_OK);
    assert_int_equal(h->count, 0);
    buf_fini(&text);
    hist_free(h);
}

/* 1 to 100,000 us: the percentiles are known, to three digits. */
static void test_percentiles_of_a_ramp(void **unused)
{
    (void)unused;
    struct hist *h = hist_new();
    for (uint64_t i = 1; i <= 100000; i++)
        hist_record(h, i * 1000);
    static const double percents[] = {10, 50, 90, 99, 99.9, 99.99};
    for (size_t i = 0; i < ARRAY_LEN(percents); i++) {
        uint64_t exact = (uint64_t)(percents[i] * 1000 * 1000 + 0.5);
        uint64_t top = hist_highest_equivalent(exact);
        assert_int_equal(hist_percentile(h, percents[i]), top < h->max ? top : h->max);
    }
    assert_int_equal(hist_percentile(h, 100), 100000 * 1000);
    assert_true(hist_mean(h) > 50000e3 && hist_mean(h) < 50050e3);
    assert_true(hist_stddev(h) > 28850e3 && hist_stddev(h) < 28890e3);
    hist_free(h);
}

static void fill(struct hist *h, uint64_t seed, int count)
{
    for (int i = 0; i < count; i++)
        hist_record(h, (next_random(&seed) >> 24) >> (next_random(&seed) % 40));
}

static void test_merging_equals_recording_together(void **unused)
{
    (void)unused;
    struct hist *a = hist_new();
    struct hist *b = hist_new();
    struct hist *both = hist_new();
    fill(a, 1, 5000);
    fill(b, 2, 7000);
    fill(both, 1, 5000);
    fill(both, 2, 7000);
    hist_merge(a, b);
    assert_memory_equal(a, both, sizeof *a);
    hist_clear(b);
    hist_merge(a, b);
    assert_memory_equal(a, both, sizeof *a);
    hist_free(a);
    hist_free(b);
    hist_free(both);
}

static void test_encoding_loses_nothing(void **unused)
{
    (void)unused;
    struct hist *h = hist_new();
    struct hist *back = hist_new();
    fill(h, 3, 200000);
    hist_record(h, HIST_VALUE_MAX);
    struct buf text;
    buf_init(&text, HIST_TEXT_BYTES_MAX);
    assert_int_equal(hist_encode(h, &text), ERR_OK);
    assert_memory_equal(text.data, "HISTFAAA", 8);
    struct err_detail d;
    assert_int_equal(hist_decode(back, text.data, text.len, &d), ERR_OK);
    assert_int_equal(back->count, h->count);
    assert_memory_equal(back->slots, h->slots, sizeof h->slots);
    buf_fini(&text);
    hist_free(h);
    hist_free(back);
}

/* Made by the reference library's Python port (hdrhistogram 0.10.8, HdrHistogram(1, 3600000000000, 3)):
 * record_value for 1, 2, 2, 1000, 5000000 and 123456789012. */
static void test_reads_what_others_write(void **unused)
{
    (void)unused;
    static const char text[] = "HISTFAAAAC94nJNpmSzMwMDAxwABzFCaEch0M9ixgMH+A1SAieUkP9PWw4xMl18yMgEAp6AIdA==";
    static const uint64_t values[] = {1, 2, 2, 1000, 5000000, 123456789012};
    struct hist *h = hist_new();
    struct hist *expected = hist_new();
    for (size_t i = 0; i < ARRAY_LEN(values); i++)
        hist_record(expected, values[i]);
    assert_int_equal(hist_decode(h, text, strlen(text), NULL), ERR_OK);
    assert_memory_equal(h->slots, expected->slots, sizeof h->slots);
    hist_free(h);
    hist_free(expected);
}

static void test_refuses_damaged_text(void **unused)
{
    (void)unused;
    struct hist *h = hist_new();
    struct hist *from = hist_new();
    fill(from, 4, 300);
    struct buf text;
    buf_init(&text, HIST_TEXT_BYTES_MAX);
    assert_int_equal(hist_encode(from, &text), ERR_OK);
    for (size_t len = 0; len < text.len; len++) {
        assert_int_not_equal(hist_decode(h, text.data, len, NULL), ERR_OK);
        assert_int_equal(h->count, 0);
    }
    for (size_t i = 0; i < text.len; i++) {
        char kept = text.data[i];
        text.data[i] = '!';
        assert_int_equal(hist_decode(h, text.data, text.len, NULL), ERR_INVALID);
        text.data[i] = kept;
    }
    char *large = calloc(1, HIST_TEXT_BYTES_MAX + 4);
    memset(large, 'A', HIST_TEXT_BYTES_MAX + 4);
    assert_int_equal(hist_decode(h, large, HIST_TEXT_BYTES_MAX, NULL), ERR_INVALID);
    assert_int_equal(hist_decode(h, large, HIST_TEXT_BYTES_MAX + 4, NULL), ERR_TOO_BIG);
    free(large);
    buf_fini(&text);
    hist_free(h);
    hist_free(from);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_records_with_three_digits),
        cmocka_unit_test(test_clamps_what_is_over_an_hour),
        cmocka_unit_test(test_an_empty_one_has_no_figures),
        cmocka_unit_test(test_percentiles_of_a_ramp),
        cmocka_unit_test(test_merging_equals_recording_together),
        cmocka_unit_test(test_encoding_loses_nothing),
        cmocka_unit_test(test_reads_what_others_write),
        cmocka_unit_test(test_refuses_damaged_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
