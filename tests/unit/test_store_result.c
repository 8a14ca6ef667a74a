/* Results in the store: attempts, runs with their hosts, what came late. */
#include "common/clock.h"
#include "common/mem.h"
#include "controller/store/store_read.h"
#include "tests/support/store_place.h"
#include "tests/support/store_sample.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static int64_t add_run(struct store *s, const char *job)
{
    struct store_target_run run = {.round = 1,
                                   .slot = 1,
                                   .target = 1,
                                   .ok = true,
                                   .error = "",
                                   .startup_ns = 12 * NS_PER_MS,
                                   .rss_before_bytes = 4096,
                                   .started_wall_ns = 7};
    int64_t id = 0;
    assert_int_equal(store_add_target_run(s, job, &run, &id, NULL), ERR_OK);
    assert_true(id > 0);
    return id;
}

struct expected {
    const struct store_attempt *attempt;
    size_t count;
};

static void expect_equal(void *arg, const struct store_attempt *a)
{
    struct expected *x = arg;
    assert_attempt_equal(a, x->attempt);
    assert_int_equal(a->run_id, x->attempt->run_id);
    x->count++;
}

/* It is the only one of its window. */
static void expect_attempt(struct store *s, const struct store_attempt *a)
{
    struct expected x = {.attempt = a};
    assert_int_equal(store_visit_window(s, "j", a->window, true, expect_equal, &x, NULL), ERR_OK);
    assert_int_equal(x.count, 1);
}

static void test_attempt_comes_back_complete(void **state)
{
    struct place *p = *state;
    place_add_job(p, "j");
    int64_t run = add_run(p->store, "j");
    struct msg_loaded *loaded = sample_loaded(1);
    struct store_attempt a = sample_attempt(3, 1, loaded);
    a.run_id = run;
    assert_int_equal(store_add_attempt(p->store, "j", &a, NULL), ERR_OK);
    assert_int_equal(store_end_target_run(p->store, run, 8192, "", "log\0log", 7, NULL), ERR_OK);
    place_reopen(p);

    struct store_results r;
    assert_int_equal(store_read_results(p->store, "j", &r, NULL), ERR_OK);
    assert_int_equal(r.job.windows_done, 1);
    expect_attempt(p->store, &a);
    assert_int_equal(r.run_count, 1);
    assert_int_equal(r.runs[0].id, run);
    assert_true(r.runs[0].ok);
    assert_true(r.runs[0].ended);
    assert_int_equal(r.runs[0].startup_ns, 12 * NS_PER_MS);
    assert_int_equal(r.runs[0].rss_before_bytes, 4096);
    assert_int_equal(r.runs[0].rss_after_bytes, 8192);
    assert_int_equal(r.runs[0].log_tail.len, 0); /* only of failed ones */
    store_results_fini(&r);
    sample_loaded_free(loaded);
    assert_int_equal(store_read_results(p->store, "x", &r, NULL), ERR_NOT_FOUND);
}

static void test_attempt_without_a_result(void **state)
{
    struct place *p = *state;
    place_add_job(p, "j");
    struct store_attempt a = {.window = 0,
                              .attempt = 1,
                              .gate = "agent_lost",
                              .reason = "load1 is silent",
                              .server_cpu_s = -1,
                              .server_cpu_cores = -1,
                              .generator_cpu_s = -1,
                              .generator_cpu_cores = -1,
                              .foreign_cpu_cores_server = -1,
                              .foreign_cpu_cores_load = -1,
                              .own_cpu_cores = -1};
    assert_int_equal(store_add_attempt(p->store, "j", &a, NULL), ERR_OK);
    struct store_results r;
    assert_int_equal(store_read_results(p->store, "j", &r, NULL), ERR_OK);
    expect_attempt(p->store, &a);
    assert_int_equal(r.job.windows_done, 0);
    store_results_fini(&r);
}

static void test_unknown_figures_stay_unknown(void **state)
{
    struct place *p = *state;
    place_add_job(p, "j");
    struct msg_loaded *loaded = sample_loaded(1);
    loaded->figures[FIGURE_SHORT_BODIES] = (struct figure){0};
    loaded->figures[FIGURE_WIRE_IN_BYTES] = figure_known(0);
    struct store_attempt a = sample_attempt(0, 1, loaded);
    for (int i = 0; i < FIGURE_TREE_COUNT; i++)
        a.server[i] = (struct figure){0};
    assert_int_equal(store_add_attempt(p->store, "j", &a, NULL), ERR_OK);
    place_reopen(p);
    expect_attempt(p->store, &a);
    sample_loaded_free(loaded);
}

static void test_nothing_is_stored_twice(void **state)
{
    struct place *p = *state;
    place_add_job(p, "j");
    struct msg_loaded *loaded = sample_loaded(1);
    struct store_attempt a = sample_attempt(0, 1, loaded);
    a.valid = a.final = false;
    assert_int_equal(store_add_attempt(p->store, "j", &a, NULL), ERR_OK);
    struct err_detail d;
    assert_int_equal(store_add_attempt(p->store, "j", &a, &d), ERR_EXISTS);
    assert_non_null(strstr(d.text, "window 0"));
    a.attempt = 2;
    a.valid = a.final = true;
    assert_int_equal(store_add_attempt(p->store, "j", &a, NULL), ERR_OK);
    a.attempt = 3; /* the window is present already */
    assert_int_equal(store_add_attempt(p->store, "j", &a, NULL), ERR_EXISTS);
    assert_int_equal(place_attempts(p->store, "j"), 2);

    assert_int_equal(store_add_attempt(p->store, "x", &a, NULL), ERR_NOT_FOUND);
    a.window = 1;
    a.run_id = 999;
    assert_int_equal(store_add_attempt(p->store, "j", &a, NULL), ERR_NOT_FOUND);
    a.run_id = 0;
    loaded->window.ok = UINT64_C(1) << 63; /* no agent makes us store a lie */
    assert_int_equal(store_add_attempt(p->store, "j", &a, NULL), ERR_INVALID);
    loaded->window.ok--;
    assert_int_equal(store_add_attempt(p->store, "j", &a, NULL), ERR_OK);
    sample_loaded_free(loaded);
}

static void note_attempt(void *arg, const struct store_attempt *a)
{
    char *seen = arg;
    size_t at = strlen(seen);
    assert_null(a->loaded);
    snprintf(seen + at, 64 - at, "%u.%u ", a->window, a->attempt);
}

static void test_invalid_attempts_are_visited_by_window(void **state)
{
    struct place *p = *state;
    place_add_job(p, "j");
    struct msg_loaded *loaded = sample_loaded(1);
    static const uint32_t windows[][2] = {{4, 1}, {1, 2}, {2, 1}, {1, 1}, {9, 1}};
    for (size_t i = 0; i < ARRAY_LEN(windows); i++) {
        struct store_attempt a = sample_attempt(windows[i][0], windows[i][1], loaded);
        a.valid = a.final = false;
        assert_int_equal(store_add_attempt(p->store, "j", &a, NULL), ERR_OK);
    }
    struct store_attempt good = sample_attempt(3, 1, loaded);
    assert_int_equal(store_add_attempt(p->store, "j", &good, NULL), ERR_OK);
    sample_loaded_free(loaded);
    char all[64] = "";
    char three[64] = "";
    assert_int_equal(store_visit_invalid(p->store, "j", 9, 10, note_attempt, all, NULL), ERR_OK);
    assert_string_equal(all, "1.1 1.2 2.1 4.1 ");
    assert_int_equal(store_visit_invalid(p->store, "j", 9, 3, note_attempt, three, NULL), ERR_OK);
    assert_string_equal(three, "1.1 1.2 2.1 ");
    size_t count = 0;
    assert_int_equal(store_count_attempts(p->store, "j", 4, &count, NULL), ERR_OK);
    assert_int_equal(count, 2);
}

/* What another handle stores meanwhile is not seen until the end. */
static void test_a_snapshot_is_of_one_moment(void **state)
{
    struct place *p = *state;
    place_add_job(p, "j");
    struct store *reader = NULL;
    assert_int_equal(store_open(p->path, true, &reader, NULL), ERR_OK);
    assert_int_equal(store_snapshot_begin(reader, NULL), ERR_OK);
    assert_int_equal(place_attempts(reader, "j"), 0);
    struct store_attempt a = sample_attempt(0, 1, NULL);
    assert_int_equal(store_add_attempt(p->store, "j", &a, NULL), ERR_OK);
    assert_int_equal(place_attempts(reader, "j"), 0);
    store_snapshot_end(reader);
    assert_int_equal(place_attempts(reader, "j"), 1);
    store_close(reader);
}

static void test_windows_present(void **state)
{
    struct place *p = *state;
    place_add_job(p, "j");
    struct store_attempt a = sample_attempt(0, 1, NULL);
    assert_int_equal(store_add_attempt(p->store, "j", &a, NULL), ERR_OK);
    a = sample_attempt(2, 1, NULL);
    a.valid = a.final = false;
    assert_int_equal(store_add_attempt(p->store, "j", &a, NULL), ERR_OK);
    a = sample_attempt(3, 1, NULL);
    a.valid = false; /* no retry left */
    assert_int_equal(store_add_attempt(p->store, "j", &a, NULL), ERR_OK);
    a = sample_attempt(9, 1, NULL); /* beyond what is asked for */
    assert_int_equal(store_add_attempt(p->store, "j", &a, NULL), ERR_OK);

    bool *present = NULL;
    assert_int_equal(store_windows_present(p->store, "j", 5, &present, NULL), ERR_OK);
    const bool expected[] = {true, false, false, true, false};
    assert_memory_equal(present, expected, sizeof(expected));
    free(present);
    uint32_t made = 9;
    assert_int_equal(store_attempts_made(p->store, "j", 2, &made, NULL), ERR_OK);
    assert_int_equal(made, 1);
    assert_int_equal(store_attempts_made(p->store, "j", 1, &made, NULL), ERR_OK);
    assert_int_equal(made, 0);
}

static void test_runs_keep_the_hosts_they_ran_on(void **state)
{
    struct place *p = *state;
    char *labels[] = {SAMPLE_TEXT("pool=sut"), SAMPLE_TEXT("site=lab1")};
    struct msg_host facts = {.hostname = SAMPLE_TEXT("box1"),
                             .boot_id = SAMPLE_TEXT("b1"),
                             .kernel = SAMPLE_TEXT("6.1"),
                             .os = SAMPLE_TEXT("Debian 12"),
                             .cpu_model = SAMPLE_TEXT("i7"),
                             .address = SAMPLE_TEXT("10.0.0.1"),
                             .cpus = 8,
                             .cpu_list = SAMPLE_TEXT("0-7"),
                             .memory_bytes = 1u << 30,
                             .labels = {labels, 2},
                             .libraries = SAMPLE_TEXT("libuv 1.44.2, zlib 1.2.13")};
    struct store_host server = {.role = "server", .ordinal = 0, .agent = "sut1", .facts = &facts};
    struct store_host load = {.role = "load", .ordinal = 0, .agent = "gen1", .facts = &facts};
    place_add_job(p, "j");
    assert_int_equal(store_put_host(p->store, "j", &server, NULL), ERR_OK);
    assert_int_equal(store_put_host(p->store, "j", &load, NULL), ERR_OK);
    assert_int_equal(store_put_host(p->store, "j", &server, NULL), ERR_OK); /* the same: nothing new */
    add_run(p->store, "j");
    facts.cpu_model = SAMPLE_TEXT("i9");
    server.agent = "sut2";
    assert_int_equal(store_put_host(p->store, "j", &server, NULL), ERR_OK);
    assert_int_equal(store_set_placement(p->store, "j", STORE_PLACEMENT_SPLIT_HOSTS, NULL), ERR_OK);
    add_run(p->store, "j");
    facts.libraries = SAMPLE_TEXT("libuv 1.50.0, zlib 1.2.13");
    assert_int_equal(store_put_host(p->store, "j", &server, NULL), ERR_OK); /* an upgrade below the agent */
    assert_int_equal(store_put_host(p->store, "x", &server, NULL), ERR_NOT_FOUND);

    struct store_results r;
    assert_int_equal(store_read_results(p->store, "j", &r, NULL), ERR_OK);
    assert_int_equal(r.host_count, 4);
    assert_string_equal(r.hosts[0].agent, "sut1");
    assert_string_equal(r.hosts[0].facts.cpu_model, "i7");
    assert_string_equal(r.hosts[0].facts.hostname, "box1");
    assert_int_equal(r.hosts[0].facts.labels.count, 2);
    assert_string_equal(r.hosts[0].facts.labels.items[1], "site=lab1");
    assert_string_equal(r.hosts[0].facts.libraries, "libuv 1.44.2, zlib 1.2.13");
    assert_string_equal(r.hosts[2].agent, "sut2");
    assert_string_equal(r.hosts[2].facts.libraries, "libuv 1.44.2, zlib 1.2.13");
    assert_string_equal(r.hosts[3].facts.libraries, "libuv 1.50.0, zlib 1.2.13");
    assert_int_equal(r.runs[0].host_count, 2);
    assert_int_equal(r.runs[0].hosts[0], r.hosts[0].id);
    assert_int_equal(r.runs[0].placement, STORE_PLACEMENT_SPLIT_CPUS);
    assert_int_equal(r.runs[1].host_count, 2);
    assert_int_equal(r.runs[1].hosts[0], r.hosts[1].id);
    assert_int_equal(r.runs[1].hosts[1], r.hosts[2].id);
    assert_int_equal(r.runs[1].placement, STORE_PLACEMENT_SPLIT_HOSTS);
    store_results_fini(&r);
}

static void test_failed_runs_keep_cause_and_log(void **state)
{
    struct place *p = *state;
    place_add_job(p, "j");
    int64_t run = add_run(p->store, "j");
    char *log = mem_zalloc(1, STORE_LOG_TAIL_BYTES + 10);
    memset(log, 'x', STORE_LOG_TAIL_BYTES + 10);
    log[9] = 'a';
    log[10] = 'b';
    assert_int_equal(
        store_end_target_run(p->store, run, 0, "exited with 1", log, STORE_LOG_TAIL_BYTES + 10, NULL),
        ERR_OK);
    assert_int_equal(store_end_target_run(p->store, 999, 0, "", NULL, 0, NULL), ERR_NOT_FOUND);
    struct store_target_run wrong = {.ok = false, .error = "body differs", .failed_check = "ping"};
    assert_int_equal(store_add_target_run(p->store, "j", &wrong, &run, NULL), ERR_OK);
    struct store_results r;
    assert_int_equal(store_read_results(p->store, "j", &r, NULL), ERR_OK);
    assert_string_equal(r.runs[0].failed_check, "");
    assert_string_equal(r.runs[1].failed_check, "ping");
    assert_string_equal(r.runs[1].error, "body differs");
    assert_false(r.runs[0].ok);
    assert_string_equal(r.runs[0].error, "exited with 1");
    assert_int_equal(r.runs[0].log_tail.len, STORE_LOG_TAIL_BYTES);
    assert_int_equal(r.runs[0].log_tail.data[0], 'b');
    store_results_fini(&r);
    free(log);
}

static void put_part(struct place *p, const char *job, const char *agent)
{
    const struct msg_host facts = {.hostname = SAMPLE_TEXT("h"), .boot_id = SAMPLE_TEXT("b")};
    const struct store_host host = {.role = "load", .agent = agent, .facts = &facts};
    assert_int_equal(store_put_host(p->store, job, &host, NULL), ERR_OK);
}

static void test_late_results_are_taken_of_those_who_were_part(void **state)
{
    struct place *p = *state;
    struct err_detail d;
    uint64_t count = 0;
    place_add_job(p, "j");
    place_add_job(p, "k");
    put_part(p, "j", "gen1");
    put_part(p, "k", "gen2");
    put_part(p, "j", "gen3"); /* who was part once may be late, though another one counts now */
    assert_int_equal(store_admit_late_event(p->store, "gen1", "j", &d), ERR_OK);
    assert_int_equal(store_admit_late_event(p->store, "gen3", "j", &d), ERR_OK);
    assert_int_equal(store_admit_late_event(p->store, "gen1", "k", &d), ERR_DENIED);
    assert_string_equal(d.text, "it never was part of job k");
    assert_int_equal(store_admit_late_event(p->store, "gen1", "made-up", &d), ERR_DENIED);
    assert_int_equal(store_admit_late_event(p->store, "gen1", "", &d), ERR_DENIED);
    assert_int_equal(store_refused_late(p->store, "gen1", &count, NULL), ERR_OK);
    assert_int_equal(count, 0);
    assert_int_equal(store_count_refused_late(p->store, "gen1", 3, NULL), ERR_OK);
    assert_int_equal(store_count_refused_late(p->store, "gen1", 2, NULL), ERR_OK);
    assert_int_equal(store_count_refused_late(p->store, "gen2", 1, NULL), ERR_OK);
    place_reopen(p);
    assert_int_equal(store_refused_late(p->store, "gen1", &count, NULL), ERR_OK);
    assert_int_equal(count, 5);
}

static void add_late(struct place *p, const char *agent, uint64_t number, uint8_t *log, size_t len)
{
    struct msg_event e = {.number = number, .job = SAMPLE_TEXT("j"), .kind = MSG_EVENT_EXITED};
    e.u.exited.log = (struct msg_bytes){.data = log, .len = len};
    assert_int_equal(store_add_late_event(p->store, agent, 1, &e, NULL), ERR_OK);
}

static void test_late_results_of_an_agent_have_a_quota(void **state)
{
    struct place *p = *state;
    struct err_detail d;
    size_t quarter = STORE_LATE_BYTES_MAX / 4;
    uint8_t *log = mem_zalloc(1, quarter);
    place_add_job(p, "j");
    put_part(p, "j", "gen1");
    put_part(p, "j", "gen2");
    for (uint64_t i = 1; i <= 4; i++)
        add_late(p, "gen1", i, log, i == 4 ? quarter - 1 : quarter);
    assert_int_equal(store_admit_late_event(p->store, "gen1", "j", &d), ERR_OK);
    add_late(p, "gen1", 4, log, quarter); /* twice: changes nothing */
    assert_int_equal(store_admit_late_event(p->store, "gen1", "j", &d), ERR_OK);
    add_late(p, "gen1", 5, log, 1);
    assert_int_equal(store_admit_late_event(p->store, "gen1", "j", &d), ERR_FULL);
    assert_string_equal(d.text, "5 late results of 67108864 bytes are kept of it, and no more are");
    free(log);
    for (uint64_t i = 1; i < STORE_LATE_EVENTS_MAX; i++)
        add_late(p, "gen2", i, NULL, 0);
    assert_int_equal(store_admit_late_event(p->store, "gen2", "j", &d), ERR_OK);
    add_late(p, "gen2", STORE_LATE_EVENTS_MAX, NULL, 0);
    assert_int_equal(store_admit_late_event(p->store, "gen2", "j", &d), ERR_FULL);
}

static void test_late_events_are_kept_once(void **state)
{
    struct place *p = *state;
    place_add_job(p, "j");
    struct msg_loaded *loaded = sample_loaded(1);
    struct msg_event ev = {
        .number = 7, .answers = 3, .job = SAMPLE_TEXT("j"), .kind = MSG_EVENT_LOADED, .u.loaded = *loaded};
    for (int i = 0; i < 2; i++)
        assert_int_equal(store_add_late_event(p->store, "gen1", UINT64_MAX, &ev, NULL), ERR_OK);
    assert_int_equal(store_add_late_event(p->store, "gen1", 1, &ev, NULL), ERR_OK);
    struct msg_event exited = {.number = 8,
                               .job = SAMPLE_TEXT("gone"),
                               .kind = MSG_EVENT_EXITED,
                               .u.exited = {.log = {(uint8_t *)"bye", 3}}};
    assert_int_equal(store_add_late_event(p->store, "gen1", 1, &exited, NULL), ERR_OK);
    struct store_results r;
    assert_int_equal(store_read_results(p->store, "j", &r, NULL), ERR_OK);
    assert_int_equal(r.late_events, 2);
    assert_int_equal(place_attempts(p->store, "j"), 0);
    store_results_fini(&r);
    sample_loaded_free(loaded);
}

#define STORE_TEST(f) cmocka_unit_test_setup_teardown(f, place_set_up, place_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORE_TEST(test_attempt_comes_back_complete),
        STORE_TEST(test_attempt_without_a_result),
        STORE_TEST(test_unknown_figures_stay_unknown),
        STORE_TEST(test_nothing_is_stored_twice),
        STORE_TEST(test_invalid_attempts_are_visited_by_window),
        STORE_TEST(test_a_snapshot_is_of_one_moment),
        STORE_TEST(test_windows_present),
        STORE_TEST(test_runs_keep_the_hosts_they_ran_on),
        STORE_TEST(test_failed_runs_keep_cause_and_log),
        STORE_TEST(test_late_events_are_kept_once),
        STORE_TEST(test_late_results_are_taken_of_those_who_were_part),
        STORE_TEST(test_late_results_of_an_agent_have_a_quota),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
