#include "agent/uplink/uplink.h"

#include "agent/uplink/outbox.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/mem.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define CONNECT_TIMEOUT_NS (10ull * NS_PER_S)
#define RETRY_MS           1000u /* after an answer that helped nothing */
#define POLL_GAP_MS        50u   /* after an empty answer that was not held */
#define HELD_NS            (10ull * NS_PER_MS)
#define DRAIN_MS           1000u /* at the end, for what is still to be sent */

struct uplink {
    uv_loop_t *loop;
    struct uplink_handlers handlers;
    struct link_client *client;
    struct outbox *outbox;
    uint64_t incarnation;
    bool up;
    bool was_down; /* said so in the log */
    /* From WELCOME. */
    uint64_t controller; /* its incarnation; 0 before the first */
    uint64_t lease_ns;
    uint64_t hold_ns;
    /* The poll. */
    bool poll_open;
    uint64_t poll_sent_ns;
    uint64_t taken_command; /* numbers up to here have been delivered */
    uv_timer_t poll_timer;
    /* The push. */
    bool push_open;
    uint64_t push_sent_ns;
    uint64_t push_incarnation;
    uint64_t push_first; /* number of the first event in it */
    bool window_open;
    bool urgent;
    uv_timer_t push_timer;
    /* The end: first what waits is sent, then all is closed. */
    bool draining;
    int handles_open;
    void (*close_cb)(void *arg);
    void *close_arg;
};

static void poll_send(struct uplink *u);
static void push_send(struct uplink *u);
static void close_parts(struct uplink *u);

/* ---- the session --------------------------------------------------------------------------------- */

static void on_up(void *arg, const struct msg_welcome *welcome)
{
    struct uplink *u = arg;
    log_info("connected", "session=%" PRIx64 " build=%s lease_ms=%" PRIu64, welcome->session,
             msg_text(welcome->build), welcome->lease_ns / NS_PER_MS);
    u->up = true;
    u->was_down = false;
    u->lease_ns = welcome->lease_ns;
    u->hold_ns = welcome->poll_ns;
    if (u->controller != welcome->incarnation) {
        u->controller = welcome->incarnation;
        u->taken_command = 0;
    }
    outbox_ack(u->outbox, u->incarnation, welcome->acked_event);
    u->urgent = true; /* what waited through the cut has waited enough */
    poll_send(u);
    push_send(u);
}

static void on_down(void *arg, enum err e, const char *why, bool final)
{
    struct uplink *u = arg;
    u->up = false;
    uv_timer_stop(&u->poll_timer);
    uv_timer_stop(&u->push_timer);
    if (u->close_cb != NULL) {
        close_parts(u);
        return;
    }
    if (final) {
        log_error("refused", "code=\"%s\" why=\"%s\"", err_text(e), why);
        u->handlers.on_final(u->handlers.arg, e, why);
        return;
    }
    log_line(u->was_down ? LOG_DEBUG : LOG_WARN, "disconnected", "why=\"%s\" next=\"dialling again\"", why);
    u->was_down = true;
}

/* An unanswered call: the connection may be half open for ever, so it is ours to notice. */
static void drop_silent(struct uplink *u, const char *what)
{
    char why[64];
    snprintf(why, sizeof why, "%s was not answered in time", what);
    log_warn("silence", "what=%s", what);
    link_client_redial(u->client, why);
}

/* ---- the poll: commands come, the lease is renewed ----------------------------------------------- */

static void on_poll_timer(uv_timer_t *timer)
{
    poll_send(timer->data);
}

/* Delivers what is new and next in line; returns how many. */
static size_t take_commands(struct uplink *u, const struct msg_commands *commands)
{
    size_t taken = 0;
    for (size_t i = 0; i < commands->count; i++) {
        const struct msg_command *c = &commands->items[i];
        if (c->number <= u->taken_command)
            continue; /* re-sent before our acknowledgement came through */
        if (c->number != u->taken_command + 1) {
            log_warn("command_gap", "got=%" PRIu64 " expected=%" PRIu64, c->number, u->taken_command + 1);
            break;
        }
        u->taken_command = c->number;
        taken++;
        log_debug("command", "number=%" PRIu64 " job=%s kind=%s", c->number, msg_text(c->job),
                  msg_command_name(c->kind));
        u->handlers.on_command(u->handlers.arg, c);
        if (u->close_cb != NULL)
            break;
    }
    return taken;
}

static void on_poll(void *arg, enum err e, const struct msg *reply, const struct err_detail *d)
{
    struct uplink *u = arg;
    u->poll_open = false;
    if (u->close_cb != NULL || e == ERR_CLOSED)
        return;
    if (e == ERR_TIMEOUT) {
        drop_silent(u, "poll");
        return;
    }
    uint64_t wait_ms = 0;
    if (e != ERR_OK) {
        log_warn("poll_refused", "code=\"%s\" why=\"%s\"", err_text(e), d->text);
        wait_ms = RETRY_MS;
    } else {
        const struct msg_commands *commands = &reply->u.commands;
        u->handlers.on_renew(u->handlers.arg, u->poll_sent_ns, u->lease_ns);
        size_t taken = take_commands(u, commands);
        if (commands->count > 0 && taken == 0)
            wait_ms = RETRY_MS;
        else if (commands->count == 0 && clock_now_ns() - u->poll_sent_ns < HELD_NS)
            wait_ms = POLL_GAP_MS;
    }
    if (u->close_cb != NULL || !u->up)
        return;
    if (wait_ms > 0)
        uv_timer_start(&u->poll_timer, on_poll_timer, wait_ms, 0);
    else
        poll_send(u);
}

static void poll_send(struct uplink *u)
{
    if (!u->up || u->poll_open)
        return;
    struct msg m;
    msg_init(&m, MSG_POLL);
    m.u.poll.acked_command = u->taken_command;
    u->poll_sent_ns = clock_now_ns();
    u->poll_open = true;
    enum err e = link_client_call(u->client, &m, u->hold_ns + UPLINK_SILENCE_NS, on_poll, u);
    msg_fini(&m);
    if (e != ERR_OK) {
        u->poll_open = false;
        log_warn("poll_failed", "code=\"%s\"", err_text(e));
        uv_timer_start(&u->poll_timer, on_poll_timer, RETRY_MS, 0);
    }
}

/* ---- the push: events go, acknowledgements come -------------------------------------------------- */

static void on_push_timer(uv_timer_t *timer)
{
    push_send(timer->data);
}

static void on_push(void *arg, enum err e, const struct msg *reply, const struct err_detail *d)
{
    struct uplink *u = arg;
    u->push_open = false;
    if (e == ERR_CLOSED)
        return;
    if (e == ERR_TIMEOUT) {
        drop_silent(u, "push");
        return;
    }
    bool helped = false;
    if (e != ERR_OK) {
        log_warn("push_refused", "code=\"%s\" why=\"%s\"", err_text(e), d->text);
    } else {
        helped = reply->u.pushed.acked_event >= u->push_first;
        outbox_ack(u->outbox, u->push_incarnation, reply->u.pushed.acked_event);
    }
    if (!u->up)
        return;
    if (helped)
        push_send(u);
    else if (!u->draining)
        uv_timer_start(&u->push_timer, on_push_timer, RETRY_MS, 0);
    if (u->draining && !u->push_open)
        close_parts(u);
}

static void push_send(struct uplink *u)
{
    if (!u->up || u->push_open || outbox_is_empty(u->outbox))
        return;
    uint64_t now = clock_now_ns();
    if (u->window_open && !u->urgent && now < u->push_sent_ns + UPLINK_BATCH_GAP_NS) {
        if (!uv_is_active((uv_handle_t *)&u->push_timer)) {
            uint64_t wait_ns = u->push_sent_ns + UPLINK_BATCH_GAP_NS - now;
            uv_update_time(u->loop);
            uv_timer_start(&u->push_timer, on_push_timer, wait_ns / NS_PER_MS + 1, 0);
        }
        return;
    }
    struct msg m;
    msg_init(&m, MSG_PUSH);
    if (!outbox_next(u->outbox, &m.u.push))
        return;
    uv_timer_stop(&u->push_timer);
    u->urgent = false;
    u->push_sent_ns = now;
    u->push_incarnation = m.u.push.incarnation;
    u->push_first = m.u.push.items[0].number;
    u->push_open = true;
    enum err e = link_client_call(u->client, &m, UPLINK_PUSH_TIMEOUT_NS, on_push, u);
    outbox_push_fini(&m.u.push);
    msg_fini(&m);
    if (e != ERR_OK) {
        u->push_open = false;
        log_warn("push_failed", "code=\"%s\"", err_text(e));
        uv_timer_start(&u->push_timer, on_push_timer, RETRY_MS, 0);
    }
}

/* Must not wait for the next batch: somebody acts on it. */
static bool is_urgent(const struct msg_event *event)
{
    if (event->code != ERR_OK)
        return true;
    if (event->kind == MSG_EVENT_PROGRESS)
        return event->u.progress.kind != MSG_PROGRESS_TICK;
    return event->kind == MSG_EVENT_EXITED && event->answers == 0;
}

void uplink_emit(struct uplink *u, const struct msg_event *event)
{
    must(u->close_cb == NULL);
    outbox_add(u->outbox, event);
    if (event->kind == MSG_EVENT_PROGRESS && event->u.progress.kind == MSG_PROGRESS_WINDOW_START)
        u->window_open = true;
    else if ((event->kind == MSG_EVENT_PROGRESS && event->u.progress.kind == MSG_PROGRESS_WINDOW_END) ||
             event->kind == MSG_EVENT_LOADED)
        u->window_open = false;
    u->urgent |= is_urgent(event);
    push_send(u);
}

void uplink_set_job(struct uplink *u, const char *job)
{
    u->window_open = false;
    link_client_set_held_job(u->client, job);
}

uint64_t uplink_incarnation(const struct uplink *u)
{
    return u->incarnation;
}

bool uplink_is_idle(const struct uplink *u)
{
    return outbox_is_empty(u->outbox);
}

/* ---- life ---------------------------------------------------------------------------------------- */

static void uplink_free(struct uplink *u)
{
    outbox_free(u->outbox);
    free(u);
}

enum err uplink_new(const struct uplink_options *options, struct uplink **out, struct err_detail *d)
{
    struct uplink *u = mem_zalloc(1, sizeof *u);
    u->loop = options->loop;
    u->handlers = options->handlers;
    do {
        identity_random(&u->incarnation, sizeof u->incarnation);
    } while (u->incarnation == 0);
    enum err e = outbox_new(&(struct outbox_options){.spool_dir = options->spool_dir,
                                                     .spool_bytes_max = LIMIT_SPOOL_BYTES,
                                                     .incarnation = u->incarnation},
                            &u->outbox, d);
    if (e != ERR_OK)
        goto out;
    struct msg_hello hello = {.protocol = MSG_PROTOCOL_VERSION,
                              .build = (char *)(uintptr_t)SPLITBENCH_BUILD,
                              .role = MSG_ROLE_AGENT,
                              .name = (char *)(uintptr_t)options->name,
                              .incarnation = u->incarnation,
                              .host = *options->host};
    e = link_client_new(
        &(struct link_client_options){.loop = options->loop,
                                      .address = options->address,
                                      .identity = options->identity,
                                      .connect_timeout_ns = CONNECT_TIMEOUT_NS,
                                      .handlers = {.arg = u, .on_up = on_up, .on_down = on_down}},
        &hello, &u->client, d);
    if (e != ERR_OK)
        goto out;
    must(uv_timer_init(u->loop, &u->poll_timer) == 0);
    must(uv_timer_init(u->loop, &u->push_timer) == 0);
    u->poll_timer.data = u;
    u->push_timer.data = u;
    *out = u;
    return ERR_OK;
out:
    uplink_free(u);
    return e;
}

static void on_part_closed(struct uplink *u)
{
    if (--u->handles_open > 0)
        return;
    void (*cb)(void *arg) = u->close_cb;
    void *arg = u->close_arg;
    uplink_free(u);
    cb(arg);
}

static void on_timer_closed(uv_handle_t *handle)
{
    on_part_closed(handle->data);
}

static void on_client_closed(void *arg)
{
    on_part_closed(arg);
}

static void close_parts(struct uplink *u)
{
    if (u->handles_open > 0)
        return;
    u->up = false;
    u->draining = false;
    u->handles_open = 3;
    uv_close((uv_handle_t *)&u->poll_timer, on_timer_closed);
    uv_close((uv_handle_t *)&u->push_timer, on_timer_closed);
    link_client_close(&u->client, on_client_closed, u);
}

static void on_drain_timer(uv_timer_t *timer)
{
    close_parts(timer->data);
}

void uplink_close(struct uplink **uplink, void (*cb)(void *arg), void *arg)
{
    struct uplink *u = *uplink;
    *uplink = NULL;
    u->close_cb = cb;
    u->close_arg = arg;
    u->draining = true;
    u->urgent = true;
    push_send(u);
    uv_timer_stop(&u->push_timer);
    if (!u->push_open) {
        close_parts(u);
        return;
    }
    uv_update_time(u->loop);
    uv_timer_start(&u->poll_timer, on_drain_timer, DRAIN_MS, 0);
}
