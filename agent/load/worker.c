#include "agent/load/worker.h"

#include "common/clock.h"
#include "common/mem.h"

#include <errno.h>
#include <sys/prctl.h>
#include <sys/resource.h>

/* How often a worker looks at what main wants: an early end is announced further ahead than this. */
#define TICK_NS (20 * NS_PER_MS)
/* The same while it waits for the beginning, which is announced only just ahead: nothing else runs then. */
#define WAIT_TICK_NS (2 * NS_PER_MS)
/* Deadlines are swept at most this often; a time-out is noticed late by at most this, never early. */
#define SWEEP_NS NS_PER_MS
/*
 * A sleeping thread wakes late, by tens of microseconds and about as late each time. So it is woken earlier
 * by what was usual lately, and polls for the rest: at most this long, a small share of a CPU.
 */
#define LEAD_NS_MAX (60 * NS_PER_US)

/* --- the edges of the phases --- */

static void read_cpu(uint64_t *user_ns, uint64_t *system_ns)
{
    struct rusage u;
    must(getrusage(RUSAGE_THREAD, &u) == 0);
    *user_ns = (uint64_t)u.ru_utime.tv_sec * NS_PER_S + (uint64_t)u.ru_utime.tv_usec * NS_PER_US;
    *system_ns = (uint64_t)u.ru_stime.tv_sec * NS_PER_S + (uint64_t)u.ru_stime.tv_usec * NS_PER_US;
}

/* What was due before the edge and is still unsent will never be sent: the next phase has its own schedule.
 */
static void give_up_queue(struct worker *w)
{
    for (; w->pacer.next_ns < w->edge_ns; pacer_advance(&w->pacer)) {
        w->accounts->scheduled++;
        w->accounts->never_sent++;
    }
    w->pacer.next_ns = UINT64_MAX;
}

static void enter_phase(struct worker *w, enum run_phase phase)
{
    give_up_queue(w);
    w->accounts->in_flight = w->in_flight;
    w->phase = phase;
    w->accounts = &w->tally->accounts[phase];
    w->accounts->carried_in = w->in_flight;
    w->accounts->scheduled = w->in_flight;
}

static void start_interval(struct worker *w, uint64_t index, uint64_t start_ns)
{
    w->interval = interval_new(index, start_ns);
    w->interval_edge_ns = start_ns + w->shared->interval_ns;
    w->failed_before = w->accounts->failed;
}

static void end_interval(struct worker *w)
{
    struct interval *i = w->interval;
    i->end_ns = w->edge_ns;
    i->failed = w->accounts->failed - w->failed_before;
    hist_merge(&w->tally->hists[TALLY_LATENCY], &i->latency);
    interval_box_put(w->shared->intervals, &w->interval);
}

static void next_interval(struct worker *w)
{
    uint64_t next = w->interval->index + 1;
    end_interval(w);
    start_interval(w, next, w->edge_ns);
}

static void enter_window(struct worker *w)
{
    uint64_t start_ns = w->edge_ns;
    enter_phase(w, PHASE_WINDOW);
    start_interval(w, 0, start_ns);
    if (w->options->open_loop)
        pacer_init(&w->pacer, &w->options->schedule, start_ns, w->index, w->options->threads,
                   w->options->seed);
    read_cpu(&w->cpu_start_user_ns, &w->cpu_start_system_ns);
}

static void enter_drain(struct worker *w)
{
    end_interval(w);
    enter_phase(w, PHASE_DRAIN);
    w->loading = false;
    read_cpu(&w->tally->cpu_user_ns, &w->tally->cpu_system_ns);
    w->tally->cpu_user_ns -= w->cpu_start_user_ns;
    w->tally->cpu_system_ns -= w->cpu_start_system_ns;
}

/* What else is heard in the same round still counts: the rest is in flight when the loop is left. */
static void end(struct worker *w)
{
    w->edge_ns = UINT64_MAX;
    w->done = true;
}

/* The next edge as main wants it now: it may have moved to an earlier instant. */
static void read_edge(struct worker *w)
{
    _Atomic uint64_t *edges[PHASE_COUNT] = {&w->shared->window_start_ns, &w->shared->window_end_ns,
                                            &w->shared->drain_end_ns};
    w->edge_ns = atomic_load_explicit(edges[w->phase], memory_order_acquire);
    if (w->phase == PHASE_WINDOW && w->interval_edge_ns < w->edge_ns)
        w->edge_ns = w->interval_edge_ns;
}

static bool at_phase_edge(const struct worker *w)
{
    return w->edge_ns >= atomic_load_explicit(&w->shared->window_end_ns, memory_order_acquire);
}

static void cross_edges(struct worker *w)
{
    while (w->now_ns >= w->edge_ns) {
        if (w->phase == PHASE_WARMUP)
            enter_window(w);
        else if (w->phase == PHASE_WINDOW && w->edge_ns == w->interval_edge_ns && !at_phase_edge(w))
            next_interval(w);
        else if (w->phase == PHASE_WINDOW)
            enter_drain(w);
        else {
            end(w);
            return;
        }
        read_edge(w);
    }
}

/* --- the transport's voice --- */

static struct worker *listen_to(void *owner)
{
    struct worker *w = owner;
    w->now_ns = clock_now_ns();
    w->heard = true;
    cross_edges(w); /* before anything is counted */
    return w;
}

static void say(void *owner, uint32_t slot, enum conn_event event, struct conn_input in)
{
    struct worker *w = listen_to(owner);
    conn_handle(w, &w->conns[slot], event, &in);
}

static void on_opened(void *owner, uint32_t slot, int error)
{
    say(owner, slot, error == 0 ? CONN_EVENT_OPENED : CONN_EVENT_FAILED, (struct conn_input){.error = error});
}

static void on_bytes(void *owner, uint32_t slot, const uint8_t *data, size_t len)
{
    struct worker *w = listen_to(owner);
    conn_receive(w, &w->conns[slot], data, len);
}

static void on_skipped(void *owner, uint32_t slot, size_t len)
{
    say(owner, slot, CONN_EVENT_SKIPPED, (struct conn_input){.len = len});
}

static void on_sent(void *owner, uint32_t slot)
{
    say(owner, slot, CONN_EVENT_SENT, (struct conn_input){0});
}

static void on_ended(void *owner, uint32_t slot, int error)
{
    struct worker *w = listen_to(owner);
    conn_end(w, &w->conns[slot], error);
}

static const struct transport_sink sink = {
    .opened = on_opened, .bytes = on_bytes, .skipped = on_skipped, .sent = on_sent, .ended = on_ended};

/* --- life --- */

static void make_connections(struct worker *w)
{
    const struct request_set *s = w->requests;
    w->conns = mem_zalloc(w->conn_count, sizeof *w->conns);
    w->idle = mem_zalloc(w->conn_count, sizeof *w->idle);
    w->quick = mem_zalloc(s->count, sizeof *w->quick);
    if (s->has_hash)
        w->sums = mem_zalloc(w->conn_count, sizeof *w->sums);
    if (s->render_bytes != 0)
        w->spaces = mem_zalloc(w->conn_count, s->render_bytes);
    for (uint32_t i = 0; w->sums != NULL && i < w->conn_count; i++)
        sha256_init(&w->sums[i]);
    for (uint32_t i = 0; i < w->conn_count; i++)
        conn_init(&w->conns[i], i, w->spaces != NULL ? w->spaces + i * s->render_bytes : NULL,
                  w->sums != NULL ? &w->sums[i] : NULL);
}

enum err worker_new(struct worker **out, const struct worker_config *config, struct err_detail *d)
{
    struct transport *transport = NULL;
    struct tls_config *tls = NULL;
    enum err e = config->target->tls ? tls_config_new(&tls, &config->options->tls, d) : ERR_OK;
    if (e == ERR_OK)
        e = transport_new(&transport, config->options->backend, config->connections, d);
    if (e != ERR_OK) {
        tls_config_free(tls);
        return e;
    }
    struct worker *w = mem_zalloc(1, sizeof *w);
    w->transport = transport;
    transport->sink = &sink;
    transport->owner = w;
    w->options = config->options;
    w->target = config->target;
    w->requests = config->requests;
    w->turn = config->first_slot % w->requests->cycle_len;
    template_state_init(&w->template_state, config->index, w->options->threads, w->options->seed);
    w->tls = tls;
    w->may_skip = w->tls == NULL && w->target->unix_socket == NULL;
    w->shared = config->shared;
    w->index = config->index;
    w->first_slot = config->first_slot;
    w->conn_count = config->connections;
    w->unsettled = config->connections;
    make_connections(w);
    w->tally = tally_new();
    w->phase = PHASE_WARMUP;
    w->accounts = &w->tally->accounts[PHASE_WARMUP];
    w->edge_ns = UINT64_MAX;
    w->pacer.next_ns = UINT64_MAX;
    w->next_deadline_ns = UINT64_MAX;
    *out = w;
    return ERR_OK;
}

void worker_free(struct worker *w)
{
    if (w == NULL)
        return;
    transport_free(w->transport);
    for (uint32_t i = 0; i < w->conn_count; i++)
        conn_fini(&w->conns[i]);
    tls_config_free(w->tls);
    free(w->conns);
    free(w->idle);
    free(w->quick);
    for (uint32_t i = 0; w->sums != NULL && i < w->conn_count; i++)
        sha256_fini(&w->sums[i]);
    free(w->sums);
    free(w->spaces);
    interval_free(w->interval);
    tally_free(w->tally);
    free(w);
}

/* --- what to do with a free connection --- */

static void send_now(struct worker *w, struct conn *c)
{
    w->accounts->scheduled++;
    conn_send(w, c, w->now_ns);
}

/* Open loop: the request that is due goes out. */
static void send_due(struct worker *w, struct conn *c)
{
    uint64_t intended_ns = w->pacer.next_ns;
    pacer_advance(&w->pacer);
    w->accounts->scheduled++;
    if (w->phase == PHASE_WINDOW) {
        hist_record(&w->tally->hists[TALLY_SEND_LAG], w->now_ns - intended_ns);
        audit_send(&w->tally->audit, intended_ns, w->now_ns);
    }
    conn_send(w, c, intended_ns);
}

/* The nth place of the ring of idle connections, from the one that has been idle longest. */
static uint32_t idle_place(const struct worker *w, uint32_t nth)
{
    uint32_t place = w->idle_head + nth;
    return place < w->conn_count ? place : place - w->conn_count;
}

void worker_ready(struct worker *w, struct conn *c)
{
    if (w->loading && !w->options->open_loop) {
        send_now(w, c);
        return;
    }
    if (w->pacer.next_ns <= w->now_ns) {
        send_due(w, c);
        return;
    }
    w->idle[idle_place(w, w->idle_count)] = c->slot;
    w->idle_count++;
}

void worker_unready(struct worker *w, struct conn *c)
{
    for (uint32_t i = 0; i < w->idle_count; i++) {
        uint32_t *entry = &w->idle[idle_place(w, i)];
        if (*entry != c->slot)
            continue;
        *entry = w->idle[w->idle_head];
        w->idle_head = idle_place(w, 1);
        w->idle_count--;
        return;
    }
    must_never("a ready connection that is not among the idle ones");
}

static struct conn *take_idle(struct worker *w)
{
    struct conn *c = &w->conns[w->idle[w->idle_head]];
    w->idle_head = idle_place(w, 1);
    w->idle_count--;
    return c;
}

void worker_settled(struct worker *w, bool opened)
{
    if (opened)
        atomic_store_explicit(&w->public.opened, true, memory_order_relaxed);
    must(w->unsettled > 0);
    if (--w->unsettled == 0)
        atomic_fetch_add(&w->shared->settled, 1);
}

/* --- the loop --- */

/* Requests that are due and for which a connection is free. */
static void pace(struct worker *w)
{
    while (w->pacer.next_ns <= w->now_ns && w->idle_count != 0) {
        if (w->phase == PHASE_WINDOW)
            hist_record(&w->tally->hists[TALLY_OWN_LAG], w->now_ns - w->pacer.next_ns);
        send_due(w, take_idle(w));
    }
}

static void begin(struct worker *w)
{
    const struct options *o = w->options;
    w->loading = true;
    if (o->open_loop && o->warmup_ns != 0)
        pacer_init(&w->pacer, &o->warmup_schedule, atomic_load(&w->shared->begin_ns), w->index, o->threads,
                   o->seed);
    read_edge(w);
    cross_edges(w);
    while (!o->open_loop && w->loading && w->idle_count != 0)
        send_now(w, take_idle(w));
}

static void sweep(struct worker *w)
{
    w->next_deadline_ns = UINT64_MAX;
    uint64_t next = UINT64_MAX;
    for (uint32_t i = 0; i < w->conn_count; i++) {
        struct conn *c = &w->conns[i];
        if (c->deadline_ns <= w->now_ns)
            conn_handle(w, c, CONN_EVENT_EXPIRED, &(struct conn_input){0});
        if (c->deadline_ns < next)
            next = c->deadline_ns;
    }
    w->next_deadline_ns = next > w->now_ns + SWEEP_NS ? next : w->now_ns + SWEEP_NS;
}

/* Slow business, every TICK_NS: what does main want, and what may it know? */
static void tick(struct worker *w)
{
    if (w->phase == PHASE_WINDOW)
        hist_record(&w->tally->hists[TALLY_LOOP_LAG], w->now_ns - w->tick_ns);
    uint64_t begin_ns = atomic_load_explicit(&w->shared->begin_ns, memory_order_acquire);
    bool begun = w->edge_ns != UINT64_MAX;
    w->tick_ns = w->now_ns + (begun ? TICK_NS : WAIT_TICK_NS);
    if (begun)
        read_edge(w);
    else if (begin_ns != 0 && w->now_ns >= begin_ns)
        begin(w);
    else if (begin_ns != 0 && begin_ns < w->tick_ns)
        w->tick_ns = begin_ns;
    const struct accounts *a = &w->tally->accounts[PHASE_WINDOW];
    atomic_store_explicit(&w->public.ok, a->ok, memory_order_relaxed);
    atomic_store_explicit(&w->public.failed, a->failed, memory_order_relaxed);
}

static uint64_t earliest(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Waits for events until something is to be done. */
static void wait_for_events(struct worker *w)
{
    uint64_t wake_ns = earliest(earliest(w->tick_ns, w->edge_ns), w->next_deadline_ns);
    uint64_t paced_ns = w->idle_count != 0 ? w->pacer.next_ns - w->lead_ns : UINT64_MAX;
    if (paced_ns >= wake_ns) {
        transport_wait(w->transport, wake_ns);
        return;
    }
    transport_wait(w->transport, paced_ns);
    if (w->heard || paced_ns < w->now_ns)
        return;
    w->now_ns = clock_now_ns();
    uint64_t late_ns = w->now_ns > paced_ns ? w->now_ns - paced_ns : 0;
    late_ns = late_ns < LEAD_NS_MAX ? late_ns : LEAD_NS_MAX;
    w->lead_ns += late_ns / 8;
    w->lead_ns -= w->lead_ns / 8;
}

static void pin(const struct worker *w)
{
    if (!w->options->has_cpus)
        return;
    uint32_t nth = w->index % (uint32_t)CPU_COUNT(&w->options->cpus);
    cpu_set_t one;
    CPU_ZERO(&one);
    for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &w->options->cpus) && nth-- == 0)
            CPU_SET(cpu, &one);
    must(pthread_setaffinity_np(pthread_self(), sizeof one, &one) == 0); /* run.c has tried the whole set */
}

/* When this connection is opened, after the start. */
static uint64_t ramp_share(const struct worker *w, uint32_t i)
{
    return w->options->ramp_ns / w->options->connections * (w->first_slot + i);
}

static void *run(void *arg)
{
    struct worker *w = arg;
    pin(w);
    (void)prctl(PR_SET_TIMERSLACK, 1UL); /* ns; the default of 50 us would make every paced request late */
    w->now_ns = clock_now_ns();
    for (uint32_t i = 0; i < w->conn_count; i++)
        conn_open_at(w, &w->conns[i], w->now_ns + ramp_share(w, i));
    while (!w->done) {
        if (!w->heard) /* else the last event has just read the clock */
            w->now_ns = clock_now_ns();
        w->heard = false;
        cross_edges(w);
        if (w->now_ns >= w->tick_ns)
            tick(w);
        if (w->now_ns >= w->next_deadline_ns)
            sweep(w);
        pace(w);
        if (w->phase == PHASE_DRAIN && w->in_flight == 0)
            end(w);
        if (!w->done)
            wait_for_events(w);
    }
    w->accounts->in_flight = w->in_flight;
    for (uint32_t i = 0; i < w->conn_count; i++)
        conn_close(w, &w->conns[i]);
    return NULL;
}

enum err worker_start(struct worker *w, struct err_detail *d)
{
    int rc = pthread_create(&w->thread, NULL, run, w);
    return rc == 0 ? ERR_OK : err_set(d, ERR_FAILED, "cannot start a thread: %s", strerror(rc));
}

void worker_join(struct worker *w)
{
    must(pthread_join(w->thread, NULL) == 0);
}
