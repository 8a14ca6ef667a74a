#include "controller/daemon/server.h"

#include "common/clock.h"
#include "common/file.h"
#include "common/log.h"
#include "common/mem.h"
#include "controller/daemon/server_inner.h"

/* ---- the fleet's handlers: to the link and to the jobs -------------------------------------------- */

static void answer_poll(void *arg, void *request, const struct msg_command *const *items, size_t count)
{
    struct link_request *r = request;
    struct msg m;
    (void)arg;
    msg_init(&m, MSG_COMMANDS);
    /* Shallow copies: the link packs them before this returns, and nothing of them is freed here. */
    struct msg_command *flat = mem_zalloc(count + 1, sizeof *flat);
    for (size_t i = 0; i < count; i++)
        flat[i] = *items[i];
    m.u.commands = (struct msg_commands){.items = flat, .count = count};
    link_answer(&r, &m);
    free(flat);
}

static void answer_push(void *arg, void *request, uint64_t acked_event)
{
    struct link_request *r = request;
    struct msg m;
    (void)arg;
    msg_init(&m, MSG_PUSHED);
    m.u.pushed.acked_event = acked_event;
    link_answer(&r, &m);
}

static void refuse(void *arg, void *request, enum err code, const char *why)
{
    struct link_request *r = request;
    (void)arg;
    link_refuse(&r, code, "%s", why);
}

static void drop_peer(void *arg, void *peer, const char *why)
{
    (void)arg;
    link_peer_drop(peer, why);
}

static void on_event(void *arg, const char *job, uint32_t host, const struct msg_event *e)
{
    struct server *s = arg;
    job_table_on_event(s->jobs, job, host, e);
}

static void on_lost(void *arg, const char *job, uint32_t host, const char *cause)
{
    struct server *s = arg;
    job_table_on_lost(s->jobs, job, host, cause);
}

static void on_change(void *arg)
{
    struct server *s = arg;
    job_table_on_change(s->jobs);
}

/* ---- late results --------------------------------------------------------------------------------- */

struct late {
    struct server *server;
    struct fleet_agent *agent;
    char *name;
    uint64_t incarnation;
    struct msg_event event;
};

static void store_late(struct store *store, void *arg)
{
    struct late *l = arg;
    struct err_detail d;
    if (store_add_late_event(store, l->name, l->incarnation, &l->event, &d) != ERR_OK)
        log_error("late_event", "agent=%s why=\"%s\"", l->name, d.text);
}

static void on_late_stored(void *arg)
{
    struct late *l = arg;
    log_info("late_event", "agent=%s job=%s kind=%s", l->name, msg_text(l->event.job),
             msg_event_name(l->event.kind));
    fleet_settle_late(l->server->fleet, l->agent);
    msg_event_fini(&l->event);
    free(l->name);
    free(l);
}

static void on_late(void *arg, struct fleet_agent *agent, uint64_t incarnation, const struct msg_event *e)
{
    struct server *s = arg;
    if (!late_gate_admits(s->late_gate, fleet_agent_name(agent), e)) {
        fleet_settle_late(s->fleet, agent); /* so that the agent drops it, too */
        return;
    }
    struct late *l = mem_zalloc(1, sizeof *l);
    l->server = s;
    l->agent = agent;
    l->name = mem_strdup(fleet_agent_name(agent));
    l->incarnation = incarnation;
    msg_event_copy(&l->event, e);
    store_worker_do(s->worker, store_late, on_late_stored, l);
}

/* ---- peers ---------------------------------------------------------------------------------------- */

/* A certificate that the lab has taken back, or never gave, opens no session. */
static enum err check_certificate(struct server *s, const struct link_peer *peer, struct err_detail *d)
{
    bool revoked = true;
    const char *serial = link_peer_serial(peer);
    if (serial[0] == '\0') /* over ipc: file permissions have decided */
        return ERR_OK;
    enum err e = store_is_revoked(s->store, serial, &revoked, d);
    /* An agent says itself what is to be done on its machine. */
    const char *then = link_peer_role(peer) == MSG_ROLE_AGENT ? "" : "; enroll with a new token";
    if (e == ERR_NOT_FOUND)
        return err_set(d, ERR_DENIED, "this controller did not issue the certificate%s", then);
    if (e == ERR_OK && revoked)
        return err_set(d, ERR_DENIED, "the certificate of '%s' was revoked%s", link_peer_name(peer), then);
    return e;
}

static void arm_tick(struct server *s);

static enum err on_hello(void *arg, struct link_peer *link, const struct msg_hello *hello,
                         struct msg_welcome *welcome, struct err_detail *d)
{
    struct server *s = arg;
    struct fleet_agent *agent = NULL;
    enum msg_role role = link_peer_role(link);
    enum err e = s->closing ? err_set(d, ERR_CLOSED, "the controller is stopping") : ERR_OK;
    if (e == ERR_OK)
        e = check_certificate(s, link, d);
    if (e == ERR_OK && role == MSG_ROLE_AGENT)
        e = fleet_hello(s->fleet, link, hello, link_peer_address(link), clock_now_ns(), &agent,
                        &welcome->acked_event, d);
    else if (e == ERR_OK && role != MSG_ROLE_OPERATOR)
        e = err_set(d, ERR_DENIED, "only agents and operators may connect");
    if (e != ERR_OK)
        return e;
    welcome->lease_ns = s->o.lease_ns;
    welcome->poll_ns = s->o.lease_ns / FLEET_POLLS_PER_LEASE;
    welcome->build = mem_strdup(SPLITBENCH_BUILD);
    welcome->incarnation = s->incarnation;
    server_add_peer(s, link, agent);
    arm_tick(s);
    return ERR_OK;
}

static void on_gone(void *arg, struct link_peer *link, const char *why)
{
    struct server *s = arg;
    if (link_peer_data(link) == NULL)
        return;
    log_debug("peer_gone", "name=%s why=\"%s\"", link_peer_name(link), why);
    fleet_gone(s->fleet, link);
    server_remove_peer(s, link_peer_data(link));
}

static void on_refused(void *arg, const char *from, const char *why)
{
    (void)arg;
    log_warn("refused", "from=%s why=\"%s\"", from, why);
}

static void on_request(void *arg, struct link_peer *link, const struct msg *m, struct link_request *request)
{
    struct server *s = arg;
    struct server_peer *p = link_peer_data(link);
    if (p->agent == NULL) {
        operator_handle(s, p, m, request);
        return;
    }
    if (fleet_agent_peer(p->agent) != link) { /* replaced by a newer session of the same agent */
        link_refuse(&request, ERR_CLOSED, "a newer session has taken over");
        return;
    }
    if (m->kind == MSG_POLL)
        fleet_poll(s->fleet, p->agent, request, m->u.poll.acked_command, clock_now_ns());
    else
        fleet_push(s->fleet, p->agent, request, &m->u.push, clock_now_ns());
    arm_tick(s);
}

static void on_enroll(void *arg, const struct msg_enroll *m, struct link_request *request)
{
    server_enroll(arg, m, request);
}

/* ---- time ----------------------------------------------------------------------------------------- */

static void on_tick(uv_timer_t *timer)
{
    arm_tick(timer->data);
}

static void arm_tick(struct server *s)
{
    uint64_t now_ns = clock_now_ns();
    uint64_t next_ns = fleet_tick(s->fleet, now_ns);
    if (uv_is_closing((uv_handle_t *)&s->tick))
        return;
    uint64_t wait_ms = next_ns > now_ns ? (next_ns - now_ns) / NS_PER_MS + 1 : 1;
    uv_update_time(s->o.loop);
    (void)uv_timer_start(&s->tick, on_tick, wait_ms, 0);
}

/* ---- life ----------------------------------------------------------------------------------------- */

/* Those that only read have handles of their own: no question waits for what is written, and none but a
 * report for a report. */
static enum err make_workers(struct server *s, struct err_detail *d)
{
    struct store_worker_options o = {.loop = s->o.loop, .store_path = s->o.store_path};
    enum err e = store_worker_new(&o, &s->worker, d);
    o.read_only = true;
    if (e == ERR_OK)
        e = store_worker_new(&o, &s->looks, d);
    if (e == ERR_OK)
        e = store_worker_new(&o, &s->reports, d);
    return e;
}

static enum err make_parts(struct server *s, struct err_detail *d)
{
    enum err e = store_open(s->o.store_path, false, &s->store, d);
    if (e != ERR_OK)
        return e;
    e = make_workers(s, d);
    if (e != ERR_OK)
        return e;
    s->late_gate = late_gate_new(s->store, s->worker);
    s->fleet = fleet_new(&(struct fleet_options){.lease_ns = s->o.lease_ns,
                                                 .incarnation = s->incarnation,
                                                 .handlers = {.arg = s,
                                                              .answer_poll = answer_poll,
                                                              .answer_push = answer_push,
                                                              .refuse = refuse,
                                                              .drop_peer = drop_peer,
                                                              .on_event = on_event,
                                                              .on_late = on_late,
                                                              .on_lost = on_lost,
                                                              .on_change = on_change}});
    e = job_table_new(&(struct job_table_options){.loop = s->o.loop,
                                                  .fleet = s->fleet,
                                                  .worker = s->worker,
                                                  .store_path = s->o.store_path,
                                                  .blob_dir = s->blob_dir,
                                                  .own_boot_id = s->own_boot_id},
                      &s->jobs, d);
    if (e != ERR_OK)
        return e;
    return link_server_new(&(struct link_server_options){.loop = s->o.loop,
                                                         .addresses = s->o.addresses,
                                                         .address_count = s->o.address_count,
                                                         .identity = s->o.identity,
                                                         .handlers = {.arg = s,
                                                                      .on_hello = on_hello,
                                                                      .on_request = on_request,
                                                                      .on_enroll = on_enroll,
                                                                      .on_gone = on_gone,
                                                                      .on_refused = on_refused}},
                           &s->link, d);
}

static void free_parts(struct server *s)
{
    fleet_free(s->fleet);
    store_worker_free(s->worker);
    store_worker_free(s->looks);
    store_worker_free(s->reports);
    store_close(s->store);
    doorstep_free(s->doorstep);
    late_gate_free(s->late_gate);
    free(s->blob_dir);
    free(s);
}

static void on_tick_closed(uv_handle_t *handle)
{
    struct server *s = handle->data;
    void (*cb)(void *arg) = s->close_cb;
    void *arg = s->close_arg;
    free_parts(s);
    if (cb != NULL)
        cb(arg);
}

static void close_tick(void *arg)
{
    struct server *s = arg;
    uv_close((uv_handle_t *)&s->tick, on_tick_closed);
}

/* The end, step by step: jobs, link, what the worker still does, the table of jobs, the timer. */
static void close_jobs(struct server *s)
{
    if (s->jobs != NULL)
        job_table_close(&s->jobs, close_tick, s);
    else
        close_tick(s);
}

static void nothing(struct store *store, void *arg)
{
    (void)store;
    (void)arg;
}

static void await_workers(void *arg)
{
    struct server *s = arg;
    struct store_worker *const workers[] = {s->worker, s->looks, s->reports};
    for (size_t i = 0; i < ARRAY_LEN(workers); i++) {
        if (workers[i] != NULL && store_worker_pending(workers[i]) > 0) {
            store_worker_do(workers[i], nothing, await_workers, s); /* comes back behind the others */
            return;
        }
    }
    close_jobs(s);
}

static void close_link(void *arg)
{
    struct server *s = arg;
    if (s->link != NULL)
        link_server_close(&s->link, await_workers, s);
    else
        await_workers(s);
}

enum err server_new(const struct server_options *options, struct server **out, struct err_detail *d)
{
    struct server *s = mem_zalloc(1, sizeof *s);
    s->o = *options;
    s->doorstep = doorstep_new();
    s->blob_dir = mem_printf("%s/blobs", options->state_dir);
    if (s->o.blob_bytes_max == 0)
        s->o.blob_bytes_max = SERVER_BLOB_BYTES;
    do
        identity_random(&s->incarnation, sizeof s->incarnation);
    while (s->incarnation == 0);
    file_read_line("/proc/sys/kernel/random/boot_id", s->own_boot_id, sizeof s->own_boot_id);
    must(uv_timer_init(s->o.loop, &s->tick) == 0);
    s->tick.data = s;
    enum err e = make_parts(s, d);
    if (e != ERR_OK) {
        close_link(s);
        (void)uv_run(s->o.loop, UV_RUN_DEFAULT);
        return e;
    }
    arm_tick(s);
    *out = s;
    return ERR_OK;
}

void server_close(struct server **server, const char *cause, void (*cb)(void *arg), void *arg)
{
    struct server *s = *server;
    *server = NULL;
    s->closing = true;
    s->close_cb = cb;
    s->close_arg = arg;
    job_table_stop(s->jobs, cause, close_link, s);
}

const char *server_address(const struct server *s, size_t i)
{
    return link_server_address(s->link, i);
}

/* A job that an earlier controller left queued. One that cannot be taken on fails with the reason. */
static enum err adopt_job(struct server *s, const char *id, struct err_detail *d)
{
    struct store_job row = {0};
    struct job_spec *spec = NULL;
    enum err e = store_get_job(s->store, id, &row, d);
    if (e == ERR_OK)
        e = job_spec_from_store(&row, s->o.state_dir, &spec, d);
    if (e == ERR_OK)
        e = job_table_add(s->jobs, &spec, d);
    store_job_fini(&row);
    if (e == ERR_OK)
        return e;
    struct err_detail why = *d;
    log_error("job_not_adopted", "job=%s why=\"%s\"", id, why.text);
    return store_set_job_state(s->store, id, STORE_JOB_FAILED, why.text, RUN_EXIT_INFRA, d);
}

enum err server_adopt_jobs(struct server *s, struct err_detail *d)
{
    struct store_job *jobs = NULL;
    size_t count = 0;
    enum err e = store_list_jobs(s->store, &jobs, &count, d);
    if (e != ERR_OK)
        return e;
    for (size_t i = count; i-- > 0;) { /* oldest first */
        struct err_detail why;
        enum err one = jobs[i].state == STORE_JOB_QUEUED ? adopt_job(s, jobs[i].id, &why) : ERR_OK;
        if (one != ERR_OK)
            e = err_set(d, one, "%s", why.text);
        store_job_fini(&jobs[i]);
    }
    free(jobs);
    return e;
}
