/* What an earlier run of a job, or an earlier controller, left on its way to the fleet is late, and never
 * taken for word of the present run. */
#include "tests/support/fleet_stand.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define EARLIER_CONTROLLER (CONTROLLER - 1)

static char job_name[] = "j";
static char ran_out[] = "heard nothing from the controller for 10000 ms: the job was ended here";

/* An event of a run of "j"; `answers` 0: unasked. */
static void push_of_run(struct fleet_stand *f, struct fleet_agent *a, uint64_t number, uint64_t run,
                        uint64_t answers, enum msg_event_kind kind)
{
    struct msg_event e = {.number = number,
                          .answers = answers,
                          .job = job_name,
                          .run = run,
                          .controller = CONTROLLER,
                          .kind = kind};
    if (answers == 0 && kind == MSG_EVENT_DONE) {
        e.code = ERR_TIMEOUT;
        e.text = ran_out;
    }
    fleet_stand_push_event(f, a, 7, &e, T0 + 60 * NS_PER_S);
}

/* "j" failed because its load host was cut off for longer than a lease. That comes back, free by its own
 * word, and "j" is resumed: its second run has the host, and JOB_OPEN is on its way as command 3. */
static struct fleet_agent *resume_after_a_cut(struct fleet_stand *f)
{
    struct fleet_agent *a, *b;
    struct fleet_host hosts[2];
    const uint64_t back = T0 + 60 * NS_PER_S;
    fleet_stand_open_pair(f, &a, &b);
    fleet_poll(f->fleet, a, &f->requests[3], 1, T0);
    assert_int_equal(fleet_stand_command(f, a, "j", MSG_COMMAND_LOAD, 102), ERR_OK);
    fleet_gone(f->fleet, &f->peers[0]);
    for (uint64_t at = T0 + LEASE + FLEET_LOST_EXTRA_NS; at < back;)
        at = fleet_tick(f->fleet, at);
    assert_true(f->seen.lost > 0);
    fleet_release(f->fleet, "j");
    fleet_stand_hello(f, 2, "a", 7, "", NULL, back);
    fleet_stand_hello(f, 3, "b", 9, "", "pool=sut", back);
    f->run = 1;
    assert_int_equal(fleet_stand_reserve(f, "j", "sut", hosts), ERR_OK);
    assert_int_equal(fleet_stand_command(f, a, "j", MSG_COMMAND_JOB_OPEN, 200), ERR_OK);
    memset(&f->seen, 0, sizeof f->seen);
    fleet_poll(f->fleet, a, &f->requests[4], 2, back);
    assert_int_equal(f->seen.command_count, 1);
    assert_int_equal(f->seen.numbers[0], 3);
    assert_int_equal(f->seen.runs[0], 2);
    return a;
}

static enum fleet_state state_of_a(const struct fleet_stand *f)
{
    struct fleet_info info;
    fleet_get(f->fleet, 0, &info);
    assert_string_equal(info.name, "a");
    return info.state;
}

static void test_the_end_of_an_earlier_run_does_not_end_the_present_one(void **state)
{
    struct fleet_stand *f = *state;
    struct fleet_agent *a = resume_after_a_cut(f);
    push_of_run(f, a, 2, 1, 0, MSG_EVENT_DONE);
    assert_int_equal(f->seen.lost, 0);
    assert_int_equal(f->seen.events, 0);
    assert_int_equal(f->seen.acked, 2); /* and it does not come again */
    push_of_run(f, a, 3, 2, 3, MSG_EVENT_DONE);
    assert_int_equal(f->seen.event_answers, 200);
    assert_int_equal(fleet_stand_command(f, a, "j", MSG_COMMAND_SAMPLE, 201), ERR_OK);
}

static void test_a_result_of_an_earlier_run_is_kept_and_answers_nothing(void **state)
{
    struct fleet_stand *f = *state;
    struct fleet_agent *a = resume_after_a_cut(f);
    push_of_run(f, a, 2, 1, 3, MSG_EVENT_LOADED); /* an open number: that of JOB_OPEN */
    assert_int_equal(f->seen.late, 1);
    assert_int_equal(f->seen.events, 0);
    fleet_settle_late(f->fleet, a);
    assert_int_equal(f->seen.acked, 2);
    push_of_run(f, a, 3, 2, 3, MSG_EVENT_DONE); /* the command is open still */
    assert_int_equal(f->seen.events, 1);
    assert_int_equal(f->seen.event_answers, 200);
}

/* What is void of an earlier run is closed as that run, so that the agent keeps a later one. */
static void test_a_void_command_stays_of_its_run(void **state)
{
    struct fleet_stand *f = *state;
    struct fleet_agent *a, *b;
    fleet_stand_open_pair(f, &a, &b);
    fleet_poll(f->fleet, a, &f->requests[3], 1, T0);
    fleet_gone(f->fleet, &f->peers[0]);
    assert_int_equal(fleet_stand_command(f, a, "j", MSG_COMMAND_LOAD, 5), ERR_OK);
    fleet_tick(f->fleet, T0 + LEASE + FLEET_LOST_EXTRA_NS);
    fleet_stand_hello(f, 2, "a", 7, "", NULL, T0 + 60 * NS_PER_S);
    fleet_poll(f->fleet, a, &f->requests[4], 1, T0 + 60 * NS_PER_S);
    assert_int_equal(f->seen.kinds[0], MSG_COMMAND_JOB_CLOSE);
    assert_int_equal(f->seen.runs[0], 1);
}

static void test_an_agent_that_still_holds_an_earlier_run_may_open_the_present_one(void **state)
{
    struct fleet_stand *f = *state;
    struct fleet_agent *a = resume_after_a_cut(f);
    f->held_run = 1;
    fleet_stand_hello(f, 4, "a", 7, "j", NULL, T0 + 61 * NS_PER_S);
    assert_int_equal(f->seen.lost, 0);
    fleet_poll(f->fleet, a, &f->requests[5], 2, T0 + 61 * NS_PER_S);
    assert_int_equal(f->seen.command_count, 1);
    assert_int_equal(f->seen.kinds[0], MSG_COMMAND_JOB_OPEN);
    push_of_run(f, a, 2, 2, 3, MSG_EVENT_DONE);
    /* Once the present one was opened there, an earlier one cannot be what it holds. */
    fleet_stand_hello(f, 5, "a", 7, "j", NULL, T0 + 62 * NS_PER_S);
    assert_int_equal(f->seen.lost, 1);
}

static void test_an_agent_that_gave_up_is_not_free_before_it_says_so(void **state)
{
    struct fleet_stand *f = *state;
    struct fleet_agent *a = resume_after_a_cut(f);
    push_of_run(f, a, 2, 2, 3, MSG_EVENT_DONE); /* to JOB_OPEN */
    fleet_settle(f->fleet, a, 7, 2);
    push_of_run(f, a, 3, 2, 0, MSG_EVENT_DONE);
    assert_int_equal(f->seen.lost, 1);
    assert_non_null(strstr(f->seen.cause, ran_out));
    fleet_release(f->fleet, "j");
    fleet_poll(f->fleet, a, &f->requests[5], 3, T0 + 60 * NS_PER_S);
    assert_int_equal(f->seen.kinds[0], MSG_COMMAND_JOB_CLOSE);
    assert_int_equal(f->seen.numbers[0], 4);
    assert_int_equal(state_of_a(f), FLEET_CLOSING);
    push_of_run(f, a, 4, 2, 4, MSG_EVENT_DONE);
    assert_int_equal(state_of_a(f), FLEET_FREE);
}

/* Command numbers begin anew with a controller: number 1 was another's, too. */
static void test_an_answer_to_an_earlier_controller_answers_nothing(void **state)
{
    struct fleet_stand *f = *state;
    f->held_run = 3;
    struct fleet_agent *a = fleet_stand_hello(f, 0, "a", 7, "j", NULL, T0);
    fleet_poll(f->fleet, a, &f->requests[3], 0, T0);
    assert_int_equal(f->seen.kinds[0], MSG_COMMAND_JOB_CLOSE);
    assert_int_equal(f->seen.numbers[0], 1);
    assert_int_equal(f->seen.runs[0], 3);
    struct msg_event e = {.number = 40,
                          .answers = 1,
                          .job = job_name,
                          .run = 3,
                          .controller = EARLIER_CONTROLLER,
                          .kind = MSG_EVENT_DONE};
    fleet_stand_push_event(f, a, 7, &e, T0);
    assert_int_equal(state_of_a(f), FLEET_CLOSING);
    assert_int_equal(f->seen.acked, 40);
    e.number = 41;
    e.controller = CONTROLLER;
    fleet_stand_push_event(f, a, 7, &e, T0);
    assert_int_equal(state_of_a(f), FLEET_FREE);
}

static void test_an_agent_that_does_not_say_is_believed(void **state)
{
    struct fleet_stand *f = *state;
    struct fleet_agent *a = resume_after_a_cut(f);
    struct msg_event e = {.number = 2, .answers = 3, .job = job_name, .kind = MSG_EVENT_DONE};
    fleet_stand_push_event(f, a, 7, &e, T0 + 60 * NS_PER_S);
    assert_int_equal(f->seen.event_answers, 200);
    fleet_stand_hello(f, 4, "a", 7, "j", NULL, T0 + 61 * NS_PER_S);
    assert_int_equal(f->seen.lost, 0);
    e = (struct msg_event){
        .number = 3, .job = job_name, .kind = MSG_EVENT_DONE, .code = ERR_TIMEOUT, .text = ran_out};
    fleet_stand_push_event(f, a, 7, &e, T0 + 61 * NS_PER_S);
    assert_int_equal(f->seen.lost, 1);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, fleet_stand_set_up, fleet_stand_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_the_end_of_an_earlier_run_does_not_end_the_present_one),
        TEST(test_a_result_of_an_earlier_run_is_kept_and_answers_nothing),
        TEST(test_a_void_command_stays_of_its_run),
        TEST(test_an_agent_that_still_holds_an_earlier_run_may_open_the_present_one),
        TEST(test_an_agent_that_gave_up_is_not_free_before_it_says_so),
        TEST(test_an_answer_to_an_earlier_controller_answers_nothing),
        TEST(test_an_agent_that_does_not_say_is_believed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
