#include "common/clock.h"
#include "common/mem.h"
#include "common/parse.h"
#include "controller/report/model.h"
#include "controller/report/table.h"
#include "controller/report/units.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Below this a terminal gets long lines rather than unreadable tables. */
#define WIDTH_MIN 80u
#define WIDTH_MAX 200u
/* Invalid attempts listed one by one; the JSON has all. */
#define ATTEMPTS_SHOWN 20u

struct page {
    const struct report *r;
    unsigned width;
    struct buf *out;
    enum err e; /* the first failure sticks */
};

static void say(struct page *p, const char *text)
{
    if (p->e == ERR_OK)
        p->e = buf_append_text(p->out, text);
}

static void wrap(struct page *p, const char *lead, size_t indent, const char *text)
{
    if (p->e == ERR_OK)
        p->e = table_wrap(lead, indent, text, p->width, p->out);
}

/* A sentence of our own making: wrapped, then freed. */
static void wrap_owned(struct page *p, const char *lead, size_t indent, char *text)
{
    wrap(p, lead, indent, text);
    free(text);
}

static void put_table(struct page *p, struct table *t)
{
    if (p->e == ERR_OK)
        p->e = table_write(t, p->width, p->out);
    table_fini(t);
}

/* A rule with words in it, as wide as the page; words that need more than a line get no rule. */
static void heading(struct page *p, char *words)
{
    struct buf line;
    buf_init(&line, (size_t)16 * LIMIT_TEXT_BYTES);
    enum err e = table_wrap("--", 3, words, p->width, &line);
    size_t have = e == ERR_OK ? table_text_width(line.data) - 1 : 0; /* without its line break */
    if (e == ERR_OK && have + 3 < p->width) {
        line.data[--line.len] = '\0';
        e = buf_append_text(&line, " ");
        for (size_t i = have + 1; e == ERR_OK && i < p->width; i++)
            e = buf_append_text(&line, "-");
        if (e == ERR_OK)
            e = buf_append_text(&line, "\n");
    }
    say(p, "\n");
    if (p->e == ERR_OK)
        p->e = e;
    say(p, line.data != NULL ? line.data : "");
    say(p, "\n");
    buf_fini(&line);
    free(words);
}

static const char *target_name(const struct page *p, size_t target)
{
    return p->r->experiment->targets[target].name;
}

/* Nothing will be added to it, unless it is resumed. */
static bool is_over(const struct report *r)
{
    return r->results.job.state != STORE_JOB_QUEUED && r->results.job.state != STORE_JOB_RUNNING;
}

/* ---- top: what, where, when ------------------------------------------------------------------------ */

static const char *const placement_means[STORE_PLACEMENT_COUNT] = {
    [STORE_PLACEMENT_SPLIT_HOSTS] = "server and generator on different machines",
    [STORE_PLACEMENT_SPLIT_CPUS] = "one machine, server and generator on CPUs of their own",
    [STORE_PLACEMENT_SHARED] = "one machine, server and generator on the same CPUs",
};

static void put_when(struct page *p)
{
    const struct store_job *job = &p->r->results.job;
    char from[CLOCK_TEXT_BYTES];
    char to[CLOCK_TEXT_BYTES];
    char took[32];
    if (job->started_wall_ns == 0)
        wrap(p, "when", 12, "not started yet");
    else if (job->ended_wall_ns <= job->started_wall_ns)
        wrap_owned(p, "when", 12, mem_printf("since %s", clock_wall_text(job->started_wall_ns, from)));
    else
        wrap_owned(
            p, "when", 12,
            mem_printf("%s to %s (%s)", clock_wall_text(job->started_wall_ns, from),
                       clock_wall_text(job->ended_wall_ns, to),
                       parse_duration_text(job->ended_wall_ns - job->started_wall_ns, took, sizeof(took))));
}

/* "cooldown 75s", "no gap" */
static char *pause_text(const char *what, uint64_t ns)
{
    char text[32];
    return ns != 0 ? mem_printf("%s %s", what, parse_duration_text(ns, text, sizeof(text)))
                   : mem_printf("no %s", what);
}

static const char *plural(size_t n)
{
    return n == 1 ? "" : "s";
}

static void put_design(struct page *p)
{
    const struct experiment *x = p->r->experiment;
    const char *order = x->design.order == EXPERIMENT_ORDER_LATIN_SQUARE ? "latin-square" : "fixed";
    char *cooldown = pause_text("cooldown", x->design.cooldown_ns);
    char *gap = pause_text("gap", x->design.gap_ns);
    wrap_owned(p, "design", 12,
               mem_printf("%zu target%s, %zu workload%s, %u round%s, %s order, %s, %s", x->target_count,
                          plural(x->target_count), x->workload_count, plural(x->workload_count),
                          x->design.rounds, plural(x->design.rounds), order, cooldown, gap));
    free(cooldown);
    free(gap);
    if (p->r->results.job.mode == MSG_MODE_RUN)
        wrap_owned(p, "windows", 12,
                   mem_printf("%zu of %zu, %zu invalid attempt%s", p->r->windows_present,
                              p->r->design->window_count, p->r->attempts_invalid,
                              plural(p->r->attempts_invalid)));
}

/* Only the newest of each part is shown; older ones that figures come from are in the warnings. */
static bool is_newest(const struct store_results *results, size_t host)
{
    const struct store_read_host *h = &results->hosts[host];
    for (size_t i = host + 1; i < results->host_count; i++)
        if (results->hosts[i].ordinal == h->ordinal && strcmp(results->hosts[i].role, h->role) == 0)
            return false;
    return true;
}

static char *role_text(const struct store_read_host *h)
{
    return h->ordinal != 0 ? mem_printf("%s %u", h->role, h->ordinal + 1) : mem_strdup(h->role);
}

/* The libraries that ran: each list once, with the parts that ran it before it. */
static void put_libraries(struct page *p)
{
    const struct store_results *results = &p->r->results;
    const char *lead = "libraries";
    bool *told = mem_zalloc(results->host_count, sizeof(*told));
    for (size_t i = 0; i < results->host_count; i++) {
        const char *list = results->hosts[i].facts.libraries;
        if (told[i] || !is_newest(results, i))
            continue;
        char *roles = role_text(&results->hosts[i]);
        for (size_t j = i + 1; j < results->host_count; j++) {
            if (!is_newest(results, j) || strcmp(results->hosts[j].facts.libraries, list) != 0)
                continue;
            char *role = role_text(&results->hosts[j]);
            char *both = mem_printf("%s, %s", roles, role);
            free(role);
            free(roles);
            roles = both;
            told[j] = true;
        }
        wrap_owned(p, lead, 12,
                   mem_printf("%s: %s", roles, list[0] != '\0' ? list : "unknown, the agent did not say"));
        lead = "";
        free(roles);
    }
    free(told);
}

static void put_hosts(struct page *p)
{
    const struct store_results *results = &p->r->results;
    for (size_t i = 0; i < results->host_count; i++) {
        const struct store_read_host *h = &results->hosts[i];
        const struct store_read_host *same = NULL;
        for (size_t j = 0; j < i && h->facts.boot_id[0] != '\0'; j++)
            if (strcmp(results->hosts[j].facts.boot_id, h->facts.boot_id) == 0)
                same = &results->hosts[j];
        if (!is_newest(results, i))
            continue;
        char memory[UNITS_TEXT_BYTES];
        char *where = same != NULL
                          ? mem_printf("%s on %s: the machine of %s", h->agent, h->facts.hostname, same->role)
                          : mem_printf("%s on %s: %s, %u CPUs (%s), %s, %s, Linux %s", h->agent,
                                       h->facts.hostname, h->facts.cpu_model, h->facts.cpus,
                                       h->facts.cpu_list, units_bytes((double)h->facts.memory_bytes, memory),
                                       h->facts.os, h->facts.kernel);
        char *role = role_text(h);
        wrap_owned(p, role, 12, where);
        free(role);
    }
}

static bool has_placement(const struct report *r)
{
    for (int i = 0; i < STORE_PLACEMENT_COUNT; i++)
        if (r->placements[i])
            return true;
    return false;
}

static void put_top(struct page *p)
{
    const struct store_job *job = &p->r->results.job;
    wrap_owned(p, "", 0,
               mem_printf("%s: job %s, %s%s", job->name, job->id, store_job_state_name(job->state),
                          job->mode == MSG_MODE_VERIFY ? " (verified only: no load)" : ""));
    for (size_t i = 0; i < p->r->warnings.count; i++)
        wrap(p, "  !", 4, p->r->warnings.items[i]);
    say(p, "\n");
    put_when(p);
    for (int i = 0; i < STORE_PLACEMENT_COUNT; i++)
        if (p->r->placements[i])
            wrap_owned(
                p, "placement", 12,
                mem_printf("%s: %s", store_placement_name((enum store_placement)i), placement_means[i]));
    if (!has_placement(p->r))
        wrap(p, "placement", 12, is_over(p->r) ? "none: it never had its hosts" : "not placed yet");
    put_hosts(p);
    put_libraries(p);
    put_design(p);
}

/* ---- one table for each workload and number of connections ------------------------------------------ */

enum {
    COL_NAME,
    COL_MEAN,
    COL_SD,
    COL_CV,
    COL_MIN,
    COL_MAX,
    COL_BEST,
    COL_N,
    COL_P50,
    COL_P90,
    COL_P99,
    COL_P999,
    COL_WORST,
    COL_BODY,
    COL_SERVER,
    COL_PER_CPU,
    COL_GENERATOR,
    COL_FOREIGN,
    COL_ERRORS,
    COL_ATTEMPTS,
};

static const struct table_column cell_columns[] = {
    [COL_NAME] = {"target", 0, true},
    [COL_MEAN] = {"req/s", 1, false},
    [COL_SD] = {"SD", 1, false},
    [COL_CV] = {"CV", 1, false},
    [COL_MIN] = {"min", 1, false},
    [COL_MAX] = {"max", 1, false},
    [COL_BEST] = {"vs best", 1, false},
    [COL_N] = {"rounds", 1, false},
    [COL_P50] = {"p50", 2, false},
    [COL_P90] = {"p90", 2, false},
    [COL_P99] = {"p99", 2, false},
    [COL_P999] = {"p99.9", 2, false},
    [COL_WORST] = {"max", 2, false},
    [COL_BODY] = {"body/s", 2, false},
    [COL_SERVER] = {"server", 3, false},
    [COL_PER_CPU] = {"req/CPU-s", 3, false},
    [COL_GENERATOR] = {"generator", 3, false},
    [COL_FOREIGN] = {"others s/l", 3, false},
    [COL_ERRORS] = {"errors", 3, false},
    [COL_ATTEMPTS] = {"attempts", 3, false},
};

static void set_rate(struct table *t, const struct report_cell *c)
{
    char text[UNITS_TEXT_BYTES];
    table_set(t, COL_MEAN, "%s", units_rate(c->rate.mean, 4, text));
    table_set(t, COL_SD, "%s", units_rate(c->rate.sd, 3, text));
    table_set(t, COL_CV, "%s", units_percent(c->rate.cv, false, text));
    table_set(t, COL_MIN, "%s", units_rate(c->rate.min, 4, text));
    table_set(t, COL_MAX, "%s", units_rate(c->rate.max, 4, text));
    table_set(t, COL_N, "%zu/%zu", c->rate.n, c->windows);
    switch (c->standing.kind) {
    case STANDING_BEST:
        table_set(t, COL_BEST, "best");
        break;
    case STANDING_TIE:
        table_set(t, COL_BEST, "tie %s", units_percent(c->standing.against_best, true, text));
        break;
    case STANDING_UNKNOWN:
        table_set(t, COL_BEST, "? %s", units_percent(c->standing.against_best, true, text));
        break;
    case STANDING_BEHIND:
        table_set(t, COL_BEST, "%s", units_percent(c->standing.against_best, true, text));
        break;
    case STANDING_NONE:
        table_set(t, COL_BEST, "no number");
        break;
    case STANDING_ALONE:
    case STANDING_COUNT:
        table_set(t, COL_BEST, "-");
        break;
    }
}

static void set_latency(struct table *t, const struct report_cell *c)
{
    char text[UNITS_TEXT_BYTES];
    const uint64_t values[] = {c->latency.p50, c->latency.p90, c->latency.p99, c->latency.p999,
                               c->latency.max};
    for (size_t i = 0; i < ARRAY_LEN(values); i++)
        table_set(t, COL_P50 + i, "%s", units_time(c->latency.count != 0 ? (double)values[i] : NAN, text));
    table_set(t, COL_BODY, "%s", units_bytes(c->body_bytes_per_s, text));
}

static void set_cost(struct table *t, const struct report_cell *c)
{
    char text[UNITS_TEXT_BYTES];
    char more[UNITS_TEXT_BYTES];
    table_set(t, COL_SERVER, "%s", units_cores(c->server_cpu_cores.mean, text));
    table_set(t, COL_PER_CPU, "%s", units_rate(c->ok_per_server_cpu_s, 4, text));
    table_set(t, COL_GENERATOR, "%s", units_cores(c->generator_cpu_cores.mean, text));
    table_set(t, COL_FOREIGN, "%s/%s", units_cores(c->foreign_cpu_cores_server.mean, text),
              units_cores(c->foreign_cpu_cores_load.mean, more));
    if (c->rate.n != 0)
        table_set(t, COL_ERRORS, "%llu", (unsigned long long)c->failed);
    else
        table_set(t, COL_ERRORS, "-");
    if (c->invalid != 0)
        table_set(t, COL_ATTEMPTS, "%zu, %zu bad", c->made, c->invalid);
    else
        table_set(t, COL_ATTEMPTS, "%zu", c->made);
}

static void put_group(struct page *p, size_t index)
{
    size_t count = p->r->experiment->target_count;
    const struct report_cell **group = mem_zalloc(count, sizeof *group);
    report_order_group(p->r, index, group);
    const struct experiment_workload *w = &p->r->experiment->workloads[group[0]->design->workload];
    uint32_t connections = group[0]->design->connections;
    char duration[32];
    char warmup[32];
    char *name = table_shorten(w->name, 40);
    char *path = table_shorten(msg_text(w->request.path), 40);
    parse_duration_text(w->warmup_ns, warmup, sizeof(warmup));
    char *title = mem_printf("%s: %s %s, %u connection%s, %s%s%s%s", name, msg_text(w->request.method), path,
                             connections, plural(connections),
                             parse_duration_text(w->duration_ns, duration, sizeof(duration)),
                             w->warmup_ns != 0 ? " after " : ", no warm-up", w->warmup_ns != 0 ? warmup : "",
                             w->warmup_ns != 0 ? " of warm-up" : "");
    free(name);
    free(path);
    heading(p, title);
    bool any = false;
    for (size_t i = 0; i < count; i++)
        any = any || group[i]->rate.n != 0;
    if (!any) {
        wrap(p, "", 4, is_over(p->r) ? "no number" : "no number yet");
        free(group);
        return;
    }

    struct table t;
    table_init(&t, cell_columns, ARRAY_LEN(cell_columns));
    t.group_titles[1] = "throughput";
    t.group_titles[2] = "latency";
    t.group_titles[3] = "cost in cores";
    for (size_t i = 0; i < count; i++) {
        const struct report_cell *c = group[i];
        table_add_row(&t, target_name(p, c->design->target));
        set_rate(&t, c);
        set_latency(&t, c);
        set_cost(&t, c);
    }
    put_table(p, &t);
    free(group);
}

/* ---- targets --------------------------------------------------------------------------------------- */

/* "bun/elysia: runtime=bun, framework=elysia" */
static void put_labels(struct page *p)
{
    for (size_t i = 0; i < p->r->experiment->target_count; i++) {
        const struct experiment_target *t = &p->r->experiment->targets[i];
        char *text = mem_printf("%s: ", t->name);
        for (size_t k = 0; k < t->label_count; k++) {
            char *more =
                mem_printf("%s%s%s=%s", text, k != 0 ? ", " : "", t->labels[k].key, t->labels[k].value);
            free(text);
            text = more;
        }
        if (t->label_count != 0)
            wrap(p, "", 4, text);
        free(text);
    }
}

static void put_targets(struct page *p)
{
    static const struct table_column columns[] = {
        {"", 0, true},        {"median", 1, false},     {"min", 1, false},
        {"max", 1, false},    {"RSS before", 1, false}, {"RSS after", 1, false},
        {"starts", 1, false},
    };
    char text[UNITS_TEXT_BYTES];
    struct table t;
    size_t starts = 0;
    for (size_t i = 0; i < p->r->experiment->target_count; i++)
        starts += p->r->targets[i].starts;
    heading(p, mem_strdup("targets"));
    if (starts == 0) {
        wrap(p, "", 4, is_over(p->r) ? "none was started" : "none was started yet");
        put_labels(p);
        return;
    }
    table_init(&t, columns, ARRAY_LEN(columns));
    t.group_titles[1] = "start-up";
    for (size_t i = 0; i < p->r->experiment->target_count; i++) {
        const struct report_target *target = &p->r->targets[i];
        table_add_row(&t, target_name(p, i));
        table_set(&t, 1, "%s", units_time(target->startup_ns.median, text));
        table_set(&t, 2, "%s", units_time(target->startup_ns.min, text));
        table_set(&t, 3, "%s", units_time(target->startup_ns.max, text));
        table_set(&t, 4, "%s", units_bytes(target->rss_before_bytes.median, text));
        table_set(&t, 5, "%s", units_bytes(target->rss_after_bytes.median, text));
        if (target->failed_starts != 0)
            table_set(&t, 6, "%zu, %zu bad", target->starts, target->failed_starts);
        else
            table_set(&t, 6, "%zu", target->starts);
    }
    put_table(p, &t);
    put_labels(p);
}

/* Without "check 'NAME' failed: ", which the line says itself. */
static const char *without_check(const char *why, const char *check)
{
    char *lead = mem_printf("check '%s' failed: ", check);
    size_t len = strlen(lead);
    bool there = strncmp(why, lead, len) == 0;
    free(lead);
    return there ? why + len : why;
}

static void put_failures(struct page *p)
{
    bool any = false;
    for (size_t i = 0; i < p->r->experiment->target_count; i++) {
        const struct report_target *t = &p->r->targets[i];
        if (t->why == NULL)
            continue;
        const char *why = t->why[0] != '\0' ? t->why : "no reason was stored";
        if (!any)
            heading(p, mem_strdup("failures"));
        any = true;
        if (t->withheld)
            wrap_owned(p, "  !", 4,
                       mem_printf("%s has no number: check \"%s\" failed in round %u: %s", target_name(p, i),
                                  t->failed_check, t->failed_round + 1, without_check(why, t->failed_check)));
        else
            wrap_owned(p, "  !", 4,
                       mem_printf("%s failed in %zu of %zu runs, first in round %u: %s", target_name(p, i),
                                  t->failed_starts, t->starts, t->failed_round + 1, why));
    }
}

static void put_invalid(struct page *p)
{
    size_t shown = 0;
    if (p->r->attempts_invalid == 0)
        return;
    heading(p, mem_strdup("invalid attempts, in no figure"));
    for (size_t i = 0; i < p->r->results.attempt_count; i++) {
        const struct store_attempt *a = &p->r->results.attempts[i];
        if (a->valid || a->window >= p->r->design->window_count || shown++ >= ATTEMPTS_SHOWN)
            continue;
        const struct design_window *w = &p->r->design->windows[a->window];
        const struct design_cell *c = &p->r->design->cells[w->cell];
        wrap_owned(p, "", 4,
                   mem_printf("%s, %s with %u connection%s, round %u, attempt %u: %s: %s",
                              target_name(p, c->target), p->r->experiment->workloads[c->workload].name,
                              c->connections, plural(c->connections), w->round + 1, a->attempt, a->gate,
                              a->reason));
    }
    if (shown > ATTEMPTS_SHOWN)
        wrap_owned(p, "", 4, mem_printf("and %zu more: --json has all", shown - ATTEMPTS_SHOWN));
}

/* ---- bottom: how to read it ------------------------------------------------------------------------ */

static void put_chance(struct page *p)
{
    size_t n = SIZE_MAX; /* the fewest rounds that a difference rests on */
    for (size_t i = 0; i < p->r->design->cell_count; i++) {
        const struct report_cell *c = &p->r->cells[i];
        bool judged =
            c->standing.kind == STANDING_BEHIND || (c->standing.kind == STANDING_BEST && c->rate.n >= 2);
        n = judged && c->rate.n < n ? c->rate.n : n;
    }
    double chance = standings_chance(n);
    wrap_owned(p, "  -N%", 14,
               chance >= 0.001
                   ? mem_printf("behind the best: none of its rounds reached the slowest round of the best; "
                                "with %zu rounds, two equal servers would look so in %.2g%% of cases",
                                n, 100 * chance)
                   : mem_strdup("behind the best: none of its rounds reached the slowest round of the best"));
}

static void put_legend(struct page *p)
{
    bool seen[STANDING_COUNT] = {false};
    bool any = false;
    for (size_t i = 0; i < p->r->design->cell_count; i++) {
        seen[p->r->cells[i].standing.kind] = true;
        any = any || p->r->cells[i].rate.n != 0;
    }
    if (!any)
        return;
    heading(p, mem_strdup("how to read it"));
    wrap(p, "  req/s", 14,
         "complete 2xx answers a second, mean over the rounds with a valid window; SD of the sample, "
         "CV = SD/mean");
    wrap(p, "  latency", 14, "percentiles of the requests of all those rounds together");
    wrap(p, "  cost", 14,
         "CPU cores used by the server, by the generator, and by everything else on the server's (s) and the "
         "load's "
         "(l) host, mean of rounds; req/CPU-s: answers for each second of server CPU");
    if (seen[STANDING_TIE])
        wrap(p, "  tie", 14,
             "its rounds, from min to max, overlap those of the best: the difference is within the spread "
             "between "
             "rounds");
    if (seen[STANDING_BEHIND])
        put_chance(p);
    if (seen[STANDING_UNKNOWN])
        wrap(p, "  ?", 14,
             "one round only: the spread between rounds is not known, and the order means nothing");
}

enum err report_write_text(const struct report *r, unsigned width, struct buf *out)
{
    struct page p = {.r = r, .width = width, .out = out};
    p.width = width < WIDTH_MIN ? WIDTH_MIN : width > WIDTH_MAX ? WIDTH_MAX : width;
    put_top(&p);
    put_failures(&p);
    if (r->results.job.mode == MSG_MODE_RUN)
        for (size_t group = 0; group < report_group_count(r); group++)
            put_group(&p, group);
    put_targets(&p);
    if (r->results.job.mode == MSG_MODE_RUN) {
        put_invalid(&p);
        put_legend(&p);
    }
    return p.e;
}
