#ifndef COMMON_FIGURE_H
#define COMMON_FIGURE_H
/*
 * A figure that may be unknown, and the figures of a window by common/figure_list.h. A zeroed figure is an
 * unknown one, so that what nobody measured can never be read as zero. Plain values; any thread.
 */
#include "common/base.h"
#include "common/figure_list.h"

struct figure {
    bool known;
    uint64_t value; /* in the unit that its name ends in */
};

#define X(NAME, ...) FIGURE_##NAME,
enum figure_load { FIGURE_LOAD_LIST(X) FIGURE_LOAD_COUNT };
enum figure_tree { FIGURE_TREE_LIST(X) FIGURE_TREE_COUNT };
#undef X

enum figure_merge {
    FIGURE_EACH,  /* no merge */
    FIGURE_SUM,   /* all added up */
    FIGURE_MAX,   /* the largest */
    FIGURE_USAGE, /* how many are known, their mean and the largest */
};

/* A row of the list; what its list has no column for is NULL or zero. */
struct figure_row {
    const char *name;
    unsigned since;
    const char *group;
    const char *key;
    enum figure_merge hosts;
    enum figure_merge rounds;
    const char *help;
};
extern const struct figure_row figure_load_rows[FIGURE_LOAD_COUNT];
extern const struct figure_row figure_tree_rows[FIGURE_TREE_COUNT];

struct figure figure_known(uint64_t value);

/* What both come to (SUM or MAX); unknown when one is. A sum beyond 64 bits stays at the largest number. */
struct figure figure_merged(enum figure_merge how, struct figure a, struct figure b);

/* How far a counter has come; unknown when a reading is, or when it ran backwards. */
struct figure figure_grown(struct figure before, struct figure after);

/* The value, or -1 when it is unknown: as the real figures of a window have it. */
double figure_real(struct figure f);

#endif
