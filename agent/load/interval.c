#include "agent/load/interval.h"

#include "common/mem.h"

struct interval *interval_new(uint64_t index, uint64_t start_ns)
{
    struct interval *i = mem_zalloc(1, sizeof *i);
    i->delivered = 1;
    i->index = index;
    i->start_ns = start_ns;
    i->latency.min = UINT64_MAX;
    return i;
}

void interval_free(struct interval *i)
{
    free(i);
}

void interval_free_list(struct interval *first)
{
    while (first != NULL) {
        struct interval *next = first->next;
        interval_free(first);
        first = next;
    }
}

void interval_box_init(struct interval_box *b)
{
    *b = (struct interval_box){.last = &b->first};
    must(pthread_mutex_init(&b->lock, NULL) == 0);
}

void interval_box_fini(struct interval_box *b)
{
    interval_free_list(interval_box_take(b));
    pthread_mutex_destroy(&b->lock);
}

void interval_box_put(struct interval_box *b, struct interval **i)
{
    must(pthread_mutex_lock(&b->lock) == 0);
    *b->last = *i;
    b->last = &(*i)->next;
    must(pthread_mutex_unlock(&b->lock) == 0);
    *i = NULL;
}

struct interval *interval_box_take(struct interval_box *b)
{
    must(pthread_mutex_lock(&b->lock) == 0);
    struct interval *first = b->first;
    b->first = NULL;
    b->last = &b->first;
    must(pthread_mutex_unlock(&b->lock) == 0);
    return first;
}
