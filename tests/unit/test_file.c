/* Files, directories and locks: at their limits, on a full disk, and with something else in their place. */
#include "common/file.h"
#include "common/mem.h"
#include "tests/support/child.h"
#include "tests/support/scratch.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
// clang-format on

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void expect_contents(const char *path, const char *text)
{
    char *got = NULL;
    size_t len = 0;
    struct err_detail d = {""};
    if (file_read(path, FILE_REGULAR, 1000, &got, &len, &d) != ERR_OK)
        fail_msg("%s", d.text);
    assert_string_equal(got, text);
    assert_int_equal(len, strlen(text));
    free(got);
}

static void expect_unreadable(const char *path, enum file_kind kind, enum err e, const char *part)
{
    char *got = NULL;
    size_t len = 0;
    struct err_detail d = {""};
    assert_int_equal(file_read(path, kind, 10, &got, &len, &d), e);
    assert_null(got);
    if (strstr(d.text, part) == NULL || strstr(d.text, path) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", d.text, part);
}

static mode_t mode_of(const char *path)
{
    struct stat st;
    assert_int_equal(lstat(path, &st), 0);
    return st.st_mode & 07777;
}

static void expect_nothing(const char *path)
{
    assert_int_equal(access(path, F_OK), -1);
}

/* ---- reading ------------------------------------------------------------------------------------------- */

static void test_read_at_limit(void **state)
{
    const char *path = scratch_at(*state, "f");
    assert_int_equal(file_write(path, 0644, "", 0, NULL), ERR_OK);
    expect_contents(path, "");
    assert_int_equal(file_write(path, 0644, "0123456789", 10, NULL), ERR_OK);
    char *got = NULL;
    size_t len = 0;
    assert_int_equal(file_read(path, FILE_ANY, 10, &got, &len, NULL), ERR_OK);
    assert_int_equal(len, 10);
    assert_string_equal(got, "0123456789");
    free(got);
    assert_int_equal(file_write(path, 0644, "0123456789a", 11, NULL), ERR_OK);
    expect_unreadable(path, FILE_ANY, ERR_TOO_BIG, "more than 10 bytes");
    assert_int_equal(file_write(path, 0644, "a\0b", 3, NULL), ERR_OK);
    assert_int_equal(file_read(path, FILE_REGULAR, 3, &got, &len, NULL), ERR_OK);
    assert_int_equal(len, 3);
    assert_memory_equal(got, "a\0b", 4);
    free(got);
}

/* What does not say its size: a pipe that is filled in pieces, and a file of the kernel. */
static void test_read_without_size(void **state)
{
    enum { BYTES = 50000 };
    (void)state;
    int fds[2];
    char path[32];
    char *got = NULL;
    size_t len = 0;
    for (size_t max = BYTES - 1; max <= BYTES + 1; max++) {
        assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
        char *sent = mem_alloc(BYTES);
        for (size_t i = 0; i < BYTES; i++)
            sent[i] = (char)('a' + i % 23);
        assert_int_equal(write(fds[1], sent, BYTES), BYTES); /* a pipe holds 64 KiB */
        close(fds[1]);
        snprintf(path, sizeof path, "/dev/fd/%d", fds[0]);
        enum err e = file_read(path, FILE_ANY, max, &got, &len, NULL);
        assert_int_equal(e, max < BYTES ? ERR_TOO_BIG : ERR_OK);
        if (e == ERR_OK) {
            assert_int_equal(len, BYTES);
            assert_memory_equal(got, sent, BYTES);
            free(got);
        }
        free(sent);
        close(fds[0]);
    }
    assert_int_equal(file_read("/proc/self/status", FILE_REGULAR, 1000000, &got, &len, NULL), ERR_OK);
    assert_true(len > 0 && strlen(got) == len);
    free(got);
}

static void test_unreadable(void **state)
{
    struct scratch *s = *state;
    expect_unreadable(scratch_at(s, "none"), FILE_REGULAR, ERR_NOT_FOUND, "cannot read");
    expect_unreadable(s->dir, FILE_REGULAR, ERR_INVALID, "not a regular file");
    expect_unreadable(s->dir, FILE_ANY, ERR_IO, "Is a directory");
    assert_int_equal(mkfifo(scratch_at(s, "fifo"), 0600),
                     0); /* nobody writes there: reading it would not end */
    expect_unreadable(s->path, FILE_REGULAR, ERR_INVALID, "not a regular file");
    assert_int_equal(symlink("loop", scratch_at(s, "loop")), 0);
    expect_unreadable(s->path, FILE_REGULAR, ERR_IO, "symbolic links");
    const char *path = scratch_at(s, "secret");
    assert_int_equal(file_write(path, 0640, "key", 3, NULL), ERR_OK);
    expect_unreadable(path, FILE_SECRET, ERR_DENIED, "chmod 600");
    expect_contents(path, "key");
    char *got = NULL;
    size_t len = 0;
    assert_int_equal(chmod(path, 0400), 0);
    assert_int_equal(file_read(path, FILE_SECRET, 3, &got, &len, NULL), ERR_OK);
    free(got);
}

static void test_read_line(void **state)
{
    static const struct {
        const char *contents;
        const char *line;
        bool there;
    } cases[] = {{"0-3\n", "0-3", true},        {"a\nb\n", "a", true}, {"1234567", "1234567", true},
                 {"12345678", "1234567", true}, {"\nb", "", true},     {"", "", false}};
    const char *path = scratch_at(*state, "f");
    char line[8] = "old";
    assert_false(file_read_line(path, line, sizeof line));
    assert_string_equal(line, "");
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        assert_int_equal(file_write(path, 0600, cases[i].contents, strlen(cases[i].contents), NULL), ERR_OK);
        assert_int_equal(file_read_line(path, line, sizeof line), cases[i].there);
        assert_string_equal(line, cases[i].line);
    }
}

static void test_open_files(void **state)
{
    int fd = open(scratch_at(*state, "f"), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    char out[8] = "";
    size_t got = 0;
    assert_int_equal(file_write_at(fd, "hello", 5, 3), ERR_OK);
    assert_int_equal(file_read_at(fd, out, 4, 2, &got), ERR_OK);
    assert_int_equal(got, 4);
    assert_memory_equal(out, "\0hel", 4);
    assert_int_equal(file_read_at(fd, out, sizeof out, 6, &got), ERR_OK);
    assert_int_equal(got, 2);
    close(fd);
    assert_int_equal(file_read_at(fd, out, 1, 0, &got), ERR_IO);
    assert_int_equal(file_write_at(fd, "x", 1, 0), ERR_IO);
    fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
    assert_int_equal(file_write_at(fd, "x", 1, 0), ERR_FULL);
    close(fd);
}

/* The kernel gives a file of its own in pages, so that one read of many is several. */
static void test_read_in_pieces(void **state)
{
    enum { BYTES = 40000 };
    (void)state;
    int fd = open("/proc/kallsyms", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        skip();
    char *at_once = mem_zalloc(BYTES, 1);
    char *in_order = mem_zalloc(BYTES, 1);
    size_t got = 0;
    assert_true(pread(fd, at_once, BYTES, 0) < BYTES);
    assert_int_equal(file_read_at(fd, at_once, BYTES, 100, &got), ERR_OK);
    assert_int_equal(got, BYTES);
    assert_int_equal(read(fd, in_order, 100), 100);
    for (ssize_t n = 0, have = 0; have < BYTES; have += n) {
        n = read(fd, in_order + have, (size_t)(BYTES - have));
        assert_true(n > 0);
    }
    assert_memory_equal(at_once, in_order, BYTES);
    free(at_once);
    free(in_order);
    close(fd);
}

/* ---- writing ------------------------------------------------------------------------------------------- */

static void test_replaces(void **state)
{
    struct scratch *s = *state;
    char *path = mem_strdup(scratch_at(s, "f"));
    char *fresh = mem_strdup(scratch_at(s, "f.new"));
    char *other = mem_strdup(scratch_at(s, "other"));
    mode_t mask = umask(077);
    assert_int_equal(file_write(path, 0644, "one", 3, NULL), ERR_OK);
    umask(mask);
    assert_int_equal(mode_of(path), 0644); /* as given, whatever the mask */
    expect_nothing(fresh);
    /* What an attempt that was cut short, or somebody else, left beside it is not written through. */
    assert_int_equal(file_write(other, 0600, "other", 5, NULL), ERR_OK);
    assert_int_equal(symlink(other, fresh), 0);
    assert_int_equal(file_write(path, 0600, "two", 3, NULL), ERR_OK);
    expect_contents(path, "two");
    assert_int_equal(mode_of(path), 0600);
    /* A link in its place is replaced, not followed. */
    assert_int_equal(unlink(path), 0);
    assert_int_equal(symlink(other, path), 0);
    assert_int_equal(file_write(path, 0600, "three", 5, NULL), ERR_OK);
    expect_contents(path, "three");
    expect_contents(other, "other");
    free(path);
    free(fresh);
    free(other);
}

static void test_two_steps(void **state)
{
    struct scratch *s = *state;
    char *path = mem_strdup(scratch_at(s, "f"));
    assert_int_equal(file_write(path, 0600, "old", 3, NULL), ERR_OK);
    assert_int_equal(file_write_beside(path, 0600, "new", 3, NULL), ERR_OK);
    expect_contents(path, "old");
    file_drop_beside(path);
    struct err_detail d = {""};
    assert_int_equal(file_put_in_place(path, &d), ERR_NOT_FOUND);
    assert_non_null(strstr(d.text, path));
    expect_contents(path, "old");
    assert_int_equal(file_write_beside(path, 0600, "new", 3, NULL), ERR_OK);
    assert_int_equal(file_put_in_place(path, &d), ERR_OK);
    expect_contents(path, "new");
    free(path);
}

static int write_here(void *scratch)
{
    const struct scratch *s = scratch;
    CHILD_CHECK(chdir(s->dir) == 0);
    CHILD_CHECK(file_write("f", 0600, "here", 4, NULL) == ERR_OK);
    CHILD_CHECK(file_write("./f", 0600, "there", 5, NULL) == ERR_OK);
    return 0;
}

static void test_relative_path(void **state)
{
    child_run(write_here, *state);
    expect_contents(scratch_at(*state, "f"), "there");
}

static void expect_unwritable(struct scratch *s, const char *name, enum err e)
{
    struct err_detail d = {""};
    char *path = mem_strdup(scratch_at(s, name));
    char *fresh = mem_printf("%s.new", path);
    assert_int_equal(file_write(path, 0600, "x", 1, &d), e);
    assert_non_null(strstr(d.text, path));
    expect_nothing(fresh);
    free(path);
    free(fresh);
}

static void test_something_in_the_way(void **state)
{
    struct scratch *s = *state;
    assert_int_equal(mkdir(scratch_at(s, "dir"), 0700), 0);
    expect_unwritable(s, "dir", ERR_IO);
    assert_int_equal(mkdir(scratch_at(s, "dir/sub"), 0700), 0);
    expect_unwritable(s, "dir", ERR_IO);
    expect_unwritable(s, "none/f", ERR_NOT_FOUND);
    assert_int_equal(file_write(scratch_at(s, "f"), 0600, "x", 1, NULL), ERR_OK);
    expect_unwritable(s, "f/below", ERR_NOT_FOUND);
}

static int write_as_nobody(void *scratch)
{
    struct scratch *s = scratch;
    struct err_detail d = {""};
    char *got = NULL;
    size_t len = 0;
    CHILD_CHECK(child_become_nobody());
    CHILD_CHECK(file_write(scratch_at(s, "shut/f"), 0600, "x", 1, &d) == ERR_DENIED);
    CHILD_CHECK(strstr(d.text, "shut/f") != NULL);
    CHILD_CHECK(file_read(scratch_at(s, "hidden"), FILE_REGULAR, 1, &got, &len, &d) == ERR_DENIED);
    CHILD_CHECK(file_make_dirs(scratch_at(s, "shut/a/b"), &d) == ERR_DENIED);
    return 0;
}

static void test_permission(void **state)
{
    struct scratch *s = *state;
    assert_int_equal(chmod(s->dir, 0755), 0);
    assert_int_equal(file_write(scratch_at(s, "hidden"), 0, "x", 1, NULL), ERR_OK);
    assert_int_equal(mkdir(scratch_at(s, "shut"), 0500), 0);
    child_run(write_as_nobody, s);
}

/* A disk that is too small for `bytes`: what was there stays, whole, and nothing is left beside it. */
static int write_too_much(struct scratch *s, size_t bytes, enum err expected, const char *part)
{
    struct err_detail d = {""};
    char *data = mem_zalloc(bytes, 1);
    char *got = NULL;
    size_t len = 0;
    CHILD_CHECK(file_write(scratch_at(s, "f"), 0600, "old", 3, NULL) == ERR_OK);
    CHILD_CHECK(file_write(s->path, 0600, data, bytes, &d) == expected);
    CHILD_CHECK(strstr(d.text, part) != NULL && strstr(d.text, s->path) != NULL);
    CHILD_CHECK(file_read(s->path, FILE_REGULAR, 3, &got, &len, NULL) == ERR_OK &&
                memcmp(got, "old", 4) == 0);
    CHILD_CHECK(access(scratch_at(s, "f.new"), F_OK) != 0);
    CHILD_CHECK(file_write(scratch_at(s, "f"), 0600, "next", 4, NULL) == ERR_OK);
    free(data);
    free(got);
    return 0;
}

static int over_the_file_limit(void *scratch)
{
    CHILD_CHECK(child_limit_files(1000));
    return write_too_much(scratch, 1001, ERR_TOO_BIG, "File too large");
}

static void test_over_the_file_limit(void **state)
{
    child_run(over_the_file_limit, *state);
}

static int on_small_disk(void *scratch)
{
    const struct scratch *s = scratch;
    if (!child_mount_small(s->dir, 65536))
        return CHILD_SKIPS;
    return write_too_much(scratch, 100000, ERR_FULL, "make room there");
}

static void test_full_disk(void **state)
{
    child_run(on_small_disk, *state);
}

/* ---- directories and locks ----------------------------------------------------------------------------- */

static void test_directories(void **state)
{
    struct scratch *s = *state;
    struct err_detail d = {""};
    mode_t mask = umask(022);
    assert_int_equal(file_make_dirs(scratch_at(s, "a//b/c/"), &d), ERR_OK);
    assert_int_equal(file_make_dir(scratch_at(s, "a/open"), 0755, &d), ERR_OK);
    umask(mask);
    assert_int_equal(mode_of(scratch_at(s, "a")), 0700);
    assert_int_equal(mode_of(scratch_at(s, "a/b/c")), 0700);
    assert_int_equal(mode_of(scratch_at(s, "a/open")), 0755);
    assert_int_equal(file_make_dirs(scratch_at(s, "a/b/c"), &d), ERR_OK); /* there already */
    assert_int_equal(file_make_dir(scratch_at(s, "a/open"), 0700, &d), ERR_OK);
    assert_int_equal(mode_of(s->path), 0755); /* left as it was */
    assert_int_equal(file_make_dirs("/", &d), ERR_OK);
    assert_int_equal(file_make_dir(scratch_at(s, "none/a"), 0700, &d), ERR_NOT_FOUND);
    assert_int_equal(file_write(scratch_at(s, "f"), 0600, "", 0, NULL), ERR_OK);
    assert_int_equal(file_make_dir(s->path, 0700, &d), ERR_INVALID);
    assert_non_null(strstr(d.text, "f is not a directory"));
    assert_int_equal(file_make_dirs(scratch_at(s, "f/below"), &d), ERR_INVALID);
    assert_int_equal(symlink("a", scratch_at(s, "link")), 0);
    assert_int_equal(file_make_dir(s->path, 0700, &d), ERR_OK);
}

static void test_open_directory(void **state)
{
    struct scratch *s = *state;
    struct err_detail d = {""};
    int fd = -1;
    assert_int_equal(file_open_dir(scratch_at(s, "a"), 0700, &fd, &d), ERR_OK);
    assert_int_equal(mkdirat(fd, "in", 0700), 0);
    close(fd);
    assert_int_equal(access(scratch_at(s, "a/in"), F_OK), 0);
    assert_int_equal(symlink("a", scratch_at(s, "link")), 0);
    assert_int_not_equal(file_open_dir(s->path, 0700, &fd, &d), ERR_OK);
    assert_non_null(strstr(d.text, s->path));
}

static void test_lock(void **state)
{
    struct scratch *s = *state;
    struct err_detail d = {""};
    int first = -1, second = -1;
    const char *path = scratch_at(s, "lock");
    assert_int_equal(file_lock(path, &first, &d), ERR_OK);
    assert_int_equal(mode_of(path), 0600);
    assert_int_equal(file_lock(path, &second, &d), ERR_BUSY);
    assert_int_equal(second, -1);
    assert_non_null(strstr(d.text, path));
    close(first);
    assert_int_equal(file_lock(path, &second, &d), ERR_OK);
    close(second);
    second = -1;
    assert_int_equal(file_lock(s->dir, &second, &d), ERR_IO);
    assert_int_equal(file_lock(scratch_at(s, "none/lock"), &second, &d), ERR_NOT_FOUND);
    assert_int_equal(symlink("lock", scratch_at(s, "link")), 0);
    assert_int_equal(file_lock(s->path, &second, &d), ERR_IO);
    assert_int_equal(second, -1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, scratch_set_up, scratch_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_read_at_limit),  TEST(test_read_without_size),
        TEST(test_unreadable),     TEST(test_read_line),
        TEST(test_open_files),     TEST(test_read_in_pieces),
        TEST(test_replaces),       TEST(test_two_steps),
        TEST(test_relative_path),  TEST(test_something_in_the_way),
        TEST(test_permission),     TEST(test_over_the_file_limit),
        TEST(test_full_disk),      TEST(test_directories),
        TEST(test_open_directory), TEST(test_lock),
    };
    return cmocka_run_group_tests_name("file", tests, NULL, NULL);
}
