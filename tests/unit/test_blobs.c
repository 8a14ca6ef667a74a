/* Contents by hash: what is damaged where it is kept is found out, and gone. */
#include "common/blobs.h"
#include "tests/support/scratch.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_damaged_one_is_removed, scratch_set_up, scratch_tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
