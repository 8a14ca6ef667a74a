#include "common/sha256.h"

#include "common/file.h"
#include "common/mem.h"
#include "tests/support/child.h"
#include "tests/support/scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <openssl/crypto.h>
#include <stdlib.h>

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

static int check_without_algorithms(void *path)
{
    struct err_detail d = {""};
    CHILD_CHECK(setenv("OPENSSL_CONF", path, 1) == 0);
    CHILD_CHECK(sha256_check(&d) == ERR_UNSUPPORTED);
    CHILD_CHECK(strstr(d.text, path) != NULL && strstr(d.text, "OPENSSL_CONF") != NULL);
    return 0;
}

/* Before every other case: OpenSSL reads its configuration once in a process. */
static void test_openssl_without_algorithms(void **state)
{
    static const char text[] = "openssl_conf = init\n[init]\nproviders = list\n[list]\nlegacy = legacy\n"
                               "[legacy]\nactivate = 1\n";
    struct scratch *s = *state;
    char *path = mem_strdup(scratch_at(s, "openssl.cnf"));
    assert_int_equal(file_write(path, 0600, text, sizeof text - 1, NULL), ERR_OK);
    child_run(check_without_algorithms, path);
    free(path);
    assert_int_equal(sha256_check(NULL), ERR_OK); /* here it is as everywhere */
}

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

static void test_text_is_read_back(void **state)
{
    (void)state;
    uint8_t hash[SHA256_BYTES], got[SHA256_BYTES];
    char text[SHA256_TEXT_BYTES + 8];
    sha256_of("abc", 3, hash);
    sha256_text(hash, text);
    assert_true(sha256_parse(text, got));
    assert_memory_equal(got, hash, sizeof got);
    text[0] = 'B'; /* b */
    memcpy(text + SHA256_TEXT_BYTES - 1, ".part", sizeof ".part");
    assert_true(sha256_parse(text, got));
    assert_memory_equal(got, hash, sizeof got);
    text[SHA256_TEXT_BYTES - 2] = '\0';
    assert_false(sha256_parse(text, got));
    text[SHA256_TEXT_BYTES - 2] = 'g';
    assert_false(sha256_parse(text, got));
    assert_false(sha256_parse("", got));
}

static long blocks_held; /* by OpenSSL */

static void *held_malloc(size_t size, const char *file, int line)
{
    (void)file;
    (void)line;
    blocks_held++;
    return malloc(size);
}

static void *held_realloc(void *old, size_t size, const char *file, int line)
{
    (void)file;
    (void)line;
    blocks_held += old == NULL;
    return realloc(old, size);
}

static void held_free(void *block, const char *file, int line)
{
    (void)file;
    (void)line;
    blocks_held -= block != NULL;
    free(block);
}

/* The load generator begins a sum with every request, and drops one when a request fails. */
static void test_one_sum_after_another(void **state)
{
    (void)state;
    struct sha256 s;
    uint8_t hash[SHA256_BYTES];
    char text[SHA256_TEXT_BYTES];
    sha256_of("", 0, hash); /* what OpenSSL keeps for the process is there from now on */
    long before = blocks_held;
    sha256_init(&s);
    long one = blocks_held;
    assert_true(one > before);
    for (int i = 0; i < 100; i++) {
        sha256_add(&s, "dropped", 7);
        sha256_restart(&s);
        sha256_add(&s, "a", 1);
        sha256_add(&s, NULL, 0);
        sha256_add(&s, "bc", 2);
        sha256_end(&s, hash);
        assert_string_equal(sha256_text(hash, text), vectors[1].hash);
        sha256_restart(&s);
        assert_int_equal(blocks_held, one);
    }
    sha256_fini(&s);
    sha256_fini(&s);
    assert_int_equal(blocks_held, before);
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
    if (CRYPTO_set_mem_functions(held_malloc, held_realloc, held_free) != 1)
        return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_openssl_without_algorithms, scratch_set_up, scratch_tear_down),
        cmocka_unit_test(test_vectors),
        cmocka_unit_test(test_text_is_read_back),
        cmocka_unit_test(test_one_sum_after_another),
        cmocka_unit_test(test_file_is_read_from_its_beginning),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
