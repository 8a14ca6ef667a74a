#include "controller/run/channel.h"

#include "common/clock.h"
#include "tests/support/child.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static void count_wake(void *arg)
{
    __atomic_fetch_add((int *)arg, 1, __ATOMIC_SEQ_CST);
}

struct fixture {
    struct channel *call;
    int wakes;
};

static int setup(void **state)
{
    static struct fixture f;
    f.wakes = 0;
    f.call = channel_new(&(struct channel_options){.host_count = 2, .wake = count_wake, .arg = &f.wakes});
    *state = &f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    channel_free(f->call);
    return 0;
}

static void deliver(struct fixture *f, uint32_t host, uint64_t number)
{
    struct msg_event e = {.number = number, .kind = MSG_EVENT_DONE};
    channel_deliver(f->call, host, &e);
}

static void take_event(struct fixture *f, uint32_t host, uint64_t number)
{
    struct channel_event e;
    assert_int_equal(channel_next(f->call, clock_now_ns() + 10 * NS_PER_S, &e, NULL), ERR_OK);
    assert_int_equal(e.host, host);
    assert_int_equal(e.event.number, number);
    channel_event_fini(&e);
}

static void expect_settled(struct fixture *f, uint32_t host, uint64_t number)
{
    struct channel_op op;
    assert_true(channel_take(f->call, &op));
    assert_int_equal(op.kind, CHANNEL_OP_SETTLE);
    assert_int_equal(op.host, host);
    assert_int_equal(op.number, number);
    channel_op_fini(&op);
}

static void expect_no_op(struct fixture *f)
{
    struct channel_op op;
    assert_false(channel_take(f->call, &op));
}

static void test_commands_carry_fresh_tags(void **state)
{
    struct fixture *f = *state;
    struct msg_command c = {.kind = MSG_COMMAND_STOP, .u.stop.proc = 9};
    struct channel_op op;
    uint64_t first = channel_send(f->call, 1, &c), second = channel_send(f->call, 0, &c);
    assert_int_not_equal(first, 0);
    assert_int_not_equal(first, second);
    assert_int_equal(f->wakes, 2);
    assert_true(channel_take(f->call, &op));
    assert_int_equal(op.kind, CHANNEL_OP_COMMAND);
    assert_int_equal(op.host, 1);
    assert_int_equal(op.tag, first);
    assert_int_equal(op.command.u.stop.proc, 9);
    channel_op_fini(&op);
    assert_true(channel_take(f->call, &op));
    channel_op_fini(&op);
    expect_no_op(f);
}

static void test_taking_the_next_settles_the_one_before(void **state)
{
    struct fixture *f = *state;
    deliver(f, 0, 1);
    deliver(f, 0, 2);
    take_event(f, 0, 1);
    expect_no_op(f);
    take_event(f, 0, 2);
    expect_settled(f, 0, 1);
    channel_settle(f->call);
    expect_settled(f, 0, 2);
    expect_no_op(f);
}

static void test_a_held_host_waits_the_others_do_not(void **state)
{
    struct fixture *f = *state;
    deliver(f, 0, 5);
    deliver(f, 1, 7);
    deliver(f, 1, 8);
    take_event(f, 0, 5);
    channel_hold(f->call, 0);
    take_event(f, 1, 7);
    take_event(f, 1, 8);
    expect_settled(f, 1, 7);
    expect_no_op(f);
    channel_settle(f->call);
    expect_settled(f, 0, 5);
    expect_settled(f, 1, 8);
}

static void test_deadline(void **state)
{
    struct fixture *f = *state;
    struct channel_event e;
    assert_int_equal(channel_next(f->call, clock_now_ns(), &e, NULL), ERR_TIMEOUT);
    deliver(f, 0, 1); /* what is there comes even when the deadline has passed */
    assert_int_equal(channel_next(f->call, 0, &e, NULL), ERR_OK);
    channel_event_fini(&e);
}

/* Stops the whole process, as an operator may; what came meanwhile is delivered once it goes on. */
static void *stop_then_deliver(void *arg)
{
    struct fixture *f = arg;
    const struct timespec pause = {.tv_nsec = 50 * NS_PER_MS}; /* the job's thread wakes first */
    (void)kill(getpid(), SIGSTOP);
    (void)nanosleep(&pause, NULL);
    deliver(f, 0, 1);
    return NULL;
}

static int wait_while_stopped(void *arg)
{
    struct fixture *f = arg;
    struct channel_event e;
    pthread_t loop;
    CHILD_CHECK(pthread_create(&loop, NULL, stop_then_deliver, f) == 0);
    CHILD_CHECK(channel_next(f->call, clock_now_ns() + 100 * NS_PER_MS, &e, NULL) == ERR_OK);
    channel_event_fini(&e);
    CHILD_CHECK(pthread_join(loop, NULL) == 0);
    /* A deadline that had passed before is no reason to wait. */
    uint64_t before_ns = clock_now_ns();
    CHILD_CHECK(channel_next(f->call, before_ns - 10 * NS_PER_S, &e, NULL) == ERR_TIMEOUT);
    CHILD_CHECK(clock_now_ns() - before_ns < CHANNEL_LATE_NS);
    return 0;
}

/* No agent failed to answer in a time that the controller spent stopped. */
static void test_the_time_we_are_stopped_is_not_the_agents(void **state)
{
    struct fixture *f = *state;
    const struct timespec stopped = {.tv_sec = 2};
    int status = 0;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        _exit(wait_while_stopped(f));
    assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
    assert_true(WIFSTOPPED(status));
    assert_int_equal(nanosleep(&stopped, NULL), 0);
    assert_int_equal(kill(pid, SIGCONT), 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void test_first_failure_counts_until_ignored(void **state)
{
    struct fixture *f = *state;
    struct channel_event e;
    struct err_detail d;
    deliver(f, 0, 1);
    channel_fail(f->call, ERR_UNREACHABLE, "agent 'a' lost");
    channel_fail(f->call, ERR_CANCELLED, "somebody asked");
    assert_int_equal(channel_next(f->call, UINT64_MAX / 2, &e, &d), ERR_UNREACHABLE);
    assert_string_equal(d.text, "agent 'a' lost");
    channel_ignore_failure(f->call);
    take_event(f, 0, 1);
    assert_int_equal(channel_next(f->call, clock_now_ns(), &e, &d), ERR_TIMEOUT);
}

static void *fail_from_afar(void *arg)
{
    channel_fail(arg, ERR_CANCELLED, "now");
    return NULL;
}

static void test_failure_wakes_who_waits(void **state)
{
    struct fixture *f = *state;
    struct channel_event e;
    struct err_detail d;
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, fail_from_afar, f->call), 0);
    assert_int_equal(channel_next(f->call, clock_now_ns() + 60 * NS_PER_S, &e, &d), ERR_CANCELLED);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

static void *send_many(void *arg)
{
    struct msg_command c = {.kind = MSG_COMMAND_SAMPLE};
    for (unsigned i = 0; i < CHANNEL_OPS_MAX * 3; i++)
        channel_send(arg, 0, &c);
    channel_end(arg);
    return NULL;
}

static void test_orders_are_bounded_and_none_is_lost(void **state)
{
    struct fixture *f = *state;
    pthread_t thread;
    unsigned commands = 0;
    bool ended = false;
    assert_int_equal(pthread_create(&thread, NULL, send_many, f->call), 0);
    uint64_t deadline = clock_now_ns() + 30 * NS_PER_S;
    while (!ended && clock_now_ns() < deadline) {
        struct channel_op op;
        if (!channel_take(f->call, &op))
            continue;
        commands += op.kind == CHANNEL_OP_COMMAND;
        ended = op.kind == CHANNEL_OP_ENDED;
        channel_op_fini(&op);
    }
    assert_true(ended);
    assert_int_equal(commands, CHANNEL_OPS_MAX * 3);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

static void test_the_time_left_runs_down_to_what_comes_after(void **state)
{
    (void)state;
    const struct channel_view view = {.step_end_ns = 100, .then_ns = 7};
    assert_true(channel_view_left_ns(&view, 40) == 67);
    assert_true(channel_view_left_ns(&view, 99) == 8);
    assert_true(channel_view_left_ns(&view, 100) == 7);
    assert_true(channel_view_left_ns(&view, 5000) == 7); /* it takes longer than planned */
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_commands_carry_fresh_tags),
        TEST(test_taking_the_next_settles_the_one_before),
        TEST(test_a_held_host_waits_the_others_do_not),
        TEST(test_deadline),
        TEST(test_the_time_we_are_stopped_is_not_the_agents),
        TEST(test_first_failure_counts_until_ignored),
        TEST(test_failure_wakes_who_waits),
        TEST(test_orders_are_bounded_and_none_is_lost),
        cmocka_unit_test(test_the_time_left_runs_down_to_what_comes_after),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
