/* The byte buffer: growth, its declared maximum, what it holds. */
#include "common/buf.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void test_appends_and_grows(void **state)
{
    (void)state;
    struct buf b;
    buf_init(&b, 10000);
    assert_null(b.data);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(buf_printf(&b, "%03d,", i), ERR_OK);
    assert_int_equal(b.len, 4000);
    assert_int_equal(strlen(b.data), 4000);
    assert_memory_equal(b.data, "000,001,", 8);
    assert_string_equal(b.data + 3992, "998,999,");
    buf_fini(&b);
    buf_fini(&b);
    assert_int_equal(b.max, 10000);
}

/* What would pass the maximum is refused whole, and nothing changes. */
static void test_maximum(void **state)
{
    (void)state;
    struct buf b;
    buf_init(&b, 8);
    assert_int_equal(buf_append(&b, "12345678", 8), ERR_OK);
    assert_int_equal(buf_append(&b, "9", 1), ERR_TOO_BIG);
    assert_int_equal(buf_append_text(&b, ""), ERR_OK);
    assert_int_equal(buf_printf(&b, "%d", 9), ERR_TOO_BIG);
    assert_string_equal(b.data, "12345678");
    buf_clear(&b);
    assert_string_equal(b.data, "");
    assert_int_equal(buf_printf(&b, "%s", "123456789"), ERR_TOO_BIG);
    assert_int_equal(buf_append(&b, "x", SIZE_MAX), ERR_TOO_BIG);
    assert_int_equal(b.len, 0);
    assert_int_equal(buf_printf(&b, "%s", "12345678"), ERR_OK);
    assert_string_equal(b.data, "12345678");
    buf_fini(&b);
    buf_init(&b, 0);
    assert_int_equal(buf_append(&b, "", 0), ERR_OK);
    assert_int_equal(buf_append(&b, "x", 1), ERR_TOO_BIG);
    buf_fini(&b);
}

static void test_bytes_that_are_no_text(void **state)
{
    (void)state;
    struct buf b;
    buf_init(&b, 100);
    assert_int_equal(buf_append(&b, "a\0b", 3), ERR_OK);
    assert_int_equal(buf_append(&b, NULL, 0), ERR_OK);
    assert_int_equal(b.len, 3);
    assert_memory_equal(b.data, "a\0b", 4);
    buf_fini(&b);
}

static void test_consume(void **state)
{
    (void)state;
    struct buf b;
    buf_init(&b, 100);
    buf_consume(&b, 0);
    assert_int_equal(buf_append_text(&b, "hello world"), ERR_OK);
    buf_consume(&b, 6);
    assert_string_equal(b.data, "world");
    buf_consume(&b, 5);
    assert_int_equal(b.len, 0);
    assert_string_equal(b.data, "");
    assert_int_equal(buf_append_text(&b, "again"), ERR_OK);
    assert_string_equal(b.data, "again");
    buf_fini(&b);
}

static void test_take(void **state)
{
    (void)state;
    struct buf b;
    buf_init(&b, 100);
    char *text = buf_take(&b);
    assert_string_equal(text, "");
    free(text);
    assert_int_equal(buf_append_text(&b, "mine"), ERR_OK);
    text = buf_take(&b);
    assert_string_equal(text, "mine");
    free(text);
    assert_null(b.data);
    assert_int_equal(b.max, 100);
    assert_int_equal(buf_append_text(&b, "next"), ERR_OK);
    buf_fini(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_appends_and_grows),
        cmocka_unit_test(test_maximum),
        cmocka_unit_test(test_bytes_that_are_no_text),
        cmocka_unit_test(test_consume),
        cmocka_unit_test(test_take),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
