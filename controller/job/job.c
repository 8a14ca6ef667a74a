#include "controller/job/job.h"

#include "common/log.h"
#include "common/mem.h"

#include <pthread.h>
#include <signal.h>

struct job_host { /* the loop's view of a run_host */
    struct fleet_agent *agent;
    uint64_t incarnation;
    uint64_t last_event; /* number of the newest that was delivered */
};

struct job {
    struct job *next; /* in the order in which they came */
    struct job_table *table;
    struct job_spec *spec;
    enum job_state state;
    struct channel_view view;
    char *cancel_cause;
    char *waits; /* why it could not be started yet */

    /* From START on. */
    struct channel *channel;
    struct job_host *hosts;
    struct run_host *run_hosts;
    size_t host_count;
    pthread_t thread;
    struct run_outcome outcome;
    bool storing; /* the outcome is on its way into the store */
};

struct job_table {
    uv_loop_t *loop;
    struct fleet *fleet;
    struct store_worker *worker;
    char *store_path;
    char *blob_dir;
    char *own_boot_id;
    struct job *jobs;
    size_t count;
    bool schedule_wanted;
    uv_async_t wake;
    bool stopping;
    void (*stopped_cb)(void *arg);
    void *stopped_arg;
};

/* ---- states -------------------------------------------------------------------------------------- */

static const char *const state_names[JOB_STATE_COUNT] = {
#define X(n, text) [JOB_##n] = text,
    JOB_STATE_LIST(X)
#undef X
};

/* Plus one, so that an empty cell is "not allowed". */
#define TO(s) (JOB_##s + 1)
static const uint8_t next_state[JOB_STATE_COUNT][JOB_INPUT_COUNT] = {
    [JOB_QUEUED] = {[JOB_INPUT_START] = TO(RUNNING), [JOB_INPUT_CANCEL] = TO(ENDED)},
    [JOB_RUNNING] = {[JOB_INPUT_CANCEL] = TO(CANCELLING), [JOB_INPUT_END] = TO(ENDED)},
    [JOB_CANCELLING] = {[JOB_INPUT_CANCEL] = TO(CANCELLING), [JOB_INPUT_END] = TO(ENDED)},
};

bool job_next_state(enum job_state state, enum job_input input, enum job_state *out)
{
    uint8_t to = next_state[state][input];
    if (to == 0)
        return false;
    *out = (enum job_state)(to - 1);
    return true;
}

const char *job_state_name(enum job_state s)
{
    return (unsigned)s < JOB_STATE_COUNT ? state_names[s] : "?";
}

static bool job_handle(struct job *j, enum job_input input)
{
    enum job_state to = JOB_QUEUED;
    if (!job_next_state(j->state, input, &to))
        return false;
    log_debug("job_state", "job=%s from=%s to=%s", j->spec->id, job_state_name(j->state), job_state_name(to));
    j->state = to;
    return true;
}

/* ---- life ---------------------------------------------------------------------------------------- */

static void on_wake(uv_async_t *async);

enum err job_table_new(const struct job_table_options *options, struct job_table **out, struct err_detail *d)
{
    struct job_table *t = mem_zalloc(1, sizeof(*t));
    t->loop = options->loop;
    t->fleet = options->fleet;
    t->worker = options->worker;
    t->store_path = mem_strdup(options->store_path);
    t->blob_dir = mem_strdup(options->blob_dir);
    t->own_boot_id = mem_strdup(options->own_boot_id);
    int r = uv_async_init(t->loop, &t->wake, on_wake);
    if (r != 0) {
        free(t->store_path);
        free(t->blob_dir);
        free(t->own_boot_id);
        free(t);
        return err_set(d, ERR_IO, "the loop cannot be woken from threads: %s", uv_strerror(r));
    }
    t->wake.data = t;
    *out = t;
    return ERR_OK;
}

static void wake(void *arg)
{
    struct job_table *t = arg;
    (void)uv_async_send(&t->wake);
}

static void job_free(struct job *j)
{
    for (size_t i = 0; i < j->host_count; i++)
        run_host_fini(&j->run_hosts[i]);
    free(j->run_hosts);
    free(j->hosts);
    channel_free(j->channel);
    job_spec_free(j->spec);
    free(j->cancel_cause);
    free(j->waits);
    free(j);
}

static struct job *find(const struct job_table *t, const char *id)
{
    for (struct job *j = t->jobs; j != NULL; j = j->next) {
        if (strcmp(j->spec->id, id) == 0)
            return j;
    }
    return NULL;
}

static void remove_job(struct job_table *t, struct job *j)
{
    struct job **at = &t->jobs;
    while (*at != j)
        at = &(*at)->next;
    *at = j->next;
    t->count--;
    job_free(j);
}

static void tell_when_stopped(struct job_table *t)
{
    if (!t->stopping || t->stopped_cb == NULL)
        return;
    for (const struct job *j = t->jobs; j != NULL; j = j->next) {
        bool waits =
            j->state == JOB_QUEUED || (j->state == JOB_ENDED && !j->storing && j->cancel_cause == NULL);
        if (!waits)
            return;
    }
    void (*cb)(void *arg) = t->stopped_cb;
    t->stopped_cb = NULL;
    cb(t->stopped_arg);
}

void job_table_stop(struct job_table *t, const char *cause, void (*cb)(void *arg), void *arg)
{
    t->stopping = true;
    t->stopped_cb = cb;
    t->stopped_arg = arg;
    for (struct job *j = t->jobs; j != NULL; j = j->next) {
        if (j->channel != NULL)
            channel_fail(j->channel, ERR_CLOSED, cause);
    }
    wake(t);
}

static void on_closed(uv_handle_t *handle)
{
    struct job_table *t = handle->data;
    void (*cb)(void *arg) = t->stopped_cb;
    void *arg = t->stopped_arg;
    while (t->jobs != NULL)
        remove_job(t, t->jobs);
    free(t->store_path);
    free(t->blob_dir);
    free(t->own_boot_id);
    free(t);
    cb(arg);
}

void job_table_close(struct job_table **table, void (*cb)(void *arg), void *arg)
{
    struct job_table *t = *table;
    *table = NULL;
    t->stopped_cb = cb;
    t->stopped_arg = arg;
    uv_close((uv_handle_t *)&t->wake, on_closed);
}

/* ---- from queued to running ---------------------------------------------------------------------- */

enum err job_table_add(struct job_table *t, struct job_spec **spec, struct err_detail *d)
{
    struct job_spec *s = *spec;
    *spec = NULL;
    enum err e = ERR_OK;
    if (find(t, s->id) != NULL)
        e = err_set(d, ERR_EXISTS, "job '%s' is alive already", s->id);
    else if (t->count >= JOB_LIVE_MAX)
        e = err_set(d, ERR_FULL, "%u jobs are queued or running, which is the limit; try again later",
                    JOB_LIVE_MAX);
    if (e != ERR_OK) {
        job_spec_free(s);
        return e;
    }
    struct job *j = mem_zalloc(1, sizeof(*j));
    j->table = t;
    j->spec = s;
    snprintf(j->view.doing, sizeof(j->view.doing), "queued");
    if (s->mode == MSG_MODE_RUN) {
        j->view.windows_total = (uint32_t)s->design->window_count;
        j->view.then_ns = design_remaining_ns(s->experiment, s->design, 0);
    }
    struct job **at = &t->jobs;
    while (*at != NULL)
        at = &(*at)->next;
    *at = j;
    t->count++;
    job_table_on_change(t);
    return ERR_OK;
}

static void *job_thread(void *arg)
{
    struct job *j = arg;
    const struct job_table *t = j->table;
    struct run_options options = {.job = j->spec->id,
                                  .mode = j->spec->mode,
                                  .experiment = j->spec->experiment,
                                  .design = j->spec->design,
                                  .files = &j->spec->files,
                                  .base_dir = j->spec->base_dir,
                                  .hosts = j->run_hosts,
                                  .host_count = j->host_count,
                                  .channel = j->channel,
                                  .store_path = t->store_path,
                                  .blob_dir = t->blob_dir,
                                  .own_boot_id = t->own_boot_id};
    run_job(&options, &j->outcome);
    channel_end(j->channel);
    return NULL;
}

static void copy_host(const struct fleet_host *from, struct run_host *to)
{
    const struct msg_host *f = from->facts;
    *to = (struct run_host){.agent = mem_strdup(from->name),
                            .role = mem_strdup(from->role),
                            .ordinal = from->ordinal,
                            .address = mem_strdup(msg_text(from->address)),
                            .facts = {.hostname = mem_strdup(msg_text(f->hostname)),
                                      .boot_id = mem_strdup(msg_text(f->boot_id)),
                                      .kernel = mem_strdup(msg_text(f->kernel)),
                                      .os = mem_strdup(msg_text(f->os)),
                                      .cpu_model = mem_strdup(msg_text(f->cpu_model)),
                                      .address = mem_strdup(msg_text(f->address)),
                                      .cpu_list = mem_strdup(msg_text(f->cpu_list)),
                                      .libraries = mem_strdup(msg_text(f->libraries)),
                                      .cpus = f->cpus,
                                      .memory_bytes = f->memory_bytes}};
    to->facts.labels.items = mem_zalloc(f->labels.count + 1, sizeof(char *));
    for (size_t i = 0; i < f->labels.count; i++)
        to->facts.labels.items[to->facts.labels.count++] = mem_strdup(f->labels.items[i]);
}

/* Signals are the loop's; a job's thread takes none. */
static void start_thread(struct job *j)
{
    sigset_t all, before;
    must(sigfillset(&all) == 0);
    must(pthread_sigmask(SIG_SETMASK, &all, &before) == 0);
    must(pthread_create(&j->thread, NULL, job_thread, j) == 0);
    must(pthread_sigmask(SIG_SETMASK, &before, NULL) == 0);
}

static bool try_start(struct job_table *t, struct job *j)
{
    const struct experiment *e = j->spec->experiment;
    struct fleet_want *wants = mem_zalloc(e->role_count, sizeof(*wants));
    struct err_detail why;
    size_t count = 0;
    for (size_t i = 0; i < e->role_count; i++) {
        wants[i] = (struct fleet_want){.role = e->roles[i].name,
                                       .labels = e->roles[i].labels,
                                       .label_count = e->roles[i].label_count,
                                       .count = e->roles[i].count};
        count += e->roles[i].count;
    }
    struct fleet_host *hosts = mem_zalloc(count + 1, sizeof(*hosts));
    bool ok = fleet_reserve(t->fleet, j->spec->id, wants, e->role_count, hosts, &why) == ERR_OK;
    if (ok) {
        must(job_handle(j, JOB_INPUT_START));
        j->host_count = count;
        j->hosts = mem_zalloc(count + 1, sizeof(*j->hosts));
        j->run_hosts = mem_zalloc(count + 1, sizeof(*j->run_hosts));
        for (size_t i = 0; i < count; i++) {
            j->hosts[i] = (struct job_host){.agent = hosts[i].agent, .incarnation = hosts[i].incarnation};
            copy_host(&hosts[i], &j->run_hosts[i]);
        }
        j->channel = channel_new(&(struct channel_options){.host_count = count, .wake = wake, .arg = t});
        start_thread(j);
    } else {
        mem_set_string(&j->waits, why.text);
        snprintf(j->view.doing, sizeof(j->view.doing), "%.511s", why.text);
    }
    free(wants);
    free(hosts);
    return ok;
}

static void retire(struct job_table *t, struct job *j);

static void schedule(struct job_table *t)
{
    t->schedule_wanted = false;
    if (t->stopping)
        return;
    for (struct job *j = t->jobs, *next = NULL; j != NULL; j = next) {
        next = j->next;
        if (j->state == JOB_QUEUED)
            (void)try_start(t, j);
        else if (j->state == JOB_ENDED && j->cancel_cause == NULL)
            retire(t, j);
    }
}

/* ---- while it runs ------------------------------------------------------------------------------- */

/* What cannot be sent is answered at once, so that the job thread never waits for nothing. */
static void send_command(struct job_table *t, struct job *j, const struct channel_op *op)
{
    enum err e = fleet_command(t->fleet, j->hosts[op->host].agent, j->spec->id, &op->command, op->tag);
    if (e == ERR_OK)
        return;
    struct msg_event answer = {.answers = op->tag,
                               .job = j->spec->id,
                               .kind = MSG_EVENT_DONE,
                               .code = e,
                               .text = (char *)(uintptr_t) "the job does not hold this host any more"};
    channel_deliver(j->channel, op->host, &answer);
}

static void settle_all(struct job_table *t, struct job *j)
{
    for (size_t i = 0; i < j->host_count; i++)
        fleet_settle(t->fleet, j->hosts[i].agent, j->hosts[i].incarnation, j->hosts[i].last_event);
}

static void store_outcome(struct store *s, void *arg)
{
    struct job *j = arg;
    struct err_detail d;
    const struct run_outcome *o = &j->outcome;
    j->outcome.stored = store_set_job_state(s, j->spec->id, o->state, o->cause, o->exit_code, &d) == ERR_OK;
}

static void on_outcome_stored(void *arg)
{
    struct job *j = arg;
    struct job_table *t = j->table;
    j->storing = false;
    if (j->outcome.stored)
        remove_job(t, j);
    tell_when_stopped(t);
}

/* A job leaves the table when its end stands in the store. */
static void retire(struct job_table *t, struct job *j)
{
    if (j->storing) /* the outcome is the worker's */
        return;
    if (j->outcome.stored) {
        remove_job(t, j);
    } else {
        j->storing = true;
        store_worker_do(t->worker, store_outcome, on_outcome_stored, j);
    }
}

static void end_job(struct job_table *t, struct job *j)
{
    must(pthread_join(j->thread, NULL) == 0);
    must(job_handle(j, JOB_INPUT_END));
    settle_all(t, j);
    fleet_release(t->fleet, j->spec->id);
    channel_free(j->channel);
    j->channel = NULL;
    t->schedule_wanted = true;
    retire(t, j);
}

/* False when the thread has returned. */
static bool drain(struct job_table *t, struct job *j)
{
    struct channel_op op;
    while (channel_take(j->channel, &op)) {
        struct job_host *h = &j->hosts[op.host];
        bool ended = false;
        switch (op.kind) {
        case CHANNEL_OP_COMMAND:
            send_command(t, j, &op);
            break;
        case CHANNEL_OP_SETTLE:
            fleet_settle(t->fleet, h->agent, h->incarnation, op.number);
            break;
        case CHANNEL_OP_VIEW:
            j->view = op.view;
            break;
        case CHANNEL_OP_ENDED:
            ended = true;
            break;
        case CHANNEL_OP_COUNT:
            break;
        }
        channel_op_fini(&op);
        if (ended)
            return false;
    }
    return true;
}

static void on_wake(uv_async_t *async)
{
    struct job_table *t = async->data;
    for (struct job *j = t->jobs, *next = NULL; j != NULL; j = next) {
        next = j->next;
        if (j->channel != NULL && !drain(t, j))
            end_job(t, j);
    }
    fleet_flush(t->fleet);
    if (t->schedule_wanted)
        schedule(t);
    tell_when_stopped(t);
}

void job_table_on_event(struct job_table *t, const char *id, uint32_t host, const struct msg_event *e)
{
    struct job *j = find(t, id);
    if (j == NULL || j->channel == NULL || host >= j->host_count)
        return; /* a host that is being freed of a job that this controller never had */
    if (e->number > j->hosts[host].last_event)
        j->hosts[host].last_event = e->number;
    channel_deliver(j->channel, host, e);
}

void job_table_on_lost(struct job_table *t, const char *id, uint32_t host, const char *cause)
{
    struct job *j = find(t, id);
    (void)host;
    if (j != NULL && j->channel != NULL)
        channel_fail(j->channel, ERR_UNREACHABLE, cause);
}

void job_table_on_change(struct job_table *t)
{
    t->schedule_wanted = true;
    wake(t);
}

/* ---- cancel, look -------------------------------------------------------------------------------- */

static void store_cancelled(struct store *s, void *arg)
{
    struct job *j = arg;
    struct err_detail d;
    if (store_set_job_state(s, j->spec->id, STORE_JOB_CANCELLED, j->cancel_cause, RUN_EXIT_INFRA, &d) !=
        ERR_OK)
        log_error("job_state", "job=%s why=\"%s\"", j->spec->id, d.text);
}

static void on_cancelled(void *arg)
{
    struct job *j = arg;
    struct job_table *t = j->table;
    remove_job(t, j);
    tell_when_stopped(t);
}

enum err job_table_cancel(struct job_table *t, const char *id, const char *cause, struct err_detail *d)
{
    struct job *j = find(t, id);
    if (j == NULL)
        return err_set(d, ERR_NOT_NOW,
                       "job '%s' is neither queued nor running; 'splitbench status' lists them", id);
    if (!job_handle(j, JOB_INPUT_CANCEL))
        return err_set(d, ERR_NOT_NOW, "job '%s' is ending already", id);
    if (j->state == JOB_CANCELLING) {
        channel_fail(j->channel, ERR_CANCELLED, cause);
        return ERR_OK;
    }
    mem_set_string(&j->cancel_cause, cause);
    store_worker_do(t->worker, store_cancelled, on_cancelled, j);
    return ERR_OK;
}

bool job_table_view(const struct job_table *t, const char *id, struct channel_view *out)
{
    const struct job *j = find(t, id);
    if (j == NULL)
        return false;
    *out = j->view;
    return true;
}

const char *job_table_waits_for(const struct job_table *t, const char *id)
{
    const struct job *j = find(t, id);
    return j != NULL && j->state == JOB_QUEUED ? j->waits : NULL;
}

void job_table_copy_waits(const struct job_table *t, struct msg_strings *out)
{
    *out = (struct msg_strings){.items = mem_zalloc(2 * t->count + 1, sizeof(char *))};
    for (const struct job *j = t->jobs; j != NULL; j = j->next) {
        if (j->state != JOB_QUEUED || j->waits == NULL)
            continue;
        out->items[out->count++] = mem_strdup(j->spec->id);
        out->items[out->count++] = mem_strdup(j->waits);
    }
}

bool job_table_has(const struct job_table *t, const char *id)
{
    return find(t, id) != NULL;
}

const struct run_outcome *job_table_unstored(const struct job_table *t, const char *id)
{
    const struct job *j = find(t, id);
    bool known = j != NULL && j->state == JOB_ENDED && j->cancel_cause == NULL;
    return known ? &j->outcome : NULL; /* only its flag changes at the worker's */
}
