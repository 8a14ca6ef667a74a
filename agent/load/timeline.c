#include "agent/load/timeline.h"

#include "common/clock.h"
#include "common/mem.h"

struct timeline_open {
    struct timeline_open *next;
    struct interval *sum;
    uint32_t delivered;
};

void timeline_init(struct timeline *t, uint32_t workers, timeline_fn *on_point, void *arg)
{
    *t = (struct timeline){.workers = workers, .on_point = on_point, .arg = arg};
    t->points = mem_zalloc(TIMELINE_POINTS_MAX, sizeof *t->points);
}

void timeline_fini(struct timeline *t)
{
    while (t->open != NULL) {
        struct timeline_open *o = t->open;
        t->open = o->next;
        interval_free(o->sum);
        free(o);
    }
    free(t->points);
    *t = (struct timeline){0};
}

static void finish_first(struct timeline *t)
{
    struct timeline_open *o = t->open;
    const struct interval *i = o->sum;
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
    t->open = o->next;
    interval_free(o->sum);
    free(o);
}

static void add_one(struct timeline *t, struct interval *i)
{
    struct timeline_open **at = &t->open;
    while (*at != NULL && (*at)->sum->index < i->index)
        at = &(*at)->next;
    if (*at == NULL || (*at)->sum->index != i->index) {
        struct timeline_open *o = mem_zalloc(1, sizeof *o);
        o->sum = i;
        o->delivered = 1;
        o->next = *at;
        *at = o;
    } else {
        struct interval *sum = (*at)->sum;
        sum->failed += i->failed;
        hist_merge(&sum->latency, &i->latency);
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
        i->next = NULL;
        add_one(t, i);
    }
}

uint64_t timeline_interval(uint64_t duration_ns)
{
    uint64_t seconds = (duration_ns / NS_PER_S + TIMELINE_POINTS_MAX - 1) / (TIMELINE_POINTS_MAX - 1);
    return (seconds != 0 ? seconds : 1) * NS_PER_S;
}
