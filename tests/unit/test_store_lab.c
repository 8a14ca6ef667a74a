/* Who may be in the lab: tokens, names and certificates in the store. */
#include "common/clock.h"
#include "controller/store/store.h"
#include "tests/support/store_place.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void test_tokens_work_once(void **state)
{
    struct place *p = *state;
    uint8_t good[MSG_HASH_BYTES] = {1};
    uint8_t old[MSG_HASH_BYTES] = {2};
    uint8_t unknown[MSG_HASH_BYTES] = {3};
    struct err_detail d;
    uint64_t now = clock_wall_ns();
    assert_int_equal(store_add_token(p->store, good, MSG_ROLE_AGENT, now + 3600 * NS_PER_S, NULL), ERR_OK);
    assert_int_equal(store_add_token(p->store, good, MSG_ROLE_AGENT, now, NULL), ERR_EXISTS);
    assert_int_equal(store_add_token(p->store, old, MSG_ROLE_AGENT, now - 1, NULL), ERR_OK);
    assert_int_equal(store_use_token(p->store, unknown, "a", MSG_ROLE_AGENT, &d), ERR_DENIED);
    assert_int_equal(store_use_token(p->store, old, "a", MSG_ROLE_AGENT, &d), ERR_DENIED);
    assert_non_null(strstr(d.text, "expired"));
    assert_int_equal(store_use_token(p->store, good, "a", MSG_ROLE_OPERATOR, &d), ERR_DENIED);
    assert_int_equal(store_use_token(p->store, good, "box1", MSG_ROLE_AGENT, &d), ERR_OK);
    place_reopen(p);
    assert_int_equal(store_use_token(p->store, good, "a", MSG_ROLE_AGENT, &d), ERR_DENIED);
    assert_non_null(strstr(d.text, "box1"));
}

static void test_a_name_belongs_to_one_role(void **state)
{
    struct place *p = *state;
    uint8_t token[MSG_HASH_BYTES] = {1};
    struct err_detail d;
    bool revoked = true;
    uint64_t later = clock_wall_ns() + 3600 * NS_PER_S;
    assert_int_equal(store_add_token(p->store, token, MSG_ROLE_OPERATOR, later, NULL), ERR_OK);
    assert_int_equal(store_add_certificate(p->store, "01", "ann", MSG_ROLE_AGENT, NULL), ERR_OK);
    assert_int_equal(store_use_token(p->store, token, "ann", MSG_ROLE_OPERATOR, &d), ERR_EXISTS);
    assert_non_null(strstr(d.text, "'ann' belongs to an agent"));
    assert_int_equal(store_revoke(p->store, "ann", NULL), ERR_OK);
    assert_int_equal(store_use_token(p->store, token, "ann", MSG_ROLE_OPERATOR, NULL), ERR_OK);
    /* The same role again: the newest is the good one. */
    assert_int_equal(store_add_certificate(p->store, "02", "ann", MSG_ROLE_OPERATOR, NULL), ERR_OK);
    assert_int_equal(store_add_certificate(p->store, "03", "ann", MSG_ROLE_OPERATOR, NULL), ERR_OK);
    assert_int_equal(store_is_revoked(p->store, "02", &revoked, NULL), ERR_OK);
    assert_true(revoked);
    assert_int_equal(store_is_revoked(p->store, "03", &revoked, NULL), ERR_OK);
    assert_false(revoked);
    /* A certificate that cannot be added takes nothing back. */
    assert_int_equal(store_add_certificate(p->store, "03", "ann", MSG_ROLE_OPERATOR, NULL), ERR_EXISTS);
    assert_int_equal(store_is_revoked(p->store, "03", &revoked, NULL), ERR_OK);
    assert_false(revoked);
}

static void test_revocation_ends_what_was_issued(void **state)
{
    struct place *p = *state;
    bool revoked = true;
    assert_int_equal(store_add_certificate(p->store, "01", "box1", MSG_ROLE_AGENT, NULL), ERR_OK);
    assert_int_equal(store_add_certificate(p->store, "01", "box2", MSG_ROLE_AGENT, NULL), ERR_EXISTS);
    assert_int_equal(store_add_certificate(p->store, "02", "box2", MSG_ROLE_OPERATOR, NULL), ERR_OK);
    assert_int_equal(store_is_revoked(p->store, "01", &revoked, NULL), ERR_OK);
    assert_false(revoked);
    assert_int_equal(store_revoke(p->store, "box1", NULL), ERR_OK);
    assert_int_equal(store_revoke(p->store, "box1", NULL), ERR_OK);
    assert_int_equal(store_revoke(p->store, "nobody", NULL), ERR_NOT_FOUND);
    assert_int_equal(store_add_certificate(p->store, "03", "box1", MSG_ROLE_AGENT, NULL), ERR_OK);
    place_reopen(p);
    assert_int_equal(store_is_revoked(p->store, "01", &revoked, NULL), ERR_OK);
    assert_true(revoked);
    assert_int_equal(store_is_revoked(p->store, "02", &revoked, NULL), ERR_OK);
    assert_false(revoked);
    assert_int_equal(store_is_revoked(p->store, "03", &revoked, NULL), ERR_OK);
    assert_false(revoked);
    assert_int_equal(store_is_revoked(p->store, "04", &revoked, NULL), ERR_NOT_FOUND);
}

#define STORE_TEST(f) cmocka_unit_test_setup_teardown(f, place_set_up, place_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORE_TEST(test_a_name_belongs_to_one_role),
        STORE_TEST(test_tokens_work_once),
        STORE_TEST(test_revocation_ends_what_was_issued),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
