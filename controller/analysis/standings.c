#include "controller/analysis/standings.h"

#include <math.h>

const char *standing_name(enum standing_kind kind)
{
    static const char *const names[STANDING_COUNT] = {
#define X(name, text) text,
        STANDING_LIST(X)
#undef X
    };
    return (unsigned)kind < STANDING_COUNT ? names[kind] : "unknown";
}

static bool is_ahead(const struct stats_summary *a, const struct stats_summary *b)
{
    return a->n != 0 && (b->n == 0 || a->mean > b->mean);
}

static enum standing_kind compare(const struct stats_summary *s, const struct stats_summary *best)
{
    if (s->n < 2 || best->n < 2)
        return STANDING_UNKNOWN;
    return stats_ranges_overlap(s, best) ? STANDING_TIE : STANDING_BEHIND;
}

void standings_judge(const struct stats_summary *group, size_t count, struct standing *out)
{
    const struct stats_summary *best = group;
    size_t with_number = 0;
    for (size_t i = 0; i < count; i++) {
        with_number += group[i].n != 0;
        best = is_ahead(&group[i], best) ? &group[i] : best;
    }
    for (size_t i = 0; i < count; i++) {
        const struct stats_summary *s = &group[i];
        out[i] = (struct standing){.kind = STANDING_NONE, .against_best = NAN};
        if (s->n == 0)
            continue;
        if (s == best)
            out[i] = (struct standing){with_number == 1 ? STANDING_ALONE : STANDING_BEST, 0};
        else
            out[i] = (struct standing){compare(s, best), best->mean > 0 ? s->mean / best->mean - 1 : NAN};
    }
}

void standings_order(const struct stats_summary *group, size_t count, size_t *out)
{
    for (size_t i = 0; i < count; i++) { /* by insertion: a group is small, and equal ones keep their order */
        size_t at = i;
        for (; at > 0 && is_ahead(&group[i], &group[out[at - 1]]); at--)
            out[at] = out[at - 1];
        out[at] = i;
    }
}

/* 2 / C(2n, n): of all orders of 2n values, those in which one half lies below the other. */
double standings_chance(size_t rounds)
{
    double chance = 2;
    for (size_t k = 1; k <= rounds; k++)
        chance *= (double)k / (double)(rounds + k);
    return chance;
}
