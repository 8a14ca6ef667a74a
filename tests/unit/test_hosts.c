#include "controller/view/hosts.h"
#include "tests/support/fleet_stand.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Each of the texts stands in what is written of the fleet, and in this order. */
static void expect_in_order(const struct fleet_stand *f, const char *const *texts)
{
    struct buf out;
    buf_init(&out, 1u << 20);
    assert_int_equal(hosts_write_json(f->fleet, &out), ERR_OK);
    const char *at = out.data;
    for (; *texts != NULL; texts++) {
        const char *found = strstr(at, *texts);
        if (found == NULL)
            fail_msg("'%s' is not in '%s'", *texts, at);
        at = found + strlen(*texts);
    }
    buf_fini(&out);
}

static void test_labels_are_names_and_values(void **state)
{
    struct fleet_stand *f = *state;
    fleet_stand_hello(f, 0, "a", 7, "", "pool=big=x", T0);
    fleet_stand_hello(f, 1, "b", 8, "", "ssd", T0);
    fleet_stand_hello(f, 2, "c", 9, "", NULL, T0);
    expect_in_order(f, (const char *const[]){"{\"format\":\"splitbench-hosts/1\",\"hosts\":[{\"name\":\"a\"",
                                             "\"labels\":{\"pool\":\"big=x\"}}", "\"name\":\"b\"",
                                             "\"labels\":{\"ssd\":\"\"}}", "\"name\":\"c\"",
                                             "\"labels\":{}}]}", NULL});
}

static void test_what_is_not_known_is_null(void **state)
{
    struct fleet_stand *f = *state;
    fleet_stand_hello(f, 0, "a", 7, "", NULL, T0);
    expect_in_order(f, (const char *const[]){"\"connected\":true,\"state\":\"free\",\"job\":null,",
                                             "\"libraries\":null", NULL});
}

static void test_a_job_holds_its_hosts(void **state)
{
    struct fleet_stand *f = *state;
    struct fleet_agent *a;
    struct fleet_agent *b;
    fleet_stand_open_pair(f, &a, &b);
    expect_in_order(
        f, (const char *const[]){"\"name\":\"a\"", "\"job\":\"j\"", "\"name\":\"b\"", "\"job\":\"j\"", NULL});
}

#define STAND_TEST(f) cmocka_unit_test_setup_teardown(f, fleet_stand_set_up, fleet_stand_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        STAND_TEST(test_labels_are_names_and_values),
        STAND_TEST(test_what_is_not_known_is_null),
        STAND_TEST(test_a_job_holds_its_hosts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
