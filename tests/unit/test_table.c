#include "controller/report/table.h"

#include "common/utf8.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct table_column columns[] = {
    {"target", 0, true}, {"req/s", 1, false}, {"SD", 1, false}, {"p50", 2, false}, {"note", 2, true},
};

static void fill(struct table *t)
{
    table_init(t, columns, ARRAY_LEN(columns));
    t->group_titles[2] = "latency";
    table_add_row(t, "nginx");
    table_set(t, 1, "%s", "52.34k");
    table_set(t, 2, "312");
    table_set(t, 3, "1.84ms");
    table_set(t, 4, "a");
    table_add_row(t, "lighttpd");
    table_set(t, 1, "843.6");
    table_set(t, 1, "843.7"); /* replaces */
    table_set(t, 3, "-");
}

static void expect(const struct table *t, unsigned width, const char *expected)
{
    struct buf out;
    buf_init(&out, 4096);
    assert_int_equal(table_write(t, width, &out), ERR_OK);
    assert_string_equal(out.data, expected);
    buf_fini(&out);
}

static void test_groups_share_a_block_when_they_fit(void **state)
{
    (void)state;
    struct table t;
    fill(&t);
    expect(&t, 41,
           "  target     req/s   SD     p50  note\n"
           "  nginx     52.34k  312  1.84ms  a\n"
           "  lighttpd   843.7            -\n");
    table_fini(&t);
}

static void test_groups_that_do_not_fit_get_blocks_of_their_own(void **state)
{
    (void)state;
    struct table t;
    fill(&t);
    expect(&t, 30,
           "  target     req/s   SD\n"
           "  nginx     52.34k  312\n"
           "  lighttpd   843.7\n"
           "\n"
           "  latency      p50  note\n"
           "  nginx     1.84ms  a\n"
           "  lighttpd       -\n");
    table_fini(&t);
}

static void test_long_names_are_cut_in_the_middle(void **state)
{
    (void)state;
    struct table t;
    fill(&t);
    table_add_row(&t, "node/\xc3\xbcltimate-express"); /* 21 characters, 22 bytes */
    expect(&t, 29,
           "  target          req/s   SD\n"
           "  nginx          52.34k  312\n"
           "  lighttpd        843.7\n"
           "  node/..xpress\n"
           "\n"
           "  latency           p50  note\n"
           "  nginx          1.84ms  a\n"
           "  lighttpd            -\n"
           "  node/..xpress\n");
    table_fini(&t);
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
        char *text = table_shorten(cases[i].text, cases[i].width);
        assert_string_equal(text, cases[i].expected);
        free(text);
    }
}

static void test_a_full_buffer_is_an_error(void **state)
{
    (void)state;
    struct table t;
    struct buf out;
    fill(&t);
    for (size_t max = 0; max < 100; max += 9) {
        buf_init(&out, max);
        assert_int_equal(table_write(&t, 80, &out), ERR_TOO_BIG);
        buf_fini(&out);
    }
    table_fini(&t);
}

static void expect_wrapped(const char *lead, size_t indent, const char *text, unsigned width,
                           const char *expected)
{
    struct buf out;
    buf_init(&out, 4096);
    assert_int_equal(table_wrap(lead, indent, text, width, &out), ERR_OK);
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
    struct table t;
    fill(&t);
    table_add_row(&t, "x\x1b]0;y");
    table_set(&t, 1, "\n%s", "1");
    struct buf out;
    buf_init(&out, 4096);
    assert_int_equal(table_write(&t, 80, &out), ERR_OK);
    assert_null(strchr(out.data, '\x1b'));
    assert_non_null(strstr(out.data, "x ]0;y"));
    buf_fini(&out);
    table_fini(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_groups_share_a_block_when_they_fit),
        cmocka_unit_test(test_groups_that_do_not_fit_get_blocks_of_their_own),
        cmocka_unit_test(test_long_names_are_cut_in_the_middle),
        cmocka_unit_test(test_shorten),
        cmocka_unit_test(test_a_full_buffer_is_an_error),
        cmocka_unit_test(test_wrap),
        cmocka_unit_test(test_clean_keeps_what_it_is_told),
        cmocka_unit_test(test_nothing_commands_the_terminal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
