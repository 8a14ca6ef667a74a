#include "controller/run/channel.h"

#include "common/clock.h"
#include "common/mem.h"

#include <errno.h>
#include <pthread.h>

struct op_node {
    struct op_node *next;
    struct channel_op op;
};

struct event_node {
    struct event_node *next;
    struct channel_event event;
};

struct channel {
    size_t host_count;
    void (*wake)(void *arg);
    void *arg;

    pthread_mutex_t lock; /* guards everything down to the next line */
    pthread_cond_t has_event;
    pthread_cond_t has_room;
    struct event_node *events, **events_end;
    struct op_node *ops, **ops_end;
    size_t op_count;
    enum err failed;
    char *cause;

    /* The job thread's own. */
    uint64_t last_tag;
    uint64_t *taken;   /* per host: number of the newest event handed out */
    uint64_t *settled; /* per host: what the loop has been told */
    bool *held;        /* per host */
    bool ignore_failure;
};

uint64_t channel_view_left_ns(const struct channel_view *view, uint64_t now_ns)
{
    return view->then_ns + (view->step_end_ns > now_ns ? view->step_end_ns - now_ns : 0);
}

struct channel *channel_new(const struct channel_options *options)
{
    must(options->host_count <= LIMIT_HOSTS);
    struct channel *c = mem_zalloc(1, sizeof *c);
    c->host_count = options->host_count;
    c->wake = options->wake;
    c->arg = options->arg;
    c->events_end = &c->events;
    c->ops_end = &c->ops;
    c->taken = mem_zalloc(options->host_count + 1, sizeof *c->taken);
    c->settled = mem_zalloc(options->host_count + 1, sizeof *c->settled);
    c->held = mem_zalloc(options->host_count + 1, sizeof *c->held);
    pthread_condattr_t attr;
    must(pthread_condattr_init(&attr) == 0);
    must(pthread_condattr_setclock(&attr, CLOCK_MONOTONIC) == 0);
    must(pthread_mutex_init(&c->lock, NULL) == 0);
    must(pthread_cond_init(&c->has_event, &attr) == 0);
    must(pthread_cond_init(&c->has_room, &attr) == 0);
    (void)pthread_condattr_destroy(&attr);
    return c;
}

void channel_op_fini(struct channel_op *op)
{
    if (op->kind == CHANNEL_OP_COMMAND)
        msg_command_fini(&op->command);
}

void channel_event_fini(struct channel_event *e)
{
    msg_event_fini(&e->event);
}

void channel_free(struct channel *c)
{
    if (c == NULL)
        return;
    while (c->events != NULL) {
        struct event_node *n = c->events;
        c->events = n->next;
        channel_event_fini(&n->event);
        free(n);
    }
    while (c->ops != NULL) {
        struct op_node *n = c->ops;
        c->ops = n->next;
        channel_op_fini(&n->op);
        free(n);
    }
    (void)pthread_mutex_destroy(&c->lock);
    (void)pthread_cond_destroy(&c->has_event);
    (void)pthread_cond_destroy(&c->has_room);
    free(c->cause);
    free(c->taken);
    free(c->settled);
    free(c->held);
    free(c);
}

/* ---- loop's side ---------------------------------------------------------------------------------- */

bool channel_take(struct channel *c, struct channel_op *out)
{
    pthread_mutex_lock(&c->lock);
    struct op_node *n = c->ops;
    if (n != NULL) {
        c->ops = n->next;
        if (c->ops == NULL)
            c->ops_end = &c->ops;
        c->op_count--;
        pthread_cond_signal(&c->has_room);
    }
    pthread_mutex_unlock(&c->lock);
    if (n == NULL)
        return false;
    *out = n->op;
    free(n);
    return true;
}

void channel_deliver(struct channel *c, uint32_t host, const struct msg_event *e)
{
    must(host < c->host_count);
    struct event_node *n = mem_zalloc(1, sizeof *n);
    n->event.host = host;
    msg_event_copy(&n->event.event, e);
    pthread_mutex_lock(&c->lock);
    *c->events_end = n;
    c->events_end = &n->next;
    pthread_cond_signal(&c->has_event);
    pthread_mutex_unlock(&c->lock);
}

void channel_fail(struct channel *c, enum err code, const char *cause)
{
    pthread_mutex_lock(&c->lock);
    if (c->failed == ERR_OK) {
        c->failed = code;
        c->cause = mem_strdup(cause);
        pthread_cond_signal(&c->has_event);
    }
    pthread_mutex_unlock(&c->lock);
}

/* ---- job's side ----------------------------------------------------------------------------------- */

static void post(struct channel *c, const struct channel_op *op)
{
    struct op_node *n = mem_zalloc(1, sizeof *n);
    n->op = *op;
    pthread_mutex_lock(&c->lock);
    while (c->op_count >= CHANNEL_OPS_MAX)
        pthread_cond_wait(&c->has_room, &c->lock);
    *c->ops_end = n;
    c->ops_end = &n->next;
    c->op_count++;
    pthread_mutex_unlock(&c->lock);
    c->wake(c->arg);
}

uint64_t channel_send(struct channel *c, uint32_t host, const struct msg_command *command)
{
    must(host < c->host_count);
    struct channel_op op = {.kind = CHANNEL_OP_COMMAND, .host = host, .tag = ++c->last_tag};
    msg_command_copy(&op.command, command);
    post(c, &op);
    return op.tag;
}

void channel_hold(struct channel *c, uint32_t host)
{
    must(host < c->host_count);
    c->held[host] = true;
}

static void settle_unheld(struct channel *c)
{
    for (uint32_t h = 0; h < c->host_count; h++) {
        if (c->held[h] || c->settled[h] == c->taken[h])
            continue;
        c->settled[h] = c->taken[h];
        struct channel_op op = {.kind = CHANNEL_OP_SETTLE, .host = h, .number = c->taken[h]};
        post(c, &op);
    }
}

void channel_settle(struct channel *c)
{
    memset(c->held, 0, c->host_count * sizeof *c->held);
    settle_unheld(c);
}

void channel_ignore_failure(struct channel *c)
{
    c->ignore_failure = true;
}

static struct timespec to_timespec(uint64_t ns)
{
    return (struct timespec){.tv_sec = (time_t)(ns / NS_PER_S), .tv_nsec = (long)(ns % NS_PER_S)};
}

/* Whether we wake far behind the time to wake at, since the controller itself did not run: then the loop gets
 * that long to bring what came meanwhile. */
static bool woke_late(uint64_t *wake_ns)
{
    uint64_t now_ns = clock_now_ns();
    if (now_ns < *wake_ns + CHANNEL_LATE_NS)
        return false;
    *wake_ns = now_ns + CHANNEL_LATE_NS;
    return true;
}

enum err channel_next(struct channel *c, uint64_t deadline_ns, struct channel_event *out,
                      struct err_detail *d)
{
    settle_unheld(c);
    uint64_t now_ns = clock_now_ns();
    uint64_t wake_ns = deadline_ns > now_ns ? deadline_ns : now_ns;
    struct timespec until = to_timespec(deadline_ns);
    struct event_node *n = NULL;
    enum err e = ERR_OK;
    pthread_mutex_lock(&c->lock);
    for (;;) {
        if (c->failed != ERR_OK && !c->ignore_failure) {
            e = err_set(d, c->failed, "%s", c->cause);
            break;
        }
        n = c->events;
        if (n != NULL) {
            c->events = n->next;
            if (c->events == NULL)
                c->events_end = &c->events;
            break;
        }
        if (pthread_cond_timedwait(&c->has_event, &c->lock, &until) == ETIMEDOUT && c->events == NULL) {
            if (woke_late(&wake_ns)) {
                until = to_timespec(wake_ns);
                continue;
            }
            e = ERR_TIMEOUT;
            break;
        }
    }
    pthread_mutex_unlock(&c->lock);
    if (e != ERR_OK)
        return e;
    must(n != NULL);
    *out = n->event;
    free(n);
    if (out->event.number > c->taken[out->host])
        c->taken[out->host] = out->event.number;
    return ERR_OK;
}

void channel_show(struct channel *c, const struct channel_view *view)
{
    struct channel_op op = {.kind = CHANNEL_OP_VIEW, .view = *view};
    post(c, &op);
}

void channel_end(struct channel *c)
{
    channel_settle(c);
    struct channel_op op = {.kind = CHANNEL_OP_ENDED};
    post(c, &op);
}
