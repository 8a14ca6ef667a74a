/* LOAD: the generator, and programs that are no good as one. */
#include "agent/process/supervisor.h"
#include "common/clock.h"
#include "common/mem.h"
#include "tests/support/task_stand.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

/* A program of the test's own, in the state directory, that stands in for the generator. */
static void fake_generator(struct stand *s, const char *script)
{
    free(s->load_program);
    s->load_program = mem_printf("%s/generator", s->scratch.dir);
    FILE *file = fopen(s->load_program, "w");
    must(file != NULL);
    fprintf(file, "#!/bin/sh\n%s\n", script);
    must(fclose(file) == 0 && chmod(s->load_program, 0755) == 0);
    stand_close(s);
    stand_open(s, true);
}

#define SAYS_VERSION "[ \"$1\" = --version ] && { echo splitbench-load 0.1.0; exit 0; }\n"

static void test_load_of_a_server(void **state)
{
    struct stand *s = *state;
    uint16_t port = stand_free_port();
    stand_wait_answer(s, stand_start_server(s, 1, port, NULL));
    struct msg_command c = stand_load_command(2, port);
    c.u.load.warmup_ns = 100 * NS_PER_MS;
    uint64_t before_ns = clock_now_ns();
    uint64_t number = stand_give(s, &c);
    struct msg_command second = stand_load_command(3, port);
    stand_expect_done(stand_wait_answer(s, stand_give(s, &second)), ERR_BUSY, "another load runs");
    const struct msg_event *e = stand_wait_answer(s, number);
    if (e->kind != MSG_EVENT_LOADED)
        fail_msg("%s", msg_text(e->text));
    const struct msg_loaded *l = &e->u.loaded;
    assert_int_equal(l->window_end_ns - l->window_start_ns, 300 * NS_PER_MS);
    assert_true(l->window_start_ns > before_ns && l->window_end_ns < clock_now_ns());
    assert_true(l->window.ok > 0);
    assert_int_equal(l->window.failed, 0);
    assert_int_equal(l->figures[FIGURE_BODY_BYTES].value, 2 * l->window.ok);
    assert_memory_equal(l->generator, "splitbench-load ", 16);
    static const enum msg_progress_kind expected[] = {MSG_PROGRESS_WARMUP_START, MSG_PROGRESS_WINDOW_START,
                                                      MSG_PROGRESS_WINDOW_END};
    size_t seen = 0;
    for (size_t i = 0; i < s->count; i++)
        if (s->events[i].kind == MSG_EVENT_PROGRESS && s->events[i].u.progress.kind != MSG_PROGRESS_TICK) {
            assert_true(seen < ARRAY_LEN(expected));
            assert_int_equal(s->events[i].u.progress.kind, expected[seen++]);
        }
    assert_int_equal(seen, ARRAY_LEN(expected));
    e = stand_wait_answer(s, stand_stop(s, 2)); /* it is over: at once */
    assert_int_equal(e->kind, MSG_EVENT_EXITED);
    c = stand_load_command(4, port);
    e = stand_wait_answer(s, stand_give(s, &c)); /* no second proof is needed */
    assert_int_equal(e->kind, MSG_EVENT_LOADED);
}

static void test_load_with_an_exact_length(void **state)
{
    struct stand *s = *state;
    uint16_t port = stand_free_port();
    stand_wait_answer(s, stand_start_server(s, 1, port, NULL));
    struct msg_command c = stand_load_command(2, port);
    c.u.load.has_body_bytes = true;
    c.u.load.body_bytes = 2;
    const struct msg_event *e = stand_wait_answer(s, stand_give(s, &c));
    assert_int_equal(e->kind, MSG_EVENT_LOADED);
    assert_true(e->u.loaded.window.ok > 0 && e->u.loaded.window.failed == 0);
    c.u.load.proc = 3;
    c.u.load.body_bytes = 3;
    e = stand_wait_answer(s, stand_give(s, &c));
    assert_int_equal(e->kind, MSG_EVENT_LOADED); /* a result, in which every answer is a failure */
    assert_true(e->u.loaded.window.ok == 0 && e->u.loaded.window.failed > 0);
    assert_int_equal(e->u.loaded.error_count, 1);
    assert_string_equal(e->u.loaded.errors[0].cause, "check");
}

static void test_load_of_nothing(void **state)
{
    struct stand *s = *state;
    struct msg_command c = stand_load_command(1, stand_free_port());
    stand_expect_done(stand_wait_answer(s, stand_give(s, &c)), ERR_UNREACHABLE,
                      "no connection could be opened: refused");
    c.u.load.proc = 2;
    c.u.load.tool = stand_word("siege");
    stand_expect_done(stand_wait_answer(s, stand_give(s, &c)), ERR_UNSUPPORTED, "it knows: builtin");
    c.u.load.tool = stand_word("builtin");
    c.u.load.connections = 0;
    stand_expect_done(stand_wait_answer(s, stand_give(s, &c)), ERR_INVALID, "0 connections");
}

static void expect_load(struct stand *s, const char *script, enum err code, const char *part)
{
    fake_generator(s, script);
    struct msg_command c = stand_load_command(1, 9);
    uint64_t number = stand_give(s, &c);
    stand_expect_done(stand_wait_answer(s, number), code, part);
    assert_int_equal(stand_answers(s, number), 1);
}

static void test_generators_that_are_no_good(void **state)
{
    struct stand *s = *state;
    expect_load(s, "echo wrk 4.1.0", ERR_INVALID,
                "is not splitbench-load: to --version it says \"wrk 4.1.0\"");
    expect_load(s, "echo broken >&2; exit 1", ERR_FAILED, "it ended with status 1; its last output:\nbroken");
    expect_load(s, SAYS_VERSION "echo '{\"format\":'", ERR_INVALID, "splitbench-load: ");
    expect_load(s, SAYS_VERSION "exit 0", ERR_INVALID, "it ended with status 0 and printed no result");
    expect_load(s, SAYS_VERSION "echo '--foo: unknown' >&2; exit 2", ERR_FAILED,
                "status 2; its last output:\n--foo");
    expect_load(s, SAYS_VERSION "kill -SEGV $$", ERR_FAILED, "was ended by signal 11");
    expect_load(s, SAYS_VERSION "head -c 5000000 /dev/zero", ERR_TOO_BIG, "more than 4194304 bytes");
}

static void test_missing_generator(void **state)
{
    struct stand *s = *state;
    fake_generator(s, "exit 0");
    must(unlink(s->load_program) == 0);
    struct msg_command c = stand_load_command(1, 9);
    stand_expect_done(stand_wait_answer(s, stand_give(s, &c)), ERR_NOT_FOUND, "generator");
}

static void test_hostile_events_are_dropped(void **state)
{
    struct stand *s = *state;
    fake_generator(s,
                   SAYS_VERSION "for i in 1 2 3 4 5 6 7 8 9; do\n"
                                "echo '{\"event\":\"window_start\",\"t_ns\":\"1\"}' >&2\n"
                                "echo '{\"event\":\"progress\",\"t_ns\":\"2\",\"ok\":1,\"failed\":0}' >&2\n"
                                "echo '{\"event\":\"window_end\",\"t_ns\":\"4000000000000000000\"}' >&2\n"
                                "echo '{\"event\":' >&2\n"
                                "done\n");
    struct msg_command c = stand_load_command(1, 9);
    stand_expect_done(stand_wait_answer(s, stand_give(s, &c)), ERR_INVALID, "printed no result");
    size_t starts = 0;
    size_t others = 0;
    for (size_t i = 0; i < s->count; i++) {
        bool progress = s->events[i].kind == MSG_EVENT_PROGRESS;
        starts += progress && s->events[i].u.progress.kind == MSG_PROGRESS_WINDOW_START;
        others += progress && s->events[i].u.progress.kind == MSG_PROGRESS_WINDOW_END;
    }
    assert_int_equal(starts, 1); /* an edge is told once */
    assert_int_equal(others, 0); /* and one that lies in the future never */
}

static void test_stop_of_a_generator(void **state)
{
    struct stand *s = *state;
    fake_generator(s, SAYS_VERSION "echo '{\"event\":\"window_start\",\"t_ns\":\"1\"}' >&2\nexec sleep 1000");
    struct msg_command c = stand_load_command(1, 9);
    uint64_t number = stand_give(s, &c);
    stand_wait_unasked(s, MSG_EVENT_PROGRESS);
    uint64_t stopped = stand_stop(s, 1);
    stand_expect_done(stand_wait_answer(s, number), ERR_CANCELLED, "was stopped");
    assert_int_equal(stand_wait_answer(s, stopped)->kind, MSG_EVENT_EXITED);
    c = stand_load_command(1, 9);
    stand_expect_done(stand_wait_answer(s, stand_give(s, &c)), ERR_EXISTS, "process number 1 is taken");
}

int main(int argc, char **argv)
{
    int code = 0;
    if (supervisor_main(argc, argv, &code))
        _exit(code); /* a leak check at its exit may hang: it stops and traces the process it runs in */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_load_of_a_server, stand_set_up, stand_tear_down),
        cmocka_unit_test_setup_teardown(test_load_with_an_exact_length, stand_set_up, stand_tear_down),
        cmocka_unit_test_setup_teardown(test_load_of_nothing, stand_set_up, stand_tear_down),
        cmocka_unit_test_setup_teardown(test_generators_that_are_no_good, stand_set_up, stand_tear_down),
        cmocka_unit_test_setup_teardown(test_missing_generator, stand_set_up, stand_tear_down),
        cmocka_unit_test_setup_teardown(test_hostile_events_are_dropped, stand_set_up, stand_tear_down),
        cmocka_unit_test_setup_teardown(test_stop_of_a_generator, stand_set_up, stand_tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
