#include "agent/load/dispatch.h"

#include "common/mem.h"

void dispatch_init(struct dispatch *d, const struct share *share, struct meter *meter)
{
    *d = (struct dispatch){.meter = meter,
                           .share = share,
                           .pacer.next_ns = UINT64_MAX,
                           .turn = share->first_slot % share->requests->cycle_len};
    d->idle = mem_zalloc(share->connections, sizeof *d->idle);
    template_state_init(&d->template_state, share->thread, share->options->threads, share->options->seed);
}

void dispatch_fini(struct dispatch *d)
{
    free(d->idle);
}

void dispatch_follow(struct dispatch *d, const struct pacer_schedule *s, uint64_t start_ns)
{
    const struct options *o = d->share->options;
    if (o->open_loop)
        pacer_init(&d->pacer, s, start_ns, d->share->thread, o->threads, o->seed);
}

void dispatch_give_up(struct dispatch *d, uint64_t edge_ns)
{
    for (; d->pacer.next_ns < edge_ns; pacer_advance(&d->pacer)) {
        d->meter->accounts->scheduled++;
        d->meter->accounts->never_sent++;
    }
    d->pacer.next_ns = UINT64_MAX;
}

static bool is_due(const struct dispatch *d)
{
    return d->share->options->open_loop ? d->pacer.next_ns <= d->meter->now_ns : d->loading;
}

/* Takes the request that is due, to be sent now; when it was due. */
static uint64_t take_due(struct dispatch *d)
{
    struct meter *m = d->meter;
    m->accounts->scheduled++;
    if (!d->share->options->open_loop)
        return m->now_ns;
    uint64_t intended_ns = d->pacer.next_ns;
    pacer_advance(&d->pacer);
    meter_record(m, TALLY_SEND_LAG, m->now_ns - intended_ns);
    if (m->phase == PHASE_WINDOW)
        audit_send(&m->tally->audit, intended_ns, m->now_ns);
    return intended_ns;
}

bool dispatch_take_waiting(struct dispatch *d)
{
    if (d->meter->phase == PHASE_DRAIN || (d->loading && !is_due(d)))
        return false;
    d->meter->accounts->scheduled++;
    if (d->pacer.next_ns <= d->meter->now_ns)
        pacer_advance(&d->pacer);
    return true;
}

/* --- idle connections --- */

/* The nth place of the ring, from the one that has been idle longest. */
static uint32_t place(const struct dispatch *d, uint32_t nth)
{
    uint32_t at = d->idle_head + nth;
    uint32_t slots = d->share->connections;
    return at < slots ? at : at - slots;
}

static uint32_t take_first_idle(struct dispatch *d)
{
    uint32_t slot = d->idle[d->idle_head];
    d->idle_head = place(d, 1);
    d->idle_count--;
    return slot;
}

bool dispatch_claim(struct dispatch *d, uint32_t slot, uint64_t *intended_ns)
{
    if (is_due(d)) {
        *intended_ns = take_due(d);
        return true;
    }
    d->idle[place(d, d->idle_count++)] = slot;
    return false;
}

void dispatch_withdraw(struct dispatch *d, uint32_t slot)
{
    uint32_t nth = 0;
    while (nth < d->idle_count && d->idle[place(d, nth)] != slot)
        nth++;
    must(nth < d->idle_count);
    uint32_t at = place(d, nth);
    d->idle[at] = take_first_idle(d);
}

bool dispatch_match(struct dispatch *d, uint32_t *slot, uint64_t *intended_ns)
{
    if (d->idle_count == 0 || !is_due(d))
        return false;
    *slot = take_first_idle(d);
    if (d->share->options->open_loop)
        meter_record(d->meter, TALLY_OWN_LAG, d->meter->now_ns - d->pacer.next_ns);
    *intended_ns = take_due(d);
    return true;
}
