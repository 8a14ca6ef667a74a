#include "tests/support/mini_controller.h"

#include "common/clock.h"
#include "common/mem.h"
#include "proto/link/nng_faults/faults.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void answer_poll(struct mini *m)
{
    if (m->held == NULL)
        return;
    struct msg reply;
    msg_init(&reply, MSG_COMMANDS);
    reply.u.commands.items = m->commands;
    reply.u.commands.count = m->command_count < MSG_COMMANDS_MAX ? m->command_count : MSG_COMMANDS_MAX;
    link_answer(&m->held, &reply);
    uv_timer_stop(&m->hold_timer);
}

static void on_hold_timer(uv_timer_t *timer)
{
    answer_poll(timer->data);
}

static enum err on_hello(void *arg, struct link_peer *peer, const struct msg_hello *hello,
                         struct msg_welcome *welcome, struct err_detail *d)
{
    struct mini *m = arg;
    m->hellos++;
    if (m->refuse_hello != ERR_OK)
        return err_set(d, m->refuse_hello, "this test refuses");
    m->peer = peer;
    m->peer_incarnation = hello->incarnation;
    snprintf(m->held_job, sizeof m->held_job, "%s", msg_text(hello->held_job));
    m->held_run = hello->held_run;
    welcome->lease_ns = m->lease_ns;
    welcome->poll_ns = m->poll_ns;
    welcome->incarnation = m->incarnation;
    welcome->acked_event = m->acked_event;
    mem_set_string(&welcome->build, "test");
    return ERR_OK;
}

static void on_poll(struct mini *m, uint64_t acked, struct link_request *request)
{
    m->polls++;
    m->acked_command = acked;
    while (m->command_count > 0 && m->commands[0].number <= acked) {
        msg_command_fini(&m->commands[0]);
        memmove(&m->commands[0], &m->commands[1], --m->command_count * sizeof m->commands[0]);
    }
    if (m->held != NULL)
        link_refuse(&m->held, ERR_NOT_NOW, "another poll came");
    m->held = request;
    if (m->mute_polls)
        return;
    if (m->command_count > 0)
        answer_poll(m);
    else
        uv_timer_start(&m->hold_timer, on_hold_timer, m->poll_ns / NS_PER_MS, 0);
}

static void on_push(struct mini *m, const struct msg_push *push, struct link_request *request)
{
    uint64_t now_ns = clock_now_ns();
    uint64_t gap_ns = now_ns - m->push_ns;
    if (m->pushes > 0 && (m->push_gap_ns_min == 0 || gap_ns < m->push_gap_ns_min))
        m->push_gap_ns_min = gap_ns;
    m->push_ns = now_ns;
    m->pushes++;
    uint64_t last = 0;
    for (size_t i = 0; i < push->count; i++) {
        m->events = mem_realloc(m->events, m->event_count + 1, sizeof *m->events);
        struct mini_event *e = &m->events[m->event_count++];
        *e = (struct mini_event){.incarnation = push->incarnation, .push = m->pushes};
        msg_event_copy(&e->event, &push->items[i]);
        last = push->items[i].number;
    }
    if (m->mute_pushes) {
        link_peer_drop(m->peer, "this test loses the answer");
        link_refuse(&request, ERR_CLOSED, "never seen");
        return;
    }
    struct msg reply;
    msg_init(&reply, MSG_PUSHED);
    reply.u.pushed.acked_event = m->take_nothing ? 0 : last;
    link_answer(&request, &reply);
}

static void on_request(void *arg, struct link_peer *peer, const struct msg *msg, struct link_request *request)
{
    struct mini *m = arg;
    (void)peer;
    if (msg->kind == MSG_POLL)
        on_poll(m, msg->u.poll.acked_command, request);
    else if (msg->kind == MSG_PUSH)
        on_push(m, &msg->u.push, request);
    else
        link_refuse(&request, ERR_UNSUPPORTED, "not in this test");
}

static void on_enroll(void *arg, const struct msg_enroll *enroll, struct link_request *request)
{
    (void)arg;
    (void)enroll;
    link_refuse(&request, ERR_DENIED, "not in this test");
}

static void on_gone(void *arg, struct link_peer *peer, const char *why)
{
    struct mini *m = arg;
    (void)why;
    m->gone++;
    if (m->peer != peer)
        return;
    m->peer = NULL;
    if (m->held != NULL)
        link_refuse(&m->held, ERR_CLOSED, "gone");
    uv_timer_stop(&m->hold_timer);
}

static void on_refused(void *arg, const char *from, const char *why)
{
    (void)arg;
    print_message("refused %s: %s\n", from, why);
}

void mini_init(struct mini *m, uv_loop_t *loop, const char *address)
{
    *m = (struct mini){.loop = loop, .incarnation = 1, .lease_ns = 10 * NS_PER_S, .poll_ns = NS_PER_S};
    assert_int_equal(uv_timer_init(loop, &m->hold_timer), 0);
    m->hold_timer.data = m;
    struct err_detail d = {""};
    enum err e = link_server_new(&(struct link_server_options){.loop = loop,
                                                               .addresses = &address,
                                                               .address_count = 1,
                                                               .handlers = {.arg = m,
                                                                            .on_hello = on_hello,
                                                                            .on_request = on_request,
                                                                            .on_enroll = on_enroll,
                                                                            .on_gone = on_gone,
                                                                            .on_refused = on_refused}},
                                 &m->server, &d);
    if (e != ERR_OK)
        fail_msg("%s", d.text);
}

static void on_server_closed(void *arg)
{
    *(bool *)arg = true;
}

#if NNG_FAULT_CLOSE_HANGS
static bool is_settled(void *arg)
{
    const struct mini *m = arg;
    return m->held != NULL || m->peer == NULL || m->command_count > 0;
}

void mini_settle(struct mini *m)
{
    wait_until(m->loop, is_settled, m, "a poll that is held");
}
#else
void mini_settle(struct mini *m)
{
    (void)m;
}
#endif

void mini_fini(struct mini *m)
{
    bool closed = false;
    mini_settle(m);
    if (m->held != NULL)
        link_refuse(&m->held, ERR_CLOSED, "the end");
    link_server_close(&m->server, on_server_closed, &closed);
    wait_flag(m->loop, &closed, "the server to close");
    uv_close((uv_handle_t *)&m->hold_timer, NULL);
    uv_run(m->loop, UV_RUN_NOWAIT);
    for (size_t i = 0; i < m->command_count; i++)
        msg_command_fini(&m->commands[i]);
    for (size_t i = 0; i < m->event_count; i++)
        msg_event_fini(&m->events[i].event);
    free(m->commands);
    free(m->events);
}

void mini_send(struct mini *m, const struct msg_command *command)
{
    m->commands = mem_realloc(m->commands, m->command_count + 1, sizeof *m->commands);
    msg_command_copy(&m->commands[m->command_count++], command);
    if (!m->mute_polls)
        answer_poll(m);
}

void mini_send_simple(struct mini *m, uint64_t number, const char *job, enum msg_command_kind kind)
{
    struct msg_command c = {.number = number, .job = (char *)(uintptr_t)job, .kind = kind};
    mini_send(m, &c);
}

const struct msg_event *mini_answer(const struct mini *m, uint64_t number)
{
    for (size_t i = 0; i < m->event_count; i++) {
        if (m->events[i].event.answers == number)
            return &m->events[i].event;
    }
    return NULL;
}

const struct msg_event *mini_event(const struct mini *m, enum msg_event_kind kind)
{
    for (size_t i = 0; i < m->event_count; i++) {
        if (m->events[i].event.kind == kind)
            return &m->events[i].event;
    }
    return NULL;
}

struct count {
    const uint32_t *count;
    uint32_t wanted;
};

static bool is_counted(void *arg)
{
    const struct count *c = arg;
    return *c->count >= c->wanted;
}

void mini_wait_count(struct mini *m, const uint32_t *count, uint32_t wanted, const char *what)
{
    wait_until(m->loop, is_counted, &(struct count){count, wanted}, what);
}

struct msg_host mini_host(void)
{
    static char text[] = "x";
    return (struct msg_host){.hostname = text,
                             .boot_id = text,
                             .kernel = text,
                             .os = text,
                             .cpu_model = text,
                             .cpus = 1,
                             .cpu_list = text};
}
