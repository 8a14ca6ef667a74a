#include "proto/link/session.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
// clang-format on

#include <string.h>

/* The whole table once more, written down by hand from docs/protocol.md. */
static bool expected(enum msg_role role, enum session_state state, enum msg_kind kind)
{
    if (role == MSG_ROLE_NONE)
        return state == SESSION_NEW && (kind == MSG_HELLO || kind == MSG_CA_ASK || kind == MSG_ENROLL);
    if (role == MSG_ROLE_AGENT || role == MSG_ROLE_OPERATOR) {
        if (state == SESSION_CHALLENGED)
            return kind == MSG_PROOF;
        if (state != SESSION_OPEN)
            return false;
        return role == MSG_ROLE_AGENT
                   ? kind == MSG_POLL || kind == MSG_PUSH
                   : kind == MSG_SUBMIT || kind == MSG_BLOB || kind == MSG_WATCH || kind == MSG_ASK;
    }
    if (role != MSG_ROLE_CONTROLLER)
        return false;
    if (kind == MSG_REFUSED)
        return state != SESSION_ENDED;
    if (state == SESSION_NEW)
        return kind == MSG_CHALLENGE || kind == MSG_WELCOME || kind == MSG_CA_GIVE || kind == MSG_ENROLLED;
    if (state == SESSION_CHALLENGED)
        return kind == MSG_WELCOME;
    return state == SESSION_OPEN && (kind == MSG_COMMANDS || kind == MSG_PUSHED || kind == MSG_SUBMITTED ||
                                     kind == MSG_BLOB_TAKEN || kind == MSG_WATCHED || kind == MSG_ANSWER);
}

static void test_every_cell(void **state)
{
    (void)state;
    for (unsigned role = 0; role < MSG_ROLE_COUNT; role++)
        for (unsigned st = 0; st < SESSION_STATE_COUNT; st++)
            for (unsigned kind = 0; kind < MSG_KIND_COUNT; kind++) {
                bool want = expected((enum msg_role)role, (enum session_state)st, (enum msg_kind)kind);
                struct session s;
                struct err_detail d;
                assert_int_equal(
                    session_permits((enum msg_role)role, (enum session_state)st, (enum msg_kind)kind), want);
                session_init(&s, (enum msg_role)role);
                s.state = (enum session_state)st;
                struct msg m = {.kind = (enum msg_kind)kind, .serial = 1};
                assert_int_equal(session_hear(&s, &m, &d), want ? ERR_OK : ERR_DENIED);
            }
}

static void test_numbers_outside_the_table(void **state)
{
    (void)state;
    assert_false(session_permits(MSG_ROLE_COUNT, SESSION_NEW, MSG_HELLO));
    assert_false(session_permits(MSG_ROLE_NONE, SESSION_STATE_COUNT, MSG_HELLO));
    assert_false(session_permits(MSG_ROLE_NONE, SESSION_NEW, MSG_KIND_COUNT));
    assert_false(session_answers(MSG_KIND_COUNT, MSG_REFUSED));
}

static void test_every_state_and_event(void **state)
{
    (void)state;
    /* The state that follows, or -1 where the event makes no sense. */
    static const int next[SESSION_STATE_COUNT][SESSION_EVENT_COUNT] = {
        [SESSION_NEW] = {SESSION_CHALLENGED, SESSION_OPEN, SESSION_ENDED},
        [SESSION_CHALLENGED] = {-1, SESSION_OPEN, SESSION_ENDED},
        [SESSION_OPEN] = {-1, -1, SESSION_ENDED},
        [SESSION_ENDED] = {-1, -1, -1},
    };
    for (unsigned st = 0; st < SESSION_STATE_COUNT; st++)
        for (unsigned ev = 0; ev < SESSION_EVENT_COUNT; ev++) {
            struct session s;
            session_init(&s, MSG_ROLE_AGENT);
            s.state = (enum session_state)st;
            bool moved = session_handle(&s, (enum session_event)ev);
            assert_int_equal(moved, next[st][ev] >= 0);
            assert_int_equal(s.state, moved ? next[st][ev] : (int)st);
        }
}

static void test_serials_only_rise(void **state)
{
    (void)state;
    struct session s;
    struct err_detail d;
    session_init(&s, MSG_ROLE_AGENT);
    s.state = SESSION_OPEN;
    s.id = 7;
    struct msg poll = {.kind = MSG_POLL, .session = 7, .serial = 5};
    struct msg push = {.kind = MSG_PUSH, .session = 7, .serial = 5};
    assert_int_equal(session_hear(&s, &poll, &d), ERR_OK);
    assert_int_equal(session_hear(&s, &push, &d), ERR_OK); /* each kind counts for itself */
    assert_int_equal(session_hear(&s, &poll, &d), ERR_DENIED);
    assert_non_null(strstr(d.text, "replayed"));
    poll.serial = 4;
    assert_int_equal(session_hear(&s, &poll, &d), ERR_DENIED);
    poll.serial = 6;
    assert_int_equal(session_hear(&s, &poll, &d), ERR_OK);
    poll.serial = UINT64_MAX;
    assert_int_equal(session_hear(&s, &poll, &d), ERR_OK);
    poll.serial = 0; /* no way round */
    assert_int_equal(session_hear(&s, &poll, &d), ERR_DENIED);
}

static void test_another_sessions_message(void **state)
{
    (void)state;
    struct session s;
    struct err_detail d;
    session_init(&s, MSG_ROLE_AGENT);
    s.state = SESSION_OPEN;
    s.id = 7;
    struct msg m = {.kind = MSG_POLL, .session = 8, .serial = 1};
    assert_int_equal(session_hear(&s, &m, &d), ERR_DENIED);
    m.session = 0;
    assert_int_equal(session_hear(&s, &m, &d), ERR_DENIED);
    m.session = 7;
    assert_int_equal(session_hear(&s, &m, &d), ERR_OK); /* a refused one does not use its serial up */
}

static void test_answers_fit_questions(void **state)
{
    (void)state;
    int pairs = 0;
    for (unsigned q = 0; q < MSG_KIND_COUNT; q++)
        for (unsigned a = 0; a < MSG_KIND_COUNT; a++)
            pairs += session_answers((enum msg_kind)q, (enum msg_kind)a);
    assert_int_equal(pairs, 11 + 10); /* the pairs of the table, and REFUSED for each of ten questions */
    assert_true(session_answers(MSG_HELLO, MSG_CHALLENGE));
    assert_true(session_answers(MSG_HELLO, MSG_WELCOME));
    assert_true(session_answers(MSG_PROOF, MSG_WELCOME));
    assert_true(session_answers(MSG_POLL, MSG_COMMANDS));
    assert_false(session_answers(MSG_POLL, MSG_PUSHED));
    assert_false(session_answers(MSG_PROOF, MSG_CHALLENGE));
    assert_false(session_answers(MSG_WELCOME, MSG_REFUSED));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_cell),
        cmocka_unit_test(test_numbers_outside_the_table),
        cmocka_unit_test(test_every_state_and_event),
        cmocka_unit_test(test_serials_only_rise),
        cmocka_unit_test(test_another_sessions_message),
        cmocka_unit_test(test_answers_fit_questions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
