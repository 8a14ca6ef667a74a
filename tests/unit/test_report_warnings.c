/* What a reader must be told: what is missing, withheld, mixed, disturbed or a lie. */
#include "common/clock.h"
#include "tests/support/measured_job.h"
#include "tests/support/report_reading.h"
#include "tests/support/store_sample.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void test_wrong_answers_have_no_number(void **state)
{
    struct measured *m = *state;
    measured_add_job(m, 2);
    for (uint32_t round = 0; round < 2; round++) {
        measured_add_run(m, round, EXPRESS, NULL, NULL);
        measured_add_run(m, round, NGINX, round == 1 ? "ping" : NULL,
                         round == 1 ? "check 'ping' failed: expected body \"Hi\", got \"Ho\x1b[31m\"" : NULL);
        static const uint32_t connections[] = {10, 100, 4};
        for (size_t i = 0; i < 3; i++) {
            measured_add_attempt(
                m, (struct measured_attempt){
                       .round = round, .target = EXPRESS, .connections = connections[i], .ok = 10});
            if (round == 0)
                measured_add_attempt(
                    m, (struct measured_attempt){.target = NGINX, .connections = connections[i], .ok = 99});
        }
    }
    measured_end_job(m);
    struct report *r = measured_report(m);
    assert_true(r->targets[NGINX].withheld);
    assert_int_equal(reading_cell(r, NGINX, 10)->rate.n, 0); /* although round 1 had measured it */
    assert_int_equal(reading_cell(r, NGINX, 10)->standing.kind, STANDING_NONE);
    assert_int_equal(reading_cell(r, EXPRESS, 10)->standing.kind, STANDING_ALONE);
    assert_int_equal(r->windows_missing, 6); /* lighttpd's; those of nginx are not wanted */
    char *text = reading_text(r, 120);
    assert_says(text, "nginx has no number: in round 2, check 'ping' failed: expected body \"Hi\", got \"Ho");
    assert_null(strchr(text, '\x1b'));
    free(text);
    report_free(r);
}

static void test_a_failed_start_is_told(void **state)
{
    struct measured *m = *state;
    measured_add_job(m, 2);
    measured_add_run(m, 0, NGINX, NULL, "not ready after 10s: connection refused");
    measured_add_run(m, 1, NGINX, NULL, NULL);
    measured_add_attempt(m,
                         (struct measured_attempt){.round = 1, .target = NGINX, .connections = 10, .ok = 10});
    measured_end_job(m);
    struct report *r = measured_report(m);
    assert_false(r->targets[NGINX].withheld);
    assert_int_equal(r->targets[NGINX].failed_starts, 1);
    assert_int_equal(r->targets[NGINX].startup_ns.n, 1);
    assert_int_equal(reading_cell(r, NGINX, 10)->rate.n, 1);
    char *text = reading_text(r, 80);
    assert_says(text, "nginx failed in 1 of 2 runs, first in round 1: not ready after 10s:");
    assert_says(text, "2, 1 bad");
    free(text);
    report_free(r);
}

static void test_an_incomplete_job_says_so_first(void **state)
{
    struct measured *m = *state;
    measured_add_job(m, 2);
    struct report *r = measured_report(m); /* running, nothing measured */
    assert_int_equal(r->windows_missing, 18);
    char *text = reading_text(r, 80);
    char *second = strchr(text, '\n') + 1;
    assert_int_equal(
        strncmp(second, "  ! NOT COMPLETE: the job is running. 18 of 18 windows are missing.", 66), 0);
    free(text);
    report_free(r);

    measured_add_all(m, 1);
    assert_int_equal(store_set_job_state(m->store, "j1", STORE_JOB_FAILED, "sut1 is silent", 3, NULL),
                     ERR_OK);
    r = measured_report(m);
    assert_string_equal(r->warnings.items[0],
                        "NOT COMPLETE: the job failed: sut1 is silent. 9 of 18 windows are "
                        "missing. `splitbench resume j1` goes on.");
    report_free(r);
    assert_int_equal(store_set_job_state(m->store, "j1", STORE_JOB_CANCELLED, "", 3, NULL), ERR_OK);
    r = measured_report(m);
    assert_true(reading_warns(r, "NOT COMPLETE: the job was cancelled. 9 of 18"));
    report_free(r);
    assert_int_equal(store_set_job_state(m->store, "j1", STORE_JOB_CANCELLED, "cancelled by 'ann'", 3, NULL),
                     ERR_OK);
    r = measured_report(m);
    assert_string_equal(r->warnings.items[0],
                        "NOT COMPLETE: the job was cancelled by 'ann'. 9 of 18 windows are missing. "
                        "`splitbench resume j1` goes on.");
    report_free(r);
    measured_end_job(m); /* done, but a target never came up */
    r = measured_report(m);
    assert_string_equal(r->warnings.items[0], "NOT COMPLETE: 9 of 18 windows are missing.");
    report_free(r);
}

static void test_a_local_run_is_resumed_as_one(void **state)
{
    struct measured *m = *state;
    m->local = true;
    measured_add_job(m, 2);
    assert_int_equal(store_set_job_state(m->store, "j1", STORE_JOB_CANCELLED, "cancelled by 'ann'", 3, NULL),
                     ERR_OK);
    struct report *r = measured_report(m);
    assert_true(reading_warns(r, "`splitbench resume --local j1` goes on."));
    report_free(r);
}

static void test_retries_used_up(void **state)
{
    struct measured *m = *state;
    measured_add_job(m, 2);
    measured_add_all(m, 1);
    measured_add_run(m, 1, NGINX, NULL, NULL);
    struct store_attempt a = sample_attempt(measured_window(m, 1, NGINX, 10), 1, NULL);
    a.valid = false;
    a.gate = "zero";
    assert_int_equal(store_add_attempt(m->store, "j1", &a, NULL), ERR_OK);
    measured_end_job(m);
    struct report *r = measured_report(m);
    assert_int_equal(reading_cell(r, NGINX, 10)->rate.n, 1);
    assert_int_equal(reading_cell(r, NGINX, 10)->present, 2);
    assert_true(reading_warns(r, "1 window has no number: no attempt passed the gates. It is in no figure."));
    report_free(r);
}

static void test_mixtures_are_not_silent(void **state)
{
    struct measured *m = *state;
    measured_add_job(m, 2);
    measured_add_all(m, 1);
    measured_put_host(m, "server", "sut2", measured_host_facts("box3", "Apple M5", "b3"));
    measured_put_host(m, "load", "gen1",
                      measured_host_facts("box2", "AMD Ryzen 9 7950X 16-Core Processor", "b9"));
    assert_int_equal(store_set_placement(m->store, "j1", STORE_PLACEMENT_SHARED, NULL), ERR_OK);
    struct report *r = measured_report(m); /* nothing has been measured there yet */
    assert_false(reading_warns(r, "MIXED"));
    report_free(r);
    measured_add_run(m, 1, NGINX, NULL, NULL);
    measured_add_attempt(m,
                         (struct measured_attempt){.round = 1, .target = NGINX, .connections = 10, .ok = 10});
    r = measured_report(m);
    assert_true(reading_warns(r, "MIXED: some rounds ran split-cpus and shared."));
    assert_true(reading_warns(
        r, "MIXED: role server was played by sut1 (box1, Intel(R) Core(TM) i7-13700K) and by sut2"));
    assert_true(reading_warns(r, "gen1 was rebooted between rounds"));
    report_free(r);
}

/* Round 0 was measured on the host as measured_add_job puts it, round 1 after its libraries were `now`. */
static void expect_upgrade(struct measured *m, const char *now, bool told)
{
    struct msg_host facts = measured_host_facts("box2", "AMD Ryzen 9 7950X 16-Core Processor", "b2");
    facts.libraries = SAMPLE_TEXT(now);
    measured_add_job(m, 2);
    measured_add_all(m, 1);
    measured_put_host(m, "load", "gen1", facts);
    measured_add_run(m, 1, NGINX, NULL, NULL);
    measured_add_attempt(m,
                         (struct measured_attempt){.round = 1, .target = NGINX, .connections = 10, .ok = 10});
    struct report *r = measured_report(m);
    assert_int_equal(
        reading_warns(r, "MIXED: gen1 ran nng 1.5.2, libuv 1.44.2 for some rounds and nng 1.10.0"), told);
    assert_int_equal(reading_warns(r, "MIXED"), told);
    report_free(r);
}

static void test_an_upgrade_between_rounds_is_told(void **state)
{
    expect_upgrade(*state, "nng 1.10.0, libuv 1.50.0", true);
}

static void test_unknown_libraries_are_not_others(void **state)
{
    expect_upgrade(*state, "", false);
}

static void test_shared_cpus_are_told(void **state)
{
    struct measured *m = *state;
    measured_add_job(m, 2);
    assert_int_equal(store_set_placement(m->store, "j1", STORE_PLACEMENT_SHARED, NULL), ERR_OK);
    measured_add_all(m, 2);
    measured_end_job(m);
    struct report *r = measured_report(m);
    assert_true(reading_warns(r, "shared CPUs"));
    char *text = reading_text(r, 80);
    assert_says(text, "shared: one machine, server and generator on the same CPUs");
    free(text);
    report_free(r);
}

static void test_a_busy_host_is_told(void **state)
{
    struct measured *m = *state;
    measured_add_job(m, 2);
    for (uint32_t round = 0; round < 2; round++)
        measured_add_run(m, round, NGINX, NULL, NULL);
    measured_add_attempt(
        m, (struct measured_attempt){.target = NGINX, .connections = 10, .ok = 10, .busy_cores = 0.79});
    struct report *r = measured_report(m); /* 8 CPUs: up to 0.8 is quiet */
    assert_false(reading_warns(r, "BUSY"));
    report_free(r);
    measured_add_attempt(m,
                         (struct measured_attempt){
                             .round = 1, .target = NGINX, .connections = 10, .ok = 10, .busy_cores = 0.83});
    r = measured_report(m);
    assert_true(reading_warns(
        r, "BUSY: other programs used 0.81 of the 8 CPUs of the server host while nginx was measured "
           "(small, 10 connections; mean of rounds)."));
    report_free(r);
}

/* Of a host of its own, that is: on one machine, what is busy has been told of the server. */
static void test_a_busy_load_host_is_told(void **state)
{
    static const enum store_placement placements[] = {STORE_PLACEMENT_SPLIT_CPUS,
                                                      STORE_PLACEMENT_SPLIT_HOSTS};
    struct measured *m = *state;
    measured_add_job(m, 2);
    for (uint32_t round = 0; round < 2; round++) {
        assert_int_equal(store_set_placement(m->store, "j1", placements[round], NULL), ERR_OK);
        measured_add_run(m, round, NGINX, NULL, NULL);
        measured_add_attempt(
            m, (struct measured_attempt){
                   .round = round, .target = NGINX, .connections = 10, .ok = 10, .load_busy_cores = 30});
        struct report *r = measured_report(m);
        assert_int_equal(reading_warns(r, "CPUs of the load host while nginx was measured"), round == 1);
        assert_false(reading_warns(r, "CPUs of the server host while"));
        report_free(r);
    }
}

static void test_lies_in_results_make_no_figure(void **state)
{
    struct measured *m = *state;
    measured_add_job(m, 2);
    measured_add_all(m, 1);
    measured_add_run(m, 1, NGINX, NULL, NULL);
    struct msg_loaded loaded = {.window_start_ns = 9, .window_end_ns = 9, .window.ok = 1000000};
    struct store_attempt a = sample_attempt(measured_window(m, 1, NGINX, 10), 1, &loaded);
    assert_int_equal(store_add_attempt(m->store, "j1", &a, NULL), ERR_OK);
    a = sample_attempt(measured_window(m, 1, NGINX, 100), 1, &loaded);
    loaded.window_end_ns = 9 + 2 * NS_PER_S;
    loaded.latency_hist = (struct msg_bytes){.data = (uint8_t *)SAMPLE_TEXT("HISTxx"), .len = 6};
    assert_int_equal(store_add_attempt(m->store, "j1", &a, NULL), ERR_OK);
    a = sample_attempt(4000000000u, 1, NULL);
    assert_int_equal(store_add_attempt(m->store, "j1", &a, NULL), ERR_OK);
    measured_end_job(m);
    struct report *r = measured_report(m);
    assert_int_equal(reading_cell(r, NGINX, 10)->rate.n, 1);
    assert_int_equal(reading_cell(r, NGINX, 100)->rate.n, 2);
    assert_int_equal(reading_cell(r, NGINX, 100)->latency_missing, 1);
    assert_true(reading_warns(r, "1 valid attempt without a result or with a window of no length"));
    assert_true(reading_warns(r, "1 stored attempt belongs to no window"));
    free(reading_text(r, 80));
    report_free(r);
}

#define REPORT_TEST(f) cmocka_unit_test_setup_teardown(f, measured_set_up, measured_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        REPORT_TEST(test_wrong_answers_have_no_number),
        REPORT_TEST(test_a_failed_start_is_told),
        REPORT_TEST(test_an_incomplete_job_says_so_first),
        REPORT_TEST(test_a_local_run_is_resumed_as_one),
        REPORT_TEST(test_retries_used_up),
        REPORT_TEST(test_mixtures_are_not_silent),
        REPORT_TEST(test_an_upgrade_between_rounds_is_told),
        REPORT_TEST(test_unknown_libraries_are_not_others),
        REPORT_TEST(test_shared_cpus_are_told),
        REPORT_TEST(test_a_busy_host_is_told),
        REPORT_TEST(test_a_busy_load_host_is_told),
        REPORT_TEST(test_lies_in_results_make_no_figure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
