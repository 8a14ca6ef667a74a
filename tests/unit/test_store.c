#include "controller/store/store.h"

#include "common/clock.h"
#include "common/mem.h"
#include "controller/store/store_read.h"
#include "tests/support/store_sample.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* A directory of its own for each test. */
struct place {
    char dir[64];
    char path[96];
    struct store *store;
};

static int set_up(void **state)
{
    struct place *p = mem_zalloc(1, sizeof(*p));
    snprintf(p->dir, sizeof(p->dir), "/tmp/splitbench-test-store-XXXXXX");
    assert_non_null(mkdtemp(p->dir));
    snprintf(p->path, sizeof(p->path), "%s/lab.db", p->dir);
    struct err_detail d = {{0}};
    assert_int_equal(store_open(p->path, false, &p->store, &d), ERR_OK);
    *state = p;
    return 0;
}

static int tear_down(void **state)
{
    struct place *p = *state;
    store_close(p->store);
    chmod(p->dir, 0700);
    const char *const ends[] = {"", "-wal", "-shm"};
    for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
        char *file = mem_printf("%s%s", p->path, ends[i]);
        unlink(file);
        free(file);
    }
    rmdir(p->dir);
    free(p);
    return 0;
}

static void reopen(struct place *p)
{
    store_close(p->store);
    p->store = NULL;
    assert_int_equal(store_open(p->path, false, &p->store, NULL), ERR_OK);
}

static void add_job(struct store *s, const char *id)
{
    struct store_job job = sample_job(id);
    assert_int_equal(store_add_job(s, &job, NULL), ERR_OK);
}

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

/* ---- jobs ----------------------------------------------------------------------------------------- */

static void test_job_comes_back_as_it_was(void **state)
{
    struct place *p = *state;
    struct store_job in = sample_job("j1");
    assert_int_equal(store_add_job(p->store, &in, NULL), ERR_OK);
    reopen(p);
    struct store_job out;
    assert_int_equal(store_get_job(p->store, "j1", &out, NULL), ERR_OK);
    assert_string_equal(out.id, "j1");
    assert_string_equal(out.name, in.name);
    assert_int_equal(out.state, in.state);
    assert_int_equal(out.mode, in.mode);
    assert_string_equal(out.cause, in.cause);
    assert_int_equal(out.exit_code, in.exit_code);
    assert_int_equal(out.placement, in.placement);
    assert_int_equal(out.created_wall_ns, in.created_wall_ns);
    assert_int_equal(out.started_wall_ns, 0);
    assert_int_equal(out.ended_wall_ns, 0);
    assert_string_equal(out.experiment_json, in.experiment_json);
    assert_string_equal(out.base_dir, in.base_dir);
    assert_int_equal(out.windows_total, in.windows_total);
    assert_int_equal(out.windows_done, 0);
    store_job_fini(&out);

    struct err_detail d;
    assert_int_equal(store_add_job(p->store, &in, &d), ERR_EXISTS);
    assert_non_null(strstr(d.text, "j1"));
    assert_int_equal(store_get_job(p->store, "j2", &out, &d), ERR_NOT_FOUND);
    assert_non_null(strstr(d.text, "j2"));
}

static void test_job_list_is_newest_first(void **state)
{
    struct place *p = *state;
    const char *const ids[] = {"b", "a", "c"};
    for (size_t i = 0; i < ARRAY_LEN(ids); i++) {
        struct store_job job = sample_job(ids[i]);
        job.created_wall_ns = 100 + i;
        assert_int_equal(store_add_job(p->store, &job, NULL), ERR_OK);
    }
    struct store_job *jobs = NULL;
    size_t count = 0;
    assert_int_equal(store_list_jobs(p->store, &jobs, &count, NULL), ERR_OK);
    assert_int_equal(count, 3);
    assert_string_equal(jobs[0].id, "c");
    assert_string_equal(jobs[1].id, "a");
    assert_string_equal(jobs[2].id, "b");
    for (size_t i = 0; i < count; i++)
        store_job_fini(&jobs[i]);
    free(jobs);
}

static void test_job_states_set_their_times(void **state)
{
    struct place *p = *state;
    struct store_job out;
    add_job(p->store, "j");
    assert_int_equal(store_set_job_state(p->store, "j", STORE_JOB_RUNNING, "", 0, NULL), ERR_OK);
    assert_int_equal(store_get_job(p->store, "j", &out, NULL), ERR_OK);
    uint64_t started = out.started_wall_ns;
    assert_true(started > 0);
    assert_int_equal(out.ended_wall_ns, 0);
    store_job_fini(&out);

    assert_int_equal(store_set_job_state(p->store, "j", STORE_JOB_FAILED, "agent lost", 3, NULL), ERR_OK);
    assert_int_equal(store_get_job(p->store, "j", &out, NULL), ERR_OK);
    assert_int_equal(out.state, STORE_JOB_FAILED);
    assert_string_equal(out.cause, "agent lost");
    assert_int_equal(out.exit_code, 3);
    assert_true(out.ended_wall_ns >= started);
    store_job_fini(&out);

    assert_int_equal(store_set_job_state(p->store, "j", STORE_JOB_RUNNING, NULL, 0, NULL), ERR_OK);
    assert_int_equal(store_get_job(p->store, "j", &out, NULL), ERR_OK);
    assert_int_equal(out.started_wall_ns, started); /* resumed: the first start stays */
    assert_int_equal(out.ended_wall_ns, 0);
    assert_string_equal(out.cause, "");
    store_job_fini(&out);

    assert_int_equal(store_set_placement(p->store, "j", STORE_PLACEMENT_SPLIT_HOSTS, NULL), ERR_OK);
    assert_int_equal(store_get_job(p->store, "j", &out, NULL), ERR_OK);
    assert_int_equal(out.placement, STORE_PLACEMENT_SPLIT_HOSTS);
    store_job_fini(&out);
    assert_int_equal(store_set_job_state(p->store, "x", STORE_JOB_DONE, "", 0, NULL), ERR_NOT_FOUND);
    assert_int_equal(store_set_placement(p->store, "x", STORE_PLACEMENT_SHARED, NULL), ERR_NOT_FOUND);
}

static void test_interrupted_jobs_fail(void **state)
{
    struct place *p = *state;
    const char *const ids[] = {"queued", "running", "also", "done"};
    for (size_t i = 0; i < ARRAY_LEN(ids); i++)
        add_job(p->store, ids[i]);
    assert_int_equal(store_set_job_state(p->store, "running", STORE_JOB_RUNNING, "", 0, NULL), ERR_OK);
    assert_int_equal(store_set_job_state(p->store, "also", STORE_JOB_RUNNING, "", 0, NULL), ERR_OK);
    assert_int_equal(store_set_job_state(p->store, "done", STORE_JOB_DONE, "", 0, NULL), ERR_OK);
    size_t count = 0;
    assert_int_equal(store_fail_interrupted(p->store, "controller died", &count, NULL), ERR_OK);
    assert_int_equal(count, 2);
    struct store_job out;
    assert_int_equal(store_get_job(p->store, "also", &out, NULL), ERR_OK);
    assert_int_equal(out.state, STORE_JOB_FAILED);
    assert_string_equal(out.cause, "controller died");
    assert_int_equal(out.exit_code, 3);
    store_job_fini(&out);
    assert_int_equal(store_get_job(p->store, "queued", &out, NULL), ERR_OK);
    assert_int_equal(out.state, STORE_JOB_QUEUED);
    store_job_fini(&out);
    assert_int_equal(store_fail_interrupted(p->store, "again", &count, NULL), ERR_OK);
    assert_int_equal(count, 0);
}

static void test_lines_are_read_in_pieces(void **state)
{
    struct place *p = *state;
    add_job(p->store, "j");
    add_job(p->store, "other");
    for (int i = 1; i <= 5; i++) {
        char text[32];
        snprintf(text, sizeof(text), "line %d", i);
        assert_int_equal(store_add_line(p->store, "j", text, NULL), ERR_OK);
        assert_int_equal(store_add_line(p->store, "other", "no", NULL), ERR_OK);
    }
    struct msg_strings lines;
    assert_int_equal(store_get_lines(p->store, "j", 1, 3, &lines, NULL), ERR_OK);
    assert_int_equal(lines.count, 3);
    assert_string_equal(lines.items[0], "line 2");
    assert_string_equal(lines.items[2], "line 4");
    mem_free_strings(&lines.items, &lines.count);
    assert_int_equal(store_get_lines(p->store, "j", 5, 3, &lines, NULL), ERR_OK);
    assert_int_equal(lines.count, 0);
    assert_int_equal(store_add_line(p->store, "x", "lost", NULL), ERR_NOT_FOUND);
}

/* ---- results -------------------------------------------------------------------------------------- */

static void test_attempt_comes_back_complete(void **state)
{
    struct place *p = *state;
    add_job(p->store, "j");
    int64_t run = add_run(p->store, "j");
    struct msg_loaded *loaded = sample_loaded(1);
    struct store_attempt a = sample_attempt(3, 1, loaded);
    a.run_id = run;
    assert_int_equal(store_add_attempt(p->store, "j", &a, NULL), ERR_OK);
    assert_int_equal(store_end_target_run(p->store, run, 8192, "", "log\0log", 7, NULL), ERR_OK);
    reopen(p);

    struct store_results r;
    assert_int_equal(store_read_results(p->store, "j", &r, NULL), ERR_OK);
    assert_int_equal(r.job.windows_done, 1);
    assert_int_equal(r.attempt_count, 1);
    assert_attempt_equal(&r.attempts[0], &a);
    assert_int_equal(r.attempts[0].run_id, run);
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
    add_job(p->store, "j");
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
    assert_null(r.attempts[0].loaded);
    assert_int_equal(r.attempts[0].run_id, 0);
    assert_attempt_equal(&r.attempts[0], &a);
    assert_int_equal(r.job.windows_done, 0);
    store_results_fini(&r);
}

static size_t attempts_of(struct store *s, const char *job)
{
    struct store_results r;
    assert_int_equal(store_read_results(s, job, &r, NULL), ERR_OK);
    size_t count = r.attempt_count;
    store_results_fini(&r);
    return count;
}

static void test_nothing_is_stored_twice(void **state)
{
    struct place *p = *state;
    add_job(p->store, "j");
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
    assert_int_equal(attempts_of(p->store, "j"), 2);

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

static void test_windows_present(void **state)
{
    struct place *p = *state;
    add_job(p->store, "j");
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
                             .labels = {labels, 2}};
    struct store_host server = {.role = "server", .ordinal = 0, .agent = "sut1", .facts = &facts};
    struct store_host load = {.role = "load", .ordinal = 0, .agent = "gen1", .facts = &facts};
    add_job(p->store, "j");
    assert_int_equal(store_put_host(p->store, "j", &server, NULL), ERR_OK);
    assert_int_equal(store_put_host(p->store, "j", &load, NULL), ERR_OK);
    assert_int_equal(store_put_host(p->store, "j", &server, NULL), ERR_OK); /* the same: nothing new */
    add_run(p->store, "j");
    facts.cpu_model = SAMPLE_TEXT("i9");
    server.agent = "sut2";
    assert_int_equal(store_put_host(p->store, "j", &server, NULL), ERR_OK);
    assert_int_equal(store_set_placement(p->store, "j", STORE_PLACEMENT_SPLIT_HOSTS, NULL), ERR_OK);
    add_run(p->store, "j");
    assert_int_equal(store_put_host(p->store, "x", &server, NULL), ERR_NOT_FOUND);

    struct store_results r;
    assert_int_equal(store_read_results(p->store, "j", &r, NULL), ERR_OK);
    assert_int_equal(r.host_count, 3);
    assert_string_equal(r.hosts[0].agent, "sut1");
    assert_string_equal(r.hosts[0].facts.cpu_model, "i7");
    assert_string_equal(r.hosts[0].facts.hostname, "box1");
    assert_int_equal(r.hosts[0].facts.labels.count, 2);
    assert_string_equal(r.hosts[0].facts.labels.items[1], "site=lab1");
    assert_string_equal(r.hosts[2].agent, "sut2");
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
    add_job(p->store, "j");
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

static void test_late_events_are_kept_once(void **state)
{
    struct place *p = *state;
    add_job(p->store, "j");
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
    assert_int_equal(r.attempt_count, 0);
    store_results_fini(&r);
    sample_loaded_free(loaded);
}

/* ---- tokens and certificates ---------------------------------------------------------------------- */

static void test_tokens_work_once(void **state)
{
    struct place *p = *state;
    uint8_t good[MSG_HASH_BYTES] = {1};
    uint8_t old[MSG_HASH_BYTES] = {2};
    uint8_t unknown[MSG_HASH_BYTES] = {3};
    struct err_detail d;
    uint64_t now = clock_wall_ns();
    assert_int_equal(store_add_token(p->store, good, MSG_ROLE_AGENT, now + 3600 * NS_PER_S, NULL), ERR_OK);
    assert_int_equal(store_add_token(p->store, good, MSG_ROLE_AGENT, now, NULL), ERR_EXISTS);
    assert_int_equal(store_add_token(p->store, old, MSG_ROLE_AGENT, now - 1, NULL), ERR_OK);
    assert_int_equal(store_use_token(p->store, unknown, "a", MSG_ROLE_AGENT, &d), ERR_DENIED);
    assert_int_equal(store_use_token(p->store, old, "a", MSG_ROLE_AGENT, &d), ERR_DENIED);
    assert_non_null(strstr(d.text, "expired"));
    assert_int_equal(store_use_token(p->store, good, "a", MSG_ROLE_OPERATOR, &d), ERR_DENIED);
    assert_int_equal(store_use_token(p->store, good, "box1", MSG_ROLE_AGENT, &d), ERR_OK);
    reopen(p);
    assert_int_equal(store_use_token(p->store, good, "a", MSG_ROLE_AGENT, &d), ERR_DENIED);
    assert_non_null(strstr(d.text, "box1"));
}

static void test_a_name_belongs_to_one_role(void **state)
{
    struct place *p = *state;
    uint8_t token[MSG_HASH_BYTES] = {1};
    struct err_detail d;
    bool revoked = true;
    uint64_t later = clock_wall_ns() + 3600 * NS_PER_S;
    assert_int_equal(store_add_token(p->store, token, MSG_ROLE_OPERATOR, later, NULL), ERR_OK);
    assert_int_equal(store_add_certificate(p->store, "01", "ann", MSG_ROLE_AGENT, NULL), ERR_OK);
    assert_int_equal(store_use_token(p->store, token, "ann", MSG_ROLE_OPERATOR, &d), ERR_EXISTS);
    assert_non_null(strstr(d.text, "'ann' belongs to an agent"));
    assert_int_equal(store_revoke(p->store, "ann", NULL), ERR_OK);
    assert_int_equal(store_use_token(p->store, token, "ann", MSG_ROLE_OPERATOR, NULL), ERR_OK);
    /* The same role again: the newest is the good one. */
    assert_int_equal(store_add_certificate(p->store, "02", "ann", MSG_ROLE_OPERATOR, NULL), ERR_OK);
    assert_int_equal(store_add_certificate(p->store, "03", "ann", MSG_ROLE_OPERATOR, NULL), ERR_OK);
    assert_int_equal(store_is_revoked(p->store, "02", &revoked, NULL), ERR_OK);
    assert_true(revoked);
    assert_int_equal(store_is_revoked(p->store, "03", &revoked, NULL), ERR_OK);
    assert_false(revoked);
    /* A certificate that cannot be added takes nothing back. */
    assert_int_equal(store_add_certificate(p->store, "03", "ann", MSG_ROLE_OPERATOR, NULL), ERR_EXISTS);
    assert_int_equal(store_is_revoked(p->store, "03", &revoked, NULL), ERR_OK);
    assert_false(revoked);
}

static void test_revocation_ends_what_was_issued(void **state)
{
    struct place *p = *state;
    bool revoked = true;
    assert_int_equal(store_add_certificate(p->store, "01", "box1", MSG_ROLE_AGENT, NULL), ERR_OK);
    assert_int_equal(store_add_certificate(p->store, "01", "box2", MSG_ROLE_AGENT, NULL), ERR_EXISTS);
    assert_int_equal(store_add_certificate(p->store, "02", "box2", MSG_ROLE_OPERATOR, NULL), ERR_OK);
    assert_int_equal(store_is_revoked(p->store, "01", &revoked, NULL), ERR_OK);
    assert_false(revoked);
    assert_int_equal(store_revoke(p->store, "box1", NULL), ERR_OK);
    assert_int_equal(store_revoke(p->store, "box1", NULL), ERR_OK);
    assert_int_equal(store_revoke(p->store, "nobody", NULL), ERR_NOT_FOUND);
    assert_int_equal(store_add_certificate(p->store, "03", "box1", MSG_ROLE_AGENT, NULL), ERR_OK);
    reopen(p);
    assert_int_equal(store_is_revoked(p->store, "01", &revoked, NULL), ERR_OK);
    assert_true(revoked);
    assert_int_equal(store_is_revoked(p->store, "02", &revoked, NULL), ERR_OK);
    assert_false(revoked);
    assert_int_equal(store_is_revoked(p->store, "03", &revoked, NULL), ERR_OK);
    assert_false(revoked);
    assert_int_equal(store_is_revoked(p->store, "04", &revoked, NULL), ERR_NOT_FOUND);
}

/* ---- the file ------------------------------------------------------------------------------------- */

static void write_at(const char *path, off_t at, const void *data, size_t len)
{
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, data, len, at), len);
    close(fd);
}

static void expect_refused(struct place *p, bool read_only, enum err expected, const char *says)
{
    struct store *s = NULL;
    struct err_detail d = {{0}};
    assert_int_equal(store_open(p->path, read_only, &s, &d), expected);
    assert_null(s);
    if (strstr(d.text, says) == NULL || strstr(d.text, p->path) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", d.text, says);
}

static void test_foreign_files_are_refused(void **state)
{
    struct place *p = *state;
    store_close(p->store);
    p->store = NULL;
    struct stat st;
    assert_int_equal(stat(p->path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);

    /* The header of a SQLite file: user_version at 60, application_id at 68 (big-endian). */
    write_at(p->path, 60, "\0\0\0\2", 4);
    expect_refused(p, false, ERR_UNSUPPORTED, "newer splitbench");
    expect_refused(p, true, ERR_UNSUPPORTED, "newer splitbench");
    write_at(p->path, 60, "\0\0\0\0", 4);
    expect_refused(p, false, ERR_INVALID, "version");
    write_at(p->path, 60, "\0\0\0\1", 4);
    write_at(p->path, 68, "GNU!", 4);
    expect_refused(p, false, ERR_INVALID, "another program");
    write_at(p->path, 68, "SPLB", 4);
    reopen(p);
    store_close(p->store);
    p->store = NULL;

    write_at(p->path, 0, "{ \"name\": \"an experiment\" }", 27);
    expect_refused(p, false, ERR_INVALID, "not a splitbench store");
    expect_refused(p, true, ERR_INVALID, "not a splitbench store");
    assert_int_equal(truncate(p->path, 0), 0);
    expect_refused(p, true, ERR_INVALID, "empty");
    reopen(p); /* an empty file is made a store */
    add_job(p->store, "j");
}

static void test_paths_that_cannot_be(void **state)
{
    struct place *p = *state;
    struct place other = *p;
    snprintf(other.path, sizeof(other.path), "%s/none.db", p->dir);
    expect_refused(&other, true, ERR_NOT_FOUND, "cannot be read");
    snprintf(other.path, sizeof(other.path), "%s/none/lab.db", p->dir);
    expect_refused(&other, false, ERR_NOT_FOUND, "cannot be opened");
    snprintf(other.path, sizeof(other.path), "%s", p->dir);
    expect_refused(&other, false, ERR_INVALID, "not a file");

    struct store *s = NULL;
    char odd[128];
    snprintf(odd, sizeof(odd), "%s/a?b#c%%41.db", p->dir);
    assert_int_equal(store_open(odd, false, &s, NULL), ERR_OK);
    store_close(s);
    assert_int_equal(unlink(odd), 0);
}

static void test_damage_is_named(void **state)
{
    struct place *p = *state;
    add_job(p->store, "j");
    store_close(p->store);
    p->store = NULL;
    struct stat st;
    assert_int_equal(stat(p->path, &st), 0);
    char garbage[4096];
    memset(garbage, 0xa5, sizeof(garbage));
    for (off_t at = 4096; at < st.st_size; at += 4096)
        write_at(p->path, at, garbage, sizeof(garbage));
    expect_refused(p, false, ERR_INVALID, "damaged");
    expect_refused(p, true, ERR_INVALID, "damaged");
    assert_int_equal(truncate(p->path, st.st_size / 2), 0);
    expect_refused(p, true, ERR_INVALID, "damaged");
}

static void test_reading_while_another_writes(void **state)
{
    struct place *p = *state;
    struct store *reader = NULL;
    add_job(p->store, "j");
    assert_int_equal(store_open(p->path, true, &reader, NULL), ERR_OK);
    for (uint32_t i = 0; i < 20; i++) {
        struct store_attempt a = sample_attempt(i, 1, NULL);
        assert_int_equal(store_add_attempt(p->store, "j", &a, NULL), ERR_OK);
        assert_int_equal(attempts_of(reader, "j"), i + 1);
    }
    struct store_attempt a = sample_attempt(50, 1, NULL);
    struct err_detail d;
    assert_int_equal(store_add_attempt(reader, "j", &a, &d), ERR_DENIED);
    assert_non_null(strstr(d.text, "cannot be written"));
    store_close(reader);
}

/* Runs `body` in a child process; the test fails when it fails. */
static void in_child(struct place *p, int (*body)(struct place *p))
{
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        _exit(body(p));
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
        skip();
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* Exit status of a child: the line that went wrong, so that the parent's message names it. */
#define CHILD_CHECK(cond)                                                                                    \
    do {                                                                                                     \
        if (!(cond)) {                                                                                       \
            fprintf(stderr, "child: %s:%d: %s\n", __FILE__, __LINE__, #cond);                                \
            return 1;                                                                                        \
        }                                                                                                    \
    } while (0)

static int read_as_nobody(struct place *p)
{
    if (geteuid() == 0)
        CHILD_CHECK(setgroups(0, NULL) == 0 && setgid(65534) == 0 && setuid(65534) == 0);
    struct store *s = NULL;
    struct err_detail d = {{0}};
    struct store_job job;
    CHILD_CHECK(store_open(p->path, true, &s, &d) == ERR_OK);
    CHILD_CHECK(store_get_job(s, "j", &job, NULL) == ERR_OK);
    store_job_fini(&job);
    store_close(s);
    CHILD_CHECK(store_open(p->path, false, &s, &d) == ERR_DENIED);
    CHILD_CHECK(strstr(d.text, "permission") != NULL);
    return 0;
}

static void test_reading_where_nothing_can_be_written(void **state)
{
    struct place *p = *state;
    add_job(p->store, "j");
    store_close(p->store);
    p->store = NULL;
    assert_int_equal(chmod(p->path, 0444), 0);
    assert_int_equal(chmod(p->dir, 0555), 0);
    in_child(p, read_as_nobody);
}

/* Stores windows until there is no room, then checks that what was reported as stored is readable. */
static int fill(struct place *p)
{
    struct store *s = NULL;
    struct err_detail d = {{0}};
    struct store_job job = sample_job("j");
    CHILD_CHECK(store_open(p->path, false, &s, &d) == ERR_OK);
    CHILD_CHECK(store_add_job(s, &job, &d) == ERR_OK);
    struct msg_loaded *loaded = sample_loaded(1);
    uint32_t stored = 0;
    enum err e = ERR_OK;
    while (stored < 10000) {
        struct store_attempt a = sample_attempt(stored, 1, loaded);
        e = store_add_attempt(s, "j", &a, &d);
        if (e != ERR_OK)
            break;
        stored++;
    }
    CHILD_CHECK(e == ERR_FULL);
    CHILD_CHECK(strstr(d.text, "no space left") != NULL);
    CHILD_CHECK(stored > 0);
    CHILD_CHECK(store_get_job(s, "j", &job, NULL) == ERR_OK);
    CHILD_CHECK(job.windows_done == stored);
    store_job_fini(&job);
    store_close(s);
    CHILD_CHECK(store_open(p->path, true, &s, &d) == ERR_OK);
    CHILD_CHECK(store_get_job(s, "j", &job, NULL) == ERR_OK);
    CHILD_CHECK(job.windows_done == stored);
    store_job_fini(&job);
    store_close(s);
    sample_loaded_free(loaded);
    return 0;
}

static int fill_under_a_limit(struct place *p)
{
    struct rlimit small = {.rlim_cur = 400 * 1024, .rlim_max = 400 * 1024};
    CHILD_CHECK(signal(SIGXFSZ, SIG_IGN) != SIG_ERR && setrlimit(RLIMIT_FSIZE, &small) == 0);
    return fill(p);
}

static int fill_a_disk(struct place *p)
{
    if (unshare(CLONE_NEWNS) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0)
        return 77;
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("tmpfs", p->dir, "tmpfs", 0, "size=400k") != 0)
        return 77;
    return fill(p);
}

static void test_full_quota(void **state)
{
    struct place *p = *state;
    store_close(p->store);
    p->store = NULL;
    assert_int_equal(unlink(p->path), 0);
    in_child(p, fill_under_a_limit);
}

static void test_full_disk(void **state)
{
    struct place *p = *state;
    store_close(p->store);
    p->store = NULL;
    in_child(p, fill_a_disk);
}

static int write_lines(struct place *p, int count)
{
    struct store *s = NULL;
    struct store_job job = sample_job("j");
    struct err_detail d = {{0}};
    enum err e = store_open(p->path, false, &s, &d);
    if (e == ERR_OK)
        e = store_add_job(s, &job, &d);
    e = e == ERR_EXISTS ? ERR_OK : e;
    for (int n = 0; e == ERR_OK && n < count; n++)
        e = store_add_line(s, "j", "x", &d);
    store_close(s);
    if (e != ERR_OK)
        fprintf(stderr, "child: %s: %s\n", err_text(e), d.text);
    return e != ERR_OK;
}

static void test_many_create_and_write_at_once(void **state)
{
    struct place *p = *state;
    enum { WRITERS = 6, LINES = 15 };
    store_close(p->store);
    p->store = NULL;
    assert_int_equal(unlink(p->path), 0);
    pid_t pids[WRITERS];
    for (int i = 0; i < WRITERS; i++) {
        pids[i] = fork();
        assert_true(pids[i] >= 0);
        if (pids[i] != 0)
            continue;
        _exit(write_lines(p, LINES));
    }
    for (int i = 0; i < WRITERS; i++) {
        int status = 1;
        assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
        assert_int_equal(status, 0);
    }
    reopen(p);
    struct msg_strings lines;
    assert_int_equal(store_get_lines(p->store, "j", 0, 1000, &lines, NULL), ERR_OK);
    assert_int_equal(lines.count, WRITERS * LINES);
    mem_free_strings(&lines.items, &lines.count);
}

/* What was reported as stored before SIGKILL is there; at most one more, that was not yet reported. */
static void test_killed_writer_loses_nothing(void **state)
{
    struct place *p = *state;
    add_job(p->store, "j");
    store_close(p->store);
    p->store = NULL;
    uint32_t base = 0;
    for (uint32_t round = 1; round <= 5; round++) {
        int fds[2];
        assert_int_equal(pipe(fds), 0);
        pid_t pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
            close(fds[0]);
            struct store *s = NULL;
            struct msg_loaded *loaded = sample_loaded(1);
            if (store_open(p->path, false, &s, NULL) != ERR_OK)
                _exit(1);
            for (uint32_t i = base;; i++) {
                struct store_attempt a = sample_attempt(i, 1, loaded);
                if (store_add_attempt(s, "j", &a, NULL) != ERR_OK || write(fds[1], "x", 1) != 1)
                    _exit(1);
            }
        }
        close(fds[1]);
        char c;
        uint32_t told = 0;
        while (told < 3 * round && read(fds[0], &c, 1) == 1)
            told++;
        assert_int_equal(told, 3 * round);
        kill(pid, SIGKILL);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
        while (read(fds[0], &c, 1) == 1)
            told++;
        close(fds[0]);
        reopen(p);
        size_t have = attempts_of(p->store, "j");
        assert_in_range(have, base + told, base + told + 1);
        base = (uint32_t)have;
        store_close(p->store);
        p->store = NULL;
    }
}

#define STORE_TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORE_TEST(test_job_comes_back_as_it_was),
        STORE_TEST(test_job_list_is_newest_first),
        STORE_TEST(test_job_states_set_their_times),
        STORE_TEST(test_interrupted_jobs_fail),
        STORE_TEST(test_lines_are_read_in_pieces),
        STORE_TEST(test_attempt_comes_back_complete),
        STORE_TEST(test_attempt_without_a_result),
        STORE_TEST(test_nothing_is_stored_twice),
        STORE_TEST(test_windows_present),
        STORE_TEST(test_runs_keep_the_hosts_they_ran_on),
        STORE_TEST(test_failed_runs_keep_cause_and_log),
        STORE_TEST(test_late_events_are_kept_once),
        STORE_TEST(test_a_name_belongs_to_one_role),
        STORE_TEST(test_tokens_work_once),
        STORE_TEST(test_revocation_ends_what_was_issued),
        STORE_TEST(test_foreign_files_are_refused),
        STORE_TEST(test_paths_that_cannot_be),
        STORE_TEST(test_damage_is_named),
        STORE_TEST(test_reading_while_another_writes),
        STORE_TEST(test_reading_where_nothing_can_be_written),
        STORE_TEST(test_full_quota),
        STORE_TEST(test_full_disk),
        STORE_TEST(test_many_create_and_write_at_once),
        STORE_TEST(test_killed_writer_loses_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
