#include "common/mem.h"
#include "common/parse.h"
#include "controller/report/table.h"
#include "controller/report/text.h"
#include "controller/report/units.h"

#include <math.h>
#include <stdlib.h>

#define WORDS_WIDTH    40u /* a longer name or path is cut, so that the rule has room */
#define ATTEMPTS_SHOWN 20u /* invalid attempts listed one by one; the JSON has all */

/* name, title, group */
#define COLUMN_LIST(X)                                                                                       \
    X(NAME, "target", 0)                                                                                     \
    X(MEAN, "req/s", 1)                                                                                      \
    X(SD, "SD", 1)                                                                                           \
    X(CV, "CV", 1)                                                                                           \
    X(MIN, "min", 1)                                                                                         \
    X(MAX, "max", 1)                                                                                         \
    X(BEST, "vs best", 1)                                                                                    \
    X(ROUNDS, "rounds", 1)                                                                                   \
    X(P50, "p50", 2)                                                                                         \
    X(P90, "p90", 2)                                                                                         \
    X(P99, "p99", 2)                                                                                         \
    X(P999, "p99.9", 2)                                                                                      \
    X(WORST, "max", 2)                                                                                       \
    X(BODY, "body/s", 2)                                                                                     \
    X(SERVER, "server", 3)                                                                                   \
    X(PER_CPU, "req/CPU-s", 3)                                                                               \
    X(GENERATOR, "generator", 3)                                                                             \
    X(FOREIGN, "others s/l", 3)                                                                              \
    X(ERRORS, "errors", 3)                                                                                   \
    X(ATTEMPTS, "attempts", 3)
enum column {
#define X(name, ...) COLUMN_##name,
    COLUMN_LIST(X)
#undef X
};
static const struct table_column columns[] = {
#define X(name, title, group) {title, group, (group) == 0},
    COLUMN_LIST(X)
#undef X
};

/* "tie -1.2%", "-12.0%", "best" */
static void set_standing(struct table *t, const struct standing *s)
{
    static const char *const words[STANDING_COUNT] = {
        [STANDING_NONE] = "no number", [STANDING_ALONE] = "-",    [STANDING_BEST] = "best",
        [STANDING_TIE] = "tie ",       [STANDING_UNKNOWN] = "? ", [STANDING_BEHIND] = "",
    };
    char text[UNITS_TEXT_BYTES];
    bool apart = s->kind == STANDING_TIE || s->kind == STANDING_UNKNOWN || s->kind == STANDING_BEHIND;
    table_set(t, COLUMN_BEST, "%s%s", words[s->kind],
              apart ? units_percent(s->against_best, true, text) : "");
}

static void set_rate(struct table *t, const struct report_cell *c)
{
    char text[UNITS_TEXT_BYTES];
    table_set(t, COLUMN_MEAN, "%s", units_rate(c->rate.mean, 4, text));
    table_set(t, COLUMN_SD, "%s", units_rate(c->rate.sd, 3, text));
    table_set(t, COLUMN_CV, "%s", units_percent(c->rate.cv, false, text));
    table_set(t, COLUMN_MIN, "%s", units_rate(c->rate.min, 4, text));
    table_set(t, COLUMN_MAX, "%s", units_rate(c->rate.max, 4, text));
    table_set(t, COLUMN_ROUNDS, "%zu/%zu", c->rate.n, c->windows);
    set_standing(t, &c->standing);
}

static void set_latency(struct table *t, const struct report_cell *c)
{
    char text[UNITS_TEXT_BYTES];
    const uint64_t values[] = {c->latency.p50, c->latency.p90, c->latency.p99, c->latency.p999,
                               c->latency.max};
    for (size_t i = 0; i < ARRAY_LEN(values); i++)
        table_set(t, COLUMN_P50 + i, "%s", units_time(c->latency.count != 0 ? (double)values[i] : NAN, text));
    table_set(t, COLUMN_BODY, "%s", units_bytes(c->body_bytes_per_s, text));
}

static void set_cost(struct table *t, const struct report_cell *c)
{
    char text[UNITS_TEXT_BYTES];
    char more[UNITS_TEXT_BYTES];
    table_set(t, COLUMN_SERVER, "%s", units_cores(c->server_cpu_cores.mean, text));
    table_set(t, COLUMN_PER_CPU, "%s", units_rate(c->ok_per_server_cpu_s, 4, text));
    table_set(t, COLUMN_GENERATOR, "%s", units_cores(c->generator_cpu_cores.mean, text));
    table_set(t, COLUMN_FOREIGN, "%s/%s", units_cores(c->foreign_cpu_cores_server.mean, text),
              units_cores(c->foreign_cpu_cores_load.mean, more));
    if (c->rate.n != 0)
        table_set(t, COLUMN_ERRORS, "%llu", (unsigned long long)c->failed);
    else
        table_set(t, COLUMN_ERRORS, "-");
    table_set_count(t, COLUMN_ATTEMPTS, c->made, c->invalid);
}

/* "small: GET /, 64 connections, 10s after 2s of warm-up" */
static void put_title(struct page *p, const struct experiment_workload *w, uint32_t connections)
{
    char duration[32];
    char warmup[32];
    char *name = page_text_shorten(w->name, WORDS_WIDTH);
    char *path = page_text_shorten(msg_text(w->request.path), WORDS_WIDTH);
    parse_duration_text(w->warmup_ns, warmup, sizeof warmup);
    char *title = mem_printf("%s: %s %s, %u connection%s, %s%s%s%s", name, msg_text(w->request.method), path,
                             connections, units_plural(connections),
                             parse_duration_text(w->duration_ns, duration, sizeof duration),
                             w->warmup_ns != 0 ? " after " : ", no warm-up", w->warmup_ns != 0 ? warmup : "",
                             w->warmup_ns != 0 ? " of warm-up" : "");
    page_heading(p, title);
    free(title);
    free(path);
    free(name);
}

static void put_table(struct page *p, const struct report *r, const size_t *group)
{
    struct table t;
    table_init(&t, columns, ARRAY_LEN(columns));
    t.group_titles[1] = "throughput";
    t.group_titles[2] = "latency";
    t.group_titles[3] = "cost in cores";
    for (size_t i = 0; i < r->experiment->target_count; i++) {
        const struct report_cell *c = &r->cells[group[i]];
        table_add_row(&t, r->experiment->targets[c->design->target].name);
        set_rate(&t, c);
        set_latency(&t, c);
        set_cost(&t, c);
    }
    table_write(&t, p);
    table_fini(&t);
}

void text_put_groups(struct page *p, const struct report *r)
{
    size_t *group = mem_zalloc(r->experiment->target_count, sizeof *group);
    for (size_t i = 0; i < report_group_count(r); i++) {
        report_order_group(r, i, group);
        const struct report_cell *best = &r->cells[group[0]];
        put_title(p, &r->experiment->workloads[best->design->workload], best->design->connections);
        if (best->rate.n != 0)
            put_table(p, r, group);
        else
            page_say(p, "", 4, "%s", text_is_over(r) ? "no number" : "no number yet");
    }
    free(group);
}

struct invalid {
    struct page *page;
    const struct report *report;
};

static void put_attempt(void *arg, const struct store_attempt *a)
{
    const struct invalid *to = arg;
    const struct report *r = to->report;
    const struct design_window *w = &r->design->windows[a->window];
    const struct design_cell *c = &r->design->cells[w->cell];
    page_say(to->page, "", 4, "%s, %s with %u connection%s, round %u, attempt %u: %s: %s",
             r->experiment->targets[c->target].name, r->experiment->workloads[c->workload].name,
             c->connections, units_plural(c->connections), w->round + 1, a->attempt, a->gate, a->reason);
}

void text_put_invalid(struct page *p, const struct report *r)
{
    struct invalid to = {.page = p, .report = r};
    if (r->attempts_invalid == 0)
        return;
    page_heading(p, "invalid attempts, in no figure");
    enum err e = store_visit_invalid(r->store, r->results.job.id, r->design->window_count, ATTEMPTS_SHOWN,
                                     put_attempt, &to, NULL);
    if (p->e == ERR_OK)
        p->e = e;
    if (r->attempts_invalid > ATTEMPTS_SHOWN)
        page_say(p, "", 4, "and %zu more: --json has all", r->attempts_invalid - ATTEMPTS_SHOWN);
}
