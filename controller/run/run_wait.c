/* Commands and their answers, and what the people who watch see of it. */
#include "common/clock.h"
#include "common/mem.h"
#include "controller/run/run_inner.h"

#include <stdarg.h>

const char *run_agent_name(const struct run *r, uint32_t host)
{
    return r->o->hosts[host].agent;
}

void run_reply_fini(struct run_reply *reply)
{
    if (reply->answered)
        msg_event_fini(&reply->event);
    reply->answered = false;
}

void run_replies_fini(struct run_reply *replies, size_t count)
{
    for (size_t i = 0; i < count; i++)
        run_reply_fini(&replies[i]);
}

void run_ask(struct run *r, uint32_t host, const struct msg_command *c, const char *what,
             struct run_reply *reply)
{
    *reply = (struct run_reply){.host = host, .what = what};
    reply->tag = channel_send(r->channel, host, c);
}

void run_note(struct run *r, struct channel_event *e)
{
    switch (e->event.kind) {
    case MSG_EVENT_EXITED:
        if (e->host == r->server_host)
            run_server_ended(r, &e->event.u.exited);
        break;
    case MSG_EVENT_PROGRESS:
        run_window_progress(r, e->host, &e->event.u.progress);
        break;
    case MSG_EVENT_DONE:
    case MSG_EVENT_FILES:
    case MSG_EVENT_STARTED:
    case MSG_EVENT_CHECKED:
    case MSG_EVENT_LOADED:
    case MSG_EVENT_SAMPLED:
    case MSG_EVENT_COUNT:
        break; /* an answer that came after its time-out */
    }
    channel_event_fini(e);
}

bool run_give(struct run_reply *replies, size_t count, struct channel_event *e)
{
    if (e->event.answers == 0 || e->event.kind == MSG_EVENT_PROGRESS)
        return false;
    for (size_t i = 0; i < count; i++) {
        if (replies[i].tag != e->event.answers || replies[i].answered)
            continue;
        replies[i].event = e->event;
        replies[i].answered = true;
        return true;
    }
    return false;
}

static const struct run_reply *first_open(const struct run_reply *replies, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (!replies[i].answered)
            return &replies[i];
    }
    return NULL;
}

enum err run_await(struct run *r, struct run_reply *replies, size_t count, uint64_t timeout_ns,
                   struct err_detail *d)
{
    uint64_t deadline_ns = clock_now_ns() + timeout_ns;
    const struct run_reply *open;
    while ((open = first_open(replies, count)) != NULL) {
        struct channel_event e;
        enum err result = channel_next(r->channel, deadline_ns, &e, d);
        if (result == ERR_TIMEOUT)
            return err_set(
                d, ERR_TIMEOUT, "agent '%s' did not answer (%s) within %llu s; its log may say why",
                run_agent_name(r, open->host), open->what, (unsigned long long)(timeout_ns / NS_PER_S));
        if (result != ERR_OK)
            return result;
        if (!run_give(replies, count, &e))
            run_note(r, &e);
    }
    return ERR_OK;
}

enum err run_ask_one(struct run *r, uint32_t host, const struct msg_command *c, const char *what,
                     uint64_t timeout_ns, struct run_reply *reply, struct err_detail *d)
{
    run_ask(r, host, c, what, reply);
    return run_await(r, reply, 1, timeout_ns, d);
}

enum err run_expect_kept(const struct run *r, const struct run_reply *reply, struct err_detail *d)
{
    if (!reply->answered || reply->event.code != ERR_CLOSED)
        return ERR_OK;
    return err_set(d, ERR_FAILED, "agent '%s' lost what it had started for the job: %s",
                   run_agent_name(r, reply->host), msg_text(reply->event.text));
}

enum err run_pause(struct run *r, uint64_t until_ns, struct err_detail *d)
{
    for (;;) {
        struct channel_event e;
        enum err result = channel_next(r->channel, until_ns, &e, d);
        if (result == ERR_TIMEOUT)
            return ERR_OK;
        if (result != ERR_OK)
            return result;
        run_note(r, &e);
    }
}

/* ---- what is known only now ------------------------------------------------------------------------ */

void run_fill_request(const struct run *r, struct msg_request *request, struct msg_headers *owned)
{
    owned->count = request->headers.count;
    owned->items = mem_zalloc(owned->count + 1, sizeof(*owned->items));
    for (size_t i = 0; i < owned->count; i++) {
        owned->items[i].name = mem_strdup(msg_text(request->headers.items[i].name));
        owned->items[i].value = experiment_fill(msg_text(request->headers.items[i].value), r->server_address);
    }
    request->headers = *owned;
}

void run_headers_fini(struct msg_headers *owned)
{
    for (size_t i = 0; i < owned->count; i++) {
        free(owned->items[i].name);
        free(owned->items[i].value);
    }
    free(owned->items);
    *owned = (struct msg_headers){0};
}

/* ---- for people ---------------------------------------------------------------------------------- */

enum err run_say(struct run *r, struct err_detail *d, const char *fmt, ...)
{
    char line[LIMIT_TEXT_BYTES];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(line, sizeof(line), fmt, ap);
    va_end(ap);
    enum err e = store_add_line(r->store, r->o->job, line, d);
    return e == ERR_OK ? ERR_OK : err_prefix(d, e, "the job's history cannot be stored");
}

void run_doing(struct run *r, uint64_t step_ns, uint64_t then_ns, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(r->view.doing, sizeof(r->view.doing), fmt, ap);
    va_end(ap);
    r->view.ok_per_s = 0;
    r->view.step_end_ns = clock_now_ns() + step_ns;
    r->view.then_ns = r->o->mode == MSG_MODE_RUN ? then_ns : 0;
    channel_tell(r->channel, &r->view);
}

void run_experiment_failed(struct run *r, const char *text)
{
    if (r->first_failure[0] == '\0')
        snprintf(r->first_failure, sizeof(r->first_failure), "%s", text);
}
