#include "agent/process/process.h"

#include "agent/process/cgroup.h"
#include "agent/process/cull.h"
#include "agent/process/supervised.h"
#include "agent/process/tree.h"
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

#define STATE_LIST(X)                                                                                        \
    X(OPEN)                                                                                                  \
    X(LOST) /* a supervisor was killed: the other trees are being ended */                                   \
    X(DEAD) /* they have ended, and the owner was told */                                                    \
    X(CLOSING)                                                                                               \
    X(CLOSED)
#define EVENT_LIST(X)                                                                                        \
    X(LOSE)  /* a supervisor was killed */                                                                   \
    X(EMPTY) /* nothing of the job lives; a closing set has no open handle either */                         \
    X(CLOSE)
enum state { STATE_LIST(MACHINE_STATE) STATE_COUNT };
enum event { EVENT_LIST(MACHINE_EVENT) EVENT_COUNT };

struct process_set {
    uv_loop_t *loop;
    char *job;
    char *log_dir;
    char *cgroup; /* where leaves go, NULL: nowhere */
    struct process_handlers handlers;
    uint64_t lease_until_ns; /* CLOCK_BOOTTIME */
    enum state state;
    bool sweeping; /* a supervisor died: strays may be ours */
    char why[256];
    struct tree *trees; /* newest first */
    size_t alive;       /* with a supervisor */
    size_t open;        /* with handles not closed yet */
    uint64_t forgotten_cpu_ns;
    uv_timer_t sweep;
    void (*close_cb)(void *arg);
    void *close_arg;
};

static void check_empty(struct process_set *set);

static struct tree *find(struct process_set *set, uint32_t number)
{
    for (struct tree *t = set->trees; t != NULL; t = t->next) {
        if (t->number == number && !tree_was_refused(t))
            return t;
    }
    return NULL;
}

/* Ended trees beyond what is kept, with their files, and refused ones. */
static void forget_old(struct process_set *set)
{
    size_t kept = 0;
    for (struct tree **slot = &set->trees; *slot != NULL;) {
        struct tree *t = *slot;
        kept += tree_has_ended(t);
        if (t->supervised != NULL || (tree_has_ended(t) && kept <= PROCESS_KEPT_MAX)) {
            slot = &t->next;
            continue;
        }
        process_files_remove(&t->files);
        set->forgotten_cpu_ns += t->own_cpu_ns;
        *slot = t->next;
        tree_free(t);
    }
}

/* ---- what trees say ------------------------------------------------------------------------------- */

static void answer_start(struct tree *t, enum err e, const struct supervisor_msg *m,
                         const struct err_detail *d)
{
    process_start_cb *cb = t->start_cb;
    t->start_cb = NULL;
    if (cb != NULL)
        cb(t->start_arg, e, m != NULL ? m->pid : -1, m != NULL ? m->spawned_at_ns : 0, d);
}

static void tell_refused(struct tree *t, const struct supervisor_msg *m)
{
    struct err_detail d;
    enum err e = err_set(&d, m->error, "%s", m->text);
    answer_start(t, e, NULL, &d);
}

static void tell_exited(const struct process_set *set, struct tree *t, const struct supervisor_msg *m)
{
    const struct process_exit exit = {
        .status = m->status,
        .signal = m->signal,
        .asked = m->asked,
        .lapsed = m->lapsed,
        .left_behind = m->left_behind,
    };
    set->handlers.on_exit(set->handlers.arg, t->number, &exit);
}

/* While the set closes, its owner is told nothing but the end. */
static void on_said(void *arg, struct tree *t, const struct supervisor_msg *m)
{
    const struct process_set *set = arg;
    if (m->type == SUPERVISOR_NOTE)
        log_warn("supervisor", "job=\"%s\" label=\"%s\" says=\"%s\"", set->job, t->label, m->text);
    else if (set->state == STATE_CLOSING)
        return;
    else if (m->type == SUPERVISOR_STARTED)
        answer_start(t, ERR_OK, m, NULL);
    else if (m->type == SUPERVISOR_REFUSED)
        tell_refused(t, m);
    else if (m->type == SUPERVISOR_EXITED)
        tell_exited(set, t, m);
    else
        set->handlers.on_line(set->handlers.arg, t->number, m->text);
}

static void on_retired(void *arg)
{
    struct process_set *set = arg;
    set->open--;
    check_empty(set);
}

static void cut_all(struct process_set *set)
{
    for (struct tree *t = set->trees; t != NULL; t = t->next)
        tree_cut(t);
}

static void handle(struct process_set *set, enum event event);

/* Its orphans are ours now, this process being a subreaper too. */
static void lose(struct process_set *set, struct tree *t, const char *how)
{
    log_error("supervisor_lost", "job=\"%s\" label=\"%s\" why=\"%s\"", set->job, t->label, how);
    set->sweeping = true;
    if (set->state == STATE_OPEN)
        snprintf(set->why, sizeof set->why, "'%s': %s", t->label, how);
    handle(set, EVENT_LOSE);
    cut_all(set);
}

static void on_gone(void *arg, struct tree *t, const char *how)
{
    struct process_set *set = arg;
    struct err_detail d;
    if (how != NULL)
        lose(set, t, how);
    set->alive--;
    supervised_close(&t->supervised, on_retired, set);
    enum err e = set->state == STATE_CLOSING ? ERR_CANCELLED : ERR_CLOSED;
    (void)err_set(&d, e, "cannot run '%s': %s", t->label, how != NULL ? how : "the job ends");
    answer_start(t, e, NULL, &d);
    check_empty(set);
}

/* ---- one set -------------------------------------------------------------------------------------- */

static void on_sweep(uv_timer_t *timer)
{
    struct process_set *set = timer->data;
    bool clean = cull_strays() == 0;
    for (struct tree *t = set->trees; t != NULL; t = t->next)
        clean = tree_clear_leaf(t) && clean;
    set->sweeping = !clean;
    check_empty(set);
}

static void on_sweep_closed(uv_handle_t *handle)
{
    struct process_set *set = handle->data;
    void (*cb)(void *arg) = set->close_cb;
    void *arg = set->close_arg;
    while (set->trees != NULL) {
        struct tree *t = set->trees;
        set->trees = t->next;
        tree_free(t);
    }
    free(set->job);
    free(set->log_dir);
    free(set->cgroup);
    free(set);
    cb(arg);
}

static enum state do_lose(struct process_set *set)
{
    (void)set;
    return STATE_LOST;
}

static enum state do_die(struct process_set *set)
{
    (void)set;
    return STATE_DEAD;
}

static enum state do_end_all(struct process_set *set)
{
    cut_all(set);
    return STATE_CLOSING;
}

static enum state do_close(struct process_set *set)
{
    uv_close((uv_handle_t *)&set->sweep, on_sweep_closed);
    return STATE_CLOSED;
}

static enum state keep(struct process_set *set)
{
    return set->state;
}

/* An empty cell cannot happen: only our own callbacks could bring it. */
static enum state (*const table[STATE_COUNT][EVENT_COUNT])(struct process_set *) = {
    [STATE_OPEN] = {ON(LOSE, do_lose), ON(EMPTY, keep), ON(CLOSE, do_end_all)},
    [STATE_LOST] = {ON(LOSE, keep), ON(EMPTY, do_die), ON(CLOSE, do_end_all)},
    [STATE_DEAD] = {ON(EMPTY, keep), ON(CLOSE, do_end_all)},
    [STATE_CLOSING] = {ON(LOSE, keep), ON(EMPTY, do_close)},
};

bool process_permits(unsigned state, unsigned event)
{
    return state < STATE_COUNT && event < EVENT_COUNT && table[state][event] != NULL;
}

static void handle(struct process_set *set, enum event event)
{
    static const char *const states[] = {STATE_LIST(MACHINE_NAME)};
    enum state from = set->state;
    must(process_permits(from, event));
    set->state = table[from][event](set);
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
    if (set->alive > 0 || (set->state == STATE_CLOSING && set->open > 0))
        return;
    bool lost = set->state == STATE_LOST;
    handle(set, EVENT_EMPTY);
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
    set->lease_until_ns = clock_boot_ns() + options->lease_ns;
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
    handle(set, EVENT_CLOSE);
    check_empty(set);
}

void process_set_renew(struct process_set *set, uint64_t lease_ns)
{
    set->lease_until_ns = clock_boot_ns() + lease_ns;
    const struct supervisor_msg m = {.type = SUPERVISOR_RENEW, .lease_until_ns = set->lease_until_ns};
    for (struct tree *t = set->trees; t != NULL; t = t->next) {
        enum err e = t->supervised != NULL ? supervised_send(t->supervised, &m) : ERR_OK;
        if (e == ERR_BUSY)
            log_warn("supervisor_slow", "label=\"%s\" lost=renewal", t->label);
    }
}

/* ---- starting ------------------------------------------------------------------------------------- */

static enum err check_spec(struct process_set *set, const struct process_spec *spec, struct err_detail *d)
{
    cpu_set_t cpus;
    if (set->state != STATE_OPEN)
        return err_set(d, ERR_CLOSED, "the supervisor of the job is gone");
    if (clock_boot_ns() >= set->lease_until_ns)
        return err_set(d, ERR_TIMEOUT, "the lease of the job has run out");
    if (set->alive >= PROCESS_MAX)
        return err_set(d, ERR_TOO_BIG, "%u process trees of the job are alive already", PROCESS_MAX);
    if (find(set, spec->proc) != NULL)
        return err_set(d, ERR_EXISTS, "process number %u is in use", spec->proc);
    if (spec->argv == NULL || spec->argv[0] == NULL || spec->argv[0][0] == '\0')
        return err_set(d, ERR_INVALID, "the command is empty");
    if (spec->dir == NULL || spec->dir[0] != '/')
        return err_set(d, ERR_INVALID, "its directory is not an absolute path");
    if (spec->out_bytes_max > LIMIT_RESULT_BYTES)
        return err_set(d, ERR_TOO_BIG, "more than %u bytes of output to keep", LIMIT_RESULT_BYTES);
    return spec->cpus != NULL ? parse_cpus(spec->cpus, &cpus, "cpus", d) : ERR_OK;
}

/* NULL where there is no cgroup to use. */
static char *make_leaf(struct process_set *set, uint32_t number)
{
    char path[CGROUP_PATH_BYTES];
    struct err_detail d;
    if (set->cgroup == NULL)
        return NULL;
    if (cgroup_leaf_make(set->cgroup, set->job, number, path, sizeof path, &d) == ERR_OK)
        return mem_strdup(path);
    log_info("cgroup_unused", "why=\"%s\"", d.text);
    free(set->cgroup);
    set->cgroup = NULL;
    return NULL;
}

enum err process_start(struct process_set *set, const struct process_spec *spec, process_start_cb *cb,
                       void *arg, struct err_detail *d)
{
    enum err e = check_spec(set, spec, d);
    if (e != ERR_OK)
        return err_prefix(d, e, "cannot run '%s'", spec->label);
    forget_old(set);
    const struct tree_handlers handlers = {.arg = set, .on_said = on_said, .on_gone = on_gone};
    char *leaf = make_leaf(set, spec->proc);
    struct tree *t;
    e = tree_new(set->loop, spec, set->log_dir, &leaf, &handlers, &t, d);
    if (e != ERR_OK)
        return e;
    t->next = set->trees;
    set->trees = t;
    set->alive++;
    set->open++;
    e = tree_start(t, spec, set->lease_until_ns, d);
    if (e != ERR_OK)
        return e;
    t->start_cb = cb;
    t->start_arg = arg;
    return ERR_OK;
}

void process_stop(struct process_set *set, uint32_t proc)
{
    struct tree *t = find(set, proc);
    if (t != NULL)
        tree_stop(t);
}

/* ---- figures and logs ----------------------------------------------------------------------------- */

enum err process_usage(struct process_set *set, uint32_t proc, struct process_usage *out)
{
    struct tree *t = find(set, proc);
    if (t == NULL)
        return ERR_NOT_FOUND;
    *out = tree_usage(t);
    return ERR_OK;
}

uint64_t process_set_own_cpu_ns(struct process_set *set)
{
    uint64_t cpu_ns = set->forgotten_cpu_ns;
    for (struct tree *t = set->trees; t != NULL; t = t->next)
        cpu_ns += tree_own_cpu_ns(t);
    return cpu_ns;
}

char *process_read_log(struct process_set *set, uint32_t proc, size_t *len, uint64_t *dropped_bytes)
{
    const struct tree *t = find(set, proc);
    return t != NULL ? process_files_read_log(&t->files, len, dropped_bytes) : NULL;
}

char *process_read_log_tail(struct process_set *set, uint32_t proc, size_t lines_max)
{
    const struct tree *t = find(set, proc);
    return t != NULL ? process_files_read_tail(&t->files, lines_max) : NULL;
}

char *process_take_output(struct process_set *set, uint32_t proc, size_t *len, bool *truncated)
{
    struct tree *t = find(set, proc);
    return t != NULL ? process_files_take_output(&t->files, len, truncated) : NULL;
}
