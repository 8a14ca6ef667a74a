/* Command lines by table: what is taken and stored, what is refused and with which words. */
#include "common/args.h"

#include "common/base.h"
#include "common/clock.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum form { FORM_TEXT, FORM_JSON, FORM_CSV };

struct filled {
    const char *file; /* first, since no `given` may stand here */
    bool json;
    bool has_warmup;
    uint64_t warmup_ns;
    uint64_t lease_ns;
    uint64_t seed;
    uint32_t connections;
    enum form form;
    struct args_texts labels;
    char letter;
};

static enum err take_letter(void *into, const char *value, const char *what, struct err_detail *d)
{
    if (value[0] < 'a' || value[0] > 'z')
        return err_set(d, ERR_INVALID, "%s: no letter", what);
    ((struct filled *)into)->letter = value[0];
    return ERR_OK;
}

static int printed;
static void print_version(void)
{
    printed++;
}

#define AT(field) .at = offsetof(struct filled, field)
static const struct args_option rows[] = {
    {"c", "connections", "N", "how many", ARGS_NUMBER32, AT(connections), .min = 1, .max = 100,
     .otherwise = "7"},
    {"", "seed", "N", "any", ARGS_NUMBER, AT(seed)},
    {"", "warmup", "TIME", "not measured", ARGS_TIME, AT(warmup_ns),
     .given = offsetof(struct filled, has_warmup), .min = 1, .otherwise = "10ms"},
    {"", "lease", "TIME", "between", ARGS_TIME, AT(lease_ns), .min = NS_PER_S, .max = 600 * NS_PER_S},
    {"", "json", NULL, "for scripts", ARGS_SWITCH, AT(json)},
    {"f", "file", "FILE", "a name", ARGS_TEXT, AT(file), .min = 1, .max = 4},
    {"l", "label", "K=V", "may be repeated", ARGS_TEXTS, AT(labels), .max = 3},
    {"", "form", "FORM", "of the result:", ARGS_WORD, AT(form), .words = {"text", "json", "csv"},
     .otherwise = "json"},
    {"x", "letter", "X", "its own", ARGS_OTHER, .take = take_letter},
    {"", "version", NULL, "printed", ARGS_PRINT, .print = print_version},
};
static const struct args_table table = {ARGS_ROWS(rows), .command = "test", .operands_max = 3,
                                        .operands = "some words"};

#define WORDS_MAX 16

/* Splits at blanks into argv. */
static int split(const char *line, char *text, size_t size, char **argv)
{
    int argc = 0;
    char *save = NULL;
    snprintf(text, size, "%s", line);
    for (char *w = strtok_r(text, " ", &save); w != NULL; w = strtok_r(NULL, " ", &save))
        argv[argc++] = w;
    argv[argc] = NULL;
    return argc;
}

struct parsed {
    struct filled f;
    char text[512];
    char *argv[WORDS_MAX + 1];
    char **operands;
    int count;
    struct err_detail d;
};

static enum args_result parse(struct parsed *p, const struct args_table *t, const char *line)
{
    *p = (struct parsed){0};
    int argc = split(line, p->text, sizeof p->text, p->argv);
    return args_parse(t, argc, p->argv, &p->f, &p->operands, &p->count, &p->d);
}

static void test_all_forms(void **state)
{
    (void)state;
    static const char *const forms[] = {"-c 42", "-c42", "--connections 42", "--connections=42", "--conn 42"};
    struct parsed p;
    for (size_t i = 0; i < ARRAY_LEN(forms); i++) {
        char line[64];
        snprintf(line, sizeof line, "prog %s", forms[i]);
        assert_int_equal(parse(&p, &table, line), ARGS_GO);
        assert_int_equal(p.f.connections, 42);
        assert_int_equal(p.count, 0);
        assert_null(p.operands[0]);
    }
    assert_int_equal(parse(&p, &table, "prog first --json -f name second -- -h"), ARGS_GO);
    assert_true(p.f.json);
    assert_string_equal(p.f.file, "name");
    assert_int_equal(p.count, 3);
    assert_string_equal(p.operands[0], "first");
    assert_string_equal(p.operands[1], "second");
    assert_string_equal(p.operands[2], "-h");
}

static void test_every_kind(void **state)
{
    (void)state;
    struct parsed p;
    assert_int_equal(
        parse(&p, &table,
              "prog --seed 18446744073709551615 --warmup 2s --lease 10m -l a -l b --form csv -x q"),
        ARGS_GO);
    assert_true(p.f.seed == UINT64_MAX && p.f.warmup_ns == 2 * NS_PER_S && p.f.lease_ns == 600 * NS_PER_S);
    assert_true(p.f.has_warmup);
    assert_int_equal(p.f.labels.count, 2);
    assert_string_equal(p.f.labels.items[1], "b");
    assert_int_equal(p.f.form, FORM_CSV);
    assert_int_equal(p.f.letter, 'q');
}

/* A default is set, but is not given; where there is none the field stays. */
static void test_defaults(void **state)
{
    (void)state;
    struct parsed p;
    assert_int_equal(parse(&p, &table, "prog"), ARGS_GO);
    assert_int_equal(p.f.connections, 7);
    assert_true(p.f.warmup_ns == 10 * NS_PER_MS);
    assert_false(p.f.has_warmup);
    assert_int_equal(p.f.form, FORM_JSON);
    struct filled kept = {.seed = 5, .letter = 'k'};
    assert_int_equal(args_parse(&table, 1, p.argv, &kept, &p.operands, &p.count, NULL), ARGS_GO);
    assert_true(kept.seed == 5 && kept.letter == 'k');
}

static void test_what_prints_ends_the_reading(void **state)
{
    (void)state;
    struct parsed p;
    printed = 0;
    assert_int_equal(parse(&p, &table, "prog a b c d --version --nonsense"), ARGS_DONE);
    assert_int_equal(printed, 1);
    assert_int_equal(parse(&p, &table, "prog --nonsense --version"), ARGS_BAD);
    assert_int_equal(printed, 1);
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
        {"prog -z", "unknown option -z; see --help"},
        {"prog --json -zc1", "unknown option -z; see --help"},
        {"prog -c", "option -c needs a value; see --help"},
        {"prog --warmup", "option --warmup needs a value; see --help"},
        {"prog --json=yes", "option --json takes no value"},
        {"prog -c 0", "--connections: '0' is not a whole number from 1 to 100"},
        {"prog -c 101", "--connections: '101' is not a whole number from 1 to 100"},
        {"prog --warmup 0", "--warmup: '0' is too short"},
        {"prog --lease 999ms", "--lease: '999ms' is not from 1s to 10m00s"},
        {"prog --lease 601s", "--lease: '601s' is not from 1s to 10m00s"},
        {"prog --file=", "--file: has 0 bytes, must have 1 to 4"},
        {"prog -f 12345", "--file: has 5 bytes, must have 1 to 4"},
        {"prog -l a -l b -l c -l d", "--label: at most 3 of them"},
        {"prog --form xml", "--form: 'xml' is not text, json or csv"},
        {"prog -x 1", "--letter: no letter"},
        {"prog a b c d", "test: 'd' is too much; see --help"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct parsed p;
        assert_int_equal(parse(&p, &table, cases[i].line), ARGS_BAD);
        if (strcmp(p.d.text, cases[i].text) != 0)
            fail_msg("%s: got '%s', wanted '%s'", cases[i].line, p.d.text, cases[i].text);
    }
    const struct args_table two = {.operands_min = 2, .operands_max = 2, .operands = "two words"};
    struct parsed p;
    assert_int_equal(parse(&p, &two, "prog one"), ARGS_BAD);
    assert_string_equal(p.d.text, "name two words");
}

static void test_commands(void **state)
{
    (void)state;
    static const char *const names[] = {"run", "enroll"};
    static const struct args_option top_rows[] = {
        {"", "version", NULL, "printed", ARGS_PRINT, .print = print_version}};
    static const struct args_table top = {ARGS_ROWS(top_rows), .operands_min = 1, .operands_max = 1,
                                          .operands = "a command"};
    static const struct {
        const char *line;
        const char *text; /* the error, or the words that are left */
        enum args_result result;
    } cases[] = {
        {"prog run --x y", "run --x y", ARGS_GO},
        {"prog enroll", "enroll", ARGS_GO},
        {"prog -- run", "run", ARGS_GO},
        {"prog help enroll all", "enroll --help", ARGS_GO},
        {"prog --version run", "", ARGS_DONE},
        {"prog", "name a command", ARGS_BAD},
        {"prog help", "unknown option --help; see --help", ARGS_BAD},
        {"prog -v run", "unknown option -v; see --help", ARGS_BAD},
        {"prog enrol", "unknown command 'enrol'; did you mean 'enroll'?", ARGS_BAD},
        {"prog zzz", "unknown command 'zzz'; see --help", ARGS_BAD},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct err_detail d = {0};
        char text[128];
        char left[128] = "";
        char *words[WORDS_MAX + 1] = {0};
        char **argv = words;
        size_t command = 9;
        int argc = split(cases[i].line, text, sizeof text, words);
        assert_int_equal(args_pick(&top, names, ARRAY_LEN(names), &argc, &argv, &command, &d),
                         cases[i].result);
        for (int k = 0; cases[i].result == ARGS_GO && k < argc; k++)
            snprintf(left + strlen(left), sizeof left - strlen(left), "%s%s", k != 0 ? " " : "", argv[k]);
        const char *got = cases[i].result == ARGS_GO ? left : d.text;
        if (strcmp(got, cases[i].text) != 0)
            fail_msg("%s: got '%s', wanted '%s'", cases[i].line, got, cases[i].text);
        if (cases[i].result == ARGS_GO)
            assert_string_equal(names[command], argv[0]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_forms), cmocka_unit_test(test_every_kind),
        cmocka_unit_test(test_defaults),  cmocka_unit_test(test_what_prints_ends_the_reading),
        cmocka_unit_test(test_mistakes),  cmocka_unit_test(test_commands),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
