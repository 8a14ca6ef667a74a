/*
 * Reads arbitrary text as an encoded histogram: nothing of it is trusted. What is accepted must survive being
 * encoded and read again without a difference.
 */
#include "common/hist.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hist *h = hist_new();
    struct hist *again = hist_new();
    struct err_detail d;
    if (hist_decode(h, (const char *)data, size, &d) == ERR_OK) {
        struct buf text;
        buf_init(&text, HIST_TEXT_BYTES_MAX);
        must(hist_encode(h, &text) == ERR_OK);
        must(hist_decode(again, text.data, text.len, &d) == ERR_OK);
        must(h->count == again->count && memcmp(h->slots, again->slots, sizeof h->slots) == 0);
        must(hist_percentile(h, 50) <= hist_percentile(h, 99) && hist_percentile(h, 100) <= h->max);
        buf_fini(&text);
    } else {
        must(h->count == 0);
    }
    hist_free(h);
    hist_free(again);
    return 0;
}
