#include "agent/driver/driver.h"
#include "agent/task/task_inner.h"
#include "common/clock.h"
#include "common/mem.h"
#include "common/parse.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define GRACE_NS         (2 * NS_PER_S)
#define PROOF_TIMEOUT_NS (10 * NS_PER_S) /* to print a version, on a machine that is busy */
/* What a generator may take beyond its times: the drain (5 s unless told otherwise), start, exit, printing.
 */
#define MARGIN_NS   (15 * NS_PER_S)
#define TICK_GAP_NS (900 * NS_PER_MS) /* one a second, and a little early is fine */

enum stage { STAGE_PROVING, STAGE_LOADING };

struct task_load {
    struct task *task;
    struct msg_command command;
    const struct driver *driver;
    enum stage stage;
    uint32_t proof_proc;
    uint64_t started_at_ns;
    uint64_t *stops; /* STOP commands to be answered when it has ended */
    size_t stop_count;
    uv_timer_t deadline;
    uint64_t deadline_ns;           /* length, for the message */
    bool edges[MSG_PROGRESS_COUNT]; /* already told */
    uint64_t last_tick_ns;
    enum err failure; /* why it was told to end */
    struct err_detail d;
};

static uint32_t number_of(const struct task_load *l)
{
    return l->command.u.load.proc;
}

static uint32_t running_proc(const struct task_load *l)
{
    return l->stage == STAGE_PROVING ? l->proof_proc : number_of(l);
}

static void on_closed(uv_handle_t *handle)
{
    struct task_load *l = CONTAINER_OF((uv_timer_t *)handle, struct task_load, deadline);
    struct task *t = l->task;
    msg_command_fini(&l->command);
    free(l->stops);
    free(l);
    task_release(t);
}

static struct driver_input input_of(const struct task_load *l)
{
    return (struct driver_input){
        .load = &l->command.u.load, .program = l->task->load_program, .work_dir = l->task->log_dir};
}

/* The LOAD is answered: makes room for the next one. */
static void end(struct task_load *l)
{
    struct driver_input in = input_of(l);
    driver_remove_body(&in);
    l->task->load = NULL;
    uv_close((uv_handle_t *)&l->deadline, on_closed);
}

static void answer(struct task_load *l, enum err code, const char *what)
{
    char *sentence = mem_printf("generator: %s", what);
    char *text = task_with_log_tail(l->task, running_proc(l), sentence);
    task_answer(l->task, l->command.number, code, text);
    free(sentence);
    free(text);
}

/* Refused before anything of it ran. */
static void answer_plain(struct task_load *l, enum err code, const char *what)
{
    char *text = mem_printf("generator: %s", what);
    task_answer(l->task, l->command.number, code, text);
    free(text);
}

static void answer_stops(struct task_load *l, const struct process_exit *exit)
{
    for (size_t i = 0; i < l->stop_count; i++)
        task_emit_exited(l->task, l->stops[i], running_proc(l), exit);
}

static void on_deadline(uv_timer_t *timer)
{
    struct task_load *l = CONTAINER_OF(timer, struct task_load, deadline);
    char text[32];
    parse_duration_text(l->deadline_ns, text, sizeof text);
    l->failure =
        err_set(&l->d, ERR_TIMEOUT, "hung: %s after %s",
                l->stage == STAGE_PROVING ? "it has not said its version" : "it has not ended", text);
    process_stop(l->task->set, running_proc(l));
}

static void set_deadline(struct task_load *l, uint64_t length_ns)
{
    l->deadline_ns = length_ns;
    uv_update_time(l->task->loop);
    uv_timer_start(&l->deadline, on_deadline, length_ns / NS_PER_MS + 1, 0);
}

/* ---- the run ------------------------------------------------------------------------------------- */

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
    answer_plain(l, e, d->text);
    for (size_t i = 0; i < l->stop_count; i++)
        task_answer(t, l->stops[i], ERR_NOT_FOUND, d->text);
    end(l);
}

static enum err run_program(struct task_load *l, const struct msg_strings *argv, struct err_detail *d)
{
    struct task *t = l->task;
    const struct msg_load *load = &l->command.u.load;
    char **list = mem_zalloc(argv->count + 1, sizeof *list);
    memcpy(list, argv->items, argv->count * sizeof *list);
    bool proving = l->stage == STAGE_PROVING;
    struct process_spec spec = {
        .proc = running_proc(l),
        .label = proving ? "generator version" : "generator",
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

static enum err begin_load(struct task_load *l, struct err_detail *d)
{
    const struct msg_load *load = &l->command.u.load;
    struct driver_input in = input_of(l);
    struct msg_strings argv = {0};
    l->stage = STAGE_LOADING;
    enum err e = l->driver->build(&in, &argv, d);
    if (e == ERR_OK)
        e = run_program(l, &argv, d);
    mem_free_strings(&argv.items, &argv.count);
    /* Opening the connections and the last answers may take a time-out each. */
    set_deadline(l, load->warmup_ns + load->duration_ns + 2 * load->timeout_ns + MARGIN_NS);
    return e;
}

static enum err begin_proof(struct task_load *l, struct err_detail *d)
{
    struct msg_strings argv = {0};
    l->stage = STAGE_PROVING;
    l->proof_proc = TASK_OWN_PROCS + l->task->proofs++;
    driver_add(&argv, "%s", l->task->load_program);
    for (size_t i = 0; l->driver->version_arguments[i] != NULL; i++)
        driver_add(&argv, "%s", l->driver->version_arguments[i]);
    enum err e = run_program(l, &argv, d);
    mem_free_strings(&argv.items, &argv.count);
    set_deadline(l, PROOF_TIMEOUT_NS);
    return e;
}

static enum err check_command(const struct task *t, const struct msg_load *load, struct err_detail *d)
{
    const uint64_t most_ns = UINT64_MAX / 8; /* four of them still add up */
    if (t->load != NULL)
        return err_set(d, ERR_BUSY, "another load runs on this host");
    if (load->proc >= TASK_OWN_PROCS || task_proc_is_known(t, load->proc))
        return err_set(d, ERR_EXISTS, "process number %u is taken", load->proc);
    if (load->warmup_ns > most_ns || load->duration_ns > most_ns || load->timeout_ns > most_ns)
        return err_set(d, ERR_INVALID, "a time that is no time");
    return ERR_OK;
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
    e = t->generator == NULL ? begin_proof(l, &d) : begin_load(l, &d);
    if (e != ERR_OK) {
        answer_plain(l, e, d.text);
        end(l);
    }
}

/* ---- events -------------------------------------------------------------------------------------- */

void task_load_line(struct task *t, uint32_t proc, const char *line)
{
    struct task_load *l = t->load;
    struct msg_progress p;
    uint64_t now_ns = clock_now_ns();
    if (l == NULL || l->stage != STAGE_LOADING || proc != number_of(l) || !l->driver->read_event(line, &p) ||
        p.at_ns > now_ns)
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

/* ---- the end ------------------------------------------------------------------------------------- */

/* Why an ended program has no result that could be read; ERR_OK when it may have one. */
static enum err check_exit(const struct task_load *l, const struct process_exit *exit, struct err_detail *d)
{
    char text[160];
    if (l->failure != ERR_OK)
        return err_set(d, l->failure, "%s", l->d.text);
    bool fine = exit->signal == 0 && !exit->lapsed &&
                (l->stage == STAGE_PROVING ? exit->status == 0 : l->driver->has_result(exit->status));
    return fine ? ERR_OK : err_set(d, ERR_FAILED, "it %s", task_exit_text(exit, text, sizeof text));
}

static enum err take_proof(struct task_load *l, const struct process_exit *exit, struct err_detail *d)
{
    enum err e = check_exit(l, exit, d);
    if (e != ERR_OK)
        return e;
    size_t len = 0;
    bool truncated = false;
    char *output = process_take_output(l->task->set, l->proof_proc, &len, &truncated);
    if (output == NULL || truncated)
        e = err_set(d, ERR_INVALID, "%s does not say its version as it should", l->task->load_program);
    else
        e = l->driver->prove(output, len, &l->task->generator, d);
    free(output);
    return e;
}

static enum err take_result(struct task_load *l, const struct process_exit *exit, struct msg_loaded *out,
                            struct err_detail *d)
{
    enum err e = check_exit(l, exit, d);
    if (e != ERR_OK)
        return e;
    const struct driver_span span = {.started_at_ns = l->started_at_ns, .ended_at_ns = clock_now_ns()};
    size_t len = 0;
    bool truncated = false;
    char *output = process_take_output(l->task->set, number_of(l), &len, &truncated);
    if (truncated)
        e = err_set(d, ERR_TOO_BIG, "it printed more than %u bytes of result", LIMIT_RESULT_BYTES);
    else if (output == NULL || len == 0)
        e = err_set(d, ERR_INVALID, "it ended with status %d and printed no result", exit->status);
    else
        e = l->driver->parse(output, len, &span, out, d);
    free(output);
    if (e == ERR_OK && strcmp(out->generator, l->task->generator) != 0)
        e = err_set(d, ERR_INVALID, "its result is of \"%.80s\", but the program said it is \"%.80s\"",
                    out->generator, l->task->generator);
    return e;
}

static void proof_exited(struct task_load *l, const struct process_exit *exit)
{
    struct err_detail d;
    enum err e = take_proof(l, exit, &d);
    if (e != ERR_OK) {
        answer(l, e, d.text);
        answer_stops(l, exit);
        end(l);
        return;
    }
    e = begin_load(l, &d);
    if (e != ERR_OK) {
        answer_plain(l, e, d.text);
        end(l);
    }
}

static void load_exited(struct task_load *l, const struct process_exit *exit)
{
    struct err_detail d;
    struct msg_event event = {.answers = l->command.number, .kind = MSG_EVENT_LOADED};
    enum err e = take_result(l, exit, &event.u.loaded, &d);
    if (e == ERR_OK)
        task_emit(l->task, &event);
    else
        answer(l, e, d.text);
    event.job = NULL; /* the task's, not the event's */
    msg_event_fini(&event);
    task_proc_remember(l->task, number_of(l), "generator", exit);
    answer_stops(l, exit);
    end(l);
}

bool task_load_exited(struct task *t, uint32_t proc, const struct process_exit *exit)
{
    struct task_load *l = t->load;
    if (l == NULL || proc != running_proc(l))
        return false;
    uv_timer_stop(&l->deadline);
    if (l->stage == STAGE_PROVING)
        proof_exited(l, exit);
    else
        load_exited(l, exit);
    return true;
}

bool task_load_is(const struct task *t, uint32_t proc)
{
    return t->load != NULL && number_of(t->load) == proc;
}

void task_load_stop(struct task *t, const struct msg_command *command)
{
    struct task_load *l = t->load;
    l->stops = mem_realloc(l->stops, l->stop_count + 1, sizeof *l->stops);
    l->stops[l->stop_count++] = command->number;
    if (l->failure == ERR_OK)
        l->failure = err_set(&l->d, ERR_CANCELLED, "was stopped");
    process_stop(t->set, running_proc(l));
}

void task_load_lost(struct task *t, enum err code, const char *why)
{
    struct task_load *l = t->load;
    if (l == NULL)
        return;
    const struct process_exit killed = {.status = -1, .signal = SIGKILL};
    answer_plain(l, code, why);
    answer_stops(l, &killed);
    if (l->stage == STAGE_LOADING)
        task_proc_remember(t, number_of(l), "generator", &killed);
    end(l);
}
