#include "agent/process/process.h"

#include "agent/process/cgroup.h"
#include "agent/process/cull.h"
#include "agent/process/process_files.h"
#include "agent/process/supervised.h"
#include "agent/process/usage.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/machine.h"
#include "common/mem.h"
#include "common/parse.h"

#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

/* Between two looks for strays of a lost supervisor. */
#define SWEEP_MS 10u

/* Of one tree. While `supervised` is not NULL its supervisor is alive, if only on its way out. */
#define STATE_LIST(X)                                                                                        \
    X(STARTING) /* the supervisor has the order, or is about to be sent away without one */                  \
    X(RUNNING)                                                                                               \
    X(ENDED)   /* nothing of the tree lives; its figures and logs are kept */                                \
    X(REFUSED) /* there never was a tree */
#define EVENT_LIST(X)                                                                                        \
    X(STARTED) /* what the supervisor says */                                                                \
    X(REFUSED)                                                                                               \
    X(EXITED)                                                                                                \
    X(UNSENT) /* it could not be given its order */                                                          \
    X(GONE)   /* it has left or was killed */
enum state { STATE_LIST(MACHINE_STATE) STATE_COUNT };
enum event { EVENT_LIST(MACHINE_EVENT) EVENT_COUNT };

struct proc {
    struct proc *next;
    struct process_set *set;
    uint32_t number;
    enum state state;
    struct supervised *supervised;
    process_start_cb *start_cb; /* NULL once it ran */
    void *start_arg;
    uint64_t grace_ns;
    char *label;
    struct process_files files;
    char *leaf;          /* NULL without one */
    struct usage *usage; /* while it lives */
    struct process_usage last;
    uint64_t own_cpu_ns;
};

/* Of all trees of the job. */
#define SET_STATE_LIST(X)                                                                                    \
    X(OPEN)                                                                                                  \
    X(LOST) /* a supervisor was killed: the other trees are being ended */                                   \
    X(DEAD) /* they have ended, and the owner was told */                                                    \
    X(CLOSING)                                                                                               \
    X(CLOSED)
#define SET_EVENT_LIST(X)                                                                                    \
    X(LOSE)  /* a supervisor was killed */                                                                   \
    X(EMPTY) /* nothing of the job lives; a closing set has no open handle either */                         \
    X(CLOSE)
enum set_state {
#define X(name) SET_##name,
    SET_STATE_LIST(X) SET_STATE_COUNT
#undef X
};
enum set_event {
#define X(name) SET_EVENT_##name,
    SET_EVENT_LIST(X) SET_EVENT_COUNT
#undef X
};

struct process_set {
    uv_loop_t *loop;
    char *job;
    char *log_dir;
    char *cgroup; /* where leaves go, NULL: nowhere */
    struct process_handlers handlers;
    uint64_t lease_until_ns; /* CLOCK_BOOTTIME */
    enum set_state state;
    bool sweeping; /* a supervisor died: strays may be ours */
    char why[256];
    struct proc *procs; /* newest first */
    size_t alive;       /* with a supervisor */
    size_t open;        /* with handles not closed yet */
    uint64_t forgotten_cpu_ns;
    uv_timer_t sweep;
    void (*close_cb)(void *arg);
    void *close_arg;
};

static void check_empty(struct process_set *set);

static uint64_t boot_now_ns(void)
{
    struct timespec ts;
    must(clock_gettime(CLOCK_BOOTTIME, &ts) == 0);
    return (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
}

static struct proc *find(struct process_set *set, uint32_t number)
{
    for (struct proc *p = set->procs; p != NULL; p = p->next) {
        if (p->number == number && p->state != STATE_REFUSED)
            return p;
    }
    return NULL;
}

static void proc_free(struct proc *p)
{
    usage_free(p->usage);
    free(p->label);
    process_files_fini(&p->files);
    free(p->leaf);
    free(p);
}

/* Ended trees beyond what is kept, with their files, and refused ones. */
static void forget_old(struct process_set *set)
{
    size_t kept = 0;
    for (struct proc **slot = &set->procs; *slot != NULL;) {
        struct proc *p = *slot;
        kept += p->state == STATE_ENDED;
        if (p->supervised != NULL || (p->state == STATE_ENDED && kept <= PROCESS_KEPT_MAX)) {
            slot = &p->next;
            continue;
        }
        process_files_remove(&p->files);
        set->forgotten_cpu_ns += p->own_cpu_ns;
        *slot = p->next;
        proc_free(p);
    }
}

/* ---- one tree, in the order of its life ---------------------------------------------------------- */

static enum state do_start(struct proc *p, const struct supervisor_msg *m)
{
    struct err_detail d;
    if (!m->in_leaf) {
        free(p->leaf);
        p->leaf = NULL;
    }
    struct usage_options options = {
        .proc_root = "/proc", .leaf = p->leaf, .reaper = supervised_pid(p->supervised)};
    if (usage_new(&options, &p->usage, &d) != ERR_OK) {
        /* The tree may have ended already, its leaf with it: the account comes with the exit. */
        log_debug("tree_counters", "label=\"%s\" why=\"%s\"", p->label, d.text);
    }
    return STATE_RUNNING;
}

static enum state do_refuse(struct proc *p, const struct supervisor_msg *m)
{
    (void)p;
    (void)m;
    return STATE_REFUSED;
}

static enum state do_send_away(struct proc *p, const struct supervisor_msg *m)
{
    (void)m;
    supervised_cut(p->supervised);
    if (p->leaf != NULL)
        (void)rmdir(p->leaf);
    return STATE_REFUSED;
}

static enum state do_end(struct proc *p, const struct supervisor_msg *m)
{
    (void)m;
    usage_free(p->usage);
    p->usage = NULL;
    p->last = (struct process_usage){.cpu_ns = p->last.cpu_ns};
    return STATE_ENDED;
}

static enum state do_take_account(struct proc *p, const struct supervisor_msg *m)
{
    p->files.log_lost_bytes = m->log_lost_bytes;
    p->files.out_lost_bytes = m->out_lost_bytes;
    p->own_cpu_ns = m->own_cpu_ns;
    if (m->cpu_ns > p->last.cpu_ns)
        p->last.cpu_ns = m->cpu_ns;
    return do_end(p, m);
}

static enum state keep(struct proc *p, const struct supervisor_msg *m)
{
    (void)m;
    return p->state;
}

/* What each event does in each state; a supervisor that says what has no cell is not listened to. */
static enum state (*const table[STATE_COUNT][EVENT_COUNT])(struct proc *, const struct supervisor_msg *) = {
    [STATE_STARTING] = {[EVENT_STARTED] = do_start,
                        [EVENT_REFUSED] = do_refuse,
                        [EVENT_UNSENT] = do_send_away,
                        [EVENT_GONE] = do_refuse},
    [STATE_RUNNING] = {[EVENT_EXITED] = do_take_account, [EVENT_GONE] = do_end},
    [STATE_ENDED] = {[EVENT_GONE] = keep},
    [STATE_REFUSED] = {[EVENT_GONE] = keep},
};

bool process_permits(unsigned state, unsigned event)
{
    return state < STATE_COUNT && event < EVENT_COUNT && table[state][event] != NULL;
}

/* False when the event means nothing in this state. */
static bool handle(struct proc *p, enum event event, const struct supervisor_msg *m)
{
    static const char *const states[] = {STATE_LIST(MACHINE_NAME)};
    enum state from = p->state;
    if (!process_permits(from, event)) {
        log_error("supervisor_garbage", "label=\"%s\" state=%s event=%d", p->label, states[from], (int)event);
        return false;
    }
    p->state = table[from][event](p, m);
    if (p->state != from)
        log_debug("tree_state", "label=\"%s\" from=%s to=%s", p->label, states[from], states[p->state]);
    return true;
}

static void answer_start(struct proc *p, enum err e, const struct supervisor_msg *m,
                         const struct err_detail *d)
{
    process_start_cb *cb = p->start_cb;
    p->start_cb = NULL;
    if (cb != NULL)
        cb(p->start_arg, e, m != NULL ? m->pid : -1, m != NULL ? m->spawned_at_ns : 0, d);
}

static void tell_refused(struct proc *p, const struct supervisor_msg *m)
{
    struct err_detail d;
    enum err e = err_set(&d, m->error, "%s", m->text);
    answer_start(p, e, NULL, &d);
}

static void tell_exited(struct proc *p, const struct supervisor_msg *m)
{
    const struct process_exit exit = {
        .status = m->status,
        .signal = m->signal,
        .asked = m->asked,
        .lapsed = m->lapsed,
        .left_behind = m->left_behind,
    };
    p->set->handlers.on_exit(p->set->handlers.arg, p->number, &exit);
}

/* The owner hears of it when the tree has its new state; of a set that closes it hears only the end. */
static void on_message(void *arg, const struct supervisor_msg *m)
{
    struct proc *p = arg;
    struct process_set *set = p->set;
    bool tell = set->state != SET_CLOSING;
    switch (m->type) {
    case SUPERVISOR_STARTED:
        if (handle(p, EVENT_STARTED, m) && tell)
            answer_start(p, ERR_OK, m, NULL);
        break;
    case SUPERVISOR_REFUSED:
        if (handle(p, EVENT_REFUSED, m) && tell)
            tell_refused(p, m);
        break;
    case SUPERVISOR_EXITED:
        if (handle(p, EVENT_EXITED, m) && tell)
            tell_exited(p, m);
        break;
    case SUPERVISOR_LINE:
        if (tell)
            set->handlers.on_line(set->handlers.arg, p->number, m->text);
        break;
    case SUPERVISOR_NOTE:
        log_warn("supervisor", "job=\"%s\" label=\"%s\" says=\"%s\"", set->job, p->label, m->text);
        break;
    case SUPERVISOR_START:
    case SUPERVISOR_STOP:
    case SUPERVISOR_RENEW:
        log_error("supervisor_garbage", "label=\"%s\" type=%d", p->label, (int)m->type);
        break;
    }
}

static void on_retired(void *arg)
{
    struct process_set *set = arg;
    set->open--;
    check_empty(set);
}

static void cut_all(struct process_set *set)
{
    for (struct proc *p = set->procs; p != NULL; p = p->next) {
        if (p->supervised == NULL)
            continue;
        if (p->state == STATE_ENDED || p->state == STATE_REFUSED) /* on its way out */
            supervised_expect(p->supervised, 0);
        else
            supervised_cut(p->supervised);
    }
}

static void set_handle(struct process_set *set, enum set_event event);

/* Its orphans are ours now, this process being a subreaper too. */
static void lose(struct process_set *set, struct proc *p, const char *how)
{
    log_error("supervisor_lost", "job=\"%s\" label=\"%s\" why=\"%s\"", set->job, p->label, how);
    set->sweeping = true;
    if (set->state == SET_OPEN)
        snprintf(set->why, sizeof set->why, "'%s': %s", p->label, how);
    if (p->leaf != NULL)
        cgroup_leaf_kill(p->leaf);
    set_handle(set, SET_EVENT_LOSE);
    cut_all(set);
}

static void on_gone(void *arg, const char *how)
{
    struct proc *p = arg;
    struct process_set *set = p->set;
    struct err_detail d;
    /* One that never got its order leaves without a report, with nothing started. */
    if (how == NULL && p->state == STATE_RUNNING)
        how = "the supervisor left without a report";
    if (how != NULL)
        lose(set, p, how);
    (void)handle(p, EVENT_GONE, NULL);
    set->alive--;
    supervised_close(&p->supervised, on_retired, set);
    enum err e = set->state == SET_CLOSING ? ERR_CANCELLED : ERR_CLOSED;
    (void)err_set(&d, e, "cannot run '%s': %s", p->label, how != NULL ? how : "the job ends");
    answer_start(p, e, NULL, &d);
    check_empty(set);
}

/* ---- one set ------------------------------------------------------------------------------------- */

static bool leaves_empty(struct process_set *set)
{
    bool empty = true;
    struct err_detail d;
    for (struct proc *p = set->procs; p != NULL; p = p->next) {
        if (p->leaf == NULL || p->supervised != NULL)
            continue;
        if (cgroup_leaf_populated(p->leaf)) {
            cgroup_leaf_kill(p->leaf);
            empty = false;
        } else if (cgroup_leaf_remove(p->leaf, &d) == ERR_OK) {
            free(p->leaf);
            p->leaf = NULL;
        } else {
            empty = false;
        }
    }
    return empty;
}

static void on_sweep(uv_timer_t *timer)
{
    struct process_set *set = timer->data;
    bool strays = cull_strays() > 0;
    bool empty = leaves_empty(set);
    if (!strays && empty)
        set->sweeping = false;
    check_empty(set);
}

static void on_sweep_closed(uv_handle_t *handle)
{
    struct process_set *set = handle->data;
    void (*cb)(void *arg) = set->close_cb;
    void *arg = set->close_arg;
    while (set->procs != NULL) {
        struct proc *p = set->procs;
        set->procs = p->next;
        proc_free(p);
    }
    free(set->job);
    free(set->log_dir);
    free(set->cgroup);
    free(set);
    cb(arg);
}

static enum set_state do_lose(struct process_set *set)
{
    (void)set;
    return SET_LOST;
}

static enum set_state do_die(struct process_set *set)
{
    (void)set;
    return SET_DEAD;
}

static enum set_state do_end_all(struct process_set *set)
{
    cut_all(set);
    return SET_CLOSING;
}

static enum set_state do_close(struct process_set *set)
{
    uv_close((uv_handle_t *)&set->sweep, on_sweep_closed);
    return SET_CLOSED;
}

static enum set_state keep_set(struct process_set *set)
{
    return set->state;
}

/* An empty cell cannot happen: only our own callbacks could bring it. */
static enum set_state (*const set_table[SET_STATE_COUNT][SET_EVENT_COUNT])(struct process_set *) = {
    [SET_OPEN] = {[SET_EVENT_LOSE] = do_lose, [SET_EVENT_EMPTY] = keep_set, [SET_EVENT_CLOSE] = do_end_all},
    [SET_LOST] = {[SET_EVENT_LOSE] = keep_set, [SET_EVENT_EMPTY] = do_die, [SET_EVENT_CLOSE] = do_end_all},
    [SET_DEAD] = {[SET_EVENT_EMPTY] = keep_set, [SET_EVENT_CLOSE] = do_end_all},
    [SET_CLOSING] = {[SET_EVENT_LOSE] = keep_set, [SET_EVENT_EMPTY] = do_close},
};

bool process_set_permits(unsigned state, unsigned event)
{
    return state < SET_STATE_COUNT && event < SET_EVENT_COUNT && set_table[state][event] != NULL;
}

static void set_handle(struct process_set *set, enum set_event event)
{
    static const char *const states[] = {SET_STATE_LIST(MACHINE_NAME)};
    enum set_state from = set->state;
    must(process_set_permits(from, event));
    set->state = set_table[from][event](set);
    if (set->state != from)
        log_debug("trees_state", "job=\"%s\" from=%s to=%s", set->job, states[from], states[set->state]);
}

/* After anything that ends: if strays may be left it looks for them first. */
static void check_empty(struct process_set *set)
{
    if (set->sweeping) {
        must(uv_timer_start(&set->sweep, on_sweep, SWEEP_MS, 0) == 0);
        return;
    }
    if (set->alive > 0 || (set->state == SET_CLOSING && set->open > 0))
        return;
    bool lost = set->state == SET_LOST;
    set_handle(set, SET_EVENT_EMPTY);
    if (lost)
        set->handlers.on_lost(set->handlers.arg, set->why);
}

void process_clean_stale(void)
{
    char path[CGROUP_PATH_BYTES];
    size_t stale =
        cgroup_find_parent("/proc", path, sizeof path, NULL) == ERR_OK ? cgroup_clean_stale(path) : 0;
    if (stale > 0)
        log_warn("cgroup_stale", "path=\"%s\" removed=%zu", path, stale);
}

static void find_cgroup(struct process_set *set)
{
    struct err_detail d;
    char path[CGROUP_PATH_BYTES];
    enum err e = cgroup_find_parent("/proc", path, sizeof path, &d);
    if (e == ERR_OK)
        set->cgroup = mem_strdup(path);
    else
        log_info("cgroup_unused", "why=\"%s\"", d.text);
}

/* Whoever started us may have had SIGCHLD ignored, which is inherited: the kernel would swallow how our
 * children ended. */
static void wait_for_children(void)
{
    struct sigaction action;
    if (sigaction(SIGCHLD, NULL, &action) == 0 && action.sa_handler == SIG_IGN)
        (void)signal(SIGCHLD, SIG_DFL);
}

enum err process_set_new(const struct process_set_options *options, struct process_set **out,
                         struct err_detail *d)
{
    struct stat st;
    if (stat(options->log_dir, &st) != 0)
        return err_set(d, err_from_errno(errno), "cannot keep logs in %s: %s", options->log_dir,
                       strerror(errno));
    if (!S_ISDIR(st.st_mode))
        return err_set(d, ERR_INVALID, "cannot keep logs in %s: not a directory", options->log_dir);
    if (prctl(PR_SET_CHILD_SUBREAPER, 1) != 0)
        return err_set(d, err_from_errno(errno), "cannot become a subreaper: %s", strerror(errno));
    wait_for_children();
    struct process_set *set = mem_zalloc(1, sizeof *set);
    set->loop = options->loop;
    set->job = mem_strdup(options->job);
    set->log_dir = mem_strdup(options->log_dir);
    set->handlers = options->handlers;
    set->lease_until_ns = boot_now_ns() + options->lease_ns;
    set->sweep.data = set;
    must(uv_timer_init(set->loop, &set->sweep) == 0);
    if (!options->no_cgroup) {
        process_clean_stale();
        find_cgroup(set);
    }
    *out = set;
    return ERR_OK;
}

void process_set_close(struct process_set **slot, void (*cb)(void *arg), void *arg)
{
    struct process_set *set = *slot;
    *slot = NULL;
    set->close_cb = cb;
    set->close_arg = arg;
    set_handle(set, SET_EVENT_CLOSE);
    check_empty(set);
}

void process_set_renew(struct process_set *set, uint64_t lease_ns)
{
    set->lease_until_ns = boot_now_ns() + lease_ns;
    const struct supervisor_msg m = {.type = SUPERVISOR_RENEW, .lease_until_ns = set->lease_until_ns};
    for (struct proc *p = set->procs; p != NULL; p = p->next) {
        enum err e = p->supervised != NULL ? supervised_send(p->supervised, &m) : ERR_OK;
        if (e == ERR_BUSY)
            log_warn("supervisor_slow", "label=\"%s\" lost=renewal", p->label);
    }
}

/* ---- starting ------------------------------------------------------------------------------------ */

static enum err check_spec(struct process_set *set, const struct process_spec *spec, struct err_detail *d)
{
    cpu_set_t cpus;
    if (set->state != SET_OPEN)
        return err_set(d, ERR_CLOSED, "cannot run '%s': the supervisor of the job is gone", spec->label);
    if (boot_now_ns() >= set->lease_until_ns)
        return err_set(d, ERR_TIMEOUT, "cannot run '%s': the lease of the job has run out", spec->label);
    if (set->alive >= PROCESS_MAX)
        return err_set(d, ERR_TOO_BIG, "cannot run '%s': %u process trees of the job are alive already",
                       spec->label, PROCESS_MAX);
    if (find(set, spec->proc) != NULL)
        return err_set(d, ERR_EXISTS, "cannot run '%s': process number %u is in use", spec->label,
                       spec->proc);
    if (spec->argv == NULL || spec->argv[0] == NULL || spec->argv[0][0] == '\0')
        return err_set(d, ERR_INVALID, "cannot run '%s': the command is empty", spec->label);
    if (spec->dir == NULL || spec->dir[0] != '/')
        return err_set(d, ERR_INVALID, "cannot run '%s': its directory is not an absolute path", spec->label);
    if (spec->out_bytes_max > LIMIT_RESULT_BYTES)
        return err_set(d, ERR_TOO_BIG, "cannot run '%s': more than %u bytes of output to keep", spec->label,
                       LIMIT_RESULT_BYTES);
    return spec->cpus != NULL ? parse_cpus(spec->cpus, &cpus, "cpus", d) : ERR_OK;
}

static void make_leaf(struct proc *p)
{
    struct process_set *set = p->set;
    char path[CGROUP_PATH_BYTES];
    struct err_detail d;
    if (set->cgroup == NULL)
        return;
    if (cgroup_leaf_make(set->cgroup, set->job, p->number, path, sizeof path, &d) == ERR_OK) {
        p->leaf = mem_strdup(path);
        return;
    }
    log_info("cgroup_unused", "why=\"%s\"", d.text);
    free(set->cgroup);
    set->cgroup = NULL;
}

static enum err send_start(struct proc *p, const struct process_spec *spec, struct err_detail *d)
{
    struct supervisor_msg m = {
        .type = SUPERVISOR_START,
        .lease_until_ns = p->set->lease_until_ns,
        .grace_ns = spec->grace_ns,
        .out_bytes_max = spec->out_bytes_max,
        .lines = spec->lines,
        .dir = spec->dir,
        .cpus = spec->cpus,
        .leaf = p->leaf,
        .log_path = p->files.log_path,
        .out_path = p->files.out_path,
    };
    union {
        char *const *borrowed;
        char **vector;
    } argv = {.borrowed = spec->argv}, env = {.borrowed = spec->env};
    m.argv = argv.vector; /* encoding only reads them */
    m.env = env.vector;
    enum err e = supervised_send(p->supervised, &m);
    if (e == ERR_TOO_BIG)
        return err_set(d, e, "cannot run '%s': its arguments or environment are over %u bytes or %u words",
                       spec->label, LIMIT_COMMAND_BYTES, LIMIT_ARGV_COUNT);
    return e == ERR_OK ? ERR_OK
                       : err_set(d, e, "cannot run '%s': its supervisor: %s", spec->label, err_text(e));
}

enum err process_start(struct process_set *set, const struct process_spec *spec, process_start_cb *cb,
                       void *arg, struct err_detail *d)
{
    enum err e = check_spec(set, spec, d);
    if (e != ERR_OK)
        return e;
    forget_old(set);
    struct proc *p = mem_zalloc(1, sizeof *p);
    p->set = set;
    p->number = spec->proc;
    p->grace_ns = spec->grace_ns;
    p->label = mem_strdup(spec->label);
    process_files_init(&p->files, set->log_dir, spec->proc, spec->label, spec->out_bytes_max);
    make_leaf(p);
    const struct supervised_handlers handlers = {.arg = p, .on_message = on_message, .on_gone = on_gone};
    e = supervised_new(set->loop, &handlers, &p->supervised, d);
    if (e != ERR_OK) {
        if (p->leaf != NULL)
            (void)rmdir(p->leaf);
        proc_free(p);
        return e;
    }
    p->next = set->procs;
    set->procs = p;
    set->alive++;
    set->open++;
    e = send_start(p, spec, d);
    if (e != ERR_OK) {
        (void)handle(p, EVENT_UNSENT, NULL);
        return e;
    }
    p->start_cb = cb;
    p->start_arg = arg;
    return ERR_OK;
}

void process_stop(struct process_set *set, uint32_t proc)
{
    struct proc *p = find(set, proc);
    if (p == NULL || p->supervised == NULL || p->state == STATE_ENDED)
        return;
    supervised_stop(p->supervised, p->grace_ns);
}

/* ---- figures and logs ---------------------------------------------------------------------------- */

enum err process_usage(struct process_set *set, uint32_t proc, struct process_usage *out)
{
    struct proc *p = find(set, proc);
    struct usage_reading r = {0};
    if (p == NULL)
        return ERR_NOT_FOUND;
    p->last.alive = p->state != STATE_ENDED;
    if (p->usage != NULL && usage_read(p->usage, &r, NULL) == ERR_OK) {
        p->last.cpu_ns = r.cpu_ns;
        p->last.rss_bytes = r.rss_bytes;
        p->last.processes = r.processes;
    }
    memcpy(p->last.counters, r.counters, sizeof r.counters);
    *out = p->last;
    return ERR_OK;
}

uint64_t process_set_own_cpu_ns(struct process_set *set)
{
    uint64_t cpu_ns = set->forgotten_cpu_ns;
    for (struct proc *p = set->procs; p != NULL; p = p->next) {
        uint64_t now_ns = p->supervised != NULL ? supervised_cpu_ns(p->supervised) : 0;
        if (now_ns > p->own_cpu_ns)
            p->own_cpu_ns = now_ns;
        cpu_ns += p->own_cpu_ns;
    }
    return cpu_ns;
}

char *process_read_log(struct process_set *set, uint32_t proc, size_t *len, uint64_t *dropped_bytes)
{
    const struct proc *p = find(set, proc);
    return p != NULL ? process_files_read_log(&p->files, len, dropped_bytes) : NULL;
}

char *process_read_log_tail(struct process_set *set, uint32_t proc, size_t lines_max)
{
    const struct proc *p = find(set, proc);
    return p != NULL ? process_files_read_tail(&p->files, lines_max) : NULL;
}

char *process_take_output(struct process_set *set, uint32_t proc, size_t *len, bool *truncated)
{
    struct proc *p = find(set, proc);
    return p != NULL ? process_files_take_output(&p->files, len, truncated) : NULL;
}
