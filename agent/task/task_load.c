#include "agent/driver/driver.h"
#include "agent/task/task_inner.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/machine.h"
#include "common/mem.h"
#include "common/parse.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define GRACE_NS         (2 * NS_PER_S)
#define PROOF_TIMEOUT_NS (10 * NS_PER_S) /* to print a version, on a machine that is busy */
/* What a generator may take beyond its times: the drain (5 s unless told otherwise), start, exit, output. */
#define MARGIN_NS   (15 * NS_PER_S)
#define TICK_GAP_NS (900 * NS_PER_MS) /* one a second, and a little early is fine */

#define LABEL "generator"

#define STATE_LIST(X)                                                                                        \
    X(NEW)                                                                                                   \
    X(PROVING) /* the program says its version */                                                            \
    X(LOADING) /* it makes its load */                                                                       \
    X(ENDING)  /* it was told to end: `failure` says why */                                                  \
    X(ENDED)   /* the LOAD is answered, another may come */
enum state { STATE_LIST(MACHINE_STATE) STATE_COUNT };

#define EVENT_LIST(X)                                                                                        \
    X(BEGIN)                                                                                                 \
    X(REFUSED) /* it cannot be started; `failure` says why */                                                \
    X(LATE)    /* the deadline has come */                                                                   \
    X(STOPPED) /* a STOP came; it is on the list */                                                          \
    X(EXITED)  /* the program has ended */                                                                   \
    X(LOST)    /* so has its supervisor, or the task closes; `failure` says why */
enum event { EVENT_LIST(MACHINE_EVENT) EVENT_COUNT };

struct task_load {
    struct task *task;
    struct msg_command command;
    const struct driver *driver;
    enum state state;
    uint32_t running; /* number of the process that runs: the load's, or that of a version run */
    uint64_t started_at_ns;
    struct task_stops stops;
    uv_timer_t deadline;
    uint64_t deadline_ns;           /* length, for the message */
    bool edges[MSG_PROGRESS_COUNT]; /* already told */
    uint64_t last_tick_ns;
    struct process_exit exit;
    enum err failure;
    struct err_detail d;
};

static void handle(struct task_load *l, enum event event);

static uint32_t number_of(const struct task_load *l)
{
    return l->command.u.load.proc;
}

static void on_closed(uv_handle_t *handle)
{
    struct task_load *l = CONTAINER_OF((uv_timer_t *)handle, struct task_load, deadline);
    struct task *t = l->task;
    msg_command_fini(&l->command);
    task_stops_fini(&l->stops);
    free(l);
    task_release(t);
}

static struct driver_input input_of(const struct task_load *l)
{
    return (struct driver_input){
        .load = &l->command.u.load, .program = l->task->load_program, .work_dir = l->task->log_dir};
}

/* The LOAD is answered: makes room for the next one. */
static enum state end(struct task_load *l)
{
    struct driver_input in = input_of(l);
    driver_remove_body(&in);
    l->task->load = NULL;
    uv_close((uv_handle_t *)&l->deadline, on_closed);
    return STATE_ENDED;
}

/* Nothing of it ran, or what it printed does not matter. */
static enum state end_failed(struct task_load *l, enum err e, const struct err_detail *d)
{
    task_answer(l->task, l->command.number, e, d->text);
    return end(l);
}

/* A program has ended, and the LOAD is answered. A later STOP is answered from what is remembered. */
static enum state end_exited(struct task_load *l)
{
    if (l->running == number_of(l))
        task_proc_remember(l->task, l->running, LABEL, &l->exit);
    task_stops_exited(l->task, &l->stops, l->running, &l->exit);
    return end(l);
}

static enum state end_exited_failed(struct task_load *l, enum err e, const struct err_detail *d)
{
    task_answer_with_log(l->task, l->command.number, e, l->running, d->text);
    return end_exited(l);
}

static void on_deadline(uv_timer_t *timer)
{
    handle(CONTAINER_OF(timer, struct task_load, deadline), EVENT_LATE);
}

static void set_deadline(struct task_load *l, uint64_t length_ns)
{
    l->deadline_ns = length_ns;
    uv_update_time(l->task->loop);
    uv_timer_start(&l->deadline, on_deadline, length_ns / NS_PER_MS + 1, 0);
}

/* ---- the run -------------------------------------------------------------------------------------- */

/* The generator's own callbacks come only while it is the task's load: a number is used once. */
static void on_started(void *arg, enum err e, pid_t pid, uint64_t spawned_at_ns, const struct err_detail *d)
{
    struct task *t = arg;
    struct task_load *l = t->load;
    (void)pid;
    if (l == NULL)
        return; /* answered: the task is closing, or its supervisor is gone */
    l->started_at_ns = spawned_at_ns;
    if (e == ERR_OK)
        return;
    l->failure = err_set(&l->d, e, "%s", d->text);
    handle(l, EVENT_REFUSED);
}

static enum err run_program(struct task_load *l, const struct msg_strings *argv, struct err_detail *d)
{
    struct task *t = l->task;
    const struct msg_load *load = &l->command.u.load;
    char **list = mem_zalloc(argv->count + 1, sizeof *list);
    memcpy(list, argv->items, argv->count * sizeof *list);
    bool proving = l->running != number_of(l);
    struct process_spec spec = {
        .proc = l->running,
        .label = proving ? LABEL " version" : LABEL,
        .argv = list,
        .dir = t->log_dir,
        .cpus = !proving && msg_text(load->cpus)[0] != '\0' ? load->cpus : NULL,
        .lines = !proving,
        .out_bytes_max = proving ? DRIVER_VERSION_BYTES_MAX : LIMIT_RESULT_BYTES,
        .grace_ns = GRACE_NS,
    };
    enum err e = process_start(t->set, &spec, on_started, t, d);
    free(list);
    return e;
}

static enum state begin_load(struct task_load *l)
{
    const struct msg_load *load = &l->command.u.load;
    struct driver_input in = input_of(l);
    struct msg_strings argv = {0};
    struct err_detail d;
    l->running = load->proc;
    enum err e = l->driver->build(&in, &argv, &d);
    if (e == ERR_OK)
        e = run_program(l, &argv, &d);
    mem_free_strings(&argv.items, &argv.count);
    if (e != ERR_OK)
        return end_failed(l, e, &d);
    /* Opening the connections and the last answers may take a time-out each. */
    set_deadline(l, load->warmup_ns + load->duration_ns + 2 * load->timeout_ns + MARGIN_NS);
    return STATE_LOADING;
}

static enum state begin_proof(struct task_load *l)
{
    struct msg_strings argv = {0};
    struct err_detail d;
    l->running = TASK_OWN_PROCS + l->task->proofs++;
    driver_add(&argv, "%s", l->task->load_program);
    for (size_t i = 0; l->driver->version_arguments[i] != NULL; i++)
        driver_add(&argv, "%s", l->driver->version_arguments[i]);
    enum err e = run_program(l, &argv, &d);
    mem_free_strings(&argv.items, &argv.count);
    if (e != ERR_OK)
        return end_failed(l, e, &d);
    set_deadline(l, PROOF_TIMEOUT_NS);
    return STATE_PROVING;
}

static enum state do_begin(struct task_load *l)
{
    return l->task->generator == NULL ? begin_proof(l) : begin_load(l);
}

/* ---- the end -------------------------------------------------------------------------------------- */

static enum state do_refuse(struct task_load *l)
{
    task_answer(l->task, l->command.number, l->failure, l->d.text);
    task_stops_refuse(l->task, &l->stops, l->d.text);
    return end(l);
}

static enum state do_hang(struct task_load *l)
{
    char text[32];
    parse_duration_text(l->deadline_ns, text, sizeof text);
    l->failure = err_set(&l->d, ERR_TIMEOUT, "hung: it has not %s after %s",
                         l->running == number_of(l) ? "ended" : "said its version", text);
    process_stop(l->task->set, l->running);
    return STATE_ENDING;
}

static enum state do_stop(struct task_load *l)
{
    if (l->failure == ERR_OK)
        l->failure = err_set(&l->d, ERR_CANCELLED, "was stopped");
    process_stop(l->task->set, l->running);
    return STATE_ENDING;
}

static enum state do_lose(struct task_load *l)
{
    l->exit = (struct process_exit){.status = -1, .signal = SIGKILL};
    task_answer(l->task, l->command.number, l->failure, l->d.text);
    return end_exited(l);
}

static enum state do_end_told(struct task_load *l)
{
    return end_exited_failed(l, l->failure, &l->d);
}

/* Whether the program ended as one that has printed what it should. */
static enum err check_exit(const struct task_load *l, bool status_is_fine, struct err_detail *d)
{
    char text[160];
    if (status_is_fine && l->exit.signal == 0 && !l->exit.lapsed)
        return ERR_OK;
    return err_set(d, ERR_FAILED, "it %s", task_exit_text(&l->exit, text, sizeof text));
}

static enum err take_proof(struct task_load *l, struct err_detail *d)
{
    enum err e = check_exit(l, l->exit.status == 0, d);
    if (e != ERR_OK)
        return e;
    size_t len = 0;
    bool truncated = false;
    char *output = process_take_output(l->task->set, l->running, &len, &truncated);
    if (output == NULL || truncated)
        e = err_set(d, ERR_INVALID, "%s does not say its version as it should", l->task->load_program);
    else
        e = l->driver->prove(output, len, &l->task->generator, d);
    free(output);
    return e;
}

static enum state do_take_proof(struct task_load *l)
{
    struct err_detail d;
    uv_timer_stop(&l->deadline);
    enum err e = take_proof(l, &d);
    return e == ERR_OK ? begin_load(l) : end_exited_failed(l, e, &d);
}

static enum err take_result(struct task_load *l, struct msg_loaded *out, struct err_detail *d)
{
    enum err e = check_exit(l, l->driver->has_result(l->exit.status), d);
    if (e != ERR_OK)
        return e;
    const struct driver_span span = {.started_at_ns = l->started_at_ns, .ended_at_ns = clock_now_ns()};
    size_t len = 0;
    bool truncated = false;
    char *output = process_take_output(l->task->set, l->running, &len, &truncated);
    if (truncated)
        e = err_set(d, ERR_TOO_BIG, "it printed more than %u bytes of result", LIMIT_RESULT_BYTES);
    else if (output == NULL || len == 0)
        e = err_set(d, ERR_INVALID, "it ended with status %d and printed no result", l->exit.status);
    else
        e = l->driver->parse(output, len, &span, out, d);
    free(output);
    if (e == ERR_OK && strcmp(out->generator, l->task->generator) != 0)
        e = err_set(d, ERR_INVALID, "its result is of \"%.80s\", but the program said it is \"%.80s\"",
                    out->generator, l->task->generator);
    return e;
}

static enum state do_take_result(struct task_load *l)
{
    struct err_detail d;
    struct msg_event event = {.answers = l->command.number, .kind = MSG_EVENT_LOADED};
    enum err e = take_result(l, &event.u.loaded, &d);
    if (e == ERR_OK)
        task_emit(l->task, &event);
    event.job = NULL; /* the task's, not the event's */
    msg_event_fini(&event);
    return e == ERR_OK ? end_exited(l) : end_exited_failed(l, e, &d);
}

/* ---- the table ------------------------------------------------------------------------------------ */

/* What each event does in each state; an empty cell cannot happen: only our own callbacks could bring it. */
static enum state (*const table[STATE_COUNT][EVENT_COUNT])(struct task_load *) = {
    [STATE_NEW] = {ON(BEGIN, do_begin)},
    [STATE_PROVING] = {ON(REFUSED, do_refuse), ON(LATE, do_hang), ON(STOPPED, do_stop),
                       ON(EXITED, do_take_proof), ON(LOST, do_lose)},
    [STATE_LOADING] = {ON(REFUSED, do_refuse), ON(LATE, do_hang), ON(STOPPED, do_stop),
                       ON(EXITED, do_take_result), ON(LOST, do_lose)},
    [STATE_ENDING] = {ON(REFUSED, do_refuse), ON(LATE, do_hang), ON(STOPPED, do_stop),
                      ON(EXITED, do_end_told), ON(LOST, do_lose)},
};

bool task_load_permits(unsigned state, unsigned event)
{
    return state < STATE_COUNT && event < EVENT_COUNT && table[state][event] != NULL;
}

static void handle(struct task_load *l, enum event event)
{
    static const char *const states[] = {STATE_LIST(MACHINE_NAME)};
    static const char *const events[] = {EVENT_LIST(MACHINE_NAME)};
    enum state from = l->state;
    must(task_load_permits(from, event));
    l->state = table[from][event](l);
    if (l->state != from)
        log_debug("load_state", "job=%s from=%s event=%s to=%s", l->task->job, states[from], events[event],
                  states[l->state]);
}

/* ---- commands and events -------------------------------------------------------------------------- */

static enum err check_command(const struct task *t, const struct msg_load *load, struct err_detail *d)
{
    const uint64_t most_ns = UINT64_MAX / 8; /* four of them still add up */
    if (t->load != NULL)
        return err_set(d, ERR_BUSY, "another load runs on this host");
    if (load->warmup_ns > most_ns || load->duration_ns > most_ns || load->timeout_ns > most_ns)
        return err_set(d, ERR_INVALID, "warm-up, duration and time-out are at most %llu s each",
                       (unsigned long long)(most_ns / NS_PER_S));
    return task_proc_check_number(t, load->proc, d);
}

void task_load_start(struct task *t, const struct msg_command *command)
{
    const struct msg_load *load = &command->u.load;
    const struct driver *driver = NULL;
    struct err_detail d;
    enum err e = check_command(t, load, &d);
    if (e == ERR_OK)
        e = driver_find(msg_text(load->tool), &driver, &d);
    if (e != ERR_OK) {
        task_answer(t, command->number, e, d.text);
        return;
    }
    struct task_load *l = mem_zalloc(1, sizeof *l);
    l->task = t;
    l->driver = driver;
    msg_command_copy(&l->command, command);
    uv_timer_init(t->loop, &l->deadline);
    task_hold(t);
    t->load = l;
    t->load_proc = load->proc;
    handle(l, EVENT_BEGIN);
}

void task_load_line(struct task *t, uint32_t proc, const char *line)
{
    struct task_load *l = t->load;
    struct msg_progress p;
    uint64_t now_ns = clock_now_ns();
    if (l == NULL || proc != number_of(l) || !l->driver->read_event(line, &p) || p.at_ns > now_ns)
        return;
    if (p.kind == MSG_PROGRESS_TICK) {
        if (l->last_tick_ns != 0 && now_ns - l->last_tick_ns < TICK_GAP_NS)
            return;
        l->last_tick_ns = now_ns;
    } else {
        if (l->edges[p.kind])
            return;
        l->edges[p.kind] = true;
    }
    struct msg_event event = {.kind = MSG_EVENT_PROGRESS, .u.progress = p};
    task_emit(t, &event);
}

bool task_load_exited(struct task *t, uint32_t proc, const struct process_exit *exit)
{
    struct task_load *l = t->load;
    if (l == NULL || proc != l->running)
        return false;
    l->exit = *exit;
    handle(l, EVENT_EXITED);
    return true;
}

bool task_load_is(const struct task *t, uint32_t proc)
{
    return t->load != NULL && t->load_proc == proc;
}

void task_load_stop(struct task *t, uint64_t command)
{
    task_stops_add(&t->load->stops, command);
    handle(t->load, EVENT_STOPPED);
}

void task_load_lost(struct task *t, enum err code, const char *why)
{
    struct task_load *l = t->load;
    if (l == NULL)
        return;
    l->failure = err_set(&l->d, code, "%s", why);
    handle(l, EVENT_LOST);
}
