#include "controller/fleet/fleet.h"

#include "common/clock.h"
#include "common/mem.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define LEASE (10 * NS_PER_S)
#define T0    (1000 * NS_PER_S)

/* What left the fleet, as the link and the jobs would have seen it. */
struct seen {
    size_t polls, pushes, refusals, drops, events, late, lost, changes;
    uint64_t numbers[64]; /* of the last answer to a poll */
    enum msg_command_kind kinds[64];
    size_t command_count;
    uint64_t acked;
    void *dropped;
    uint64_t event_answers, event_number;
    enum msg_event_kind event_kind;
    uint32_t event_host;
    char job[64];
    char cause[256];
    struct fleet_agent *late_agent;
};

struct fixture {
    struct fleet *fleet;
    struct seen seen;
    int peers[8]; /* addresses stand for the link's peers */
    int requests[64];
};

static void answer_poll(void *arg, void *request, const struct msg_command *const *items, size_t count)
{
    struct seen *s = arg;
    assert_non_null(request);
    s->polls++;
    s->command_count = count;
    for (size_t i = 0; i < count && i < 64; i++) {
        s->numbers[i] = items[i]->number;
        s->kinds[i] = items[i]->kind;
    }
}

static void answer_push(void *arg, void *request, uint64_t acked)
{
    struct seen *s = arg;
    assert_non_null(request);
    s->pushes++;
    s->acked = acked;
}

static void refuse(void *arg, void *request, enum err code, const char *why)
{
    (void)request;
    (void)code;
    (void)why;
    ((struct seen *)arg)->refusals++;
}

static void drop_peer(void *arg, void *peer, const char *why)
{
    struct seen *s = arg;
    (void)why;
    s->drops++;
    s->dropped = peer;
}

static void on_event(void *arg, const char *job, uint32_t host, const struct msg_event *e)
{
    struct seen *s = arg;
    s->events++;
    s->event_answers = e->answers;
    s->event_number = e->number;
    s->event_kind = e->kind;
    s->event_host = host;
    snprintf(s->job, sizeof(s->job), "%s", job);
}

static void on_late(void *arg, struct fleet_agent *agent, uint64_t incarnation, const struct msg_event *e)
{
    struct seen *s = arg;
    (void)incarnation;
    (void)e;
    s->late++;
    s->late_agent = agent;
}

static void on_lost(void *arg, const char *job, uint32_t host, const char *cause)
{
    struct seen *s = arg;
    s->lost++;
    s->event_host = host;
    snprintf(s->job, sizeof(s->job), "%s", job);
    snprintf(s->cause, sizeof(s->cause), "%s", cause);
}

static void on_change(void *arg)
{
    ((struct seen *)arg)->changes++;
}

static int setup(void **state)
{
    struct fixture *f = mem_zalloc(1, sizeof(*f));
    f->fleet = fleet_new(&(struct fleet_options){.lease_ns = LEASE,
                                                 .handlers = {.arg = &f->seen,
                                                              .answer_poll = answer_poll,
                                                              .answer_push = answer_push,
                                                              .refuse = refuse,
                                                              .drop_peer = drop_peer,
                                                              .on_event = on_event,
                                                              .on_late = on_late,
                                                              .on_lost = on_lost,
                                                              .on_change = on_change}});
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    fleet_free(f->fleet);
    free(f);
    return 0;
}

static struct fleet_agent *hello(struct fixture *f, int peer, const char *name, uint64_t incarnation,
                                 const char *held, const char *label, uint64_t now)
{
    char *labels[] = {(char *)(uintptr_t)label};
    struct msg_hello m = {.role = MSG_ROLE_AGENT,
                          .name = (char *)(uintptr_t)name,
                          .incarnation = incarnation,
                          .held_job = (char *)(uintptr_t)held,
                          .host = {.cpus = 2, .labels = {.items = labels, .count = label ? 1 : 0}}};
    struct fleet_agent *a = NULL;
    uint64_t acked = 0;
    assert_int_equal(fleet_hello(f->fleet, &f->peers[peer], &m, "10.0.0.1", now, &a, &acked, NULL), ERR_OK);
    return a;
}

static enum err reserve(struct fixture *f, const char *job, const char *label_value, struct fleet_host out[2])
{
    struct experiment_label label = {.key = (char *)(uintptr_t) "pool",
                                     .value = (char *)(uintptr_t)label_value};
    struct fleet_want wants[] = {
        {.role = "load", .count = 1},
        {.role = "server", .labels = &label, .label_count = label_value ? 1 : 0, .count = 1}};
    struct err_detail d;
    return fleet_reserve(f->fleet, job, wants, 2, out, &d);
}

static void push_one(struct fixture *f, struct fleet_agent *a, uint64_t incarnation, uint64_t number,
                     uint64_t answers, enum msg_event_kind kind, const char *job, uint64_t now)
{
    struct msg_event e = {.number = number, .answers = answers, .kind = kind, .job = (char *)(uintptr_t)job};
    struct msg_push p = {.incarnation = incarnation, .items = &e, .count = 1};
    fleet_push(f->fleet, a, &f->requests[number % 64], &p, now);
}

static enum err command(struct fixture *f, struct fleet_agent *a, const char *job, enum msg_command_kind kind,
                        uint64_t tag)
{
    struct msg_command c = {.kind = kind};
    enum err e = fleet_command(f->fleet, a, job, &c, tag);
    fleet_flush(f->fleet);
    return e;
}

/* A pair of agents that job "j" holds: a is its load host (0), b its server (1), both opened. */
static void open_pair(struct fixture *f, struct fleet_agent **a, struct fleet_agent **b)
{
    struct fleet_host hosts[2];
    *a = hello(f, 0, "a", 7, "", NULL, T0);
    *b = hello(f, 1, "b", 8, "", "pool=sut", T0);
    assert_int_equal(reserve(f, "j", "sut", hosts), ERR_OK);
    assert_ptr_equal(hosts[0].agent, *a);
    assert_ptr_equal(hosts[1].agent, *b);
    assert_int_equal(command(f, *a, "j", MSG_COMMAND_JOB_OPEN, 100), ERR_OK);
    assert_int_equal(command(f, *b, "j", MSG_COMMAND_JOB_OPEN, 101), ERR_OK);
    fleet_poll(f->fleet, *a, &f->requests[1], 0, T0);
    fleet_poll(f->fleet, *b, &f->requests[2], 0, T0);
    push_one(f, *a, 7, 1, 1, MSG_EVENT_DONE, "j", T0);
    push_one(f, *b, 8, 1, 1, MSG_EVENT_DONE, "j", T0);
    fleet_settle(f->fleet, *a, 7, 1);
    fleet_settle(f->fleet, *b, 8, 1);
    assert_int_equal(f->seen.events, 2);
    assert_int_equal(f->seen.pushes, 2);
    memset(&f->seen, 0, sizeof(f->seen));
}

static void test_every_state_and_input(void **state)
{
    static const int expected[FLEET_STATE_COUNT][FLEET_INPUT_COUNT] = {
        [FLEET_FREE] = {FLEET_BUSY, FLEET_CLOSING, -1, -1},
        [FLEET_BUSY] = {-1, FLEET_CLOSING, -1, FLEET_FREE},
        [FLEET_CLOSING] = {-1, -1, FLEET_FREE, FLEET_FREE},
    };
    (void)state;
    for (int s = 0; s < FLEET_STATE_COUNT; s++) {
        for (int i = 0; i < FLEET_INPUT_COUNT; i++) {
            enum fleet_state to = FLEET_STATE_COUNT;
            bool ok = fleet_next_state((enum fleet_state)s, (enum fleet_input)i, &to);
            assert_int_equal(ok ? (int)to : -1, expected[s][i]);
        }
    }
}

static void test_all_or_none(void **state)
{
    struct fixture *f = *state;
    struct fleet_host hosts[2];
    hello(f, 0, "a", 1, "", "pool=sut", T0);
    assert_int_equal(reserve(f, "j", "sut", hosts), ERR_NOT_FOUND);
    hello(f, 1, "b", 1, "", NULL, T0);
    assert_int_equal(f->seen.changes, 2);
    assert_int_equal(reserve(f, "j", "nowhere", hosts), ERR_NOT_FOUND);
    /* "a" comes first and would do for the load, but only it can be the server. */
    assert_int_equal(reserve(f, "j", "sut", hosts), ERR_OK);
    assert_string_equal(hosts[0].name, "b");
    assert_string_equal(hosts[1].name, "a");
    assert_int_equal(reserve(f, "k", "sut", hosts), ERR_BUSY);
}

static void test_labels_match_whole(void **state)
{
    struct fixture *f = *state;
    struct fleet_host hosts[2];
    hello(f, 0, "a", 1, "", "pool=sut2", T0);
    hello(f, 1, "b", 1, "", "pool", T0);
    assert_int_equal(reserve(f, "j", "sut", hosts), ERR_NOT_FOUND);
}

static void test_a_command_is_sent_until_it_is_taken(void **state)
{
    struct fixture *f = *state;
    struct fleet_agent *a, *b;
    open_pair(f, &a, &b);
    fleet_poll(f->fleet, a, &f->requests[3], 1, T0);
    assert_int_equal(f->seen.polls, 0); /* held: nothing to say */
    assert_int_equal(command(f, a, "j", MSG_COMMAND_SAMPLE, 5), ERR_OK);
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
    struct fixture *f = *state;
    struct fleet_agent *a, *b;
    open_pair(f, &a, &b);
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
    struct fixture *f = *state;
    struct fleet_agent *a, *b;
    open_pair(f, &a, &b);
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
    struct fixture *f = *state;
    struct fleet_agent *a, *b;
    struct fleet_host hosts[2];
    open_pair(f, &a, &b);
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
    assert_int_equal(command(f, b, "j", MSG_COMMAND_SAMPLE, 5), ERR_CLOSED);
    assert_int_equal(reserve(f, "k", "sut", hosts), ERR_BUSY);
}

static void test_a_revoked_agent_fails_its_job(void **state)
{
    struct fixture *f = *state;
    struct fleet_agent *a, *b;
    open_pair(f, &a, &b);
    fleet_revoke(f->fleet, "nobody", "agent 'nobody' was revoked");
    fleet_revoke(f->fleet, "aa", "agent 'aa' was revoked");
    assert_int_equal(f->seen.lost, 0);
    fleet_revoke(f->fleet, "b", "agent 'b' was revoked by 'ann'");
    assert_int_equal(f->seen.lost, 1);
    assert_int_equal(f->seen.event_host, 1);
    assert_string_equal(f->seen.job, "j");
    assert_string_equal(f->seen.cause, "agent 'b' was revoked by 'ann'");
    assert_int_equal(command(f, b, "j", MSG_COMMAND_SAMPLE, 5), ERR_CLOSED);
    fleet_revoke(f->fleet, "b", "again");
    assert_int_equal(f->seen.lost, 1);
}

static void test_a_short_cut_loses_nothing(void **state)
{
    struct fixture *f = *state;
    struct fleet_agent *a, *b;
    open_pair(f, &a, &b);
    fleet_gone(f->fleet, &f->peers[0]);
    assert_int_equal(command(f, a, "j", MSG_COMMAND_SAMPLE, 5), ERR_OK);
    assert_ptr_equal(hello(f, 2, "a", 7, "j", NULL, T0 + 2 * NS_PER_S), a);
    fleet_tick(f->fleet, T0 + 2 * NS_PER_S);
    assert_int_equal(f->seen.lost, 0);
    fleet_poll(f->fleet, a, &f->requests[3], 1, T0 + 2 * NS_PER_S);
    assert_int_equal(f->seen.command_count, 1);
    assert_int_equal(f->seen.kinds[0], MSG_COMMAND_SAMPLE);
}

static void test_a_new_incarnation_fails_the_job(void **state)
{
    struct fixture *f = *state;
    struct fleet_agent *a, *b;
    struct fleet_host hosts[2];
    open_pair(f, &a, &b);
    hello(f, 2, "a", 99, "", NULL, T0 + NS_PER_S);
    assert_int_equal(f->seen.lost, 1);
    assert_int_equal(f->seen.event_host, 0);
    assert_non_null(strstr(f->seen.cause, "started anew"));
    assert_ptr_equal(f->seen.dropped, &f->peers[0]);
    fleet_release(f->fleet, "j");
    /* The server still has to close; the agent that came back is free. */
    assert_int_equal(reserve(f, "k", "sut", hosts), ERR_BUSY);
    fleet_poll(f->fleet, b, &f->requests[3], 1, T0);
    assert_int_equal(f->seen.kinds[0], MSG_COMMAND_JOB_CLOSE);
    push_one(f, b, 8, 2, 2, MSG_EVENT_DONE, "j", T0);
    assert_int_equal(reserve(f, "k", "sut", hosts), ERR_OK);
    assert_int_equal(command(f, a, "k", MSG_COMMAND_JOB_OPEN, 9), ERR_OK);
    fleet_poll(f->fleet, a, &f->requests[4], 0, T0);
    assert_int_equal(f->seen.numbers[0], 1); /* numbers begin anew with the incarnation */
}

static void test_a_lapsed_lease_is_noticed(void **state)
{
    struct fixture *f = *state;
    struct fleet_agent *a, *b;
    open_pair(f, &a, &b);
    hello(f, 2, "b", 8, "", "pool=sut", T0 + 9 * NS_PER_S);
    assert_int_equal(f->seen.lost, 1);
    assert_non_null(strstr(f->seen.cause, "lease"));
}

static void test_numbers_stay_without_a_gap_after_a_loss(void **state)
{
    struct fixture *f = *state;
    struct fleet_agent *a, *b;
    open_pair(f, &a, &b);
    fleet_gone(f->fleet, &f->peers[0]);
    assert_int_equal(command(f, a, "j", MSG_COMMAND_START, 5), ERR_OK);
    assert_int_equal(command(f, a, "j", MSG_COMMAND_LOAD, 6), ERR_OK);
    fleet_tick(f->fleet, T0 + LEASE + FLEET_LOST_EXTRA_NS);
    hello(f, 2, "a", 7, "", NULL, T0 + 60 * NS_PER_S);
    fleet_poll(f->fleet, a, &f->requests[3], 1, T0 + 60 * NS_PER_S);
    assert_int_equal(f->seen.command_count, 2);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(f->seen.numbers[i], 2 + i);
        assert_int_equal(f->seen.kinds[i], MSG_COMMAND_JOB_CLOSE); /* nothing of a dead job is started */
    }
}

static void test_a_job_of_an_earlier_controller_is_closed(void **state)
{
    struct fixture *f = *state;
    struct fleet_host hosts[2];
    struct fleet_agent *a = hello(f, 0, "a", 7, "old", NULL, T0);
    hello(f, 1, "b", 8, "", "pool=sut", T0);
    assert_int_equal(reserve(f, "j", "sut", hosts), ERR_BUSY);
    /* Its spooled result comes late, numbered from the middle. */
    push_one(f, a, 7, 41, 12, MSG_EVENT_LOADED, "old", T0);
    assert_int_equal(f->seen.late, 1);
    assert_int_equal(f->seen.events, 0);
    assert_int_equal(f->seen.pushes, 0); /* acknowledged when it is kept */
    fleet_settle_late(f->fleet, a);
    assert_int_equal(f->seen.pushes, 1);
    assert_int_equal(f->seen.acked, 41);
    fleet_poll(f->fleet, a, &f->requests[3], 0, T0);
    assert_int_equal(f->seen.kinds[0], MSG_COMMAND_JOB_CLOSE);
    push_one(f, a, 7, 42, 1, MSG_EVENT_DONE, "old", T0);
    assert_int_equal(f->seen.acked, 42);
    assert_int_equal(reserve(f, "j", "sut", hosts), ERR_OK);
}

static void test_an_event_is_delivered_once(void **state)
{
    struct fixture *f = *state;
    struct fleet_agent *a, *b;
    open_pair(f, &a, &b);
    fleet_poll(f->fleet, a, &f->requests[3], 1, T0);
    assert_int_equal(command(f, a, "j", MSG_COMMAND_LOAD, 77), ERR_OK);
    push_one(f, a, 7, 2, 2, MSG_EVENT_PROGRESS, "j", T0);
    assert_int_equal(f->seen.event_answers, 77);
    fleet_settle(f->fleet, a, 7, 2);
    push_one(f, a, 7, 3, 2, MSG_EVENT_LOADED, "j", T0);
    assert_int_equal(f->seen.events, 2);
    assert_int_equal(f->seen.event_kind, MSG_EVENT_LOADED);
    assert_int_equal(f->seen.event_answers, 77);
    assert_int_equal(f->seen.pushes, 1); /* not before it is stored */
    fleet_gone(f->fleet, &f->peers[0]);
    hello(f, 2, "a", 7, "j", NULL, T0);
    push_one(f, a, 7, 3, 2, MSG_EVENT_LOADED, "j", T0); /* sent again */
    assert_int_equal(f->seen.events, 2);
    fleet_settle(f->fleet, a, 7, 3);
    assert_int_equal(f->seen.pushes, 2);
    assert_int_equal(f->seen.acked, 3);
}

static void test_a_held_push_is_answered_in_the_end(void **state)
{
    struct fixture *f = *state;
    struct fleet_agent *a, *b;
    open_pair(f, &a, &b);
    push_one(f, a, 7, 2, 0, MSG_EVENT_EXITED, "j", T0);
    push_one(f, a, 7, 3, 0, MSG_EVENT_EXITED, "j", T0); /* a second one beside it */
    assert_int_equal(f->seen.refusals, 1);
    uint64_t next = fleet_tick(f->fleet, T0);
    assert_int_equal(next, T0 + FLEET_PUSH_HOLD_NS);
    fleet_tick(f->fleet, next);
    assert_int_equal(f->seen.pushes, 1);
    assert_int_equal(f->seen.acked, 1);
}

static void test_invented_answers_are_refused(void **state)
{
    struct fixture *f = *state;
    struct fleet_agent *a, *b;
    open_pair(f, &a, &b);
    push_one(f, a, 7, 2, 99, MSG_EVENT_LOADED, "j", T0);
    push_one(f, a, 7, 3, 1, MSG_EVENT_DONE, "j", T0); /* answered before */
    assert_int_equal(f->seen.events, 0);
    assert_int_equal(f->seen.acked, 3); /* and they do not come again */
    push_one(f, a, 7, 4, 0, MSG_EVENT_EXITED, "another", T0);
    assert_int_equal(f->seen.events, 0);
    assert_int_equal(f->seen.late, 1);
}

static void test_unsettled_events_are_bounded(void **state)
{
    struct fixture *f = *state;
    struct fleet_agent *a, *b;
    open_pair(f, &a, &b);
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
    struct fixture *f = *state;
    struct fleet_agent *a, *b;
    open_pair(f, &a, &b);
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
    struct fixture *f = *state;
    struct fleet_agent *a, *b;
    open_pair(f, &a, &b);
    push_one(f, a, 3, 500, 2, MSG_EVENT_LOADED, "older", T0);
    assert_int_equal(f->seen.late, 1);
    assert_int_equal(f->seen.pushes, 0);
    fleet_tick(f->fleet, T0 + FLEET_PUSH_HOLD_NS);
    assert_int_equal(f->seen.pushes, 0);
    fleet_settle_late(f->fleet, a);
    assert_int_equal(f->seen.pushes, 1);
    assert_int_equal(f->seen.acked, 500);
    push_one(f, a, 7, 2, 0, MSG_EVENT_EXITED, "j", T0); /* the present numbers are not touched by it */
    assert_int_equal(f->seen.events, 1);
}

static void test_release_closes_and_what_comes_then_is_late(void **state)
{
    struct fixture *f = *state;
    struct fleet_agent *a, *b;
    struct fleet_host hosts[2];
    open_pair(f, &a, &b);
    fleet_poll(f->fleet, a, &f->requests[3], 1, T0);
    fleet_release(f->fleet, "j");
    assert_int_equal(f->seen.kinds[0], MSG_COMMAND_JOB_CLOSE);
    assert_int_equal(command(f, a, "j", MSG_COMMAND_SAMPLE, 5), ERR_CLOSED);
    push_one(f, a, 7, 2, 0, MSG_EVENT_EXITED, "j", T0);
    assert_int_equal(f->seen.late, 1);
    assert_int_equal(f->seen.events, 0);
    fleet_settle_late(f->fleet, a);
    push_one(f, a, 7, 3, 2, MSG_EVENT_DONE, "j", T0);
    assert_int_equal(f->seen.changes, 1);
    push_one(f, b, 8, 2, 2, MSG_EVENT_DONE, "j", T0);
    assert_int_equal(reserve(f, "k", "sut", hosts), ERR_OK);
}

static void test_names(void **state)
{
    struct fixture *f = *state;
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

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_every_state_and_input),
        TEST(test_all_or_none),
        TEST(test_labels_match_whole),
        TEST(test_a_command_is_sent_until_it_is_taken),
        TEST(test_one_answer_stays_below_the_frame),
        TEST(test_polls_are_held_and_renew_the_lease),
        TEST(test_silence_beyond_the_lease),
        TEST(test_a_revoked_agent_fails_its_job),
        TEST(test_a_short_cut_loses_nothing),
        TEST(test_a_new_incarnation_fails_the_job),
        TEST(test_a_lapsed_lease_is_noticed),
        TEST(test_numbers_stay_without_a_gap_after_a_loss),
        TEST(test_a_job_of_an_earlier_controller_is_closed),
        TEST(test_an_event_is_delivered_once),
        TEST(test_a_held_push_is_answered_in_the_end),
        TEST(test_invented_answers_are_refused),
        TEST(test_unsettled_events_are_bounded),
        TEST(test_a_push_is_answered_after_all_of_it_is_delivered),
        TEST(test_an_earlier_incarnations_results_are_kept),
        TEST(test_release_closes_and_what_comes_then_is_late),
        TEST(test_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
