/* The one rule for names and the one for paths: at their limits and beyond, and what they are not. */
#include "common/limits.h"
#include "common/path.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
// clang-format on

#include <string.h>

static void test_names(void **state)
{
    static const char *const good[] = {"a", "z", "A", "Z", "0", "9", "A.b_c-d", "20261130-1", "x..y", "a-"};
    static const char *const bad[] = {"",    ".",   "..",  ".hidden", "-x",       "_x",
                                      "a/b", "a b", "a\n", "a\x7f",   "\xc3\xa9", "a\xc3\xa9"};
    char text[LIMIT_NAME_BYTES + 2];
    struct err_detail d;
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(good); i++)
        assert_int_equal(path_check_name("a job's id", good[i], &d), ERR_OK);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        d.text[0] = '\0';
        assert_int_equal(path_check_name("a job's id", bad[i], &d), ERR_INVALID);
        assert_memory_equal(d.text, "a job's id '", 12);
        assert_non_null(strstr(d.text, path_name_fault(bad[i], strlen(bad[i]))));
    }
    memset(text, 'n', sizeof text);
    assert_null(path_name_fault(text, LIMIT_NAME_BYTES));
    assert_non_null(path_name_fault(text, LIMIT_NAME_BYTES + 1));
    assert_non_null(path_name_fault("a\0b", 3));
    assert_null(path_name_fault("ab/c", 2)); /* what follows is not looked at */
}

static void test_paths(void **state)
{
    static const char *const good[] = {"a",       "a/b",     ".a",  "..a",         "a..",
                                       "v1..2/x", ".../...", "a b", "f\xc3\xbc.js"};
    static const char *const bad[] = {"",     "/",         "/etc/passwd", "a/",     "a//b",  "//x",
                                      ".",    "..",        "../x",        "./a",    "a/./b", "a/.",
                                      "a/..", "a/../../x", "a/b/..",      "a/\x01", "a\nb",  "a\x7f"};
    char text[LIMIT_PATH_BYTES + 1];
    struct err_detail d;
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(good); i++)
        if (path_check(good[i], &d) != ERR_OK)
            fail_msg("%s", d.text);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        d.text[0] = '\0';
        if (path_check(bad[i], &d) != ERR_INVALID)
            fail_msg("\"%s\" is a path", bad[i]);
        assert_non_null(strstr(d.text, path_fault(bad[i], strlen(bad[i]))));
    }
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = i % 200 == 199 ? '/' : 'p';
    assert_null(path_fault(text, LIMIT_PATH_BYTES - 1));
    assert_non_null(path_fault(text, LIMIT_PATH_BYTES));
    memset(text, 'p', sizeof text);
    assert_null(path_fault(text, 255));
    assert_non_null(path_fault(text, 256));
    memcpy(text, "a/", 2);
    assert_null(path_fault(text, 257));
    assert_non_null(path_fault(text, 258));
    assert_non_null(path_fault("a\0b", 3));
}

static void test_parts(void **state)
{
    static const char *const without[] = {"", ".", "a", "a/./b", "a//b", "v1..2", "..a/b..", "a/...", "a/"};
    static const char *const with[] = {"..", "../a", "a/..", "a/../b", "/..", "./..", "a//.."};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(without); i++)
        if (path_has_part(without[i], ".."))
            fail_msg("\"%s\" leads up", without[i]);
    for (size_t i = 0; i < ARRAY_LEN(with); i++)
        if (!path_has_part(with[i], ".."))
            fail_msg("\"%s\" does not lead up", with[i]);
    assert_true(path_has_part("a/bc/d", "bc"));
    assert_true(path_has_part("/a", "") && path_has_part("a/", ""));
    assert_false(path_has_part("a/bc/d", "b"));
    assert_false(path_has_part("a/bc/d", "bc/d"));
    assert_false(path_has_part("a/b", ""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_paths),
        cmocka_unit_test(test_parts),
    };
    return cmocka_run_group_tests_name("path", tests, NULL, NULL);
}
