/* A long answer on disk: read in whole characters, for as long as somebody owns it, and no file is left. */
#include "controller/daemon/spill.h"

#include "tests/support/scratch.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct spill *spill_of(const struct scratch *s, const char *text)
{
    struct spill *out = NULL;
    assert_int_equal(spill_new(s->dir, &out, NULL), ERR_OK);
    assert_int_equal(spill_write(out, text, strlen(text), NULL), ERR_OK);
    return out;
}

static void expect_piece(const struct spill *s, uint64_t offset, size_t max, const char *expected)
{
    char *text = NULL;
    assert_int_equal(spill_read(s, offset, max, &text, NULL), ERR_OK);
    assert_string_equal(text, expected);
    free(text);
}

static void test_pieces_end_between_characters(void **state)
{
    struct spill *s = spill_of(*state, "ab\xc3\xa4");
    assert_int_equal(spill_write(s,
                                 "c\xe2\x82\xac"
                                 "d",
                                 5, NULL),
                     ERR_OK);
    assert_int_equal(spill_bytes(s), 9);
    expect_piece(s, 0, 4, "ab\xc3\xa4");
    expect_piece(s, 1, 4,
                 "b\xc3\xa4"
                 "c");
    expect_piece(s, 4, 4, "c\xe2\x82\xac");
    expect_piece(s, 2, 4,
                 "\xc3\xa4"
                 "c"); /* the next has three bytes, and one would fit */
    expect_piece(s, 5, 100,
                 "\xe2\x82\xac"
                 "d");
    expect_piece(s, 9, 4, "");
    expect_piece(s, UINT64_MAX, 4, "");
    spill_free(s);
}

static void test_it_lives_as_long_as_its_last_owner(void **state)
{
    struct spill *s = spill_of(*state, "a report");
    struct spill *twin = spill_share(s);
    spill_free(s);
    assert_int_equal(spill_bytes(twin), 8);
    expect_piece(twin, 2, 100, "report");
    spill_free(twin);
}

static void test_no_file_is_left(void **state)
{
    const struct scratch *scratch = *state;
    struct spill *s = spill_of(scratch, "a report");
    DIR *dir = opendir(scratch->dir);
    assert_non_null(dir);
    for (const struct dirent *entry; (entry = readdir(dir)) != NULL;)
        assert_true(entry->d_name[0] == '.');
    closedir(dir);
    spill_free(s);
}

static void test_a_directory_that_is_not_there(void **state)
{
    struct spill *s = NULL;
    struct err_detail d;
    (void)state;
    assert_int_equal(spill_new("/nowhere/at/all", &s, &d), ERR_NOT_FOUND);
    assert_non_null(strstr(d.text, "/nowhere/at/all"));
    assert_null(s);
}

#define SPILL_TEST(f) cmocka_unit_test_setup_teardown(f, scratch_set_up, scratch_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SPILL_TEST(test_pieces_end_between_characters),
        SPILL_TEST(test_it_lives_as_long_as_its_last_owner),
        SPILL_TEST(test_no_file_is_left),
        SPILL_TEST(test_a_directory_that_is_not_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
