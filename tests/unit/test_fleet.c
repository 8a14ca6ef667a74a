#include "common/mem.h"
#include "controller/fleet/fleet_agent.h"
#include "tests/support/fleet_stand.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void test_every_state_and_event(void **state)
{
    static const int expected[FLEET_STATE_COUNT][FLEET_EVENT_COUNT] = {
        [FLEET_FREE] = {FLEET_BUSY, FLEET_CLOSING, -1, -1},
        [FLEET_BUSY] = {-1, FLEET_CLOSING, -1, FLEET_FREE},
        [FLEET_CLOSING] = {-1, -1, FLEET_FREE, FLEET_FREE},
    };
    (void)state;
    for (int s = 0; s < FLEET_STATE_COUNT; s++) {
        for (int i = 0; i < FLEET_EVENT_COUNT; i++) {
            bool ok = fleet_agent_permits((enum fleet_state)s, (enum fleet_event)i);
            assert_int_equal(ok, expected[s][i] >= 0);
            if (!ok)
                continue;
            struct fleet_agent *a = fleet_agent_new("a");
            a->state = (enum fleet_state)s;
            mem_set_string(&a->job, "j");
            fleet_agent_handle(a, (enum fleet_event)i);
            assert_int_equal(a->state, expected[s][i]);
            assert_true((a->state == FLEET_FREE) == (a->job == NULL));
            assert_int_equal(a->owned, i == FLEET_EVENT_RESERVE);
            fleet_agent_free(a);
        }
    }
}

static void test_all_or_none(void **state)
{
    struct fleet_stand *f = *state;
    struct fleet_host hosts[2];
    fleet_stand_hello(f, 0, "a", 1, "", "pool=sut", T0);
    assert_int_equal(fleet_stand_reserve(f, "j", "sut", hosts), ERR_NOT_FOUND);
    fleet_stand_hello(f, 1, "b", 1, "", NULL, T0);
    assert_int_equal(f->seen.changes, 2);
    assert_int_equal(fleet_stand_reserve(f, "j", "nowhere", hosts), ERR_NOT_FOUND);
    /* "a" comes first and would do for the load, but only it can be the server. */
    assert_int_equal(fleet_stand_reserve(f, "j", "sut", hosts), ERR_OK);
    assert_string_equal(hosts[0].name, "b");
    assert_string_equal(hosts[1].name, "a");
    assert_int_equal(fleet_stand_reserve(f, "k", "sut", hosts), ERR_BUSY);
}

static void test_labels_match_whole(void **state)
{
    struct fleet_stand *f = *state;
    struct fleet_host hosts[2];
    fleet_stand_hello(f, 0, "a", 1, "", "pool=sut2", T0);
    fleet_stand_hello(f, 1, "b", 1, "", "pool", T0);
    assert_int_equal(fleet_stand_reserve(f, "j", "sut", hosts), ERR_NOT_FOUND);
}

static void test_a_command_is_sent_until_it_is_taken(void **state)
{
    struct fleet_stand *f = *state;
    struct fleet_agent *a, *b;
    fleet_stand_open_pair(f, &a, &b);
    fleet_poll(f->fleet, a, &f->requests[3], 1, T0);
    assert_int_equal(f->seen.polls, 0); /* held: nothing to say */
    assert_int_equal(fleet_stand_command(f, a, "j", MSG_COMMAND_SAMPLE, 5), ERR_OK);
    assert_int_equal(f->seen.polls, 1);
    assert_int_equal(f->seen.command_count, 1);
    assert_int_equal(f->seen.numbers[0], 2);
    fleet_poll(f->fleet, a, &f->requests[4], 1, T0); /* the answer was lost */
    assert_int_equal(f->seen.polls, 2);
    assert_int_equal(f->seen.numbers[0], 2);
    fleet_poll(f->fleet, a, &f->requests[5], 2, T0);
    assert_int_equal(f->seen.polls, 2);
    fleet_poll(f->fleet, a, &f->requests[6], 3, T0); /* never sent */
    assert_int_equal(f->seen.refusals, 1);
}

static void test_one_answer_stays_below_the_frame(void **state)
{
    struct fleet_stand *f = *state;
    struct fleet_agent *a, *b;
    fleet_stand_open_pair(f, &a, &b);
    struct msg_command c = {.kind = MSG_COMMAND_CHUNK};
    c.u.chunk.data = (struct msg_bytes){.data = mem_zalloc(1, LIMIT_CHUNK_BYTES), .len = LIMIT_CHUNK_BYTES};
    for (uint64_t i = 0; i < 3; i++)
        assert_int_equal(fleet_command(f->fleet, b, "j", &c, 10 + i), ERR_OK);
    free(c.u.chunk.data.data);
    fleet_poll(f->fleet, b, &f->requests[3], 1, T0);
    assert_int_equal(f->seen.command_count, 1);
}

static void test_polls_are_held_and_renew_the_lease(void **state)
{
    struct fleet_stand *f = *state;
    struct fleet_agent *a, *b;
    fleet_stand_open_pair(f, &a, &b);
    uint64_t now = T0;
    fleet_poll(f->fleet, a, &f->requests[3], 1, now);
    fleet_poll(f->fleet, b, &f->requests[4], 1, now);
    uint64_t next = fleet_tick(f->fleet, now);
    assert_int_equal(next, now + LEASE / FLEET_POLLS_PER_LEASE);
    assert_int_equal(f->seen.polls, 0);
    fleet_tick(f->fleet, next);
    assert_int_equal(f->seen.polls, 2);
    assert_int_equal(f->seen.command_count, 0);
    for (int i = 0; i < 20; i++) { /* a minute and a half of polls: nobody is lost */
        now += LEASE / 2;
        fleet_poll(f->fleet, a, &f->requests[5], 1, now);
        fleet_poll(f->fleet, b, &f->requests[6], 1, now);
        fleet_tick(f->fleet, now);
    }
    assert_int_equal(f->seen.lost, 0);
}

static void test_silence_beyond_the_lease(void **state)
{
    struct fleet_stand *f = *state;
    struct fleet_agent *a, *b;
    struct fleet_host hosts[2];
    fleet_stand_open_pair(f, &a, &b);
    fleet_poll(f->fleet, a, &f->requests[3], 1, T0 + 9 * NS_PER_S);
    fleet_tick(f->fleet, T0 + LEASE + FLEET_LOST_EXTRA_NS - 1);
    assert_int_equal(f->seen.lost, 0);
    fleet_tick(f->fleet, T0 + LEASE + FLEET_LOST_EXTRA_NS);
    assert_int_equal(f->seen.lost, 1);
    assert_int_equal(f->seen.event_host, 1);
    assert_string_equal(f->seen.job, "j");
    assert_non_null(strstr(f->seen.cause, "'b'"));
    assert_non_null(strstr(f->seen.cause, "11 s"));
    assert_ptr_equal(f->seen.dropped, &f->peers[1]); /* half open: the link lets go of it, too */
    assert_int_equal(fleet_stand_command(f, b, "j", MSG_COMMAND_SAMPLE, 5), ERR_CLOSED);
    assert_int_equal(fleet_stand_reserve(f, "k", "sut", hosts), ERR_BUSY);
}

/* Somebody closed it: no network does that. */
static void test_a_closed_connection_is_not_the_networks(void **state)
{
    struct fleet_stand *f = *state;
    struct fleet_agent *a, *b;
    fleet_stand_open_pair(f, &a, &b);
    fleet_poll(f->fleet, a, &f->requests[3], 1, T0 + 9 * NS_PER_S);
    fleet_gone(f->fleet, &f->peers[1]);
    fleet_tick(f->fleet, T0 + LEASE + FLEET_LOST_EXTRA_NS);
    assert_int_equal(f->seen.lost, 1);
    assert_non_null(strstr(f->seen.cause, "'b' lost: nothing heard for 11 s: its connection was closed"));
    assert_null(strstr(f->seen.cause, "network"));
}

/* Stopped for 30 s: what the agents said meanwhile lies unread, and nobody is lost for it. */
static void test_our_own_pause_is_nobodys_silence(void **state)
{
    struct fleet_stand *f = *state;
    struct fleet_agent *a, *b;
    fleet_stand_open_pair(f, &a, &b);
    uint64_t due = fleet_tick(f->fleet, T0);
    uint64_t woken = due + 30 * NS_PER_S;
    uint64_t left_ns = LEASE + FLEET_LOST_EXTRA_NS - (due - T0);
    fleet_tick(f->fleet, woken);
    assert_int_equal(f->seen.lost, 0);
    fleet_poll(f->fleet, a, &f->requests[3], 1, woken);
    fleet_tick(f->fleet, woken + left_ns - 1);
    assert_int_equal(f->seen.lost, 0);
    for (uint64_t at = woken + left_ns; f->seen.lost == 0; at = fleet_tick(f->fleet, at))
        assert_true(at < woken + 2 * LEASE);
    assert_int_equal(f->seen.event_host, 1); /* who goes on saying nothing is */
}

/* The agents' own leases do not wait for us: that the job ended there is ours. */
static void test_a_lease_that_ran_out_in_our_pause_is_our_doing(void **state)
{
    struct fleet_stand *f = *state;
    struct fleet_agent *a, *b;
    fleet_stand_open_pair(f, &a, &b);
    uint64_t woken = fleet_tick(f->fleet, T0) + 15 * NS_PER_S;
    fleet_stand_hello(f, 2, "b", 8, "", "pool=sut", woken); /* before any tick */
    assert_int_equal(f->seen.lost, 1);
    assert_non_null(strstr(f->seen.cause, "the controller stood still for 15 s"));
    assert_non_null(strstr(f->seen.cause, "'b'"));
    char text[] = "heard nothing from the controller for 10000 ms: the job was ended here";
    char job[] = "j";
    struct msg_event e = {.number = 2, .job = job, .kind = MSG_EVENT_DONE, .code = ERR_TIMEOUT, .text = text};
    fleet_stand_push_event(f, a, 7, &e, woken);
    assert_int_equal(f->seen.lost, 2);
    assert_non_null(strstr(f->seen.cause, "the controller stood still for 15 s"));
}

static void test_a_revoked_agent_fails_its_job(void **state)
{
    struct fleet_stand *f = *state;
    struct fleet_agent *a, *b;
    fleet_stand_open_pair(f, &a, &b);
    fleet_revoke(f->fleet, "nobody", "agent 'nobody' was revoked");
    fleet_revoke(f->fleet, "aa", "agent 'aa' was revoked");
    assert_int_equal(f->seen.lost, 0);
    fleet_revoke(f->fleet, "b", "agent 'b' was revoked by 'ann'");
    assert_int_equal(f->seen.lost, 1);
    assert_int_equal(f->seen.event_host, 1);
    assert_string_equal(f->seen.job, "j");
    assert_string_equal(f->seen.cause, "agent 'b' was revoked by 'ann'");
    assert_int_equal(fleet_stand_command(f, b, "j", MSG_COMMAND_SAMPLE, 5), ERR_CLOSED);
    fleet_revoke(f->fleet, "b", "again");
    assert_int_equal(f->seen.lost, 1);
}

static void test_a_short_cut_loses_nothing(void **state)
{
    struct fleet_stand *f = *state;
    struct fleet_agent *a, *b;
    fleet_stand_open_pair(f, &a, &b);
    fleet_gone(f->fleet, &f->peers[0]);
    assert_int_equal(fleet_stand_command(f, a, "j", MSG_COMMAND_SAMPLE, 5), ERR_OK);
    assert_ptr_equal(fleet_stand_hello(f, 2, "a", 7, "j", NULL, T0 + 2 * NS_PER_S), a);
    fleet_tick(f->fleet, T0 + 2 * NS_PER_S);
    assert_int_equal(f->seen.lost, 0);
    fleet_poll(f->fleet, a, &f->requests[3], 1, T0 + 2 * NS_PER_S);
    assert_int_equal(f->seen.command_count, 1);
    assert_int_equal(f->seen.kinds[0], MSG_COMMAND_SAMPLE);
}

static void test_a_new_incarnation_fails_the_job(void **state)
{
    struct fleet_stand *f = *state;
    struct fleet_agent *a, *b;
    struct fleet_host hosts[2];
    fleet_stand_open_pair(f, &a, &b);
    fleet_stand_hello(f, 2, "a", 99, "", NULL,
                      T0 + LEASE - 1); /* before the end of the old connection is seen */
    assert_int_equal(f->seen.lost, 1);
    assert_int_equal(f->seen.event_host, 0);
    assert_non_null(strstr(f->seen.cause, "started anew"));
    assert_ptr_equal(f->seen.dropped, &f->peers[0]);
    fleet_release(f->fleet, "j");
    /* The server still has to close; the agent that came back is free. */
    assert_int_equal(fleet_stand_reserve(f, "k", "sut", hosts), ERR_BUSY);
    fleet_poll(f->fleet, b, &f->requests[3], 1, T0);
    assert_int_equal(f->seen.kinds[0], MSG_COMMAND_JOB_CLOSE);
    fleet_stand_push(f, b, 8, 2, 2, MSG_EVENT_DONE, "j", T0);
    assert_int_equal(fleet_stand_reserve(f, "k", "sut", hosts), ERR_OK);
    assert_int_equal(fleet_stand_command(f, a, "k", MSG_COMMAND_JOB_OPEN, 9), ERR_OK);
    fleet_poll(f->fleet, a, &f->requests[4], 0, T0);
    assert_int_equal(f->seen.numbers[0], 1); /* numbers begin anew with the incarnation */
}

/* An agent that is told to end says so before its answers, which would look like failures of the target. */
static void test_an_agent_that_ends_the_job_is_lost(void **state)
{
    struct fleet_stand *f = *state;
    struct fleet_agent *a, *b;
    fleet_stand_open_pair(f, &a, &b);
    struct msg_event e[] = {{.number = 2,
                             .kind = MSG_EVENT_DONE,
                             .job = (char *)(uintptr_t) "j",
                             .code = ERR_CANCELLED,
                             .text = (char *)(uintptr_t) "told to end"},
                            {.number = 3,
                             .answers = 2,
                             .kind = MSG_EVENT_DONE,
                             .job = (char *)(uintptr_t) "j",
                             .code = ERR_CANCELLED}};
    struct msg_push p = {.incarnation = 8, .items = e, .count = 2};
    assert_int_equal(fleet_stand_command(f, b, "j", MSG_COMMAND_START, 102), ERR_OK);
    fleet_push(f->fleet, b, &f->requests[3], &p, T0);
    assert_int_equal(f->seen.lost, 1);
    assert_string_equal(f->seen.cause, "agent 'b' lost: told to end");
    assert_int_equal(f->seen.event_host, 1);
    assert_int_equal(f->seen.events, 1); /* START is answered once, after the loss, not by the agent */
    assert_int_equal(f->seen.event_answers, 102);
    assert_int_equal(f->seen.acked, 3);
    assert_int_equal(fleet_stand_command(f, b, "j", MSG_COMMAND_STOP, 103), ERR_CLOSED);
}

/* A host that slept tells what became of the job when it wakes; by then the job may have been resumed on it.
 */
static void test_what_was_before_a_job_was_resumed_does_not_end_it(void **state)
{
    struct fleet_stand *f = *state;
    struct fleet_agent *a, *b;
    struct fleet_host hosts[2];
    struct msg_event lapsed = {.number = 2,
                               .kind = MSG_EVENT_DONE,
                               .job = (char *)(uintptr_t) "j",
                               .code = ERR_TIMEOUT,
                               .text = (char *)(uintptr_t) "lapsed"};
    struct msg_push p = {.incarnation = 7, .items = &lapsed, .count = 1};
    fleet_stand_open_pair(f, &a, &b);
    fleet_poll(f->fleet, b, &f->requests[3], 0, T0 + LEASE);
    fleet_tick(f->fleet, T0 + 2 * LEASE - 1);
    assert_int_equal(f->seen.lost, 1);
    assert_int_equal(f->seen.event_host, 0);
    fleet_release(f->fleet, "j");
    fleet_stand_push(f, b, 8, 2, 2, MSG_EVENT_DONE, "j", T0 + 2 * LEASE);
    fleet_stand_hello(f, 2, "a", 7, "", NULL, T0 + 2 * LEASE);
    assert_int_equal(fleet_stand_reserve(f, "j", "sut", hosts), ERR_OK);
    memset(&f->seen, 0, sizeof f->seen);
    assert_int_equal(fleet_stand_command(f, a, "j", MSG_COMMAND_JOB_OPEN, 9), ERR_OK);
    fleet_push(f->fleet, a, &f->requests[4], &p, T0 + 2 * LEASE);
    fleet_stand_push(f, a, 7, 3, 0, MSG_EVENT_EXITED, "j", T0 + 2 * LEASE);
    assert_int_equal(f->seen.lost, 0);
    assert_int_equal(f->seen.events, 0);
    assert_int_equal(f->seen.late, 1);
    fleet_settle_late(f->fleet, a);
    fleet_stand_push(f, a, 7, 4, 2, MSG_EVENT_DONE, "j", T0 + 2 * LEASE);
    assert_int_equal(f->seen.event_answers, 9);
    fleet_settle(f->fleet, a, 7, 4);
    lapsed.number = 5;
    fleet_push(f->fleet, a, &f->requests[4], &p, T0 + 2 * LEASE);
    assert_int_equal(f->seen.lost, 1);
}

/* A job that closes its hosts does not wait for one that cannot answer any more. */
static void test_a_loss_answers_what_is_open(void **state)
{
    struct fleet_stand *f = *state;
    struct fleet_agent *a, *b;
    fleet_stand_open_pair(f, &a, &b);
    assert_int_equal(fleet_stand_command(f, b, "j", MSG_COMMAND_JOB_CLOSE, 104), ERR_OK);
    fleet_gone(f->fleet, &f->peers[1]);
    (void)fleet_stand_hello(f, 2, "b", 9, "", "pool=sut", T0);
    assert_int_equal(f->seen.lost, 0); /* the job gave it back before */
    assert_int_equal(f->seen.events, 1);
    assert_int_equal(f->seen.event_answers, 104);
    assert_string_equal(f->seen.job, "j");
}

static void test_a_lapsed_lease_is_noticed(void **state)
{
    struct fleet_stand *f = *state;
    struct fleet_agent *a, *b;
    fleet_stand_open_pair(f, &a, &b);
    fleet_stand_hello(f, 2, "b", 8, "", "pool=sut", T0 + 9 * NS_PER_S);
    assert_int_equal(f->seen.lost, 1);
    assert_non_null(strstr(f->seen.cause, "lease"));
}

static void test_numbers_stay_without_a_gap_after_a_loss(void **state)
{
    struct fleet_stand *f = *state;
    struct fleet_agent *a, *b;
    fleet_stand_open_pair(f, &a, &b);
    fleet_gone(f->fleet, &f->peers[0]);
    assert_int_equal(fleet_stand_command(f, a, "j", MSG_COMMAND_START, 5), ERR_OK);
    assert_int_equal(fleet_stand_command(f, a, "j", MSG_COMMAND_LOAD, 6), ERR_OK);
    fleet_tick(f->fleet, T0 + LEASE + FLEET_LOST_EXTRA_NS);
    fleet_stand_hello(f, 2, "a", 7, "", NULL, T0 + 60 * NS_PER_S);
    fleet_poll(f->fleet, a, &f->requests[3], 1, T0 + 60 * NS_PER_S);
    assert_int_equal(f->seen.command_count, 2);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(f->seen.numbers[i], 2 + i);
        assert_int_equal(f->seen.kinds[i], MSG_COMMAND_JOB_CLOSE); /* nothing of a dead job is started */
    }
}

static void test_a_job_of_an_earlier_controller_is_closed(void **state)
{
    struct fleet_stand *f = *state;
    struct fleet_host hosts[2];
    struct fleet_agent *a = fleet_stand_hello(f, 0, "a", 7, "old", NULL, T0);
    fleet_stand_hello(f, 1, "b", 8, "", "pool=sut", T0);
    assert_int_equal(fleet_stand_reserve(f, "j", "sut", hosts), ERR_BUSY);
    /* Its spooled result comes late, numbered from the middle. */
    fleet_stand_push(f, a, 7, 41, 12, MSG_EVENT_LOADED, "old", T0);
    assert_int_equal(f->seen.late, 1);
    assert_int_equal(f->seen.events, 0);
    assert_int_equal(f->seen.pushes, 0); /* acknowledged when it is kept */
    fleet_settle_late(f->fleet, a);
    assert_int_equal(f->seen.pushes, 1);
    assert_int_equal(f->seen.acked, 41);
    fleet_poll(f->fleet, a, &f->requests[3], 0, T0);
    assert_int_equal(f->seen.kinds[0], MSG_COMMAND_JOB_CLOSE);
    fleet_stand_push(f, a, 7, 42, 1, MSG_EVENT_DONE, "old", T0);
    assert_int_equal(f->seen.acked, 42);
    assert_int_equal(fleet_stand_reserve(f, "j", "sut", hosts), ERR_OK);
}

/* Two programs with one name: the one that works goes on, the other is told. */
static void test_a_twin_is_refused(void **state)
{
    struct fleet_stand *f = *state;
    struct fleet_agent *a, *b, *twin = NULL;
    uint64_t acked = 0;
    struct err_detail d;
    const uint64_t silence_ns = 2 * LEASE / FLEET_POLLS_PER_LEASE;
    char name[] = "a";
    fleet_stand_open_pair(f, &a, &b);
    struct msg_hello m = {.role = MSG_ROLE_AGENT, .name = name, .incarnation = 99};
    assert_int_equal(
        fleet_hello(f->fleet, &f->peers[2], &m, "10.0.0.2", T0 + silence_ns - 1, &twin, &acked, &d),
        ERR_BUSY);
    assert_non_null(strstr(d.text, "another agent called 'a' is connected from 10.0.0.1"));
    assert_int_equal(f->seen.lost, 0);
    assert_null(f->seen.dropped);
    m.incarnation = 7; /* the same program on a new connection */
    assert_int_equal(fleet_hello(f->fleet, &f->peers[2], &m, "10.0.0.1", T0, &twin, &acked, &d), ERR_OK);
    m.incarnation = 99; /* a new program, and the old one is silent: its host went down */
    assert_int_equal(fleet_hello(f->fleet, &f->peers[3], &m, "10.0.0.1", T0 + silence_ns, &twin, &acked, &d),
                     ERR_OK);
    assert_int_equal(f->seen.lost, 1);
}

static void test_names(void **state)
{
    struct fleet_stand *f = *state;
    struct msg_hello m = {.role = MSG_ROLE_AGENT};
    struct fleet_agent *a = NULL;
    uint64_t acked = 0;
    struct err_detail d;
    char name[LIMIT_NAME_BYTES + 2];
    assert_int_equal(fleet_hello(f->fleet, &f->peers[0], &m, "", T0, &a, &acked, &d), ERR_INVALID);
    memset(name, 'x', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    m.name = name;
    assert_int_equal(fleet_hello(f->fleet, &f->peers[0], &m, "", T0, &a, &acked, &d), ERR_INVALID);
    name[LIMIT_NAME_BYTES] = '\0';
    assert_int_equal(fleet_hello(f->fleet, &f->peers[0], &m, "", T0, &a, &acked, &d), ERR_OK);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, fleet_stand_set_up, fleet_stand_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_every_state_and_event),
        TEST(test_all_or_none),
        TEST(test_labels_match_whole),
        TEST(test_a_command_is_sent_until_it_is_taken),
        TEST(test_one_answer_stays_below_the_frame),
        TEST(test_polls_are_held_and_renew_the_lease),
        TEST(test_silence_beyond_the_lease),
        TEST(test_a_closed_connection_is_not_the_networks),
        TEST(test_our_own_pause_is_nobodys_silence),
        TEST(test_a_lease_that_ran_out_in_our_pause_is_our_doing),
        TEST(test_a_revoked_agent_fails_its_job),
        TEST(test_a_short_cut_loses_nothing),
        TEST(test_a_new_incarnation_fails_the_job),
        TEST(test_an_agent_that_ends_the_job_is_lost),
        TEST(test_what_was_before_a_job_was_resumed_does_not_end_it),
        TEST(test_a_loss_answers_what_is_open),
        TEST(test_a_lapsed_lease_is_noticed),
        TEST(test_numbers_stay_without_a_gap_after_a_loss),
        TEST(test_a_job_of_an_earlier_controller_is_closed),
        TEST(test_a_twin_is_refused),
        TEST(test_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
