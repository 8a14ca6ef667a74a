#include "agent/load/run.h"

#include "agent/load/events.h"
#include "agent/load/hlog.h"
#include "agent/load/live.h"
#include "agent/load/worker.h"
#include "common/clock.h"
#include "common/mem.h"
#include "common/parse.h"

#include <inttypes.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

/* Between fixing the beginning and the beginning: some ticks of a waiting worker, so that none is late. */
#define NOTICE_NS (10 * NS_PER_MS)
/* Between fixing an early end and the end: more than a tick of a working worker. */
#define END_NOTICE_NS    (40 * NS_PER_MS)
#define OPENING_POLL_NS  (1 * NS_PER_MS)
#define FILES_PER_THREAD 8u
#define FILES_BESIDES    32u
/* How often finished intervals are taken from the workers. */
#define COLLECT_NS (100 * NS_PER_MS)

struct run {
    const struct options *options;
    struct worker_shared shared;
    struct worker **workers;
    uint32_t worker_count;
    bool interrupted;
    uint64_t warmup_start_ns;
    struct interval_box intervals;
    struct timeline timeline;
    struct hlog hlog;
    struct live live;
    struct edge {
        struct figure voluntary, involuntary; /* context switches of the whole program so far */
    } start, end;                             /* of the window; unknown where it was not reached */
};

static void on_point(void *arg, const struct timeline_point *p, const struct hist *latency)
{
    struct run *run = arg;
    uint64_t start_ns = atomic_load(&run->shared.window_start_ns);
    live_point(&run->live, p, p->end_ns - start_ns, run->options->duration_ns);
    if (run->hlog.file == NULL)
        return;
    if (p->start_ns == start_ns)
        hlog_start(&run->hlog, start_ns);
    hlog_add(&run->hlog, p->start_ns, p->end_ns, latency);
}

static void collect_intervals(struct run *run)
{
    timeline_add(&run->timeline, interval_box_take(&run->intervals));
}

/* Sleeps until `until_ns`; false when a signal asks for the end. */
static bool sleep_until(struct run *run, uint64_t until_ns)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    for (uint64_t now = clock_now_ns(); now < until_ns; now = clock_now_ns()) {
        uint64_t left = until_ns - now < COLLECT_NS ? until_ns - now : COLLECT_NS;
        struct timespec ts = {.tv_sec = (time_t)(left / NS_PER_S), .tv_nsec = (long)(left % NS_PER_S)};
        if (sigtimedwait(&set, NULL, &ts) > 0) {
            run->interrupted = true;
            return false;
        }
        collect_intervals(run);
    }
    return true;
}

void run_take_signals(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    must(pthread_sigmask(SIG_BLOCK, &set, NULL) == 0);
    must(signal(SIGPIPE, SIG_IGN) != SIG_ERR && signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
}

static void set_edges(struct run *run, uint64_t begin_ns, uint64_t start_ns, uint64_t end_ns)
{
    struct worker_shared *s = &run->shared;
    run->warmup_start_ns = begin_ns;
    atomic_store(&s->window_start_ns, start_ns);
    atomic_store(&s->window_end_ns, end_ns);
    atomic_store(&s->drain_end_ns, end_ns + run->options->drain_ns);
    atomic_store_explicit(&s->begin_ns, begin_ns, memory_order_release);
}

/* Moves the end of the window (and its start, when it has not begun) to just after now. */
static void end_early(struct run *run)
{
    struct worker_shared *s = &run->shared;
    uint64_t end_ns = clock_now_ns() + END_NOTICE_NS;
    if (end_ns >= atomic_load(&s->window_end_ns))
        return;
    atomic_store(&s->drain_end_ns, end_ns + run->options->drain_ns);
    atomic_store(&s->window_end_ns, end_ns);
    if (end_ns < atomic_load(&s->window_start_ns))
        atomic_store(&s->window_start_ns, end_ns);
}

static void report_progress(const struct run *run)
{
    uint64_t ok = 0;
    uint64_t failed = 0;
    for (uint32_t i = 0; i < run->worker_count; i++) {
        ok += atomic_load_explicit(&run->workers[i]->set.meter.public.ok, memory_order_relaxed);
        failed += atomic_load_explicit(&run->workers[i]->set.meter.public.failed, memory_order_relaxed);
    }
    events_progress(clock_now_ns(), ok, failed);
}

static struct edge read_edge(void)
{
    struct rusage u;
    must(getrusage(RUSAGE_SELF, &u) == 0);
    return (struct edge){figure_known((uint64_t)u.ru_nvcsw), figure_known((uint64_t)u.ru_nivcsw)};
}

static void await_window_end(struct run *run)
{
    struct worker_shared *s = &run->shared;
    uint64_t start_ns = atomic_load(&s->window_start_ns);
    uint64_t end_ns = atomic_load(&s->window_end_ns);
    bool going = true;
    if (run->warmup_start_ns < start_ns) {
        going = sleep_until(run, run->warmup_start_ns);
        events_edge("warmup_start", run->warmup_start_ns);
    }
    going = going && sleep_until(run, start_ns);
    if (going) {
        run->start = read_edge();
        events_edge("window_start", start_ns);
    }
    for (uint64_t next = start_ns + NS_PER_S; going && next < end_ns; next += NS_PER_S) {
        going = sleep_until(run, next);
        if (going)
            report_progress(run);
    }
    going = going && sleep_until(run, end_ns);
    run->end = read_edge();
    if (!going)
        end_early(run);
    events_edge("window_end", atomic_load(&s->window_end_ns));
}

static bool all_tried(const struct run *run)
{
    uint32_t i = 0;
    while (i < run->worker_count && atomic_load(&run->workers[i]->set.meter.public.untried) == 0)
        i++;
    return i == run->worker_count;
}

/* Until every connection has opened or failed, but no longer than opening one may take. */
static bool await_connections(struct run *run)
{
    uint64_t deadline_ns = clock_now_ns() + run->options->ramp_ns + run->options->timeout_ns + NS_PER_S;
    while (!all_tried(run) && clock_now_ns() < deadline_ns)
        if (!sleep_until(run, clock_now_ns() + OPENING_POLL_NS))
            return false;
    for (uint32_t i = 0; i < run->worker_count; i++)
        if (atomic_load_explicit(&run->workers[i]->set.meter.public.opened, memory_order_relaxed))
            return true;
    return false;
}

static enum err conduct(struct run *run, struct err_detail *d)
{
    const struct options *o = run->options;
    bool going = await_connections(run);
    uint64_t begin_ns = clock_now_ns() + NOTICE_NS;
    bool too_late = o->start_at_ns != 0 && o->start_at_ns < begin_ns;
    if (!going || too_late) {
        set_edges(run, begin_ns, begin_ns, begin_ns);
        return too_late && going
                   ? err_set(d, ERR_TIMEOUT,
                             "--start-at: the instant had passed when the connections were open, "
                             "%" PRIu64 " ms too late",
                             (begin_ns - o->start_at_ns) / NS_PER_MS)
                   : ERR_OK;
    }
    if (o->start_at_ns != 0)
        begin_ns = o->start_at_ns;
    uint64_t start_ns = begin_ns + o->warmup_ns;
    set_edges(run, begin_ns, start_ns, start_ns + o->duration_ns);
    await_window_end(run);
    return ERR_OK;
}

static enum err start_workers(struct run *run, const struct run_plan *plan, struct err_detail *d)
{
    const struct options *o = run->options;
    run->workers = mem_zalloc(o->threads, sizeof(struct worker *));
    uint32_t first = 0;
    for (uint32_t i = 0; i < o->threads; i++) {
        struct share share = {.options = o,
                              .target = plan->target,
                              .requests = plan->requests,
                              .thread = i,
                              .connections = o->connections / o->threads + (i < o->connections % o->threads),
                              .first_slot = first};
        first += share.connections;
        struct worker *w = NULL;
        enum err e = worker_new(&w, &share, &run->shared, d);
        if (e == ERR_OK)
            e = worker_start(w, d);
        if (e != ERR_OK) {
            worker_free(w);
            return e;
        }
        run->workers[run->worker_count++] = w;
    }
    return ERR_OK;
}

static void measure(const struct run *run, struct run_result *out)
{
    struct rusage u;
    must(getrusage(RUSAGE_SELF, &u) == 0);
    const struct tally *t = out->tally;
    const struct accounts *w = &t->accounts[PHASE_WINDOW];
    uint64_t sent = 0, responses = 0;
    for (int p = 0; p < PHASE_COUNT; p++) {
        sent += t->accounts[p].sent;
        responses += t->accounts[p].responses;
    }
    out->figures[FIGURE_REQUESTS_SENT] = figure_known(sent);
    out->figures[FIGURE_RESPONSES] = figure_known(responses);
    out->figures[FIGURE_BODY_BYTES] = figure_known(w->body_bytes);
    out->figures[FIGURE_WIRE_IN_BYTES] = figure_known(w->wire_in);
    out->figures[FIGURE_WIRE_OUT_BYTES] = figure_known(w->wire_out);
    out->figures[FIGURE_SHORT_BODIES] = figure_known(w->short_bodies);
    out->figures[FIGURE_CPU_USER_NS] = figure_known(t->cpu_user_ns);
    out->figures[FIGURE_CPU_SYSTEM_NS] = figure_known(t->cpu_system_ns);
    out->figures[FIGURE_CONTEXT_SWITCHES_VOLUNTARY] = figure_grown(run->start.voluntary, run->end.voluntary);
    out->figures[FIGURE_CONTEXT_SWITCHES_INVOLUNTARY] =
        figure_grown(run->start.involuntary, run->end.involuntary);
    out->figures[FIGURE_RSS_BYTES_MAX] = figure_known((uint64_t)u.ru_maxrss * 1024);
}

static void collect(struct run *run, struct run_result *out)
{
    *out = (struct run_result){.tally = tally_new(),
                               .warmup_start_ns = run->warmup_start_ns,
                               .window_start_ns = atomic_load(&run->shared.window_start_ns),
                               .window_end_ns = atomic_load(&run->shared.window_end_ns),
                               .interrupted = run->interrupted,
                               .backend = run->workers[0]->set.transport->ops->name,
                               .interval_ns = run->shared.interval_ns,
                               .point_count = run->timeline.count};
    out->points = run->timeline.points;
    run->timeline.points = NULL;
    double window = (double)(out->window_end_ns - out->window_start_ns);
    double busiest = 0;
    out->thread_shares = mem_zalloc(run->worker_count, sizeof(double));
    for (uint32_t i = 0; i < run->worker_count; i++) {
        const struct tally *t = run->workers[i]->set.meter.tally;
        tally_merge(out->tally, t);
        double share = window > 0 ? (double)(t->cpu_user_ns + t->cpu_system_ns) / window : 0;
        out->thread_shares[i] = share;
        busiest = share > busiest ? share : busiest;
    }
    measure(run, out);
    out->verdict = audit_judge(busiest, run->options->open_loop ? &out->tally->hists[TALLY_OWN_LAG] : NULL,
                               &out->tally->hists[TALLY_LATENCY]);
}

/* A connection each, and what loops and logs need: refused beforehand, not failed one by one. */
static enum err raise_file_limit(const struct options *o, struct err_detail *d)
{
    struct rlimit limit;
    must(getrlimit(RLIMIT_NOFILE, &limit) == 0);
    uint64_t needed = (uint64_t)o->connections + FILES_PER_THREAD * o->threads + FILES_BESIDES;
    if (limit.rlim_max < needed)
        return err_set(d, ERR_FULL,
                       "%u connections need %" PRIu64 " open files, and %" PRIu64
                       " are allowed: raise the hard limit (ulimit -Hn)",
                       o->connections, needed, (uint64_t)limit.rlim_max);
    if (limit.rlim_cur < needed) {
        limit.rlim_cur = needed;
        must(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    }
    return ERR_OK;
}

/* Threads are pinned one by one, later; whether they can be is found out here. */
static enum err check_cpus(const struct options *o, struct err_detail *d)
{
    cpu_set_t before;
    cpu_set_t got;
    char text[256];
    must(sched_getaffinity(0, sizeof before, &before) == 0);
    if (!o->has_cpus)
        return ERR_OK;
    bool ok = sched_setaffinity(0, sizeof o->cpus, &o->cpus) == 0 &&
              sched_getaffinity(0, sizeof got, &got) == 0 && CPU_EQUAL(&got, &o->cpus);
    must(sched_setaffinity(0, sizeof before, &before) == 0);
    return ok ? ERR_OK
              : err_set(d, ERR_INVALID, "--cpus: not all of %s can be used here",
                        parse_cpus_text(&o->cpus, text, sizeof text));
}

static enum err set_up(struct run *run, const struct run_plan *plan, struct err_detail *d)
{
    const struct options *o = plan->options;
    run->options = o;
    interval_box_init(&run->intervals);
    timeline_init(&run->timeline, o->threads, on_point, run);
    run->shared.intervals = &run->intervals;
    run->shared.interval_ns =
        o->report_every_ns != 0 ? o->report_every_ns : timeline_interval(o->duration_ns);
    run->live.lines = o->report_every_ns != 0;
    run->live.redraw = o->output == OUTPUT_TEXT && !o->events && isatty(STDERR_FILENO) == 1;
    enum err e = raise_file_limit(o, d);
    if (e == ERR_OK)
        e = check_cpus(o, d);
    if (e == ERR_OK && o->hlog_path != NULL)
        e = hlog_open(&run->hlog, o->hlog_path, d);
    return e == ERR_OK ? start_workers(run, plan, d) : e;
}

static void tear_down(struct run *run)
{
    for (uint32_t i = 0; i < run->worker_count; i++)
        worker_free(run->workers[i]);
    free(run->workers);
    timeline_fini(&run->timeline);
    interval_box_fini(&run->intervals);
}

enum err run_load(struct run_result *out, const struct run_plan *plan, struct err_detail *d)
{
    struct run run = {0};
    enum err e = set_up(&run, plan, d);
    if (e == ERR_OK) {
        live_say(&run.live, "opening connections");
        e = conduct(&run, d);
    } else {
        uint64_t now = clock_now_ns();
        set_edges(&run, now, now, now);
    }
    for (uint32_t i = 0; i < run.worker_count; i++)
        worker_join(run.workers[i]);
    collect_intervals(&run);
    live_end(&run.live);
    enum err closed = hlog_close(&run.hlog, e == ERR_OK ? d : NULL);
    if (e == ERR_OK)
        e = closed;
    if (e == ERR_OK)
        collect(&run, out);
    tear_down(&run);
    return e;
}

void run_result_fini(struct run_result *r)
{
    tally_free(r->tally);
    free(r->thread_shares);
    free(r->points);
    *r = (struct run_result){0};
}
