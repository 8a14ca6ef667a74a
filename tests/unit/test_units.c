#include "controller/report/units.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void test_rates(void **state)
{
    (void)state;
    static const struct {
        double v;
        int digits;
        const char *text;
    } cases[] = {
        {0, 4, "0.000"},       {0.5, 4, "0.500"},      {9.1204, 4, "9.120"}, {843.64, 4, "843.6"},
        {999.94, 4, "999.9"},  {999.96, 4, "1.000k"},  {52341, 4, "52.34k"}, {199856.4, 4, "199.9k"},
        {999960, 4, "1.000M"}, {1204000, 4, "1.204M"}, {2.5e9, 4, "2.500G"}, {5e12, 4, "5000G"},
        {999.4, 3, "999"},     {999.5, 3, "1.00k"},    {312.4, 3, "312"},    {31.24, 3, "31.2"},
        {NAN, 4, "-"},         {INFINITY, 4, "-"},     {-1, 4, "-"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char out[UNITS_TEXT_BYTES];
        assert_string_equal(units_rate(cases[i].v, cases[i].digits, out), cases[i].text);
    }
}

static void test_times(void **state)
{
    (void)state;
    static const struct {
        double ns;
        const char *text;
    } cases[] = {
        {0, "0ns"},           {812, "812ns"},    {999.6, "1.00us"}, {1840000, "1.84ms"}, {22100000, "22.1ms"},
        {999600000, "1.00s"}, {10.2e9, "10.2s"}, {3600e9, "3600s"}, {NAN, "-"},          {-1, "-"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char out[UNITS_TEXT_BYTES];
        assert_string_equal(units_time(cases[i].ns, out), cases[i].text);
    }
}

static void test_bytes(void **state)
{
    (void)state;
    static const struct {
        double bytes;
        const char *text;
    } cases[] = {
        {0, "0B"},
        {512, "512B"},
        {1023, "1023B"},
        {1024, "1.00KiB"},
        {58720256, "56.0MiB"},
        {1072693248, "1023MiB"},
        {33285996544, "31.0GiB"},
        {NAN, "-"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char out[UNITS_TEXT_BYTES];
        assert_string_equal(units_bytes(cases[i].bytes, out), cases[i].text);
    }
}

static void test_shares(void **state)
{
    (void)state;
    char out[UNITS_TEXT_BYTES];
    assert_string_equal(units_percent(0.0061, false, out), "0.6%");
    assert_string_equal(units_percent(-0.0804, true, out), "-8.0%");
    assert_string_equal(units_percent(0.0804, true, out), "+8.0%");
    assert_string_equal(units_percent(-0.0001, true, out), "+0.0%");
    assert_string_equal(units_percent(NAN, true, out), "-");
    assert_string_equal(units_cores(1.984, out), "1.98");
    assert_string_equal(units_cores(128, out), "128");
    assert_string_equal(units_cores(NAN, out), "-");
    assert_string_equal(units_cores(-1, out), "-");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rates),
        cmocka_unit_test(test_times),
        cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_shares),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
