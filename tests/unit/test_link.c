#include "common/clock.h"
#include "common/mem.h"
#include "tests/support/lab.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
// clang-format on

#include <stdlib.h>
#include <string.h>

static void calls_over_ipc(void **state)
{
    (void)state;
    struct lab lab;
    struct lab_client c;
    lab_init(&lab, false);
    lab_connect(&lab, &c, lab.ipc, NULL, MSG_ROLE_AGENT, "a1");
    lab_wait(&lab, &c.ups, 1);
    assert_string_equal(link_peer_name(lab.peer), "a1");
    for (int i = 0; i < 100; i++) {
        lab_poll(&c);
        lab_wait(&lab, &c.answers, i + 1);
    }
    assert_int_equal(c.last_kind, MSG_COMMANDS);
    lab_disconnect(&c);
    lab_wait(&lab, &lab.gone, 1);
    lab_fini(&lab);
}

static void calls_over_tls(void **state)
{
    (void)state;
    struct lab lab;
    struct lab_client c;
    struct identity id;
    lab_init(&lab, true);
    lab_make_identity(&lab, "a1", MSG_ROLE_AGENT, &id);
    lab_connect(&lab, &c, lab_tls_address(&lab), &id, MSG_ROLE_AGENT, "a1");
    lab_wait(&lab, &c.ups, 1);
    assert_string_equal(link_peer_name(lab.peer), "a1");
    assert_string_equal(link_peer_address(lab.peer), "127.0.0.1");
    assert_int_equal(strlen(link_peer_serial(lab.peer)), 32);
    for (int i = 0; i < 100; i++) {
        lab_poll(&c);
        lab_wait(&lab, &c.answers, i + 1);
    }
    lab_disconnect(&c);
    lab_wait(&lab, &lab.gone, 1);
    identity_fini(&id);
    lab_fini(&lab);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_over_ipc),
        cmocka_unit_test(calls_over_tls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
