#include "agent/load/result_json.h"

#include "agent/load/transport.h"
#include "common/clock.h"
#include "common/json_write.h"
#include "common/libraries.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* An absolute instant, ns: always a string, because readers use doubles. */
static void put_instant(struct json_writer *j, const char *key, uint64_t ns)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRIu64, ns);
    json_write_string(j, key, text);
}

static void put_accounts(struct json_writer *j, const char *key, const struct accounts *a)
{
    json_write_object(j, key);
    json_write_u64(j, "scheduled", a->scheduled);
    json_write_u64(j, "carried_in", a->carried_in);
    json_write_u64(j, "ok", a->ok);
    json_write_u64(j, "failed", a->failed);
    json_write_u64(j, "in_flight", a->in_flight);
    json_write_u64(j, "never_sent", a->never_sent);
    json_write_bool(j, "balanced", accounts_balanced(a));
    json_write_u64(j, "sent", a->sent);
    json_write_u64(j, "responses", a->responses);
    json_write_u64(j, "reconnects", a->reconnects);
    json_write_u64(j, "open_failures", a->open_failures);
    json_write_u64(j, "idle_closes", a->idle_closes);
    json_write_u64(j, "idle_surplus", a->idle_surplus);
    json_write_close(j);
}

/* In the objects that their rows name; null where the program could not measure one. */
static void put_measured(struct json_writer *j, const struct figure *figures)
{
    const char *open = "";
    for (int i = 0; i < FIGURE_LOAD_COUNT; i++) {
        const struct figure_row *row = &figure_load_rows[i];
        if (row->group == NULL)
            continue;
        if (strcmp(row->group, open) != 0) {
            if (open[0] != '\0')
                json_write_close(j);
            if (row->group[0] != '\0')
                json_write_object(j, row->group);
            open = row->group;
        }
        json_write_figure(j, row->key, figures[i]);
    }
    if (open[0] != '\0')
        json_write_close(j);
}

static void put_status(struct json_writer *j, const struct tally *t)
{
    json_write_object(j, "status");
    for (unsigned code = 0; code < TALLY_STATUS_MAX; code++) {
        char key[8];
        snprintf(key, sizeof key, "%u", code);
        if (t->status[code] != 0)
            json_write_u64(j, key, t->status[code]);
    }
    json_write_close(j);
}

static void put_requests(struct json_writer *j, const struct tally *t, const struct request_set *s)
{
    json_write_array(j, "requests");
    for (uint32_t i = 0; i < s->count; i++) {
        json_write_object(j, NULL);
        json_write_string(j, "name", s->items[i].name);
        json_write_u64(j, "weight", s->items[i].weight);
        json_write_u64(j, "ok", t->requests[i].ok);
        json_write_u64(j, "failed", t->requests[i].failed);
        json_write_close(j);
    }
    json_write_close(j);
}

static void put_faults(struct json_writer *j, const char *key, const struct fault_table *f)
{
    json_write_array(j, key);
    for (int p = 0; p < FAULT_PHASE_COUNT; p++) {
        for (int c = 0; c < FAULT_CAUSE_COUNT; c++) {
            const struct fault_cell *cell = &f->cells[p][c];
            if (cell->count == 0)
                continue;
            json_write_object(j, NULL);
            json_write_string(j, "phase", fault_phase_text((enum fault_phase)p));
            json_write_string(j, "cause", fault_cause_text((enum fault_cause)c));
            json_write_u64(j, "count", cell->count);
            json_write_string(j, "sample", cell->sample);
            json_write_close(j);
        }
    }
    json_write_close(j);
}

/* The figures of a histogram; null for what an empty one does not have. */
static void put_figures(struct json_writer *j, const char *key, const struct hist *h)
{
    static const struct {
        const char *key;
        double percent;
    } points[] = {{"p50", 50}, {"p75", 75},     {"p90", 90},      {"p95", 95},
                  {"p99", 99}, {"p99_9", 99.9}, {"p99_99", 99.99}};
    json_write_object(j, key);
    json_write_u64(j, "count", h->count);
    if (h->count != 0) {
        json_write_u64(j, "min", h->min);
        json_write_u64(j, "max", h->max);
        json_write_double(j, "mean", hist_mean(h));
        json_write_double(j, "stddev", hist_stddev(h));
        for (size_t i = 0; i < ARRAY_LEN(points); i++)
            json_write_u64(j, points[i].key, hist_percentile(h, points[i].percent));
    }
    json_write_close(j);
}

static void put_hist(struct json_writer *j, const char *key, const struct hist *h)
{
    struct buf text;
    buf_init(&text, HIST_TEXT_BYTES_MAX);
    if (hist_encode(h, &text) == ERR_OK)
        json_write_string(j, key, text.data);
    else
        json_write_null(j, key);
    buf_fini(&text);
}

/* Those that only such runs have, or that all have. */
static void put_hists(struct json_writer *j, const struct tally *y, enum tally_runs runs)
{
    for (int h = 0; h < TALLY_HIST_COUNT; h++) {
        const struct tally_hist_row *row = &tally_hist_rows[h];
        char key[48];
        if (row->runs != runs)
            continue;
        snprintf(key, sizeof key, "%s_ns", row->key);
        put_figures(j, key, &y->hists[h]);
        snprintf(key, sizeof key, "%s_hist", row->key);
        if (row->form == TALLY_WHOLE)
            put_hist(j, key, &y->hists[h]);
    }
}

static void put_timeline(struct json_writer *j, const struct run_result *r)
{
    json_write_u64(j, "interval_ns", r->interval_ns);
    json_write_array(j, "timeline");
    for (size_t i = 0; i < r->point_count; i++) {
        const struct timeline_point *p = &r->points[i];
        json_write_object(j, NULL);
        put_instant(j, "start_ns", p->start_ns);
        put_instant(j, "end_ns", p->end_ns);
        json_write_u64(j, "ok", p->ok);
        json_write_u64(j, "failed", p->failed);
        if (p->ok != 0) {
            json_write_u64(j, "p50", p->p50_ns);
            json_write_u64(j, "p90", p->p90_ns);
            json_write_u64(j, "p99", p->p99_ns);
            json_write_u64(j, "max", p->max_ns);
        }
        json_write_close(j);
    }
    json_write_close(j);
}

static void put_tls(struct json_writer *j, const struct tally *y)
{
    put_hists(j, y, TALLY_TLS);
    json_write_array(j, "tls");
    for (size_t i = 0; i < y->agreement.count; i++) {
        const struct agreement *a = &y->agreement.rows[i];
        json_write_object(j, NULL);
        json_write_string(j, "version", a->agreed.version);
        json_write_string(j, "suite", a->agreed.suite);
        json_write_string(j, "group", a->agreed.group);
        json_write_u64(j, "connections", a->connections);
        json_write_close(j);
    }
    json_write_close(j);
}

static void put_open_loop(struct json_writer *j, const struct tally *y, const struct options *o)
{
    json_write_object(j, "open_loop");
    json_write_string(j, "arrivals", o->schedule.arrivals == ARRIVALS_EVEN ? "even" : "poisson");
    json_write_double(j, "planned", pacer_schedule_total(&o->schedule));
    json_write_u64(j, "late", y->audit.late);
    if (o->schedule.count == 1 && audit_gap_cv(&y->audit) >= 0)
        json_write_double(j, "gap_cv", audit_gap_cv(&y->audit));
    else
        json_write_null(j, "gap_cv");
    json_write_u64(j, "burst_max_per_ms", y->audit.burst_max);
    put_hists(j, y, TALLY_OPEN_LOOP);
    json_write_close(j);
}

static void put_verdict(struct json_writer *j, const struct audit_verdict *v)
{
    json_write_object(j, "generator_limited");
    json_write_bool(j, "verdict", v->limit != LIMIT_NONE);
    if (v->limit != LIMIT_NONE) {
        json_write_string(j, "reason", audit_limit_text(v->limit));
        json_write_double(j, "value", v->value);
        json_write_double(j, "limit", v->bound);
    }
    json_write_close(j);
}

static void put_libraries(struct json_writer *j)
{
    const struct library liburing = {"liburing", transport_uring_version()};
    char *text = libraries_text(&liburing, 1);
    json_write_string(j, "libraries", text);
    free(text);
}

enum err result_json(struct buf *out, const struct run_result *r, const struct run_plan *plan,
                     const struct calibration *calibration)
{
    const struct options *o = plan->options;
    const struct target *t = plan->target;
    const struct tally *y = r->tally;
    double seconds = (double)(r->window_end_ns - r->window_start_ns) / (double)NS_PER_S;
    struct json_writer j;
    json_write_init(&j, out, 0);
    json_write_object(&j, NULL);
    json_write_string(&j, "format", RESULT_FORMAT);
    json_write_string(&j, "version", SPLITBENCH_BUILD);
    put_libraries(&j);
    json_write_string(&j, "url", t->url);
    json_write_string(&j, "mode", o->open_loop ? "open" : "closed");
    json_write_u64(&j, "connections", o->connections);
    json_write_u64(&j, "threads", o->threads);
    json_write_string(&j, "backend", r->backend);
    json_write_bool(&j, "interrupted", r->interrupted);
    json_write_object(&j, "window");
    put_instant(&j, "start_ns", r->window_start_ns);
    put_instant(&j, "end_ns", r->window_end_ns);
    json_write_close(&j);
    put_accounts(&j, "accounts", &y->accounts[PHASE_WINDOW]);
    put_accounts(&j, "warmup", &y->accounts[PHASE_WARMUP]);
    put_accounts(&j, "drain", &y->accounts[PHASE_DRAIN]);
    put_measured(&j, r->figures);
    put_status(&j, y);
    put_requests(&j, y, plan->requests);
    put_faults(&j, "errors", &y->faults[PHASE_WINDOW]);
    put_faults(&j, "warmup_errors", &y->faults[PHASE_WARMUP]);
    json_write_object(&j, "rate");
    json_write_double(&j, "ok_per_s", seconds > 0 ? (double)y->accounts[PHASE_WINDOW].ok / seconds : 0);
    json_write_close(&j);
    put_hists(&j, y, TALLY_ANY_RUN);
    put_timeline(&j, r);
    if (t->tls)
        put_tls(&j, y);
    if (o->open_loop)
        put_open_loop(&j, y, o);
    json_write_array(&j, "threads_busy");
    for (uint32_t i = 0; i < o->threads; i++)
        json_write_double(&j, NULL, r->thread_shares[i]);
    json_write_close(&j);
    put_verdict(&j, &r->verdict);
    if (calibration != NULL)
        calibrate_print_json(calibration, &j, "calibration");
    json_write_close(&j);
    enum err e = json_write_end(&j);
    return e == ERR_OK ? buf_append_text(out, "\n") : e;
}
