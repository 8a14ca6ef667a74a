#include "controller/store/store_read.h"

#include "controller/store/store_row.h"

#include <stdlib.h>

static enum err read_hosts(struct store *s, const char *job, struct store_results *out, struct err_detail *d)
{
    struct store_rows rows;
    store_select(&rows, s, &store_hosts_table, " WHERE job = ? ORDER BY id", STORE_VALUES(store_text(job)));
    while (store_rows_next(&rows)) {
        out->hosts = store_grow(out->hosts, out->host_count, sizeof(*out->hosts));
        store_get_host(&rows, &out->hosts[out->host_count++]);
    }
    return store_rows_fini(&rows, d);
}

static enum err read_run_hosts(struct store *s, struct store_read_run *run, struct err_detail *d)
{
    struct store_rows rows;
    store_rows_init(&rows, s, "SELECT host FROM target_run_hosts WHERE run = ? ORDER BY host",
                    STORE_VALUES(store_i64(run->id)));
    while (store_rows_next(&rows)) {
        run->hosts = store_grow(run->hosts, run->host_count, sizeof(*run->hosts));
        run->hosts[run->host_count++] = store_column_i64(&rows, 0);
    }
    return store_rows_fini(&rows, d);
}

#define ROW struct store_read_run
static const struct store_column run_columns[] = {
    C_REF("id", id),
    C_U32("target", target),
    C_U32("round", round),
    C_U32("slot", slot),
    C_BOOL("ok", ok),
    C_TEXT("error", error),
    C_TEXT("failed_check", failed_check),
    C_U64("startup_ns", startup_ns),
    C_U64("rss_before_bytes", rss_before_bytes),
    C_BOOL("rss_after_bytes IS NOT NULL", ended),
    C_U64("rss_after_bytes", rss_after_bytes),
    C_U64("started_wall_ns", started_wall_ns),
    C_WORD("placement", placement, store_placement, store_placement_words, STORE_PLACEMENT_COUNT),
    C_BLOB("iif(ok, NULL, substr(log, -?))", log_tail),
};
#undef ROW
static const struct store_table runs_table = STORE_TABLE("target_runs", run_columns); /* only read from */

static enum err read_runs(struct store *s, const char *job, struct store_results *out, struct err_detail *d)
{
    struct store_rows rows;
    store_select(&rows, s, &runs_table, " WHERE job = ? ORDER BY id",
                 STORE_VALUES(store_u64(STORE_LOG_TAIL_BYTES), store_text(job)));
    while (store_rows_next(&rows)) {
        out->runs = store_grow(out->runs, out->run_count, sizeof(*out->runs));
        struct store_read_run *run = &out->runs[out->run_count++];
        *run = (struct store_read_run){0};
        store_get_row(&rows, &runs_table, run);
    }
    enum err e = store_rows_fini(&rows, d);
    for (size_t i = 0; e == ERR_OK && i < out->run_count; i++)
        e = read_run_hosts(s, &out->runs[i], d);
    return e;
}

static enum err count_late(struct store *s, const char *job, struct store_results *out, struct err_detail *d)
{
    struct store_rows rows;
    store_rows_init(&rows, s, "SELECT count(*) FROM late_events WHERE job = ?",
                    STORE_VALUES(store_text(job)));
    if (store_rows_next(&rows))
        out->late_events = store_column_u64(&rows, 0);
    return store_rows_fini(&rows, d);
}

enum err store_read_results(struct store *s, const char *job, struct store_results *out, struct err_detail *d)
{
    struct store_results r = {0};
    enum err e = store_get_job(s, job, &r.job, d);
    if (e == ERR_OK)
        e = read_hosts(s, r.job.id, &r, d);
    if (e == ERR_OK)
        e = read_runs(s, r.job.id, &r, d);
    if (e == ERR_OK)
        e = count_late(s, r.job.id, &r, d);
    if (e == ERR_OK)
        *out = r;
    else
        store_results_fini(&r);
    return e;
}

void store_results_fini(struct store_results *r)
{
    for (size_t i = 0; i < r->host_count; i++)
        store_read_host_fini(&r->hosts[i]);
    for (size_t i = 0; i < r->run_count; i++) {
        store_row_fini(&runs_table, &r->runs[i]);
        free(r->runs[i].hosts);
    }
    free(r->hosts);
    free(r->runs);
    store_job_fini(&r->job);
    *r = (struct store_results){0};
}

enum err store_snapshot_begin(struct store *s, struct err_detail *d)
{
    return store_begin_read(s, d);
}

void store_snapshot_end(struct store *s)
{
    enum err e = store_end(s, ERR_CLOSED, NULL); /* nothing was written: there is nothing to lose */
    must(e == ERR_CLOSED);
}

/* ---- attempts ------------------------------------------------------------------------------------- */

enum loads { NO_LOADS, LOADS, WHOLE_LOADS };

static enum err visit_row(struct store_rows *rows, enum loads loads, store_visit *visit, void *arg,
                          struct err_detail *d)
{
    struct store_attempt a = {0};
    struct msg_loaded loaded = {0};
    enum err e = ERR_OK;
    store_get_row(rows, &store_attempts_table, &a);
    if (loads != NO_LOADS && a.load_id != 0) {
        e = store_get_load(rows->store, a.load_id, loads == WHOLE_LOADS, &loaded, d);
        a.loaded = &loaded;
    }
    if (e == ERR_OK)
        visit(arg, &a);
    msg_loaded_fini(&loaded);
    store_row_fini(&store_attempts_table, &a);
    return e;
}

/* Each row of a select from store_attempts_table. */
static enum err visit_rows(struct store_rows *rows, enum loads loads, store_visit *visit, void *arg,
                           struct err_detail *d)
{
    enum err e = ERR_OK;
    while (e == ERR_OK && store_rows_next(rows))
        e = visit_row(rows, loads, visit, arg, d);
    enum err read = store_rows_fini(rows, e == ERR_OK ? d : NULL);
    return e != ERR_OK ? e : read;
}

enum err store_visit_window(struct store *s, const char *job, uint32_t window, bool whole, store_visit *visit,
                            void *arg, struct err_detail *d)
{
    struct store_rows rows;
    store_select(&rows, s, &store_attempts_table, " WHERE job = ? AND window = ? ORDER BY attempt",
                 STORE_VALUES(store_text(job), store_u64(window)));
    return visit_rows(&rows, whole ? WHOLE_LOADS : LOADS, visit, arg, d);
}

enum err store_visit_invalid(struct store *s, const char *job, size_t window_count, size_t max,
                             store_visit *visit, void *arg, struct err_detail *d)
{
    struct store_rows rows;
    store_select(&rows, s, &store_attempts_table,
                 " WHERE job = ? AND window < ? AND NOT valid ORDER BY window, attempt LIMIT ?",
                 STORE_VALUES(store_text(job), store_u64(window_count), store_u64(max)));
    return visit_rows(&rows, NO_LOADS, visit, arg, d);
}

enum err store_count_attempts(struct store *s, const char *job, size_t from_window, size_t *out,
                              struct err_detail *d)
{
    struct store_rows rows;
    store_rows_init(&rows, s, "SELECT count(*) FROM attempts WHERE job = ? AND window >= ?",
                    STORE_VALUES(store_text(job), store_u64(from_window)));
    size_t count = store_rows_next(&rows) ? (size_t)store_column_u64(&rows, 0) : 0;
    enum err e = store_rows_fini(&rows, d);
    if (e == ERR_OK)
        *out = count;
    return e;
}
