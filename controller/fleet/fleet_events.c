/* What agents say: taken in once, delivered to the job that holds the agent, settled, acknowledged. */
#include "controller/fleet/fleet.h"

#include "common/log.h"
#include "common/mem.h"
#include "controller/fleet/fleet_agent.h"

#include <inttypes.h>

/* What carries a measured value or a log: kept even when nobody waits for it any more. */
static bool is_result(enum msg_event_kind k)
{
    return k == MSG_EVENT_LOADED || k == MSG_EVENT_EXITED;
}

static void keep_late(struct fleet *f, struct fleet_agent *a, uint64_t incarnation, const struct msg_event *e)
{
    if (a->late_count++ == 0)
        a->late_first = e->number;
    f->handlers.on_late(f->handlers.arg, a, incarnation, e);
}

/* An answer to JOB_OPEN or JOB_CLOSE moves the reservation, too. */
static void note_answer(struct fleet *f, struct fleet_agent *a, const struct fleet_open *open,
                        const struct msg_event *e)
{
    if (open->kind == MSG_COMMAND_JOB_OPEN && e->code == ERR_OK)
        a->opened = true;
    if (open->kind != MSG_COMMAND_JOB_CLOSE || a->state != FLEET_CLOSING)
        return;
    if (e->code != ERR_OK)
        log_warn("close_failed", "agent=%s job=%s cause=\"%s\"", a->name, a->job, msg_text(e->text));
    fleet_agent_handle(a, FLEET_EVENT_CLOSED);
    f->handlers.on_change(f->handlers.arg);
}

/* The agent ended the job by itself: it was told to end, or its lease ran out. It stands here, and counts as
 * free only when it says that nothing of the job is left, and nothing of what was on its way to it. */
static void note_given_up(struct fleet *f, struct fleet_agent *a, const struct msg_event *e)
{
    char *job = mem_strdup(a->job);
    uint64_t run = a->run;
    if (e->code == ERR_TIMEOUT)
        fleet_agent_lapse(f, a, msg_text(e->text));
    else
        fleet_agent_lose(f, a, msg_text(e->text));
    fleet_agent_queue_close(a, job, run);
    fleet_agent_answer_poll(f, a, false);
    fleet_settle(f, a, a->incarnation, e->number);
    free(job);
}

/* Whether it is for the job that holds the agent: of this very run of it. An agent speaks in order: what it
 * says unasked before it has answered JOB_OPEN is of an earlier time when it held the same job. */
static bool is_wanted(const struct fleet_agent *a, const struct msg_event *e)
{
    if (!a->owned || strcmp(msg_text(e->job), a->job) != 0)
        return false;
    if (fleet_agent_is_of(a, e, a->run) && (a->opened || e->answers != 0))
        return true;
    log_info("event_late", "agent=%s job=%s run=%" PRIu64 " now=%" PRIu64 " kind=%s text=\"%s\"", a->name,
             a->job, e->run, a->run, msg_event_name(e->kind), msg_text(e->text));
    return false;
}

static void deliver(struct fleet *f, struct fleet_agent *a, const struct msg_event *e)
{
    struct fleet_open open = {0};
    bool wanted = is_wanted(a, e);
    if (wanted && e->answers == 0 && e->kind == MSG_EVENT_DONE && e->code != ERR_OK) {
        note_given_up(f, a, e);
        return;
    }
    bool answers = e->answers == 0 || fleet_agent_answered(a, e, e->kind == MSG_EVENT_PROGRESS, &open);
    if (wanted && !answers)
        log_warn("event_refused", "agent=%s kind=%s answers=%llu why=\"no such command is open\"", a->name,
                 msg_event_name(e->kind), (unsigned long long)e->answers);
    /* The tag takes the place of the number, in a shallow copy: the event's content stays borrowed. */
    struct msg_event tagged = *e;
    tagged.answers = open.tag;
    char *job = wanted ? mem_strdup(a->job) : NULL; /* the answer to JOB_CLOSE frees the agent */
    uint32_t host = a->host;
    if (e->answers != 0 && answers)
        note_answer(f, a, &open, e);
    if (wanted && answers) {
        f->handlers.on_event(f->handlers.arg, job, host, &tagged);
    } else {
        if (!wanted && is_result(e->kind))
            keep_late(f, a, a->incarnation, e);
        fleet_settle(f, a, a->incarnation, e->number);
    }
    free(job);
}

void fleet_push(struct fleet *f, struct fleet_agent *a, void *request, const struct msg_push *push,
                uint64_t now_ns)
{
    fleet_note_time(f, now_ns);
    a->heard_ns = now_ns;
    if (a->push != NULL) {
        f->handlers.refuse(f->handlers.arg, request, ERR_BUSY,
                           "the push before this one is not answered yet");
        return;
    }
    bool late = push->incarnation != a->incarnation;
    uint64_t upto = 0;
    for (size_t i = 0; i < push->count; i++) {
        const struct msg_event *e = &push->items[i];
        if (e->number > upto)
            upto = e->number;
        if (late) {
            if (is_result(e->kind))
                keep_late(f, a, push->incarnation, e);
            continue;
        }
        if (e->number <= a->delivered)
            continue;
        if (a->delivered == 0) /* first heard of it: what came before was settled by an earlier controller */
            a->settled = e->number - 1;
        if (e->number - fleet_agent_acked(a) > FLEET_UNSETTLED_MAX && a->delivered > a->settled)
            break; /* the job is behind: the agent sends the rest again */
        a->delivered = e->number;
        deliver(f, a, e);
    }
    /* Only now is it there to be answered: what it brought is borrowed from it. */
    a->push = request;
    a->push_since_ns = now_ns;
    a->push_is_late = late;
    a->push_upto = upto;
    fleet_agent_answer_push(f, a, false);
}

void fleet_settle(struct fleet *f, struct fleet_agent *a, uint64_t incarnation, uint64_t number)
{
    if (incarnation != a->incarnation)
        return;
    if (number > a->delivered)
        number = a->delivered;
    if (number > a->settled)
        a->settled = number;
    fleet_agent_answer_push(f, a, false);
}

void fleet_settle_late(struct fleet *f, struct fleet_agent *a)
{
    must(a->late_count > 0);
    a->late_count--;
    fleet_agent_answer_push(f, a, false);
}
