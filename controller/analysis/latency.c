#include "controller/analysis/latency.h"

enum err latency_decode(struct hist *out, const struct msg_bytes *encoded, struct err_detail *d)
{
    if (encoded->len == 0)
        return err_set(d, ERR_NOT_FOUND, "the generator gave no latency histogram");
    return hist_decode(out, (const char *)encoded->data, encoded->len, d);
}

void latency_read(const struct hist *merged, struct latency_figures *out)
{
    *out = (struct latency_figures){.count = merged->count};
    if (merged->count == 0)
        return;
    out->min = merged->min;
    out->p50 = hist_percentile(merged, 50);
    out->p90 = hist_percentile(merged, 90);
    out->p99 = hist_percentile(merged, 99);
    out->p999 = hist_percentile(merged, 99.9);
    out->max = merged->max;
    out->mean = hist_mean(merged);
}
