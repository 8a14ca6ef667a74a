/* Text on a page: wrapped, cut, headed, and clean of what commands a terminal. */
#include "controller/report/page.h"

#include "common/utf8.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void expect_wrapped(const char *lead, size_t indent, const char *text, unsigned width,
                           const char *expected)
{
    struct buf out;
    struct page p = {.out = &out, .width = width};
    buf_init(&out, 4096);
    page_say(&p, lead, indent, "%s", text);
    assert_int_equal(p.e, ERR_OK);
    assert_string_equal(out.data, expected);
    buf_fini(&out);
}

static void test_wrap(void **state)
{
    (void)state;
    expect_wrapped("", 0, "one two three", 80, "one two three\n");
    expect_wrapped("", 0, "one two three", 7, "one two\nthree\n");
    expect_wrapped("", 0, "one two three", 6, "one\ntwo\nthree\n");
    expect_wrapped("  !", 4, "one two three", 11, "  ! one two\n    three\n");
    expect_wrapped("load", 6, "a  very-long-word-stays-whole b", 12,
                   "load  a\n      very-long-word-stays-whole\n      b\n");
    expect_wrapped("", 0, "", 10, "\n");
}

static void test_parts_of_a_line(void **state)
{
    (void)state;
    struct buf out;
    struct page p = {.out = &out, .width = 80};
    buf_init(&out, 100);
    page_pad(&p, 2);
    page_put(&p, "a");
    page_pad(&p, 1);
    page_put(&p, "");
    page_pad(&p, 1);
    page_put(&p, "b");
    page_pad(&p, 3); /* none at the end of a line */
    page_end_line(&p);
    page_put(&p, "c");
    assert_string_equal(out.data, "  a  b\nc");
    buf_fini(&out);
}

static void expect_heading(const char *words, const char *expected)
{
    struct buf out;
    struct page p = {.out = &out, .width = 20};
    buf_init(&out, 1000);
    page_heading(&p, words);
    assert_string_equal(out.data, expected);
    buf_fini(&out);
}

static void test_headings(void **state)
{
    (void)state;
    expect_heading("words", "\n-- words -----------\n\n");
    expect_heading("12345 78901234", "\n-- 12345 78901234\n\n"); /* no room for a rule worth drawing */
    expect_heading("12345 7890123", "\n-- 12345 7890123 ---\n\n");
    expect_heading("words over more than a line", "\n-- words over more\n   than a line\n\n");
}

static void test_the_first_failure_sticks(void **state)
{
    (void)state;
    struct buf out;
    struct page p = {.out = &out, .width = 80};
    buf_init(&out, 5);
    page_put(&p, "123");
    page_say(&p, "", 0, "%d", 4567);
    assert_int_equal(p.e, ERR_TOO_BIG);
    page_put(&p, "8"); /* there would be room */
    assert_string_equal(out.data, "123");
    buf_fini(&out);
}

static void test_shorten(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t width;
        const char *expected;
    } cases[] = {
        {"", 3, ""},
        {"abc", 3, "abc"},
        {"abcd", 3, "..d"},
        {"abcdefgh", 6, "ab..gh"},
        {"abcdefgh", 7, "ab..fgh"},
        {"\xc3\xa4\xc3\xb6\xc3\xbc\xc3\xa4\xc3\xb6", 4, "\xc3\xa4..\xc3\xb6"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char *text = page_text_shorten(cases[i].text, cases[i].width);
        assert_string_equal(text, cases[i].expected);
        free(text);
    }
}

static void test_offsets(void **state)
{
    (void)state;
    static const char text[] = "\xc3\xa4"
                               "b\xe2\x82\xac";
    assert_int_equal(page_text_width(text), 3);
    assert_int_equal(page_text_offset(text, 0), 0);
    assert_int_equal(page_text_offset(text, 1), 2);
    assert_int_equal(page_text_offset(text, 2), 3);
    assert_int_equal(page_text_offset(text, 3), 6);
    assert_int_equal(page_text_offset(text, SIZE_MAX), 6);
}

/* ESC, BEL, CR, the C1 "CSI" in UTF-8, and bytes that are no UTF-8 never reach a terminal. */
static void test_clean_keeps_what_it_is_told(void **state)
{
    (void)state;
    char text[] = "a\033[31mb\nc\x7f\xc2\x9b"
                  "d\xff\xc3\xa4\t";
    assert_string_equal(utf8_clean(text, "\n"), "a [31mb\nc   d \xc3\xa4 ");
    assert_string_equal(utf8_clean(text, ""), "a [31mb c   d \xc3\xa4 ");
}

static void test_nothing_commands_the_terminal(void **state)
{
    (void)state;
    expect_wrapped("", 0,
                   "a\x1b[31mb\x07"
                   "c\rd\x7f"
                   "e\xc2\x9b"
                   "f\x9bg\xe2\x82h \xe2\x82\xac",
                   80, "a [31mb c d e f g h \xe2\x82\xac\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wrap),
        cmocka_unit_test(test_parts_of_a_line),
        cmocka_unit_test(test_headings),
        cmocka_unit_test(test_the_first_failure_sticks),
        cmocka_unit_test(test_shorten),
        cmocka_unit_test(test_offsets),
        cmocka_unit_test(test_clean_keeps_what_it_is_told),
        cmocka_unit_test(test_nothing_commands_the_terminal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
