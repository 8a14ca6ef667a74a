#include "controller/job/job_table.h"

#include "common/mem.h"
#include "controller/job/job.h"

/* ---- life ----------------------------------------------------------------------------------------- */

static void on_wake(uv_async_t *async);

enum err job_table_new(const struct job_table_options *options, struct job_table **out, struct err_detail *d)
{
    struct job_table *t = mem_zalloc(1, sizeof *t);
    t->o = *options;
    int r = uv_async_init(t->o.loop, &t->wake, on_wake);
    if (r != 0) {
        free(t);
        return err_set(d, ERR_IO, "the loop cannot be woken from threads: %s", uv_strerror(r));
    }
    t->wake.data = t;
    *out = t;
    return ERR_OK;
}

static struct job *find(const struct job_table *t, const char *id)
{
    for (struct job *j = t->jobs; j != NULL; j = j->next) {
        if (j->state != JOB_GONE && strcmp(j->spec->id, id) == 0)
            return j;
    }
    return NULL;
}

static void tell_when_stopped(struct job_table *t)
{
    if (!t->stopping || t->stopped_cb == NULL)
        return;
    for (const struct job *j = t->jobs; j != NULL; j = j->next) {
        if (j->state != JOB_QUEUED && j->state != JOB_UNSTORED)
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
    job_wake_table(t);
}

static void on_closed(uv_handle_t *handle)
{
    struct job_table *t = handle->data;
    void (*cb)(void *arg) = t->stopped_cb;
    void *arg = t->stopped_arg;
    while (t->jobs != NULL) {
        struct job *j = t->jobs;
        t->jobs = j->next;
        job_free(j);
    }
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

/* ---- from queued to running ----------------------------------------------------------------------- */

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
    struct job *j = mem_zalloc(1, sizeof *j);
    j->table = t;
    j->spec = s;
    snprintf(j->view.doing, sizeof j->view.doing, "queued");
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

static void try_start(struct job_table *t, struct job *j)
{
    const struct experiment *e = j->spec->experiment;
    struct err_detail why;
    size_t count = 0;
    for (size_t i = 0; i < e->role_count; i++)
        count += e->roles[i].count;
    struct fleet_host *hosts = mem_zalloc(count + 1, sizeof *hosts);
    if (fleet_reserve(t->o.fleet, j->spec->id, j->spec->run, e->roles, e->role_count, hosts, &why) ==
        ERR_OK) {
        job_take_hosts(j, hosts, count);
        job_handle(j, JOB_EVENT_START);
    } else {
        mem_set_string(&j->waits, why.text);
        snprintf(j->view.doing, sizeof j->view.doing, "%.511s", why.text);
    }
    free(hosts);
}

static void schedule(struct job_table *t)
{
    t->schedule_wanted = false;
    if (t->stopping)
        return;
    for (struct job *j = t->jobs; j != NULL; j = j->next) {
        if (j->state == JOB_QUEUED)
            try_start(t, j);
        else if (j->state == JOB_UNSTORED)
            job_handle(j, JOB_EVENT_RETRY);
    }
}

/* ---- events --------------------------------------------------------------------------------------- */

static void drop_gone(struct job_table *t)
{
    struct job **at = &t->jobs;
    while (*at != NULL) {
        struct job *j = *at;
        if (j->state != JOB_GONE) {
            at = &j->next;
            continue;
        }
        *at = j->next;
        t->count--;
        job_free(j);
    }
}

static void on_wake(uv_async_t *async)
{
    struct job_table *t = async->data;
    for (struct job *j = t->jobs; j != NULL; j = j->next)
        job_carry_out(j);
    drop_gone(t);
    fleet_flush(t->o.fleet);
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
    job_wake_table(t);
}

/* ---- cancel, look --------------------------------------------------------------------------------- */

enum err job_table_cancel(struct job_table *t, const char *id, const char *cause, struct err_detail *d)
{
    struct job *j = find(t, id);
    if (j == NULL)
        return err_set(d, ERR_NOT_NOW,
                       "job '%s' is neither queued nor running; 'splitbench status' lists them", id);
    if (!job_permits(j->state, JOB_EVENT_CANCEL))
        return err_set(d, ERR_NOT_NOW, "job '%s' is ending already", id);
    mem_set_string(&j->cancel_cause, cause);
    job_handle(j, JOB_EVENT_CANCEL);
    return ERR_OK;
}

bool job_table_look(const struct job_table *t, const char *id, struct job_look *out)
{
    const struct job *j = find(t, id);
    *out = (struct job_look){0};
    if (j == NULL)
        return false;
    out->view = &j->view;
    if (j->state == JOB_QUEUED)
        out->waits = j->waits;
    if (j->state == JOB_STORING || j->state == JOB_UNSTORED)
        out->unstored = &j->outcome; /* only its flag changes at the worker's */
    return true;
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
