#include "common/sha256.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* Vectors of FIPS 180-2, appendix B, and the empty message. */
static const struct {
    const char *message;
    const char *hash;
} vectors[] = {
    {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
    {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
    {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
     "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
};

static void test_vectors(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(vectors); i++) {
        uint8_t hash[SHA256_BYTES];
        char text[SHA256_TEXT_BYTES];
        sha256_of(vectors[i].message, strlen(vectors[i].message), hash);
        assert_string_equal(sha256_text(hash, text), vectors[i].hash);
    }
}

static void test_file_is_read_from_its_beginning(void **state)
{
    (void)state;
    FILE *file = tmpfile();
    assert_non_null(file);
    fputs(vectors[1].message, file);
    fflush(file);
    uint8_t hash[SHA256_BYTES];
    char text[SHA256_TEXT_BYTES];
    assert_int_equal(sha256_of_fd(fileno(file), hash, NULL), ERR_OK);
    assert_string_equal(sha256_text(hash, text), vectors[1].hash);
    fclose(file);
    struct err_detail d;
    assert_int_equal(sha256_of_fd(-1, hash, &d), ERR_IO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_vectors),
        cmocka_unit_test(test_file_is_read_from_its_beginning),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
