#include "agent/task/jail.h"
#include "agent/task/task_inner.h"
#include "common/mem.h"

#include <stdlib.h>
#include <string.h>

#define WORKS_MAX 64u /* the controller sends a chunk when the one before is answered */

struct task_work {
    struct task *task;
    struct task_work *next;
    struct msg_command command;
    uv_work_t work;
    enum err e;
    struct err_detail d;
    struct msg_files_missing missing;
};

static void begin_next(struct task *t);

static void work_free(struct task_work *w)
{
    msg_command_fini(&w->command);
    free(w->missing.items);
    free(w);
}

/* On the worker thread: nothing of the task but the workspace is touched, and nobody else touches that. */
static void on_work(uv_work_t *work)
{
    struct task_work *w = CONTAINER_OF(work, struct task_work, work);
    struct task *t = w->task;
    if (w->command.kind == MSG_COMMAND_FILES)
        w->e = workspace_set_files(t->workspace, &w->command.u.files, &w->missing, &w->d);
    else
        w->e = workspace_take_chunk(t->workspace, &w->command.u.chunk, &w->d);
}

static void answer(struct task *t, struct task_work *w)
{
    if (w->e != ERR_OK || w->command.kind != MSG_COMMAND_FILES) {
        task_answer(t, w->command.number, w->e, w->e != ERR_OK ? w->d.text : NULL);
        return;
    }
    struct msg_event event = {
        .answers = w->command.number, .kind = MSG_EVENT_FILES, .u.files = w->missing /* borrowed */};
    task_emit(t, &event);
}

static void pop(struct task *t)
{
    struct task_work *w = t->works;
    t->works = w->next;
    if (t->works == NULL)
        t->works_end = &t->works;
    work_free(w);
}

static void on_worked(uv_work_t *work, int status)
{
    struct task_work *w = CONTAINER_OF(work, struct task_work, work);
    struct task *t = w->task;
    must(w == t->works && status == 0); /* it is never cancelled once it was queued */
    answer(t, w);
    pop(t);
    begin_next(t);
    task_release(t);
}

static void begin_next(struct task *t)
{
    while (t->works != NULL && t->works->command.kind == MSG_COMMAND_START) {
        struct msg_command start = t->works->command;
        t->works->command = (struct msg_command){0};
        pop(t);
        task_proc_start(t, &start);
        msg_command_fini(&start);
    }
    if (t->works == NULL)
        return;
    task_hold(t);
    must(uv_queue_work(t->loop, &t->works->work, on_work, on_worked) == 0);
}

void task_files_push(struct task *t, const struct msg_command *command)
{
    size_t count = 0;
    for (const struct task_work *w = t->works; w != NULL; w = w->next)
        count++;
    if (t->workspace == NULL && command->kind != MSG_COMMAND_START) {
        task_answer(t, command->number, ERR_NOT_NOW, "this job has no workspace here");
        return;
    }
    if (count >= WORKS_MAX) {
        task_answer(t, command->number, ERR_BUSY, "too many commands for the workspace at once");
        return;
    }
    struct task_work *w = mem_zalloc(1, sizeof *w);
    w->task = t;
    msg_command_copy(&w->command, command);
    *t->works_end = w;
    t->works_end = &w->next;
    if (count == 0)
        begin_next(t);
}

bool task_files_busy(const struct task *t)
{
    return t->works != NULL;
}

void task_files_cancel(struct task *t)
{
    if (t->works == NULL)
        return;
    struct task_work *waiting = t->works->next;
    t->works->next = NULL;
    t->works_end = &t->works->next;
    while (waiting != NULL) {
        struct task_work *w = waiting;
        waiting = w->next;
        task_answer(t, w->command.number, ERR_CANCELLED, "the job was closed");
        work_free(w);
    }
}

/* ---- what earlier jobs left ----------------------------------------------------------------------- */

/* On a worker thread, beside the others: it only touches directories of other jobs. */
static void on_clean(uv_work_t *work)
{
    struct task *t = CONTAINER_OF(work, struct task, cleaning);
    if (t->workspace != NULL)
        workspace_remove_old(t->workspace);
    char *logs = mem_printf("%s/logs", t->state_dir);
    jail_keep_newest(logs, t->job, WORKSPACE_KEPT_MAX);
    free(logs);
}

static void on_cleaned(uv_work_t *work, int status)
{
    must(status == 0);
    task_release(CONTAINER_OF(work, struct task, cleaning));
}

void task_files_clean(struct task *t)
{
    task_hold(t);
    must(uv_queue_work(t->loop, &t->cleaning, on_clean, on_cleaned) == 0);
}
