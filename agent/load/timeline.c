#include "agent/load/timeline.h"

#include "common/clock.h"
#include "common/mem.h"

void timeline_init(struct timeline *t, uint32_t workers, timeline_fn *on_point, void *arg)
{
    *t = (struct timeline){.workers = workers, .on_point = on_point, .arg = arg};
    t->points = mem_zalloc(TIMELINE_POINTS_MAX, sizeof *t->points);
}

void timeline_fini(struct timeline *t)
{
    interval_free_list(t->open);
    free(t->points);
    *t = (struct timeline){0};
}

static void finish_first(struct timeline *t)
{
    struct interval *i = t->open;
    struct timeline_point p = {.start_ns = i->start_ns,
                               .end_ns = i->end_ns,
                               .ok = i->latency.count,
                               .failed = i->failed,
                               .p50_ns = hist_percentile(&i->latency, 50),
                               .p90_ns = hist_percentile(&i->latency, 90),
                               .p99_ns = hist_percentile(&i->latency, 99),
                               .max_ns = i->latency.max};
    if (t->count < TIMELINE_POINTS_MAX)
        t->points[t->count++] = p;
    if (t->on_point != NULL)
        t->on_point(t->arg, &p, &i->latency);
    t->open = i->next;
    interval_free(i);
}

static void add_one(struct timeline *t, struct interval *i)
{
    struct interval **at = &t->open;
    while (*at != NULL && (*at)->index < i->index)
        at = &(*at)->next;
    if (*at == NULL || (*at)->index != i->index) {
        i->next = *at;
        *at = i;
    } else {
        (*at)->failed += i->failed;
        hist_merge(&(*at)->latency, &i->latency);
        (*at)->delivered++;
        interval_free(i);
    }
    while (t->open != NULL && t->open->delivered == t->workers)
        finish_first(t);
}

void timeline_add(struct timeline *t, struct interval *list)
{
    while (list != NULL) {
        struct interval *i = list;
        list = i->next;
        add_one(t, i);
    }
}

uint64_t timeline_interval(uint64_t duration_ns)
{
    uint64_t seconds = (duration_ns / NS_PER_S + TIMELINE_POINTS_MAX - 1) / (TIMELINE_POINTS_MAX - 1);
    return (seconds != 0 ? seconds : 1) * NS_PER_S;
}
