#include "agent/load/tally.h"

#include "common/mem.h"

const struct tally_hist_row tally_hist_rows[TALLY_HIST_COUNT] = {
#define X(name, key, runs, form, time) [TALLY_##name] = {key, TALLY_##runs, TALLY_##form, TALLY_##time},
    TALLY_HISTS(X)
#undef X
};

struct tally *tally_new(void)
{
    struct tally *t = mem_zalloc(1, sizeof *t);
    for (int h = 0; h < TALLY_HIST_COUNT; h++)
        t->hists[h].min = UINT64_MAX;
    return t;
}

void tally_free(struct tally *t)
{
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
    for (int h = 0; h < TALLY_HIST_COUNT; h++)
        hist_merge(&t->hists[h], &from->hists[h]);
    agreement_merge(&t->agreement, &from->agreement);
    audit_merge(&t->audit, &from->audit);
    for (size_t i = 0; i < REQUESTS_MAX; i++) {
        t->requests[i].ok += from->requests[i].ok;
        t->requests[i].failed += from->requests[i].failed;
    }
    t->cpu_user_ns += from->cpu_user_ns;
    t->cpu_system_ns += from->cpu_system_ns;
}
