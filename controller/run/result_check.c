#include "controller/run/result_check.h"

#include "common/clock.h"
#include "common/hist.h"

#include <inttypes.h>

/* Edges are instants that the generator set itself; only rounding may lie between them and the wish. */
#define SLACK_NS NS_PER_MS

static enum err check_window(const struct msg_loaded *l, uint64_t duration_ns, struct err_detail *d)
{
    if (l->window_end_ns <= l->window_start_ns)
        return err_set(d, ERR_INVALID, "its window ends before it starts");
    uint64_t length_ns = l->window_end_ns - l->window_start_ns;
    uint64_t off_ns = length_ns > duration_ns ? length_ns - duration_ns : duration_ns - length_ns;
    if (off_ns > SLACK_NS)
        return err_set(d, ERR_INVALID, "its window was %" PRIu64 " us long, %" PRIu64 " us were asked for",
                       length_ns / NS_PER_US, duration_ns / NS_PER_US);
    return ERR_OK;
}

static enum err check_histogram(const struct msg_loaded *l, struct err_detail *d)
{
    struct hist *h = hist_new();
    enum err e = hist_decode(h, (const char *)l->latency_hist.data, l->latency_hist.len, d);
    uint64_t count = h->count;
    hist_free(h);
    if (e != ERR_OK)
        return err_prefix(d, ERR_INVALID, "its latency histogram cannot be read");
    if (count != l->window.ok)
        return err_set(d, ERR_INVALID,
                       "its latency histogram holds %" PRIu64 " requests, its account says %" PRIu64 " ok",
                       count, l->window.ok);
    return ERR_OK;
}

static enum err check_errors(const struct msg_loaded *l, struct err_detail *d)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < l->error_count; i++)
        if (__builtin_add_overflow(sum, l->errors[i].count, &sum))
            return err_set(d, ERR_INVALID, "its errors are more than can be counted");
    if (sum != l->window.failed)
        return err_set(d, ERR_INVALID,
                       "its classes of errors hold %" PRIu64 " requests, its account says %" PRIu64 " failed",
                       sum, l->window.failed);
    return ERR_OK;
}

enum err result_check(const struct msg_loaded *l, uint64_t duration_ns, struct err_detail *d)
{
    enum err e = check_window(l, duration_ns, d);
    if (e == ERR_OK)
        e = check_histogram(l, d);
    if (e == ERR_OK)
        e = check_errors(l, d);
    return e;
}
