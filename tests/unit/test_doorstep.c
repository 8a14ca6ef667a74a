/* Who may try a token: the table of networks that strangers come from, on a clock of the test. */
#include "controller/daemon/doorstep.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static enum err try_token(struct doorstep *s, uint64_t network, bool wrong, uint64_t now_ns)
{
    struct err_detail d;
    enum err e = doorstep_enter(s, network, now_ns, &d);
    if (e == ERR_OK)
        (void)doorstep_leave(s, network, wrong, now_ns);
    return e;
}

static void test_wrong_tokens_bar_their_network_for_a_minute(void **state)
{
    (void)state;
    struct doorstep *s = doorstep_new();
    struct err_detail d;
    uint64_t now = 5 * NS_PER_S;
    for (unsigned i = 1; i <= DOORSTEP_WRONG_MAX; i++, now += NS_PER_S) {
        assert_int_equal(doorstep_enter(s, 7, now, &d), ERR_OK);
        assert_int_equal(doorstep_leave(s, 7, true, now), i == DOORSTEP_WRONG_MAX); /* to be logged once */
    }
    assert_int_equal(doorstep_enter(s, 7, now, &d), ERR_BUSY);
    assert_string_equal(d.text, "10 tokens from this address were refused; try again in 51 s");
    assert_int_equal(try_token(s, 8, false, now), ERR_OK); /* of nobody else */
    now = 5 * NS_PER_S + DOORSTEP_PERIOD_NS - 1;
    assert_int_equal(try_token(s, 7, false, now), ERR_BUSY);
    now++;
    for (unsigned i = 0; i < DOORSTEP_WRONG_MAX; i++)
        assert_int_equal(try_token(s, 7, true, now), ERR_OK);
    assert_int_equal(try_token(s, 7, true, now), ERR_BUSY);
    doorstep_free(s);
}

static void test_good_tokens_bar_nobody(void **state)
{
    (void)state;
    struct doorstep *s = doorstep_new();
    for (unsigned i = 0; i < 100 * DOORSTEP_WRONG_MAX; i++)
        assert_int_equal(try_token(s, 7, false, 1), ERR_OK);
    doorstep_free(s);
}

static void test_what_is_under_way_has_a_cap_for_each_and_for_all(void **state)
{
    (void)state;
    struct doorstep *s = doorstep_new();
    struct err_detail d;
    unsigned all = 0;
    for (uint64_t network = 1; all < DOORSTEP_UNDER_WAY_MAX; network++) {
        for (unsigned i = 0; i < DOORSTEP_NETWORK_MAX && all < DOORSTEP_UNDER_WAY_MAX; i++, all++)
            assert_int_equal(doorstep_enter(s, network, 1, &d), ERR_OK);
        assert_int_equal(doorstep_enter(s, network, 1, &d), ERR_BUSY);
    }
    assert_int_equal(doorstep_enter(s, 99, 1, &d), ERR_BUSY);
    assert_non_null(strstr(d.text, "too many enroll at once"));
    assert_false(doorstep_leave(s, 1, false, 1));
    assert_int_equal(doorstep_enter(s, 99, 1, &d), ERR_OK);
    doorstep_free(s);
}

static void test_the_network_seen_longest_ago_is_forgotten(void **state)
{
    (void)state;
    struct doorstep *s = doorstep_new();
    struct err_detail d;
    assert_int_equal(doorstep_enter(s, 1, 1, &d), ERR_OK); /* stays: it is under way */
    for (uint64_t network = 2; network <= DOORSTEP_NETWORKS_MAX; network++)
        for (unsigned i = 0; i < DOORSTEP_WRONG_MAX; i++)
            assert_int_equal(try_token(s, network, true, network), ERR_OK);
    assert_int_equal(try_token(s, 2, true, 1000), ERR_BUSY);
    assert_int_equal(try_token(s, 100000, true, 1000), ERR_OK); /* takes the place of 2 */
    assert_int_equal(try_token(s, 3, true, 1000), ERR_BUSY);
    assert_int_equal(try_token(s, 2, true, 1000), ERR_OK);
    assert_false(doorstep_leave(s, 1, true, 1000));
    doorstep_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wrong_tokens_bar_their_network_for_a_minute),
        cmocka_unit_test(test_good_tokens_bar_nobody),
        cmocka_unit_test(test_what_is_under_way_has_a_cap_for_each_and_for_all),
        cmocka_unit_test(test_the_network_seen_longest_ago_is_forgotten),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
