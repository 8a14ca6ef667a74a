#include "agent/agent.h"

#include "agent/task/task.h"
#include "agent/uplink/uplink.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/machine.h"
#include "common/mem.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define STATE_LIST(X)                                                                                        \
    X(FREE)    /* no job */                                                                                  \
    X(HELD)    /* a task works for one */                                                                    \
    X(CLOSING) /* the task is being ended */                                                                 \
    X(ENDING)  /* so is the agent, after the task */                                                         \
    X(ENDED)   /* there is no task; the uplink closes */
#define EVENT_LIST(X)                                                                                        \
    X(OPEN)   /* JOB_OPEN */                                                                                 \
    X(CLOSE)  /* JOB_CLOSE */                                                                                \
    X(WORK)   /* any other command */                                                                        \
    X(LAPSE)  /* the lease has run out */                                                                    \
    X(END)    /* agent_close */                                                                              \
    X(CLOSED) /* nothing of the job lives any more */
enum state { STATE_LIST(MACHINE_STATE) STATE_COUNT };
enum event { EVENT_LIST(MACHINE_EVENT) EVENT_COUNT };

struct waiting {
    struct waiting *next;
    struct msg_command command;
};

struct agent {
    uv_loop_t *loop;
    struct uplink *uplink;
    char *state_dir;
    char *load_program;
    void (*on_final)(void *arg, enum err e, const char *why);
    void *arg;
    enum state state;
    struct task *task; /* HELD only */
    char *job;         /* "" while FREE */
    uint64_t run;      /* of it, and the incarnation of the controller that opened it; 0 = not said */
    uint64_t controller;
    struct msg_command close; /* to be answered when closed; number 0 = none. Its job is the held one */
    uint64_t lease_ns;
    uint64_t lease_until_ns;
    uv_timer_t lease_timer;
    struct waiting *waiting; /* CLOSING only */
    struct waiting **waiting_end;
    size_t waiting_count;
    /* The end. */
    void (*close_cb)(void *arg);
    void *close_arg;
};

static void handle(struct agent *a, enum event event, const struct msg_command *command);

/* The answer DONE: of the command's own run and controller, whatever is held here now. */
static void answer_done(struct agent *a, const struct msg_command *c, enum err code, const char *text)
{
    struct msg_event event = {.answers = c->number,
                              .job = c->job,
                              .run = c->run,
                              .controller = c->controller,
                              .kind = MSG_EVENT_DONE,
                              .code = code,
                              .text = msg_borrowed(text)};
    uplink_emit(a->uplink, &event);
}

/* Unasked: the held job is ended here. */
static void say_ended(struct agent *a, enum err code, const char *text)
{
    const struct msg_command unasked = {.job = a->job, .run = a->run, .controller = a->controller};
    answer_done(a, &unasked, code, text);
}

/* A task only gets commands of the run and the controller that opened it. */
static void on_task_event(void *arg, const struct msg_event *event)
{
    struct agent *a = arg;
    struct msg_event fenced = *event; /* shallow: only read */
    fenced.run = a->run;
    fenced.controller = a->controller;
    uplink_emit(a->uplink, &fenced);
}

/* ---- the lease ------------------------------------------------------------------------------------ */

static void on_lease_timer(uv_timer_t *timer)
{
    struct agent *a = timer->data;
    handle(a, EVENT_LAPSE, NULL);
}

static void lease_timer_start(struct agent *a)
{
    uint64_t now = clock_now_ns();
    uint64_t left_ns = a->lease_until_ns > now ? a->lease_until_ns - now : 0;
    uv_update_time(a->loop);
    uv_timer_start(&a->lease_timer, on_lease_timer, left_ns / NS_PER_MS + 1, 0);
}

static void on_renew(void *arg, uint64_t sent_at_ns, uint64_t lease_ns)
{
    struct agent *a = arg;
    uint64_t now = clock_now_ns();
    a->lease_ns = lease_ns;
    a->lease_until_ns = sent_at_ns + lease_ns;
    if (a->state != STATE_HELD || a->lease_until_ns <= now)
        return;
    task_renew(a->task, a->lease_until_ns - now);
    lease_timer_start(a);
}

/* ---- actions: one for each cell of the table ------------------------------------------------------ */

static enum state do_open(struct agent *a, const struct msg_command *c)
{
    uint64_t now = clock_now_ns();
    struct task_options options = {.loop = a->loop,
                                   .job = msg_text(c->job),
                                   .open = &c->u.job_open,
                                   .state_dir = a->state_dir,
                                   .load_program = a->load_program,
                                   .lease_ns = a->lease_until_ns > now ? a->lease_until_ns - now : 1,
                                   .emit = on_task_event,
                                   .arg = a};
    struct err_detail d = {""};
    enum err e = task_new(&options, &a->task, &d);
    if (e != ERR_OK) {
        log_error("job_refused", "job=%s why=\"%s\"", msg_text(c->job), d.text);
        answer_done(a, c, e, d.text);
        return STATE_FREE;
    }
    mem_set_string(&a->job, msg_text(c->job));
    a->run = c->run;
    a->controller = c->controller;
    uplink_set_job(a->uplink, a->job, a->run);
    lease_timer_start(a);
    answer_done(a, c, ERR_OK, "");
    return STATE_HELD;
}

/* Any run of it. */
static bool is_held_job(const struct agent *a, const struct msg_command *c)
{
    return strcmp(a->job, msg_text(c->job)) == 0;
}

static bool agrees(uint64_t held, uint64_t said)
{
    return held == 0 || said == 0 || held == said;
}

static bool is_held_run(const struct agent *a, const struct msg_command *c)
{
    return is_held_job(a, c) && agrees(a->run, c->run) && agrees(a->controller, c->controller);
}

/* A command that was given before the held run began. */
static bool is_of_earlier_run(const struct agent *a, const struct msg_command *c)
{
    return is_held_job(a, c) && c->run != 0 && c->run < a->run;
}

static enum state do_wait(struct agent *a, const struct msg_command *c);
static void begin_close(struct agent *a);

/* The held run is over for whoever opens a later one, or another controller: it gives way first. */
static enum state give_way(struct agent *a, const struct msg_command *c)
{
    log_warn("job_superseded", "job=%s run=%" PRIu64 " by=%" PRIu64, a->job, a->run, c->run);
    begin_close(a);
    return do_wait(a, c);
}

static enum state do_open_again(struct agent *a, const struct msg_command *c)
{
    char text[LIMIT_NAME_BYTES + 64] = "";
    if (!is_held_job(a, c))
        snprintf(text, sizeof text, "this host works for job %s", a->job);
    else if (is_of_earlier_run(a, c))
        snprintf(text, sizeof text, "this host works for a later run of job %s", a->job);
    else if (!is_held_run(a, c))
        return give_way(a, c);
    answer_done(a, c, text[0] != '\0' ? ERR_BUSY : ERR_OK, text);
    return STATE_HELD;
}

static enum state do_answer_closed(struct agent *a, const struct msg_command *c)
{
    answer_done(a, c, ERR_OK, "");
    return a->state;
}

static enum state do_refuse_work(struct agent *a, const struct msg_command *c)
{
    answer_done(
        a, c, ERR_NOT_NOW,
        "this host does not hold the job: it was closed, its lease ran out, or the agent was restarted");
    return a->state;
}

static enum state do_work(struct agent *a, const struct msg_command *c)
{
    if (!is_held_run(a, c))
        return do_refuse_work(a, c);
    task_handle(a->task, c);
    return STATE_HELD;
}

static void on_task_closed(void *arg);

static void begin_close(struct agent *a)
{
    uv_timer_stop(&a->lease_timer);
    task_close(&a->task, on_task_closed, a);
}

/* Any controller may close what another has opened, but the end of an earlier run is not that of a later. */
static enum state do_close(struct agent *a, const struct msg_command *c)
{
    if (!is_held_job(a, c) || is_of_earlier_run(a, c))
        return do_answer_closed(a, c);
    a->close = (struct msg_command){.number = c->number, .run = c->run, .controller = c->controller};
    begin_close(a);
    return STATE_CLOSING;
}

static enum state do_lapse(struct agent *a, const struct msg_command *c)
{
    (void)c;
    char text[128];
    snprintf(text, sizeof text,
             "heard nothing from the controller for %" PRIu64 " ms: the job was ended here",
             a->lease_ns / NS_PER_MS);
    log_error("lease_lapsed", "job=%s why=\"%s\"", a->job, text);
    say_ended(a, ERR_TIMEOUT, text);
    begin_close(a);
    return STATE_CLOSING;
}

static enum state do_end_held(struct agent *a, const struct msg_command *c)
{
    (void)c;
    say_ended(a, ERR_CANCELLED, "the agent was told to end: the job was ended here");
    begin_close(a);
    return STATE_ENDING;
}

static enum state do_wait(struct agent *a, const struct msg_command *c)
{
    if (a->waiting_count == AGENT_WAITING_MAX) {
        answer_done(a, c, ERR_BUSY, "this host is still ending a job");
        return STATE_CLOSING;
    }
    struct waiting *w = mem_zalloc(1, sizeof *w);
    msg_command_copy(&w->command, c);
    *a->waiting_end = w;
    a->waiting_end = &w->next;
    a->waiting_count++;
    return STATE_CLOSING;
}

static enum state do_end_closing(struct agent *a, const struct msg_command *c)
{
    (void)a;
    (void)c;
    return STATE_ENDING; /* EVENT_CLOSED is on its way */
}

static void answer_close(struct agent *a)
{
    a->close.job = a->job;
    if (a->close.number != 0)
        answer_done(a, &a->close, ERR_OK, "");
    a->close = (struct msg_command){0};
}

static void on_uplink_closed(void *arg);

static enum state do_end(struct agent *a, const struct msg_command *c)
{
    (void)c;
    answer_close(a);
    uplink_close(&a->uplink, on_uplink_closed, a);
    return STATE_ENDED;
}

static enum state do_free(struct agent *a, const struct msg_command *c)
{
    (void)c;
    answer_close(a);
    uplink_set_job(a->uplink, "", 0);
    return STATE_FREE;
}

/* An agent that ends takes no commands: nobody waits for an answer any more. */
static enum state ignore(struct agent *a, const struct msg_command *c)
{
    (void)c;
    return a->state;
}

/* ---- the table ------------------------------------------------------------------------------------ */

/* What each event does in each state; an empty cell cannot happen: only our own timers and callbacks could
 * bring it. */
static enum state (*const table[STATE_COUNT][EVENT_COUNT])(struct agent *, const struct msg_command *) = {
    [STATE_FREE] = {ON(OPEN, do_open), ON(CLOSE, do_answer_closed), ON(WORK, do_refuse_work),
                    ON(END, do_end)},
    [STATE_HELD] = {ON(OPEN, do_open_again), ON(CLOSE, do_close), ON(WORK, do_work), ON(LAPSE, do_lapse),
                    ON(END, do_end_held)},
    [STATE_CLOSING] = {ON(OPEN, do_wait), ON(CLOSE, do_wait), ON(WORK, do_wait), ON(END, do_end_closing),
                       ON(CLOSED, do_free)},
    [STATE_ENDING] = {ON(OPEN, ignore), ON(CLOSE, ignore), ON(WORK, ignore), ON(CLOSED, do_end)},
    [STATE_ENDED] = {ON(OPEN, ignore), ON(CLOSE, ignore), ON(WORK, ignore)},
};

bool agent_permits(unsigned state, unsigned event)
{
    return state < STATE_COUNT && event < EVENT_COUNT && table[state][event] != NULL;
}

static void handle(struct agent *a, enum event event, const struct msg_command *command)
{
    static const char *const states[] = {STATE_LIST(MACHINE_NAME)};
    enum state from = a->state;
    must(agent_permits(from, event));
    a->state = table[from][event](a, command);
    if (a->state != from)
        log_info("job_state", "job=%s from=%s to=%s", a->job, states[from], states[a->state]);
}

static void handle_command(struct agent *a, const struct msg_command *c)
{
    enum event event = c->kind == MSG_COMMAND_JOB_OPEN    ? EVENT_OPEN
                       : c->kind == MSG_COMMAND_JOB_CLOSE ? EVENT_CLOSE
                                                          : EVENT_WORK;
    handle(a, event, c);
}

static void on_command(void *arg, const struct msg_command *c)
{
    handle_command(arg, c);
}

/* What waited for the job's end has its turn now; an agent that ends drops it. */
static void on_task_closed(void *arg)
{
    struct agent *a = arg;
    handle(a, EVENT_CLOSED, NULL);
    mem_set_string(&a->job, "");
    a->run = a->controller = 0;
    struct waiting *w = a->waiting;
    a->waiting = NULL;
    a->waiting_end = &a->waiting;
    a->waiting_count = 0;
    for (struct waiting *next; w != NULL; w = next) {
        next = w->next;
        handle_command(a, &w->command);
        msg_command_fini(&w->command);
        free(w);
    }
}

static void on_final(void *arg, enum err e, const char *why)
{
    struct agent *a = arg;
    if (a->close_cb == NULL)
        a->on_final(a->arg, e, why);
}

/* ---- life ----------------------------------------------------------------------------------------- */

enum err agent_new(const struct agent_options *options, struct agent **out, struct err_detail *d)
{
    struct agent *a = mem_zalloc(1, sizeof *a);
    a->loop = options->loop;
    a->state_dir = mem_strdup(options->state_dir);
    a->load_program = mem_strdup(options->load_program);
    a->job = mem_strdup("");
    a->on_final = options->on_final;
    a->arg = options->arg;
    a->waiting_end = &a->waiting;
    char *spool_dir = mem_printf("%s/spool", options->state_dir);
    enum err e = uplink_new(
        &(struct uplink_options){
            .loop = options->loop,
            .address = options->address,
            .identity = options->identity,
            .name = options->name,
            .host = options->host,
            .spool_dir = spool_dir,
            .handlers = {.arg = a, .on_command = on_command, .on_renew = on_renew, .on_final = on_final}},
        &a->uplink, d);
    free(spool_dir);
    if (e != ERR_OK) {
        free(a->state_dir);
        free(a->load_program);
        free(a->job);
        free(a);
        return e;
    }
    must(uv_timer_init(a->loop, &a->lease_timer) == 0);
    a->lease_timer.data = a;
    *out = a;
    return ERR_OK;
}

static void on_timer_closed(uv_handle_t *handle)
{
    struct agent *a = handle->data;
    void (*cb)(void *arg) = a->close_cb;
    void *arg = a->close_arg;
    free(a->state_dir);
    free(a->load_program);
    free(a->job);
    free(a);
    cb(arg);
}

static void on_uplink_closed(void *arg)
{
    struct agent *a = arg;
    uv_close((uv_handle_t *)&a->lease_timer, on_timer_closed);
}

void agent_close(struct agent **agent, void (*cb)(void *arg), void *arg)
{
    struct agent *a = *agent;
    *agent = NULL;
    a->close_cb = cb;
    a->close_arg = arg;
    handle(a, EVENT_END, NULL);
}

const char *agent_job(const struct agent *a)
{
    return a->job;
}
