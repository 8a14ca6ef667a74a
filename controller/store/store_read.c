#include "controller/store/store_read.h"

#include "common/mem.h"
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

static enum err read_loads(struct store *s, struct store_results *out, struct err_detail *d)
{
    enum err e = ERR_OK;
    out->loads = mem_zalloc(out->attempt_count, sizeof(*out->loads));
    for (size_t i = 0; e == ERR_OK && i < out->attempt_count; i++) {
        if (out->attempts[i].load_id == 0)
            continue;
        out->attempts[i].loaded = &out->loads[out->load_count];
        e = store_get_load(s, out->attempts[i].load_id, &out->loads[out->load_count++], d);
    }
    return e;
}

static enum err read_attempts(struct store *s, const char *job, struct store_results *out,
                              struct err_detail *d)
{
    struct store_rows rows;
    store_select(&rows, s, &store_attempts_table, " WHERE job = ? ORDER BY window, attempt",
                 STORE_VALUES(store_text(job)));
    while (store_rows_next(&rows)) {
        out->attempts = store_grow(out->attempts, out->attempt_count, sizeof(*out->attempts));
        struct store_attempt *a = &out->attempts[out->attempt_count++];
        *a = (struct store_attempt){0};
        store_get_row(&rows, &store_attempts_table, a);
    }
    enum err e = store_rows_fini(&rows, d);
    return e == ERR_OK ? read_loads(s, out, d) : e;
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
    enum err e = store_begin_read(s, d);
    if (e != ERR_OK)
        return e;
    e = store_get_job(s, job, &r.job, d);
    if (e == ERR_OK)
        e = read_hosts(s, r.job.id, &r, d);
    if (e == ERR_OK)
        e = read_runs(s, r.job.id, &r, d);
    if (e == ERR_OK)
        e = read_attempts(s, r.job.id, &r, d);
    if (e == ERR_OK)
        e = count_late(s, r.job.id, &r, d);
    e = store_end(s, e, d);
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
    for (size_t i = 0; i < r->attempt_count; i++)
        store_row_fini(&store_attempts_table, &r->attempts[i]);
    for (size_t i = 0; i < r->load_count; i++)
        msg_loaded_fini(&r->loads[i]);
    free(r->hosts);
    free(r->runs);
    free(r->attempts);
    free(r->loads);
    store_job_fini(&r->job);
    *r = (struct store_results){0};
}
