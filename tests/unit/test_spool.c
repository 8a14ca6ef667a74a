/* The spool: what is appended survives, in order, once; damage costs only what is damaged. */
#include "agent/uplink/spool.h"
#include "common/mem.h"
#include "tests/support/child.h"
#include "tests/support/scratch.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define HEADER_BYTES 32u

static struct spool *open_spool(struct scratch *scratch, uint64_t bytes_max)
{
    struct spool *s = NULL;
    struct err_detail d = {""};
    enum err e = spool_new(
        &(struct spool_options){.dir = scratch_at(scratch, "spool"), .bytes_max = bytes_max}, &s, &d);
    if (e != ERR_OK)
        fail_msg("%s", d.text);
    return s;
}

static void append_text(struct spool *s, uint64_t incarnation, uint64_t number, const char *text)
{
    assert_int_equal(spool_append(s, incarnation, number, text, strlen(text), NULL), ERR_OK);
}

static void expect(struct spool *s, size_t index, uint64_t incarnation, uint64_t number, const char *text)
{
    struct spool_entry e = spool_at(s, index);
    assert_true(e.incarnation == incarnation);
    assert_true(e.number == number);
    assert_int_equal(e.len, strlen(text));
    char *got = mem_zalloc(e.len + 1, 1);
    assert_int_equal(spool_read(s, index, got, NULL), ERR_OK);
    assert_string_equal(got, text);
    free(got);
}

/* Number of files; the path of the last one by name. */
static size_t count_files(struct scratch *scratch, char *last, size_t last_size)
{
    DIR *dir = opendir(scratch_at(scratch, "spool"));
    assert_non_null(dir);
    size_t n = 0;
    const struct dirent *ent;
    char name[256] = "";
    while ((ent = readdir(dir)) != NULL) {
        if (ent->d_name[0] == '.')
            continue;
        n++;
        if (strcmp(ent->d_name, name) > 0)
            snprintf(name, sizeof name, "%s", ent->d_name);
    }
    closedir(dir);
    if (last != NULL)
        snprintf(last, last_size, "%s/%s", scratch_at(scratch, "spool"), name);
    return n;
}

static void test_keeps_order_and_forgets_what_is_acked(void **state)
{
    struct scratch *scratch = *state;
    struct spool *s = open_spool(scratch, LIMIT_SPOOL_BYTES);
    append_text(s, 7, 2, "two");
    append_text(s, 7, 5, "five");
    append_text(s, 7, 6, "");
    assert_int_equal(spool_count(s), 3);
    expect(s, 0, 7, 2, "two");
    expect(s, 1, 7, 5, "five");
    expect(s, 2, 7, 6, "");
    spool_ack(s, 8, 99); /* somebody else's */
    assert_int_equal(spool_count(s), 3);
    spool_ack(s, 7, 5);
    assert_int_equal(spool_count(s), 1);
    expect(s, 0, 7, 6, "");
    spool_ack(s, 7, 6);
    assert_int_equal(spool_count(s), 0);
    assert_int_equal(count_files(scratch, NULL, 0), 0);
    append_text(s, 7, 9, "after");
    expect(s, 0, 7, 9, "after");
    spool_free(s);
}

static void test_survives_restarts(void **state)
{
    struct scratch *scratch = *state;
    struct spool *s = open_spool(scratch, LIMIT_SPOOL_BYTES);
    append_text(s, 1, 1, "a");
    append_text(s, 1, 2, "b");
    append_text(s, 1, 3, "c");
    spool_ack(s, 1, 1);
    spool_free(s);
    s = open_spool(scratch, LIMIT_SPOOL_BYTES);
    assert_int_equal(spool_count(s), 2);
    assert_true(spool_damaged_bytes(s) == 0);
    expect(s, 0, 1, 2, "b");
    append_text(s, 2, 1, "new");
    spool_free(s);
    s = open_spool(scratch, LIMIT_SPOOL_BYTES);
    assert_int_equal(spool_count(s), 3);
    expect(s, 2, 2, 1, "new");
    spool_ack(s, 2, 1);
    spool_free(s);
    s = open_spool(scratch, LIMIT_SPOOL_BYTES);
    assert_int_equal(spool_count(s), 2);
    expect(s, 1, 1, 3, "c");
    spool_ack(s, 1, 3);
    assert_int_equal(count_files(scratch, NULL, 0), 0);
    assert_true(spool_bytes(s) == 0);
    spool_free(s);
}

static void test_segments_rotate_and_go(void **state)
{
    struct scratch *scratch = *state;
    struct spool *s = open_spool(scratch, LIMIT_SPOOL_BYTES);
    char *big = mem_alloc(SPOOL_RECORD_BYTES);
    memset(big, 'x', SPOOL_RECORD_BYTES);
    for (uint64_t n = 1; n <= 7; n++)
        assert_int_equal(spool_append(s, 1, n, big, SPOOL_RECORD_BYTES, NULL), ERR_OK);
    size_t files = count_files(scratch, NULL, 0);
    assert_true(files >= 3);
    spool_ack(s, 1, 4);
    assert_true(count_files(scratch, NULL, 0) < files);
    spool_free(s);
    s = open_spool(scratch, LIMIT_SPOOL_BYTES);
    assert_int_equal(spool_count(s), 3);
    char *got = mem_alloc(SPOOL_RECORD_BYTES);
    assert_int_equal(spool_read(s, 2, got, NULL), ERR_OK);
    assert_memory_equal(got, big, SPOOL_RECORD_BYTES);
    spool_ack(s, 1, 7);
    assert_int_equal(count_files(scratch, NULL, 0), 0);
    spool_free(s);
    free(big);
    free(got);
}

static void test_limits(void **state)
{
    struct scratch *scratch = *state;
    struct spool *s = open_spool(scratch, 8 + 2 * (HEADER_BYTES + 10) + 8);
    struct err_detail d = {""};
    assert_int_equal(spool_append(s, 1, 1, "0123456789", 10, &d), ERR_OK);
    assert_int_equal(spool_append(s, 1, 2, "0123456789", 10, &d), ERR_OK);
    assert_int_equal(spool_append(s, 1, 3, "0", 1, &d), ERR_FULL);
    assert_non_null(strstr(d.text, "limit"));
    assert_int_equal(spool_count(s), 2);
    spool_ack(s, 1, 2);
    assert_int_equal(spool_append(s, 1, 3, "0", 1, &d), ERR_OK);
    spool_free(s);
    s = open_spool(scratch, LIMIT_SPOOL_BYTES);
    char *big = mem_zalloc(SPOOL_RECORD_BYTES + 1, 1);
    assert_int_equal(spool_append(s, 1, 4, big, SPOOL_RECORD_BYTES + 1, &d), ERR_TOO_BIG);
    assert_int_equal(spool_append(s, 1, 4, big, SPOOL_RECORD_BYTES, &d), ERR_OK);
    free(big);
    spool_free(s);
}

static void damage(const char *path, off_t at, char with)
{
    int fd = open(path, O_RDWR);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, &with, 1, at), 1);
    close(fd);
}

/* Cut the file at every length: whole records before the cut are there, nothing else, and it can be used. */
static void test_torn_at_every_byte(void **state)
{
    struct scratch *scratch = *state;
    const off_t whole = 8 + 3 * ((off_t)HEADER_BYTES + 4);
    for (off_t cut = 0; cut <= whole; cut++) {
        struct spool *s = open_spool(scratch, LIMIT_SPOOL_BYTES);
        append_text(s, 1, 1, "aaaa");
        append_text(s, 1, 2, "bbbb");
        append_text(s, 1, 3, "cccc");
        spool_free(s);
        char path[512];
        assert_int_equal(count_files(scratch, path, sizeof path), 1);
        struct stat st;
        assert_int_equal(stat(path, &st), 0);
        assert_true(st.st_size == whole);
        assert_int_equal(truncate(path, cut), 0);
        s = open_spool(scratch, LIMIT_SPOOL_BYTES);
        size_t want = cut < 8 ? 0 : (size_t)(cut - 8) / (HEADER_BYTES + 4);
        assert_int_equal(spool_count(s), want);
        append_text(s, 2, 1, "after");
        expect(s, want, 2, 1, "after");
        spool_ack(s, 1, 3);
        spool_ack(s, 2, 1);
        assert_int_equal(count_files(scratch, NULL, 0), 0);
        spool_free(s);
    }
}

/* Change each byte of the middle record: the first one stays, the damage is counted, nothing wrong is read.
 */
static void test_damage_at_every_byte(void **state)
{
    struct scratch *scratch = *state;
    const off_t record = (off_t)HEADER_BYTES + 4;
    for (off_t at = 8 + record; at < 8 + 2 * record; at++) {
        struct spool *s = open_spool(scratch, LIMIT_SPOOL_BYTES);
        append_text(s, 1, 1, "aaaa");
        append_text(s, 1, 2, "bbbb");
        append_text(s, 1, 3, "cccc");
        spool_free(s);
        char path[512];
        assert_int_equal(count_files(scratch, path, sizeof path), 1);
        damage(path, at, '\xee');
        s = open_spool(scratch, LIMIT_SPOOL_BYTES);
        assert_int_equal(spool_count(s), 1);
        expect(s, 0, 1, 1, "aaaa");
        assert_true(spool_damaged_bytes(s) == 2 * (uint64_t)record);
        spool_ack(s, 1, 1);
        spool_free(s);
    }
}

static void test_damage_while_open(void **state)
{
    struct scratch *scratch = *state;
    struct spool *s = open_spool(scratch, LIMIT_SPOOL_BYTES);
    append_text(s, 1, 1, "aaaa");
    char path[512];
    assert_int_equal(count_files(scratch, path, sizeof path), 1);
    damage(path, 8 + HEADER_BYTES, 'b');
    char out[4];
    struct err_detail d = {""};
    assert_int_equal(spool_read(s, 0, out, &d), ERR_IO);
    assert_non_null(strstr(d.text, "lost result 1"));
    spool_free(s);
}

static void test_foreign_files_are_left_alone(void **state)
{
    struct scratch *scratch = *state;
    spool_free(open_spool(scratch, LIMIT_SPOOL_BYTES));
    char *note = mem_printf("%s/spool/README.seg", scratch->dir);
    char *empty = mem_printf("%s/spool/00000000000000ff.seg", scratch->dir);
    close(open(note, O_CREAT | O_WRONLY, 0600));
    close(open(empty, O_CREAT | O_WRONLY, 0600));
    struct spool *s = open_spool(scratch, LIMIT_SPOOL_BYTES);
    assert_int_equal(spool_count(s), 0);
    assert_int_equal(access(note, F_OK), 0);
    assert_int_equal(access(empty, F_OK), -1);
    append_text(s, 1, 1, "x");
    spool_free(s);
    free(note);
    free(empty);
}

static int append_on_full_disk(void *spool)
{
    struct spool *s = spool;
    char big[2000] = "";
    CHILD_CHECK(child_limit_files(1000));
    CHILD_CHECK(spool_append(s, 1, 2, big, sizeof big, NULL) != ERR_OK); /* begins below the limit */
    CHILD_CHECK(spool_append(s, 1, 3, "small", 5, NULL) == ERR_OK);
    CHILD_CHECK(spool_count(s) == 2);
    return 0;
}

/* A full disk, by a child's file-size limit: the append is refused whole, what was there stays. */
static void test_disk_full(void **state)
{
    struct scratch *scratch = *state;
    struct spool *s = open_spool(scratch, LIMIT_SPOOL_BYTES);
    append_text(s, 1, 1, "kept");
    child_run(append_on_full_disk, s);
    spool_free(s);
    s = open_spool(scratch, LIMIT_SPOOL_BYTES);
    assert_int_equal(spool_count(s), 2);
    assert_true(spool_damaged_bytes(s) == 0);
    expect(s, 0, 1, 1, "kept");
    expect(s, 1, 1, 3, "small");
    spool_free(s);
}

static void test_unusable_directory(void **state)
{
    struct scratch *scratch = *state;
    struct spool *s = NULL;
    struct err_detail d = {""};
    const char *path = scratch_at(scratch, "no/such");
    assert_int_equal(spool_new(&(struct spool_options){.dir = path, .bytes_max = 1}, &s, &d), ERR_NOT_FOUND);
    assert_null(s);
    assert_non_null(strstr(d.text, path));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_keeps_order_and_forgets_what_is_acked, scratch_set_up,
                                        scratch_tear_down),
        cmocka_unit_test_setup_teardown(test_survives_restarts, scratch_set_up, scratch_tear_down),
        cmocka_unit_test_setup_teardown(test_segments_rotate_and_go, scratch_set_up, scratch_tear_down),
        cmocka_unit_test_setup_teardown(test_limits, scratch_set_up, scratch_tear_down),
        cmocka_unit_test_setup_teardown(test_torn_at_every_byte, scratch_set_up, scratch_tear_down),
        cmocka_unit_test_setup_teardown(test_damage_at_every_byte, scratch_set_up, scratch_tear_down),
        cmocka_unit_test_setup_teardown(test_damage_while_open, scratch_set_up, scratch_tear_down),
        cmocka_unit_test_setup_teardown(test_foreign_files_are_left_alone, scratch_set_up, scratch_tear_down),
        cmocka_unit_test_setup_teardown(test_disk_full, scratch_set_up, scratch_tear_down),
        cmocka_unit_test_setup_teardown(test_unusable_directory, scratch_set_up, scratch_tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
