#include "agent/uplink/uplink.h"

#include "agent/uplink/outbox.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/machine.h"
#include "common/mem.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define CONNECT_TIMEOUT_NS (10ull * NS_PER_S)
#define RETRY_MS           1000u /* after an answer that brought nothing forward */
#define POLL_GAP_MS        50u   /* after an empty answer that was not held */
#define HELD_NS            (10ull * NS_PER_MS)
#define DRAIN_MS           1000u /* at the end, for what is still to be sent */

#define STATE_LIST(X)                                                                                        \
    X(DIALLING) /* no session, and nothing said about it yet */                                              \
    X(DOWN)     /* no session; the log has that */                                                           \
    X(READY)    /* the session stands, no push is open */                                                    \
    X(PUSHING)  /* a push waits for its answer */                                                            \
    X(DRAINING) /* told to close: what waits is sent first, a push is open */                                \
    X(CLOSING)
enum state { STATE_LIST(MACHINE_STATE) STATE_COUNT };

#define EVENT_LIST(X)                                                                                        \
    X(UP)      /* the session stands */                                                                      \
    X(LOST)    /* it ended, or could not be made; the client dials again */                                  \
    X(REFUSED) /* it could not be made, and never will be */                                                 \
    X(DUE)     /* there may be something to push */                                                          \
    X(TAKEN)   /* the controller has events of the open push */                                              \
    X(FAILED)  /* the open push was answered, but nothing of it was taken */                                 \
    X(CLOSE)                                                                                                 \
    X(DRAINED) /* what waits has had its time */
enum event { EVENT_LIST(MACHINE_EVENT) EVENT_COUNT };

/* While the session stands there is always either an open poll or the timer of the next one, so the poll
 * needs no states. */
struct uplink {
    uv_loop_t *loop;
    struct uplink_handlers handlers;
    struct link_client *client;
    struct outbox *outbox;
    uint64_t incarnation;
    enum state state;
    /* From WELCOME. */
    uint64_t controller; /* its incarnation; 0 before the first */
    uint64_t lease_ns;
    uint64_t hold_ns;
    /* The poll. */
    uint64_t poll_sent_ns;
    uint64_t taken_command; /* numbers up to here have been delivered */
    uv_timer_t poll_timer;  /* of the next poll; at the end, of the drain */
    /* The push. */
    uint64_t push_due_ns; /* not before this; 0 once something waits that somebody acts on */
    uint64_t push_gap_ns; /* between two pushes: UPLINK_BATCH_GAP_NS while a window is open, else 0 */
    uint64_t push_incarnation;
    uint64_t push_first; /* number of the first event in it */
    uv_timer_t push_timer;
    /* The end. */
    int handles_open;
    void (*close_cb)(void *arg);
    void *close_arg;
};

static void handle(struct uplink *u, enum event event);

static bool is_up(const struct uplink *u)
{
    return u->state == STATE_READY || u->state == STATE_PUSHING;
}

/* An unanswered call: the connection may be half open for ever, so it is ours to notice. on_down follows. */
static void drop_silent(struct uplink *u, const char *what)
{
    char why[64];
    snprintf(why, sizeof why, "%s was not answered in time", what);
    log_warn("silence", "what=%s", what);
    link_client_redial(u->client, why);
}

/* ---- the poll: commands come, the lease is renewed ------------------------------------------------ */

static void poll_send(struct uplink *u);

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
        if (!is_up(u))
            break;
    }
    return taken;
}

static void on_poll(void *arg, enum err e, const struct msg *reply, const struct err_detail *d)
{
    struct uplink *u = arg;
    if (!is_up(u) || e == ERR_CLOSED)
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
    if (!is_up(u))
        return;
    if (wait_ms > 0)
        uv_timer_start(&u->poll_timer, on_poll_timer, wait_ms, 0);
    else
        poll_send(u);
}

static void poll_send(struct uplink *u)
{
    struct msg m;
    msg_init(&m, MSG_POLL);
    m.u.poll.acked_command = u->taken_command;
    u->poll_sent_ns = clock_now_ns();
    enum err e = link_client_call(u->client, &m, u->hold_ns + UPLINK_SILENCE_NS, on_poll, u);
    msg_fini(&m);
    if (e != ERR_OK) {
        log_warn("poll_failed", "code=\"%s\"", err_text(e));
        uv_timer_start(&u->poll_timer, on_poll_timer, RETRY_MS, 0);
    }
}

/* ---- the push: events go, acknowledgements come --------------------------------------------------- */

static void on_push_timer(uv_timer_t *timer)
{
    handle(timer->data, EVENT_DUE);
}

static void push_later(struct uplink *u, uint64_t wait_ms)
{
    uv_update_time(u->loop);
    uv_timer_start(&u->push_timer, on_push_timer, wait_ms, 0);
}

static void on_push(void *arg, enum err e, const struct msg *reply, const struct err_detail *d)
{
    struct uplink *u = arg;
    if (e == ERR_CLOSED || u->state == STATE_CLOSING)
        return; /* on_down follows, or nothing does */
    if (e == ERR_TIMEOUT) {
        drop_silent(u, "push");
        return;
    }
    bool taken = e == ERR_OK && reply->u.pushed.acked_event >= u->push_first;
    if (e == ERR_OK)
        outbox_ack(u->outbox, u->push_incarnation, reply->u.pushed.acked_event);
    else
        log_warn("push_refused", "code=\"%s\" why=\"%s\"", err_text(e), d->text);
    handle(u, taken ? EVENT_TAKEN : EVENT_FAILED);
}

/* Whether a push is open now. */
static bool push_send(struct uplink *u)
{
    struct msg m;
    msg_init(&m, MSG_PUSH);
    if (!outbox_next(u->outbox, &m.u.push))
        return false;
    uv_timer_stop(&u->push_timer);
    u->push_due_ns = clock_now_ns() + u->push_gap_ns;
    u->push_incarnation = m.u.push.incarnation;
    u->push_first = m.u.push.items[0].number;
    enum err e = link_client_call(u->client, &m, UPLINK_PUSH_TIMEOUT_NS, on_push, u);
    outbox_push_fini(&m.u.push);
    msg_fini(&m);
    if (e != ERR_OK)
        log_warn("push_failed", "code=\"%s\"", err_text(e));
    return e == ERR_OK;
}

/* ---- states --------------------------------------------------------------------------------------- */

static enum state do_push(struct uplink *u)
{
    if (outbox_is_empty(u->outbox))
        return STATE_READY;
    uint64_t now = clock_now_ns();
    if (u->push_gap_ns > 0 && now < u->push_due_ns) {
        if (!uv_is_active((uv_handle_t *)&u->push_timer))
            push_later(u, (u->push_due_ns - now) / NS_PER_MS + 1);
        return STATE_READY;
    }
    if (push_send(u))
        return STATE_PUSHING;
    if (!outbox_is_empty(u->outbox))
        push_later(u, RETRY_MS);
    return STATE_READY;
}

static enum state do_come_up(struct uplink *u)
{
    u->push_due_ns = 0; /* what waited through the cut has waited enough */
    poll_send(u);
    return do_push(u);
}

static enum state do_go_down(struct uplink *u)
{
    uv_timer_stop(&u->poll_timer);
    uv_timer_stop(&u->push_timer);
    return STATE_DOWN;
}

static enum state do_retry(struct uplink *u)
{
    push_later(u, RETRY_MS);
    return STATE_READY;
}

static void uplink_free(struct uplink *u)
{
    outbox_free(u->outbox);
    free(u);
}

static void on_part_closed(void *arg)
{
    struct uplink *u = arg;
    if (--u->handles_open > 0)
        return;
    void (*cb)(void *arg) = u->close_cb;
    void *close_arg = u->close_arg;
    uplink_free(u);
    cb(close_arg);
}

static void on_timer_closed(uv_handle_t *handle)
{
    on_part_closed(handle->data);
}

static enum state do_close(struct uplink *u)
{
    u->handles_open = 3;
    uv_close((uv_handle_t *)&u->poll_timer, on_timer_closed);
    uv_close((uv_handle_t *)&u->push_timer, on_timer_closed);
    link_client_close(&u->client, on_part_closed, u);
    return STATE_CLOSING;
}

static void on_drain_timer(uv_timer_t *timer)
{
    handle(timer->data, EVENT_DRAINED);
}

static enum state do_drain(struct uplink *u)
{
    bool open = u->state == STATE_PUSHING || push_send(u);
    uv_timer_stop(&u->push_timer);
    if (!open)
        return do_close(u);
    uv_update_time(u->loop);
    uv_timer_start(&u->poll_timer, on_drain_timer, DRAIN_MS, 0);
    return STATE_DRAINING;
}

static enum state do_drain_on(struct uplink *u)
{
    return push_send(u) ? STATE_DRAINING : do_close(u);
}

static enum state keep(struct uplink *u)
{
    return u->state;
}

/* What each event does in each state; an empty cell cannot happen: each event is our own, none a peer's. */
static enum state (*const table[STATE_COUNT][EVENT_COUNT])(struct uplink *) = {
    [STATE_DIALLING] = {ON(UP, do_come_up), ON(LOST, do_go_down), ON(REFUSED, do_go_down), ON(DUE, keep),
                        ON(CLOSE, do_close)},
    [STATE_DOWN] = {ON(UP, do_come_up), ON(LOST, keep), ON(REFUSED, keep), ON(DUE, keep),
                    ON(CLOSE, do_close)},
    [STATE_READY] = {ON(LOST, do_go_down), ON(DUE, do_push), ON(CLOSE, do_drain)},
    [STATE_PUSHING] = {ON(LOST, do_go_down), ON(DUE, keep), ON(TAKEN, do_push), ON(FAILED, do_retry),
                       ON(CLOSE, do_drain)},
    [STATE_DRAINING] = {ON(LOST, do_close), ON(TAKEN, do_drain_on), ON(FAILED, do_close),
                        ON(DRAINED, do_close)},
};

bool uplink_permits(unsigned state, unsigned event)
{
    return state < STATE_COUNT && event < EVENT_COUNT && table[state][event] != NULL;
}

static void handle(struct uplink *u, enum event event)
{
    static const char *const states[] = {STATE_LIST(MACHINE_NAME)};
    static const char *const events[] = {EVENT_LIST(MACHINE_NAME)};
    enum state from = u->state;
    must(uplink_permits(from, event));
    u->state = table[from][event](u);
    if (u->state != from)
        log_debug("uplink_state", "from=%s event=%s to=%s", states[from], events[event], states[u->state]);
}

/* ---- the session ---------------------------------------------------------------------------------- */

static void on_up(void *arg, const struct msg_welcome *welcome)
{
    struct uplink *u = arg;
    log_info("connected", "session=%" PRIx64 " build=%s lease_ms=%" PRIu64, welcome->session,
             msg_text(welcome->build), welcome->lease_ns / NS_PER_MS);
    u->lease_ns = welcome->lease_ns;
    u->hold_ns = welcome->poll_ns;
    if (u->controller != welcome->incarnation) {
        u->controller = welcome->incarnation;
        u->taken_command = 0;
    }
    outbox_ack(u->outbox, u->incarnation, welcome->acked_event);
    handle(u, EVENT_UP);
}

static void on_down(void *arg, enum err e, const char *why, bool final)
{
    struct uplink *u = arg;
    if (final)
        log_error("refused", "code=\"%s\" why=\"%s\"", err_text(e), why);
    else if (u->state != STATE_DRAINING)
        log_line(u->state == STATE_DOWN ? LOG_DEBUG : LOG_WARN, "disconnected",
                 "why=\"%s\" next=\"dialling again\"", why);
    handle(u, final ? EVENT_REFUSED : EVENT_LOST);
    if (final)
        u->handlers.on_final(u->handlers.arg, e, why);
}

/* ---- what the agent says -------------------------------------------------------------------------- */

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
    outbox_add(u->outbox, event);
    if (event->kind == MSG_EVENT_PROGRESS && event->u.progress.kind == MSG_PROGRESS_WINDOW_START)
        u->push_gap_ns = UPLINK_BATCH_GAP_NS;
    else if ((event->kind == MSG_EVENT_PROGRESS && event->u.progress.kind == MSG_PROGRESS_WINDOW_END) ||
             event->kind == MSG_EVENT_LOADED)
        u->push_gap_ns = 0;
    if (is_urgent(event))
        u->push_due_ns = 0;
    handle(u, EVENT_DUE);
}

void uplink_set_job(struct uplink *u, const char *job, uint64_t run)
{
    u->push_gap_ns = 0;
    link_client_set_held_job(u->client, job, run);
}

uint64_t uplink_incarnation(const struct uplink *u)
{
    return u->incarnation;
}

bool uplink_is_idle(const struct uplink *u)
{
    return outbox_is_empty(u->outbox);
}

/* ---- life ----------------------------------------------------------------------------------------- */

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
                              .build = msg_borrowed(SPLITBENCH_BUILD),
                              .role = MSG_ROLE_AGENT,
                              .name = msg_borrowed(options->name),
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

void uplink_close(struct uplink **uplink, void (*cb)(void *arg), void *arg)
{
    struct uplink *u = *uplink;
    *uplink = NULL;
    u->close_cb = cb;
    u->close_arg = arg;
    handle(u, EVENT_CLOSE);
}
