#include "agent/task/task.h"

#include "agent/process/supervisor.h"
#include "common/clock.h"
#include "common/mem.h"
#include "common/sha256.h"

#include <fcntl.h>
#include <ftw.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define DEADLINE_MS 60000u /* for anything to happen on a busy machine */
#define EVENTS_MAX  64u

struct fixture {
    uv_loop_t loop;
    uv_timer_t deadline;
    char dir[64];
    char *load_program;
    struct task *task;
    struct msg_event events[EVENTS_MAX]; /* copies, in order */
    size_t count;
    uint64_t next_number;
    bool closed;
};

/* ---- the ground ------------------------------------------------------------------------------------- */

static void on_event(void *arg, const struct msg_event *event)
{
    struct fixture *f = arg;
    must(f->count < EVENTS_MAX);
    msg_event_copy(&f->events[f->count++], event);
}

static void on_closed(void *arg)
{
    struct fixture *f = arg;
    f->closed = true;
}

static void on_deadline(uv_timer_t *timer)
{
    (void)timer;
    fprintf(stderr, "nothing happened for %u ms\n", DEADLINE_MS);
    _exit(1); /* a test cannot be left from inside the loop */
}

static void open_task(struct fixture *f, bool workspace)
{
    struct msg_job_open open = {.role = NULL, .workspace = workspace};
    struct task_options options = {.loop = &f->loop,
                                   .job = "job-1",
                                   .open = &open,
                                   .state_dir = f->dir,
                                   .load_program = f->load_program,
                                   .lease_ns = 600 * NS_PER_S,
                                   .emit = on_event,
                                   .arg = f};
    struct err_detail d = {""};
    if (task_new(&options, &f->task, &d) != ERR_OK)
        fail_msg("%s", d.text);
    f->closed = false;
}

static void close_task(struct fixture *f)
{
    task_close(&f->task, on_closed, f);
    while (!f->closed)
        uv_run(&f->loop, UV_RUN_ONCE);
}

static int setup(void **state)
{
    struct fixture *f = mem_zalloc(1, sizeof *f);
    const char *bin = getenv("SPLITBENCH_BIN");
    must(uv_loop_init(&f->loop) == 0);
    uv_timer_init(&f->loop, &f->deadline);
    uv_timer_start(&f->deadline, on_deadline, DEADLINE_MS, 0);
    uv_unref((uv_handle_t *)&f->deadline);
    snprintf(f->dir, sizeof f->dir, "/tmp/test_task.XXXXXX");
    must(mkdtemp(f->dir) != NULL);
    char *program = mem_printf("%s/splitbench-load", bin != NULL ? bin : "build/bin");
    f->load_program = realpath(program, NULL);
    must(f->load_program != NULL);
    free(program);
    open_task(f, true);
    *state = f;
    return 0;
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st;
    (void)at;
    return type == FTW_DP ? rmdir(path) : unlink(path);
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    if (f->task != NULL)
        close_task(f);
    uv_close((uv_handle_t *)&f->deadline, NULL);
    uv_run(&f->loop, UV_RUN_DEFAULT);
    must(uv_loop_close(&f->loop) == 0);
    for (size_t i = 0; i < f->count; i++)
        msg_event_fini(&f->events[i]);
    nftw(f->dir, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    free(f->load_program);
    free(f);
    return 0;
}

static uint64_t give(struct fixture *f, struct msg_command *command)
{
    command->number = ++f->next_number;
    command->job = (char *)(uintptr_t) "job-1";
    task_handle(f->task, command);
    return command->number;
}

static size_t answers_to(const struct fixture *f, uint64_t number)
{
    size_t n = 0;
    for (size_t i = 0; i < f->count; i++)
        n += f->events[i].answers == number;
    return n;
}

static const struct msg_event *answer_to(const struct fixture *f, uint64_t number)
{
    for (size_t i = 0; i < f->count; i++)
        if (f->events[i].answers == number)
            return &f->events[i];
    return NULL;
}

static const struct msg_event *wait_answer(struct fixture *f, uint64_t number)
{
    while (answer_to(f, number) == NULL)
        uv_run(&f->loop, UV_RUN_ONCE);
    return answer_to(f, number);
}

/* The first unasked event of the kind. */
static const struct msg_event *wait_unasked(struct fixture *f, enum msg_event_kind kind)
{
    for (;;) {
        for (size_t i = 0; i < f->count; i++)
            if (f->events[i].answers == 0 && f->events[i].kind == kind)
                return &f->events[i];
        uv_run(&f->loop, UV_RUN_ONCE);
    }
}

static void expect_done(const struct msg_event *e, enum err code, const char *part)
{
    if (e->kind != MSG_EVENT_DONE || e->code != code || strstr(msg_text(e->text), part) == NULL)
        fail_msg("%s %s: %s; expected %s: %s", msg_event_name(e->kind), err_text(e->code), msg_text(e->text),
                 err_text(code), part);
}

/* ---- commands --------------------------------------------------------------------------------------- */

static uint16_t free_port(void)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof at;
    must(fd >= 0 && bind(fd, (const struct sockaddr *)&at, sizeof at) == 0);
    must(getsockname(fd, (struct sockaddr *)&at, &len) == 0);
    close(fd);
    return ntohs(at.sin_port);
}

static char *word(const char *text)
{
    return (char *)(uintptr_t)text; /* the task copies what it keeps */
}

static uint64_t start(struct fixture *f, struct msg_start s, char **argv)
{
    while (argv[s.argv.count] != NULL)
        s.argv.count++;
    s.argv.items = argv;
    s.grace_ns = s.grace_ns != 0 ? s.grace_ns : 5 * NS_PER_S;
    struct msg_command c = {.kind = MSG_COMMAND_START, .u.start = s};
    return give(f, &c);
}

static uint64_t start_shell(struct fixture *f, struct msg_start s, const char *script)
{
    char *argv[] = {word("sh"), word("-c"), word(script), NULL};
    return start(f, s, argv);
}

static uint64_t stop(struct fixture *f, uint32_t proc)
{
    struct msg_command c = {.kind = MSG_COMMAND_STOP, .u.stop.proc = proc};
    return give(f, &c);
}

static struct msg_start http_start(uint32_t proc, uint16_t port)
{
    return (struct msg_start){.proc = proc,
                              .label = word("server"),
                              .dir = word("/"),
                              .ready = MSG_READY_HTTP,
                              .ready_port = port,
                              .ready_path = word("/"),
                              .ready_timeout_ns = 30 * NS_PER_S};
}

static uint64_t start_server(struct fixture *f, uint32_t proc, uint16_t port, const char *delay_ms)
{
    const char *tools = getenv("SPLITBENCH_TOOLS");
    char path[512];
    char port_text[8];
    char *argv[] = {path, port_text, word(delay_ms), NULL};
    snprintf(path, sizeof path, "%s/tool_target", tools != NULL ? tools : "build/tests");
    snprintf(port_text, sizeof port_text, "%u", port);
    char *real = realpath(path, NULL);
    must(real != NULL);
    argv[0] = real;
    uint64_t number = start(f, http_start(proc, port), argv);
    free(real);
    return number;
}

static struct msg_command load_command(uint32_t proc, uint16_t port)
{
    struct msg_command c = {.kind = MSG_COMMAND_LOAD};
    c.u.load = (struct msg_load){.proc = proc,
                                 .tool = word("builtin"),
                                 .host = word("127.0.0.1"),
                                 .port = port,
                                 .request = {.method = word("GET"), .path = word("/")},
                                 .connections = 4,
                                 .threads = 1,
                                 .duration_ns = 300 * NS_PER_MS,
                                 .timeout_ns = 5 * NS_PER_S};
    return c;
}

/* A program of its own in the fixture's directory that stands in for the generator. */
static void fake_generator(struct fixture *f, const char *script)
{
    free(f->load_program);
    f->load_program = mem_printf("%s/generator", f->dir);
    FILE *file = fopen(f->load_program, "w");
    must(file != NULL);
    fprintf(file, "#!/bin/sh\n%s\n", script);
    must(fclose(file) == 0 && chmod(f->load_program, 0755) == 0);
    close_task(f);
    open_task(f, true);
}

#define SAYS_VERSION "[ \"$1\" = --version ] && { echo splitbench-load 0.1.0; exit 0; }\n"

/* ---- START and STOP
 * ------------------------------------------------------------------------------------------ */

static void test_server_starts_and_stops(void **state)
{
    struct fixture *f = *state;
    uint16_t port = free_port();
    const struct msg_event *e = wait_answer(f, start_server(f, 1, port, "30"));
    assert_int_equal(e->kind, MSG_EVENT_STARTED);
    assert_int_equal(e->u.started.proc, 1);
    assert_true(e->u.started.startup_ns >= 30 * NS_PER_MS); /* it slept that long before it listened */
    assert_non_null(strstr(e->u.started.exe, "/tool_target"));
    assert_int_equal(kill((pid_t)e->u.started.pid, 0), 0);
    pid_t pid = (pid_t)e->u.started.pid;
    uint64_t number = stop(f, 1);
    e = wait_answer(f, number);
    assert_int_equal(e->kind, MSG_EVENT_EXITED);
    assert_true(e->u.exited.asked);
    assert_int_equal(e->u.exited.signal, SIGTERM);
    assert_memory_equal(e->u.exited.log.data, "listening on ", 13);
    assert_int_equal(kill(pid, 0), -1);
    e = wait_answer(f, stop(f, 1)); /* again: it is over, so at once */
    assert_int_equal(e->kind, MSG_EVENT_EXITED);
    assert_int_equal(answers_to(f, number), 1);
    assert_int_equal(answers_to(f, 0), 0);
}

static void test_port_in_use_is_refused(void **state)
{
    struct fixture *f = *state;
    uint16_t port = free_port();
    assert_int_equal(wait_answer(f, start_server(f, 1, port, NULL))->kind, MSG_EVENT_STARTED);
    char part[64];
    snprintf(part, sizeof part, "port %u is in use by tool_target (pid ", port);
    expect_done(wait_answer(f, start_server(f, 2, port, NULL)), ERR_BUSY, part);
}

static void test_server_that_exits_first(void **state)
{
    struct fixture *f = *state;
    uint64_t number = start_shell(f, http_start(1, free_port()), "echo cannot find its config; exit 3");
    const struct msg_event *e = wait_answer(f, number);
    expect_done(e, ERR_FAILED, "server: ended with status 3; its last output:\ncannot find its config");
    e = wait_unasked(f, MSG_EVENT_EXITED);
    assert_int_equal(e->u.exited.status, 3);
    assert_false(e->u.exited.asked);
    assert_int_equal(answers_to(f, number), 1);
}

static void test_long_causes_are_cut(void **state)
{
    struct fixture *f = *state;
    struct msg_start s = http_start(1, free_port());
    char label[LIMIT_TEXT_BYTES + 100];
    memset(label, 'l', sizeof label - 1);
    label[sizeof label - 1] = '\0';
    s.label = label; /* leaves no room for the log */
    expect_done(wait_answer(f, start_shell(f, s, "echo no room; exit 1")), ERR_FAILED,
                "ended with status 1; its last");
    s = http_start(2, free_port());
    const char *script = "head -c 20000 /dev/zero | tr '\\0' x; echo; echo the end; exit 1";
    const struct msg_event *e = wait_answer(f, start_shell(f, s, script));
    expect_done(e, ERR_FAILED, "xxx\nthe end");
    assert_true(strlen(e->text) <= LIMIT_TEXT_BYTES);
}

static void test_server_that_goes_into_the_background(void **state)
{
    struct fixture *f = *state;
    uint64_t number = start_shell(f, http_start(1, free_port()), "sleep 1000 & sleep 1001 & exit 0");
    expect_done(wait_answer(f, number), ERR_FAILED,
                "server: ended with status 0, leaving 2 processes behind; it has to stay in the foreground");
}

static void test_server_that_is_never_ready(void **state)
{
    struct fixture *f = *state;
    struct msg_start s = http_start(1, free_port());
    s.ready_timeout_ns = 100 * NS_PER_MS;
    uint64_t number = start_shell(f, s, "echo still loading; exec sleep 1000");
    const struct msg_event *e = wait_answer(f, number);
    expect_done(e, ERR_TIMEOUT, "server: not ready after 100ms: cannot connect to 127.0.0.1 port");
    expect_done(e, ERR_TIMEOUT, "still loading");
    e = wait_unasked(f, MSG_EVENT_EXITED);
    assert_int_equal(e->u.exited.signal, SIGTERM); /* it was ended, not left */
}

static void test_stop_before_it_is_ready(void **state)
{
    struct fixture *f = *state;
    uint64_t started = start_shell(f, http_start(1, free_port()), "exec sleep 1000");
    uint64_t stopped = stop(f, 1);
    assert_int_equal(wait_answer(f, stopped)->kind, MSG_EVENT_EXITED);
    expect_done(wait_answer(f, started), ERR_CANCELLED, "was stopped before it was ready");
    assert_int_equal(answers_to(f, started), 1);
}

static void test_every_stop_is_answered(void **state)
{
    struct fixture *f = *state;
    struct msg_start s = {.proc = 1, .label = word("build"), .ready = MSG_READY_EXIT};
    uint64_t started = start_shell(f, s, "exec sleep 1000");
    uint64_t stops[] = {stop(f, 1), stop(f, 1), stop(f, 1)};
    for (size_t i = 0; i < ARRAY_LEN(stops); i++)
        assert_int_equal(wait_answer(f, stops[i])->kind, MSG_EVENT_EXITED);
    expect_done(wait_answer(f, started), ERR_CANCELLED, "build: was stopped before it was ready");
    assert_int_equal(answers_to(f, 0), 0);
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
    struct fixture *f = *state;
    const struct msg_event *e = wait_answer(f, start_server(f, 1, free_port(), NULL));
    assert_int_equal(e->kind, MSG_EVENT_STARTED);
    pid_t pid = (pid_t)e->u.started.pid;
    must(kill(parent_of(pid), SIGKILL) == 0);
    e = wait_unasked(f, MSG_EVENT_EXITED);
    assert_int_equal(e->u.exited.proc, 1);
    assert_false(e->u.exited.asked);
    assert_int_equal(kill(pid, 0), -1);
    assert_int_equal(wait_answer(f, stop(f, 1))->kind, MSG_EVENT_EXITED);
    e = wait_answer(f, start_server(f, 2, free_port(), NULL)); /* the job is over here */
    expect_done(e, ERR_CLOSED, "server");
    struct msg_command load = load_command(3, 9);
    expect_done(wait_answer(f, give(f, &load)), ERR_CLOSED, "generator");
}

static void test_server_that_dies_later(void **state)
{
    struct fixture *f = *state;
    const struct msg_event *e = wait_answer(f, start_server(f, 1, free_port(), NULL));
    assert_int_equal(e->kind, MSG_EVENT_STARTED);
    must(kill((pid_t)e->u.started.pid, SIGKILL) == 0);
    e = wait_unasked(f, MSG_EVENT_EXITED);
    assert_int_equal(e->u.exited.proc, 1);
    assert_false(e->u.exited.asked);
    assert_int_equal(e->u.exited.status, -1);
    assert_int_equal(e->u.exited.signal, SIGKILL);
    assert_memory_equal(e->u.exited.log.data, "listening on ", 13);
}

static void test_build_steps(void **state)
{
    struct fixture *f = *state;
    struct msg_start s = {.proc = 1, .label = word("build"), .ready = MSG_READY_EXIT};
    const struct msg_event *e = wait_answer(f, start_shell(f, s, "pwd; touch built"));
    assert_int_equal(e->kind, MSG_EVENT_EXITED);
    assert_int_equal(e->u.exited.status, 0);
    char *dir = mem_printf("%s/workspaces/job-1/tree\n", f->dir); /* the workspace is where it runs */
    assert_string_equal(e->u.exited.log_tail, dir);
    free(dir);
    s.proc = 2;
    expect_done(wait_answer(f, start_shell(f, s, "echo no such module >&2; exit 1")), ERR_FAILED,
                "build: ended with status 1; its last output:\nno such module");
    s.proc = 3;
    s.ready_timeout_ns = 50 * NS_PER_MS;
    expect_done(wait_answer(f, start_shell(f, s, "exec sleep 1000")), ERR_TIMEOUT,
                "build: did not end within 50ms");
}

static void test_starts_that_cannot_be(void **state)
{
    struct fixture *f = *state;
    char *missing[] = {word("/no/such/program"), NULL};
    struct msg_start s = {.proc = 1, .label = word("x"), .dir = word("/")};
    const struct msg_event *e = wait_answer(f, start(f, s, missing));
    expect_done(e, ERR_NOT_FOUND, "x: ");
    expect_done(wait_answer(f, stop(f, 99)), ERR_NOT_FOUND, "process 99 was never started here");
    s.proc = 2;
    s.dir = word("../outside");
    expect_done(wait_answer(f, start_shell(f, s, "true")), ERR_INVALID, "../outside");
    s.dir = word("/no/such/directory");
    e = wait_answer(f, start_shell(f, s, "true"));
    expect_done(e, ERR_NOT_FOUND, "/no/such/directory");
    struct msg_command empty = {.kind = MSG_COMMAND_START, .u.start = {.proc = 3, .label = word("x")}};
    expect_done(wait_answer(f, give(f, &empty)), ERR_INVALID, "0 words");
    s = http_start(4, 0);
    expect_done(wait_answer(f, start_shell(f, s, "true")), ERR_INVALID, "needs a port");
    s = (struct msg_start){.proc = 5, .label = word("x"), .dir = word("/")};
    assert_int_equal(wait_answer(f, start_shell(f, s, "exec sleep 1000"))->kind, MSG_EVENT_STARTED);
    expect_done(wait_answer(f, start_shell(f, s, "true")), ERR_EXISTS, "process number 5 is taken");
}

static void test_relative_directory_needs_a_workspace(void **state)
{
    struct fixture *f = *state;
    close_task(f);
    open_task(f, false);
    struct msg_start s = {.proc = 1, .label = word("x"), .dir = word("apps")};
    expect_done(wait_answer(f, start_shell(f, s, "true")), ERR_INVALID, "the job has none on this host");
    s.proc = 2;
    s.dir = NULL; /* never the agent's own directory */
    expect_done(wait_answer(f, start_shell(f, s, "true")), ERR_INVALID, "the job has none on this host");
    struct msg_command files = {.kind = MSG_COMMAND_FILES};
    expect_done(wait_answer(f, give(f, &files)), ERR_STATE, "no workspace");
}

/* ---- FILES
 * ------------------------------------------------------------------------------------------------------ */

static void test_files_come_before_a_start(void **state)
{
    struct fixture *f = *state;
    static const char script[] = "echo it runs\n";
    struct msg_file file = {.path = word("bin/run.sh"), .size_bytes = sizeof script - 1, .mode = 0755};
    sha256_of(script, sizeof script - 1, file.hash);
    struct msg_command files = {.kind = MSG_COMMAND_FILES, .u.files = {&file, 1}};
    uint64_t listed = give(f, &files);
    struct msg_command chunk = {.kind = MSG_COMMAND_CHUNK};
    memcpy(chunk.u.chunk.hash, file.hash, sizeof file.hash);
    chunk.u.chunk.data = (struct msg_bytes){(uint8_t *)word(script), sizeof script - 1};
    uint64_t sent = give(f, &chunk);
    struct msg_start s = {.proc = 1, .label = word("x"), .dir = word("bin"), .ready = MSG_READY_EXIT};
    char *argv[] = {word("sh"), word("run.sh"), NULL};
    uint64_t started = start(f, s, argv); /* none of the three was answered yet */
    const struct msg_event *e = wait_answer(f, started);
    assert_int_equal(e->kind, MSG_EVENT_EXITED);
    assert_string_equal(e->u.exited.log_tail, "it runs\n");
    e = answer_to(f, listed);
    assert_int_equal(e->kind, MSG_EVENT_FILES);
    assert_int_equal(e->u.files.count, 1);
    assert_memory_equal(e->u.files.items[0].hash, file.hash, sizeof file.hash);
    expect_done(answer_to(f, sent), ERR_OK, "");
    e = wait_answer(f, give(f, &files));
    assert_int_equal(e->u.files.count, 0);
    file.path = word("../outside");
    expect_done(wait_answer(f, give(f, &files)), ERR_INVALID, "../outside");
}

/* ---- CHECK, SAMPLE
 * ------------------------------------------------------------------------------------------------ */

static void test_check_of_a_server(void **state)
{
    struct fixture *f = *state;
    uint16_t port = free_port();
    wait_answer(f, start_server(f, 1, port, NULL));
    struct msg_command c = {.kind = MSG_COMMAND_CHECK};
    c.u.check = (struct msg_check){.name = word("ping"),
                                   .host = word("127.0.0.1"),
                                   .port = port,
                                   .request = {.method = word("GET"), .path = word("/")},
                                   .status = 200,
                                   .timeout_ns = 30 * NS_PER_S};
    const struct msg_event *e = wait_answer(f, give(f, &c));
    assert_int_equal(e->kind, MSG_EVENT_CHECKED);
    assert_true(e->u.checked.ok);
    c.u.check.status = 201;
    e = wait_answer(f, give(f, &c));
    assert_false(e->u.checked.ok);
    assert_string_equal(e->u.checked.difference, "status: expected 201, got 200");
    c.u.check.request.path = word("bad");
    expect_done(wait_answer(f, give(f, &c)), ERR_INVALID, "request path \"bad\"");
}

static void test_sample(void **state)
{
    struct fixture *f = *state;
    wait_answer(f, start_server(f, 1, free_port(), NULL));
    struct msg_command c = {.kind = MSG_COMMAND_SAMPLE, .u.sample = {.procs = {1}, .proc_count = 1}};
    uint64_t before_ns = clock_now_ns();
    const struct msg_event *e = wait_answer(f, give(f, &c));
    assert_int_equal(e->kind, MSG_EVENT_SAMPLED);
    assert_in_range(e->u.sampled.at_ns, before_ns, clock_now_ns());
    assert_true(e->u.sampled.busy_ns > 0 && e->u.sampled.own_ns > 0);
    assert_int_equal(e->u.sampled.proc_count, 1);
    assert_true(e->u.sampled.procs[0].alive);
    assert_int_equal(e->u.sampled.procs[0].processes, 1);
    assert_true(e->u.sampled.procs[0].rss_bytes > 0);
    c.u.sample.procs[0] = 2;
    expect_done(wait_answer(f, give(f, &c)), ERR_NOT_FOUND, "process 2 was never started here");
}

/* ---- LOAD
 * -----------------------------------------------------------------------------------------------------------
 */

static void test_load_of_a_server(void **state)
{
    struct fixture *f = *state;
    uint16_t port = free_port();
    wait_answer(f, start_server(f, 1, port, NULL));
    struct msg_command c = load_command(2, port);
    c.u.load.warmup_ns = 100 * NS_PER_MS;
    uint64_t before_ns = clock_now_ns();
    uint64_t number = give(f, &c);
    struct msg_command second = load_command(3, port);
    expect_done(wait_answer(f, give(f, &second)), ERR_BUSY, "another load runs");
    const struct msg_event *e = wait_answer(f, number);
    if (e->kind != MSG_EVENT_LOADED)
        fail_msg("%s", msg_text(e->text));
    const struct msg_loaded *l = &e->u.loaded;
    assert_int_equal(l->window_end_ns - l->window_start_ns, 300 * NS_PER_MS);
    assert_true(l->window_start_ns > before_ns && l->window_end_ns < clock_now_ns());
    assert_true(l->window.ok > 0);
    assert_int_equal(l->window.failed, 0);
    assert_int_equal(l->body_bytes, 2 * l->window.ok);
    assert_memory_equal(l->generator, "splitbench-load ", 16);
    static const enum msg_progress_kind expected[] = {MSG_PROGRESS_WARMUP_START, MSG_PROGRESS_WINDOW_START,
                                                      MSG_PROGRESS_WINDOW_END};
    size_t seen = 0;
    for (size_t i = 0; i < f->count; i++)
        if (f->events[i].kind == MSG_EVENT_PROGRESS && f->events[i].u.progress.kind != MSG_PROGRESS_TICK) {
            assert_true(seen < ARRAY_LEN(expected));
            assert_int_equal(f->events[i].u.progress.kind, expected[seen++]);
        }
    assert_int_equal(seen, ARRAY_LEN(expected));
    assert_int_equal(wait_answer(f, stop(f, 2))->kind, MSG_EVENT_EXITED); /* it is over: at once */
    c = load_command(4, port);
    assert_int_equal(wait_answer(f, give(f, &c))->kind, MSG_EVENT_LOADED); /* no second proof is needed */
}

static void test_load_with_an_exact_length(void **state)
{
    struct fixture *f = *state;
    uint16_t port = free_port();
    wait_answer(f, start_server(f, 1, port, NULL));
    struct msg_command c = load_command(2, port);
    c.u.load.has_body_bytes = true;
    c.u.load.body_bytes = 2;
    const struct msg_event *e = wait_answer(f, give(f, &c));
    assert_int_equal(e->kind, MSG_EVENT_LOADED);
    assert_true(e->u.loaded.window.ok > 0 && e->u.loaded.window.failed == 0);
    c.u.load.proc = 3;
    c.u.load.body_bytes = 3;
    e = wait_answer(f, give(f, &c));
    assert_int_equal(e->kind, MSG_EVENT_LOADED); /* a result, in which every answer is a failure */
    assert_true(e->u.loaded.window.ok == 0 && e->u.loaded.window.failed > 0);
    assert_int_equal(e->u.loaded.error_count, 1);
    assert_string_equal(e->u.loaded.errors[0].cause, "check");
}

static void test_load_of_nothing(void **state)
{
    struct fixture *f = *state;
    struct msg_command c = load_command(1, free_port());
    expect_done(wait_answer(f, give(f, &c)), ERR_UNREACHABLE, "no connection could be opened: refused");
    c.u.load.proc = 2;
    c.u.load.tool = word("siege");
    expect_done(wait_answer(f, give(f, &c)), ERR_UNSUPPORTED, "it knows: builtin");
    c.u.load.tool = word("builtin");
    c.u.load.connections = 0;
    expect_done(wait_answer(f, give(f, &c)), ERR_INVALID, "0 connections");
}

static void expect_load(struct fixture *f, const char *script, enum err code, const char *part)
{
    fake_generator(f, script);
    struct msg_command c = load_command(1, 9);
    uint64_t number = give(f, &c);
    expect_done(wait_answer(f, number), code, part);
    assert_int_equal(answers_to(f, number), 1);
}

static void test_generators_that_are_no_good(void **state)
{
    struct fixture *f = *state;
    expect_load(f, "echo wrk 4.1.0", ERR_INVALID,
                "is not splitbench-load: to --version it says \"wrk 4.1.0\"");
    expect_load(f, "echo broken >&2; exit 1", ERR_FAILED,
                "generator: it ended with status 1; its last output:\nbroken");
    expect_load(f, SAYS_VERSION "echo '{\"format\":'", ERR_INVALID, "generator: splitbench-load: ");
    expect_load(f, SAYS_VERSION "exit 0", ERR_INVALID, "it ended with status 0 and printed no result");
    expect_load(f, SAYS_VERSION "echo '--foo: unknown' >&2; exit 2", ERR_FAILED,
                "status 2; its last output:\n--foo");
    expect_load(f, SAYS_VERSION "kill -SEGV $$", ERR_FAILED, "was ended by signal 11");
    expect_load(f, SAYS_VERSION "head -c 5000000 /dev/zero", ERR_TOO_BIG, "more than 4194304 bytes");
}

static void test_missing_generator(void **state)
{
    struct fixture *f = *state;
    fake_generator(f, "exit 0");
    must(unlink(f->load_program) == 0);
    struct msg_command c = load_command(1, 9);
    expect_done(wait_answer(f, give(f, &c)), ERR_NOT_FOUND, "generator");
}

static void test_hostile_events_are_dropped(void **state)
{
    struct fixture *f = *state;
    fake_generator(f,
                   SAYS_VERSION "for i in 1 2 3 4 5 6 7 8 9; do\n"
                                "echo '{\"event\":\"window_start\",\"t_ns\":\"1\"}' >&2\n"
                                "echo '{\"event\":\"progress\",\"t_ns\":\"2\",\"ok\":1,\"failed\":0}' >&2\n"
                                "echo '{\"event\":\"window_end\",\"t_ns\":\"4000000000000000000\"}' >&2\n"
                                "echo '{\"event\":' >&2\n"
                                "done\n");
    struct msg_command c = load_command(1, 9);
    expect_done(wait_answer(f, give(f, &c)), ERR_INVALID, "printed no result");
    size_t starts = 0;
    size_t others = 0;
    for (size_t i = 0; i < f->count; i++) {
        bool progress = f->events[i].kind == MSG_EVENT_PROGRESS;
        starts += progress && f->events[i].u.progress.kind == MSG_PROGRESS_WINDOW_START;
        others += progress && f->events[i].u.progress.kind == MSG_PROGRESS_WINDOW_END;
    }
    assert_int_equal(starts, 1); /* an edge is told once */
    assert_int_equal(others, 0); /* and one that lies in the future never */
}

static void test_stop_of_a_generator(void **state)
{
    struct fixture *f = *state;
    fake_generator(f, SAYS_VERSION "echo '{\"event\":\"window_start\",\"t_ns\":\"1\"}' >&2\nexec sleep 1000");
    struct msg_command c = load_command(1, 9);
    uint64_t number = give(f, &c);
    wait_unasked(f, MSG_EVENT_PROGRESS);
    uint64_t stopped = stop(f, 1);
    expect_done(wait_answer(f, number), ERR_CANCELLED, "generator: was stopped");
    assert_int_equal(wait_answer(f, stopped)->kind, MSG_EVENT_EXITED);
    c = load_command(1, 9);
    expect_done(wait_answer(f, give(f, &c)), ERR_EXISTS, "process number 1 is taken");
}

/* ---- the end
 * -----------------------------------------------------------------------------------------------------------
 */

static void test_close_answers_everything(void **state)
{
    struct fixture *f = *state;
    uint16_t port = free_port();
    const struct msg_event *e = wait_answer(f, start_server(f, 1, port, NULL));
    pid_t pid = (pid_t)e->u.started.pid;
    struct msg_command load = load_command(2, port);
    load.u.load.duration_ns = 1000 * NS_PER_S;
    struct msg_command check = {.kind = MSG_COMMAND_CHECK};
    check.u.check = (struct msg_check){.port = port, .status = 200, .timeout_ns = 30 * NS_PER_S};
    struct msg_command files = {.kind = MSG_COMMAND_FILES};
    struct msg_start build = {.proc = 4, .label = word("build"), .ready = MSG_READY_EXIT};
    uint64_t numbers[] = {
        give(f, &load),  give(f, &check), start_shell(f, http_start(3, free_port()), "exec sleep 1000"),
        give(f, &files), give(f, &files), start_shell(f, build, "exec sleep 1000"),
        stop(f, 1),
    };
    close_task(f);
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
        if (answers_to(f, numbers[i]) != 1)
            fail_msg("command %zu has %zu answers", i, answers_to(f, numbers[i]));
    assert_int_equal(kill(pid, 0), -1);
}

int main(int argc, char **argv)
{
    int code = 0;
    if (supervisor_main(argc, argv, &code))
        _exit(code); /* a leak check at its exit may hang: it stops and traces the process it runs in */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_server_starts_and_stops, setup, teardown),
        cmocka_unit_test_setup_teardown(test_port_in_use_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(test_server_that_exits_first, setup, teardown),
        cmocka_unit_test_setup_teardown(test_long_causes_are_cut, setup, teardown),
        cmocka_unit_test_setup_teardown(test_server_that_goes_into_the_background, setup, teardown),
        cmocka_unit_test_setup_teardown(test_server_that_is_never_ready, setup, teardown),
        cmocka_unit_test_setup_teardown(test_stop_before_it_is_ready, setup, teardown),
        cmocka_unit_test_setup_teardown(test_every_stop_is_answered, setup, teardown),
        cmocka_unit_test_setup_teardown(test_lost_supervisor, setup, teardown),
        cmocka_unit_test_setup_teardown(test_server_that_dies_later, setup, teardown),
        cmocka_unit_test_setup_teardown(test_build_steps, setup, teardown),
        cmocka_unit_test_setup_teardown(test_starts_that_cannot_be, setup, teardown),
        cmocka_unit_test_setup_teardown(test_relative_directory_needs_a_workspace, setup, teardown),
        cmocka_unit_test_setup_teardown(test_files_come_before_a_start, setup, teardown),
        cmocka_unit_test_setup_teardown(test_check_of_a_server, setup, teardown),
        cmocka_unit_test_setup_teardown(test_sample, setup, teardown),
        cmocka_unit_test_setup_teardown(test_load_of_a_server, setup, teardown),
        cmocka_unit_test_setup_teardown(test_load_with_an_exact_length, setup, teardown),
        cmocka_unit_test_setup_teardown(test_load_of_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(test_generators_that_are_no_good, setup, teardown),
        cmocka_unit_test_setup_teardown(test_missing_generator, setup, teardown),
        cmocka_unit_test_setup_teardown(test_hostile_events_are_dropped, setup, teardown),
        cmocka_unit_test_setup_teardown(test_stop_of_a_generator, setup, teardown),
        cmocka_unit_test_setup_teardown(test_close_answers_everything, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
