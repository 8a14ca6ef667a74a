/* A window from the gap before it to the generators' end, in as many attempts as it takes. */
#include "common/mem.h"
#include "controller/run/window.h"

#include <sys/resource.h>

#define RESULT_NS (20 * NS_PER_S) /* from the end of a window to the generator's result */
#define SAMPLE_NS (2 * NS_PER_S)  /* end samples that are later than this do not come */

static uint64_t own_cpu_ns(void)
{
    struct rusage u;
    must(getrusage(RUSAGE_SELF, &u) == 0);
    return (uint64_t)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * NS_PER_S +
           (uint64_t)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * NS_PER_US;
}

/* NULL for a host that makes no load. */
static struct window_load *load_of(const struct run *r, struct window *x, uint32_t host)
{
    for (size_t i = 0; i < r->load_count; i++) {
        if (r->load_hosts[i] == host)
            return &x->loads[i];
    }
    return NULL;
}

/* ---- while it runs -------------------------------------------------------------------------------- */

/* Asks every host for its counters: of the server's tree, of its generator, of the machine. */
static void ask_samples(struct run *r, struct window *x, int edge)
{
    if (x->samples[edge] != NULL)
        return;
    x->samples[edge] = mem_zalloc(r->o->host_count, sizeof(struct run_reply));
    x->own_ns[edge] = own_cpu_ns();
    for (uint32_t h = 0; h < r->o->host_count; h++) {
        struct msg_command c = {.kind = MSG_COMMAND_SAMPLE};
        struct msg_sample *s = &c.u.sample;
        const struct window_load *load = load_of(r, x, h);
        for (size_t t = 0; h == r->server_host && t < r->e->target_count; t++) {
            if ((r->servers[t].up || &r->servers[t] == r->server) && s->proc_count < MSG_PROCS_MAX - 1)
                s->procs[s->proc_count++] = r->servers[t].proc;
        }
        if (load != NULL)
            s->procs[s->proc_count++] = load->proc;
        run_ask(r, h, &c, "read its counters", &x->samples[edge][h]);
    }
}

static void show_live(struct run *r, const struct window *x, struct window_load *l,
                      const struct msg_progress *p)
{
    if (l->last_ns != 0 && p->at_ns > l->last_ns && p->ok >= l->last_ok)
        l->ok_per_s = (double)(p->ok - l->last_ok) * 1e9 / (double)(p->at_ns - l->last_ns);
    l->last_ns = p->at_ns;
    l->last_ok = p->ok;
    double sum = 0;
    for (size_t i = 0; i < r->load_count; i++)
        sum += x->loads[i].ok_per_s;
    r->view.ok_per_s = sum < 1e15 ? (uint64_t)sum : 0;
    channel_show(r->channel, &r->view);
}

/* The first load host's edges are the window's: others start within their start skew. */
static void note_progress(struct run *r, struct window *x, uint32_t host, const struct msg_progress *p)
{
    struct window_load *l = load_of(r, x, host);
    if (l == NULL)
        return;
    bool first = l == &x->loads[0];
    switch (p->kind) {
    case MSG_PROGRESS_WARMUP_START:
        l->last_ns = p->at_ns;
        l->last_ok = 0;
        break;
    case MSG_PROGRESS_WINDOW_START:
        l->heard_ns = clock_now_ns();
        l->last_ns = p->at_ns;
        l->last_ok = 0;
        if (first) {
            ask_samples(r, x, BEFORE);
            snprintf(r->view.doing, sizeof r->view.doing, "round %u/%u %s window", x->w->round + 1,
                     r->e->design.rounds, x->name);
        }
        break;
    case MSG_PROGRESS_TICK:
        show_live(r, x, l, p);
        break;
    case MSG_PROGRESS_WINDOW_END:
        if (first) {
            ask_samples(r, x, AFTER);
            r->previous_end_here_ns = clock_now_ns();
        }
        break;
    case MSG_PROGRESS_COUNT:
        break;
    }
}

static void ask_load(struct run *r, struct window *x, size_t i)
{
    struct window_load *l = &x->loads[i];
    const struct experiment_workload *w = x->workload;
    const struct placement_seat *seat = &r->placement.load[i];
    /* The connections are the cell's, not a host's: each gets its share. */
    uint32_t all = x->cell->connections, hosts = (uint32_t)r->load_count;
    l->connections = all / hosts + (i < all % hosts ? 1 : 0);
    l->threads = placement_threads(w->threads, l->connections, seat->cpu_count);
    l->proc = r->next_proc++;
    struct msg_command c;
    msg_command_copy(&c, &(struct msg_command){.kind = MSG_COMMAND_LOAD,
                                               .u.load = {.proc = l->proc,
                                                          .port = r->e->targets[x->cell->target].port,
                                                          .request = w->request,
                                                          .connections = l->connections,
                                                          .threads = l->threads,
                                                          .warmup_ns = w->warmup_ns,
                                                          .duration_ns = w->duration_ns,
                                                          .timeout_ns = w->timeout_ns,
                                                          .has_body_bytes = w->has_body_bytes,
                                                          .body_bytes = w->body_bytes}});
    mem_set_string(&c.u.load.tool, "builtin");
    mem_set_string(&c.u.load.host, r->server_address);
    mem_set_string(&c.u.load.cpus, seat->cpus);
    run_fill_headers(r, &c.u.load.request.headers);
    run_ask(r, r->load_hosts[i], &c, "make load", &l->reply);
    msg_command_fini(&c);
}

static bool all_loads_answered(const struct run *r, const struct window *x)
{
    for (size_t i = 0; i < r->load_count; i++) {
        if (!x->loads[i].reply.answered)
            return false;
    }
    return true;
}

static void take_event(struct run *r, struct window *x, struct channel_event *event)
{
    /* A result is acknowledged when it is stored; the same host's counters would wait behind it. */
    if (event->event.kind == MSG_EVENT_LOADED && x->samples[AFTER] && x->samples[AFTER][event->host].answered)
        channel_hold(r->channel, event->host);
    if (event->event.kind == MSG_EVENT_PROGRESS) {
        note_progress(r, x, event->host, &event->event.u.progress);
        channel_event_fini(event);
        return;
    }
    for (size_t i = 0; i < r->load_count; i++) {
        if (run_give(&x->loads[i].reply, 1, event))
            return;
    }
    for (size_t k = 0; k < EDGES; k++) {
        if (x->samples[k] != NULL && run_give(x->samples[k], r->o->host_count, event))
            return;
    }
    run_note(r, event);
}

/* Until every generator has answered and the counters of the end are here (or are late). What is missing then
 * is seen by whoever looks for it. */
static enum err await_window(struct run *r, struct window *x, struct err_detail *d)
{
    uint64_t deadline_ns = x->asked_ns + x->workload->warmup_ns + x->workload->duration_ns +
                           x->workload->timeout_ns + RUN_COMMAND_NS + RESULT_NS;
    bool loaded = false;
    for (;;) {
        if (!loaded && all_loads_answered(r, x)) {
            loaded = true;
            if (x->samples[AFTER] == NULL) /* the end was not heard of: no use in asking now */
                return ERR_OK;
            deadline_ns = clock_now_ns() + SAMPLE_NS;
        }
        if (loaded && run_all_answered(x->samples[AFTER], r->o->host_count))
            return ERR_OK;
        struct channel_event event;
        enum err e = channel_next(r->channel, deadline_ns, &event, d);
        if (e != ERR_OK)
            return e == ERR_TIMEOUT ? ERR_OK : e;
        take_event(r, x, &event);
    }
}

/* A generator that gave nothing is ended before anything else is done on its host. */
static enum err end_generators(struct run *r, struct window *x, struct err_detail *d)
{
    for (size_t i = 0; i < r->load_count; i++) {
        if (x->loads[i].reply.answered)
            continue;
        struct run_reply reply;
        struct msg_command c = {.kind = MSG_COMMAND_STOP, .u.stop.proc = x->loads[i].proc};
        enum err e = run_ask_one(r, r->load_hosts[i], &c, "stop a generator", RUN_CLOSE_NS, &reply, d);
        run_reply_fini(&reply);
        if (e != ERR_OK)
            return e;
    }
    return ERR_OK;
}

/* ---- attempts ------------------------------------------------------------------------------------- */

static void window_init(struct run *r, struct window *x, const struct design_window *w, uint32_t attempt)
{
    *x = (struct window){.w = w,
                         .cell = &r->design->cells[w->cell],
                         .attempt = attempt,
                         .loads = mem_zalloc(r->load_count, sizeof(struct window_load))};
    x->workload = &r->e->workloads[x->cell->workload];
    design_cell_name(r->e, r->design, w->cell, x->name, sizeof x->name);
}

static void window_fini(struct run *r, struct window *x)
{
    for (size_t i = 0; i < r->load_count; i++)
        run_reply_fini(&x->loads[i].reply);
    free(x->loads);
    for (size_t k = 0; k < EDGES; k++) {
        if (x->samples[k] != NULL)
            run_replies_fini(x->samples[k], r->o->host_count);
        free(x->samples[k]);
    }
}

enum err run_wait_gap(struct run *r, const struct design_window *w, struct err_detail *d)
{
    char name[256];
    if (!r->has_previous || r->e->design.gap_ns == 0)
        return ERR_OK;
    design_cell_name(r->e, r->design, w->cell, name, sizeof name);
    run_doing(r, r->e->design.gap_ns, design_load_to_end_ns(r->e, r->design, w->index), "round %u/%u %s gap",
              w->round + 1, r->e->design.rounds, name);
    return run_pause(r, r->previous_end_here_ns + r->e->design.gap_ns, d);
}

static enum err conduct(struct run *r, struct window *x, struct err_detail *d)
{
    enum err e = run_wait_gap(r, x->w, d);
    if (e != ERR_OK)
        return e;
    for (size_t i = 0; i < r->load_count; i++)
        ask_load(r, x, i);
    x->asked_ns = clock_now_ns();
    x->started_wall_ns = clock_wall_ns();
    run_doing(r, x->workload->warmup_ns + x->workload->duration_ns,
              design_remaining_ns(r->e, r->design, (size_t)x->w->index + 1), "round %u/%u %s %s",
              x->w->round + 1, r->e->design.rounds, x->name,
              x->workload->warmup_ns > 0 ? "warm-up" : "window");
    e = await_window(r, x, d);
    return e == ERR_OK ? end_generators(r, x, d) : e;
}

static enum err one_attempt(struct run *r, const struct design_window *w, uint32_t attempt, bool *final,
                            struct err_detail *d)
{
    struct window x;
    window_init(r, &x, w, attempt);
    enum err e = conduct(r, &x, d);
    if (e == ERR_OK)
        e = window_judge(r, &x, d);
    *final = x.final;
    if (e == ERR_OK && x.final && !x.valid)
        r->windows_invalid++;
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
            if (e != ERR_OK || r->servers[target].failed)
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
