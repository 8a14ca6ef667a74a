#include "tests/support/fleet_stand.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void test_an_event_is_delivered_once(void **state)
{
    struct fleet_stand *f = *state;
    struct fleet_agent *a, *b;
    fleet_stand_open_pair(f, &a, &b);
    fleet_poll(f->fleet, a, &f->requests[3], 1, T0);
    assert_int_equal(fleet_stand_command(f, a, "j", MSG_COMMAND_LOAD, 77), ERR_OK);
    fleet_stand_push(f, a, 7, 2, 2, MSG_EVENT_PROGRESS, "j", T0);
    assert_int_equal(f->seen.event_answers, 77);
    fleet_settle(f->fleet, a, 7, 2);
    fleet_stand_push(f, a, 7, 3, 2, MSG_EVENT_LOADED, "j", T0);
    assert_int_equal(f->seen.events, 2);
    assert_int_equal(f->seen.event_kind, MSG_EVENT_LOADED);
    assert_int_equal(f->seen.event_answers, 77);
    assert_int_equal(f->seen.pushes, 1); /* not before it is stored */
    fleet_gone(f->fleet, &f->peers[0]);
    fleet_stand_hello(f, 2, "a", 7, "j", NULL, T0);
    fleet_stand_push(f, a, 7, 3, 2, MSG_EVENT_LOADED, "j", T0); /* sent again */
    assert_int_equal(f->seen.events, 2);
    fleet_settle(f->fleet, a, 7, 3);
    assert_int_equal(f->seen.pushes, 2);
    assert_int_equal(f->seen.acked, 3);
}

static void test_a_held_push_is_answered_in_the_end(void **state)
{
    struct fleet_stand *f = *state;
    struct fleet_agent *a, *b;
    fleet_stand_open_pair(f, &a, &b);
    fleet_stand_push(f, a, 7, 2, 0, MSG_EVENT_EXITED, "j", T0);
    fleet_stand_push(f, a, 7, 3, 0, MSG_EVENT_EXITED, "j", T0); /* a second one beside it */
    assert_int_equal(f->seen.refusals, 1);
    uint64_t next = fleet_tick(f->fleet, T0);
    assert_int_equal(next, T0 + FLEET_PUSH_HOLD_NS);
    fleet_tick(f->fleet, next);
    assert_int_equal(f->seen.pushes, 1);
    assert_int_equal(f->seen.acked, 1);
}

static void test_invented_answers_are_refused(void **state)
{
    struct fleet_stand *f = *state;
    struct fleet_agent *a, *b;
    fleet_stand_open_pair(f, &a, &b);
    fleet_stand_push(f, a, 7, 2, 99, MSG_EVENT_LOADED, "j", T0);
    fleet_stand_push(f, a, 7, 3, 1, MSG_EVENT_DONE, "j", T0); /* answered before */
    assert_int_equal(f->seen.events, 0);
    assert_int_equal(f->seen.acked, 3); /* and they do not come again */
    fleet_stand_push(f, a, 7, 4, 0, MSG_EVENT_EXITED, "another", T0);
    assert_int_equal(f->seen.events, 0);
    assert_int_equal(f->seen.late, 1);
}

static void test_unsettled_events_are_bounded(void **state)
{
    struct fleet_stand *f = *state;
    struct fleet_agent *a, *b;
    fleet_stand_open_pair(f, &a, &b);
    uint64_t number = 2;
    for (unsigned round = 0; round < 8; round++) {
        struct msg_event events[MSG_EVENTS_MAX];
        struct msg_push p = {.incarnation = 7, .items = events, .count = MSG_EVENTS_MAX};
        for (unsigned i = 0; i < MSG_EVENTS_MAX; i++)
            events[i] = (struct msg_event){
                .number = number++, .kind = MSG_EVENT_EXITED, .job = (char *)(uintptr_t) "j"};
        fleet_push(f->fleet, a, &f->requests[3], &p, T0);
        fleet_tick(f->fleet, T0 + FLEET_PUSH_HOLD_NS);
    }
    assert_true(f->seen.events <= FLEET_UNSETTLED_MAX);
    assert_true(f->seen.events >= FLEET_UNSETTLED_MAX - 1);
}

static void test_a_push_is_answered_after_all_of_it_is_delivered(void **state)
{
    struct fleet_stand *f = *state;
    struct fleet_agent *a, *b;
    fleet_stand_open_pair(f, &a, &b);
    /* The first is nobody's and settled at once; the second is the job's. */
    struct msg_event events[] = {
        {.number = 2, .kind = MSG_EVENT_PROGRESS, .job = (char *)(uintptr_t) "another"},
        {.number = 3, .kind = MSG_EVENT_EXITED, .job = (char *)(uintptr_t) "j"}};
    struct msg_push p = {.incarnation = 7, .items = events, .count = 2};
    fleet_push(f->fleet, a, &f->requests[3], &p, T0);
    assert_int_equal(f->seen.events, 1);
    assert_int_equal(f->seen.pushes, 0);
    fleet_settle(f->fleet, a, 7, 3);
    assert_int_equal(f->seen.pushes, 1);
    assert_int_equal(f->seen.acked, 3);
}

static void test_an_earlier_incarnations_results_are_kept(void **state)
{
    struct fleet_stand *f = *state;
    struct fleet_agent *a, *b;
    fleet_stand_open_pair(f, &a, &b);
    fleet_stand_push(f, a, 3, 500, 2, MSG_EVENT_LOADED, "older", T0);
    assert_int_equal(f->seen.late, 1);
    assert_int_equal(f->seen.pushes, 0);
    fleet_tick(f->fleet, T0 + FLEET_PUSH_HOLD_NS);
    assert_int_equal(f->seen.pushes, 0);
    fleet_settle_late(f->fleet, a);
    assert_int_equal(f->seen.pushes, 1);
    assert_int_equal(f->seen.acked, 500);
    fleet_stand_push(f, a, 7, 2, 0, MSG_EVENT_EXITED, "j",
                     T0); /* the present numbers are not touched by it */
    assert_int_equal(f->seen.events, 1);
}

static void test_release_closes_and_what_comes_then_is_late(void **state)
{
    struct fleet_stand *f = *state;
    struct fleet_agent *a, *b;
    struct fleet_host hosts[2];
    fleet_stand_open_pair(f, &a, &b);
    fleet_poll(f->fleet, a, &f->requests[3], 1, T0);
    fleet_release(f->fleet, "j");
    assert_int_equal(f->seen.kinds[0], MSG_COMMAND_JOB_CLOSE);
    assert_int_equal(fleet_stand_command(f, a, "j", MSG_COMMAND_SAMPLE, 5), ERR_CLOSED);
    fleet_stand_push(f, a, 7, 2, 0, MSG_EVENT_EXITED, "j", T0);
    assert_int_equal(f->seen.late, 1);
    assert_int_equal(f->seen.events, 0);
    fleet_settle_late(f->fleet, a);
    fleet_stand_push(f, a, 7, 3, 2, MSG_EVENT_DONE, "j", T0);
    assert_int_equal(f->seen.changes, 1);
    fleet_stand_push(f, b, 8, 2, 2, MSG_EVENT_DONE, "j", T0);
    assert_int_equal(fleet_stand_reserve(f, "k", "sut", hosts), ERR_OK);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, fleet_stand_set_up, fleet_stand_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_an_event_is_delivered_once),
        TEST(test_a_held_push_is_answered_in_the_end),
        TEST(test_invented_answers_are_refused),
        TEST(test_unsettled_events_are_bounded),
        TEST(test_a_push_is_answered_after_all_of_it_is_delivered),
        TEST(test_an_earlier_incarnations_results_are_kept),
        TEST(test_release_closes_and_what_comes_then_is_late),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
