#include "agent/load/fault.h"

#include <errno.h>

const char *fault_phase_text(enum fault_phase phase)
{
    static const char *const texts[] = {
#define X(name, text) text,
        FAULT_PHASES(X)
#undef X
    };
    return texts[phase];
}

const char *fault_cause_text(enum fault_cause cause)
{
    static const char *const texts[] = {
#define X(name, text) text,
        FAULT_CAUSES(X)
#undef X
    };
    return texts[cause];
}

enum fault_cause fault_cause_of_errno(int errnum)
{
    switch (errnum) {
    case ECONNREFUSED:
    case ENOENT: /* a unix socket that is not there */
        return CAUSE_REFUSED;
    case ECONNRESET:
    case EPIPE:
        return CAUSE_RESET;
    case ETIMEDOUT:
        return CAUSE_TIMEOUT;
    case EHOSTUNREACH:
    case ENETUNREACH:
    case ENETDOWN:
        return CAUSE_UNREACHABLE;
    case EADDRNOTAVAIL:
    case EADDRINUSE:
    case EMFILE:
    case ENFILE:
    case ENOBUFS:
    case ENOMEM:
        return CAUSE_LOCAL;
    default:
        return CAUSE_OTHER;
    }
}

void fault_note(struct fault_table *t, const struct fault *f)
{
    struct fault_cell *cell = &t->cells[f->phase][f->cause];
    if (cell->count++ != 0)
        return;
    size_t n = 0;
    for (; n < sizeof cell->sample - 1 && f->text[n] != '\0'; n++)
        cell->sample[n] = f->text[n] >= ' ' && f->text[n] <= '~' ? f->text[n] : '?';
    cell->sample[n] = '\0';
}

void fault_merge(struct fault_table *t, const struct fault_table *from)
{
    for (int p = 0; p < FAULT_PHASE_COUNT; p++) {
        for (int c = 0; c < FAULT_CAUSE_COUNT; c++) {
            struct fault_cell *into = &t->cells[p][c];
            const struct fault_cell *add = &from->cells[p][c];
            if (into->count == 0)
                *into = *add;
            else
                into->count += add->count;
        }
    }
}

uint64_t fault_total_of(const struct fault_table *t, enum fault_phase phase)
{
    uint64_t total = 0;
    for (int c = 0; c < FAULT_CAUSE_COUNT; c++)
        total += t->cells[phase][c].count;
    return total;
}

uint64_t fault_total(const struct fault_table *t)
{
    uint64_t total = 0;
    for (int p = 0; p < FAULT_PHASE_COUNT; p++)
        total += fault_total_of(t, (enum fault_phase)p);
    return total;
}
