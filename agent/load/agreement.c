#include "agent/load/agreement.h"

#include <string.h>

static bool same(const struct tls_agreed *a, const struct tls_agreed *b)
{
    return strcmp(a->version, b->version) == 0 && strcmp(a->suite, b->suite) == 0 &&
           strcmp(a->group, b->group) == 0;
}

static void add(struct agreement_table *t, const struct tls_agreed *agreed, uint64_t connections)
{
    static const struct tls_agreed other = {.version = "other", .suite = "other"};
    size_t i = 0;
    while (i < t->count && !same(&t->rows[i].agreed, agreed))
        i++;
    if (i == AGREEMENT_ROWS_MAX)
        t->rows[--i].agreed = other;
    else if (i == t->count)
        t->rows[t->count++] = (struct agreement){.agreed = *agreed};
    t->rows[i].connections += connections;
}

void agreement_note(struct agreement_table *t, const struct tls_agreed *agreed)
{
    add(t, agreed, 1);
}

void agreement_merge(struct agreement_table *t, const struct agreement_table *from)
{
    for (size_t i = 0; i < from->count; i++)
        add(t, &from->rows[i].agreed, from->rows[i].connections);
}
