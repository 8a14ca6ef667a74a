#include "common/mem.h"
#include "controller/report/model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum err report_visit_cell(const struct report *r, size_t cell, bool whole, store_visit *visit, void *arg,
                           struct err_detail *d)
{
    enum err e = ERR_OK;
    for (size_t i = r->first[cell]; e == ERR_OK && i < r->first[cell + 1]; i++)
        e = store_visit_window(r->store, r->results.job.id, r->windows[i], whole, visit, arg, d);
    return e;
}

const struct store_read_run *report_run(const struct report *r, int64_t id)
{
    size_t low = 0;
    size_t high = r->results.run_count;
    while (low < high) { /* runs are ordered by id */
        size_t middle = low + (high - low) / 2;
        if (r->results.runs[middle].id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low < r->results.run_count && r->results.runs[low].id == id ? &r->results.runs[low] : NULL;
}

double report_rate(const struct store_attempt *a)
{
    if (a->loaded == NULL || a->loaded->window_end_ns <= a->loaded->window_start_ns)
        return NAN;
    return (double)a->loaded->window.ok * 1e9 /
           (double)(a->loaded->window_end_ns - a->loaded->window_start_ns);
}

bool report_counts(const struct report *r, const struct store_attempt *a)
{
    if (!a->valid || a->window >= r->design->window_count || isnan(report_rate(a)))
        return false;
    return !r->targets[r->design->cells[r->design->windows[a->window].cell].target].withheld;
}

/* ---- targets -------------------------------------------------------------------------------------- */

static void summarise_runs(const struct report *r, uint32_t target, struct report_target *t)
{
    double *startup = mem_zalloc(r->results.run_count, sizeof(double));
    double *before = mem_zalloc(r->results.run_count, sizeof(double));
    double *after = mem_zalloc(r->results.run_count, sizeof(double));
    size_t startups = 0;
    size_t befores = 0;
    size_t afters = 0;
    for (size_t i = 0; i < r->results.run_count; i++) {
        const struct store_read_run *run = &r->results.runs[i];
        if (run->target != target || run->failed_check[0] != '\0')
            continue;             /* one that died later started all the same */
        if (run->startup_ns != 0) /* 0: nothing was waited for */
            startup[startups++] = (double)run->startup_ns;
        if (run->rss_before_bytes != 0)
            before[befores++] = (double)run->rss_before_bytes;
        if (run->ok && run->ended && run->rss_after_bytes != 0)
            after[afters++] = (double)run->rss_after_bytes;
    }
    stats_summarise(startup, startups, &t->startup_ns);
    stats_summarise(before, befores, &t->rss_before_bytes);
    stats_summarise(after, afters, &t->rss_after_bytes);
    free(startup);
    free(before);
    free(after);
}

static void build_targets(struct report *r)
{
    r->targets = mem_zalloc(r->experiment->target_count, sizeof(*r->targets));
    for (size_t i = 0; i < r->results.run_count; i++) {
        const struct store_read_run *run = &r->results.runs[i];
        if (run->target >= r->experiment->target_count)
            continue;
        struct report_target *t = &r->targets[run->target];
        t->starts++;
        t->failed_starts += !run->ok;
        bool parity = run->failed_check[0] != '\0';
        if ((parity && !t->withheld) || (!run->ok && t->why == NULL)) {
            t->why = run->error;
            t->failed_round = run->round;
            t->failed_check = run->failed_check;
        }
        t->withheld = t->withheld || parity;
    }
    for (uint32_t i = 0; i < r->experiment->target_count; i++)
        summarise_runs(r, i, &r->targets[i]);
}

/* ---- cells ---------------------------------------------------------------------------------------- */

static void use(struct report_usage *u, double v)
{
    if (v < 0)
        return;
    u->mean = u->n == 0 ? v : u->mean + (v - u->mean) / (double)(u->n + 1);
    u->max = u->n == 0 || v > u->max ? v : u->max;
    u->n++;
}

static void add_figures(struct report_figure *to, const struct figure *from, int count)
{
    for (int i = 0; i < count; i++) {
        to[i].sum = figure_merged(FIGURE_SUM, to[i].sum, from[i]);
        use(&to[i].usage, figure_real(from[i]));
    }
}

/* What the attempts of one cell add up to before it is finished. */
struct tally {
    struct report *report;
    struct report_cell *cell;
    double *rates;
    size_t rate_count;
    struct hist *latency; /* merged; empty before the first histogram */
    struct hist *one;     /* of the attempt at hand */
    double seconds;
    double cpu_s; /* of the server, in windows that know it */
    double cpu_ok;
};

static void add_latency(struct tally *t, const struct msg_bytes *encoded)
{
    if (latency_decode(t->one, encoded, NULL) == ERR_OK)
        hist_merge(t->latency, t->one);
    else
        t->cell->latency_missing++;
}

static void add_figures_of(struct tally *t, const struct store_attempt *a)
{
    struct report_cell *c = t->cell;
    const struct msg_loaded *l = a->loaded;
    t->rates = mem_realloc(t->rates, t->rate_count + 1, sizeof(double));
    t->rates[t->rate_count++] = report_rate(a);
    t->seconds += (double)(l->window_end_ns - l->window_start_ns) / 1e9;
    c->ok += l->window.ok;
    c->failed += l->window.failed;
    add_latency(t, &l->latency_hist);
    if (a->server_cpu_s > 0) {
        t->cpu_s += a->server_cpu_s;
        t->cpu_ok += (double)l->window.ok;
    }
    add_figures(c->load, l->figures, FIGURE_LOAD_COUNT);
    add_figures(c->server, a->server, FIGURE_TREE_COUNT);
#define X(name, ...) use(&c->name, a->name);
    FIGURE_WINDOW_LIST(X)
#undef X
}

static void on_attempt(void *arg, const struct store_attempt *a)
{
    struct tally *t = arg;
    struct report *r = t->report;
    t->cell->made++;
    t->cell->invalid += !a->valid;
    t->cell->present += a->final;
    r->windows_invalid += a->final && !a->valid;
    r->attempts_unusable += a->valid && isnan(report_rate(a));
    if (!report_counts(r, a))
        return;
    const struct store_read_run *run = report_run(r, a->run_id);
    if (run != NULL)
        r->run_counts[run - r->results.runs] = true;
    add_figures_of(t, a);
}

static void start_figures(struct report_figure *figures, int count)
{
    for (int i = 0; i < count; i++)
        figures[i].sum = figure_known(0);
}

static void finish_usage(struct report_usage *u)
{
    if (u->n == 0)
        u->mean = u->max = NAN;
}

static void finish_cell(struct report_cell *c, struct tally *t)
{
    stats_summarise(t->rates, t->rate_count, &c->rate);
    latency_read(t->latency, &c->latency);
    struct figure body_bytes = c->load[FIGURE_BODY_BYTES].sum;
    c->body_bytes_per_s = t->seconds > 0 && body_bytes.known ? (double)body_bytes.value / t->seconds : NAN;
    c->ok_per_server_cpu_s = t->cpu_s > 0 ? t->cpu_ok / t->cpu_s : NAN;
    for (int i = 0; i < FIGURE_LOAD_COUNT; i++)
        finish_usage(&c->load[i].usage);
    for (int i = 0; i < FIGURE_TREE_COUNT; i++)
        finish_usage(&c->server[i].usage);
#define X(name, ...) finish_usage(&c->name);
    FIGURE_WINDOW_LIST(X)
#undef X
}

static enum err build_cell(struct report *r, size_t index, struct tally *t, struct err_detail *d)
{
    struct report_cell *c = &r->cells[index];
    *t = (struct tally){.report = r, .cell = c, .rates = t->rates, .latency = t->latency, .one = t->one};
    hist_clear(t->latency);
    c->design = &r->design->cells[index];
    c->windows = r->first[index + 1] - r->first[index];
    start_figures(c->load, FIGURE_LOAD_COUNT);
    start_figures(c->server, FIGURE_TREE_COUNT);
    enum err e = report_visit_cell(r, index, false, on_attempt, t, d);
    finish_cell(c, t);
    r->windows_present += c->present;
    r->attempts_invalid += c->invalid;
    return e;
}

/* The windows of each cell side by side, in their order: one pass to count, one to place. */
static void sort_windows(struct report *r)
{
    const struct design *design = r->design;
    r->windows = mem_zalloc(design->window_count, sizeof(*r->windows));
    r->first = mem_zalloc(design->cell_count + 1, sizeof(*r->first));
    for (size_t i = 0; i < design->window_count; i++)
        r->first[design->windows[i].cell + 1]++;
    for (size_t i = 0; i < design->cell_count; i++)
        r->first[i + 1] += r->first[i];
    size_t *next = mem_dup(r->first, design->cell_count * sizeof(*next));
    for (size_t i = 0; i < design->window_count; i++)
        r->windows[next[design->windows[i].cell]++] = (uint32_t)i;
    free(next);
}

static enum err build_cells(struct report *r, struct err_detail *d)
{
    struct tally t = {.latency = hist_new(), .one = hist_new()};
    enum err e = ERR_OK;
    sort_windows(r);
    r->cells = mem_zalloc(r->design->cell_count, sizeof(*r->cells));
    r->run_counts = mem_zalloc(r->results.run_count, sizeof(*r->run_counts));
    for (size_t i = 0; e == ERR_OK && i < r->design->cell_count; i++)
        e = build_cell(r, i, &t, d);
    if (e == ERR_OK)
        e = store_count_attempts(r->store, r->results.job.id, r->design->window_count, &r->attempts_foreign,
                                 d);
    free(t.rates);
    hist_free(t.latency);
    hist_free(t.one);
    return e;
}

/* ---- standings ------------------------------------------------------------------------------------ */

/* Cells are ordered by target first: those of a group stand one such step apart. */
size_t report_group_count(const struct report *r)
{
    must(r->experiment->target_count > 0);
    return r->design->cell_count / r->experiment->target_count;
}

static void read_group(const struct report *r, size_t group, struct stats_summary *rates)
{
    for (size_t t = 0; t < r->experiment->target_count; t++)
        rates[t] = r->cells[t * report_group_count(r) + group].rate;
}

void report_order_group(const struct report *r, size_t group, size_t *out)
{
    size_t count = r->experiment->target_count;
    struct stats_summary *rates = mem_zalloc(count, sizeof *rates);
    read_group(r, group, rates);
    standings_order(rates, count, out);
    for (size_t i = 0; i < count; i++)
        out[i] = out[i] * report_group_count(r) + group;
    free(rates);
}

static void judge(struct report *r)
{
    size_t count = r->experiment->target_count;
    struct stats_summary *rates = mem_zalloc(count, sizeof *rates);
    struct standing *standings = mem_zalloc(count, sizeof *standings);
    for (size_t group = 0; group < report_group_count(r); group++) {
        read_group(r, group, rates);
        standings_judge(rates, count, standings);
        for (size_t t = 0; t < count; t++)
            r->cells[t * report_group_count(r) + group].standing = standings[t];
    }
    free(standings);
    free(rates);
}

/* Windows of a target that answered wrongly are not wanted. */
static void count_missing(struct report *r)
{
    for (size_t i = 0; r->results.job.mode == MSG_MODE_RUN && i < r->design->cell_count; i++) {
        const struct report_cell *c = &r->cells[i];
        if (!r->targets[c->design->target].withheld && c->present < c->windows)
            r->windows_missing += c->windows - c->present;
    }
}

/* ---- the whole ------------------------------------------------------------------------------------- */

static enum err read_experiment(struct report *r, struct err_detail *d)
{
    struct experiment_problems problems = {0};
    struct experiment_options options = {.file = r->results.job.id};
    const char *text = r->results.job.experiment_json;
    enum err e = experiment_parse(text, strlen(text), &options, &r->experiment, &problems);
    if (e != ERR_OK)
        err_set(d, e, "job %s: its stored experiment cannot be read by this version: %s", r->results.job.id,
                problems.count != 0 ? problems.items[0].text : err_text(e));
    experiment_problems_fini(&problems);
    return e;
}

static enum err build(struct report *r, const char *job, struct err_detail *d)
{
    enum err e = store_read_results(r->store, job, &r->results, d);
    if (e == ERR_OK)
        e = read_experiment(r, d);
    if (e == ERR_OK)
        e = design_build(r->experiment, &r->design, d);
    if (e != ERR_OK)
        return e;
    build_targets(r);
    e = build_cells(r, d);
    if (e != ERR_OK)
        return e;
    judge(r);
    count_missing(r);
    report_find_warnings(r);
    return ERR_OK;
}

enum err report_build(struct store *s, const char *job, struct report **out, struct err_detail *d)
{
    enum err e = store_snapshot_begin(s, d);
    if (e != ERR_OK)
        return e;
    struct report *r = mem_zalloc(1, sizeof(*r));
    r->store = s;
    e = build(r, job, d);
    if (e == ERR_OK)
        *out = r;
    else
        report_free(r);
    return e;
}

void report_free(struct report *r)
{
    if (r == NULL)
        return;
    store_snapshot_end(r->store);
    mem_free_strings(&r->warnings.items, &r->warnings.count);
    free(r->run_counts);
    free(r->first);
    free(r->windows);
    free(r->cells);
    free(r->targets);
    design_free(r->design);
    experiment_free(r->experiment);
    store_results_fini(&r->results);
    free(r);
}
