#include "agent/process/tree.h"

#include "agent/process/cgroup.h"
#include "agent/process/supervised.h"
#include "agent/process/usage.h"
#include "common/log.h"
#include "common/machine.h"
#include "common/mem.h"

#include <string.h>
#include <unistd.h>

#define STATE_LIST(X)                                                                                        \
    X(STARTING) /* the supervisor has the order, or is about to be sent away without one */                  \
    X(RUNNING)                                                                                               \
    X(ENDED)   /* nothing of the tree lives; its figures and logs are kept */                                \
    X(REFUSED) /* there never was a tree */
#define EVENT_LIST(X)                                                                                        \
    X(NONSENSE) /* what the supervisor says: nothing that a supervisor may */                                \
    X(STARTED)                                                                                               \
    X(REFUSED)                                                                                               \
    X(EXITED)                                                                                                \
    X(TALK)   /* a line of the tree, or a note */                                                            \
    X(UNSENT) /* it could not be given its order */                                                          \
    X(GONE)   /* it has left or was killed */
enum state { STATE_LIST(MACHINE_STATE) STATE_COUNT };
enum event { EVENT_LIST(MACHINE_EVENT) EVENT_COUNT };

/* ---- states --------------------------------------------------------------------------------------- */

static enum state do_start(struct tree *t, const struct supervisor_msg *m)
{
    struct err_detail d;
    if (!m->in_leaf) {
        free(t->leaf);
        t->leaf = NULL;
    }
    struct usage_options options = {
        .proc_root = "/proc", .leaf = t->leaf, .reaper = supervised_pid(t->supervised)};
    if (usage_new(&options, &t->usage, &d) != ERR_OK) {
        /* The tree may have ended already, its leaf with it: the account comes with the exit. */
        log_debug("tree_counters", "label=\"%s\" why=\"%s\"", t->label, d.text);
    }
    return STATE_RUNNING;
}

static enum state do_refuse(struct tree *t, const struct supervisor_msg *m)
{
    (void)t;
    (void)m;
    return STATE_REFUSED;
}

static enum state do_send_away(struct tree *t, const struct supervisor_msg *m)
{
    (void)m;
    supervised_cut(t->supervised);
    if (t->leaf != NULL)
        (void)rmdir(t->leaf);
    return STATE_REFUSED;
}

static enum state do_end(struct tree *t, const struct supervisor_msg *m)
{
    (void)m;
    usage_free(t->usage);
    t->usage = NULL;
    t->last = (struct process_usage){.cpu_ns = t->last.cpu_ns};
    return STATE_ENDED;
}

static enum state do_take_account(struct tree *t, const struct supervisor_msg *m)
{
    t->files.log_lost_bytes = m->log_lost_bytes;
    t->files.out_lost_bytes = m->out_lost_bytes;
    t->own_cpu_ns = m->own_cpu_ns;
    if (m->cpu_ns > t->last.cpu_ns)
        t->last.cpu_ns = m->cpu_ns;
    return do_end(t, m);
}

static enum state keep(struct tree *t, const struct supervisor_msg *m)
{
    (void)m;
    return (enum state)t->state;
}

/* What each event does in each state; a supervisor that says what has no cell is not listened to. */
static enum state (*const table[STATE_COUNT][EVENT_COUNT])(struct tree *, const struct supervisor_msg *) = {
    [STATE_STARTING] = {ON(STARTED, do_start), ON(REFUSED, do_refuse), ON(TALK, keep),
                        ON(UNSENT, do_send_away), ON(GONE, do_refuse)},
    [STATE_RUNNING] = {ON(EXITED, do_take_account), ON(TALK, keep), ON(GONE, do_end)},
    [STATE_ENDED] = {ON(TALK, keep), ON(GONE, keep)},
    [STATE_REFUSED] = {ON(TALK, keep), ON(GONE, keep)},
};

bool tree_permits(unsigned state, unsigned event)
{
    return state < STATE_COUNT && event < EVENT_COUNT && table[state][event] != NULL;
}

/* False when the event means nothing in this state. */
static bool handle(struct tree *t, enum event event, const struct supervisor_msg *m)
{
    static const char *const states[] = {STATE_LIST(MACHINE_NAME)};
    enum state from = (enum state)t->state;
    if (!tree_permits(from, event)) {
        log_error("supervisor_garbage", "label=\"%s\" state=%s event=%d", t->label, states[from], (int)event);
        return false;
    }
    t->state = table[from][event](t, m);
    if (t->state != from)
        log_debug("tree_state", "label=\"%s\" from=%s to=%s", t->label, states[from], states[t->state]);
    return true;
}

/* ---- what its supervisor says --------------------------------------------------------------------- */

static void on_message(void *arg, const struct supervisor_msg *m)
{
    static const enum event events[SUPERVISOR_EXITED + 1] = {
        [SUPERVISOR_STARTED] = EVENT_STARTED, [SUPERVISOR_REFUSED] = EVENT_REFUSED,
        [SUPERVISOR_EXITED] = EVENT_EXITED,   [SUPERVISOR_LINE] = EVENT_TALK,
        [SUPERVISOR_NOTE] = EVENT_TALK,
    };
    struct tree *t = arg;
    if (handle(t, events[m->type], m))
        t->handlers.on_said(t->handlers.arg, t, m);
}

static void on_gone(void *arg, const char *how)
{
    struct tree *t = arg;
    /* One that never got its order leaves without a report, with nothing started. */
    if (how == NULL && t->state == STATE_RUNNING)
        how = "the supervisor left without a report";
    if (how != NULL && t->leaf != NULL)
        cgroup_leaf_kill(t->leaf);
    (void)handle(t, EVENT_GONE, NULL);
    t->handlers.on_gone(t->handlers.arg, t, how);
}

/* ---- life ----------------------------------------------------------------------------------------- */

enum err tree_new(uv_loop_t *loop, const struct process_spec *spec, const char *log_dir, char **leaf,
                  const struct tree_handlers *handlers, struct tree **out, struct err_detail *d)
{
    struct tree *t = mem_zalloc(1, sizeof *t);
    t->handlers = *handlers;
    t->number = spec->proc;
    t->grace_ns = spec->grace_ns;
    t->label = mem_strdup(spec->label);
    t->leaf = *leaf;
    *leaf = NULL;
    process_files_init(&t->files, log_dir, spec->proc, spec->label, spec->out_bytes_max);
    const struct supervised_handlers own = {.arg = t, .on_message = on_message, .on_gone = on_gone};
    enum err e = supervised_new(loop, &own, &t->supervised, d);
    if (e == ERR_OK) {
        *out = t;
        return ERR_OK;
    }
    if (t->leaf != NULL)
        (void)rmdir(t->leaf);
    tree_free(t);
    return e;
}

void tree_free(struct tree *t)
{
    usage_free(t->usage);
    free(t->label);
    process_files_fini(&t->files);
    free(t->leaf);
    free(t);
}

enum err tree_start(struct tree *t, const struct process_spec *spec, uint64_t lease_until_ns,
                    struct err_detail *d)
{
    struct supervisor_msg m = {
        .type = SUPERVISOR_START,
        .lease_until_ns = lease_until_ns,
        .grace_ns = spec->grace_ns,
        .out_bytes_max = spec->out_bytes_max,
        .lines = spec->lines,
        .dir = spec->dir,
        .cpus = spec->cpus,
        .leaf = t->leaf,
        .log_path = t->files.log_path,
        .out_path = t->files.out_path,
    };
    union {
        char *const *borrowed;
        char **vector;
    } argv = {.borrowed = spec->argv}, env = {.borrowed = spec->env};
    m.argv = argv.vector; /* encoding only reads them */
    m.env = env.vector;
    enum err e = supervised_send(t->supervised, &m);
    if (e != ERR_OK)
        (void)handle(t, EVENT_UNSENT, NULL);
    if (e == ERR_TOO_BIG)
        return err_set(d, e, "cannot run '%s': its arguments or environment are over %u bytes or %u words",
                       spec->label, LIMIT_COMMAND_BYTES, LIMIT_ARGV_COUNT);
    return e == ERR_OK ? ERR_OK
                       : err_set(d, e, "cannot run '%s': its supervisor: %s", spec->label, err_text(e));
}

void tree_stop(struct tree *t)
{
    if (t->supervised != NULL && t->state != STATE_ENDED)
        supervised_stop(t->supervised, t->grace_ns);
}

void tree_cut(struct tree *t)
{
    if (t->supervised == NULL)
        return;
    if (t->state == STATE_ENDED || t->state == STATE_REFUSED) /* on its way out */
        supervised_expect(t->supervised, 0);
    else
        supervised_cut(t->supervised);
}

bool tree_clear_leaf(struct tree *t)
{
    struct err_detail d;
    if (t->leaf == NULL || t->supervised != NULL)
        return true;
    if (cgroup_leaf_populated(t->leaf)) {
        cgroup_leaf_kill(t->leaf);
        return false;
    }
    if (cgroup_leaf_remove(t->leaf, &d) != ERR_OK)
        return false;
    free(t->leaf);
    t->leaf = NULL;
    return true;
}

bool tree_has_ended(const struct tree *t)
{
    return t->state == STATE_ENDED;
}

bool tree_was_refused(const struct tree *t)
{
    return t->state == STATE_REFUSED;
}

/* ---- figures -------------------------------------------------------------------------------------- */

struct process_usage tree_usage(struct tree *t)
{
    struct usage_reading r = {0};
    t->last.alive = t->state != STATE_ENDED;
    if (t->usage != NULL && usage_read(t->usage, &r, NULL) == ERR_OK) {
        t->last.cpu_ns = r.cpu_ns;
        t->last.rss_bytes = r.rss_bytes;
        t->last.processes = r.processes;
    }
    memcpy(t->last.counters, r.counters, sizeof r.counters);
    return t->last;
}

uint64_t tree_own_cpu_ns(struct tree *t)
{
    uint64_t now_ns = t->supervised != NULL ? supervised_cpu_ns(t->supervised) : 0;
    if (now_ns > t->own_cpu_ns)
        t->own_cpu_ns = now_ns;
    return t->own_cpu_ns;
}
