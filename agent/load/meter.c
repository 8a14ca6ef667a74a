#include "agent/load/meter.h"

#include "common/mem.h"

void meter_init(struct meter *m, uint32_t connections, bool open_loop)
{
    *m = (struct meter){.tally = tally_new(), .phase = PHASE_WARMUP, .open_loop = open_loop};
    m->accounts = &m->tally->accounts[PHASE_WARMUP];
    atomic_store(&m->public.untried, connections);
}

void meter_fini(struct meter *m)
{
    interval_free(m->interval);
    tally_free(m->tally);
}

/* --- phases --- */

void meter_enter(struct meter *m, enum run_phase phase)
{
    m->accounts->in_flight = m->in_flight;
    m->phase = phase;
    m->accounts = &m->tally->accounts[phase];
    m->accounts->carried_in = m->in_flight;
    m->accounts->scheduled = m->in_flight;
}

void meter_start_interval(struct meter *m, uint64_t index, uint64_t start_ns)
{
    m->interval = interval_new(index, start_ns);
    m->failed_before = m->accounts->failed;
}

void meter_end_interval(struct meter *m, uint64_t end_ns, struct interval_box *box)
{
    m->interval->end_ns = end_ns;
    m->interval->failed = m->accounts->failed - m->failed_before;
    hist_merge(&m->tally->hists[TALLY_LATENCY], &m->interval->latency);
    interval_box_put(box, &m->interval);
}

void meter_publish(struct meter *m)
{
    const struct accounts *window = &m->tally->accounts[PHASE_WINDOW];
    atomic_store_explicit(&m->public.ok, window->ok, memory_order_relaxed);
    atomic_store_explicit(&m->public.failed, window->failed, memory_order_relaxed);
}

/* --- requests --- */

void meter_answer(struct meter *m, uint16_t status)
{
    m->in_flight--;
    m->accounts->responses++;
    if (m->phase == PHASE_WINDOW)
        m->tally->status[status]++;
}

void meter_ok(struct meter *m, const struct meter_request *r, uint64_t body_bytes)
{
    m->accounts->ok++;
    m->accounts->body_bytes += body_bytes;
    if (m->phase != PHASE_WINDOW)
        return;
    m->tally->requests[r->index].ok++;
    hist_record(&m->interval->latency, m->now_ns - r->intended_ns);
    if (m->open_loop)
        meter_record(m, TALLY_SERVICE, m->now_ns - r->sent_ns);
}

void meter_fail_unsent(struct meter *m, const struct fault *f)
{
    m->accounts->failed++;
    fault_note(&m->tally->faults[m->phase], f);
}

static void count_failed(struct meter *m, const struct meter_request *r, const struct fault *f)
{
    meter_fail_unsent(m, f);
    if (m->phase == PHASE_WINDOW)
        m->tally->requests[r->index].failed++;
}

void meter_refuse(struct meter *m, const struct meter_request *r, const struct fault *f)
{
    count_failed(m, r, f);
    meter_record(m, TALLY_FAILED, m->now_ns - r->intended_ns);
}

void meter_fail(struct meter *m, const struct meter_request *r, const struct fault *f)
{
    m->in_flight--;
    count_failed(m, r, f);
    if (f->cause == CAUSE_TIMEOUT)
        meter_record(m, TALLY_TIMEOUTS, m->now_ns - r->intended_ns);
}

/* --- connections --- */

void meter_tried(struct meter *m, bool opened)
{
    if (opened)
        atomic_store(&m->public.opened, true);
    must(atomic_fetch_sub(&m->public.untried, 1) > 0);
}

void meter_agreed(struct meter *m, const struct tls_agreed *agreed, uint64_t ns)
{
    agreement_note(&m->tally->agreement, agreed);
    meter_record(m, agreed->resumed ? TALLY_HANDSHAKE_RESUMED : TALLY_HANDSHAKE, ns);
}
