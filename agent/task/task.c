#include "agent/task/task_inner.h"

#include "common/clock.h"
#include "common/file.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/path.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ---- life ----------------------------------------------------------------------------------------- */

static void task_free(struct task *t)
{
    task_proc_free_all(t);
    cpu_counters_free(t->cpu);
    workspace_free(t->workspace);
    free(t->generator);
    free(t->job);
    free(t->state_dir);
    free(t->log_dir);
    free(t->load_program);
    free(t);
}

static void finish(struct task *t)
{
    void (*cb)(void *) = t->close_cb;
    void *arg = t->close_arg;
    task_free(t);
    cb(arg);
}

static void on_exit_of(void *arg, uint32_t proc, const struct process_exit *exit)
{
    struct task *t = arg;
    if (!task_load_exited(t, proc, exit))
        task_proc_exited(t, proc, exit);
}

static void on_line_of(void *arg, uint32_t proc, const char *line)
{
    task_load_line(arg, proc, line);
}

static void on_lost(void *arg, const char *why)
{
    struct task *t = arg;
    log_error("job_lost", "job=%s why=\"%s\"", t->job, why);
    task_load_lost(t, ERR_CLOSED, why);
    task_proc_lost(t, ERR_CLOSED, why);
}

static enum err make_log_dir(struct task *t, struct err_detail *d)
{
    enum err e = path_check_name("job", t->job, d);
    if (e != ERR_OK)
        return e;
    char *parent = mem_printf("%s/logs", t->state_dir);
    t->log_dir = mem_printf("%s/%s", parent, t->job);
    e = file_make_dir(parent, 0700, d);
    if (e == ERR_OK)
        e = file_make_dir(t->log_dir, 0700, d);
    free(parent);
    return e;
}

static enum err open_set(struct task *t, uint64_t lease_ns, struct err_detail *d)
{
    struct process_set_options options = {
        .loop = t->loop,
        .job = t->job,
        .log_dir = t->log_dir,
        .lease_ns = lease_ns,
        .handlers = {.arg = t, .on_exit = on_exit_of, .on_line = on_line_of, .on_lost = on_lost},
    };
    return process_set_new(&options, &t->set, d);
}

enum err task_new(const struct task_options *o, struct task **out, struct err_detail *d)
{
    *out = NULL;
    struct task *t = mem_zalloc(1, sizeof *t);
    t->loop = o->loop;
    t->job = mem_strdup(o->job);
    t->state_dir = mem_strdup(o->state_dir);
    t->load_program = mem_strdup(o->load_program);
    t->emit = o->emit;
    t->arg = o->arg;
    t->works_end = &t->works;
    enum err e = make_log_dir(t, d);
    if (e == ERR_OK)
        e = cpu_counters_new("/proc", &t->cpu, d);
    struct workspace_options workspace = {.state_dir = t->state_dir, .job = t->job};
    if (e == ERR_OK && o->open->workspace)
        e = workspace_open(&workspace, &t->workspace, d);
    if (e == ERR_OK)
        e = open_set(t, o->lease_ns, d);
    if (e != ERR_OK) {
        task_free(t);
        return e;
    }
    task_files_clean(t);
    *out = t;
    return ERR_OK;
}

static void on_set_closed(void *arg)
{
    task_release(arg);
}

void task_close(struct task **task, void (*cb)(void *arg), void *arg)
{
    static const char why[] = "the job was closed";
    struct task *t = *task;
    *task = NULL;
    task_hold(t); /* until the set is closed */
    t->on_unheld = finish;
    t->close_cb = cb;
    t->close_arg = arg;
    task_files_cancel(t);
    for (struct task_check *c = t->checks; c != NULL; c = c->next)
        check_cancel(c->check);
    task_load_lost(t, ERR_CANCELLED, why);
    task_proc_lost(t, ERR_CANCELLED, why);
    process_set_close(&t->set, on_set_closed, t);
}

void task_renew(struct task *t, uint64_t lease_ns)
{
    process_set_renew(t->set, lease_ns);
}

/* ---- CHECK ---------------------------------------------------------------------------------------- */

static void on_checked(void *arg, enum err e, const struct msg_checked *result)
{
    struct task_check *c = arg;
    struct task *t = c->task;
    struct task_check **at = &t->checks;
    while (*at != c)
        at = &(*at)->next;
    *at = c->next;
    if (e != ERR_OK) {
        task_answer(t, c->command, e, "the job was closed");
    } else {
        struct msg_event event = {.answers = c->command, .kind = MSG_EVENT_CHECKED, .u.checked = *result};
        task_emit(t, &event);
    }
    free(c);
    task_release(t);
}

static void handle_check(struct task *t, const struct msg_command *command)
{
    struct err_detail d;
    struct task_check *c = mem_zalloc(1, sizeof *c);
    c->task = t;
    c->command = command->number;
    enum err e = check_start(t->loop, &command->u.check, on_checked, c, &c->check, &d);
    if (e != ERR_OK) {
        free(c);
        task_answer(t, command->number, e, d.text);
        return;
    }
    c->next = t->checks;
    t->checks = c;
    task_hold(t);
}

/* ---- SAMPLE --------------------------------------------------------------------------------------- */

static enum err read_procs(struct task *t, const struct msg_sample *sample, struct msg_sampled *out,
                           struct err_detail *d)
{
    if (sample->proc_count > MSG_PROCS_MAX)
        return err_set(d, ERR_TOO_BIG, "a sample of %zu processes: at most %u", sample->proc_count,
                       MSG_PROCS_MAX);
    for (size_t i = 0; i < sample->proc_count; i++) {
        struct process_usage usage;
        if (process_usage(t->set, sample->procs[i], &usage) != ERR_OK)
            return err_set(d, ERR_NOT_FOUND, "process %u was never started here", sample->procs[i]);
        out->procs[i] = (struct msg_proc_sample){.proc = sample->procs[i],
                                                 .alive = usage.alive,
                                                 .cpu_ns = usage.cpu_ns,
                                                 .rss_bytes = usage.rss_bytes,
                                                 .processes = usage.processes};
        memcpy(out->procs[i].counters, usage.counters, sizeof usage.counters);
    }
    out->proc_count = sample->proc_count;
    return ERR_OK;
}

static void handle_sample(struct task *t, const struct msg_command *command)
{
    struct err_detail d;
    struct cpu_reading cpu;
    struct msg_event event = {.answers = command->number, .kind = MSG_EVENT_SAMPLED};
    struct msg_sampled *s = &event.u.sampled;
    enum err e = cpu_counters_read(t->cpu, &cpu, &d);
    if (e == ERR_OK)
        e = read_procs(t, &command->u.sample, s, &d);
    if (e != ERR_OK) {
        task_answer(t, command->number, e, d.text);
        return;
    }
    s->at_ns = cpu.taken_at_ns;
    s->busy_ns = cpu.busy_ns;
    s->steal_ns = cpu.steal_ns;
    s->own_ns = cpu.own_ns + process_set_own_cpu_ns(t->set);
    task_emit(t, &event);
}

/* ---- commands ------------------------------------------------------------------------------------- */

static void handle_start(struct task *t, const struct msg_command *command)
{
    if (task_files_busy(t)) /* its files may still be on their way into the workspace */
        task_files_push(t, command);
    else
        task_proc_start(t, command);
}

static void handle_stop(struct task *t, const struct msg_command *command)
{
    if (task_load_is(t, command->u.stop.proc))
        task_load_stop(t, command->number);
    else
        task_proc_stop(t, command);
}

static void refuse(struct task *t, const struct msg_command *command)
{
    task_answer(t, command->number, ERR_NOT_NOW, "the job is open already");
}

typedef void handler(struct task *t, const struct msg_command *command);

static handler *const handlers[MSG_COMMAND_COUNT] = {
    [MSG_COMMAND_JOB_OPEN] = refuse,
    [MSG_COMMAND_JOB_CLOSE] = refuse, /* the agent's own: it closes the task */
    [MSG_COMMAND_FILES] = task_files_push,
    [MSG_COMMAND_CHUNK] = task_files_push,
    [MSG_COMMAND_START] = handle_start,
    [MSG_COMMAND_STOP] = handle_stop,
    [MSG_COMMAND_CHECK] = handle_check,
    [MSG_COMMAND_LOAD] = task_load_start,
    [MSG_COMMAND_SAMPLE] = handle_sample,
};

void task_handle(struct task *t, const struct msg_command *command)
{
    must((unsigned)command->kind < MSG_COMMAND_COUNT &&
         t->on_unheld == NULL); /* the decoder has checked the kind */
    handlers[command->kind](t, command);
}
