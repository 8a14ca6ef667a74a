/* The uplink against a real link server: commands once and in order, events until acknowledged, batches in a
 * window, silence noticed, earlier results delivered. */
#include "agent/uplink/uplink.h"
#include "common/log.h"
#include "common/mem.h"
#include "tests/support/mini_controller.h"
#include "tests/support/scratch.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <unistd.h>

#include <cmocka.h>

struct fixture {
    struct scratch scratch;
    char address[96];
    char spool[96];
    uv_loop_t loop;
    struct mini controller;
    struct uplink *uplink;
    bool uplink_closed;
    uint64_t delivered[64];
    size_t delivered_count;
    size_t renewals;
    bool renewed_first; /* before any command */
    enum err final;
};

static void on_command(void *arg, const struct msg_command *c)
{
    struct fixture *f = arg;
    f->renewed_first |= f->delivered_count == 0 && f->renewals > 0;
    assert_true(f->delivered_count < ARRAY_LEN(f->delivered));
    f->delivered[f->delivered_count++] = c->number;
}

static void on_renew(void *arg, uint64_t sent_at_ns, uint64_t lease_ns)
{
    struct fixture *f = arg;
    assert_true(sent_at_ns <= clock_now_ns());
    assert_true(lease_ns == f->controller.lease_ns);
    f->renewals++;
}

static void on_final(void *arg, enum err e, const char *why)
{
    struct fixture *f = arg;
    assert_string_not_equal(why, "");
    f->final = e;
}

static void open_uplink(struct fixture *f)
{
    struct msg_host host = mini_host();
    struct err_detail d = {""};
    enum err e = uplink_new(&(struct uplink_options){.loop = &f->loop,
                                                     .address = f->address,
                                                     .name = "agent-1",
                                                     .host = &host,
                                                     .spool_dir = f->spool,
                                                     .handlers = {f, on_command, on_renew, on_final}},
                            &f->uplink, &d);
    if (e != ERR_OK)
        fail_msg("%s", d.text);
}

static void on_uplink_closed(void *arg)
{
    ((struct fixture *)arg)->uplink_closed = true;
}

static bool is_closed(void *arg)
{
    return ((struct fixture *)arg)->uplink_closed;
}

static void close_uplink(struct fixture *f)
{
    f->uplink_closed = false;
    mini_settle(&f->controller);
    uplink_close(&f->uplink, on_uplink_closed, f);
    assert_null(f->uplink);
    wait_until(&f->loop, is_closed, f, "the uplink to close");
}

static int set_up(void **state)
{
    struct fixture *f = mem_zalloc(1, sizeof *f);
    scratch_init(&f->scratch);
    snprintf(f->address, sizeof f->address, "ipc://%s/sock", f->scratch.dir);
    snprintf(f->spool, sizeof f->spool, "%s/spool", f->scratch.dir);
    assert_int_equal(uv_loop_init(&f->loop), 0);
    mini_init(&f->controller, &f->loop, f->address);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    if (f->uplink != NULL)
        close_uplink(f);
    mini_fini(&f->controller);
    assert_int_equal(uv_loop_close(&f->loop), 0);
    scratch_fini(&f->scratch);
    free(f);
    return 0;
}

static char job_name[] = "job-1";

static void emit_progress(struct fixture *f, enum msg_progress_kind kind)
{
    struct msg_event e = {.answers = 1, .job = job_name, .kind = MSG_EVENT_PROGRESS};
    e.u.progress.kind = kind;
    e.u.progress.at_ns = 1;
    uplink_emit(f->uplink, &e);
}

static void emit_exited(struct fixture *f, uint64_t answers)
{
    struct msg_event e = {.answers = answers, .job = job_name, .kind = MSG_EVENT_EXITED};
    e.u.exited.proc = 1;
    uplink_emit(f->uplink, &e);
}

/* ---- conditions ---- */

static bool has_peer(void *arg)
{
    return ((struct fixture *)arg)->controller.peer != NULL;
}

static bool has_acked_three(void *arg)
{
    return ((struct fixture *)arg)->controller.acked_command == 3;
}

static bool is_idle(void *arg)
{
    return uplink_is_idle(((struct fixture *)arg)->uplink);
}

static bool has_three_renewals(void *arg)
{
    return ((struct fixture *)arg)->renewals >= 3;
}

static bool is_final(void *arg)
{
    return ((struct fixture *)arg)->final != ERR_OK;
}

/* ---- tests ---- */

static void test_commands_once_in_order_and_acked(void **state)
{
    struct fixture *f = *state;
    struct mini *c = &f->controller;
    mini_send_simple(c, 1, job_name, MSG_COMMAND_JOB_CLOSE);
    mini_send_simple(c, 2, job_name, MSG_COMMAND_JOB_CLOSE);
    /* The same numbers again, then a new one: a controller that re-sends what it has not seen acknowledged.
     */
    mini_send_simple(c, 1, job_name, MSG_COMMAND_JOB_CLOSE);
    mini_send_simple(c, 2, job_name, MSG_COMMAND_JOB_CLOSE);
    mini_send_simple(c, 3, job_name, MSG_COMMAND_JOB_CLOSE);
    open_uplink(f);
    wait_until(&f->loop, has_acked_three, f, "the acknowledgement");
    assert_int_equal(f->delivered_count, 3);
    for (size_t i = 0; i < 3; i++)
        assert_true(f->delivered[i] == i + 1);
    assert_true(f->renewed_first);
}

static void test_a_gap_is_not_skipped(void **state)
{
    struct fixture *f = *state;
    mini_send_simple(&f->controller, 1, job_name, MSG_COMMAND_JOB_CLOSE);
    mini_send_simple(&f->controller, 3, job_name, MSG_COMMAND_JOB_CLOSE);
    open_uplink(f);
    wait_until(&f->loop, has_three_renewals, f, "three answers");
    assert_int_equal(f->delivered_count, 1);
    assert_true(f->controller.acked_command == 1);
}

static void test_numbers_start_again_with_a_new_controller(void **state)
{
    struct fixture *f = *state;
    for (uint64_t n = 1; n <= 3; n++)
        mini_send_simple(&f->controller, n, job_name, MSG_COMMAND_JOB_CLOSE);
    open_uplink(f);
    wait_until(&f->loop, has_acked_three, f, "the acknowledgement");
    mini_fini(&f->controller);
    mini_init(&f->controller, &f->loop, f->address);
    f->controller.incarnation = 2;
    for (uint64_t n = 1; n <= 3; n++)
        mini_send_simple(&f->controller, n, job_name, MSG_COMMAND_JOB_CLOSE);
    wait_until(&f->loop, has_acked_three, f, "the acknowledgement");
    assert_int_equal(f->delivered_count, 6);
    assert_true(f->delivered[3] == 1);
}

static void test_events_are_sent_again_until_acked(void **state)
{
    struct fixture *f = *state;
    f->controller.mute_pushes = true; /* takes them, drops the line */
    open_uplink(f);
    wait_until(&f->loop, has_peer, f, "a session");
    emit_exited(f, 1);
    emit_exited(f, 2);
    mini_wait_count(&f->controller, &f->controller.hellos, 2, "the second session");
    assert_false(uplink_is_idle(f->uplink));
    f->controller.mute_pushes = false;
    wait_until(&f->loop, is_idle, f, "the acknowledgement");
    size_t first = 0;
    size_t second = 0;
    for (size_t i = 0; i < f->controller.event_count; i++) {
        const struct mini_event *e = &f->controller.events[i];
        assert_true(e->incarnation == uplink_incarnation(f->uplink));
        assert_true(e->event.number == e->event.answers); /* numbers do not change when sent again */
        first += e->event.number == 1;
        second += e->event.number == 2;
    }
    assert_true(first >= 2);
    assert_true(second >= 1);
}

static void test_welcome_says_what_is_stored(void **state)
{
    struct fixture *f = *state;
    f->controller.acked_event = 2;
    open_uplink(f);
    emit_exited(f, 1);
    emit_exited(f, 2);
    emit_exited(f, 3);
    wait_until(&f->loop, is_idle, f, "the acknowledgement");
    assert_int_equal(f->controller.event_count, 1);
    assert_true(f->controller.events[0].event.number == 3);
}

static void test_results_of_an_earlier_agent_come_late(void **state)
{
    struct fixture *f = *state;
    f->controller.refuse_hello = ERR_BUSY; /* nobody takes them */
    open_uplink(f);
    uint64_t earlier = uplink_incarnation(f->uplink);
    emit_exited(f, 1);
    emit_progress(f, MSG_PROGRESS_TICK);
    close_uplink(f);
    f->controller.refuse_hello = ERR_OK;
    open_uplink(f);
    assert_true(uplink_incarnation(f->uplink) != earlier);
    wait_until(&f->loop, is_idle, f, "the acknowledgement");
    assert_int_equal(f->controller.event_count, 1);
    assert_true(f->controller.events[0].incarnation == earlier);
    assert_true(f->controller.events[0].event.number == 1);
    assert_int_equal(f->controller.events[0].event.kind, MSG_EVENT_EXITED);
}

/* In a window one push a second; its edges and failures at once. The bound grows with the time the test took,
 * so a slow machine cannot break it. */
static void test_batches_in_a_window(void **state)
{
    struct fixture *f = *state;
    open_uplink(f);
    wait_until(&f->loop, has_peer, f, "a session");
    uint64_t began = clock_now_ns();
    emit_progress(f, MSG_PROGRESS_WINDOW_START);
    wait_until(&f->loop, is_idle, f, "the window's start to be sent at once");
    uint32_t before = f->controller.pushes;
    for (int i = 0; i < 20; i++) {
        emit_progress(f, MSG_PROGRESS_TICK);
        uv_run(&f->loop, UV_RUN_NOWAIT);
    }
    emit_progress(f, MSG_PROGRESS_WINDOW_END);
    wait_until(&f->loop, is_idle, f, "the window's end to be sent at once");
    uint64_t seconds = (clock_now_ns() - began) / NS_PER_S;
    assert_true(f->controller.pushes - before <= 1 + seconds);
    assert_int_equal(f->controller.event_count, 22);
    /* After the window nothing waits: two events, a push each. */
    before = f->controller.pushes;
    emit_exited(f, 1);
    wait_until(&f->loop, is_idle, f, "a push");
    emit_exited(f, 2);
    wait_until(&f->loop, is_idle, f, "a push");
    assert_int_equal(f->controller.pushes - before, 2);
}

static void test_a_waiting_batch_goes_without_more_events(void **state)
{
    struct fixture *f = *state;
    open_uplink(f);
    wait_until(&f->loop, has_peer, f, "a session");
    emit_progress(f, MSG_PROGRESS_WINDOW_START);
    wait_until(&f->loop, is_idle, f, "the start");
    emit_progress(f, MSG_PROGRESS_TICK);
    wait_until(&f->loop, is_idle, f, "the tick");
    assert_int_equal(f->controller.event_count, 2);
}

static void emit_done(struct fixture *f)
{
    struct msg_event e = {.answers = 1, .job = job_name, .kind = MSG_EVENT_DONE};
    uplink_emit(f->uplink, &e);
}

/* A batch follows as soon as the one before is acknowledged, where one that helped nothing is tried again
 * after a second: among several, two come closer to each other than that. */
static void test_batches_follow_each_other(void **state)
{
    struct fixture *f = *state;
    open_uplink(f);
    mini_wait_count(&f->controller, &f->controller.polls, 1, "a session");
    for (size_t i = 0; i < (size_t)4 * MSG_EVENTS_MAX; i++)
        emit_done(f);
    wait_until(&f->loop, is_idle, f, "all acknowledgements");
    assert_int_equal(f->controller.event_count, 4 * MSG_EVENTS_MAX);
    assert_true(f->controller.push_gap_ns_min < 900 * NS_PER_MS);
}

static void test_events_that_are_not_taken_wait(void **state)
{
    struct fixture *f = *state;
    f->controller.take_nothing = true;
    open_uplink(f);
    wait_until(&f->loop, has_peer, f, "a session");
    uint64_t began = clock_now_ns();
    emit_done(f);
    mini_wait_count(&f->controller, &f->controller.pushes, 3, "the same event, three times");
    assert_true(f->controller.pushes <= 1 + (clock_now_ns() - began) / (900 * NS_PER_MS));
    f->controller.take_nothing = false;
    wait_until(&f->loop, is_idle, f, "the acknowledgement");
}

/* The first is in an open push, the others wait behind it: all go, each once. */
static void test_what_waits_goes_before_the_end(void **state)
{
    struct fixture *f = *state;
    open_uplink(f);
    mini_wait_count(&f->controller, &f->controller.polls, 1, "a session");
    mini_settle(&f->controller);
    for (size_t i = 0; i < (size_t)2 * MSG_EVENTS_MAX; i++)
        emit_done(f);
    uplink_close(&f->uplink, on_uplink_closed, f);
    wait_until(&f->loop, is_closed, f, "the uplink to close");
    assert_int_equal(f->controller.event_count, 2 * MSG_EVENTS_MAX);
}

static void test_a_silent_poll_makes_it_dial_again(void **state)
{
    struct fixture *f = *state;
    f->controller.mute_polls = true;
    f->controller.poll_ns = 10 * NS_PER_MS;
    open_uplink(f);
    uplink_set_job(f->uplink, "job-9", 3);
    mini_wait_count(&f->controller, &f->controller.hellos, 2, "the second session");
    assert_string_equal(f->controller.held_job, "job-9");
    assert_int_equal(f->controller.held_run, 3);
    assert_int_equal(f->renewals, 0);
}

static void test_refused_for_good(void **state)
{
    struct fixture *f = *state;
    f->controller.refuse_hello = ERR_DENIED;
    open_uplink(f);
    wait_until(&f->loop, is_final, f, "the refusal");
    assert_int_equal(f->final, ERR_DENIED);
}

int main(void)
{
    log_set_level(LOG_ERROR);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_commands_once_in_order_and_acked, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_gap_is_not_skipped, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_numbers_start_again_with_a_new_controller, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_events_are_sent_again_until_acked, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_welcome_says_what_is_stored, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_results_of_an_earlier_agent_come_late, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_batches_in_a_window, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_waiting_batch_goes_without_more_events, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_batches_follow_each_other, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_events_that_are_not_taken_wait, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_what_waits_goes_before_the_end, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_silent_poll_makes_it_dial_again, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_refused_for_good, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
