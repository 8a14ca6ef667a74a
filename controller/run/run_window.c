/* One window: warm-up, load, counters at its edges, gates, store; and again while it is not valid. */
#include "common/clock.h"
#include "common/mem.h"
#include "controller/run/result_check.h"
#include "controller/run/run_cpu.h"
#include "controller/run/run_inner.h"
#include "controller/run/run_merge.h"

#include <sys/resource.h>

enum { BEFORE, AFTER, EDGES };

struct run_window {
    const struct design_window *w;
    const struct design_cell *cell;
    const struct experiment_workload *load;
    char name[256];
    uint32_t attempt;
    uint64_t started_wall_ns;
    uint64_t asked_ns;      /* controller's time: LOAD was sent */
    uint64_t start_here_ns; /* controller's time: the window's first instant was heard of */

    struct run_reply *loads;     /* per load host */
    uint32_t *procs;             /* per load host: its generator's number */
    uint64_t *last_ok, *last_ns; /* per load host: for the live figure */
    double *ok_per_s;
    uint64_t *heard_ns; /* per load host, controller's time: its window's first instant; 0 = not heard of */

    struct run_reply *samples[EDGES]; /* per host; NULL until asked */
    uint64_t own_ns[EDGES];           /* the controller's own CPU time */
};

static uint64_t own_cpu_ns(void)
{
    struct rusage u;
    must(getrusage(RUSAGE_SELF, &u) == 0);
    return (uint64_t)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * NS_PER_S +
           (uint64_t)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * NS_PER_US;
}

static size_t load_index(const struct run *r, uint32_t host)
{
    size_t i = 0;
    while (i < r->load_count && r->load_hosts[i] != host)
        i++;
    return i;
}

/* ---- while it runs ------------------------------------------------------------------------------- */

/* Asks every host for its counters: of the server's tree, of its generator, of the machine. */
static void ask_samples(struct run *r, struct run_window *x, int edge)
{
    if (x->samples[edge] != NULL)
        return;
    x->samples[edge] = mem_zalloc(r->o->host_count, sizeof(struct run_reply));
    x->own_ns[edge] = own_cpu_ns();
    for (uint32_t h = 0; h < r->o->host_count; h++) {
        struct msg_command c = {.kind = MSG_COMMAND_SAMPLE};
        struct msg_sample *s = &c.u.sample;
        size_t i = load_index(r, h);
        for (size_t t = 0; h == r->server_host && t < r->e->target_count; t++) {
            if ((r->servers[t].up || &r->servers[t] == r->server) && s->proc_count < MSG_PROCS_MAX - 1)
                s->procs[s->proc_count++] = r->servers[t].proc;
        }
        if (i < r->load_count)
            s->procs[s->proc_count++] = x->procs[i];
        run_ask(r, h, &c, "read its counters", &x->samples[edge][h]);
    }
}

static void show_live(struct run *r, struct run_window *x, size_t i, const struct msg_progress *p)
{
    if (x->last_ns[i] != 0 && p->at_ns > x->last_ns[i] && p->ok >= x->last_ok[i])
        x->ok_per_s[i] = (double)(p->ok - x->last_ok[i]) * 1e9 / (double)(p->at_ns - x->last_ns[i]);
    x->last_ns[i] = p->at_ns;
    x->last_ok[i] = p->ok;
    double sum = 0;
    for (size_t k = 0; k < r->load_count; k++)
        sum += x->ok_per_s[k];
    r->view.ok_per_s = sum < 1e15 ? (uint64_t)sum : 0;
    channel_tell(r->channel, &r->view);
}

void run_window_progress(struct run *r, uint32_t host, const struct msg_progress *p)
{
    struct run_window *x = r->window;
    size_t i = load_index(r, host);
    if (x == NULL || i == r->load_count)
        return;
    switch (p->kind) {
    case MSG_PROGRESS_WARMUP_START:
        x->last_ns[i] = p->at_ns;
        x->last_ok[i] = 0;
        break;
    case MSG_PROGRESS_WINDOW_START:
        x->heard_ns[i] = clock_now_ns();
        /* The first host's edge is the window's: others start within their start skew. */
        if (i == 0) {
            ask_samples(r, x, BEFORE);
            x->start_here_ns = x->heard_ns[i];
            snprintf(r->view.doing, sizeof(r->view.doing), "round %u/%u %s window", x->w->round + 1,
                     r->e->design.rounds, x->name);
        }
        x->last_ns[i] = p->at_ns;
        x->last_ok[i] = 0;
        break;
    case MSG_PROGRESS_TICK:
        show_live(r, x, i, p);
        break;
    case MSG_PROGRESS_WINDOW_END:
        if (i == 0) {
            ask_samples(r, x, AFTER);
            r->previous_end_here_ns = clock_now_ns();
        }
        break;
    case MSG_PROGRESS_COUNT:
        break;
    }
}

/* The connections are of the cell, not of a host: each gets its share. */
static uint32_t share_of(const struct run *r, const struct run_window *x, size_t i)
{
    uint32_t all = x->cell->connections, hosts = (uint32_t)r->load_count;
    return all / hosts + (i < all % hosts ? 1 : 0);
}

static void ask_loads(struct run *r, struct run_window *x)
{
    const struct experiment_target *t = &r->e->targets[x->cell->target];
    uint32_t hosts = (uint32_t)r->load_count;
    for (uint32_t i = 0; i < hosts; i++) {
        struct msg_command c = {.kind = MSG_COMMAND_LOAD};
        struct msg_load *l = &c.u.load;
        x->procs[i] = l->proc = r->next_proc++;
        l->tool = (char *)(uintptr_t) "builtin";
        l->host = (char *)(uintptr_t)r->server_address;
        l->port = t->port;
        struct msg_headers headers;
        l->request = x->load->request;
        run_fill_request(r, &l->request, &headers);
        l->connections = share_of(r, x, i);
        l->threads = placement_threads(x->load->threads, l->connections, r->placement.load[i].cpu_count);
        l->warmup_ns = x->load->warmup_ns;
        l->duration_ns = x->load->duration_ns;
        l->timeout_ns = x->load->timeout_ns;
        l->has_body_bytes = x->load->has_body_bytes;
        l->body_bytes = x->load->body_bytes;
        l->cpus = r->placement.load[i].cpus;
        run_ask(r, r->load_hosts[i], &c, "make load", &x->loads[i]);
        run_headers_fini(&headers);
    }
    x->asked_ns = clock_now_ns();
    x->started_wall_ns = clock_wall_ns();
}

static bool all_answered(const struct run_reply *replies, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (!replies[i].answered)
            return false;
    }
    return true;
}

/* Until every generator has answered and the counters of the end are here (or are late). */
static enum err await_window(struct run *r, struct run_window *x, struct err_detail *d)
{
    uint64_t deadline_ns = x->asked_ns + x->load->warmup_ns + x->load->duration_ns + x->load->timeout_ns +
                           RUN_COMMAND_NS + RUN_RESULT_NS;
    bool loaded = false;
    for (;;) {
        if (!loaded && all_answered(x->loads, r->load_count)) {
            loaded = true;
            if (x->samples[AFTER] == NULL) /* the end was not heard of: no use in asking now */
                return ERR_OK;
            deadline_ns = clock_now_ns() + RUN_SAMPLE_NS;
        }
        if (loaded && all_answered(x->samples[AFTER], r->o->host_count))
            return ERR_OK;
        struct channel_event e;
        enum err result = channel_next(r->channel, deadline_ns, &e, d);
        if (result == ERR_TIMEOUT)
            return ERR_OK; /* what is missing is seen by whoever looks for it */
        if (result != ERR_OK)
            return result;
        /* A result is acknowledged when it is stored; the same host's counters would wait behind it. */
        if (e.event.kind == MSG_EVENT_LOADED && x->samples[AFTER] && x->samples[AFTER][e.host].answered)
            channel_hold(r->channel, e.host);
        if (!run_give(x->loads, r->load_count, &e) &&
            !(x->samples[BEFORE] && run_give(x->samples[BEFORE], r->o->host_count, &e)) &&
            !(x->samples[AFTER] && run_give(x->samples[AFTER], r->o->host_count, &e)))
            run_note(r, &e);
    }
}

/* A generator that gave nothing is ended before anything else is done on its host. */
static enum err end_generators(struct run *r, struct run_window *x, struct err_detail *d)
{
    for (size_t i = 0; i < r->load_count; i++) {
        if (x->loads[i].answered)
            continue;
        struct run_reply reply;
        struct msg_command c = {.kind = MSG_COMMAND_STOP, .u.stop.proc = x->procs[i]};
        enum err e = run_ask_one(r, r->load_hosts[i], &c, "stop a generator", RUN_CLOSE_NS, &reply, d);
        run_reply_fini(&reply);
        if (e != ERR_OK)
            return e;
    }
    return ERR_OK;
}

/* ---- what came of it ----------------------------------------------------------------------------- */

/* Why there is no result; NULL when there is. Owned by the caller. A missing program is not the window's
 * fault: it ends the job. */
static enum err generator_failure(struct run *r, struct run_window *x, char **why, struct err_detail *d)
{
    *why = NULL;
    for (size_t i = 0; i < r->load_count; i++) {
        const struct run_reply *reply = &x->loads[i];
        const char *agent = run_agent_name(r, reply->host);
        if (reply->answered && reply->event.kind == MSG_EVENT_LOADED && reply->event.code == ERR_OK)
            continue;
        if (reply->answered && (reply->event.code == ERR_NOT_FOUND || reply->event.code == ERR_UNSUPPORTED))
            return err_set(d, reply->event.code, "agent '%s' cannot make load: %s", agent,
                           msg_text(reply->event.text));
        enum err lost = run_expect_kept(r, reply, d); /* no later attempt would fare better there */
        if (lost != ERR_OK)
            return lost;
        if (*why == NULL)
            *why = reply->answered
                       ? mem_printf("the generator on '%s' failed: %s", agent, msg_text(reply->event.text))
                       : mem_printf("the generator on '%s' gave no result in time and was ended", agent);
    }
    return ERR_OK;
}

/* Counters that were read long before or after the window's edges (the link was cut then) say nothing about
 * it: within a quarter of its length is near enough. */
static bool fits_window(const struct run_cpu_host *h, uint64_t duration_ns)
{
    uint64_t interval_ns = 0;
    return run_cpu_interval(h, &interval_ns) && interval_ns >= duration_ns - duration_ns / 4 &&
           interval_ns <= duration_ns + duration_ns / 4;
}

static void fill_cpu_hosts(const struct run *r, const struct run_window *x, struct run_cpu_host *hosts)
{
    for (size_t h = 0; h < r->o->host_count; h++) {
        const struct msg_sampled *edge[EDGES] = {NULL, NULL};
        for (int k = 0; k < EDGES; k++) {
            const struct run_reply *reply = x->samples[k] ? &x->samples[k][h] : NULL;
            if (reply != NULL && reply->answered && reply->event.kind == MSG_EVENT_SAMPLED)
                edge[k] = &reply->event.u.sampled;
        }
        hosts[h] = (struct run_cpu_host){
            .boot_id = msg_text(r->o->hosts[h].facts.boot_id), .before = edge[BEFORE], .after = edge[AFTER]};
        if (!fits_window(&hosts[h], x->load->duration_ns))
            hosts[h].before = hosts[h].after = NULL;
    }
}

static double foreign_cores(const struct run *r, const struct run_window *x, const struct run_cpu_host *hosts,
                            uint32_t host)
{
    bool here = hosts[host].boot_id[0] != '\0' && strcmp(hosts[host].boot_id, r->o->own_boot_id) == 0;
    uint64_t own = here && x->own_ns[AFTER] > x->own_ns[BEFORE] ? x->own_ns[AFTER] - x->own_ns[BEFORE] : 0;
    return run_cpu_foreign(hosts, r->o->host_count, host, own);
}

static void fill_figures(const struct run *r, const struct run_window *x, const struct msg_loaded *loaded,
                         struct store_attempt *a)
{
    struct run_cpu_host *hosts = mem_zalloc(r->o->host_count, sizeof(*hosts));
    uint64_t cpu = 0, interval = 0;
    fill_cpu_hosts(r, x, hosts);
    a->server_cpu_s = a->server_cpu_cores = a->generator_cpu_s = a->generator_cpu_cores = -1;
    if (run_cpu_of_proc(&hosts[r->server_host], r->server->proc, &cpu) &&
        run_cpu_interval(&hosts[r->server_host], &interval)) {
        a->server_cpu_s = (double)cpu / 1e9;
        a->server_cpu_cores = (double)cpu / (double)interval;
    }
    run_cpu_counters(&hosts[r->server_host], r->server->proc, a->server);
    if (loaded != NULL && loaded->window_end_ns > loaded->window_start_ns) {
        struct figure both = figure_merged(FIGURE_SUM, loaded->figures[FIGURE_CPU_USER_NS],
                                           loaded->figures[FIGURE_CPU_SYSTEM_NS]);
        a->generator_cpu_s = both.known ? (double)both.value / 1e9 : -1;
        a->generator_cpu_cores =
            both.known ? (double)both.value / (double)(loaded->window_end_ns - loaded->window_start_ns) : -1;
    }
    a->foreign_cpu_cores_server = foreign_cores(r, x, hosts, r->server_host);
    a->foreign_cpu_cores_load = foreign_cores(r, x, hosts, r->load_hosts[0]);
    for (size_t i = 1; i < r->load_count; i++) {
        double more = foreign_cores(r, x, hosts, r->load_hosts[i]);
        if (more < 0 || (a->foreign_cpu_cores_load >= 0 && more > a->foreign_cpu_cores_load))
            a->foreign_cpu_cores_load = more; /* the worst host counts; unknown is worse than any */
    }
    a->own_cpu_cores = run_cpu_own(hosts, r->o->host_count);
    free(hosts);
}

static const struct msg_host *load_facts(const struct run *r, size_t i)
{
    return &r->o->hosts[r->load_hosts[i]].facts;
}

/* What the generators could have used at most, in cores. Those on one machine have its CPUs only once. */
static double generator_room(const struct run *r, const struct run_window *x)
{
    double cores = 0;
    for (size_t i = 0; i < r->load_count; i++) {
        uint32_t cpus = r->placement.load[i].cpu_count, threads = 0;
        bool counted = false;
        for (size_t k = 0; k < r->load_count; k++) {
            if (k != i && !placement_same_machine(load_facts(r, i), load_facts(r, k)))
                continue;
            counted = counted || k < i;
            cpus = r->placement.load[k].cpu_count > cpus ? r->placement.load[k].cpu_count : cpus;
            threads += placement_threads(x->load->threads, share_of(r, x, k), r->placement.load[k].cpu_count);
        }
        if (!counted)
            cores += threads < cpus ? threads : cpus;
    }
    return cores;
}

/* How far apart the hosts' windows began: by their clock where they share one, else by when it was heard of.
 * Not heard of is as far as can be. */
static uint64_t start_skew(const struct run *r, const struct run_window *x)
{
    uint64_t skew = 0;
    for (size_t i = 0; i < r->load_count; i++) {
        for (size_t k = 0; k < i; k++) {
            uint64_t a = x->heard_ns[i], b = x->heard_ns[k];
            if (placement_same_machine(load_facts(r, i), load_facts(r, k))) {
                a = x->loads[i].event.u.loaded.window_start_ns;
                b = x->loads[k].event.u.loaded.window_start_ns;
            } else if (a == 0 || b == 0) {
                return UINT64_MAX;
            }
            uint64_t apart = a > b ? a - b : b - a;
            skew = apart > skew ? apart : skew;
        }
    }
    return skew;
}

/* Time between the windows (or the readiness of the server) and this one that nobody asked for. */
static uint64_t dead_time(const struct run *r, const struct run_window *x, const struct msg_loaded *loaded)
{
    uint64_t asked = x->load->warmup_ns, from = r->server->ready_ns, to = x->start_here_ns;
    if (r->has_previous && loaded != NULL) {
        asked += r->e->design.gap_ns;
        from = r->previous_end_ns;
        to = loaded->window_start_ns;
    }
    return to > from + asked ? to - from - asked : 0;
}

/* An answer of the server's host, behind everything that it had to say before: a load that failed because the
 * server died, or because its host is gone, is known for that. Results that are not stored yet stay held. */
static enum err hear_server_host(struct run *r, struct err_detail *d)
{
    struct run_reply reply;
    struct msg_command c = {.kind = MSG_COMMAND_SAMPLE};
    for (size_t i = 0; i < r->load_count; i++)
        channel_hold(r->channel, r->load_hosts[i]);
    enum err e = run_ask_one(r, r->server_host, &c, "say whether it is there", RUN_COMMAND_NS, &reply, d);
    run_reply_fini(&reply);
    return e;
}

static enum err judge(struct run *r, struct run_window *x, const struct msg_loaded *loaded,
                      const char *failure, bool *valid, bool *final, struct err_detail *d)
{
    char reason[GATE_REASON_BYTES];
    struct store_attempt a = {.window = x->w->index,
                              .attempt = x->attempt,
                              .run_id = r->server->run_id,
                              .started_wall_ns = x->started_wall_ns,
                              .loaded = loaded,
                              .dead_ns = dead_time(r, x, loaded)};
    fill_figures(r, x, loaded, &a);
    double room = generator_room(r, x);
    struct gate_figures f = {.server_agent = run_agent_name(r, r->server_host),
                             .server_died = r->server->died ? r->server->died_text : NULL,
                             .generator_failed = failure,
                             .loaded = loaded,
                             .start_skew_ns = loaded != NULL ? start_skew(r, x) : 0,
                             .start_skew_max_ns = x->load->duration_ns / 4, /* as for counters */
                             .foreign_cpu_server = a.foreign_cpu_cores_server,
                             .foreign_cpu_load = a.foreign_cpu_cores_load,
                             .generator_cpu = a.generator_cpu_cores < 0 ? -1 : a.generator_cpu_cores / room};
    enum gate gate = gate_judge(&r->e->gates, &f, reason);
    enum err gone = ERR_OK;
    if (gate != GATE_NONE) {
        gone = hear_server_host(r, d);
        f.server_died = r->server->died ? r->server->died_text : NULL;
        gate = gate_judge(&r->e->gates, &f, reason);
    }
    /* Without the server's host no attempt could succeed: none is the last, and a resumed job measures on. */
    *valid = a.valid = gate == GATE_NONE;
    *final = a.final = a.valid || (gone == ERR_OK && x->attempt > r->e->gates.retries);
    a.gate = gate_name(gate);
    a.reason = reason;
    struct err_detail why;
    enum err e = store_add_attempt(r->store, r->o->job, &a, &why);
    channel_settle(r->channel);
    if (gone != ERR_OK)
        return gone;
    if (e != ERR_OK)
        return err_set(d, e, "the result of %s cannot be stored: %s", x->name, why.text);
    must(loaded != NULL || !a.valid);
    if (a.valid)
        return run_say(
            r, d, "round %u/%u %s: %.0f ok/s, %llu failed", x->w->round + 1, r->e->design.rounds, x->name,
            (double)loaded->window.ok * 1e9 / (double)(loaded->window_end_ns - loaded->window_start_ns),
            (unsigned long long)loaded->window.failed);
    return run_say(r, d, "round %u/%u %s: attempt %u is not valid (%s): %s", x->w->round + 1,
                   r->e->design.rounds, x->name, x->attempt, gate_name(gate), reason);
}

static enum err conclude(struct run *r, struct run_window *x, bool *valid, bool *final, struct err_detail *d)
{
    const struct msg_loaded *parts[LIMIT_HOSTS_PER_ROLE] = {NULL};
    const struct msg_loaded *loaded = NULL;
    struct msg_loaded merged = {0};
    char *failure = NULL;
    enum err e = generator_failure(r, x, &failure, d);
    if (e != ERR_OK)
        return e;
    for (size_t i = 0; failure == NULL && i < r->load_count; i++) {
        struct err_detail why;
        parts[i] = &x->loads[i].event.u.loaded;
        if (result_check(parts[i], x->load->duration_ns, &why) != ERR_OK)
            failure = mem_printf("the result of the generator on '%s' cannot be true: %s",
                                 run_agent_name(r, x->loads[i].host), why.text);
    }
    if (failure == NULL) {
        loaded = parts[0];
        if (r->load_count > 1) {
            struct err_detail why;
            if (run_merge(parts, r->load_count, &merged, &why) == ERR_OK) {
                loaded = &merged;
            } else {
                loaded = NULL;
                failure = mem_printf("the results of the load hosts cannot be merged: %s", why.text);
            }
        }
    }
    e = judge(r, x, loaded, failure, valid, final, d);
    r->has_previous = loaded != NULL;
    if (loaded != NULL)
        r->previous_end_ns = loaded->window_end_ns;
    msg_loaded_fini(&merged);
    free(failure);
    return e;
}

/* ---- attempts ------------------------------------------------------------------------------------ */

static void window_init(struct run *r, struct run_window *x, const struct design_window *w, uint32_t attempt)
{
    size_t n = r->load_count;
    *x = (struct run_window){.w = w, .cell = &r->design->cells[w->cell], .attempt = attempt};
    x->load = &r->e->workloads[x->cell->workload];
    x->loads = mem_zalloc(n, sizeof(*x->loads));
    x->procs = mem_zalloc(n, sizeof(*x->procs));
    x->last_ok = mem_zalloc(n, sizeof(*x->last_ok));
    x->last_ns = mem_zalloc(n, sizeof(*x->last_ns));
    x->ok_per_s = mem_zalloc(n, sizeof(*x->ok_per_s));
    x->heard_ns = mem_zalloc(n, sizeof(*x->heard_ns));
    design_cell_name(r->e, r->design, w->cell, x->name, sizeof(x->name));
}

static void window_fini(struct run *r, struct run_window *x)
{
    run_replies_fini(x->loads, r->load_count);
    for (int k = 0; k < EDGES; k++) {
        if (x->samples[k] != NULL)
            run_replies_fini(x->samples[k], r->o->host_count);
        free(x->samples[k]);
    }
    free(x->loads);
    free(x->procs);
    free(x->last_ok);
    free(x->last_ns);
    free(x->ok_per_s);
    free(x->heard_ns);
}

enum err run_wait_gap(struct run *r, const struct design_window *w, struct err_detail *d)
{
    char name[256];
    if (!r->has_previous || r->e->design.gap_ns == 0)
        return ERR_OK;
    design_cell_name(r->e, r->design, w->cell, name, sizeof(name));
    run_doing(r, r->e->design.gap_ns, design_load_to_end_ns(r->e, r->design, w->index), "round %u/%u %s gap",
              w->round + 1, r->e->design.rounds, name);
    return run_pause(r, r->previous_end_here_ns + r->e->design.gap_ns, d);
}

static enum err one_attempt(struct run *r, const struct design_window *w, uint32_t attempt, bool *final,
                            struct err_detail *d)
{
    struct run_window x;
    bool valid = false;
    window_init(r, &x, w, attempt);
    enum err e = run_wait_gap(r, w, d);
    if (e != ERR_OK)
        goto out;
    ask_loads(r, &x);
    r->window = &x;
    run_doing(r, x.load->warmup_ns + x.load->duration_ns,
              design_remaining_ns(r->e, r->design, (size_t)w->index + 1), "round %u/%u %s %s", w->round + 1,
              r->e->design.rounds, x.name, x.load->warmup_ns > 0 ? "warm-up" : "window");
    e = await_window(r, &x, d);
    r->window = NULL;
    if (e == ERR_OK)
        e = end_generators(r, &x, d);
    if (e == ERR_OK)
        e = conclude(r, &x, &valid, final, d);
    if (e == ERR_OK && *final && !valid)
        r->windows_invalid++;
out:
    channel_settle(r->channel);
    window_fini(r, &x);
    return e;
}

enum err run_measure_window(struct run *r, const struct design_window *w, struct err_detail *d)
{
    uint32_t made = 0;
    bool final = false;
    enum err e = store_attempts_made(r->store, r->o->job, w->index, &made, d);
    while (e == ERR_OK && !final) {
        uint32_t target = r->design->cells[w->cell].target;
        if (!r->server->up) {
            e = run_start_target(r, target, w->round, w->slot, d);
            if (e != ERR_OK || r->targets[target].failed)
                return e; /* one that came up and died at once costs an attempt: its gate says so */
        }
        e = one_attempt(r, w, ++made, &final, d);
    }
    if (e == ERR_OK) {
        r->present[w->index] = true;
        r->view.windows_done++;
    }
    return e;
}
