/* Values that people type: what is taken, what is refused, how it is said. */
#include "common/parse.h"

#include "common/clock.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void test_u64(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "", " 1", "1 ", "+1", "-1", "0x10", "1.0", "1e3", "one", "1,000", "4", "101", "18446744073709551616"};
    struct err_detail d;
    uint64_t n = 77;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        assert_int_equal(parse_u64(bad[i], 5, 100, &n, "--n", &d), ERR_INVALID);
        assert_non_null(strstr(d.text, "is not a whole number from 5 to 100"));
        assert_int_equal(n, 77);
    }
    assert_int_equal(parse_u64("-1", 5, 100, &n, "--n", &d), ERR_INVALID);
    assert_string_equal(d.text, "--n: '-1' is not a whole number from 5 to 100");
    assert_int_equal(parse_u64("5", 5, 100, &n, "--n", &d), ERR_OK);
    assert_int_equal(n, 5);
    assert_int_equal(parse_u64("0100", 5, 100, &n, "--n", &d), ERR_OK);
    assert_int_equal(n, 100);
    assert_int_equal(parse_u64("18446744073709551615", 0, UINT64_MAX, &n, "--n", NULL), ERR_OK);
    assert_true(n == UINT64_MAX);
}

static void test_duration(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t ns;
    } good[] = {
        {"0", 0},
        {"0s", 0},
        {"7ns", 7},
        {"250us", 250000},
        {"10ms", 10 * NS_PER_MS},
        {"1.5s", 1500 * NS_PER_MS},
        {"0.25h", 900 * NS_PER_S},
        {"2m", 120 * NS_PER_S},
        {"1000h", 3600000 * NS_PER_S},
        {"1.0000000019s", NS_PER_S + 1},
        {"0.000000001s", 1},
    };
    static const char *const bad[] = {"",
                                      "10",
                                      "1",
                                      "s",
                                      "1 s",
                                      "-1s",
                                      "+1s",
                                      ".5s",
                                      "1.s",
                                      "1.5",
                                      "1e3s",
                                      "1S",
                                      "1sec",
                                      "1s ",
                                      "1min",
                                      "1d",
                                      "0x1s",
                                      "0.0",
                                      "1001h",
                                      "1000.1h",
                                      "99999999999999999999s",
                                      "18446744073709551615h"};
    uint64_t ns = 77;
    struct err_detail d;
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        if (parse_duration(good[i].text, &ns, "--d", &d) != ERR_OK || ns != good[i].ns)
            fail_msg("%s", good[i].text);
    }
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        if (parse_duration(bad[i], &ns, "--d", &d) != ERR_INVALID)
            fail_msg("accepted: '%s'", bad[i]);
    assert_int_equal(parse_duration("10", &ns, "--duration", &d), ERR_INVALID);
    assert_string_equal(d.text,
                        "--duration: '10' is not a duration: write a number and a unit (us, ms, s, m, "
                        "h), like 10s or 250ms");
    assert_int_equal(parse_duration("1001h", &ns, "--duration", &d), ERR_INVALID);
    assert_string_equal(d.text, "--duration: '1001h' is longer than 1000h");
}

static void test_cpus(void **state)
{
    (void)state;
    static const char *const bad[] = {"",   "a",  "1-",  "-1",   "3-1",    "1,,2",
                                      "1,", ",1", "0 1", "1024", "0-1024", "1--2"};
    static const char *const same[] = {"0", "0-3,8", "1,3,5", "0-1023", "1023"};
    cpu_set_t set;
    char text[64];
    struct err_detail d;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        if (parse_cpus(bad[i], &set, "--cpus", &d) != ERR_INVALID)
            fail_msg("accepted: '%s'", bad[i]);
    for (size_t i = 0; i < ARRAY_LEN(same); i++) {
        assert_int_equal(parse_cpus(same[i], &set, "--cpus", &d), ERR_OK);
        assert_string_equal(parse_cpus_text(&set, text, sizeof text), same[i]);
    }
    assert_int_equal(parse_cpus("3,1,2,2-4", &set, "--cpus", &d), ERR_OK);
    assert_int_equal(CPU_COUNT(&set), 4);
    assert_string_equal(parse_cpus_text(&set, text, sizeof text), "1-4");
    assert_int_equal(parse_cpus("10,20,30", &set, "--cpus", &d), ERR_OK);
    assert_memory_equal(parse_cpus_text(&set, text, 6), "10,20", 5); /* cut, and still terminated */
    assert_true(strlen(text) < 6);
    CPU_ZERO(&set);
    assert_string_equal(parse_cpus_text(&set, text, sizeof text), "");
}

static void test_duration_text(void **state)
{
    (void)state;
    static const struct {
        uint64_t ns;
        const char *text;
    } cases[] = {
        {0, "0s"},
        {999, "0us"},
        {250000, "250us"},
        {10 * NS_PER_MS, "10ms"},
        {1500 * NS_PER_MS, "1.50s"},
        {5 * NS_PER_S, "5s"},
        {75 * NS_PER_S, "75s"},
        {119 * NS_PER_S, "119s"},
        {130 * NS_PER_S, "2m10s"},
        {3599 * NS_PER_S, "59m59s"},
        {11100 * NS_PER_S, "3h05m"},
    };
    char text[32];
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        assert_string_equal(parse_duration_text(cases[i].ns, text, sizeof text), cases[i].text);
}

static void test_closest(void **state)
{
    (void)state;
    static const char *const words[] = {"rounds", "order", "cooldown", "gap", "fresh_process"};
    static const struct {
        const char *word;
        const char *meant;
    } cases[] = {
        {"round", "rounds"},
        {"roudns", "rounds"},
        {"cool_down", "cooldown"},
        {"fresh_proces", "fresh_process"},
        {"gaps", "gap"},
        {"oder", "order"},
        {"hooks", NULL},
        {"gpa", "gap"},
        {"rate", NULL},
        {"x", NULL},
        {"telemetry", NULL},
        {"xxxxxxxxxxxx", NULL},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const char *got = parse_closest(cases[i].word, words, ARRAY_LEN(words));
        if (cases[i].meant == NULL ? got != NULL : got == NULL || strcmp(got, cases[i].meant) != 0)
            fail_msg("%s: got %s", cases[i].word, got != NULL ? got : "nothing");
    }
    assert_null(parse_closest("a", NULL, 0));
    char longest[5000];
    memset(longest, 'r', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    parse_closest(longest, words, ARRAY_LEN(words)); /* only must not overflow */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_u64),           cmocka_unit_test(test_duration), cmocka_unit_test(test_cpus),
        cmocka_unit_test(test_duration_text), cmocka_unit_test(test_closest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
