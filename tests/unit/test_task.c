/* A task as a whole: its commands beside each other, CHECK, SAMPLE, and that its end answers them all. */
#include "agent/process/supervisor.h"
#include "common/clock.h"
#include "common/sha256.h"
#include "tests/support/task_stand.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static void test_files_come_before_a_start(void **state)
{
    struct stand *s = *state;
    static const char script[] = "echo it runs\n";
    struct msg_file file = {.path = stand_word("bin/run.sh"), .size_bytes = sizeof script - 1, .mode = 0755};
    sha256_of(script, sizeof script - 1, file.hash);
    struct msg_command files = {.kind = MSG_COMMAND_FILES, .u.files = {&file, 1}};
    uint64_t listed = stand_give(s, &files);
    struct msg_command chunk = {.kind = MSG_COMMAND_CHUNK};
    memcpy(chunk.u.chunk.hash, file.hash, sizeof file.hash);
    chunk.u.chunk.data = (struct msg_bytes){(uint8_t *)stand_word(script), sizeof script - 1};
    uint64_t sent = stand_give(s, &chunk);
    struct msg_start start = {
        .proc = 1, .label = stand_word("x"), .dir = stand_word("bin"), .ready = MSG_READY_EXIT};
    char *argv[] = {stand_word("sh"), stand_word("run.sh"), NULL};
    uint64_t started = stand_start(s, start, argv); /* none of the three was answered yet */
    const struct msg_event *e = stand_wait_answer(s, started);
    assert_int_equal(e->kind, MSG_EVENT_EXITED);
    assert_string_equal(e->u.exited.log_tail, "it runs\n");
    e = stand_answer(s, listed);
    assert_int_equal(e->kind, MSG_EVENT_FILES);
    assert_int_equal(e->u.files.count, 1);
    assert_memory_equal(e->u.files.items[0].hash, file.hash, sizeof file.hash);
    stand_expect_done(stand_answer(s, sent), ERR_OK, "");
    e = stand_wait_answer(s, stand_give(s, &files));
    assert_int_equal(e->u.files.count, 0);
    file.path = stand_word("../outside");
    stand_expect_done(stand_wait_answer(s, stand_give(s, &files)), ERR_INVALID, "../outside");
}

static void test_check_of_a_server(void **state)
{
    struct stand *s = *state;
    uint16_t port = stand_free_port();
    stand_wait_answer(s, stand_start_server(s, 1, port, NULL));
    struct msg_command c = {.kind = MSG_COMMAND_CHECK};
    c.u.check = (struct msg_check){.name = stand_word("ping"),
                                   .host = stand_word("127.0.0.1"),
                                   .port = port,
                                   .request = {.method = stand_word("GET"), .path = stand_word("/")},
                                   .status = 200,
                                   .timeout_ns = 30 * NS_PER_S};
    const struct msg_event *e = stand_wait_answer(s, stand_give(s, &c));
    assert_int_equal(e->kind, MSG_EVENT_CHECKED);
    assert_true(e->u.checked.ok);
    c.u.check.status = 201;
    e = stand_wait_answer(s, stand_give(s, &c));
    assert_false(e->u.checked.ok);
    assert_string_equal(e->u.checked.difference, "status: expected 201, got 200");
    c.u.check.request.path = stand_word("bad");
    stand_expect_done(stand_wait_answer(s, stand_give(s, &c)), ERR_INVALID, "request path \"bad\"");
}

static void test_sample(void **state)
{
    struct stand *s = *state;
    stand_wait_answer(s, stand_start_server(s, 1, stand_free_port(), NULL));
    struct msg_command c = {.kind = MSG_COMMAND_SAMPLE, .u.sample = {.procs = {1}, .proc_count = 1}};
    uint64_t before_ns = clock_now_ns();
    const struct msg_event *e = stand_wait_answer(s, stand_give(s, &c));
    assert_int_equal(e->kind, MSG_EVENT_SAMPLED);
    assert_in_range(e->u.sampled.at_ns, before_ns, clock_now_ns());
    assert_true(e->u.sampled.busy_ns > 0 && e->u.sampled.own_ns > 0);
    assert_int_equal(e->u.sampled.proc_count, 1);
    assert_true(e->u.sampled.procs[0].alive);
    assert_int_equal(e->u.sampled.procs[0].processes, 1);
    assert_true(e->u.sampled.procs[0].rss_bytes > 0);
    c.u.sample.procs[0] = 2;
    stand_expect_done(stand_wait_answer(s, stand_give(s, &c)), ERR_NOT_FOUND,
                      "process 2 was never started here");
}

static void test_close_answers_everything(void **state)
{
    struct stand *s = *state;
    uint16_t port = stand_free_port();
    const struct msg_event *e = stand_wait_answer(s, stand_start_server(s, 1, port, NULL));
    pid_t pid = (pid_t)e->u.started.pid;
    struct msg_command load = stand_load_command(2, port);
    load.u.load.duration_ns = 1000 * NS_PER_S;
    struct msg_command check = {.kind = MSG_COMMAND_CHECK};
    check.u.check = (struct msg_check){.port = port, .status = 200, .timeout_ns = 30 * NS_PER_S};
    struct msg_command files = {.kind = MSG_COMMAND_FILES};
    struct msg_start build = {.proc = 4, .label = stand_word("build"), .ready = MSG_READY_EXIT};
    uint64_t numbers[] = {
        stand_give(s, &load),
        stand_give(s, &check),
        stand_start_shell(s, stand_http_start(3, stand_free_port()), "exec sleep 1000"),
        stand_give(s, &files),
        stand_give(s, &files),
        stand_start_shell(s, build, "exec sleep 1000"),
        stand_stop(s, 1),
    };
    stand_close(s);
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
        if (stand_answers(s, numbers[i]) != 1)
            fail_msg("command %zu has %zu answers", i, stand_answers(s, numbers[i]));
    assert_int_equal(kill(pid, 0), -1);
}

int main(int argc, char **argv)
{
    int code = 0;
    if (supervisor_main(argc, argv, &code))
        _exit(code); /* a leak check at its exit may hang: it stops and traces the process it runs in */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_files_come_before_a_start, stand_set_up, stand_tear_down),
        cmocka_unit_test_setup_teardown(test_check_of_a_server, stand_set_up, stand_tear_down),
        cmocka_unit_test_setup_teardown(test_sample, stand_set_up, stand_tear_down),
        cmocka_unit_test_setup_teardown(test_close_answers_everything, stand_set_up, stand_tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
