#include "agent/probe/port.h"
#include "agent/probe/probe.h"
#include "agent/task/task_inner.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/machine.h"
#include "common/mem.h"
#include "common/parse.h"
#include "common/path.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STATE_LIST(X)                                                                                        \
    X(STARTING) /* the supervisor has the order */                                                           \
    X(RECALLED) /* it has the order, and a STOP came: it is stopped once there is something to stop */       \
    X(PROBING)  /* it runs, its first answer is awaited */                                                   \
    X(BUILDING) /* it runs, its end is awaited; the timer is open */                                         \
    X(RUNNING)  /* START was answered */                                                                     \
    X(ENDING)   /* it was told to end, its end is awaited */                                                 \
    X(ENDED)
enum state { STATE_LIST(MACHINE_STATE) STATE_COUNT };

#define EVENT_LIST(X)                                                                                        \
    X(SPAWNED) /* there is a pid */                                                                          \
    X(REFUSED) /* there will be none; `d` says why */                                                        \
    X(READY)   /* the first answer came */                                                                   \
    X(LATE)    /* not ready, or not built, in time; `d` says why */                                          \
    X(STOPPED) /* a STOP came; it is on the list */                                                          \
    X(EXITED)  /* nothing of it lives */                                                                     \
    X(LOST)    /* nor does its supervisor, or the task closes; `d` says why */
enum event { EVENT_LIST(MACHINE_EVENT) EVENT_COUNT };

struct task_proc {
    struct task *task;
    struct task_proc *next;
    enum state state;
    uint32_t number;
    char *label;
    struct msg_command start; /* as it came; its number is 0 once answered */
    struct task_stops stops;
    pid_t pid;
    uint64_t spawned_at_ns;
    uint64_t startup_ns;
    struct probe *probe; /* under way, or NULL */
    uv_timer_t build_timer;
    enum err failure; /* why START has failed although it is not answered yet */
    struct err_detail d;
    struct process_exit exit; /* once ENDED */
};

static void handle(struct task_proc *p, enum event event);

static struct task_proc *find(const struct task *t, uint32_t number)
{
    struct task_proc *p = t->procs;
    while (p != NULL && p->number != number)
        p = p->next;
    return p;
}

/* The START is answered now; 0 when it was before. */
static uint64_t take_start(struct task_proc *p)
{
    uint64_t number = p->start.number;
    p->start.number = 0;
    return number;
}

/* ---- the end -------------------------------------------------------------------------------------- */

static void on_timer_closed(uv_handle_t *handle)
{
    struct task_proc *p = CONTAINER_OF((uv_timer_t *)handle, struct task_proc, build_timer);
    task_release(p->task);
}

/* Nothing is awaited from it any more but its end. */
static void end_waits(struct task_proc *p)
{
    if (p->probe != NULL)
        probe_cancel(p->probe);
    if (p->state == STATE_BUILDING)
        uv_close((uv_handle_t *)&p->build_timer, on_timer_closed);
}

/* The whole log goes out once: with the answer to a STOP, with a build's, or unasked. */
static enum state do_end(struct task_proc *p)
{
    char text[160];
    end_waits(p);
    if (p->stops.count == 0)
        task_emit_exited(p->task, 0, p->number, &p->exit);
    const char *what = p->failure != ERR_OK ? p->d.text : task_exit_text(&p->exit, text, sizeof text);
    if (p->start.number != 0)
        task_answer_with_log(p->task, take_start(p), p->failure != ERR_OK ? p->failure : ERR_FAILED,
                             p->number, what);
    task_stops_exited(p->task, &p->stops, p->number, &p->exit);
    return STATE_ENDED;
}

static enum state do_end_build(struct task_proc *p)
{
    if (p->exit.status != 0 || p->exit.signal != 0)
        return do_end(p);
    end_waits(p);
    task_emit_exited(p->task, take_start(p), p->number, &p->exit);
    return STATE_ENDED;
}

/* A controller that closes the job knows that its servers end; of any other loss it hears unasked. */
static enum state do_lose(struct task_proc *p)
{
    end_waits(p);
    p->exit = (struct process_exit){.status = -1, .signal = SIGKILL};
    if (p->state == STATE_RUNNING && p->failure != ERR_CANCELLED && p->stops.count == 0)
        task_emit_exited(p->task, 0, p->number, &p->exit);
    if (p->start.number != 0)
        task_answer(p->task, take_start(p), p->failure, p->d.text);
    task_stops_exited(p->task, &p->stops, p->number, &p->exit);
    return STATE_ENDED;
}

/* ---- START ---------------------------------------------------------------------------------------- */

static void on_probed(void *arg, enum err e, uint64_t startup_ns, const struct err_detail *d)
{
    struct task_proc *p = arg;
    struct task *t = p->task;
    p->probe = NULL;
    if (p->state == STATE_PROBING) { /* else it was given up, and why is known */
        p->startup_ns = startup_ns;
        p->d = *d;
        p->failure = e;
        handle(p, e == ERR_OK ? EVENT_READY : EVENT_LATE);
    }
    task_release(t);
}

static enum err begin_probe(struct task_proc *p)
{
    const struct msg_start *s = &p->start.u.start;
    struct probe_options options = {.loop = p->task->loop,
                                    .kind = s->ready,
                                    .host = msg_text(s->ready_host),
                                    .port = s->ready_port,
                                    .path = msg_text(s->ready_path),
                                    .since_ns = p->spawned_at_ns,
                                    .timeout_ns = s->ready_timeout_ns,
                                    .cb = on_probed,
                                    .arg = p};
    enum err e = probe_start(&options, &p->probe, &p->d);
    if (e == ERR_OK)
        task_hold(p->task);
    return e;
}

static void on_build_time(uv_timer_t *timer)
{
    struct task_proc *p = CONTAINER_OF(timer, struct task_proc, build_timer);
    char text[32];
    parse_duration_text(p->start.u.start.ready_timeout_ns, text, sizeof text);
    p->failure = err_set(&p->d, ERR_TIMEOUT, "did not end within %s", text);
    handle(p, EVENT_LATE);
}

/* A build without a limit has the timer too, which is never started. */
static void begin_build_timer(struct task_proc *p)
{
    uint64_t timeout_ns = p->start.u.start.ready_timeout_ns;
    uv_update_time(p->task->loop);
    uv_timer_init(p->task->loop, &p->build_timer);
    if (timeout_ns != 0)
        uv_timer_start(&p->build_timer, on_build_time, timeout_ns / NS_PER_MS + 1, 0);
    task_hold(p->task);
}

static enum state do_answer(struct task_proc *p)
{
    char link[64];
    char exe[LIMIT_PATH_BYTES] = "";
    snprintf(link, sizeof link, "/proc/%d/exe", (int)p->pid);
    ssize_t n = readlink(link, exe, sizeof exe - 1);
    exe[n > 0 ? n : 0] = '\0'; /* "" for a program that changed its user: then nobody may look */
    struct msg_event event = {
        .answers = take_start(p),
        .kind = MSG_EVENT_STARTED,
        .u.started = {.proc = p->number, .pid = (uint32_t)p->pid, .startup_ns = p->startup_ns, .exe = exe}};
    task_emit(p->task, &event);
    return STATE_RUNNING;
}

static enum state do_stop(struct task_proc *p)
{
    end_waits(p);
    process_stop(p->task->set, p->number);
    return STATE_ENDING;
}

static enum state do_begin(struct task_proc *p)
{
    switch (p->start.u.start.ready) {
    case MSG_READY_TCP:
    case MSG_READY_HTTP:
        p->failure = begin_probe(p);
        return p->failure == ERR_OK ? STATE_PROBING : do_stop(p);
    case MSG_READY_EXIT:
        begin_build_timer(p);
        return STATE_BUILDING;
    case MSG_READY_NONE:
    case MSG_READY_COUNT:
        break;
    }
    return do_answer(p);
}

static enum state do_refuse(struct task_proc *p)
{
    p->exit = (struct process_exit){.status = -1};
    task_answer(p->task, take_start(p), p->failure, p->d.text);
    task_stops_refuse(p->task, &p->stops, p->d.text);
    return STATE_ENDED;
}

/* ---- STOP ----------------------------------------------------------------------------------------- */

static enum state do_recall(struct task_proc *p)
{
    p->failure = err_set(&p->d, ERR_CANCELLED, "was stopped before it was ready");
    return STATE_RECALLED;
}

static enum state do_stop_unready(struct task_proc *p)
{
    (void)do_recall(p);
    return do_stop(p);
}

static enum state do_answer_stop(struct task_proc *p)
{
    task_stops_exited(p->task, &p->stops, p->number, &p->exit);
    return STATE_ENDED;
}

static enum state keep(struct task_proc *p)
{
    return p->state;
}

/* ---- the table ------------------------------------------------------------------------------------ */

/* What each event does in each state; an empty cell cannot happen: only our own callbacks could bring it. */
static enum state (*const table[STATE_COUNT][EVENT_COUNT])(struct task_proc *) = {
    [STATE_STARTING] = {ON(SPAWNED, do_begin), ON(REFUSED, do_refuse), ON(STOPPED, do_recall),
                        ON(LOST, do_lose)},
    [STATE_RECALLED] = {ON(SPAWNED, do_stop), ON(REFUSED, do_refuse), ON(STOPPED, keep), ON(LOST, do_lose)},
    [STATE_PROBING] = {ON(READY, do_answer), ON(LATE, do_stop), ON(STOPPED, do_stop_unready),
                       ON(EXITED, do_end), ON(LOST, do_lose)},
    [STATE_BUILDING] = {ON(LATE, do_stop), ON(STOPPED, do_stop_unready), ON(EXITED, do_end_build),
                        ON(LOST, do_lose)},
    [STATE_RUNNING] = {ON(STOPPED, do_stop), ON(EXITED, do_end), ON(LOST, do_lose)},
    [STATE_ENDING] = {ON(STOPPED, keep), ON(EXITED, do_end), ON(LOST, do_lose)},
    [STATE_ENDED] = {ON(STOPPED, do_answer_stop), ON(LOST, keep)},
};

bool task_proc_permits(unsigned state, unsigned event)
{
    return state < STATE_COUNT && event < EVENT_COUNT && table[state][event] != NULL;
}

static void handle(struct task_proc *p, enum event event)
{
    static const char *const states[] = {STATE_LIST(MACHINE_NAME)};
    static const char *const events[] = {EVENT_LIST(MACHINE_NAME)};
    enum state from = p->state;
    must(task_proc_permits(from, event));
    p->state = table[from][event](p);
    if (p->state != from)
        log_debug("proc_state", "job=%s proc=%u label=\"%s\" from=%s event=%s to=%s", p->task->job, p->number,
                  p->label, states[from], events[event], states[p->state]);
}

/* ---- commands ------------------------------------------------------------------------------------- */

static void on_started(void *arg, enum err e, pid_t pid, uint64_t spawned_at_ns, const struct err_detail *d)
{
    struct task_proc *p = arg;
    if (p->state == STATE_ENDED)
        return; /* the task is closing: it was answered */
    p->pid = pid;
    p->spawned_at_ns = spawned_at_ns;
    if (e != ERR_OK) {
        p->failure = e;
        p->d = *d;
    }
    handle(p, e == ERR_OK ? EVENT_SPAWNED : EVENT_REFUSED);
}

/* Absolute directory to run in; the caller frees. */
static enum err find_dir(const struct task *t, const char *dir, char **out, struct err_detail *d)
{
    enum err e = ERR_OK;
    if (dir[0] == '/') {
        *out = mem_strdup(dir);
    } else if (t->workspace == NULL) { /* never beside the agent's own files */
        e = err_set(d, ERR_INVALID,
                    "directory \"%.300s\" is below the job's workspace, but the job has none on this host",
                    dir);
    } else if (dir[0] == '\0' || strcmp(dir, ".") == 0) {
        *out = mem_strdup(workspace_dir(t->workspace));
    } else {
        e = path_check(dir, d);
        if (e == ERR_OK)
            *out = mem_printf("%s/%s", workspace_dir(t->workspace), dir);
    }
    return e;
}

/* The words of `s` with a NULL behind them, borrowed; the caller frees the array. */
static char **words(const struct msg_strings *s)
{
    char **list = mem_zalloc(s->count + 1, sizeof *list);
    for (size_t i = 0; i < s->count; i++)
        list[i] = s->items[i];
    return list;
}

enum err task_proc_check_number(const struct task *t, uint32_t proc, struct err_detail *d)
{
    if (proc >= TASK_OWN_PROCS || find(t, proc) != NULL || (t->load != NULL && t->load_proc == proc))
        return err_set(d, ERR_EXISTS, "process number %u is taken", proc);
    return ERR_OK;
}

static enum err check_start_command(const struct task *t, const struct msg_start *s, struct err_detail *d)
{
    bool probed = s->ready == MSG_READY_TCP || s->ready == MSG_READY_HTTP;
    if (s->argv.count == 0 || s->argv.count > LIMIT_ARGV_COUNT || s->env.count > LIMIT_ENV_COUNT)
        return err_set(d, ERR_INVALID, "%zu words and %zu variables: 1 to %u and at most %u are possible",
                       s->argv.count, s->env.count, LIMIT_ARGV_COUNT, LIMIT_ENV_COUNT);
    enum err e = task_proc_check_number(t, s->proc, d);
    if (e != ERR_OK)
        return e;
    if (probed && (s->ready_port == 0 || s->ready_timeout_ns == 0))
        return err_set(d, ERR_INVALID, "readiness needs a port and a time-out");
    return probed ? port_check_free(s->ready_port, d) : ERR_OK;
}

static enum err spawn(struct task_proc *p, struct err_detail *d)
{
    const struct msg_start *s = &p->start.u.start;
    char *dir = NULL;
    enum err e = find_dir(p->task, msg_text(s->dir), &dir, d);
    if (e != ERR_OK)
        return e;
    char **argv = words(&s->argv);
    char **env = words(&s->env);
    struct process_spec spec = {
        .proc = s->proc,
        .label = p->label,
        .argv = argv,
        .env = env,
        .dir = dir,
        .cpus = msg_text(s->cpus)[0] != '\0' ? s->cpus : NULL,
        .grace_ns = s->grace_ns,
    };
    e = process_start(p->task->set, &spec, on_started, p, d);
    free(argv);
    free(env);
    free(dir);
    return e;
}

static void proc_free(struct task_proc *p)
{
    msg_command_fini(&p->start);
    task_stops_fini(&p->stops);
    free(p->label);
    free(p);
}

void task_proc_start(struct task *t, const struct msg_command *command)
{
    const struct msg_start *s = &command->u.start;
    struct err_detail d;
    const char *label =
        msg_text(s->label)[0] != '\0' || s->argv.count == 0 ? msg_text(s->label) : s->argv.items[0];
    enum err e = check_start_command(t, s, &d);
    struct task_proc *p = NULL;
    if (e == ERR_OK) {
        p = mem_zalloc(1, sizeof *p);
        p->task = t;
        p->number = s->proc;
        p->label = mem_strdup(label);
        msg_command_copy(&p->start, command);
        e = spawn(p, &d);
    }
    if (e != ERR_OK) {
        task_answer(t, command->number, e, d.text);
        if (p != NULL)
            proc_free(p);
        return;
    }
    p->next = t->procs;
    t->procs = p;
}

void task_proc_stop(struct task *t, const struct msg_command *command)
{
    struct task_proc *p = find(t, command->u.stop.proc);
    if (p == NULL) {
        char text[64];
        snprintf(text, sizeof text, "process %u was never started here", command->u.stop.proc);
        task_answer(t, command->number, ERR_NOT_FOUND, text);
        return;
    }
    task_stops_add(&p->stops, command->number);
    handle(p, EVENT_STOPPED);
}

void task_proc_exited(struct task *t, uint32_t proc, const struct process_exit *exit)
{
    struct task_proc *p = find(t, proc);
    if (p == NULL || p->state == STATE_ENDED)
        return; /* a version run that was given up */
    p->exit = *exit;
    handle(p, EVENT_EXITED);
}

void task_proc_remember(struct task *t, uint32_t proc, const char *label, const struct process_exit *exit)
{
    struct task_proc *p = mem_zalloc(1, sizeof *p);
    p->task = t;
    p->number = proc;
    p->label = mem_strdup(label);
    p->state = STATE_ENDED;
    p->exit = *exit;
    p->next = t->procs;
    t->procs = p;
}

void task_proc_lost(struct task *t, enum err code, const char *why)
{
    for (struct task_proc *p = t->procs; p != NULL; p = p->next) {
        p->failure = err_set(&p->d, code, "%s", why);
        handle(p, EVENT_LOST);
    }
}

void task_proc_free_all(struct task *t)
{
    while (t->procs != NULL) {
        struct task_proc *p = t->procs;
        t->procs = p->next;
        proc_free(p);
    }
}
