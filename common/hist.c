#include "common/hist.h"

#include "common/mem.h"

#include <math.h>

struct hist *hist_new(void)
{
    struct hist *h = mem_zalloc(1, sizeof *h);
    h->min = UINT64_MAX;
    return h;
}

void hist_free(struct hist *h)
{
    free(h);
}

void hist_clear(struct hist *h)
{
    memset(h, 0, sizeof *h);
    h->min = UINT64_MAX;
}

/* The lowest value of a slot: the inverse of hist_slot(). */
static uint64_t slot_value(uint32_t slot)
{
    if (slot < HIST_SUB_COUNT)
        return slot;
    uint32_t bucket = (slot >> (HIST_SUB_BITS - 1u)) - 1u;
    uint64_t sub = (slot & (HIST_SUB_HALF - 1u)) + HIST_SUB_HALF;
    return sub << bucket;
}

static uint64_t slot_width(uint32_t slot)
{
    return slot < HIST_SUB_COUNT ? 1 : UINT64_C(1) << ((slot >> (HIST_SUB_BITS - 1u)) - 1u);
}

static uint64_t clamp(uint64_t value)
{
    return value > HIST_VALUE_MAX ? HIST_VALUE_MAX : value;
}

uint64_t hist_highest_equivalent(uint64_t value)
{
    uint32_t slot = hist_slot(clamp(value));
    return slot_value(slot) + slot_width(slot) - 1;
}

void hist_merge(struct hist *h, const struct hist *from)
{
    if (from->count == 0)
        return;
    uint32_t last = hist_slot(from->max);
    for (uint32_t i = hist_slot(from->min); i <= last; i++)
        h->slots[i] += from->slots[i];
    h->count += from->count;
    if (from->min < h->min)
        h->min = from->min;
    if (from->max > h->max)
        h->max = from->max;
}

uint64_t hist_percentile(const struct hist *h, double percent)
{
    if (h->count == 0)
        return 0;
    double wanted = nextafter(percent, -INFINITY) / 100.0 * (double)h->count;
    uint64_t rank = wanted > 0 ? (uint64_t)ceil(wanted) : 1;
    if (rank < 1)
        rank = 1;
    uint64_t seen = 0;
    uint32_t last = hist_slot(h->max);
    for (uint32_t i = hist_slot(h->min); i <= last; i++) {
        seen += h->slots[i];
        if (seen >= rank) {
            uint64_t top = slot_value(i) + slot_width(i) - 1;
            return top < h->max ? top : h->max;
        }
    }
    return h->max;
}

/* The middle of a slot stands for its samples. */
static double slot_middle(uint32_t slot)
{
    uint64_t middle = slot_value(slot) + slot_width(slot) / 2;
    return (double)middle;
}

double hist_mean(const struct hist *h)
{
    if (h->count == 0)
        return 0;
    double sum = 0;
    for (uint32_t i = hist_slot(h->min); i <= hist_slot(h->max); i++)
        sum += slot_middle(i) * (double)h->slots[i];
    return sum / (double)h->count;
}

double hist_stddev(const struct hist *h)
{
    if (h->count == 0)
        return 0;
    double mean = hist_mean(h);
    double sum = 0;
    for (uint32_t i = hist_slot(h->min); i <= hist_slot(h->max); i++) {
        double off = slot_middle(i) - mean;
        sum += off * off * (double)h->slots[i];
    }
    return sqrt(sum / (double)h->count);
}
