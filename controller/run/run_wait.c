/* What a run says and hears: commands and their answers, lines and the view for people. */
#include "common/mem.h"
#include "controller/run/run_inner.h"

#include <stdarg.h>

const char *run_agent_name(const struct run *r, uint32_t host)
{
    return r->o->hosts[host].agent;
}

bool run_is_here(const struct run *r, uint32_t host)
{
    const char *boot_id = msg_text(r->o->hosts[host].facts.boot_id);
    return boot_id[0] != '\0' && strcmp(boot_id, r->o->own_boot_id) == 0;
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

/* All others are answers that came after their time-out. */
void run_note(struct run *r, struct channel_event *event)
{
    if (event->event.kind == MSG_EVENT_EXITED && event->host == r->server_host)
        run_server_ended(r, &event->event.u.exited);
    channel_event_fini(event);
}

bool run_give(struct run_reply *replies, size_t count, const struct channel_event *event)
{
    if (event->event.answers == 0)
        return false;
    for (size_t i = 0; i < count; i++) {
        if (replies[i].tag != event->event.answers || replies[i].answered)
            continue;
        replies[i].event = event->event;
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

bool run_all_answered(const struct run_reply *replies, size_t count)
{
    return first_open(replies, count) == NULL;
}

enum err run_await(struct run *r, struct run_reply *replies, size_t count, uint64_t timeout_ns,
                   struct err_detail *d)
{
    uint64_t deadline_ns = clock_now_ns() + timeout_ns;
    const struct run_reply *open;
    while ((open = first_open(replies, count)) != NULL) {
        struct channel_event event;
        enum err e = channel_next(r->channel, deadline_ns, &event, d);
        if (e == ERR_TIMEOUT)
            return err_set(
                d, ERR_TIMEOUT, "agent '%s' did not answer (%s) within %llu s; its log may say why",
                run_agent_name(r, open->host), open->what, (unsigned long long)(timeout_ns / NS_PER_S));
        if (e != ERR_OK)
            return e;
        if (!run_give(replies, count, &event))
            run_note(r, &event);
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
        struct channel_event event;
        enum err e = channel_next(r->channel, until_ns, &event, d);
        if (e == ERR_TIMEOUT)
            return ERR_OK;
        if (e != ERR_OK)
            return e;
        run_note(r, &event);
    }
}

void run_fill_headers(const struct run *r, struct msg_headers *headers)
{
    for (size_t i = 0; i < headers->count; i++) {
        char *filled = experiment_fill(msg_text(headers->items[i].value), r->server_address);
        free(headers->items[i].value);
        headers->items[i].value = filled;
    }
}

/* ---- for people ----------------------------------------------------------------------------------- */

enum err run_say(struct run *r, struct err_detail *d, const char *fmt, ...)
{
    char line[LIMIT_TEXT_BYTES];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    enum err e = store_add_line(r->store, r->o->job, line, d);
    return e == ERR_OK ? ERR_OK : err_prefix(d, e, "the job's history cannot be stored");
}

void run_doing(struct run *r, uint64_t step_ns, uint64_t then_ns, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(r->view.doing, sizeof r->view.doing, fmt, ap);
    va_end(ap);
    r->view.ok_per_s = 0;
    r->view.step_end_ns = clock_now_ns() + step_ns;
    r->view.then_ns = r->o->mode == MSG_MODE_RUN ? then_ns : 0;
    channel_show(r->channel, &r->view);
}
