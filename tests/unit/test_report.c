/* The figures of a report: of a cell, of a target, and who is ahead of whom. */
#include "common/clock.h"
#include "tests/support/measured_job.h"
#include "tests/support/report_reading.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static void test_figures_of_a_cell(void **state)
{
    struct measured *m = *state;
    measured_add_job(m, 3);
    measured_add_all(m, 3);
    measured_end_job(m);
    struct report *r = measured_report(m);
    const struct report_cell *c = reading_cell(r, NGINX, 10);
    /* 2000, 2040 and 2060 in 2 s each */
    assert_int_equal(c->rate.n, 3);
    assert_near(c->rate.mean, 3050.0 / 3);
    assert_near(c->rate.min, 1000);
    assert_near(c->rate.max, 1030);
    assert_near(
        c->rate.sd,
        sqrt((pow(1000 - 3050.0 / 3, 2) + pow(1020 - 3050.0 / 3, 2) + pow(1030 - 3050.0 / 3, 2)) / 2));
    assert_int_equal(c->ok, 6100);
    assert_near(c->ok_per_server_cpu_s, 6100 / 1.5);
    assert_near(c->body_bytes_per_s, 6100 * 1000 / 6.0);
    assert_near(c->server_cpu_cores.mean, 0.25);
    assert_near(c->foreign_cpu_cores_server.mean, 0.04);
    assert_near(c->foreign_cpu_cores_server.max, 0.06);
    assert_true(isnan(c->foreign_cpu_cores_load.mean)); /* never reported: not known, not zero */
    assert_int_equal(c->latency.count, 6100);
    assert_int_equal(c->made, 3);
    assert_int_equal(r->windows_present, 27);
    assert_int_equal(r->windows_missing, 0);
    assert_int_equal(r->warnings.count, 0);

    const struct report_target *t = &r->targets[NGINX];
    assert_int_equal(t->starts, 3);
    assert_near(t->startup_ns.median, 12e6);
    assert_near(t->startup_ns.min, 11e6);
    assert_near(t->startup_ns.max, 13e6);
    assert_near(t->rss_before_bytes.median, 51 << 20);
    assert_near(t->rss_after_bytes.median, 61 << 20);
    report_free(r);
}

static void test_standings(void **state)
{
    struct measured *m = *state;
    measured_add_job(m, 3);
    measured_add_all(m, 3);
    measured_end_job(m);
    struct report *r = measured_report(m);
    assert_int_equal(reading_cell(r, NGINX, 10)->standing.kind, STANDING_BEST);
    assert_int_equal(reading_cell(r, LIGHTTPD, 10)->standing.kind, STANDING_TIE);
    assert_int_equal(reading_cell(r, EXPRESS, 10)->standing.kind, STANDING_BEHIND);
    assert_near(reading_cell(r, EXPRESS, 10)->standing.against_best, 1230.0 / 6100 - 1);
    size_t group[3];
    assert_int_equal(report_group_count(r), 3);
    report_order_group(r, 0, group);
    assert_int_equal(r->cells[group[0]].design->target, NGINX);
    assert_int_equal(r->cells[group[1]].design->target, LIGHTTPD);
    assert_int_equal(r->cells[group[2]].design->target, EXPRESS);
    char *text = reading_text(r, 80);
    assert_says(text, "tie -1.1%");
    assert_says(text, "-79.8%");
    free(text);
    text = reading_text(r, 200);
    assert_says(text, "with 3 rounds, two equal servers would look so in 10% of cases");
    free(text);
    report_free(r);
}

static void test_one_round_is_no_ranking(void **state)
{
    struct measured *m = *state;
    measured_add_job(m, 1);
    measured_add_all(m, 1);
    measured_end_job(m);
    struct report *r = measured_report(m);
    assert_int_equal(reading_cell(r, NGINX, 10)->standing.kind, STANDING_BEST);
    assert_int_equal(reading_cell(r, EXPRESS, 10)->standing.kind, STANDING_UNKNOWN);
    assert_true(isnan(reading_cell(r, NGINX, 10)->rate.sd));
    char *text = reading_text(r, 80);
    assert_says(text, "? -80.0%");
    assert_says(text, "one round only");
    free(text);
    report_free(r);
}

static void test_invalid_attempts_are_in_no_figure(void **state)
{
    struct measured *m = *state;
    measured_add_job(m, 2);
    for (uint32_t round = 0; round < 2; round++)
        measured_add_run(m, round, NGINX, NULL, NULL);
    measured_add_attempt(
        m,
        (struct measured_attempt){
            .target = NGINX, .connections = 10, .ok = 9000, .gate = "foreign_cpu", .latency_ns = NS_PER_S});
    measured_add_attempt(
        m, (struct measured_attempt){.target = NGINX, .connections = 10, .ok = 200, .attempt = 2});
    measured_add_attempt(
        m, (struct measured_attempt){
               .round = 1, .target = NGINX, .connections = 10, .ok = 100, .latency_ns = 3 * NS_PER_MS});
    struct report *r = measured_report(m);
    const struct report_cell *c = reading_cell(r, NGINX, 10);
    assert_int_equal(c->rate.n, 2);
    assert_near(c->rate.mean, 75);
    assert_int_equal(c->made, 3);
    assert_int_equal(c->invalid, 1);
    assert_int_equal(c->standing.kind, STANDING_ALONE);
    /* 200 at 1 ms and 100 at 3 ms, merged: p50 is 1 ms, p90 3 ms; their averages would be 2 */
    assert_int_equal(c->latency.count, 300);
    assert_in_range(c->latency.p50, 999000, 1001000);
    assert_in_range(c->latency.p90, 2990000, 3010000);
    assert_in_range(c->latency.max, 2990000, 3010000);
    char *text = reading_text(r, 160);
    assert_says(text, "nginx, small with 10 connections, round 1, attempt 1: foreign_cpu: others used");
    assert_says(text, "3, 1 bad");
    free(text);
    report_free(r);
}

#define REPORT_TEST(f) cmocka_unit_test_setup_teardown(f, measured_set_up, measured_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        REPORT_TEST(test_figures_of_a_cell),
        REPORT_TEST(test_standings),
        REPORT_TEST(test_one_round_is_no_ranking),
        REPORT_TEST(test_invalid_attempts_are_in_no_figure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
