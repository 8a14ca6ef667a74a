/* Who may be in the lab: tokens, names and certificates in the store. */
#include "common/clock.h"
#include "common/mem.h"
#include "controller/store/store.h"
#include "tests/support/store_place.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static enum err revoke_name(struct place *p, const char *name, struct store_revoked *out)
{
    struct store_revoked ignored = {0};
    enum err e = store_revoke(p->store, name, out != NULL ? out : &ignored, NULL);
    mem_free_strings(&ignored.enrolled.items, &ignored.enrolled.count);
    return e;
}

static void test_tokens_work_once(void **state)
{
    struct place *p = *state;
    uint8_t good[MSG_HASH_BYTES] = {1};
    uint8_t old[MSG_HASH_BYTES] = {2};
    uint8_t unknown[MSG_HASH_BYTES] = {3};
    struct err_detail d;
    uint64_t now = clock_wall_ns();
    assert_int_equal(store_add_token(p->store, good, MSG_ROLE_AGENT, "bob", now + 3600 * NS_PER_S, NULL),
                     ERR_OK);
    assert_int_equal(store_add_token(p->store, good, MSG_ROLE_AGENT, "bob", now, NULL), ERR_EXISTS);
    assert_int_equal(store_add_token(p->store, old, MSG_ROLE_AGENT, "bob", now - 1, NULL), ERR_OK);
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
    assert_int_equal(store_add_token(p->store, token, MSG_ROLE_OPERATOR, "bob", later, NULL), ERR_OK);
    assert_int_equal(store_add_certificate(p->store, "01", "ann", MSG_ROLE_AGENT, NULL), ERR_OK);
    assert_int_equal(store_use_token(p->store, token, "ann", MSG_ROLE_OPERATOR, &d), ERR_EXISTS);
    assert_non_null(strstr(d.text, "'ann' belongs to an agent"));
    assert_int_equal(revoke_name(p, "ann", NULL), ERR_OK);
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

static void enroll(struct place *p, uint8_t token, const char *serial, const char *name, enum msg_role role)
{
    uint8_t hash[MSG_HASH_BYTES] = {token};
    assert_int_equal(store_use_token(p->store, hash, name, role, NULL), ERR_OK);
    assert_int_equal(store_add_certificate(p->store, serial, name, role, NULL), ERR_OK);
}

/* Who was put out does not come back with a token made before. */
static void test_tokens_are_revoked_with_their_maker(void **state)
{
    struct place *p = *state;
    struct store_revoked r = {0};
    struct err_detail d;
    uint64_t now = clock_wall_ns();
    uint8_t hash[MSG_HASH_BYTES] = {0};
    for (hash[0] = 1; hash[0] <= 6; hash[0]++) /* 5 has expired, 6 is another's */
        assert_int_equal(store_add_token(p->store, hash, MSG_ROLE_OPERATOR, hash[0] == 6 ? "zoe" : "ann",
                                         hash[0] == 5 ? now - 1 : now + 3600 * NS_PER_S, NULL),
                         ERR_OK);
    assert_int_equal(store_add_certificate(p->store, "01", "ann", MSG_ROLE_OPERATOR, NULL), ERR_OK);
    enroll(p, 1, "02", "bob", MSG_ROLE_OPERATOR);
    enroll(p, 2, "03", "eve", MSG_ROLE_OPERATOR);
    assert_int_equal(revoke_name(p, "eve", NULL), ERR_OK);
    assert_int_equal(revoke_name(p, "ann", &r), ERR_OK);
    assert_int_equal(r.certificates, 1);
    assert_int_equal(r.tokens, 2);
    assert_int_equal(r.enrolled.count, 1); /* to be told: eve is out already */
    assert_string_equal(r.enrolled.items[0], "bob");
    mem_free_strings(&r.enrolled.items, &r.enrolled.count);
    place_reopen(p);
    for (hash[0] = 3; hash[0] <= 4; hash[0]++) {
        assert_int_equal(store_use_token(p->store, hash, "ann", MSG_ROLE_OPERATOR, &d), ERR_DENIED);
        assert_non_null(strstr(d.text, "the token was taken back"));
        assert_non_null(strstr(d.text, "ann, who made it, was revoked"));
    }
    hash[0] = 6;
    assert_int_equal(store_use_token(p->store, hash, "ann", MSG_ROLE_OPERATOR, &d), ERR_OK);
}

static void test_tokens_of_who_never_had_a_certificate_can_be_taken_back(void **state)
{
    struct place *p = *state;
    struct store_revoked r = {0};
    uint8_t hash[MSG_HASH_BYTES] = {1};
    uint64_t later = clock_wall_ns() + 3600 * NS_PER_S;
    assert_int_equal(store_add_token(p->store, hash, MSG_ROLE_AGENT, "root", later, NULL), ERR_OK);
    assert_int_equal(revoke_name(p, "root", &r), ERR_OK);
    assert_int_equal(r.certificates, 0);
    assert_int_equal(r.tokens, 1);
    assert_int_equal(revoke_name(p, "root", &r), ERR_NOT_FOUND); /* nothing is left */
    assert_int_equal(store_check_token(p->store, hash, MSG_ROLE_AGENT, NULL), ERR_DENIED);
}

static void test_tokens_are_listed(void **state)
{
    struct place *p = *state;
    struct store_token *tokens = NULL;
    size_t count = 0;
    uint64_t later = clock_wall_ns() + 3600 * NS_PER_S;
    uint8_t hash[MSG_HASH_BYTES] = {0};
    for (hash[0] = 1; hash[0] <= 3; hash[0]++)
        assert_int_equal(
            store_add_token(p->store, hash, MSG_ROLE_AGENT, hash[0] == 3 ? "" : "ann", later + hash[0], NULL),
            ERR_OK);
    enroll(p, 2, "01", "box1", MSG_ROLE_AGENT);
    assert_int_equal(revoke_name(p, "ann", NULL), ERR_OK);
    assert_int_equal(store_list_tokens(p->store, 10, &tokens, &count, NULL), ERR_OK);
    assert_int_equal(count, 3);
    assert_string_equal(tokens[0].made_by, "");
    assert_int_equal(tokens[0].expires_wall_ns, later + 3);
    assert_int_equal(tokens[0].revoked_wall_ns, 0);
    assert_string_equal(tokens[1].used_by, "box1");
    assert_true(tokens[1].used_wall_ns != 0 && tokens[1].revoked_wall_ns == 0);
    assert_string_equal(tokens[2].made_by, "ann");
    assert_true(tokens[2].used_wall_ns == 0 && tokens[2].revoked_wall_ns != 0);
    assert_int_equal(tokens[2].role, MSG_ROLE_AGENT);
    store_free_tokens(tokens, count);
    assert_int_equal(store_list_tokens(p->store, 2, &tokens, &count, NULL), ERR_OK);
    assert_int_equal(count, 2);
    store_free_tokens(tokens, count);
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
    assert_int_equal(revoke_name(p, "box1", NULL), ERR_OK);
    assert_int_equal(revoke_name(p, "box1", NULL), ERR_OK);
    assert_int_equal(revoke_name(p, "nobody", NULL), ERR_NOT_FOUND);
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
        STORE_TEST(test_tokens_are_revoked_with_their_maker),
        STORE_TEST(test_tokens_of_who_never_had_a_certificate_can_be_taken_back),
        STORE_TEST(test_tokens_are_listed),
        STORE_TEST(test_revocation_ends_what_was_issued),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
