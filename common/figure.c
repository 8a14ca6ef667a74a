#include "common/figure.h"

#include <stddef.h>

const struct figure_row figure_load_rows[FIGURE_LOAD_COUNT] = {
#define X(NAME, figure, number, schema, in, at, over_hosts, over_rounds, text)                               \
    [FIGURE_##NAME] = {#figure, schema, in, at, FIGURE_##over_hosts, FIGURE_##over_rounds, text},
    FIGURE_LOAD_LIST(X)
#undef X
};

const struct figure_row figure_tree_rows[FIGURE_TREE_COUNT] = {
#define X(NAME, figure, number, schema, over_rounds, text)                                                   \
    [FIGURE_##                                                                                               \
        NAME] = {.name = "server_" #figure, .since = schema, .rounds = FIGURE_##over_rounds, .help = text},
    FIGURE_TREE_LIST(X)
#undef X
};

struct figure figure_known(uint64_t value)
{
    return (struct figure){.known = true, .value = value};
}

struct figure figure_merged(enum figure_merge how, struct figure a, struct figure b)
{
    uint64_t value = a.value > b.value ? a.value : b.value;
    if (how == FIGURE_SUM && __builtin_add_overflow(a.value, b.value, &value))
        value = UINT64_MAX;
    return a.known && b.known ? figure_known(value) : (struct figure){0};
}

struct figure figure_grown(struct figure before, struct figure after)
{
    bool known = before.known && after.known && after.value >= before.value;
    return known ? figure_known(after.value - before.value) : (struct figure){0};
}

double figure_real(struct figure f)
{
    return f.known ? (double)f.value : -1;
}
