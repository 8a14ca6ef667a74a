/* Command-line options: forms, order, and how mistakes are worded. */
#include "common/args.h"

#include "common/base.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { OPTION_WARMUP = 256, OPTION_JSON };

static const struct args_option options[] = {
    {'c', "connections", "N", "how many"},
    {OPTION_WARMUP, "warmup", "TIME", "not measured"},
    {OPTION_JSON, "json", NULL, "for scripts"},
    {'h', "help", NULL, "this text"},
};

#define WORDS_MAX 16

struct line {
    struct args a;
    char *argv[WORDS_MAX + 1];
    char text[512];
};

/* Splits at blanks. */
static void begin(struct line *l, const char *text)
{
    int argc = 0;
    char *save = NULL;
    snprintf(l->text, sizeof l->text, "%s", text);
    for (char *w = strtok_r(l->text, " ", &save); w != NULL; w = strtok_r(NULL, " ", &save))
        l->argv[argc++] = w;
    l->argv[argc] = NULL;
    args_init(&l->a, options, ARRAY_LEN(options), argc, l->argv);
}

static void test_all_forms(void **state)
{
    (void)state;
    struct line l;
    struct err_detail d;
    char **operands = NULL;
    begin(&l, "prog -c 1 first -c2 --connections 3 --connections=4 --json --warmup=2s second -- -h");
    for (int i = 1; i <= 4; i++) {
        assert_int_equal(args_next(&l.a, &d), 'c');
        assert_int_equal(l.a.value[0], '0' + i);
    }
    assert_int_equal(args_next(&l.a, &d), OPTION_JSON);
    assert_null(l.a.value);
    assert_int_equal(args_next(&l.a, &d), OPTION_WARMUP);
    assert_string_equal(l.a.value, "2s");
    assert_int_equal(args_next(&l.a, &d), ARGS_END);
    assert_int_equal(args_operands(&l.a, &operands), 3);
    assert_string_equal(operands[0], "first");
    assert_string_equal(operands[1], "second");
    assert_string_equal(operands[2], "-h");
    args_fini(&l.a);
    args_fini(&l.a);
}

/* A new table starts afresh, whatever was read before. */
static void test_twice(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct line l;
        char **operands = NULL;
        begin(&l, "prog --json");
        assert_int_equal(args_next(&l.a, NULL), OPTION_JSON);
        assert_int_equal(args_next(&l.a, NULL), ARGS_END);
        assert_int_equal(args_operands(&l.a, &operands), 0);
        args_fini(&l.a);
    }
}

static void test_mistakes(void **state)
{
    (void)state;
    static const struct {
        const char *line;
        const char *text;
    } cases[] = {
        {"prog --conections 5", "unknown option --conections; did you mean --connections?"},
        {"prog --conections=5", "unknown option --conections; did you mean --connections?"},
        {"prog --zzzzzzzz", "unknown option --zzzzzzzz; see --help"},
        {"prog -x", "unknown option -x; see --help"},
        {"prog -c", "option -c needs a value; see --help"},
        {"prog --warmup", "option --warmup needs a value; see --help"},
        {"prog --json=yes", "option --json takes no value"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct line l;
        struct err_detail d;
        begin(&l, cases[i].line);
        assert_int_equal(args_next(&l.a, &d), ARGS_BAD);
        if (strcmp(d.text, cases[i].text) != 0)
            fail_msg("%s: got '%s', wanted '%s'", cases[i].line, d.text, cases[i].text);
        args_fini(&l.a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_forms),
        cmocka_unit_test(test_twice),
        cmocka_unit_test(test_mistakes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
