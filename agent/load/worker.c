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

static void enter_phase(struct worker *w, enum run_phase phase)
{
    dispatch_give_up(&w->set.dispatch, w->edge_ns);
    meter_enter(&w->set.meter, phase);
}

static void start_interval(struct worker *w, uint64_t index)
{
    w->interval_edge_ns = w->edge_ns + w->shared->interval_ns;
    meter_start_interval(&w->set.meter, index, w->edge_ns);
}

static void end_interval(struct worker *w)
{
    meter_end_interval(&w->set.meter, w->edge_ns, w->shared->intervals);
}

static void next_interval(struct worker *w)
{
    uint64_t next = w->set.meter.interval->index + 1;
    end_interval(w);
    start_interval(w, next);
}

static void enter_window(struct worker *w)
{
    enter_phase(w, PHASE_WINDOW);
    start_interval(w, 0);
    dispatch_follow(&w->set.dispatch, &w->set.share.options->schedule, w->edge_ns);
    read_cpu(&w->cpu_start_user_ns, &w->cpu_start_system_ns);
}

static void enter_drain(struct worker *w)
{
    struct tally *t = w->set.meter.tally;
    end_interval(w);
    enter_phase(w, PHASE_DRAIN);
    w->set.dispatch.loading = false;
    read_cpu(&t->cpu_user_ns, &t->cpu_system_ns);
    t->cpu_user_ns -= w->cpu_start_user_ns;
    t->cpu_system_ns -= w->cpu_start_system_ns;
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
    w->edge_ns = atomic_load_explicit(edges[w->set.meter.phase], memory_order_acquire);
    if (w->set.meter.phase == PHASE_WINDOW && w->interval_edge_ns < w->edge_ns)
        w->edge_ns = w->interval_edge_ns;
}

static bool at_phase_edge(const struct worker *w)
{
    return w->edge_ns >= atomic_load_explicit(&w->shared->window_end_ns, memory_order_acquire);
}

static void cross_edges(struct worker *w)
{
    const struct meter *m = &w->set.meter;
    while (m->now_ns >= w->edge_ns) {
        if (m->phase == PHASE_WARMUP)
            enter_window(w);
        else if (m->phase == PHASE_WINDOW && w->edge_ns == w->interval_edge_ns && !at_phase_edge(w))
            next_interval(w);
        else if (m->phase == PHASE_WINDOW)
            enter_drain(w);
        else {
            end(w);
            return;
        }
        read_edge(w);
    }
}

/* --- what the transport says --- */

static struct conn_set *listen_to(void *owner)
{
    struct worker *w = owner;
    w->set.meter.now_ns = clock_now_ns();
    w->heard = true;
    cross_edges(w); /* before anything is counted */
    return &w->set;
}

static void handle(void *owner, uint32_t slot, enum conn_event event, struct conn_input in)
{
    struct conn_set *s = listen_to(owner);
    conn_handle(s, &s->conns[slot], event, &in);
}

static void on_opened(void *owner, uint32_t slot, int error)
{
    handle(owner, slot, error == 0 ? CONN_EVENT_OPENED : CONN_EVENT_FAILED,
           (struct conn_input){.error = error});
}

static void on_bytes(void *owner, uint32_t slot, const uint8_t *data, size_t len)
{
    struct conn_set *s = listen_to(owner);
    conn_receive(s, &s->conns[slot], data, len);
}

static void on_skipped(void *owner, uint32_t slot, size_t len)
{
    handle(owner, slot, CONN_EVENT_SKIPPED, (struct conn_input){.len = len});
}

static void on_sent(void *owner, uint32_t slot)
{
    handle(owner, slot, CONN_EVENT_SENT, (struct conn_input){0});
}

static void on_ended(void *owner, uint32_t slot, int error)
{
    struct conn_set *s = listen_to(owner);
    conn_end(s, &s->conns[slot], error);
}

static const struct transport_sink sink = {
    .opened = on_opened, .bytes = on_bytes, .skipped = on_skipped, .sent = on_sent, .ended = on_ended};

/* --- life --- */

enum err worker_new(struct worker **out, const struct share *share, struct worker_shared *shared,
                    struct err_detail *d)
{
    const struct options *o = share->options;
    struct transport *transport = NULL;
    struct tls_config *tls = NULL;
    enum err e = share->target->tls ? tls_config_new(&tls, &o->tls, d) : ERR_OK;
    if (e == ERR_OK)
        e = transport_new(&transport, o->backend, share->connections, d);
    if (e != ERR_OK) {
        tls_config_free(tls);
        return e;
    }
    struct worker *w = mem_zalloc(1, sizeof *w);
    conn_set_init(&w->set, share, transport, tls);
    transport->sink = &sink;
    transport->owner = w;
    w->shared = shared;
    w->edge_ns = UINT64_MAX;
    *out = w;
    return ERR_OK;
}

void worker_free(struct worker *w)
{
    if (w == NULL)
        return;
    transport_free(w->set.transport);
    struct tls_config *tls = w->set.tls;
    conn_set_fini(&w->set);
    tls_config_free(tls);
    free(w);
}

/* --- the loop --- */

static void begin(struct worker *w)
{
    w->set.dispatch.loading = true;
    if (w->set.share.options->warmup_ns != 0)
        dispatch_follow(&w->set.dispatch, &w->set.share.options->warmup_schedule,
                        atomic_load(&w->shared->begin_ns));
    read_edge(w);
    cross_edges(w);
}

/* Every TICK_NS: reads what main has decided, and shows main how it goes. */
static void tick(struct worker *w)
{
    struct meter *m = &w->set.meter;
    meter_record(m, TALLY_LOOP_LAG, m->now_ns - w->tick_ns);
    uint64_t begin_ns = atomic_load_explicit(&w->shared->begin_ns, memory_order_acquire);
    bool begun = w->edge_ns != UINT64_MAX;
    w->tick_ns = m->now_ns + (begun ? TICK_NS : WAIT_TICK_NS);
    if (begun)
        read_edge(w);
    else if (begin_ns != 0 && m->now_ns >= begin_ns)
        begin(w);
    else if (begin_ns != 0 && begin_ns < w->tick_ns)
        w->tick_ns = begin_ns;
    meter_publish(m);
}

static uint64_t earliest(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Waits for events until something is to be done. */
static void wait_for_events(struct worker *w)
{
    struct meter *m = &w->set.meter;
    uint64_t wake_ns = earliest(earliest(w->tick_ns, w->edge_ns), w->set.next_deadline_ns);
    uint64_t paced_ns = dispatch_wake_ns(&w->set.dispatch) - w->lead_ns;
    if (paced_ns >= wake_ns) {
        transport_wait(w->set.transport, wake_ns);
        return;
    }
    transport_wait(w->set.transport, paced_ns);
    if (w->heard || paced_ns < m->now_ns)
        return;
    m->now_ns = clock_now_ns();
    uint64_t late_ns = m->now_ns > paced_ns ? m->now_ns - paced_ns : 0;
    late_ns = late_ns < LEAD_NS_MAX ? late_ns : LEAD_NS_MAX;
    w->lead_ns += late_ns / 8;
    w->lead_ns -= w->lead_ns / 8;
}

static void pin(const struct worker *w)
{
    const struct share *share = &w->set.share;
    if (!share->options->has_cpus)
        return;
    uint32_t nth = share->thread % (uint32_t)CPU_COUNT(&share->options->cpus);
    cpu_set_t one;
    CPU_ZERO(&one);
    for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &share->options->cpus) && nth-- == 0)
            CPU_SET(cpu, &one);
    must(pthread_setaffinity_np(pthread_self(), sizeof one, &one) == 0); /* run.c has tried the whole set */
}

static void *run(void *arg)
{
    struct worker *w = arg;
    struct meter *m = &w->set.meter;
    pin(w);
    (void)prctl(PR_SET_TIMERSLACK, 1UL); /* ns; the default of 50 us would make every paced request late */
    m->now_ns = clock_now_ns();
    conn_set_start(&w->set);
    while (!w->done) {
        if (!w->heard) /* else the last event has just read the clock */
            m->now_ns = clock_now_ns();
        w->heard = false;
        cross_edges(w);
        if (m->now_ns >= w->tick_ns)
            tick(w);
        if (m->now_ns >= w->set.next_deadline_ns)
            conn_set_sweep(&w->set);
        conn_set_send_due(&w->set);
        if (m->phase == PHASE_DRAIN && m->in_flight == 0)
            end(w);
        if (!w->done)
            wait_for_events(w);
    }
    m->accounts->in_flight = m->in_flight;
    conn_set_close(&w->set);
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
