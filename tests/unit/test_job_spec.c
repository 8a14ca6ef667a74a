#include "controller/job/job_spec.h"

#include "common/mem.h"
#include "controller/job/job.h"
#include "tests/support/scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <unistd.h>

#include <cmocka.h>

static const char experiment_text[] =
    "{ \"name\": \"spec\", \"targets\": [ { \"name\": \"a\", \"start\": [\"a\"], \"port\": 8001 } ],"
    "  \"workloads\": [ { \"name\": \"w\", \"request\": { \"path\": \"/\" }, \"connections\": [1, 2],"
    "                    \"duration\": \"1s\" } ], \"design\": { \"rounds\": 3 } }";

static struct msg_submit submit(struct msg_file *files, size_t count)
{
    return (struct msg_submit){.job = (char *)(uintptr_t) "j1",
                               .mode = MSG_MODE_RUN,
                               .experiment = (char *)(uintptr_t)experiment_text,
                               .files = {.items = files, .count = count},
                               .base_dir = (char *)(uintptr_t) "/srv/lab"};
}

static void test_files_are_kept_with_the_job(void **state)
{
    struct scratch *s = *state;
    const char *dir = s->dir;
    struct msg_file files[] = {
        {.path = (char *)(uintptr_t) "run me.sh", .hash = {0xab, 0x01}, .size_bytes = 12, .mode = 0755},
        {.path = (char *)(uintptr_t) "d/empty", .hash = {0xff}, .size_bytes = 0, .mode = 0600}};
    struct msg_submit m = submit(files, 2);
    struct job_spec *spec = NULL, *again = NULL;
    struct store_job row;
    struct err_detail d;
    assert_int_equal(job_spec_from_submit(&m, &spec, &d), ERR_OK);
    assert_int_equal(spec->design->window_count, 6);
    assert_int_equal(job_spec_store_files(spec, dir, &d), ERR_OK);
    job_spec_row(spec, &row);
    assert_int_equal(row.state, STORE_JOB_QUEUED);
    assert_int_equal(row.windows_total, 6);
    assert_string_equal(row.base_dir, "/srv/lab");
    assert_int_equal(job_spec_from_store(&row, dir, &again, &d), ERR_OK);
    assert_int_equal(again->files.count, 2);
    for (size_t i = 0; i < 2; i++) {
        assert_string_equal(again->files.items[i].path, files[i].path);
        assert_memory_equal(again->files.items[i].hash, files[i].hash, MSG_HASH_BYTES);
        assert_int_equal(again->files.items[i].size_bytes, files[i].size_bytes);
        assert_int_equal(again->files.items[i].mode, files[i].mode);
    }
    assert_string_equal(again->base_dir, "/srv/lab");
    assert_int_equal(again->run, 1);
    job_spec_free(again);
    row.state = STORE_JOB_CANCELLED; /* a resume begins the next run, as the store will count it */
    assert_int_equal(job_spec_from_store(&row, dir, &again, &d), ERR_OK);
    assert_int_equal(again->run, 2);
    job_spec_free(again);

    /* A list that somebody has written into is refused, and so is a missing one. */
    scratch_put(s, "files/j1", "ab01 12 755 x\n");
    assert_int_equal(job_spec_from_store(&row, dir, &again, &d), ERR_INVALID);
    assert_non_null(strstr(d.text, "damaged"));
    unlink(scratch_at(s, "files/j1"));
    assert_int_equal(job_spec_from_store(&row, dir, &again, &d), ERR_NOT_FOUND);
    job_spec_free(spec);
}

static void test_what_operators_send_is_not_trusted(void **state)
{
    struct msg_file file = {.path = (char *)(uintptr_t) "a\nb", .size_bytes = 1};
    struct job_spec *spec = NULL;
    struct err_detail d;
    (void)state;
    struct msg_submit m = submit(&file, 1);
    assert_int_equal(job_spec_from_submit(&m, &spec, &d), ERR_INVALID);
    file.path = (char *)(uintptr_t) "a";
    file.size_bytes = LIMIT_FILE_BYTES + 1;
    assert_int_equal(job_spec_from_submit(&m, &spec, &d), ERR_TOO_BIG);
    struct msg_file two[] = {{.path = file.path, .size_bytes = LIMIT_FILE_BYTES},
                             {.path = file.path, .size_bytes = 1}};
    m = submit(two, 2);
    assert_int_equal(job_spec_from_submit(&m, &spec, &d), ERR_TOO_BIG);
    m = submit(NULL, 0);
    m.experiment = (char *)(uintptr_t) "{ \"name\": \"x\", \"nonsense\": 1 }";
    assert_int_equal(job_spec_from_submit(&m, &spec, &d), ERR_INVALID);
    assert_non_null(strstr(d.text, "nonsense"));
    m.job = (char *)(uintptr_t) "../x";
    assert_int_equal(job_spec_from_submit(&m, &spec, &d), ERR_INVALID);
}

static void test_verify_has_no_windows(void **state)
{
    struct job_spec *spec = NULL;
    struct store_job row;
    struct err_detail d;
    struct msg_submit m = submit(NULL, 0);
    (void)state;
    m.mode = MSG_MODE_VERIFY;
    assert_int_equal(job_spec_from_submit(&m, &spec, &d), ERR_OK);
    job_spec_row(spec, &row);
    assert_int_equal(row.windows_total, 0);
    job_spec_free(spec);
}

/* What the filled cells do is shown with a store and agents by tests/sim. */
static void test_every_job_state_and_event(void **state)
{
    static const bool expected[JOB_STATE_COUNT][JOB_EVENT_COUNT] = {
        [JOB_QUEUED] = {[JOB_EVENT_START] = true, [JOB_EVENT_CANCEL] = true},
        [JOB_RUNNING] = {[JOB_EVENT_CANCEL] = true, [JOB_EVENT_RETURN] = true},
        [JOB_CANCELLING] = {[JOB_EVENT_CANCEL] = true, [JOB_EVENT_RETURN] = true},
        [JOB_STORING] = {[JOB_EVENT_STORED] = true, [JOB_EVENT_REFUSED] = true},
        [JOB_UNSTORED] = {[JOB_EVENT_RETRY] = true},
    };
    (void)state;
    for (int s = 0; s < JOB_STATE_COUNT; s++) {
        for (int i = 0; i < JOB_EVENT_COUNT; i++)
            assert_int_equal(job_permits((enum job_state)s, (enum job_event)i), expected[s][i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_files_are_kept_with_the_job, scratch_set_up, scratch_tear_down),
        cmocka_unit_test(test_what_operators_send_is_not_trusted),
        cmocka_unit_test(test_verify_has_no_windows),
        cmocka_unit_test(test_every_job_state_and_event),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
