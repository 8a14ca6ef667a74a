/* The state directory: made with its parents, held by one, given back. */
#include "agent/state_dir.h"
#include "common/mem.h"
#include "tests/support/scratch.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

struct fixture {
    struct scratch scratch;
    char dir[96];
};

static int set_up(void **state)
{
    struct fixture *f = mem_zalloc(1, sizeof *f);
    scratch_init(&f->scratch);
    snprintf(f->dir, sizeof f->dir, "%s/a/b//c", f->scratch.dir);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    scratch_fini(&f->scratch);
    free(f);
    return 0;
}

static void test_held_by_one(void **state)
{
    struct fixture *f = *state;
    struct err_detail d = {""};
    int first = -1;
    int second = -1;
    assert_int_equal(state_dir_take(f->dir, &first, &d), ERR_OK);
    struct stat st;
    assert_int_equal(stat(f->dir, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0700);
    assert_int_equal(state_dir_take(f->dir, &second, &d), ERR_BUSY);
    assert_int_equal(second, -1);
    char pid[32];
    snprintf(pid, sizeof pid, "pid %ld ", (long)getpid());
    assert_non_null(strstr(d.text, pid));
    assert_non_null(strstr(d.text, "--state"));
    close(first);
    assert_int_equal(state_dir_take(f->dir, &second, &d), ERR_OK);
    close(second);
}

static void test_what_is_not_a_directory(void **state)
{
    struct fixture *f = *state;
    struct err_detail d = {""};
    char *file = mem_printf("%s/file", f->scratch.dir);
    FILE *made = fopen(file, "w");
    assert_non_null(made);
    fclose(made);
    int fd = -1;
    assert_int_equal(state_dir_take(file, &fd, &d), ERR_INVALID);
    assert_non_null(strstr(d.text, "not a directory"));
    char *below = mem_printf("%s/below", file);
    assert_int_not_equal(state_dir_take(below, &fd, &d), ERR_OK);
    assert_int_equal(fd, -1);
    free(below);
    free(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_held_by_one, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_what_is_not_a_directory, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
