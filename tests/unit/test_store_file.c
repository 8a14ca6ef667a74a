/* The file of the store: foreign, damaged, full, shared with others, and after SIGKILL. */
#include "common/mem.h"
#include "tests/support/child.h"
#include "tests/support/store_place.h"
#include "tests/support/store_sample.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define FULL_BYTES 409600u

static void write_at(const char *path, off_t at, const void *data, size_t len)
{
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, data, len, at), len);
    close(fd);
}

static void read_at(const char *path, off_t at, void *data, size_t len)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(pread(fd, data, len, at), len);
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

    char current[4]; /* its schema version */
    read_at(p->path, 60, current, sizeof(current));
    /* The header of a SQLite file: user_version at 60, application_id at 68 (big-endian). */
    write_at(p->path, 60, "\0\0\0\x63", 4);
    expect_refused(p, false, ERR_UNSUPPORTED, "newer splitbench");
    expect_refused(p, true, ERR_UNSUPPORTED, "newer splitbench");
    write_at(p->path, 60, "\0\0\0\0", 4);
    expect_refused(p, false, ERR_INVALID, "version");
    write_at(p->path, 60, current, 4);
    write_at(p->path, 68, "GNU!", 4);
    expect_refused(p, false, ERR_INVALID, "another program");
    write_at(p->path, 68, "SPLB", 4);
    place_reopen(p);
    store_close(p->store);
    p->store = NULL;

    write_at(p->path, 0, "{ \"name\": \"an experiment\" }", 27);
    expect_refused(p, false, ERR_INVALID, "not a splitbench store");
    expect_refused(p, true, ERR_INVALID, "not a splitbench store");
    assert_int_equal(truncate(p->path, 0), 0);
    expect_refused(p, true, ERR_INVALID, "empty");
    place_reopen(p); /* an empty file is made a store */
    place_add_job(p, "j");
}

static void test_paths_that_cannot_be(void **state)
{
    struct place *p = *state;
    struct place other = *p;
    snprintf(other.path, sizeof(other.path), "%s/none.db", p->scratch.dir);
    expect_refused(&other, true, ERR_NOT_FOUND, "cannot be read");
    snprintf(other.path, sizeof(other.path), "%s/none/lab.db", p->scratch.dir);
    expect_refused(&other, false, ERR_NOT_FOUND, "cannot be opened");
    snprintf(other.path, sizeof(other.path), "%s", p->scratch.dir);
    expect_refused(&other, false, ERR_INVALID, "not a file");

    struct store *s = NULL;
    char odd[128];
    snprintf(odd, sizeof(odd), "%s/a?b#c%%41.db", p->scratch.dir);
    assert_int_equal(store_open(odd, false, &s, NULL), ERR_OK);
    store_close(s);
    assert_int_equal(unlink(odd), 0);
}

static void test_damage_is_named(void **state)
{
    struct place *p = *state;
    place_add_job(p, "j");
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
    place_add_job(p, "j");
    assert_int_equal(store_open(p->path, true, &reader, NULL), ERR_OK);
    for (uint32_t i = 0; i < 20; i++) {
        struct store_attempt a = sample_attempt(i, 1, NULL);
        assert_int_equal(store_add_attempt(p->store, "j", &a, NULL), ERR_OK);
        assert_int_equal(place_attempts(reader, "j"), i + 1);
    }
    struct store_attempt a = sample_attempt(50, 1, NULL);
    struct err_detail d;
    assert_int_equal(store_add_attempt(reader, "j", &a, &d), ERR_DENIED);
    assert_non_null(strstr(d.text, "cannot be written"));
    store_close(reader);
}

static int read_as_nobody(void *place)
{
    const struct place *p = place;
    CHILD_CHECK(child_become_nobody());
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
    place_add_job(p, "j");
    store_close(p->store);
    p->store = NULL;
    assert_int_equal(chmod(p->path, 0444), 0);
    assert_int_equal(chmod(p->scratch.dir, 0555), 0);
    child_run(read_as_nobody, p);
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

static int fill_under_a_limit(void *place)
{
    CHILD_CHECK(child_limit_files(FULL_BYTES));
    return fill(place);
}

static int fill_a_disk(void *place)
{
    const struct place *p = place;
    return child_mount_small(p->scratch.dir, FULL_BYTES) ? fill(place) : CHILD_SKIPS;
}

static void test_full_quota(void **state)
{
    struct place *p = *state;
    store_close(p->store);
    p->store = NULL;
    assert_int_equal(unlink(p->path), 0);
    child_run(fill_under_a_limit, p);
}

static void test_full_disk(void **state)
{
    struct place *p = *state;
    store_close(p->store);
    p->store = NULL;
    child_run(fill_a_disk, p);
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
    place_reopen(p);
    struct msg_strings lines;
    assert_int_equal(store_get_lines(p->store, "j", 0, 1000, &lines, NULL), ERR_OK);
    assert_int_equal(lines.count, WRITERS * LINES);
    mem_free_strings(&lines.items, &lines.count);
}

/* What was reported as stored before SIGKILL is there; at most one more, that was not yet reported. */
static void test_killed_writer_loses_nothing(void **state)
{
    struct place *p = *state;
    place_add_job(p, "j");
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
        place_reopen(p);
        size_t have = place_attempts(p->store, "j");
        assert_in_range(have, base + told, base + told + 1);
        base = (uint32_t)have;
        store_close(p->store);
        p->store = NULL;
    }
}

#define STORE_TEST(f) cmocka_unit_test_setup_teardown(f, place_set_up, place_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
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
