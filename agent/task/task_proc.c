#include "agent/probe/port.h"
#include "agent/probe/probe.h"
#include "agent/task/task_inner.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/parse.h"
#include "common/path.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LOG_TAIL_LINES 20u

#define STATE_LIST(X)                                                                                        \
    X(STARTING, "starting") /* the supervisor has the order */                                               \
    X(PROBING, "probing")   /* it runs, its first answer is awaited */                                       \
    X(BUILDING, "building") /* it runs, its end is awaited */                                                \
    X(RUNNING, "running")   /* START was answered */                                                         \
    X(ENDING, "ending")     /* it was told to end, its end is awaited */                                     \
    X(ENDED, "ended")
enum state {
#define X(name, text) STATE_##name,
    STATE_LIST(X)
#undef X
        STATE_COUNT
};

#define EVENT_LIST(X)                                                                                        \
    X(SPAWNED) /* there is a pid */                                                                          \
    X(REFUSED) /* there will be none; `d` says why */                                                        \
    X(READY)   /* the first answer came */                                                                   \
    X(LATE)    /* not ready, or not built, in time; `d` says why */                                          \
    X(STOPPED) /* a STOP came; it is on the list */                                                          \
    X(EXITED)  /* nothing of it lives */
enum event {
#define X(name) EVENT_##name,
    EVENT_LIST(X)
#undef X
        EVENT_COUNT
};

struct task_proc {
    struct task *task;
    struct task_proc *next;
    enum state state;
    uint32_t number;
    char *label;
    struct msg_command start; /* as it came; its number is 0 once answered */
    uint64_t *stops;          /* STOP commands to be answered when it has ended */
    size_t stop_count;
    pid_t pid;
    uint64_t spawned_at_ns;
    uint64_t startup_ns;
    struct probe *probe; /* under way, or NULL */
    uv_timer_t build_timer;
    bool has_timer;
    bool stop_early;  /* a STOP came before there was a pid */
    enum err failure; /* why START has failed although it is not answered yet */
    struct err_detail d;
    struct process_exit exit; /* once ENDED */
};

static void proc_handle(struct task_proc *p, enum event event);

static const char *state_name(enum state s)
{
    static const char *const names[] = {
#define X(name, text) text,
        STATE_LIST(X)
#undef X
    };
    return names[s];
}

static void state_set(struct task_proc *p, enum state to)
{
    log_debug("proc_state", "job=%s proc=%u label=\"%s\" from=%s to=%s", p->task->job, p->number, p->label,
              state_name(p->state), state_name(to));
    p->state = to;
}

static struct task_proc *find(const struct task *t, uint32_t number)
{
    struct task_proc *p = t->procs;
    while (p != NULL && p->number != number)
        p = p->next;
    return p;
}

/* ---- texts and answers --------------------------------------------------------------------------- */

const char *task_exit_text(const struct process_exit *exit, char *out, size_t size)
{
    if (exit->lapsed)
        snprintf(out, size, "was ended because its lease ran out");
    else if (exit->signal != 0)
        snprintf(out, size, "was ended by signal %d (%s)", exit->signal, strsignal(exit->signal));
    else if (exit->left_behind > 0)
        snprintf(out, size,
                 "ended with status %d, leaving %u processes behind; it has to stay in the foreground",
                 exit->status, exit->left_behind);
    else
        snprintf(out, size, "ended with status %d", exit->status);
    return out;
}

char *task_with_log_tail(struct task *t, uint32_t proc, const char *what)
{
    char *tail = t->set != NULL ? process_read_log_tail(t->set, proc, LOG_TAIL_LINES) : NULL;
    char *text;
    size_t used = tail != NULL ? strlen(tail) : 0;
    while (used > 0 && strchr(" \t\r\n", tail[used - 1]) != NULL)
        tail[--used] = '\0';
    if (used == 0) {
        text = mem_printf("%s; it printed nothing", what);
    } else {
        size_t taken = strlen(what) + 64;
        size_t room = taken < LIMIT_TEXT_BYTES ? LIMIT_TEXT_BYTES - taken : 0;
        const char *last = tail + (used > room ? used - room : 0);
        while (((unsigned char)*last & 0xc0) == 0x80)
            last++; /* not inside a character */
        text = mem_printf("%s; its last output:\n%s", what, last);
    }
    free(tail);
    return text;
}

void task_emit_exited(struct task *t, uint64_t answers, uint32_t proc, const struct process_exit *exit)
{
    struct msg_event event = {.answers = answers, .kind = MSG_EVENT_EXITED};
    struct msg_exited *x = &event.u.exited;
    size_t len = 0;
    char *log = process_read_log(t->set, proc, &len, &x->log_dropped_bytes);
    char *tail = process_read_log_tail(t->set, proc, LOG_TAIL_LINES);
    x->proc = proc;
    x->asked = exit->asked;
    x->status = exit->status;
    x->signal = exit->signal;
    x->log_tail = tail;
    x->log = (struct msg_bytes){(uint8_t *)log, len};
    task_emit(t, &event);
    free(log);
    free(tail);
}

static void answer_start(struct task_proc *p, enum err code, const char *text)
{
    task_answer(p->task, p->start.number, code, text);
    p->start.number = 0;
}

/* "LABEL: WHAT; its last output: ..." */
static void answer_failed(struct task_proc *p, enum err code, const char *what)
{
    char *sentence = mem_printf("%s: %s", p->label, what);
    char *text = task_with_log_tail(p->task, p->number, sentence);
    answer_start(p, code, text);
    free(sentence);
    free(text);
}

/* ---- the end ------------------------------------------------------------------------------------- */

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
    if (p->has_timer)
        uv_close((uv_handle_t *)&p->build_timer, on_timer_closed);
    p->has_timer = false;
}

static void answer_stops(struct task_proc *p)
{
    for (size_t i = 0; i < p->stop_count; i++)
        task_emit_exited(p->task, p->stops[i], p->number, &p->exit);
    free(p->stops);
    p->stops = NULL;
    p->stop_count = 0;
}

/* The whole log goes out once: with the answer to a STOP, with a build's, or unasked. */
static void ended(struct task_proc *p)
{
    char text[160];
    bool built = p->state == STATE_BUILDING && p->exit.status == 0 && p->exit.signal == 0;
    end_waits(p);
    state_set(p, STATE_ENDED);
    if (built) {
        task_emit_exited(p->task, p->start.number, p->number, &p->exit);
        p->start.number = 0;
        return;
    }
    if (p->stop_count == 0)
        task_emit_exited(p->task, 0, p->number, &p->exit);
    if (p->start.number != 0 && p->failure != ERR_OK)
        answer_failed(p, p->failure, p->d.text);
    else if (p->start.number != 0)
        answer_failed(p, ERR_FAILED, task_exit_text(&p->exit, text, sizeof text));
    answer_stops(p);
}

/* ---- START: actions ------------------------------------------------------------------------------ */

static void on_probed(void *arg, enum err e, uint64_t startup_ns, const struct err_detail *d)
{
    struct task_proc *p = arg;
    struct task *t = p->task;
    p->probe = NULL;
    if (p->state == STATE_PROBING) {
        p->startup_ns = startup_ns;
        p->d = *d;
        p->failure = e;
        proc_handle(p, e == ERR_OK ? EVENT_READY : EVENT_LATE);
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
    proc_handle(p, EVENT_LATE);
}

static void begin_build_timer(struct task_proc *p)
{
    if (p->start.u.start.ready_timeout_ns == 0)
        return;
    uv_update_time(p->task->loop);
    uv_timer_init(p->task->loop, &p->build_timer);
    uv_timer_start(&p->build_timer, on_build_time, p->start.u.start.ready_timeout_ns / NS_PER_MS + 1, 0);
    p->has_timer = true;
    task_hold(p->task);
}

static void ready(struct task_proc *p)
{
    char link[64];
    char exe[LIMIT_PATH_BYTES] = "";
    snprintf(link, sizeof link, "/proc/%d/exe", (int)p->pid);
    ssize_t n = readlink(link, exe, sizeof exe - 1);
    exe[n > 0 ? n : 0] = '\0'; /* "" for a program that changed its user: then nobody may look */
    state_set(p, STATE_RUNNING);
    struct msg_event event = {
        .answers = p->start.number,
        .kind = MSG_EVENT_STARTED,
        .u.started = {.proc = p->number, .pid = (uint32_t)p->pid, .startup_ns = p->startup_ns, .exe = exe}};
    p->start.number = 0;
    task_emit(p->task, &event);
}

static void stop_now(struct task_proc *p)
{
    end_waits(p);
    state_set(p, STATE_ENDING);
    process_stop(p->task->set, p->number);
}

static void spawned(struct task_proc *p)
{
    if (p->stop_early) {
        stop_now(p);
        return;
    }
    switch (p->start.u.start.ready) {
    case MSG_READY_TCP:
    case MSG_READY_HTTP:
        state_set(p, STATE_PROBING);
        p->failure = begin_probe(p);
        if (p->failure != ERR_OK)
            stop_now(p);
        break;
    case MSG_READY_EXIT:
        state_set(p, STATE_BUILDING);
        begin_build_timer(p);
        break;
    case MSG_READY_NONE:
    case MSG_READY_COUNT:
        ready(p);
        break;
    }
}

static void refused(struct task_proc *p)
{
    state_set(p, STATE_ENDED);
    p->exit = (struct process_exit){.status = -1};
    char *text = mem_printf("%s: %s", p->label, p->d.text);
    answer_start(p, p->failure, text);
    for (size_t i = 0; i < p->stop_count; i++)
        task_answer(p->task, p->stops[i], ERR_NOT_FOUND, text);
    p->stop_count = 0;
    free(text);
}

/* ---- STOP: actions ------------------------------------------------------------------------------- */

/* There may be no process yet to be told: it is stopped once there is. */
static void stop_later(struct task_proc *p)
{
    p->stop_early = true;
    p->failure = err_set(&p->d, ERR_CANCELLED, "was stopped before it was ready");
}

static void stop_unready(struct task_proc *p)
{
    p->failure = err_set(&p->d, ERR_CANCELLED, "was stopped before it was ready");
    stop_now(p);
}

static void wait_on(struct task_proc *p)
{
    (void)p;
}

/* ---- the table ----------------------------------------------------------------------------------- */

typedef void action(struct task_proc *p);

static action *const table[STATE_COUNT][EVENT_COUNT] = {
    [STATE_STARTING] = {[EVENT_SPAWNED] = spawned, [EVENT_REFUSED] = refused, [EVENT_STOPPED] = stop_later},
    [STATE_PROBING] = {[EVENT_READY] = ready,
                       [EVENT_LATE] = stop_now,
                       [EVENT_STOPPED] = stop_unready,
                       [EVENT_EXITED] = ended},
    [STATE_BUILDING] = {[EVENT_LATE] = stop_now, [EVENT_STOPPED] = stop_unready, [EVENT_EXITED] = ended},
    [STATE_RUNNING] = {[EVENT_STOPPED] = stop_now, [EVENT_EXITED] = ended},
    [STATE_ENDING] = {[EVENT_STOPPED] = wait_on, [EVENT_EXITED] = ended},
    [STATE_ENDED] = {[EVENT_STOPPED] = answer_stops},
};

static void proc_handle(struct task_proc *p, enum event event)
{
    action *act = table[p->state][event];
    must(act != NULL); /* only our own callbacks could bring what is not in the table */
    act(p);
}

/* ---- START and STOP ------------------------------------------------------------------------------ */

static void on_started(void *arg, enum err e, pid_t pid, uint64_t spawned_at_ns, const struct err_detail *d)
{
    struct task_proc *p = arg;
    if (p->state != STATE_STARTING)
        return; /* the task is closing: it was answered */
    p->pid = pid;
    p->spawned_at_ns = spawned_at_ns;
    if (e != ERR_OK) {
        p->failure = e;
        p->d = *d;
    }
    proc_handle(p, e == ERR_OK ? EVENT_SPAWNED : EVENT_REFUSED);
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

static enum err check_start_command(const struct task *t, const struct msg_start *s, struct err_detail *d)
{
    bool probed = s->ready == MSG_READY_TCP || s->ready == MSG_READY_HTTP;
    if (s->argv.count == 0 || s->argv.count > LIMIT_ARGV_COUNT || s->env.count > LIMIT_ENV_COUNT)
        return err_set(d, ERR_INVALID, "%zu words and %zu variables: 1 to %u and at most %u are possible",
                       s->argv.count, s->env.count, LIMIT_ARGV_COUNT, LIMIT_ENV_COUNT);
    if (s->proc >= TASK_OWN_PROCS || find(t, s->proc) != NULL || task_load_is(t, s->proc))
        return err_set(d, ERR_EXISTS, "process number %u is taken", s->proc);
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
    free(p->stops);
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
        char *text = mem_printf("%s: %s", label, d.text);
        task_answer(t, command->number, e, text);
        free(text);
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
    p->stops = mem_realloc(p->stops, p->stop_count + 1, sizeof *p->stops);
    p->stops[p->stop_count++] = command->number;
    proc_handle(p, EVENT_STOPPED);
}

bool task_proc_is_known(const struct task *t, uint32_t proc)
{
    return find(t, proc) != NULL;
}

bool task_proc_exited(struct task *t, uint32_t proc, const struct process_exit *exit)
{
    struct task_proc *p = find(t, proc);
    if (p == NULL || p->state == STATE_ENDED)
        return false;
    p->exit = *exit;
    proc_handle(p, EVENT_EXITED);
    return true;
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
        if (p->state == STATE_ENDED)
            continue;
        bool told = p->state == STATE_RUNNING && code != ERR_CANCELLED;
        end_waits(p);
        state_set(p, STATE_ENDED);
        p->exit = (struct process_exit){.status = -1, .signal = SIGKILL};
        if (told && p->stop_count == 0)
            task_emit_exited(t, 0, p->number, &p->exit);
        if (p->start.number != 0)
            answer_start(p, code, why);
        answer_stops(p);
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
