#include "agent/load/conn_set.h"

#include "common/clock.h"
#include "common/mem.h"

/* Deadlines are swept at most this often; a time-out is noticed late by at most this, never early. */
#define SWEEP_NS NS_PER_MS

void conn_set_init(struct conn_set *s, const struct share *share, struct transport *transport,
                   struct tls_config *tls)
{
    const struct request_set *r = share->requests;
    uint32_t count = share->connections;
    s->share = *share;
    s->transport = transport;
    s->tls = tls;
    s->may_skip = tls == NULL && share->target->unix_socket == NULL;
    s->next_deadline_ns = UINT64_MAX;
    meter_init(&s->meter, count, share->options->open_loop);
    dispatch_init(&s->dispatch, &s->share, &s->meter);
    s->conns = mem_zalloc(count, sizeof *s->conns);
    s->quick = mem_zalloc(r->count, sizeof *s->quick);
    if (r->has_hash)
        s->sums = mem_zalloc(count, sizeof *s->sums);
    if (r->render_bytes != 0)
        s->spaces = mem_zalloc(count, r->render_bytes);
    for (uint32_t i = 0; i < count; i++) {
        struct sha256 *sum = s->sums != NULL ? &s->sums[i] : NULL;
        if (sum != NULL)
            sha256_init(sum);
        conn_init(&s->conns[i], i, s->spaces != NULL ? s->spaces + i * r->render_bytes : NULL, sum);
    }
}

void conn_set_fini(struct conn_set *s)
{
    for (uint32_t i = 0; i < s->share.connections; i++) {
        conn_fini(&s->conns[i]);
        if (s->sums != NULL)
            sha256_fini(&s->sums[i]);
    }
    free(s->conns);
    free(s->quick);
    free(s->sums);
    free(s->spaces);
    dispatch_fini(&s->dispatch);
    meter_fini(&s->meter);
}

void conn_set_start(struct conn_set *s)
{
    const struct options *o = s->share.options;
    uint64_t step_ns = o->ramp_ns / o->connections;
    for (uint32_t i = 0; i < s->share.connections; i++) {
        struct conn_input in = {.at_ns = s->meter.now_ns + step_ns * (s->share.first_slot + i)};
        conn_handle(s, &s->conns[i], CONN_EVENT_START, &in);
    }
}

void conn_set_sweep(struct conn_set *s)
{
    uint64_t now_ns = s->meter.now_ns;
    uint64_t next = UINT64_MAX;
    for (uint32_t i = 0; i < s->share.connections; i++) {
        struct conn *c = &s->conns[i];
        if (c->deadline_ns <= now_ns)
            conn_handle(s, c, CONN_EVENT_EXPIRED, &(struct conn_input){0});
        if (c->deadline_ns < next)
            next = c->deadline_ns;
    }
    s->next_deadline_ns = next > now_ns + SWEEP_NS ? next : now_ns + SWEEP_NS;
}

void conn_set_send_due(struct conn_set *s)
{
    uint32_t slot = 0;
    struct conn_input in = {0};
    while (dispatch_match(&s->dispatch, &slot, &in.at_ns))
        conn_handle(s, &s->conns[slot], CONN_EVENT_DUE, &in);
}

void conn_set_close(struct conn_set *s)
{
    for (uint32_t i = 0; i < s->share.connections; i++)
        conn_handle(s, &s->conns[i], CONN_EVENT_CLOSE, &(struct conn_input){0});
}
