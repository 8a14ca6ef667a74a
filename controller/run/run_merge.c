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
    to->scheduled = add(to->scheduled, from->scheduled);
    to->ok = add(to->ok, from->ok);
    to->failed = add(to->failed, from->failed);
    to->in_flight = add(to->in_flight, from->in_flight);
    to->never_sent = add(to->never_sent, from->never_sent);
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
    to->requests_sent = add(to->requests_sent, from->requests_sent);
    to->responses = add(to->responses, from->responses);
    to->body_bytes = add(to->body_bytes, from->body_bytes);
    to->wire_in_bytes = add(to->wire_in_bytes, from->wire_in_bytes);
    to->wire_out_bytes = add(to->wire_out_bytes, from->wire_out_bytes);
    to->short_bodies = add(to->short_bodies, from->short_bodies);
    to->unanswered = add(to->unanswered, from->unanswered);
    to->cpu_user_ns = add(to->cpu_user_ns, from->cpu_user_ns);
    to->cpu_system_ns = add(to->cpu_system_ns, from->cpu_system_ns);
    to->rss_bytes_max = add(to->rss_bytes_max, from->rss_bytes_max);
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
    *out = (struct msg_loaded){.generator = mem_strdup(msg_text(parts[0]->generator)),
                               /* The clocks of several hosts cannot be compared yet: the first one's. */
                               .window_start_ns = parts[0]->window_start_ns,
                               .window_end_ns = parts[0]->window_end_ns,
                               .raw = mem_strdup(msg_text(parts[0]->raw))};
    for (size_t i = 0; i < count; i++)
        add_counts(out, parts[i]);
    enum err e = merge_hists(parts, count, &out->latency_hist, d);
    if (e != ERR_OK)
        run_merge_fini(out);
    return e;
}

void run_merge_fini(struct msg_loaded *m)
{
    for (size_t i = 0; i < m->error_count; i++) {
        free(m->errors[i].phase);
        free(m->errors[i].cause);
        free(m->errors[i].sample);
    }
    free(m->errors);
    free(m->statuses);
    free(m->generator);
    free(m->raw);
    free(m->latency_hist.data);
    *m = (struct msg_loaded){0};
}
