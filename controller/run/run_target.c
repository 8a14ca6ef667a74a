/* One server process: built, started fresh, checked from the load host, stopped with its whole tree. */
#include "common/mem.h"
#include "controller/run/run_inner.h"

#define CHECKS_SHOWN 8u /* failed checks told one by one */

/* Where a target's commands run on its host. Owned by the caller. */
static char *resolve_dir(const struct run *r, const struct experiment_target *t)
{
    const char *dir = msg_text(t->dir);
    if (dir[0] == '/' || r->o->files->count > 0)
        return mem_strdup(dir);
    if (!run_is_here(r, r->server_host) || r->o->base_dir[0] == '\0')
        return mem_strdup(dir);
    return dir[0] ? mem_printf("%s/%s", r->o->base_dir, dir) : mem_strdup(r->o->base_dir);
}

/* For the rest of the job. The first such failure becomes the job's cause. */
static enum err fail_target(struct run *r, uint32_t target, const char *why, struct err_detail *d)
{
    char text[sizeof r->first_failure];
    snprintf(text, sizeof text, "target '%s': %s", r->e->targets[target].name, why);
    r->servers[target].failed = true;
    if (r->targets_failed++ == 0)
        snprintf(r->first_failure, sizeof r->first_failure, "%s", text);
    return run_say(r, d, "%s", text);
}

/* ---- build ---------------------------------------------------------------------------------------- */

/* Why a START did not end as it should; NULL when it did. Owned by the reply, or `text`. */
static const char *start_failure(const struct msg_event *e, char *text, size_t size)
{
    if (e->kind == MSG_EVENT_STARTED && e->code == ERR_OK)
        return NULL;
    if (e->kind != MSG_EVENT_EXITED)
        return msg_text(e->text)[0] != '\0' ? e->text : err_text(e->code);
    run_server_describe_end(&e->u.exited, " before it was ready", text, size);
    return text;
}

/* What a build step and the server itself have alike. */
static void begin_process(struct run *r, uint32_t target, const struct msg_strings *argv, struct msg_start *s)
{
    const struct experiment_target *t = &r->e->targets[target];
    run_server_begin(r, target);
    s->proc = r->server->proc;
    s->dir = resolve_dir(r, t);
    s->grace_ns = t->stop_grace_ns;
    experiment_fill_strings(argv, r->server_address, &s->argv);
    experiment_fill_env(&t->env, r->server_address, &s->env);
}

/* A failed build is a run of the target that never came to a start: it is stored with its log. */
static enum err fail_build(struct run *r, uint32_t target, size_t step, const char *why, struct err_detail *d)
{
    const struct experiment_target *t = &r->e->targets[target];
    char *text = mem_printf("build step %zu ('%s') failed: %s", step + 1, t->build[step].items[0], why);
    const struct store_target_run row = {.target = target, .error = text, .started_wall_ns = clock_wall_ns()};
    enum err e = store_add_target_run(r->store, r->o->job, &row, &r->server->run_id, d);
    if (e == ERR_OK)
        e = fail_target(r, target, text, d);
    if (e == ERR_OK)
        e = run_server_store_end(r, r->server, 0, text, d);
    free(text);
    return e;
}

static enum err build_step(struct run *r, uint32_t target, size_t step, struct err_detail *d)
{
    const struct experiment_target *t = &r->e->targets[target];
    struct run_reply reply;
    char failure[1024];
    struct msg_command c = {.kind = MSG_COMMAND_START,
                            .u.start = {.label = mem_printf("build %s", t->name),
                                        .ready = MSG_READY_EXIT,
                                        .ready_timeout_ns = RUN_BUILD_NS}};
    begin_process(r, target, &t->build[step], &c.u.start);
    run_doing(r, 0, design_remaining_ns(r->e, r->design, 0), "building '%s' (step %zu of %zu)", t->name,
              step + 1, t->build_count);
    enum err e = run_ask_one(r, r->server_host, &c, "build", RUN_BUILD_NS + RUN_COMMAND_NS, &reply, d);
    r->server->up = false;
    if (e == ERR_OK)
        e = run_expect_kept(r, &reply, d);
    if (e == ERR_OK) {
        const char *why = start_failure(&reply.event, failure, sizeof failure);
        /* A build step is meant to end: status 0 is success however it is told. */
        bool ended_well = reply.event.kind == MSG_EVENT_EXITED && reply.event.u.exited.status == 0 &&
                          reply.event.u.exited.signal == 0;
        if (why != NULL && !ended_well)
            e = fail_build(r, target, step, why, d);
    }
    run_reply_fini(&reply);
    msg_command_fini(&c);
    return e;
}

enum err run_build_all(struct run *r, struct err_detail *d)
{
    for (uint32_t t = 0; t < r->e->target_count; t++) {
        for (size_t step = 0; step < r->e->targets[t].build_count && !r->servers[t].failed; step++) {
            enum err e = build_step(r, t, step, d);
            if (e != ERR_OK)
                return e;
        }
    }
    return ERR_OK;
}

/* ---- start ---------------------------------------------------------------------------------------- */

/* Starts it; `row` says how that went. */
static enum err start_process(struct run *r, uint32_t target, struct store_target_run *row, char **why,
                              struct err_detail *d)
{
    const struct experiment_target *t = &r->e->targets[target];
    struct run_reply reply;
    char failure[2048];
    struct msg_command c = {
        .kind = MSG_COMMAND_START,
        .u.start = {.label = mem_strdup(t->name),
                    .cpus = mem_strdup(r->placement.server.cpus),
                    .ready = t->ready.kind,
                    .ready_host = mem_strdup(r->server_address), /* where the load will look for it */
                    .ready_port = t->ready.port ? t->ready.port : t->port,
                    .ready_path = mem_strdup(msg_text(t->ready.path)),
                    .ready_timeout_ns = t->ready.timeout_ns}};
    begin_process(r, target, &t->start, &c.u.start);
    row->started_wall_ns = clock_wall_ns();
    enum err e =
        run_ask_one(r, r->server_host, &c, "start a target", t->ready.timeout_ns + RUN_COMMAND_NS, &reply, d);
    if (e == ERR_OK)
        e = run_expect_kept(r, &reply, d);
    if (e == ERR_OK) {
        const char *text = start_failure(&reply.event, failure, sizeof failure);
        if (text != NULL) {
            *why = mem_strdup(text);
            r->server->up = false;
            if (reply.event.kind == MSG_EVENT_EXITED)
                run_server_keep_log(r->server, &reply.event.u.exited);
        } else {
            row->startup_ns = reply.event.u.started.startup_ns;
        }
    }
    run_reply_fini(&reply);
    msg_command_fini(&c);
    return e;
}

/* ---- checks --------------------------------------------------------------------------------------- */

static void append_failure(char **why, const char *name, const char *text, size_t nth)
{
    if (nth >= CHECKS_SHOWN)
        return;
    char *more = mem_printf("%s%scheck '%s' failed: %s", *why ? *why : "", *why ? "; " : "", name, text);
    free(*why);
    *why = more;
}

/* Every check, one after the other; all that fail are told. */
static enum err run_checks(struct run *r, const struct experiment_target *t, struct store_target_run *row,
                           char **why, struct err_detail *d)
{
    size_t failed = 0;
    for (size_t i = 0; i < r->e->check_count; i++) {
        struct run_reply reply;
        struct msg_command c;
        const struct msg_check *check = &r->e->checks[i];
        msg_command_copy(&c, &(struct msg_command){.kind = MSG_COMMAND_CHECK, .u.check = *check});
        mem_set_string(&c.u.check.host, r->server_address);
        c.u.check.port = t->port;
        run_fill_headers(r, &c.u.check.request.headers);
        enum err e = run_ask_one(r, r->load_hosts[0], &c, "check a target",
                                 check->timeout_ns + RUN_COMMAND_NS, &reply, d);
        msg_command_fini(&c);
        if (e != ERR_OK)
            return e;
        bool checked = reply.event.kind == MSG_EVENT_CHECKED && reply.event.code == ERR_OK;
        bool ok = checked && reply.event.u.checked.ok;
        if (!ok && row->failed_check == NULL)
            row->failed_check = msg_text(check->name);
        if (!ok)
            append_failure(why, msg_text(check->name),
                           msg_text(checked ? reply.event.u.checked.difference : reply.event.text), failed++);
        run_reply_fini(&reply);
    }
    if (failed > CHECKS_SHOWN) {
        char *more = mem_printf("%s; and %zu more of %zu", *why, failed - CHECKS_SHOWN, r->e->check_count);
        free(*why);
        *why = more;
    }
    return ERR_OK;
}

/* Memory of the server's tree now; 0 when it cannot be had. */
static enum err read_rss(struct run *r, uint64_t *rss_bytes, struct err_detail *d)
{
    struct run_reply reply;
    struct msg_command c = {.kind = MSG_COMMAND_SAMPLE};
    c.u.sample.procs[0] = r->server->proc;
    c.u.sample.proc_count = 1;
    *rss_bytes = 0;
    enum err e = run_ask_one(r, r->server_host, &c, "read its counters", RUN_COMMAND_NS, &reply, d);
    if (e == ERR_OK && reply.event.kind == MSG_EVENT_SAMPLED && reply.event.u.sampled.proc_count == 1)
        *rss_bytes = reply.event.u.sampled.procs[0].rss_bytes;
    run_reply_fini(&reply);
    return e;
}

enum err run_start_target(struct run *r, uint32_t target, uint32_t round, uint32_t slot, struct err_detail *d)
{
    const struct experiment_target *t = &r->e->targets[target];
    struct store_target_run row = {.target = target, .round = round, .slot = slot};
    char *why = NULL;
    must(run_place_target(r, target, NULL) == ERR_OK);
    r->has_previous = false;
    enum err e =
        run_server_store_end(r, &r->servers[target], 0, r->servers[target].died_text, d); /* one that died */
    if (e == ERR_OK)
        e = start_process(r, target, &row, &why, d);
    if (e == ERR_OK && why == NULL)
        e = run_checks(r, t, &row, &why, d);
    if (e == ERR_OK && !r->server->up)
        row.failed_check = NULL; /* it did not answer wrongly, it died */
    if (e == ERR_OK && why == NULL && !r->server->up)
        why = mem_printf("the server died while it was checked: %s", r->server->died_text);
    if (e == ERR_OK && why == NULL)
        e = read_rss(r, &row.rss_before_bytes, d);
    if (e != ERR_OK)
        goto out;
    row.ok = why == NULL;
    row.error = why ? why : "";
    e = store_add_target_run(r->store, r->o->job, &row, &r->server->run_id, d);
    if (e == ERR_OK && why != NULL)
        e = fail_target(r, target, why, d);
    if (e == ERR_OK && why != NULL && r->server->up)
        e = run_stop_target(r, d);
    if (e == ERR_OK && why != NULL)
        e = run_server_store_end(r, r->server, 0, why, d);
    r->server->ready_ns = clock_now_ns();
out:
    free(why);
    return e;
}

/* ---- stop ----------------------------------------------------------------------------------------- */

enum err run_stop_target(struct run *r, struct err_detail *d)
{
    struct run_server *s = r->server;
    uint64_t rss_after = 0;
    enum err e = s->up ? read_rss(r, &rss_after, d) : ERR_OK;
    if (e != ERR_OK)
        return e;
    if (!s->up) /* died before, or just now */
        return run_server_store_end(r, s, 0, s->died_text, d);
    const struct experiment_target *t = &r->e->targets[s->target];
    struct run_reply reply;
    struct msg_command c = {.kind = MSG_COMMAND_STOP, .u.stop.proc = s->proc};
    e = run_ask_one(r, r->server_host, &c, "stop a target", t->stop_grace_ns + RUN_CLOSE_NS, &reply, d);
    s->up = false;
    if (e == ERR_OK && reply.event.kind == MSG_EVENT_EXITED)
        run_server_keep_log(s, &reply.event.u.exited);
    else if (e == ERR_OK && reply.event.code != ERR_OK && reply.event.code != ERR_NOT_FOUND)
        e = err_set(d, reply.event.code, "agent '%s' cannot stop target '%s': %s",
                    run_agent_name(r, r->server_host), t->name, msg_text(reply.event.text));
    run_reply_fini(&reply);
    return e == ERR_OK ? run_server_store_end(r, s, rss_after, "", d) : e;
}

enum err run_stop_all(struct run *r, struct err_detail *d)
{
    for (size_t t = 0; t < r->e->target_count; t++) {
        r->server = &r->servers[t];
        enum err e = run_stop_target(r, d);
        if (e != ERR_OK)
            return e;
    }
    return ERR_OK;
}
