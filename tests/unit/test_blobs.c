/* Contents by hash: what is damaged where it is kept is found out, and gone. */
#include "common/blobs.h"
#include "tests/support/scratch.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static const char content[] = "what a server is made of";

static void put(struct blobs *b, uint8_t hash[SHA256_BYTES])
{
    struct err_detail d;
    uint64_t have = 0;
    sha256_of(content, sizeof content, hash);
    assert_int_equal(blobs_write(b, hash, sizeof content, 0, content, sizeof content, &have, &d), ERR_OK);
    assert_int_equal(have, sizeof content);
}

static void test_a_damaged_one_is_removed(void **state)
{
    struct scratch *s = *state;
    struct blobs *b = NULL;
    struct err_detail d;
    uint8_t hash[SHA256_BYTES];
    char name[SHA256_TEXT_BYTES];
    assert_int_equal(blobs_open(s->dir, UINT64_MAX, &b, &d), ERR_OK);
    put(b, hash);
    assert_int_equal(blobs_check(b, hash, &d), ERR_OK);
    int fd = open(scratch_at(s, sha256_text(hash, name)), O_WRONLY);
    assert_int_equal(pwrite(fd, "X", 1, 3), 1);
    close(fd);
    assert_int_equal(blobs_have(b, hash, sizeof content), sizeof content); /* its size is right */
    assert_int_equal(blobs_check(b, hash, &d), ERR_NOT_FOUND);
    assert_non_null(strstr(d.text, "damaged"));
    assert_int_equal(blobs_have(b, hash, sizeof content), 0);
    assert_int_equal(blobs_check(b, hash, &d), ERR_NOT_FOUND);
    put(b, hash);
    assert_int_equal(blobs_check(b, hash, &d), ERR_OK);
    blobs_free(b);
}

/* Four of one byte each, ages in the order of their letters, room for `room` with one more. */
static void expect_left(struct scratch *s, unsigned room, enum err e, const char *left)
{
    struct blobs *b = NULL;
    struct err_detail d;
    uint8_t hashes[4][SHA256_BYTES];
    char found[8] = "";
    assert_int_equal(blobs_open(s->dir, room, &b, &d), ERR_OK);
    for (size_t i = 0; i < 4; i++) {
        uint64_t have = 0;
        char name[SHA256_TEXT_BYTES];
        struct timespec times[2] = {{.tv_sec = 1000 + (time_t)i}, {.tv_sec = 1000 + (time_t)i}};
        sha256_of(&"abcd"[i], 1, hashes[i]);
        assert_int_equal(blobs_write(b, hashes[i], 1, 0, &"abcd"[i], 1, &have, &d), ERR_OK);
        assert_int_equal(utimensat(AT_FDCWD, scratch_at(s, sha256_text(hashes[i], name)), times, 0), 0);
    }
    const struct blobs_wanted wanted = {.always = (const uint8_t(*)[SHA256_BYTES]) & hashes[0],
                                        .always_count = 1,
                                        .longest = (const uint8_t(*)[SHA256_BYTES]) & hashes[1],
                                        .longest_count = 1};
    assert_true(blobs_have_room(b, 0) == (room >= 4));
    assert_true(blobs_have_room(b, 1) == (room >= 5));
    assert_int_equal(blobs_make_room(b, &wanted, 1, &d), e);
    for (size_t i = 0, n = 0; i < 4; i++)
        if (blobs_check(b, hashes[i], &d) == ERR_OK)
            found[n++] = "abcd"[i];
    assert_string_equal(found, left);
    blobs_free(b);
}

static void test_what_is_wanted_goes_last_or_never(void **state)
{
    struct scratch *s = *state;
    expect_left(s, 5, ERR_OK, "abcd");
    expect_left(s, 4, ERR_OK, "abd"); /* the oldest is needed, the next may be */
    expect_left(s, 3, ERR_OK, "ab");
    expect_left(s, 2, ERR_OK, "a");
    expect_left(s, 1, ERR_FULL, "a");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_damaged_one_is_removed, scratch_set_up, scratch_tear_down),
        cmocka_unit_test_setup_teardown(test_what_is_wanted_goes_last_or_never, scratch_set_up,
                                        scratch_tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
