#include "controller/report/table.h"

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
    struct page p = {.out = &out, .width = width};
    buf_init(&out, 4096);
    table_write(t, &p);
    assert_int_equal(p.e, ERR_OK);
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

static void test_a_full_buffer_is_an_error(void **state)
{
    (void)state;
    struct table t;
    struct buf out;
    fill(&t);
    for (size_t max = 0; max < 100; max += 9) {
        buf_init(&out, max);
        struct page p = {.out = &out, .width = 80};
        table_write(&t, &p);
        assert_int_equal(p.e, ERR_TOO_BIG);
        buf_fini(&out);
    }
    table_fini(&t);
}

static void test_nothing_commands_the_terminal(void **state)
{
    (void)state;
    struct table t;
    fill(&t);
    table_add_row(&t, "x\x1b]0;y");
    table_set(&t, 1, "\n%s", "1");
    struct buf out;
    struct page p = {.out = &out, .width = 80};
    buf_init(&out, 4096);
    table_write(&t, &p);
    assert_int_equal(p.e, ERR_OK);
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
        cmocka_unit_test(test_a_full_buffer_is_an_error),
        cmocka_unit_test(test_nothing_commands_the_terminal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
