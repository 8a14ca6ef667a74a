#include "agent/process/process.h"

#include "agent/process/cgroup.h"
#include "agent/process/cull.h"
#include "agent/process/process_files.h"
#include "agent/process/supervised.h"
#include "agent/process/usage.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/parse.h"

#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

/* Between two looks for strays of a lost supervisor. */
#define SWEEP_MS 10u

enum proc_state { PROC_STARTING, PROC_RUNNING, PROC_ENDED, PROC_REFUSED };

struct proc {
    struct proc *next;
    struct process_set *set;
    uint32_t number;
    enum proc_state state;
    bool retired; /* its supervisor is gone and the handles are closed */
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

enum set_state { SET_OPEN, SET_LOST, SET_DEAD, SET_CLOSING, SET_CLOSED };

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

static void settle(struct process_set *set);

static uint64_t boot_now_ns(void)
{
    struct timespec ts;
    must(clock_gettime(CLOCK_BOOTTIME, &ts) == 0);
    return (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
}

static struct proc *find(struct process_set *set, uint32_t number)
{
    for (struct proc *p = set->procs; p != NULL; p = p->next) {
        if (p->number == number && p->state != PROC_REFUSED)
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
        kept += p->state == PROC_ENDED;
        if (!p->retired || (p->state == PROC_ENDED && kept <= PROCESS_KEPT_MAX)) {
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

static void answer_start(struct proc *p, enum err e, const struct supervisor_msg *m,
                         const struct err_detail *d)
{
    process_start_cb *cb = p->start_cb;
    p->start_cb = NULL;
    if (cb != NULL)
        cb(p->start_arg, e, m != NULL ? m->pid : -1, m != NULL ? m->spawned_at_ns : 0, d);
}

static void on_started(struct proc *p, const struct supervisor_msg *m)
{
    struct err_detail d;
    if (!m->in_leaf) {
        free(p->leaf);
        p->leaf = NULL;
    }
    p->state = PROC_RUNNING;
    struct usage_options options = {
        .proc_root = "/proc", .leaf = p->leaf, .reaper = supervised_pid(p->supervised)};
    if (usage_new(&options, &p->usage, &d) != ERR_OK) {
        /* The tree may have ended already, its leaf with it: the account comes with the exit. */
        log_debug("tree_counters", "label=\"%s\" why=\"%s\"", p->label, d.text);
    }
    if (p->set->state != SET_CLOSING)
        answer_start(p, ERR_OK, m, NULL);
}

static void on_refused(struct proc *p, const struct supervisor_msg *m)
{
    struct err_detail d;
    p->state = PROC_REFUSED;
    if (p->set->state != SET_CLOSING)
        answer_start(p, m->error, NULL, (err_set(&d, m->error, "%s", m->text), &d));
}

static void on_exited(struct proc *p, const struct supervisor_msg *m)
{
    struct process_set *set = p->set;
    struct process_exit exit = {
        .status = m->status,
        .signal = m->signal,
        .asked = m->asked,
        .lapsed = m->lapsed,
        .left_behind = m->left_behind,
    };
    p->files.log_lost_bytes = m->log_lost_bytes;
    p->files.out_lost_bytes = m->out_lost_bytes;
    p->state = PROC_ENDED;
    usage_free(p->usage);
    p->usage = NULL;
    if (m->cpu_ns > p->last.cpu_ns)
        p->last.cpu_ns = m->cpu_ns;
    p->last = (struct process_usage){.cpu_ns = p->last.cpu_ns};
    p->own_cpu_ns = m->own_cpu_ns;
    if (set->state != SET_CLOSING)
        set->handlers.on_exit(set->handlers.arg, p->number, &exit);
}

static void on_message(void *arg, const struct supervisor_msg *m)
{
    struct proc *p = arg;
    struct process_set *set = p->set;
    switch (m->type) {
    case SUPERVISOR_STARTED:
        on_started(p, m);
        break;
    case SUPERVISOR_REFUSED:
        on_refused(p, m);
        break;
    case SUPERVISOR_LINE:
        if (set->state != SET_CLOSING)
            set->handlers.on_line(set->handlers.arg, p->number, m->text);
        break;
    case SUPERVISOR_NOTE:
        log_warn("supervisor", "job=\"%s\" label=\"%s\" says=\"%s\"", set->job, p->label, m->text);
        break;
    case SUPERVISOR_EXITED:
        on_exited(p, m);
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
    struct proc *p = arg;
    p->retired = true;
    p->set->open--;
    settle(p->set);
}

static void cut_all(struct process_set *set)
{
    for (struct proc *p = set->procs; p != NULL; p = p->next) {
        if (p->supervised == NULL)
            continue;
        if (p->state == PROC_ENDED || p->state == PROC_REFUSED) /* on its way out */
            supervised_expect(p->supervised, 0);
        else
            supervised_cut(p->supervised);
    }
}

/* Its orphans are ours now, this process being a subreaper too. */
static void lose(struct process_set *set, struct proc *p, const char *how)
{
    log_error("supervisor_lost", "job=\"%s\" label=\"%s\" why=\"%s\"", set->job, p->label, how);
    set->sweeping = true;
    if (set->state == SET_OPEN) {
        set->state = SET_LOST;
        snprintf(set->why, sizeof set->why, "'%s': %s", p->label, how);
    }
    if (p->leaf != NULL)
        cgroup_leaf_kill(p->leaf);
    cut_all(set);
}

static void on_gone(void *arg, const char *how)
{
    struct proc *p = arg;
    struct process_set *set = p->set;
    struct err_detail d;
    bool reported = p->state == PROC_ENDED || p->state == PROC_REFUSED;
    /* One that never got its order leaves without a report, with nothing started. */
    if (how != NULL || (!reported && p->state != PROC_STARTING))
        lose(set, p, how != NULL ? how : "the supervisor left without a report");
    set->alive--;
    supervised_close(&p->supervised, on_retired, p);
    if (!reported) {
        p->state = p->start_cb != NULL ? PROC_REFUSED : PROC_ENDED;
        usage_free(p->usage);
        p->usage = NULL;
        p->last = (struct process_usage){.cpu_ns = p->last.cpu_ns};
    }
    enum err e = set->state == SET_CLOSING ? ERR_CANCELLED : ERR_CLOSED;
    (void)err_set(&d, e, "cannot run '%s': %s", p->label, how != NULL ? how : "the job ends");
    answer_start(p, e, NULL, &d);
    settle(set);
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
    settle(set);
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

/* After anything that ends: is it the end of a loss, or of the set? */
static void settle(struct process_set *set)
{
    if (set->sweeping) {
        must(uv_timer_start(&set->sweep, on_sweep, SWEEP_MS, 0) == 0);
        return;
    }
    if (set->alive > 0)
        return;
    if (set->state == SET_LOST) {
        set->state = SET_DEAD;
        set->handlers.on_lost(set->handlers.arg, set->why);
    }
    if (set->state == SET_CLOSING && set->open == 0) {
        set->state = SET_CLOSED;
        uv_close((uv_handle_t *)&set->sweep, on_sweep_closed);
    }
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
    set->state = SET_CLOSING;
    set->close_cb = cb;
    set->close_arg = arg;
    cut_all(set);
    settle(set);
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
        p->state = PROC_REFUSED;
        supervised_cut(p->supervised);
        if (p->leaf != NULL)
            (void)rmdir(p->leaf);
        return e;
    }
    p->start_cb = cb;
    p->start_arg = arg;
    return ERR_OK;
}

void process_stop(struct process_set *set, uint32_t proc)
{
    struct proc *p = find(set, proc);
    if (p == NULL || p->supervised == NULL || p->state == PROC_ENDED)
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
    p->last.alive = p->state != PROC_ENDED;
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
