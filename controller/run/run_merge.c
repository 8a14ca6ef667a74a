#include "controller/run/run_merge.h"

#include "common/hist.h"
#include "common/mem.h"

static uint64_t add(uint64_t a, uint64_t b)
{
    uint64_t sum = 0;
    return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum; /* counts from agents are not trusted */
}

static void add_accounts(struct msg_accounts *to, const struct msg_accounts *from)
{
#define X(name) to->name = add(to->name, from->name);
    MSG_ACCOUNTS_LIST(X)
#undef X
}

static void add_error(struct msg_loaded *to, const struct msg_error_class *from)
{
    for (size_t i = 0; i < to->error_count; i++) {
        struct msg_error_class *e = &to->errors[i];
        if (strcmp(e->phase, msg_text(from->phase)) == 0 && strcmp(e->cause, msg_text(from->cause)) == 0) {
            e->count = add(e->count, from->count);
            return;
        }
    }
    to->errors = mem_realloc(to->errors, to->error_count + 1, sizeof(*to->errors));
    to->errors[to->error_count++] = (struct msg_error_class){.phase = mem_strdup(msg_text(from->phase)),
                                                             .cause = mem_strdup(msg_text(from->cause)),
                                                             .count = from->count,
                                                             .sample = mem_strdup(msg_text(from->sample))};
}

static void add_status(struct msg_loaded *to, const struct msg_status_count *from)
{
    for (size_t i = 0; i < to->status_count; i++) {
        if (to->statuses[i].status == from->status) {
            to->statuses[i].count = add(to->statuses[i].count, from->count);
            return;
        }
    }
    to->statuses = mem_realloc(to->statuses, to->status_count + 1, sizeof(*to->statuses));
    to->statuses[to->status_count++] = *from;
}

static void add_counts(struct msg_loaded *to, const struct msg_loaded *from)
{
    add_accounts(&to->window, &from->window);
    add_accounts(&to->warmup, &from->warmup);
    for (size_t i = 0; i < FIGURE_LOAD_COUNT; i++)
        to->figures[i] = figure_merged(figure_load_rows[i].hosts, to->figures[i], from->figures[i]);
    for (size_t i = 0; i < from->error_count; i++)
        add_error(to, &from->errors[i]);
    for (size_t i = 0; i < from->status_count; i++)
        add_status(to, &from->statuses[i]);
}

/* All histograms or none: one of a part only would claim to be of the whole. */
static enum err merge_hists(const struct msg_loaded *const *parts, size_t count, struct msg_bytes *out,
                            struct err_detail *d)
{
    enum err e = ERR_OK;
    struct buf text;
    struct hist *sum = hist_new(), *one = hist_new();
    buf_init(&text, HIST_TEXT_BYTES_MAX);
    for (size_t i = 0; i < count && e == ERR_OK; i++) {
        if (parts[i]->latency_hist.len == 0)
            goto out;
        e = hist_decode(one, (const char *)parts[i]->latency_hist.data, parts[i]->latency_hist.len, d);
        if (e == ERR_OK)
            hist_merge(sum, one);
    }
    if (e == ERR_OK)
        e = hist_encode(sum, &text);
    if (e == ERR_OK) {
        out->len = text.len;
        out->data = (uint8_t *)buf_take(&text);
    }
out:
    buf_fini(&text);
    hist_free(sum);
    hist_free(one);
    return e;
}

enum err run_merge(const struct msg_loaded *const *parts, size_t count, struct msg_loaded *out,
                   struct err_detail *d)
{
    must(count > 0);
    /* The generator's text is the first one's, and so are the edges: the clocks of several hosts cannot be
     * compared yet. */
    msg_loaded_copy(out, parts[0]);
    free(out->latency_hist.data);
    out->latency_hist = (struct msg_bytes){0};
    for (size_t i = 1; i < count; i++)
        add_counts(out, parts[i]);
    enum err e = merge_hists(parts, count, &out->latency_hist, d);
    if (e != ERR_OK)
        msg_loaded_fini(out);
    return e;
}
