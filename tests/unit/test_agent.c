/* The agent against a real link server, with real tasks: each state with each command, the lease, the end. */
#include "agent/agent.h"
#include "agent/process/supervisor.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/mem.h"
#include "tests/support/mini_controller.h"
#include "tests/support/scratch.h"

#include <inttypes.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

struct fixture {
    struct scratch scratch;
    char address[96];
    uv_loop_t loop;
    struct mini controller;
    struct agent *agent;
    bool closed;
    uint64_t wanted; /* an answer waited for */
    uint64_t last;   /* number of the last command sent */
};

static void on_final(void *arg, enum err e, const char *why)
{
    (void)arg;
    fail_msg("final: %s %s", err_text(e), why);
}

static void on_closed(void *arg)
{
    ((struct fixture *)arg)->closed = true;
}

static bool is_closed(void *arg)
{
    return ((struct fixture *)arg)->closed;
}

static int set_up(void **state)
{
    struct fixture *f = mem_zalloc(1, sizeof *f);
    scratch_init(&f->scratch);
    snprintf(f->address, sizeof f->address, "ipc://%s/sock", f->scratch.dir);
    assert_int_equal(uv_loop_init(&f->loop), 0);
    mini_init(&f->controller, &f->loop, f->address);
    struct msg_host host = mini_host();
    struct err_detail d = {""};
    enum err e = agent_new(&(struct agent_options){.loop = &f->loop,
                                                   .address = f->address,
                                                   .name = "agent-1",
                                                   .host = &host,
                                                   .state_dir = f->scratch.dir,
                                                   .load_program = "/bin/true",
                                                   .on_final = on_final,
                                                   .arg = f},
                           &f->agent, &d);
    if (e != ERR_OK)
        fail_msg("%s", d.text);
    *state = f;
    return 0;
}

static void close_agent(struct fixture *f)
{
    mini_settle(&f->controller);
    agent_close(&f->agent, on_closed, f);
    assert_null(f->agent);
    wait_until(&f->loop, is_closed, f, "the agent to close");
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    if (f->agent != NULL)
        close_agent(f);
    mini_fini(&f->controller);
    assert_int_equal(uv_loop_close(&f->loop), 0);
    scratch_fini(&f->scratch);
    free(f);
    return 0;
}

static bool is_answered(void *arg)
{
    const struct fixture *f = arg;
    return mini_answer(&f->controller, f->wanted) != NULL;
}

static const struct msg_event *wait_answer(struct fixture *f, uint64_t number)
{
    f->wanted = number;
    wait_until(&f->loop, is_answered, f, "an answer");
    return mini_answer(&f->controller, number);
}

static uint64_t send_command(struct fixture *f, const char *job, enum msg_command_kind kind)
{
    mini_send_simple(&f->controller, ++f->last, job, kind);
    return f->last;
}

/* Sends it, waits for the answer, checks its code. */
static const struct msg_event *expect(struct fixture *f, const char *job, enum msg_command_kind kind,
                                      enum err code)
{
    const struct msg_event *e = wait_answer(f, send_command(f, job, kind));
    if (e->code != code)
        fail_msg("%s: %s, not %s: %s", msg_command_name(kind), err_text(e->code), err_text(code),
                 msg_text(e->text));
    assert_string_equal(e->job, job);
    return e;
}

/* The same of a controller that says which run of "a" it means, and who it is; the answer gives both back. */
static const struct msg_event *expect_of_run(struct fixture *f, uint64_t run, uint64_t controller,
                                             enum msg_command_kind kind, enum err code)
{
    static char job[] = "a";
    struct msg_command c = {
        .number = ++f->last, .job = job, .run = run, .controller = controller, .kind = kind};
    mini_send(&f->controller, &c);
    const struct msg_event *e = wait_answer(f, f->last);
    if (e->code != code)
        fail_msg("%s of run %" PRIu64 ": %s, not %s: %s", msg_command_name(kind), run, err_text(e->code),
                 err_text(code), msg_text(e->text));
    assert_int_equal(e->run, run);
    assert_int_equal(e->controller, controller);
    return e;
}

static void test_when_free(void **state)
{
    struct fixture *f = *state;
    assert_string_equal(agent_job(f->agent), "");
    expect(f, "a", MSG_COMMAND_SAMPLE, ERR_NOT_NOW);
    expect(f, "a", MSG_COMMAND_JOB_CLOSE, ERR_OK);
    expect(f, "a", MSG_COMMAND_JOB_OPEN, ERR_OK);
    assert_string_equal(agent_job(f->agent), "a");
}

static void test_when_held(void **state)
{
    struct fixture *f = *state;
    expect(f, "a", MSG_COMMAND_JOB_OPEN, ERR_OK);
    expect(f, "a", MSG_COMMAND_JOB_OPEN, ERR_OK);
    const struct msg_event *e = expect(f, "b", MSG_COMMAND_JOB_OPEN, ERR_BUSY);
    assert_non_null(strstr(e->text, "job a"));
    expect(f, "b", MSG_COMMAND_SAMPLE, ERR_NOT_NOW);
    expect(f, "b", MSG_COMMAND_JOB_CLOSE, ERR_OK);
    e = expect(f, "a", MSG_COMMAND_SAMPLE, ERR_OK);
    assert_int_equal(e->kind, MSG_EVENT_SAMPLED);
    assert_string_equal(agent_job(f->agent), "a");
    expect(f, "a", MSG_COMMAND_JOB_CLOSE, ERR_OK);
    assert_string_equal(agent_job(f->agent), "");
    expect(f, "a", MSG_COMMAND_SAMPLE, ERR_NOT_NOW);
}

/* Everything in one answer to a poll: what follows the close waits for it, in order. */
static void test_when_closing(void **state)
{
    struct fixture *f = *state;
    expect(f, "a", MSG_COMMAND_JOB_OPEN, ERR_OK);
    f->controller.mute_polls = true; /* gather */
    uint64_t close_a = send_command(f, "a", MSG_COMMAND_JOB_CLOSE);
    uint64_t sample_a = send_command(f, "a", MSG_COMMAND_SAMPLE);
    uint64_t close_again = send_command(f, "a", MSG_COMMAND_JOB_CLOSE);
    uint64_t open_b = send_command(f, "b", MSG_COMMAND_JOB_OPEN);
    uint64_t sample_b = send_command(f, "b", MSG_COMMAND_SAMPLE);
    f->controller.mute_polls = false;
    uint64_t last = send_command(f, "b", MSG_COMMAND_SAMPLE);
    assert_int_equal(wait_answer(f, last)->code, ERR_OK);
    assert_int_equal(wait_answer(f, close_a)->code, ERR_OK);
    assert_int_equal(wait_answer(f, sample_a)->code, ERR_NOT_NOW);
    assert_int_equal(wait_answer(f, close_again)->code, ERR_OK);
    assert_int_equal(wait_answer(f, open_b)->code, ERR_OK);
    assert_int_equal(wait_answer(f, sample_b)->code, ERR_OK);
    assert_true(wait_answer(f, close_a)->number < wait_answer(f, open_b)->number);
    assert_string_equal(agent_job(f->agent), "b");
}

static bool is_unasked(void *arg)
{
    const struct fixture *f = arg;
    const struct msg_event *e = mini_answer(&f->controller, 0);
    return e != NULL && e->kind == MSG_EVENT_DONE;
}

static bool is_free(void *arg)
{
    return agent_job(((struct fixture *)arg)->agent)[0] == '\0';
}

static void test_lapse(void **state)
{
    struct fixture *f = *state;
    f->controller.lease_ns = NS_PER_S / 2;
    f->controller.poll_ns = NS_PER_S / 10;
    expect_of_run(f, 4, 9, MSG_COMMAND_JOB_OPEN, ERR_OK);
    f->controller.mute_polls = true;
    wait_until(&f->loop, is_unasked, f, "the news that the lease ran out");
    const struct msg_event *e = mini_answer(&f->controller, 0);
    assert_int_equal(e->code, ERR_TIMEOUT);
    assert_int_equal(e->run, 4);
    assert_int_equal(e->controller, 9);
    assert_string_equal(e->job, "a");
    assert_non_null(strstr(e->text, "500 ms"));
    wait_until(&f->loop, is_free, f, "the host to be free");
}

/* Renewed again and again, a job outlives many leases. */
static void test_renewed(void **state)
{
    struct fixture *f = *state;
    f->controller.lease_ns = NS_PER_S;
    f->controller.poll_ns = NS_PER_S / 20;
    expect(f, "a", MSG_COMMAND_JOB_OPEN, ERR_OK);
    uint64_t until = clock_now_ns() + 2 * NS_PER_S;
    while (clock_now_ns() < until)
        uv_run(&f->loop, UV_RUN_ONCE);
    assert_string_equal(agent_job(f->agent), "a");
    expect(f, "a", MSG_COMMAND_SAMPLE, ERR_OK);
}

/* A cut shorter than the lease: the job is still there, and the next HELLO says so. */
static void test_short_cut(void **state)
{
    struct fixture *f = *state;
    f->controller.poll_ns = NS_PER_S / 100;
    expect(f, "a", MSG_COMMAND_JOB_OPEN, ERR_OK);
    f->controller.mute_polls = true; /* a line that swallows everything */
    mini_wait_count(&f->controller, &f->controller.hellos, 2, "the second session");
    f->controller.mute_polls = false;
    assert_string_equal(f->controller.held_job, "a");
    assert_string_equal(agent_job(f->agent), "a");
    expect(f, "a", MSG_COMMAND_SAMPLE, ERR_OK);
}

static const struct msg_event *start_sleeper(struct fixture *f)
{
    static char program[] = "sleep";
    static char seconds[] = "1000";
    static char job[] = "a";
    static char root[] = "/";
    char *argv[] = {program, seconds};
    struct msg_command c = {.number = ++f->last, .job = job, .kind = MSG_COMMAND_START};
    c.u.start.proc = 1;
    c.u.start.label = program;
    c.u.start.argv = (struct msg_strings){.items = argv, .count = 2};
    c.u.start.dir = root;
    c.u.start.ready_timeout_ns = 10 * NS_PER_S;
    c.u.start.grace_ns = NS_PER_S;
    mini_send(&f->controller, &c);
    const struct msg_event *e = wait_answer(f, f->last);
    assert_int_equal(e->code, ERR_OK);
    assert_int_equal(e->kind, MSG_EVENT_STARTED);
    return e;
}

static bool is_alive(uint32_t pid)
{
    return kill((pid_t)pid, 0) == 0;
}

/* A resume opens the next run: what is left of the one before ends first, and its late commands do nothing.
 */
static void test_a_later_run_takes_the_place_of_an_earlier(void **state)
{
    struct fixture *f = *state;
    expect_of_run(f, 1, 5, MSG_COMMAND_JOB_OPEN, ERR_OK);
    uint32_t pid = start_sleeper(f)->u.started.pid;
    expect_of_run(f, 2, 5, MSG_COMMAND_JOB_OPEN, ERR_OK);
    assert_false(is_alive(pid));
    expect_of_run(f, 1, 5, MSG_COMMAND_SAMPLE, ERR_NOT_NOW);
    expect_of_run(f, 1, 5, MSG_COMMAND_JOB_OPEN, ERR_BUSY);
    expect_of_run(f, 1, 5, MSG_COMMAND_JOB_CLOSE, ERR_OK);
    assert_string_equal(agent_job(f->agent), "a");
    expect_of_run(f, 2, 5, MSG_COMMAND_SAMPLE, ERR_OK);
    expect_of_run(f, 2, 5, MSG_COMMAND_JOB_CLOSE, ERR_OK);
    assert_string_equal(agent_job(f->agent), "");
}

/* A controller that was started anew numbers its commands from 1 again: it gets answers of its own, and no
 * work done in the job of the one before. */
static void test_another_controller_may_only_end_the_job(void **state)
{
    struct fixture *f = *state;
    expect_of_run(f, 1, 5, MSG_COMMAND_JOB_OPEN, ERR_OK);
    expect_of_run(f, 1, 6, MSG_COMMAND_SAMPLE, ERR_NOT_NOW);
    expect_of_run(f, 1, 5, MSG_COMMAND_SAMPLE, ERR_OK);
    expect_of_run(f, 1, 6, MSG_COMMAND_JOB_CLOSE, ERR_OK);
    assert_string_equal(agent_job(f->agent), "");
}

static void test_another_controller_opens_the_job_anew(void **state)
{
    struct fixture *f = *state;
    expect_of_run(f, 1, 5, MSG_COMMAND_JOB_OPEN, ERR_OK);
    uint32_t pid = start_sleeper(f)->u.started.pid;
    expect_of_run(f, 1, 6, MSG_COMMAND_JOB_OPEN, ERR_OK);
    assert_false(is_alive(pid));
    expect_of_run(f, 1, 6, MSG_COMMAND_SAMPLE, ERR_OK);
}

static void test_end_while_held(void **state)
{
    struct fixture *f = *state;
    expect(f, "a", MSG_COMMAND_JOB_OPEN, ERR_OK);
    uint32_t pid = start_sleeper(f)->u.started.pid;
    assert_true(is_alive(pid));
    close_agent(f);
    assert_false(is_alive(pid));
}

static void test_end_while_closing(void **state)
{
    struct fixture *f = *state;
    expect(f, "a", MSG_COMMAND_JOB_OPEN, ERR_OK);
    uint32_t pid = start_sleeper(f)->u.started.pid;
    f->controller.mute_polls = true;
    send_command(f, "a", MSG_COMMAND_JOB_CLOSE);
    send_command(f, "a", MSG_COMMAND_JOB_OPEN); /* waits, and is forgotten at the end */
    f->controller.mute_polls = false;
    send_command(f, "a", MSG_COMMAND_SAMPLE);
    uint32_t next = f->controller.polls + 1; /* when it comes, the answer has been taken */
    mini_wait_count(&f->controller, &f->controller.polls, next, "the next poll");
    close_agent(f);
    assert_false(is_alive(pid));
}

static void test_lapse_ends_the_processes(void **state)
{
    struct fixture *f = *state;
    f->controller.lease_ns = NS_PER_S;
    f->controller.poll_ns = NS_PER_S / 10;
    expect(f, "a", MSG_COMMAND_JOB_OPEN, ERR_OK);
    uint32_t pid = start_sleeper(f)->u.started.pid;
    f->controller.mute_polls = true;
    wait_until(&f->loop, is_free, f, "the host to be free");
    assert_false(is_alive(pid));
}

int main(int argc, char **argv)
{
    int code = 0;
    if (supervisor_main(argc, argv, &code))
        return code;
    log_set_level(LOG_ERROR);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_when_free, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_when_held, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_when_closing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_lapse, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_renewed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_short_cut, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_later_run_takes_the_place_of_an_earlier, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_another_controller_may_only_end_the_job, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_another_controller_opens_the_job_anew, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_end_while_held, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_end_while_closing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_lapse_ends_the_processes, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
