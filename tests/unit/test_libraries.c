/* The libraries that run: what they say, in which order, and a list that is longer than the wire takes. */
#include "common/libraries.h"

#include "proto/libraries.h"

#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void test_own_come_first_then_what_all_link(void **state)
{
    (void)state;
    const struct library own[] = {{"first", "1.2"}, {"second", "before 3"}};
    static const char start[] = "first 1.2, second before 3, libuv 1.";
    char *text = libraries_text(own, ARRAY_LEN(own));
    assert_memory_equal(text, start, sizeof start - 1);
    const char *const names[] = {", OpenSSL 3.", ", cJSON 1.", ", zlib 1.", ", glibc 2."};
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (strstr(text, names[i]) == NULL)
            fail_msg("\"%s\" has no \"%s\"", text, names[i]);
    free(text);
}

static void test_the_wire_names_its_libraries(void **state)
{
    (void)state;
    struct library own[PROTO_LIBRARIES_MAX];
    size_t count = proto_libraries(own);
    assert_in_range(count, 2, PROTO_LIBRARIES_MAX);
    assert_string_equal(own[0].name, "nng");
    assert_string_equal(own[count - 1].name, "protobuf-c");
    for (size_t i = 0; i < count; i++)
        assert_true(isdigit((unsigned char)own[i].version[0]));
}

static void test_a_long_list_is_cut(void **state)
{
    (void)state;
    char version[2 * LIBRARIES_TEXT_BYTES];
    memset(version, '9', sizeof version - 1);
    version[sizeof version - 1] = '\0';
    char *text = libraries_text(&(struct library){"long", version}, 1);
    assert_int_equal(strlen(text), LIBRARIES_TEXT_BYTES - 1);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_own_come_first_then_what_all_link),
        cmocka_unit_test(test_the_wire_names_its_libraries),
        cmocka_unit_test(test_a_long_list_is_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
