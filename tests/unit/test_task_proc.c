/* START and STOP: servers and build steps, ready or not, and how each of them ends. */
#include "agent/process/supervisor.h"
#include "common/clock.h"
#include "common/mem.h"
#include "tests/support/task_stand.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static void test_server_starts_and_stops(void **state)
{
    struct stand *s = *state;
    uint16_t port = stand_free_port();
    const struct msg_event *e = stand_wait_answer(s, stand_start_server(s, 1, port, "30"));
    assert_int_equal(e->kind, MSG_EVENT_STARTED);
    assert_int_equal(e->u.started.proc, 1);
    assert_true(e->u.started.startup_ns >= 30 * NS_PER_MS); /* it slept that long before it listened */
    assert_non_null(strstr(e->u.started.exe, "/tool_target"));
    assert_int_equal(kill((pid_t)e->u.started.pid, 0), 0);
    pid_t pid = (pid_t)e->u.started.pid;
    uint64_t number = stand_stop(s, 1);
    e = stand_wait_answer(s, number);
    assert_int_equal(e->kind, MSG_EVENT_EXITED);
    assert_true(e->u.exited.asked);
    assert_int_equal(e->u.exited.signal, SIGTERM);
    assert_memory_equal(e->u.exited.log.data, "listening on ", 13);
    assert_int_equal(kill(pid, 0), -1);
    e = stand_wait_answer(s, stand_stop(s, 1)); /* again: it is over, so at once */
    assert_int_equal(e->kind, MSG_EVENT_EXITED);
    assert_int_equal(stand_answers(s, number), 1);
    assert_int_equal(stand_answers(s, 0), 0);
}

static void test_port_in_use_is_refused(void **state)
{
    struct stand *s = *state;
    uint16_t port = stand_free_port();
    assert_int_equal(stand_wait_answer(s, stand_start_server(s, 1, port, NULL))->kind, MSG_EVENT_STARTED);
    char part[64];
    snprintf(part, sizeof part, "port %u is in use by tool_target (pid ", port);
    stand_expect_done(stand_wait_answer(s, stand_start_server(s, 2, port, NULL)), ERR_BUSY, part);
}

static void test_server_that_exits_first(void **state)
{
    struct stand *s = *state;
    uint64_t number =
        stand_start_shell(s, stand_http_start(1, stand_free_port()), "echo cannot find its config; exit 3");
    const struct msg_event *e = stand_wait_answer(s, number);
    stand_expect_done(e, ERR_FAILED, "ended with status 3; its last output:\ncannot find its config");
    assert_memory_equal(e->text, "ended", 5); /* which process it was, is known to who asked */
    e = stand_wait_unasked(s, MSG_EVENT_EXITED);
    assert_int_equal(e->u.exited.status, 3);
    assert_false(e->u.exited.asked);
    assert_int_equal(stand_answers(s, number), 1);
}

static void test_long_causes_are_cut(void **state)
{
    struct stand *s = *state;
    struct msg_start start = stand_http_start(1, stand_free_port());
    char label[LIMIT_TEXT_BYTES + 100];
    memset(label, 'l', sizeof label - 1);
    label[sizeof label - 1] = '\0';
    start.label = label; /* leaves no room for the log */
    stand_expect_done(stand_wait_answer(s, stand_start_shell(s, start, "echo no room; exit 1")), ERR_FAILED,
                      "ended with status 1; its last");
    start = stand_http_start(2, stand_free_port());
    const char *script = "head -c 20000 /dev/zero | tr '\\0' x; echo; echo the end; exit 1";
    const struct msg_event *e = stand_wait_answer(s, stand_start_shell(s, start, script));
    stand_expect_done(e, ERR_FAILED, "xxx\nthe end");
    assert_true(strlen(e->text) <= LIMIT_TEXT_BYTES);
}

static void test_server_that_goes_into_the_background(void **state)
{
    struct stand *s = *state;
    uint64_t number =
        stand_start_shell(s, stand_http_start(1, stand_free_port()), "sleep 1000 & sleep 1001 & exit 0");
    stand_expect_done(stand_wait_answer(s, number), ERR_FAILED,
                      "ended with status 0, leaving 2 processes behind; it has to stay in the foreground");
}

static void test_server_that_is_never_ready(void **state)
{
    struct stand *s = *state;
    struct msg_start start = stand_http_start(1, stand_free_port());
    start.ready_timeout_ns = 100 * NS_PER_MS;
    uint64_t number = stand_start_shell(s, start, "echo still loading; exec sleep 1000");
    const struct msg_event *e = stand_wait_answer(s, number);
    stand_expect_done(e, ERR_TIMEOUT, "not ready after 100ms: cannot connect to 127.0.0.1 port");
    stand_expect_done(e, ERR_TIMEOUT, "still loading");
    e = stand_wait_unasked(s, MSG_EVENT_EXITED);
    assert_int_equal(e->u.exited.signal, SIGTERM); /* it was ended, not left */
}

static void test_stop_before_it_is_ready(void **state)
{
    struct stand *s = *state;
    uint64_t started = stand_start_shell(s, stand_http_start(1, stand_free_port()), "exec sleep 1000");
    uint64_t stopped = stand_stop(s, 1);
    assert_int_equal(stand_wait_answer(s, stopped)->kind, MSG_EVENT_EXITED);
    stand_expect_done(stand_wait_answer(s, started), ERR_CANCELLED, "was stopped before it was ready");
    assert_int_equal(stand_answers(s, started), 1);
}

static void test_every_stop_is_answered(void **state)
{
    struct stand *s = *state;
    struct msg_start start = {.proc = 1, .label = stand_word("build"), .ready = MSG_READY_EXIT};
    uint64_t started = stand_start_shell(s, start, "exec sleep 1000");
    uint64_t stops[] = {stand_stop(s, 1), stand_stop(s, 1), stand_stop(s, 1)};
    for (size_t i = 0; i < ARRAY_LEN(stops); i++)
        assert_int_equal(stand_wait_answer(s, stops[i])->kind, MSG_EVENT_EXITED);
    stand_expect_done(stand_wait_answer(s, started), ERR_CANCELLED, "was stopped before it was ready");
    assert_int_equal(stand_answers(s, 0), 0);
}

static pid_t parent_of(pid_t pid)
{
    char path[64];
    char name[64];
    int parent = 0;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "r");
    must(file != NULL);
    int n = fscanf(file, "%*d %63s %*c %d", name, &parent);
    fclose(file);
    must(n == 2 && parent > 1);
    return parent;
}

static void test_lost_supervisor(void **state)
{
    struct stand *s = *state;
    const struct msg_event *e = stand_wait_answer(s, stand_start_server(s, 1, stand_free_port(), NULL));
    assert_int_equal(e->kind, MSG_EVENT_STARTED);
    pid_t pid = (pid_t)e->u.started.pid;
    must(kill(parent_of(pid), SIGKILL) == 0);
    e = stand_wait_unasked(s, MSG_EVENT_EXITED);
    assert_int_equal(e->u.exited.proc, 1);
    assert_false(e->u.exited.asked);
    assert_int_equal(kill(pid, 0), -1);
    assert_int_equal(stand_wait_answer(s, stand_stop(s, 1))->kind, MSG_EVENT_EXITED);
    e = stand_wait_answer(s, stand_start_server(s, 2, stand_free_port(), NULL)); /* the job is over here */
    stand_expect_done(e, ERR_CLOSED, "server");
    struct msg_command load = stand_load_command(3, 9);
    stand_expect_done(stand_wait_answer(s, stand_give(s, &load)), ERR_CLOSED, "generator");
}

static void test_server_that_dies_later(void **state)
{
    struct stand *s = *state;
    const struct msg_event *e = stand_wait_answer(s, stand_start_server(s, 1, stand_free_port(), NULL));
    assert_int_equal(e->kind, MSG_EVENT_STARTED);
    must(kill((pid_t)e->u.started.pid, SIGKILL) == 0);
    e = stand_wait_unasked(s, MSG_EVENT_EXITED);
    assert_int_equal(e->u.exited.proc, 1);
    assert_false(e->u.exited.asked);
    assert_int_equal(e->u.exited.status, -1);
    assert_int_equal(e->u.exited.signal, SIGKILL);
    assert_memory_equal(e->u.exited.log.data, "listening on ", 13);
}

static void test_build_steps(void **state)
{
    struct stand *s = *state;
    struct msg_start start = {.proc = 1, .label = stand_word("build"), .ready = MSG_READY_EXIT};
    const struct msg_event *e = stand_wait_answer(s, stand_start_shell(s, start, "pwd; touch built"));
    assert_int_equal(e->kind, MSG_EVENT_EXITED);
    assert_int_equal(e->u.exited.status, 0);
    char *dir = mem_printf("%s/workspaces/job-1/tree\n", s->scratch.dir); /* the workspace is where it runs */
    assert_string_equal(e->u.exited.log_tail, dir);
    free(dir);
    start.proc = 2;
    stand_expect_done(stand_wait_answer(s, stand_start_shell(s, start, "echo no such module >&2; exit 1")),
                      ERR_FAILED, "ended with status 1; its last output:\nno such module");
    start.proc = 3;
    start.ready_timeout_ns = 50 * NS_PER_MS;
    stand_expect_done(stand_wait_answer(s, stand_start_shell(s, start, "exec sleep 1000")), ERR_TIMEOUT,
                      "did not end within 50ms");
}

static void test_starts_that_cannot_be(void **state)
{
    struct stand *s = *state;
    char *missing[] = {stand_word("/no/such/program"), NULL};
    struct msg_start start = {.proc = 1, .label = stand_word("x"), .dir = stand_word("/")};
    const struct msg_event *e = stand_wait_answer(s, stand_start(s, start, missing));
    stand_expect_done(e, ERR_NOT_FOUND, "cannot run '/no/such/program': no such file");
    stand_expect_done(stand_wait_answer(s, stand_stop(s, 99)), ERR_NOT_FOUND,
                      "process 99 was never started here");
    start.proc = 2;
    start.dir = stand_word("../outside");
    stand_expect_done(stand_wait_answer(s, stand_start_shell(s, start, "true")), ERR_INVALID, "../outside");
    start.dir = stand_word("/no/such/directory");
    e = stand_wait_answer(s, stand_start_shell(s, start, "true"));
    stand_expect_done(e, ERR_NOT_FOUND, "/no/such/directory");
    struct msg_command empty = {.kind = MSG_COMMAND_START, .u.start = {.proc = 3, .label = stand_word("x")}};
    stand_expect_done(stand_wait_answer(s, stand_give(s, &empty)), ERR_INVALID, "0 words");
    start = stand_http_start(4, 0);
    stand_expect_done(stand_wait_answer(s, stand_start_shell(s, start, "true")), ERR_INVALID, "needs a port");
    start = (struct msg_start){.proc = 5, .label = stand_word("x"), .dir = stand_word("/")};
    assert_int_equal(stand_wait_answer(s, stand_start_shell(s, start, "exec sleep 1000"))->kind,
                     MSG_EVENT_STARTED);
    stand_expect_done(stand_wait_answer(s, stand_start_shell(s, start, "true")), ERR_EXISTS,
                      "process number 5 is taken");
}

static void test_relative_directory_needs_a_workspace(void **state)
{
    struct stand *s = *state;
    stand_close(s);
    stand_open(s, false);
    struct msg_start start = {.proc = 1, .label = stand_word("x"), .dir = stand_word("apps")};
    stand_expect_done(stand_wait_answer(s, stand_start_shell(s, start, "true")), ERR_INVALID,
                      "the job has none on this host");
    start.proc = 2;
    start.dir = NULL; /* never the agent's own directory */
    stand_expect_done(stand_wait_answer(s, stand_start_shell(s, start, "true")), ERR_INVALID,
                      "the job has none on this host");
    struct msg_command files = {.kind = MSG_COMMAND_FILES};
    stand_expect_done(stand_wait_answer(s, stand_give(s, &files)), ERR_NOT_NOW, "no workspace");
}

int main(int argc, char **argv)
{
    int code = 0;
    if (supervisor_main(argc, argv, &code))
        _exit(code); /* a leak check at its exit may hang: it stops and traces the process it runs in */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_server_starts_and_stops, stand_set_up, stand_tear_down),
        cmocka_unit_test_setup_teardown(test_port_in_use_is_refused, stand_set_up, stand_tear_down),
        cmocka_unit_test_setup_teardown(test_server_that_exits_first, stand_set_up, stand_tear_down),
        cmocka_unit_test_setup_teardown(test_long_causes_are_cut, stand_set_up, stand_tear_down),
        cmocka_unit_test_setup_teardown(test_server_that_goes_into_the_background, stand_set_up,
                                        stand_tear_down),
        cmocka_unit_test_setup_teardown(test_server_that_is_never_ready, stand_set_up, stand_tear_down),
        cmocka_unit_test_setup_teardown(test_stop_before_it_is_ready, stand_set_up, stand_tear_down),
        cmocka_unit_test_setup_teardown(test_every_stop_is_answered, stand_set_up, stand_tear_down),
        cmocka_unit_test_setup_teardown(test_lost_supervisor, stand_set_up, stand_tear_down),
        cmocka_unit_test_setup_teardown(test_server_that_dies_later, stand_set_up, stand_tear_down),
        cmocka_unit_test_setup_teardown(test_build_steps, stand_set_up, stand_tear_down),
        cmocka_unit_test_setup_teardown(test_starts_that_cannot_be, stand_set_up, stand_tear_down),
        cmocka_unit_test_setup_teardown(test_relative_directory_needs_a_workspace, stand_set_up,
                                        stand_tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
