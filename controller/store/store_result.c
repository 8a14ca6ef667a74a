#include "common/mem.h"
#include "controller/store/store_row.h"

#include <stdlib.h>

/* ---- target runs ---------------------------------------------------------------------------------- */

enum err store_add_target_run(struct store *s, const char *job, const struct store_target_run *run,
                              int64_t *run_id, struct err_detail *d)
{
    enum err e = store_begin(s, d);
    if (e != ERR_OK)
        return e;
    int64_t id = 0;
    struct err_detail missing;
    (void)err_set(&missing, ERR_NOT_FOUND, "no job %s in the store", job);
    e = store_run_on(s,
                     "INSERT INTO target_runs (job, target, round, slot, ok, error, failed_check, startup_ns,"
                     " rss_before_bytes, started_wall_ns, placement)"
                     " SELECT id, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, placement FROM jobs WHERE id = ?1",
                     STORE_VALUES(store_text(job), store_u64(run->target), store_u64(run->round),
                                  store_u64(run->slot), store_u64(run->ok), store_text(run->error),
                                  store_text(run->failed_check), store_u64(run->startup_ns),
                                  store_u64(run->rss_before_bytes), store_u64(run->started_wall_ns)),
                     missing.text, d);
    if (e == ERR_OK) {
        id = sqlite3_last_insert_rowid(s->db);
        e = store_run(s,
                      "INSERT INTO target_run_hosts (run, host)"
                      " SELECT ?1, max(id) FROM hosts WHERE job = ?2 GROUP BY role, ordinal",
                      STORE_VALUES(store_i64(id), store_text(job)), d);
    }
    e = store_end(s, e, d);
    if (e == ERR_OK)
        *run_id = id;
    return e;
}

enum err store_end_target_run(struct store *s, int64_t run_id, uint64_t rss_after_bytes, const char *error,
                              const void *log, size_t log_len, struct err_detail *d)
{
    /* What went wrong first is what is kept; an error makes the run a failed one. */
    return store_run_on(s,
                        "UPDATE target_runs SET rss_after_bytes = ?1, log = ?2,"
                        " ok = iif(?3 = '', ok, 0), error = iif(error = '', ?3, error) WHERE id = ?4",
                        STORE_VALUES(store_u64(rss_after_bytes), store_blob(log, log_len), store_text(error),
                                     store_i64(run_id)),
                        "the target run to be ended is not in the store", d);
}

/* ---- attempts ------------------------------------------------------------------------------------- */

#define ROW struct store_attempt
static const struct store_column columns[] = {
    C_U32("window", window),
    C_U32("attempt", attempt),
    C_REF("run", run_id),
    C_BOOL("valid", valid),
    C_BOOL("final", final),
    C_TEXT("gate", gate),
    C_TEXT("reason", reason),
    C_U64("started_wall_ns", started_wall_ns),
    C_REF("load", load_id),
#define X(name, ...) C_REAL(#name, name),
    FIGURE_WINDOW_LIST(X)
#undef X
#define X(NAME, name, ...) C_FIGURE("server_" #name, server[FIGURE_##NAME]),
        FIGURE_TREE_LIST(X)
#undef X
            C_U64("dead_ns", dead_ns),
};
#undef ROW
const struct store_table store_attempts_table = STORE_TABLE("attempts", columns);

enum err store_add_attempt(struct store *s, const char *job, const struct store_attempt *a,
                           struct err_detail *d)
{
    must(a->final || !a->valid);
    struct store_attempt row = *a;
    enum err e = store_begin(s, d);
    if (e != ERR_OK)
        return e;
    if (a->loaded != NULL)
        e = store_put_load(s, a->loaded, &row.load_id, d);
    if (e == ERR_OK)
        e = store_insert(s, &store_attempts_table, "job", store_text(job), &row, d);
    if (e == ERR_EXISTS)
        e = err_set(d, e, "job %s: window %u has its result, or attempt %u of it is stored already", job,
                    a->window, a->attempt);
    return store_end(s, e, d);
}

enum err store_windows_present(struct store *s, const char *job, size_t count, bool **out,
                               struct err_detail *d)
{
    struct store_rows rows;
    bool *present = mem_zalloc(count, sizeof(*present));
    store_rows_init(&rows, s, "SELECT window FROM attempts WHERE job = ? AND final",
                    STORE_VALUES(store_text(job)));
    while (store_rows_next(&rows)) {
        uint64_t window = store_column_u64(&rows, 0);
        if (window < count)
            present[window] = true;
    }
    enum err e = store_rows_fini(&rows, d);
    if (e == ERR_OK)
        *out = present;
    else
        free(present);
    return e;
}

enum err store_count_invalid(struct store *s, const char *job, uint32_t *out, struct err_detail *d)
{
    struct store_rows rows;
    store_rows_init(&rows, s, "SELECT count(*) FROM attempts WHERE job = ? AND final AND NOT valid",
                    STORE_VALUES(store_text(job)));
    uint32_t count = store_rows_next(&rows) ? store_column_u32(&rows, 0) : 0;
    enum err e = store_rows_fini(&rows, d);
    if (e == ERR_OK)
        *out = count;
    return e;
}

enum err store_attempts_made(struct store *s, const char *job, uint32_t window, uint32_t *out,
                             struct err_detail *d)
{
    struct store_rows rows;
    /* The highest number, not the count: the next attempt's number must be free. */
    store_rows_init(&rows, s, "SELECT coalesce(max(attempt), 0) FROM attempts WHERE job = ? AND window = ?",
                    STORE_VALUES(store_text(job), store_u64(window)));
    uint32_t made = store_rows_next(&rows) ? store_column_u32(&rows, 0) : 0;
    enum err e = store_rows_fini(&rows, d);
    if (e == ERR_OK)
        *out = made;
    return e;
}
