#ifndef CONTROLLER_ANALYSIS_STANDINGS_H
#define CONTROLLER_ANALYSIS_STANDINGS_H
/*
 * Who is ahead in a group of targets that were measured alike, and whether by more than the spread between
 * rounds. A group is the summaries of its targets, higher is better. Definitions and sources:
 * docs/statistics.md. Pure functions; any thread.
 */
#include "controller/analysis/stats.h"

#define STANDING_LIST(X)                                                                                     \
    X(NONE, "none")       /* no number */                                                                    \
    X(ALONE, "alone")     /* the only one with a number */                                                   \
    X(BEST, "best")       /* the highest mean; of equal ones the first */                                    \
    X(TIE, "tie")         /* its range over rounds overlaps that of the best */                              \
    X(BEHIND, "behind")   /* its range lies below that of the best */                                        \
    X(UNKNOWN, "unknown") /* one round here or at the best: no spread to judge a difference by */
enum standing_kind {
#define X(name, text) STANDING_##name,
    STANDING_LIST(X)
#undef X
        STANDING_COUNT
};
const char *standing_name(enum standing_kind kind);

struct standing {
    enum standing_kind kind;
    double against_best; /* mean / best mean - 1; NAN without a number, and where the best is 0 */
};

/* Judges each of the `count` summaries of a group. */
void standings_judge(const struct stats_summary *group, size_t count, struct standing *out);

/* Their places from the best down: those without a number last, equal ones as they stand. */
void standings_order(const struct stats_summary *group, size_t count, size_t *out);

/* How often the ranges of two equal targets with this many rounds each (1 or more) do not overlap. */
double standings_chance(size_t rounds);

#endif
