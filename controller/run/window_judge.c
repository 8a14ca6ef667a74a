/* What came of a window: its figures, what the gates say of them, its row in the store. */
#include "common/mem.h"
#include "controller/run/gate.h"
#include "controller/run/result_check.h"
#include "controller/run/run_cpu.h"
#include "controller/run/run_merge.h"
#include "controller/run/window.h"

/* Why there is no result; NULL when there is. Owned by the caller. A missing program is not the window's
 * fault: it ends the job. */
static enum err generator_failure(struct run *r, struct window *x, char **why, struct err_detail *d)
{
    *why = NULL;
    for (size_t i = 0; i < r->load_count; i++) {
        const struct run_reply *reply = &x->loads[i].reply;
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

static void fill_cpu_hosts(const struct run *r, const struct window *x, struct run_cpu_host *hosts)
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
        if (!fits_window(&hosts[h], x->workload->duration_ns))
            hosts[h].before = hosts[h].after = NULL;
    }
}

static double foreign_cores(const struct run *r, const struct window *x, const struct run_cpu_host *hosts,
                            uint32_t host)
{
    uint64_t own = run_is_here(r, host) && x->own_ns[AFTER] > x->own_ns[BEFORE]
                       ? x->own_ns[AFTER] - x->own_ns[BEFORE]
                       : 0;
    return run_cpu_foreign(hosts, r->o->host_count, host, own);
}

static void fill_figures(const struct run *r, const struct window *x, const struct msg_loaded *loaded,
                         struct store_attempt *a)
{
    struct run_cpu_host *hosts = mem_zalloc(r->o->host_count, sizeof *hosts);
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
static double generator_room(const struct run *r, const struct window *x)
{
    double cores = 0;
    for (size_t i = 0; i < r->load_count; i++) {
        uint32_t cpus = 0, threads = 0;
        bool counted = false;
        for (size_t k = 0; k < r->load_count; k++) {
            if (k != i && !placement_same_machine(load_facts(r, i), load_facts(r, k)))
                continue;
            counted = counted || k < i;
            cpus = r->placement.load[k].cpu_count > cpus ? r->placement.load[k].cpu_count : cpus;
            threads += x->loads[k].threads;
        }
        if (!counted)
            cores += threads < cpus ? threads : cpus;
    }
    return cores;
}

/* How far apart the hosts' windows began: by their clock where they share one, else by when each was heard
 * of; UINT64_MAX when one was never heard of. */
static uint64_t start_skew(const struct run *r, const struct window *x)
{
    uint64_t skew = 0;
    for (size_t i = 0; i < r->load_count; i++) {
        for (size_t k = 0; k < i; k++) {
            uint64_t a = x->loads[i].heard_ns, b = x->loads[k].heard_ns;
            if (placement_same_machine(load_facts(r, i), load_facts(r, k))) {
                a = x->loads[i].reply.event.u.loaded.window_start_ns;
                b = x->loads[k].reply.event.u.loaded.window_start_ns;
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
static uint64_t dead_time(const struct run *r, const struct window *x, const struct msg_loaded *loaded)
{
    uint64_t asked = x->workload->warmup_ns, from = r->server->ready_ns, to = x->loads[0].heard_ns;
    if (r->has_previous && loaded != NULL) {
        asked += r->e->design.gap_ns;
        from = r->previous_end_ns;
        to = loaded->window_start_ns;
    }
    return to > from + asked ? to - from - asked : 0;
}

/* Asks the server's host for anything, because its answer comes after all that it had to say before: when the
 * load failed because the server died or its host is gone, that is known then. The generators' results are
 * not stored yet, so they stay unsettled meanwhile. */
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

static enum err judge(struct run *r, struct window *x, const struct msg_loaded *loaded, const char *failure,
                      struct err_detail *d)
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
                             .start_skew_max_ns = x->workload->duration_ns / 4, /* as for counters */
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
    /* While the server's host is gone no attempt can succeed: none is final, so a resumed job measures anew.
     */
    x->valid = a.valid = gate == GATE_NONE;
    x->final = a.final = a.valid || (gone == ERR_OK && x->attempt > r->e->gates.retries);
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

/* The load host's result, or `merged` of several. NULL and the reason, owned by the caller, when there is
 * none that can be true. */
static const struct msg_loaded *find_result(const struct run *r, const struct window *x,
                                            struct msg_loaded *merged, char **failure)
{
    const struct msg_loaded *parts[LIMIT_HOSTS_PER_ROLE];
    struct err_detail why;
    for (size_t i = 0; i < r->load_count; i++) {
        const struct run_reply *reply = &x->loads[i].reply;
        parts[i] = &reply->event.u.loaded;
        if (result_check(parts[i], x->workload->duration_ns, &why) != ERR_OK) {
            *failure = mem_printf("the result of the generator on '%s' cannot be true: %s",
                                  run_agent_name(r, reply->host), why.text);
            return NULL;
        }
    }
    if (r->load_count == 1)
        return parts[0];
    if (run_merge(parts, r->load_count, merged, &why) == ERR_OK)
        return merged;
    *failure = mem_printf("the results of the load hosts cannot be merged: %s", why.text);
    return NULL;
}

enum err window_judge(struct run *r, struct window *x, struct err_detail *d)
{
    const struct msg_loaded *loaded = NULL;
    struct msg_loaded merged = {0};
    char *failure = NULL;
    enum err e = generator_failure(r, x, &failure, d);
    if (e != ERR_OK)
        return e;
    if (failure == NULL)
        loaded = find_result(r, x, &merged, &failure);
    e = judge(r, x, loaded, failure, d);
    r->has_previous = loaded != NULL;
    if (loaded != NULL)
        r->previous_end_ns = loaded->window_end_ns;
    msg_loaded_fini(&merged);
    free(failure);
    return e;
}
