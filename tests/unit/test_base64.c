#include "common/base64.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

/* RFC 4648, section 10, and the letters in which the two alphabets differ. */
static const struct {
    const char *data;
    const char *text;
    const char *url;
} vectors[] = {
    {"", "", ""},
    {"f", "Zg==", "Zg"},
    {"fo", "Zm8=", "Zm8"},
    {"foo", "Zm9v", "Zm9v"},
    {"foob", "Zm9vYg==", "Zm9vYg"},
    {"fooba", "Zm9vYmE=", "Zm9vYmE"},
    {"foobar", "Zm9vYmFy", "Zm9vYmFy"},
    {"\xfb\xff\xbf", "+/+/", "-_-_"},
};

static void test_the_vectors(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(vectors); i++) {
        char text[16];
        uint8_t data[16];
        size_t len = strlen(vectors[i].data), got = 99;
        assert_int_equal(base64_encode(vectors[i].data, len, text), strlen(vectors[i].text));
        assert_string_equal(text, vectors[i].text);
        assert_true(base64_decode(text, strlen(text), data, &got));
        assert_int_equal(got, len);
        assert_memory_equal(data, vectors[i].data, len);
        assert_int_equal(base64url_encode(vectors[i].data, len, text), strlen(vectors[i].url));
        assert_string_equal(text, vectors[i].url);
        assert_true(base64url_decode(text, strlen(text), data, &got));
        assert_int_equal(got, len);
        assert_memory_equal(data, vectors[i].data, len);
    }
}

/* Every byte at every place of a group; neither more is written than the header says, nor read. */
static void test_every_byte_comes_back(void **state)
{
    (void)state;
    for (size_t len = 1; len <= 7; len++)
        for (unsigned value = 0; value < 256; value++) {
            uint8_t data[7], back[BASE64_BYTES(BASE64_CHARS(7)) + 1];
            char text[BASE64_CHARS(7) + 2];
            size_t got = 0;
            memset(data, (int)value, len);
            data[len - 1] ^= 0x5a;
            memset(text, '!', sizeof text);
            memset(back, 0xee, sizeof back);
            size_t chars = base64_encode(data, len, text);
            assert_int_equal(chars, BASE64_CHARS(len));
            assert_true(text[chars] == '\0' && text[chars + 1] == '!');
            text[chars] = 'A'; /* the length counts, no NUL is needed */
            assert_true(base64_decode(text, chars, back, &got));
            assert_int_equal(got, len);
            assert_memory_equal(back, data, len);
            assert_int_equal(back[BASE64_BYTES(chars)], 0xee);
            chars = base64url_encode(data, len, text);
            assert_int_equal(text[chars], '\0');
            assert_true(base64url_decode(text, chars, back, &got));
            assert_int_equal(got, len);
            assert_memory_equal(back, data, len);
        }
}

static void expect_refused(const char *text, size_t chars)
{
    uint8_t data[32];
    size_t len = 77;
    if (base64_decode(text, chars, data, &len))
        fail_msg("'%.*s' is taken for base64", (int)chars, text);
    assert_int_equal(len, 77);
}

static void test_what_is_no_base64(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "Z",     "Zg",         "Zg=",      "Zm9vY",      "=",          "==",       "====",    "Z===",
        "=Zg=",  "Z=g=",       "Zg=a",     "Zg==Zg==",   "Zg==Zm9v",   "Zm9v====", "Zg== ",   " Zg==",
        "Zm 9v", "Zm9v\nZm9v", "Zm9v\n\n", "Zm9v\r\n  ", "Zm9vZm9v\n", "Zm-_",     "Zm9\x80", "Zm9v,Zm9",
    };
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        expect_refused(texts[i], strlen(texts[i]));
    expect_refused("Zm\0v", 4);
    expect_refused("Zm9v\0\0\0\0", 8);
    /* Of all bytes only the 64 letters: one other anywhere is enough. */
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (unsigned c = 0; c < 256; c++)
        for (size_t at = 0; at < 4; at++) {
            uint8_t data[6];
            size_t len;
            char text[] = "Zm9vYmFy";
            text[at] = (char)c;
            assert_int_equal(base64_decode(text, 8, data, &len), memchr(letters, (int)c, 64) != NULL);
        }
}

static void test_what_is_no_base64url(void **state)
{
    (void)state;
    static const char *const texts[] = {"Z",      "Zg==", "Zm8=", "Zm9vY", "+/+/",
                                        "Zm9v\n", " Zm9", "Zm 9", "Zg\n"};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        uint8_t data[32];
        size_t len;
        assert_false(base64url_decode(texts[i], strlen(texts[i]), data, &len));
    }
}

/* As other tools' decoders do; ours writes no such text. */
static void test_spare_bits_are_not_looked_at(void **state)
{
    (void)state;
    uint8_t data[3];
    size_t len = 0;
    assert_true(base64_decode("Zn==", 4, data, &len));
    assert_true(len == 1 && data[0] == 'f');
    assert_true(base64_decode("Zm9=", 4, data, &len));
    assert_true(len == 2 && memcmp(data, "fo", 2) == 0);
    assert_true(base64url_decode("Zn", 2, data, &len));
    assert_true(len == 1 && data[0] == 'f');
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_vectors),
        cmocka_unit_test(test_every_byte_comes_back),
        cmocka_unit_test(test_what_is_no_base64),
        cmocka_unit_test(test_what_is_no_base64url),
        cmocka_unit_test(test_spare_bits_are_not_looked_at),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
