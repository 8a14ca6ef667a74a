/* Capped logs: at every border of head and ring, read while written, and on a full disk. */
#include "agent/process/logfile.h"
#include "common/mem.h"
#include "tests/support/scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static struct scratch scratch;
static const char *path;

static int setup(void **state)
{
    (void)state;
    scratch_init(&scratch);
    path = scratch_at(&scratch, "log");
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    scratch_fini(&scratch);
    return 0;
}

/* Byte `i` of what is appended: no two neighbouring cycles look alike. */
static char pattern(uint64_t i)
{
    return (char)('!' + (i * 7 + i / 89) % 90);
}

static void append(struct logfile *f, size_t len)
{
    char *data = mem_alloc(len + 1);
    for (size_t i = 0; i < len; i++)
        data[i] = pattern(f->total + i);
    logfile_append(f, data, len);
    free(data);
}

/* What a log of `total` bytes must read as. */
static void expect(size_t head, size_t tail, uint64_t total)
{
    char *text = NULL;
    size_t len = 0;
    uint64_t dropped = 1;
    uint64_t kept = total < head + tail ? total : head + tail;
    assert_int_equal(logfile_read(path, head, tail, &text, &len, &dropped, NULL), ERR_OK);
    assert_int_equal(len, kept);
    assert_int_equal(dropped, total - kept);
    for (size_t i = 0; i < len; i++) {
        uint64_t at = i < head ? i : total - (kept - i);
        if (total <= head + tail)
            at = i;
        assert_int_equal(text[i], pattern(at));
    }
    assert_int_equal(text[len], '\0');
    free(text);
}

static void test_every_length(void **state)
{
    (void)state;
    static const size_t sizes[][2] = {{10, 6}, {0, 5}, {7, 0}, {1, 1}, {16, 16}};
    for (size_t s = 0; s < ARRAY_LEN(sizes); s++) {
        for (size_t step = 1; step <= 40; step++) {
            struct logfile f;
            assert_int_equal(logfile_init(&f, path, sizes[s][0], sizes[s][1], NULL), ERR_OK);
            for (size_t total = 0; total < 80; total += step) {
                expect(sizes[s][0], sizes[s][1], total);
                append(&f, step);
            }
            logfile_fini(&f);
        }
    }
}

static void test_size_on_disk(void **state)
{
    (void)state;
    struct logfile f;
    struct stat st;
    assert_int_equal(logfile_init(&f, path, 1000, 500, NULL), ERR_OK);
    append(&f, 1500);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_size, 1500);
    for (int i = 0; i < 1000; i++)
        append(&f, 777);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_size, 1508);
    assert_int_equal(st.st_mode & 0777, 0600);
    expect(1000, 500, 1500 + 777000);
    logfile_fini(&f);
    logfile_fini(&f);
}

static void test_starts_anew(void **state)
{
    (void)state;
    struct logfile f;
    assert_int_equal(logfile_init(&f, path, 10, 5, NULL), ERR_OK);
    append(&f, 100);
    logfile_fini(&f);
    assert_int_equal(logfile_init(&f, path, 10, 5, NULL), ERR_OK);
    expect(10, 5, 0);
    append(&f, 3);
    expect(10, 5, 3);
    logfile_fini(&f);
}

static void test_full_disk(void **state)
{
    (void)state;
    struct logfile f;
    assert_int_equal(logfile_init(&f, path, 100, 50, NULL), ERR_OK);
    append(&f, 40);
    close(f.fd);
    f.fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
    assert_true(f.fd >= 0);
    logfile_append(&f, "lost", 4);
    assert_int_equal(f.failed_errno, ENOSPC);
    assert_int_equal(f.lost, 4);
    append(&f, 1000);
    assert_int_equal(f.lost, 1004);
    assert_int_equal(f.total, 1044);
    logfile_fini(&f);
    expect(100, 50, 40);
}

static void test_refused(void **state)
{
    (void)state;
    struct logfile f;
    struct err_detail d = {""};
    char *text = NULL;
    size_t len = 0;
    uint64_t dropped = 0;
    assert_int_equal(logfile_init(&f, "/no/such/dir/log", 10, 5, &d), ERR_NOT_FOUND);
    assert_non_null(strstr(d.text, "/no/such/dir/log"));
    logfile_fini(&f);
    assert_int_equal(logfile_read("/no/such/dir/log", 10, 5, &text, &len, &dropped, &d), ERR_NOT_FOUND);
    assert_null(text);
    (void)unlink(path);
    assert_int_equal(symlink("/dev/null", path), 0);
    assert_int_equal(logfile_init(&f, path, 10, 5, &d), ERR_IO);
    logfile_fini(&f);
}

static void test_last_lines(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t lines;
        const char *expected;
    } cases[] = {
        {"a\nb\nc\n", 2, "b\nc\n"},
        {"a\nb\nc", 2, "b\nc"},
        {"a\nb\nc\n", 3, "a\nb\nc\n"},
        {"a\nb\n", 9, "a\nb\n"},
        {"a\n\n\n", 2, "\n\n"},
        {"", 3, ""},
        {"\n", 1, "\n"},
        {"abc", 1, "abc"},
        {"a\nb\n", 0, ""},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        assert_string_equal(logfile_last_lines(cases[i].text, strlen(cases[i].text), cases[i].lines),
                            cases[i].expected);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_length), cmocka_unit_test(test_size_on_disk),
        cmocka_unit_test(test_starts_anew),  cmocka_unit_test(test_full_disk),
        cmocka_unit_test(test_refused),      cmocka_unit_test(test_last_lines),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
