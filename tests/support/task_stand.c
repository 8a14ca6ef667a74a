#include "tests/support/task_stand.h"

#include "common/clock.h"
#include "common/mem.h"

#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

/* ---- life ---------------------------------------------------------------------------------------------- */

static void on_event(void *arg, const struct msg_event *event)
{
    struct stand *s = arg;
    must(s->count < STAND_EVENTS_MAX);
    msg_event_copy(&s->events[s->count++], event);
}

static void on_closed(void *arg)
{
    struct stand *s = arg;
    s->closed = true;
}

static void turn(struct stand *s)
{
    if (!wait_turn(&s->loop, s->limit_ns))
        fail_msg("the test takes too long");
}

void stand_open(struct stand *s, bool workspace)
{
    struct msg_job_open open = {.role = NULL, .workspace = workspace};
    struct task_options options = {.loop = &s->loop,
                                   .job = "job-1",
                                   .open = &open,
                                   .state_dir = s->scratch.dir,
                                   .load_program = s->load_program,
                                   .lease_ns = 600 * NS_PER_S,
                                   .emit = on_event,
                                   .arg = s};
    struct err_detail d = {""};
    if (task_new(&options, &s->task, &d) != ERR_OK)
        fail_msg("%s", d.text);
    s->closed = false;
}

void stand_close(struct stand *s)
{
    task_close(&s->task, on_closed, s);
    while (!s->closed)
        turn(s);
}

int stand_set_up(void **state)
{
    struct stand *s = mem_zalloc(1, sizeof *s);
    const char *bin = getenv("SPLITBENCH_BIN");
    must(uv_loop_init(&s->loop) == 0);
    s->limit_ns = wait_limit();
    scratch_init(&s->scratch);
    char *program = mem_printf("%s/splitbench-load", bin != NULL ? bin : "build/bin");
    s->load_program = realpath(program, NULL);
    must(s->load_program != NULL);
    free(program);
    stand_open(s, true);
    *state = s;
    return 0;
}

int stand_tear_down(void **state)
{
    struct stand *s = *state;
    if (s->task != NULL)
        stand_close(s);
    uv_run(&s->loop, UV_RUN_DEFAULT);
    must(uv_loop_close(&s->loop) == 0);
    for (size_t i = 0; i < s->count; i++)
        msg_event_fini(&s->events[i]);
    scratch_fini(&s->scratch);
    free(s->load_program);
    free(s);
    return 0;
}

/* ---- events -------------------------------------------------------------------------------------------- */

size_t stand_answers(const struct stand *s, uint64_t number)
{
    size_t n = 0;
    for (size_t i = 0; i < s->count; i++)
        n += s->events[i].answers == number;
    return n;
}

const struct msg_event *stand_answer(const struct stand *s, uint64_t number)
{
    for (size_t i = 0; i < s->count; i++)
        if (s->events[i].answers == number)
            return &s->events[i];
    return NULL;
}

const struct msg_event *stand_wait_answer(struct stand *s, uint64_t number)
{
    while (stand_answer(s, number) == NULL)
        turn(s);
    return stand_answer(s, number);
}

const struct msg_event *stand_wait_unasked(struct stand *s, enum msg_event_kind kind)
{
    for (;;) {
        for (size_t i = 0; i < s->count; i++)
            if (s->events[i].answers == 0 && s->events[i].kind == kind)
                return &s->events[i];
        turn(s);
    }
}

void stand_expect_done(const struct msg_event *e, enum err code, const char *part)
{
    if (e->kind != MSG_EVENT_DONE || e->code != code || strstr(msg_text(e->text), part) == NULL)
        fail_msg("%s %s: %s; expected %s: %s", msg_event_name(e->kind), err_text(e->code), msg_text(e->text),
                 err_text(code), part);
}

/* ---- commands ------------------------------------------------------------------------------------------ */

char *stand_word(const char *text)
{
    return (char *)(uintptr_t)text; /* the task copies what it keeps */
}

uint16_t stand_free_port(void)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof at;
    must(fd >= 0 && bind(fd, (const struct sockaddr *)&at, sizeof at) == 0);
    must(getsockname(fd, (struct sockaddr *)&at, &len) == 0);
    close(fd);
    return ntohs(at.sin_port);
}

uint64_t stand_give(struct stand *s, struct msg_command *command)
{
    command->number = ++s->next_number;
    command->job = (char *)(uintptr_t) "job-1";
    task_handle(s->task, command);
    return command->number;
}

uint64_t stand_start(struct stand *s, struct msg_start start, char **argv)
{
    while (argv[start.argv.count] != NULL)
        start.argv.count++;
    start.argv.items = argv;
    start.grace_ns = start.grace_ns != 0 ? start.grace_ns : 5 * NS_PER_S;
    struct msg_command c = {.kind = MSG_COMMAND_START, .u.start = start};
    return stand_give(s, &c);
}

uint64_t stand_start_shell(struct stand *s, struct msg_start start, const char *script)
{
    char *argv[] = {stand_word("sh"), stand_word("-c"), stand_word(script), NULL};
    return stand_start(s, start, argv);
}

uint64_t stand_stop(struct stand *s, uint32_t proc)
{
    struct msg_command c = {.kind = MSG_COMMAND_STOP, .u.stop.proc = proc};
    return stand_give(s, &c);
}

struct msg_start stand_http_start(uint32_t proc, uint16_t port)
{
    return (struct msg_start){.proc = proc,
                              .label = stand_word("server"),
                              .dir = stand_word("/"),
                              .ready = MSG_READY_HTTP,
                              .ready_port = port,
                              .ready_path = stand_word("/"),
                              .ready_timeout_ns = 30 * NS_PER_S};
}

uint64_t stand_start_server(struct stand *s, uint32_t proc, uint16_t port, const char *delay_ms)
{
    const char *tools = getenv("SPLITBENCH_TOOLS");
    char path[512];
    char port_text[8];
    char *argv[] = {path, port_text, stand_word(delay_ms), NULL};
    snprintf(path, sizeof path, "%s/tool_target", tools != NULL ? tools : "build/tests");
    snprintf(port_text, sizeof port_text, "%u", port);
    char *real = realpath(path, NULL);
    must(real != NULL);
    argv[0] = real;
    uint64_t number = stand_start(s, stand_http_start(proc, port), argv);
    free(real);
    return number;
}

struct msg_command stand_load_command(uint32_t proc, uint16_t port)
{
    struct msg_command c = {.kind = MSG_COMMAND_LOAD};
    c.u.load = (struct msg_load){.proc = proc,
                                 .tool = stand_word("builtin"),
                                 .host = stand_word("127.0.0.1"),
                                 .port = port,
                                 .request = {.method = stand_word("GET"), .path = stand_word("/")},
                                 .connections = 4,
                                 .threads = 1,
                                 .duration_ns = 300 * NS_PER_MS,
                                 .timeout_ns = 5 * NS_PER_S};
    return c;
}
