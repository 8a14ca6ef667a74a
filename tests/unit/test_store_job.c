/* Jobs in the store: what they are, their states, their lines. */
#include "controller/store/store.h"

#include "common/mem.h"
#include "tests/support/store_place.h"
#include "tests/support/store_sample.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void test_job_comes_back_as_it_was(void **state)
{
    struct place *p = *state;
    struct store_job in = sample_job("j1");
    assert_int_equal(store_add_job(p->store, &in, NULL), ERR_OK);
    place_reopen(p);
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

static void expect_found(struct place *p, const char *text, const char *wanted)
{
    char *id = NULL;
    assert_int_equal(store_find_job(p->store, text, &id, NULL), ERR_OK);
    assert_string_equal(id, wanted);
    free(id);
}

static void test_a_job_is_found_by_the_beginning_of_its_id(void **state)
{
    struct place *p = *state;
    static const char *const ids[] = {"a", "ab1", "ab2", "c_1", "cx1"};
    char *id = NULL;
    struct err_detail d;
    for (size_t i = 0; i < ARRAY_LEN(ids); i++)
        place_add_job(p, ids[i]);
    expect_found(p, "a", "a"); /* whole, though others begin so */
    expect_found(p, "ab1", "ab1");
    expect_found(p, "cx", "cx1");
    expect_found(p, "c_", "c_1"); /* no pattern */
    assert_int_equal(store_find_job(p->store, "ab", &id, &d), ERR_INVALID);
    assert_string_equal(d.text, "'ab' is the beginning of more than one job: ab1, ab2; give more of its id");
    assert_int_equal(store_find_job(p->store, "b", &id, &d), ERR_NOT_FOUND);
    assert_int_equal(store_find_job(p->store, "ab11", &id, &d), ERR_NOT_FOUND);
    assert_int_equal(store_find_job(p->store, "%", &id, &d), ERR_NOT_FOUND);
    assert_null(id);
}

static void test_of_many_candidates_the_first_are_listed(void **state)
{
    struct place *p = *state;
    static const char *const ids[] = {"j1", "j2", "j3", "j4", "j5", "j6", "j7"};
    char *id = NULL;
    struct err_detail d;
    for (size_t i = 0; i < 5; i++)
        place_add_job(p, ids[i]);
    assert_int_equal(store_find_job(p->store, "j", &id, &d), ERR_INVALID);
    assert_non_null(strstr(d.text, ": j1, j2, j3, j4, j5; give more"));
    for (size_t i = 5; i < ARRAY_LEN(ids); i++)
        place_add_job(p, ids[i]);
    assert_int_equal(store_find_job(p->store, "j", &id, &d), ERR_INVALID);
    assert_non_null(strstr(d.text, ": j1, j2, j3, j4, j5 and others; give more"));
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
    place_add_job(p, "j");
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

static void expect_run_after(struct place *p, enum store_job_state state, uint64_t run)
{
    struct store_job out;
    assert_int_equal(store_set_job_state(p->store, "j", state, "", 0, NULL), ERR_OK);
    assert_int_equal(store_get_job(p->store, "j", &out, NULL), ERR_OK);
    assert_int_equal(out.run, run);
    store_job_fini(&out);
}

static void test_a_resume_begins_the_next_run(void **state)
{
    struct place *p = *state;
    const struct store_job job = {.id = (char *)(uintptr_t) "j", .state = STORE_JOB_QUEUED, .run = 1};
    assert_int_equal(store_add_job(p->store, &job, NULL), ERR_OK);
    expect_run_after(p, STORE_JOB_QUEUED, 1);
    expect_run_after(p, STORE_JOB_RUNNING, 1);
    expect_run_after(p, STORE_JOB_FAILED, 1);
    expect_run_after(p, STORE_JOB_QUEUED, 2);
    expect_run_after(p, STORE_JOB_CANCELLED, 2);
    expect_run_after(p, STORE_JOB_QUEUED, 3);
    expect_run_after(p, STORE_JOB_DONE, 3);
}

static void test_interrupted_jobs_fail(void **state)
{
    struct place *p = *state;
    const char *const ids[] = {"queued", "running", "also", "done"};
    for (size_t i = 0; i < ARRAY_LEN(ids); i++)
        place_add_job(p, ids[i]);
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
    place_add_job(p, "j");
    place_add_job(p, "other");
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

#define STORE_TEST(f) cmocka_unit_test_setup_teardown(f, place_set_up, place_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORE_TEST(test_job_comes_back_as_it_was),
        STORE_TEST(test_job_list_is_newest_first),
        STORE_TEST(test_a_job_is_found_by_the_beginning_of_its_id),
        STORE_TEST(test_of_many_candidates_the_first_are_listed),
        STORE_TEST(test_job_states_set_their_times),
        STORE_TEST(test_interrupted_jobs_fail),
        STORE_TEST(test_lines_are_read_in_pieces),
        STORE_TEST(test_a_resume_begins_the_next_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
