#ifndef COMMON_HIST_H
#define COMMON_HIST_H
/*
 * A latency histogram in HdrHistogram's layout: 3 significant digits, 1 ns to one hour, merged without
 * loss, and its V2 encoding that other tools read. Owned by whoever made it; one thread at a time.
 *
 * Layout and encoding: github.com/HdrHistogram/HdrHistogram, AbstractHistogram.java (V2 format).
 */
#include "common/buf.h"
#include "common/err.h"

#define HIST_DIGITS     3
#define HIST_VALUE_MAX  UINT64_C(3600000000000) /* an hour, ns; larger values are recorded as this */
#define HIST_SUB_COUNT  2048u                   /* smallest power of two with 3 digits in its upper half */
#define HIST_SUB_HALF   1024u
#define HIST_SUB_BITS   11u
#define HIST_BUCKETS    32u /* 2048 << 31 is the first that holds HIST_VALUE_MAX */
#define HIST_SLOT_COUNT ((HIST_BUCKETS + 1u) * HIST_SUB_HALF)

/* Text of an encoded histogram: a full one (every slot used) is under 200 KiB. */
#define HIST_TEXT_BYTES_MAX (512u * 1024u)

/* 264 KiB, of which only the touched pages become resident: allocate with hist_new(), not on a stack. */
struct hist {
    uint64_t count;
    uint64_t min; /* UINT64_MAX while empty */
    uint64_t max;
    uint64_t slots[HIST_SLOT_COUNT];
};

struct hist *hist_new(void);
void hist_free(struct hist *h);
void hist_clear(struct hist *h);

/* The slot of a value up to HIST_VALUE_MAX. */
static inline uint32_t hist_slot(uint64_t value)
{
    uint32_t bucket = 64u - HIST_SUB_BITS - (uint32_t)__builtin_clzll(value | (HIST_SUB_COUNT - 1u));
    return (bucket << (HIST_SUB_BITS - 1u)) + (uint32_t)(value >> bucket);
}

/* Allocates nothing, never fails. Values over HIST_VALUE_MAX count as HIST_VALUE_MAX. */
static inline void hist_record(struct hist *h, uint64_t value)
{
    if (__builtin_expect(value > HIST_VALUE_MAX, 0))
        value = HIST_VALUE_MAX;
    if (value < h->min)
        h->min = value;
    if (value > h->max)
        h->max = value;
    h->count++;
    h->slots[hist_slot(value)]++;
}

/* Adds every sample of `from`. */
void hist_merge(struct hist *h, const struct hist *from);

/* The value at or below which `percent` (0 to 100) of the samples lie, as the reference library computes
 * it (the highest value of the slot), but never above the exact maximum. 0 when empty. */
uint64_t hist_percentile(const struct hist *h, double percent);
double hist_mean(const struct hist *h);
double hist_stddev(const struct hist *h); /* of the population, as the reference library does */

/* The highest value that shares a slot with `value`. */
uint64_t hist_highest_equivalent(uint64_t value);

/* Appends the V2 compressed encoding (deflate, base64) to `out`. ERR_TOO_BIG when `out` is full. */
NODISCARD enum err hist_encode(const struct hist *h, struct buf *out);

/* Reads `len` characters of V2 text (compressed or not) with 3 digits and unit 1 into
 * `h`, replacing what it held. Everything is checked: ERR_INVALID for text that is not such a histogram,
 * ERR_TOO_BIG over HIST_TEXT_BYTES_MAX. */
NODISCARD enum err hist_decode(struct hist *h, const char *text, size_t len, struct err_detail *d);

#endif
