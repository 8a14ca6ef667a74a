#include "agent/load/audit.h"
#include "agent/load/pacer.h"
#include "common/clock.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define START UINT64_C(1000000000000)

static struct pacer_schedule schedule_of(const char *text, enum pacer_arrivals arrivals)
{
    struct pacer_schedule s = {.arrivals = arrivals};
    struct err_detail d = {0};
    if (pacer_schedule_parse(&s, text, &d) != ERR_OK)
        fail_msg("%s", d.text);
    return s;
}

static void test_refuses_what_is_no_schedule(void **unused)
{
    (void)unused;
    static const char *const bad[] = {
        "",       "10s",         "10s:",      ":5",           "10:5",    "0:5",
        "10s:-5", "10s:5-",      "10s:5,",    "10s:0",        "10s:5 ",  "10s:1.5",
        "1ms:1",  "10s:5,,5s:1", "10s:5-6-7", "10s:10000001", "1001h:1", "999h:1,2h:1"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct pacer_schedule s = {0};
        struct err_detail d = {0};
        if (pacer_schedule_parse(&s, bad[i], &d) == ERR_OK)
            fail_msg("'%s' was accepted", bad[i]);
        assert_true(strlen(d.text) > 10);
    }
}

static void test_stages_have_a_limit(void **unused)
{
    (void)unused;
    char text[8 * (PACER_STAGES_MAX + 1) + 1];
    size_t n = 0;
    for (unsigned i = 0; i < PACER_STAGES_MAX; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "%s1s:1", i != 0 ? "," : "");
    struct pacer_schedule s = {0};
    assert_int_equal(pacer_schedule_parse(&s, text, NULL), ERR_OK);
    assert_int_equal(s.count, PACER_STAGES_MAX);
    snprintf(text + n, sizeof text - n, ",1s:1");
    assert_int_equal(pacer_schedule_parse(&s, text, NULL), ERR_TOO_BIG);
}

static void test_even_arrivals_are_even(void **unused)
{
    (void)unused;
    struct pacer_schedule s = schedule_of("2s:1000", ARRIVALS_EVEN);
    struct pacer p;
    pacer_init(&p, &s, START, 0, 1, 1);
    uint64_t count = 0;
    for (; p.next_ns != UINT64_MAX; pacer_advance(&p), count++)
        assert_int_equal(p.next_ns, START + count * NS_PER_MS);
    assert_int_equal(count, 2000);
}

/* The threads' arrivals together are the schedule's: none missing, none twice. */
static void test_threads_share_a_schedule(void **unused)
{
    (void)unused;
    struct pacer_schedule s = schedule_of("1s:700,2s:700-50,1s:0,1s:333", ARRIVALS_EVEN);
    struct pacer whole;
    struct pacer parts[3];
    pacer_init(&whole, &s, START, 0, 1, 1);
    for (uint32_t i = 0; i < 3; i++)
        pacer_init(&parts[i], &s, START, i, 3, 1);
    uint64_t count = 0;
    for (; whole.next_ns != UINT64_MAX; pacer_advance(&whole), count++) {
        struct pacer *part = &parts[count % 3];
        assert_int_equal(part->next_ns, whole.next_ns);
        pacer_advance(part);
    }
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(parts[i].next_ns, UINT64_MAX);
    assert_int_equal(count, 700 + 750 + 333);
    assert_int_equal((uint64_t)pacer_schedule_total(&s), count);
    assert_int_equal(pacer_schedule_duration(&s), 5 * NS_PER_S);
}

/* A ramp from 0 to r over D has sent r t^2 / 2D at t; each half second is compared with that. */
static void test_a_ramp_follows_its_line(void **unused)
{
    (void)unused;
    struct pacer_schedule s = schedule_of("10s:0-1000", ARRIVALS_EVEN);
    struct pacer p;
    pacer_init(&p, &s, START, 0, 1, 1);
    uint64_t count = 0;
    uint64_t last = 0;
    for (unsigned half = 1; half <= 20; half++) {
        while (p.next_ns < START + half * NS_PER_S / 2) {
            assert_true(p.next_ns >= last);
            last = p.next_ns;
            count++;
            pacer_advance(&p);
        }
        double t = half / 2.0;
        assert_true(fabs((double)count - 1000 * t * t / 20) <= 1);
    }
    assert_int_equal(p.next_ns, UINT64_MAX);
}

static void test_poisson_arrivals_have_their_mean_and_spread(void **unused)
{
    (void)unused;
    struct pacer_schedule s = schedule_of("100s:1000", ARRIVALS_POISSON);
    double total = 0;
    for (uint32_t thread = 0; thread < 4; thread++) {
        struct pacer p;
        pacer_init(&p, &s, START, thread, 4, 7);
        double sum = 0;
        double square = 0;
        uint64_t count = 0;
        uint64_t last = START;
        for (; p.next_ns != UINT64_MAX; pacer_advance(&p), count++) {
            assert_true(p.next_ns >= last);
            double gap = (double)(p.next_ns - last);
            last = p.next_ns;
            sum += gap;
            square += gap * gap;
        }
        double mean = sum / (double)count;
        double cv = sqrt(square / (double)count - mean * mean) / mean;
        assert_true(mean > 3.9e6 && mean < 4.1e6);
        assert_true(cv > 0.97 && cv < 1.03);
        total += (double)count;
    }
    assert_true(total > 98000 && total < 102000);
}

static void test_a_seed_repeats_its_arrivals(void **unused)
{
    (void)unused;
    struct pacer_schedule s = schedule_of("1s:1000", ARRIVALS_POISSON);
    struct pacer a;
    struct pacer b;
    struct pacer other;
    pacer_init(&a, &s, START, 0, 1, 5);
    pacer_init(&b, &s, START, 0, 1, 5);
    pacer_init(&other, &s, START, 0, 1, 6);
    bool differs = false;
    for (int i = 0; i < 100; i++) {
        assert_int_equal(a.next_ns, b.next_ns);
        differs |= a.next_ns != other.next_ns;
        pacer_advance(&a);
        pacer_advance(&b);
        pacer_advance(&other);
    }
    assert_true(differs);
}

static void test_the_audit_sees_gaps_bursts_and_lateness(void **unused)
{
    (void)unused;
    struct audit even = {0};
    struct audit bursts = {0};
    assert_true(audit_gap_cv(&even) < 0);
    for (uint64_t i = 0; i < 1000; i++) {
        uint64_t due = START + i * NS_PER_MS;
        audit_send(&even, due, due);
        uint64_t together = START + i / 10 * 10 * NS_PER_MS + 20 * NS_PER_MS; /* ten at once */
        audit_send(&bursts, due, together);
    }
    assert_true(audit_gap_cv(&even) < 0.001);
    assert_true(audit_gap_cv(&bursts) > 2.9 && audit_gap_cv(&bursts) < 3.1);
    assert_int_equal(even.late, 0);
    assert_int_equal(bursts.late, 1000);
    assert_int_equal(even.burst_max, 1);
    assert_int_equal(bursts.burst_max, 10);
    audit_merge(&even, &bursts);
    assert_int_equal(even.gaps, 2 * 999);
    assert_int_equal(even.burst_max, 10);
}

static void test_the_verdict_names_what_was_the_limit(void **unused)
{
    (void)unused;
    struct hist *lag = hist_new();
    struct hist *latency = hist_new();
    hist_record(latency, 5 * NS_PER_MS);
    hist_record(lag, NS_PER_MS / 2);
    assert_int_equal(audit_judge(0.5, lag, latency).limit, LIMIT_NONE);
    hist_record(lag, AUDIT_LAG_NS_MAX); /* at the limit is not beyond it */
    assert_int_equal(audit_judge(0.5, lag, latency).limit, LIMIT_NONE);
    assert_int_equal(audit_judge(0.95, lag, latency).limit, LIMIT_CPU);
    assert_int_equal(audit_judge(AUDIT_CPU_SHARE_MAX, lag, latency).limit, LIMIT_NONE);
    hist_record(lag, 3 * NS_PER_MS);
    assert_int_equal(audit_judge(0.5, lag, latency).limit, LIMIT_LAG);
    assert_int_equal(audit_judge(0.5, NULL, latency).limit, LIMIT_NONE);
    hist_clear(latency);
    hist_record(latency, 100 * NS_PER_MS); /* beside which 3 ms do not matter */
    assert_int_equal(audit_judge(0.5, lag, latency).limit, LIMIT_NONE);
    hist_free(lag);
    hist_free(latency);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refuses_what_is_no_schedule),
        cmocka_unit_test(test_stages_have_a_limit),
        cmocka_unit_test(test_even_arrivals_are_even),
        cmocka_unit_test(test_threads_share_a_schedule),
        cmocka_unit_test(test_a_ramp_follows_its_line),
        cmocka_unit_test(test_poisson_arrivals_have_their_mean_and_spread),
        cmocka_unit_test(test_a_seed_repeats_its_arrivals),
        cmocka_unit_test(test_the_audit_sees_gaps_bursts_and_lateness),
        cmocka_unit_test(test_the_verdict_names_what_was_the_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
