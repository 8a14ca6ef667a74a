#ifndef AGENT_TASK_TASK_INNER_H
#define AGENT_TASK_TASK_INNER_H
/*
 * What the files of the task share. For agent/task/task*.c only; see agent/task/task.h. Each calls only those
 * below it:
 *
 * task.c         life, the command table, CHECK and SAMPLE
 * task_load.c    LOAD: the generator, one state machine
 * task_files.c   FILES and CHUNK, on a worker thread, in order
 * task_proc.c    START and STOP: one state machine a process
 * task_answer.c  what the task says, and what it still waits for
 */
#include "agent/probe/check.h"
#include "agent/process/process.h"
#include "agent/task/task.h"
#include "agent/task/workspace.h"
#include "agent/telemetry/cpu.h"

struct task_proc;
struct task_load;
struct task_work;

struct task_check {
    struct task *task;
    uint64_t command; /* to be answered */
    struct check *check;
    struct task_check *next;
};

struct task {
    uv_loop_t *loop;
    char *job;
    char *state_dir;
    char *log_dir;
    char *load_program;
    void (*emit)(void *arg, const struct msg_event *event);
    void *arg;

    struct process_set *set; /* NULL once closed */
    struct cpu_counters *cpu;
    struct workspace *workspace; /* NULL when the job has none */
    struct task_proc *procs;     /* newest first; ended ones stay, to answer a late STOP */
    struct task_check *checks;
    struct task_load *load;  /* the one that runs, or NULL */
    uint32_t load_proc;      /* its process number */
    char *generator;         /* the built-in program proved itself as this, or NULL */
    uint32_t proofs;         /* version runs so far: each has a process number of its own */
    struct task_work *works; /* first = running */
    struct task_work **works_end;
    uv_work_t cleaning; /* what earlier jobs left */

    unsigned holds; /* callbacks still to come */
    /* Once the task closes: frees it when there are none. */
    void (*on_unheld)(struct task *t);
    void (*close_cb)(void *arg);
    void *close_arg;
};

/* Process numbers from here up are the agent's own (version runs). */
#define TASK_OWN_PROCS UINT32_C(0xffff0000)

/* ---- task_answer.c -------------------------------------------------------------------------------- */

/* Something asynchronous of ours has begun or ended. */
void task_hold(struct task *t);
void task_release(struct task *t);

/* Fills in the job and hands it out. */
void task_emit(struct task *t, struct msg_event *event);

/* The answer DONE: `text` NULL for ERR_OK; and "WHAT; its last output:\n...". Of a process it does not say
 * which: who asked knows. */
void task_answer(struct task *t, uint64_t command, enum err code, const char *text);
void task_answer_with_log(struct task *t, uint64_t command, enum err code, uint32_t proc, const char *what);

/* EXITED with the whole log. `answers` 0: unasked. */
void task_emit_exited(struct task *t, uint64_t answers, uint32_t proc, const struct process_exit *exit);

/* "ended with status 3", "was ended by signal 9 (Killed)". Returns `out`. */
const char *task_exit_text(const struct process_exit *exit, char *out, size_t size);

/* STOP commands to be answered when their process has ended: with EXITED, or all with NOT_FOUND. */
struct task_stops {
    uint64_t *commands;
    size_t count;
};
void task_stops_add(struct task_stops *s, uint64_t command);
void task_stops_exited(struct task *t, struct task_stops *s, uint32_t proc, const struct process_exit *exit);
void task_stops_refuse(struct task *t, struct task_stops *s, const char *text);
void task_stops_fini(struct task_stops *s);

/* ---- task_proc.c ---------------------------------------------------------------------------------- */

void task_proc_start(struct task *t, const struct msg_command *command);
void task_proc_stop(struct task *t, const struct msg_command *command);
/* ERR_EXISTS when the number is the agent's, the load's, or that of another process. */
NODISCARD enum err task_proc_check_number(const struct task *t, uint32_t proc, struct err_detail *d);
/* Nothing when the number is no process of START. */
void task_proc_exited(struct task *t, uint32_t proc, const struct process_exit *exit);
/* A generator has ended: a STOP that comes later is answered from this. */
void task_proc_remember(struct task *t, uint32_t proc, const char *label, const struct process_exit *exit);
/* Every process without an end has ended now: its supervisor is gone, or the task closes. */
void task_proc_lost(struct task *t, enum err code, const char *why);
void task_proc_free_all(struct task *t);

/* For the test of every pair, see common/machine.h. */
bool task_proc_permits(unsigned state, unsigned event);
bool task_load_permits(unsigned state, unsigned event);

/* ---- task_load.c ---------------------------------------------------------------------------------- */

void task_load_start(struct task *t, const struct msg_command *command);
bool task_load_is(const struct task *t, uint32_t proc);
void task_load_stop(struct task *t, uint64_t command);
/* False when the number is not that of the generator. */
bool task_load_exited(struct task *t, uint32_t proc, const struct process_exit *exit);
void task_load_line(struct task *t, uint32_t proc, const char *line);
void task_load_lost(struct task *t, enum err code, const char *why);

/* ---- task_files.c --------------------------------------------------------------------------------- */

/* FILES, CHUNK, and START while one of those is at work; `command` is copied. */
void task_files_push(struct task *t, const struct msg_command *command);
bool task_files_busy(const struct task *t);
/* Removes what earlier jobs left too much of, on a worker thread; the task does not end before that. */
void task_files_clean(struct task *t);
/* Those that have not begun are answered; the one at work is when it ends. */
void task_files_cancel(struct task *t);

#endif
