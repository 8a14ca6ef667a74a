#include "controller/fleet/fleet_agent.h"

#include "common/log.h"
#include "common/mem.h"

static const char *const state_names[FLEET_STATE_COUNT] = {
#define X(n, text) [FLEET_##n] = text,
    FLEET_STATE_LIST(X)
#undef X
};

const char *fleet_state_name(enum fleet_state s)
{
    return (unsigned)s < FLEET_STATE_COUNT ? state_names[s] : "?";
}

struct fleet_agent *fleet_agent_new(const char *name)
{
    struct fleet_agent *a = mem_zalloc(1, sizeof *a);
    a->name = mem_strdup(name);
    a->address = mem_strdup("");
    a->build = mem_strdup("");
    return a;
}

void fleet_agent_clear(struct fleet_agent *a)
{
    for (size_t i = 0; i < a->queue_count; i++) {
        msg_command_fini(a->queue[i]);
        free(a->queue[i]);
    }
    free(a->queue);
    a->queue = NULL;
    a->queue_count = 0;
    free(a->open);
    a->open = NULL;
    a->open_count = 0;
}

void fleet_agent_void(struct fleet_agent *a)
{
    for (size_t i = 0; i < a->queue_count; i++) {
        struct msg_command *old = a->queue[i];
        struct msg_command close = {.kind = MSG_COMMAND_JOB_CLOSE,
                                    .number = old->number,
                                    .job = old->job,
                                    .run = old->run,
                                    .controller = old->controller};
        old->job = NULL;
        msg_command_fini(old);
        *old = close;
    }
    free(a->open);
    a->open = NULL;
    a->open_count = 0;
}

void fleet_agent_free(struct fleet_agent *a)
{
    if (a == NULL)
        return;
    fleet_agent_clear(a);
    msg_host_fini(&a->facts);
    free(a->name);
    free(a->address);
    free(a->build);
    free(a->job);
    free(a);
}

/* ---- states --------------------------------------------------------------------------------------- */

static enum fleet_state do_reserve(struct fleet_agent *a)
{
    a->opened = false;
    a->owned = true;
    return FLEET_BUSY;
}

static enum fleet_state do_close(struct fleet_agent *a)
{
    (void)a;
    return FLEET_CLOSING;
}

static enum fleet_state do_free(struct fleet_agent *a)
{
    mem_set_string(&a->job, NULL);
    a->run = 0;
    a->opened = false;
    a->owned = false;
    return FLEET_FREE;
}

/* What each event does in each state; an empty cell is refused. */
static enum fleet_state (*const machine[FLEET_STATE_COUNT][FLEET_EVENT_COUNT])(struct fleet_agent *) = {
    [FLEET_FREE] = {[FLEET_EVENT_RESERVE] = do_reserve, [FLEET_EVENT_CLOSE] = do_close},
    [FLEET_BUSY] = {[FLEET_EVENT_CLOSE] = do_close, [FLEET_EVENT_LOSE] = do_free},
    [FLEET_CLOSING] = {[FLEET_EVENT_CLOSED] = do_free, [FLEET_EVENT_LOSE] = do_free},
};

bool fleet_agent_permits(enum fleet_state state, enum fleet_event event)
{
    return machine[state][event] != NULL;
}

void fleet_agent_handle(struct fleet_agent *a, enum fleet_event event)
{
    must(fleet_agent_permits(a->state, event));
    enum fleet_state from = a->state;
    char *job = mem_strdup(a->job != NULL ? a->job : ""); /* who is free has none any more */
    a->state = machine[from][event](a);
    log_debug("agent_state", "agent=%s job=%s from=%s to=%s", a->name, job, fleet_state_name(from),
              fleet_state_name(a->state));
    free(job);
}

/* ---- commands ------------------------------------------------------------------------------------- */

enum err fleet_agent_queue(struct fleet_agent *a, const char *job, const struct msg_command *c, uint64_t tag)
{
    bool full = a->queue_count >= FLEET_COMMANDS_MAX || a->open_count >= FLEET_COMMANDS_MAX;
    if (full && c->kind != MSG_COMMAND_JOB_CLOSE)
        return ERR_FULL;
    struct msg_command *copy = mem_zalloc(1, sizeof *copy);
    msg_command_copy(copy, c);
    mem_set_string(&copy->job, job);
    copy->run = a->run;
    copy->controller = a->controller;
    copy->number = ++a->last_number;
    a->queue = mem_realloc(a->queue, a->queue_count + 1, sizeof(struct msg_command *));
    a->queue[a->queue_count++] = copy;
    a->open = mem_realloc(a->open, a->open_count + 1, sizeof *a->open);
    a->open[a->open_count++] =
        (struct fleet_open){.number = copy->number, .tag = tag, .run = copy->run, .kind = copy->kind};
    return ERR_OK;
}

void fleet_agent_queue_close(struct fleet_agent *a, const char *job, uint64_t run)
{
    struct msg_command close = {.kind = MSG_COMMAND_JOB_CLOSE};
    a->run = run;
    must(fleet_agent_queue(a, job, &close, 0) == ERR_OK);
    mem_set_string(&a->job, job);
    fleet_agent_handle(a, FLEET_EVENT_CLOSE);
}

bool fleet_agent_is_of(const struct fleet_agent *a, const struct msg_event *e, uint64_t run)
{
    return (e->run == 0 || run == 0 || e->run == run) &&
           (e->controller == 0 || e->controller == a->controller);
}

bool fleet_agent_answered(struct fleet_agent *a, const struct msg_event *e, bool keep, struct fleet_open *out)
{
    for (size_t i = 0; i < a->open_count; i++) {
        if (a->open[i].number != e->answers || !fleet_agent_is_of(a, e, a->open[i].run))
            continue;
        *out = a->open[i];
        if (!keep) {
            memmove(&a->open[i], &a->open[i + 1], (a->open_count - i - 1) * sizeof *a->open);
            a->open_count--;
        }
        return true;
    }
    return false;
}

/* Only a chunk is large: an estimate is enough to keep one answer below the frame cap. */
static size_t command_bytes(const struct msg_command *c)
{
    switch (c->kind) {
    case MSG_COMMAND_CHUNK:
        return 256 + c->u.chunk.data.len;
    case MSG_COMMAND_CHECK: {
        size_t sum = 1024 + c->u.check.request.body.len + c->u.check.body.text.len;
        for (size_t i = 0; i < c->u.check.header_count; i++)
            sum += 256 + c->u.check.headers[i].text.len;
        return sum + c->u.check.request.headers.count * 256;
    }
    case MSG_COMMAND_LOAD:
        return 1024 + c->u.load.request.body.len + c->u.load.request.headers.count * 256;
    case MSG_COMMAND_FILES:
        return 256 + c->u.files.count * 192;
    case MSG_COMMAND_START:
        return 1024 + (c->u.start.argv.count + c->u.start.env.count) * 512;
    case MSG_COMMAND_JOB_OPEN:
    case MSG_COMMAND_JOB_CLOSE:
    case MSG_COMMAND_STOP:
    case MSG_COMMAND_SAMPLE:
    case MSG_COMMAND_COUNT:
        break;
    }
    return 256;
}

void fleet_agent_answer_poll(struct fleet *f, struct fleet_agent *a, bool due)
{
    if (a->poll == NULL || (a->queue_count == 0 && !due))
        return;
    size_t count = 0, bytes = 0;
    while (count < a->queue_count && count < MSG_COMMANDS_MAX) {
        bytes += command_bytes(a->queue[count]);
        if (count > 0 && bytes > FLEET_ANSWER_BYTES)
            break;
        count++;
    }
    void *request = a->poll;
    a->poll = NULL;
    f->handlers.answer_poll(f->handlers.arg, request, (const struct msg_command *const *)a->queue, count);
}

uint64_t fleet_agent_acked(const struct fleet_agent *a)
{
    if (a->late_count > 0 && a->late_first <= a->settled)
        return a->late_first - 1;
    return a->settled;
}

void fleet_agent_answer_push(struct fleet *f, struct fleet_agent *a, bool due)
{
    if (a->push == NULL)
        return;
    uint64_t acked = 0;
    if (a->push_is_late) {
        if (a->late_count > 0)
            return;
        acked = a->push_upto;
    } else {
        acked = fleet_agent_acked(a);
        if (acked < a->push_upto && !due)
            return;
    }
    void *request = a->push;
    a->push = NULL;
    f->handlers.answer_push(f->handlers.arg, request, acked);
}
