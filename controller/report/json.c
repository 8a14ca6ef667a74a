#include "common/clock.h"
#include "common/json_write.h"
#include "common/sha256.h"
#include "controller/report/model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Every field is described in docs/report.md; what is not known is null. */

static void put_time(struct json_writer *w, const char *key, uint64_t wall_ns)
{
    char text[CLOCK_TEXT_BYTES];
    json_write_string(w, key, wall_ns != 0 ? clock_wall_text(wall_ns, text) : NULL);
}

/* The controller's own figures are negative when they are not known. */
static void put_real(struct json_writer *w, const char *key, double v)
{
    json_write_double(w, key, v >= 0 ? v : NAN);
}

static void put_optional(struct json_writer *w, const char *key, const char *text)
{
    json_write_string(w, key, text != NULL && text[0] != '\0' ? text : NULL);
}

static void put_summary(struct json_writer *w, const char *key, const struct stats_summary *s)
{
    json_write_object(w, key);
    json_write_u64(w, "n", s->n);
    json_write_double(w, "mean", s->mean);
    json_write_double(w, "median", s->median);
    json_write_double(w, "sd", s->sd);
    json_write_double(w, "cv", s->cv);
    json_write_double(w, "min", s->min);
    json_write_double(w, "max", s->max);
    json_write_close(w);
}

static void put_usage(struct json_writer *w, const char *key, const struct report_usage *u)
{
    json_write_object(w, key);
    json_write_u64(w, "n", u->n);
    json_write_double(w, "mean", u->mean);
    json_write_double(w, "max", u->max);
    json_write_close(w);
}

static void put_latency(struct json_writer *w, const char *key, const struct latency_figures *f)
{
    if (f->count == 0) {
        json_write_null(w, key);
        return;
    }
    json_write_object(w, key);
    json_write_u64(w, "count", f->count);
    json_write_double(w, "mean", f->mean);
    json_write_u64(w, "min", f->min);
    json_write_u64(w, "p50", f->p50);
    json_write_u64(w, "p90", f->p90);
    json_write_u64(w, "p99", f->p99);
    json_write_u64(w, "p99.9", f->p999);
    json_write_u64(w, "max", f->max);
    json_write_close(w);
}

static void put_strings(struct json_writer *w, const char *key, const struct msg_strings *strings)
{
    json_write_array(w, key);
    for (size_t i = 0; i < strings->count; i++)
        json_write_string(w, NULL, strings->items[i]);
    json_write_close(w);
}

/* ---- the job --------------------------------------------------------------------------------------- */

static void put_job(struct json_writer *w, const struct report *r)
{
    const struct store_job *job = &r->results.job;
    json_write_object(w, "job");
    json_write_string(w, "id", job->id);
    json_write_string(w, "name", job->name);
    json_write_string(w, "mode", job->mode == MSG_MODE_VERIFY ? "verify" : "run");
    json_write_string(w, "state", store_job_state_name(job->state));
    put_optional(w, "cause", job->cause);
    json_write_i64(w, "exit_code", job->exit_code);
    put_time(w, "created", job->created_wall_ns);
    put_time(w, "started", job->started_wall_ns);
    put_time(w, "ended", job->ended_wall_ns);
    json_write_close(w);

    json_write_bool(w, "complete", job->state == STORE_JOB_DONE && r->windows_missing == 0);
    put_strings(w, "warnings", &r->warnings);
    json_write_object(w, "windows");
    json_write_u64(w, "total", r->design->window_count);
    json_write_u64(w, "present", r->windows_present);
    json_write_u64(w, "missing", r->windows_missing);
    json_write_u64(w, "invalid_attempts", r->attempts_invalid);
    json_write_u64(w, "late_events", r->results.late_events);
    json_write_close(w);
    json_write_array(w, "placements");
    for (int p = 0; p < STORE_PLACEMENT_COUNT; p++)
        if (r->placements[p])
            json_write_string(w, NULL, store_placement_name((enum store_placement)p));
    json_write_close(w);
}

static enum err put_experiment(struct json_writer *w, const struct report *r)
{
    char hash[SHA256_TEXT_BYTES];
    struct json_value *tree = NULL;
    const char *text = r->results.job.experiment_json;
    struct json_options options = {.comments = true};
    enum err e = json_parse(text, strlen(text), &options, &tree, NULL);
    if (e != ERR_OK)
        return e;
    json_write_string(w, "experiment_sha256", sha256_text(r->experiment->hash, hash));
    json_write_value(w, "experiment", tree);
    json_free(tree);
    return ERR_OK;
}

static void put_hosts(struct json_writer *w, const struct report *r)
{
    json_write_array(w, "hosts");
    for (size_t i = 0; i < r->results.host_count; i++) {
        const struct store_read_host *h = &r->results.hosts[i];
        json_write_object(w, NULL);
        json_write_i64(w, "id", h->id);
        json_write_string(w, "role", h->role);
        json_write_u64(w, "ordinal", h->ordinal);
        json_write_string(w, "agent", h->agent);
        json_write_string(w, "hostname", h->facts.hostname);
        json_write_string(w, "boot_id", h->facts.boot_id);
        json_write_string(w, "kernel", h->facts.kernel);
        json_write_string(w, "os", h->facts.os);
        put_optional(w, "libraries", h->facts.libraries);
        json_write_string(w, "cpu_model", h->facts.cpu_model);
        json_write_u64(w, "cpus", h->facts.cpus);
        json_write_string(w, "cpu_list", h->facts.cpu_list);
        json_write_u64(w, "memory_bytes", h->facts.memory_bytes);
        json_write_string(w, "address", h->facts.address);
        put_strings(w, "labels", &h->facts.labels);
        put_time(w, "since", h->put_wall_ns);
        json_write_close(w);
    }
    json_write_close(w);
}

/* ---- targets --------------------------------------------------------------------------------------- */

static void put_run(struct json_writer *w, const struct store_read_run *run)
{
    json_write_object(w, NULL);
    json_write_i64(w, "id", run->id);
    json_write_u64(w, "round", run->round + UINT64_C(1));
    json_write_u64(w, "slot", run->slot + UINT64_C(1));
    json_write_bool(w, "ok", run->ok);
    put_optional(w, "failed_check", run->failed_check);
    put_optional(w, "error", run->error);
    json_write_double(w, "startup_ns", run->startup_ns != 0 ? (double)run->startup_ns : NAN);
    json_write_double(w, "rss_before_bytes",
                      run->rss_before_bytes != 0 ? (double)run->rss_before_bytes : NAN);
    json_write_double(w, "rss_after_bytes",
                      run->ended && run->rss_after_bytes != 0 ? (double)run->rss_after_bytes : NAN);
    put_time(w, "started", run->started_wall_ns);
    json_write_string(w, "placement", store_placement_name(run->placement));
    json_write_array(w, "hosts");
    for (size_t i = 0; i < run->host_count; i++)
        json_write_i64(w, NULL, run->hosts[i]);
    json_write_close(w);
    if (run->log_tail.len != 0)
        json_write_text(w, "log_tail", (const char *)run->log_tail.data, run->log_tail.len);
    json_write_close(w);
}

static void put_labels(struct json_writer *w, const struct experiment_target *t)
{
    json_write_object(w, "labels");
    for (size_t i = 0; i < t->label_count; i++)
        json_write_string(w, t->labels[i].key, t->labels[i].value);
    json_write_close(w);
}

static void put_targets(struct json_writer *w, const struct report *r)
{
    json_write_array(w, "targets");
    for (uint32_t i = 0; i < r->experiment->target_count; i++) {
        const struct report_target *t = &r->targets[i];
        json_write_object(w, NULL);
        json_write_string(w, "name", r->experiment->targets[i].name);
        put_labels(w, &r->experiment->targets[i]);
        json_write_bool(w, "withheld", t->withheld);
        put_optional(w, "failed_check", t->failed_check);
        put_optional(w, "why", t->why);
        json_write_u64(w, "starts", t->starts);
        json_write_u64(w, "failed_starts", t->failed_starts);
        put_summary(w, "startup_ns", &t->startup_ns);
        put_summary(w, "rss_before_bytes", &t->rss_before_bytes);
        put_summary(w, "rss_after_bytes", &t->rss_after_bytes);
        json_write_array(w, "runs");
        for (size_t k = 0; k < r->results.run_count; k++)
            if (r->results.runs[k].target == i)
                put_run(w, &r->results.runs[k]);
        json_write_close(w);
        json_write_close(w);
    }
    json_write_close(w);
}

/* ---- cells and attempts ---------------------------------------------------------------------------- */

static void put_accounts(struct json_writer *w, const char *key, const struct msg_accounts *a)
{
    json_write_object(w, key);
#define X(name) json_write_u64(w, #name, a->name);
    MSG_ACCOUNTS_LIST(X)
#undef X
    json_write_close(w);
}

static void put_classes(struct json_writer *w, const struct msg_loaded *l)
{
    json_write_array(w, "errors");
    for (size_t i = 0; i < l->error_count; i++) {
        json_write_object(w, NULL);
        json_write_string(w, "phase", msg_text(l->errors[i].phase));
        json_write_string(w, "cause", msg_text(l->errors[i].cause));
        json_write_u64(w, "count", l->errors[i].count);
        put_optional(w, "sample", l->errors[i].sample);
        json_write_close(w);
    }
    json_write_close(w);
    json_write_array(w, "statuses");
    for (size_t i = 0; i < l->status_count; i++) {
        json_write_object(w, NULL);
        json_write_u64(w, "status", l->statuses[i].status);
        json_write_u64(w, "count", l->statuses[i].count);
        json_write_close(w);
    }
    json_write_close(w);
}

static void put_loaded(struct json_writer *w, const struct msg_loaded *l, struct hist *h)
{
    if (l == NULL) {
        json_write_null(w, "result");
        return;
    }
    struct latency_figures f = {0};
    if (latency_decode(h, &l->latency_hist, NULL) == ERR_OK)
        latency_read(h, &f);
    json_write_object(w, "result");
    json_write_string(w, "generator", l->generator);
    json_write_u64(w, "window_start_ns", l->window_start_ns);
    json_write_u64(w, "window_end_ns", l->window_end_ns);
    put_accounts(w, "window", &l->window);
    put_accounts(w, "warmup", &l->warmup);
    for (int i = 0; i < FIGURE_LOAD_COUNT; i++)
        json_write_figure(w, figure_load_rows[i].name, l->figures[i]);
    put_classes(w, l);
    put_latency(w, "latency_ns", &f);
    if (l->latency_hist.len != 0)
        json_write_text(w, "latency_hdr", (const char *)l->latency_hist.data, l->latency_hist.len);
    else
        json_write_null(w, "latency_hdr");
    json_write_close(w);
}

/* What is written while it goes out. */
struct writing {
    struct json_writer json;
    struct buf text; /* of it, what did not go out yet */
    const struct report_sink *sink;
    const struct report *report;
    struct hist *hist; /* of the attempt at hand */
    enum err e;        /* of the sink */
    struct err_detail *d;
};

#define PIECE_BYTES 65536u

/* Sends what is there, when it is much or all there is. */
static void send_text(struct writing *x, bool all)
{
    if (x->e == ERR_OK && x->text.len != 0 && (all || x->text.len >= PIECE_BYTES)) {
        x->e = x->sink->write(x->sink->arg, x->text.data, x->text.len, x->d);
        buf_clear(&x->text);
    }
}

static void put_attempt(void *arg, const struct store_attempt *a)
{
    struct writing *x = arg;
    struct json_writer *w = &x->json;
    const struct report *r = x->report;
    const struct design_window *window = &r->design->windows[a->window];
    json_write_object(w, NULL);
    json_write_u64(w, "window", a->window);
    json_write_u64(w, "round", window->round + UINT64_C(1));
    json_write_u64(w, "slot", window->slot + UINT64_C(1));
    json_write_u64(w, "attempt", a->attempt);
    json_write_bool(w, "valid", a->valid);
    json_write_bool(w, "final", a->final);
    json_write_bool(w, "counted", report_counts(r, a));
    put_optional(w, "gate", a->gate);
    put_optional(w, "reason", a->reason);
    if (a->run_id != 0)
        json_write_i64(w, "run", a->run_id);
    else
        json_write_null(w, "run");
    put_time(w, "started", a->started_wall_ns);
    json_write_double(w, "rate_per_s", report_rate(a));
#define X(name, ...) put_real(w, #name, a->name);
    FIGURE_WINDOW_LIST(X)
#undef X
    for (int i = 0; i < FIGURE_TREE_COUNT; i++)
        json_write_figure(w, figure_tree_rows[i].name, a->server[i]);
    json_write_u64(w, "dead_ns", a->dead_ns);
    put_loaded(w, a->loaded, x->hist);
    json_write_close(w);
    send_text(x, false);
}

/* As the list merges them over rounds. */
static void put_merged(struct json_writer *w, const struct figure_row *rows, int count,
                       const struct report_figure *figures)
{
    for (int i = 0; i < count; i++) {
        if (rows[i].rounds == FIGURE_SUM)
            json_write_figure(w, rows[i].name, figures[i].sum);
        else if (rows[i].rounds == FIGURE_USAGE)
            put_usage(w, rows[i].name, &figures[i].usage);
    }
}

static enum err put_cell(struct writing *x, size_t index)
{
    struct json_writer *w = &x->json;
    const struct report *r = x->report;
    const struct report_cell *c = &r->cells[index];
    json_write_object(w, NULL);
    json_write_string(w, "target", r->experiment->targets[c->design->target].name);
    json_write_string(w, "workload", r->experiment->workloads[c->design->workload].name);
    json_write_u64(w, "connections", c->design->connections);
    json_write_u64(w, "windows", c->windows);
    json_write_u64(w, "present", c->present);
    json_write_u64(w, "attempts_made", c->made);
    json_write_u64(w, "attempts_invalid", c->invalid);
    put_summary(w, "rate_per_s", &c->rate);
    json_write_string(w, "standing", standing_name(c->standing.kind));
    json_write_double(w, "against_best", c->standing.against_best);
    put_latency(w, "latency_ns", &c->latency);
    json_write_u64(w, "latency_missing", c->latency_missing);
    json_write_u64(w, "ok", c->ok);
    json_write_u64(w, "failed", c->failed);
    json_write_double(w, "body_bytes_per_s", c->body_bytes_per_s);
    json_write_double(w, "ok_per_server_cpu_s", c->ok_per_server_cpu_s);
    put_merged(w, figure_load_rows, FIGURE_LOAD_COUNT, c->load);
    put_merged(w, figure_tree_rows, FIGURE_TREE_COUNT, c->server);
#define X(name, since, rounds, ...)                                                                          \
    if (FIGURE_##rounds == FIGURE_USAGE)                                                                     \
        put_usage(w, #name, &c->name);
    FIGURE_WINDOW_LIST(X)
#undef X
    json_write_array(w, "attempts");
    enum err e = report_visit_cell(r, index, true, put_attempt, x, x->d);
    json_write_close(w);
    json_write_close(w);
    send_text(x, false);
    return e;
}

/* All before the cells; how much it is depends on the number of starts alone. */
static enum err put_head(struct writing *x)
{
    struct json_writer *w = &x->json;
    json_write_string(w, "format", "splitbench-report/1");
    put_job(w, x->report);
    enum err e = put_experiment(w, x->report);
    if (e != ERR_OK)
        return err_set(x->d, e, "the stored experiment cannot be read");
    put_hosts(w, x->report);
    put_targets(w, x->report);
    send_text(x, false);
    return ERR_OK;
}

static enum err put_report(struct writing *x)
{
    json_write_object(&x->json, NULL);
    enum err e = put_head(x);
    if (e != ERR_OK)
        return e;
    json_write_array(&x->json, "cells");
    for (size_t i = 0; e == ERR_OK && x->e == ERR_OK && i < x->report->design->cell_count; i++)
        e = put_cell(x, i);
    json_write_close(&x->json);
    json_write_close(&x->json);
    if (e == ERR_OK)
        e = json_write_end(&x->json);
    if (e == ERR_OK)
        e = buf_append_text(&x->text, "\n");
    if (e == ERR_TOO_BIG)
        err_set(x->d, e, "the experiment, hosts and starts of a report are larger than %u bytes",
                LIMIT_ANSWER_BYTES);
    send_text(x, true);
    return e != ERR_OK ? e : x->e;
}

enum err report_write_json(const struct report *r, const struct report_sink *sink, struct err_detail *d)
{
    struct writing x = {.sink = sink, .report = r, .hist = hist_new(), .d = d};
    buf_init(&x.text, LIMIT_ANSWER_BYTES);
    json_write_init(&x.json, &x.text, 1);
    enum err e = put_report(&x);
    hist_free(x.hist);
    buf_fini(&x.text);
    return e;
}
