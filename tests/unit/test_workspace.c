#include "agent/task/workspace.h"

#include "agent/task/jail.h"
#include "common/blobs.h"
#include "common/mem.h"
#include "tests/support/scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define FILES_MAX 8u

struct fixture {
    struct scratch scratch;
    struct workspace *w;
    struct msg_file items[FILES_MAX];
    struct msg_files files;
};

static void open_workspace(struct fixture *f, const char *job, uint64_t blob_bytes_max)
{
    struct workspace_options options = {
        .state_dir = f->scratch.dir, .job = job, .blob_bytes_max = blob_bytes_max};
    struct err_detail d = {""};
    workspace_free(f->w);
    if (workspace_open(&options, &f->w, &d) != ERR_OK)
        fail_msg("%s", d.text);
}

static int setup(void **state)
{
    struct fixture *f = mem_zalloc(1, sizeof *f);
    scratch_init(&f->scratch);
    f->files.items = f->items;
    open_workspace(f, "job-1", 0);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    workspace_free(f->w);
    scratch_fini(&f->scratch);
    free(f);
    return 0;
}

static void add(struct fixture *f, const char *path, const char *content, uint32_t mode)
{
    must(f->files.count < FILES_MAX);
    struct msg_file *file = &f->items[f->files.count++];
    *file = (struct msg_file){.path = (char *)(uintptr_t)path, .size_bytes = strlen(content), .mode = mode};
    sha256_of(content, strlen(content), file->hash);
}

/* How many contents are missing; fails the test on an error. */
static size_t set_files(struct fixture *f)
{
    struct msg_files_missing missing;
    struct err_detail d = {""};
    if (workspace_set_files(f->w, &f->files, &missing, &d) != ERR_OK)
        fail_msg("%s", d.text);
    size_t count = missing.count;
    free(missing.items);
    return count;
}

static enum err send_piece(struct fixture *f, const uint8_t *hash, uint64_t offset, const char *data,
                           struct err_detail *d)
{
    struct msg_chunk chunk = {.offset = offset, .data = {(uint8_t *)(uintptr_t)data, strlen(data)}};
    memcpy(chunk.hash, hash, sizeof chunk.hash);
    return workspace_take_chunk(f->w, &chunk, d);
}

static enum err send(struct fixture *f, const char *content)
{
    uint8_t hash[MSG_HASH_BYTES];
    sha256_of(content, strlen(content), hash);
    return send_piece(f, hash, 0, content, NULL);
}

static char *tree_path(const struct fixture *f, const char *path)
{
    return mem_printf("%s/%s", workspace_dir(f->w), path);
}

/* Content of a file of the tree, or NULL; the caller frees. */
static char *content_of(const struct fixture *f, const char *path, uint32_t *mode)
{
    char *full = tree_path(f, path);
    int fd = open(full, O_RDONLY | O_NOFOLLOW);
    free(full);
    if (fd < 0)
        return NULL;
    char text[256];
    ssize_t n = read(fd, text, sizeof text);
    struct stat st;
    must(n >= 0 && fstat(fd, &st) == 0);
    close(fd);
    if (mode != NULL)
        *mode = st.st_mode & 07777;
    return mem_strndup(text, (size_t)n);
}

static void expect_content(const struct fixture *f, const char *path, const char *expected)
{
    char *got = content_of(f, path, NULL);
    if (expected == NULL ? got != NULL : got == NULL || strcmp(got, expected) != 0)
        fail_msg("%s: expected %s, got %s", path, expected != NULL ? expected : "nothing",
                 got != NULL ? got : "nothing");
    free(got);
}

static void test_files_arrive(void **state)
{
    struct fixture *f = *state;
    add(f, "run.sh", "#!/bin/sh\n", 0755);
    add(f, "a/b/c.txt", "deep", 0640);
    add(f, "a/same.txt", "deep", 0600); /* one content under two names is sent once */
    add(f, "empty", "", 0644);          /* nothing is sent for an empty file */
    assert_int_equal(set_files(f), 2);
    expect_content(f, "run.sh", NULL);
    assert_int_equal(send(f, "#!/bin/sh\n"), ERR_OK);
    expect_content(f, "run.sh", NULL); /* whole or not at all */
    assert_int_equal(send(f, "deep"), ERR_OK);
    uint32_t mode = 0;
    char *text = content_of(f, "run.sh", &mode);
    assert_string_equal(text, "#!/bin/sh\n");
    assert_int_equal(mode, 0755);
    free(text);
    text = content_of(f, "a/b/c.txt", &mode);
    assert_string_equal(text, "deep");
    assert_int_equal(mode, 0640);
    free(text);
    expect_content(f, "a/same.txt", "deep");
    expect_content(f, "empty", "");
    assert_int_equal(set_files(f), 0);
    assert_int_equal(send(f, "deep"), ERR_OK); /* again: it is here already */
}

static void test_cut_piece_is_resumed(void **state)
{
    struct fixture *f = *state;
    add(f, "file", "0123456789", 0644);
    assert_int_equal(set_files(f), 1);
    const uint8_t *hash = f->items[0].hash;
    assert_int_equal(send_piece(f, hash, 0, "0123", NULL), ERR_OK);
    open_workspace(f, "job-1", 0); /* the agent started anew */
    struct msg_files_missing missing;
    assert_int_equal(workspace_set_files(f->w, &f->files, &missing, NULL), ERR_OK);
    assert_int_equal(missing.count, 1);
    assert_memory_equal(missing.items[0].hash, hash, MSG_HASH_BYTES);
    assert_int_equal(missing.items[0].have_bytes, 4);
    free(missing.items);
    struct err_detail d;
    assert_int_equal(send_piece(f, hash, 5, "56789", &d), ERR_INVALID); /* a gap */
    assert_non_null(strstr(d.text, "begins at 5, but only 4 bytes are here"));
    assert_int_equal(send_piece(f, hash, 0, "01", NULL), ERR_OK);      /* a piece again */
    assert_int_equal(send_piece(f, hash, 2, "23456", NULL), ERR_OK);   /* half again, half new */
    assert_int_equal(send_piece(f, hash, 7, "789X", &d), ERR_INVALID); /* behind the end */
    assert_int_equal(send_piece(f, hash, UINT64_MAX, "7", &d), ERR_INVALID);
    assert_int_equal(send_piece(f, hash, 7, "789", NULL), ERR_OK);
    expect_content(f, "file", "0123456789");
}

static void test_wrong_content_is_refused(void **state)
{
    struct fixture *f = *state;
    add(f, "file", "right", 0644);
    assert_int_equal(set_files(f), 1);
    struct err_detail d;
    assert_int_equal(send_piece(f, f->items[0].hash, 0, "wrong", &d), ERR_INVALID);
    assert_non_null(strstr(d.text, "send it from the beginning"));
    expect_content(f, "file", NULL);
    assert_int_equal(set_files(f), 1);
    assert_int_equal(send(f, "unasked"), ERR_DENIED); /* not on the list */
    assert_int_equal(send(f, "right"), ERR_OK);
    expect_content(f, "file", "right");
}

static void test_only_changes_are_sent_and_written(void **state)
{
    struct fixture *f = *state;
    add(f, "kept", "kept", 0644);
    add(f, "dir/changed", "before", 0644);
    add(f, "gone/away", "away", 0644);
    assert_int_equal(set_files(f), 3);
    assert_int_equal(send(f, "kept"), ERR_OK);
    assert_int_equal(send(f, "before"), ERR_OK);
    assert_int_equal(send(f, "away"), ERR_OK);
    char *kept = tree_path(f, "kept");
    char *made = tree_path(f, "dir/made-by-build");
    struct stat before;
    must(stat(kept, &before) == 0);
    int fd = open(made, O_WRONLY | O_CREAT, 0644);
    must(fd >= 0 && close(fd) == 0);

    open_workspace(f, "job-1", 0);
    f->files.count = 0;
    add(f, "kept", "kept", 0644);
    add(f, "dir/changed", "after!", 0755);
    assert_int_equal(set_files(f), 1);
    assert_int_equal(send(f, "after!"), ERR_OK);
    struct stat after;
    must(stat(kept, &after) == 0);
    assert_int_equal(before.st_ino, after.st_ino); /* not touched */
    expect_content(f, "dir/changed", "after!");
    expect_content(f, "gone/away", NULL);
    char *gone = tree_path(f, "gone");
    assert_int_equal(access(gone, F_OK), -1); /* its directory was empty then */
    assert_int_equal(access(made, F_OK), 0);  /* what the job made stays */
    free(kept);
    free(made);
    free(gone);
}

static void test_changed_by_the_job_is_put_right(void **state)
{
    struct fixture *f = *state;
    add(f, "config", "good", 0644);
    set_files(f);
    assert_int_equal(send(f, "good"), ERR_OK);
    char *path = tree_path(f, "config");
    int fd = open(path, O_WRONLY);
    must(fd >= 0 && write(fd, "evil", 4) == 4 && close(fd) == 0);
    free(path);
    assert_int_equal(set_files(f), 0); /* the blob is a copy of its own and still good */
    expect_content(f, "config", "good");
}

static void test_bad_lists_change_nothing(void **state)
{
    struct fixture *f = *state;
    static const char *const bad[] = {"/etc/passwd", "../x",  "a/../../x", "a//b",   "a/",
                                      "./a",         "a/./b", "..",        ".",      "",
                                      "a\nb",        "a\x7f", "/",         "a/b/..", "//x"};
    struct msg_files_missing missing;
    struct err_detail d;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        f->files.count = 0;
        add(f, "good", "good", 0644);
        add(f, bad[i], "x", 0644);
        d.text[0] = '\0';
        if (workspace_set_files(f->w, &f->files, &missing, &d) != ERR_INVALID || d.text[0] == '\0')
            fail_msg("\"%s\" was taken", bad[i]);
        assert_int_equal(send(f, "good"), ERR_DENIED);
    }
}

static enum err set_two(struct fixture *f, const char *a, const char *b)
{
    f->files.count = 0;
    add(f, a, "a", 0644);
    add(f, b, "b", 0644);
    struct msg_files_missing missing = {0};
    enum err e = workspace_set_files(f->w, &f->files, &missing, NULL);
    free(missing.items);
    return e;
}

static void test_contradictions_are_refused(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(set_two(f, "a", "a"), ERR_INVALID);
    assert_int_equal(set_two(f, "a", "a/b"), ERR_INVALID);
    assert_int_equal(set_two(f, "a/b/c/d", "a/b"), ERR_INVALID);
    assert_int_equal(set_two(f, "a", "a!/b"), ERR_OK);
    struct msg_files_missing missing;
    f->items[0].mode = 04755;
    assert_int_equal(workspace_set_files(f->w, &f->files, &missing, NULL), ERR_INVALID);
    f->items[0].mode = 0644;
    memcpy(f->items[1].hash, f->items[0].hash, MSG_HASH_BYTES);
    f->items[1].size_bytes++;
    assert_int_equal(workspace_set_files(f->w, &f->files, &missing, NULL), ERR_INVALID);
    f->items[1].size_bytes = LIMIT_FILE_BYTES;
    assert_int_equal(workspace_set_files(f->w, &f->files, &missing, NULL), ERR_TOO_BIG);
    f->files.count = LIMIT_FILES + 1; /* refused before the items are looked at */
    assert_int_equal(workspace_set_files(f->w, &f->files, &missing, NULL), ERR_TOO_BIG);
}

static void test_links_are_not_followed(void **state)
{
    struct fixture *f = *state;
    char *outside = mem_printf("%s/outside", f->scratch.dir);
    char *victim = mem_printf("%s/victim", outside);
    char *link = tree_path(f, "dir");
    must(mkdir(outside, 0755) == 0 && symlink(outside, link) == 0);
    int fd = open(victim, O_WRONLY | O_CREAT, 0644);
    must(fd >= 0 && write(fd, "safe", 4) == 4 && close(fd) == 0);

    add(f, "dir/victim", "evil", 0644);
    assert_int_equal(set_files(f), 1);
    struct err_detail d;
    assert_int_equal(send_piece(f, f->items[0].hash, 0, "evil", &d), ERR_DENIED);
    assert_non_null(strstr(d.text, "dir/victim: a link or a file stands where a directory must be"));

    /* a link under the file's own name is replaced, not followed */
    must(unlink(link) == 0 && mkdir(link, 0755) == 0);
    char *name = tree_path(f, "dir/victim");
    must(symlink(victim, name) == 0);
    assert_int_equal(set_files(f), 0);
    expect_content(f, "dir/victim", "evil");
    /* removal does not follow either */
    must(unlink(name) == 0 && rmdir(link) == 0 && symlink(outside, link) == 0);
    f->files.count = 0;
    assert_int_equal(set_files(f), 0);
    struct stat st;
    assert_int_equal(lstat(victim, &st), 0);
    assert_int_equal(st.st_size, 4);
    free(outside);
    free(victim);
    free(link);
    free(name);
}

static void test_odd_things_in_the_way(void **state)
{
    struct fixture *f = *state;
    char *fifo = tree_path(f, "file");
    must(mkfifo(fifo, 0644) == 0);
    add(f, "file", "text", 0644);
    assert_int_equal(set_files(f), 1);
    assert_int_equal(send(f, "text"), ERR_OK); /* replaced; opening it would have hung */
    expect_content(f, "file", "text");
    must(unlink(fifo) == 0 && mkdir(fifo, 0755) == 0);
    struct msg_files_missing missing;
    struct err_detail d;
    assert_int_equal(workspace_set_files(f->w, &f->files, &missing, &d), ERR_DENIED); /* a directory is not */
    free(fifo);
}

static char *blob_path(const struct fixture *f, const uint8_t *hash)
{
    char text[SHA256_TEXT_BYTES];
    return mem_printf("%s/blobs/%s", f->scratch.dir, sha256_text(hash, text));
}

static void test_damaged_blob_is_asked_for_again(void **state)
{
    struct fixture *f = *state;
    add(f, "file", "right", 0644);
    set_files(f);
    assert_int_equal(send(f, "right"), ERR_OK);
    char *blob = blob_path(f, f->items[0].hash);
    int fd = open(blob, O_WRONLY);
    must(fd >= 0 && write(fd, "wrong", 5) == 5 && close(fd) == 0);
    open_workspace(f, "job-2", 0);
    assert_int_equal(set_files(f), 1);
    expect_content(f, "file", NULL);
    assert_int_equal(send(f, "right"), ERR_OK);
    expect_content(f, "file", "right");
    free(blob);
}

static void age(const struct fixture *f, const char *content, int seconds)
{
    uint8_t hash[MSG_HASH_BYTES];
    sha256_of(content, strlen(content), hash);
    char *path = blob_path(f, hash);
    struct timespec times[2] = {{.tv_sec = 1000000 - seconds}, {.tv_sec = 1000000 - seconds}};
    must(utimensat(AT_FDCWD, path, times, 0) == 0);
    free(path);
}

static bool has_blob(const struct fixture *f, const char *content)
{
    uint8_t hash[MSG_HASH_BYTES];
    sha256_of(content, strlen(content), hash);
    char *path = blob_path(f, hash);
    bool there = access(path, F_OK) == 0;
    free(path);
    return there;
}

static void test_oldest_blobs_go_first(void **state)
{
    struct fixture *f = *state;
    open_workspace(f, "job-1", 12);
    add(f, "a", "aaaa", 0644);
    add(f, "b", "bbbb", 0644);
    add(f, "c", "cccc", 0644);
    assert_int_equal(set_files(f), 3);
    assert_int_equal(send(f, "aaaa"), ERR_OK);
    assert_int_equal(send(f, "bbbb"), ERR_OK);
    assert_int_equal(send(f, "cccc"), ERR_OK); /* exactly the limit */
    age(f, "aaaa", 10);
    age(f, "bbbb", 30);
    age(f, "cccc", 20);
    f->files.count = 0;
    add(f, "a", "aaaa", 0644);
    add(f, "d", "dddd", 0644);
    assert_int_equal(set_files(f), 1);
    assert_true(has_blob(f, "aaaa"));
    assert_false(has_blob(f, "bbbb"));
    assert_true(has_blob(f, "cccc"));
    add(f, "e", "eeeee", 0644); /* 13 bytes wanted */
    struct msg_files_missing missing;
    struct err_detail d;
    assert_int_equal(workspace_set_files(f->w, &f->files, &missing, &d), ERR_FULL);
    assert_non_null(strstr(d.text, "need 13 bytes"));
}

static void test_old_trees_are_removed(void **state)
{
    struct fixture *f = *state;
    for (int i = 0; i < 8; i++) {
        char job[16];
        snprintf(job, sizeof job, "job-%d", i);
        open_workspace(f, job, 0);
        char *dir = mem_printf("%s/workspaces/%s", f->scratch.dir, job);
        struct timespec times[2] = {{.tv_sec = 1000 + i}, {.tv_sec = 1000 + i}};
        must(utimensat(AT_FDCWD, dir, times, 0) == 0);
        free(dir);
    }
    open_workspace(f, "last", 0);
    workspace_remove_old(f->w);
    for (int i = 0; i < 8; i++) {
        char *dir = mem_printf("%s/workspaces/job-%d", f->scratch.dir, i);
        assert_int_equal(access(dir, F_OK) == 0, i >= 8 - (int)WORKSPACE_KEPT_MAX);
        free(dir);
    }
}

static void test_bad_job_names(void **state)
{
    struct fixture *f = *state;
    static const char *const bad[] = {"", ".", "..", "../x", "a/b", "a b", ".hidden", "a\n", "\xc3\xa4"};
    struct workspace *w = NULL;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct workspace_options options = {.state_dir = f->scratch.dir, .job = bad[i]};
        struct err_detail d;
        assert_int_equal(workspace_open(&options, &w, &d), ERR_INVALID);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_files_arrive, setup, teardown),
        cmocka_unit_test_setup_teardown(test_cut_piece_is_resumed, setup, teardown),
        cmocka_unit_test_setup_teardown(test_wrong_content_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(test_only_changes_are_sent_and_written, setup, teardown),
        cmocka_unit_test_setup_teardown(test_changed_by_the_job_is_put_right, setup, teardown),
        cmocka_unit_test_setup_teardown(test_bad_lists_change_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(test_contradictions_are_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(test_links_are_not_followed, setup, teardown),
        cmocka_unit_test_setup_teardown(test_odd_things_in_the_way, setup, teardown),
        cmocka_unit_test_setup_teardown(test_damaged_blob_is_asked_for_again, setup, teardown),
        cmocka_unit_test_setup_teardown(test_oldest_blobs_go_first, setup, teardown),
        cmocka_unit_test_setup_teardown(test_old_trees_are_removed, setup, teardown),
        cmocka_unit_test_setup_teardown(test_bad_job_names, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
