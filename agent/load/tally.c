#include "agent/load/tally.h"

#include "common/mem.h"

struct tally *tally_new(void)
{
    struct tally *t = mem_zalloc(1, sizeof *t);
    t->latency = hist_new();
    t->failed = hist_new();
    t->timeouts = hist_new();
    t->connect = hist_new();
    t->handshake = hist_new();
    t->handshake_resumed = hist_new();
    t->service = hist_new();
    t->send_lag = hist_new();
    t->own_lag = hist_new();
    t->loop_lag = hist_new();
    return t;
}

void tally_free(struct tally *t)
{
    if (t == NULL)
        return;
    hist_free(t->latency);
    hist_free(t->failed);
    hist_free(t->timeouts);
    hist_free(t->connect);
    hist_free(t->handshake);
    hist_free(t->handshake_resumed);
    hist_free(t->service);
    hist_free(t->send_lag);
    hist_free(t->own_lag);
    hist_free(t->loop_lag);
    free(t);
}

void tally_merge(struct tally *t, const struct tally *from)
{
    for (int p = 0; p < PHASE_COUNT; p++) {
        accounts_merge(&t->accounts[p], &from->accounts[p]);
        fault_merge(&t->faults[p], &from->faults[p]);
    }
    for (size_t i = 0; i < TALLY_STATUS_MAX; i++)
        t->status[i] += from->status[i];
    hist_merge(t->latency, from->latency);
    hist_merge(t->failed, from->failed);
    hist_merge(t->timeouts, from->timeouts);
    hist_merge(t->connect, from->connect);
    hist_merge(t->handshake, from->handshake);
    hist_merge(t->handshake_resumed, from->handshake_resumed);
    hist_merge(t->service, from->service);
    hist_merge(t->send_lag, from->send_lag);
    hist_merge(t->own_lag, from->own_lag);
    hist_merge(t->loop_lag, from->loop_lag);
    agreement_merge(&t->agreement, &from->agreement);
    audit_merge(&t->audit, &from->audit);
    for (size_t i = 0; i < REQUESTS_MAX; i++) {
        t->requests[i].ok += from->requests[i].ok;
        t->requests[i].failed += from->requests[i].failed;
    }
    t->cpu_user_ns += from->cpu_user_ns;
    t->cpu_system_ns += from->cpu_system_ns;
}
