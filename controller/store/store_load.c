#include "common/clock.h"
#include "common/mem.h"
#include "controller/store/store_row.h"

#include <inttypes.h>
#include <stdio.h>

static enum err put_errors(struct store *s, int64_t id, const struct msg_loaded *l, struct err_detail *d)
{
    enum err e = ERR_OK;
    for (size_t i = 0; e == ERR_OK && i < l->error_count; i++) {
        const struct msg_error_class *c = &l->errors[i];
        e = store_run(s,
                      "INSERT INTO load_errors (load, position, phase, cause, count, sample)"
                      " VALUES (?, ?, ?, ?, ?, ?)",
                      STORE_VALUES(store_i64(id), store_u64(i), store_text(c->phase), store_text(c->cause),
                                   store_u64(c->count), store_text(c->sample)),
                      d);
    }
    return e;
}

static enum err put_statuses(struct store *s, int64_t id, const struct msg_loaded *l, struct err_detail *d)
{
    enum err e = ERR_OK;
    for (size_t i = 0; e == ERR_OK && i < l->status_count; i++)
        e = store_run(s, "INSERT INTO load_statuses (load, position, status, count) VALUES (?, ?, ?, ?)",
                      STORE_VALUES(store_i64(id), store_u64(i), store_u64(l->statuses[i].status),
                                   store_u64(l->statuses[i].count)),
                      d);
    return e;
}

#define ROW struct msg_loaded
static const struct store_column columns[] = {
    C_TEXT("generator", generator),
    C_U64("window_start_ns", window_start_ns),
    C_U64("window_end_ns", window_end_ns),
#define X(name) C_U64(#name, window.name), C_U64("warmup_" #name, warmup.name),
    MSG_ACCOUNTS_LIST(X)
#undef X
#define X(NAME, name, ...) C_FIGURE(#name, figures[FIGURE_##NAME]),
        FIGURE_LOAD_LIST(X)
#undef X
            C_BLOB("latency_hist", latency_hist),
    C_TEXT("raw", raw),
};
#undef ROW
static const struct store_table loads_table = STORE_TABLE("loads", columns);
/* All but the last, the raw output: it is most of a result, and nothing here reads it. */
static const struct store_table read_table = {
    .name = "loads", .columns = columns, .count = ARRAY_LEN(columns) - 1};

enum err store_put_load(struct store *s, const struct msg_loaded *l, int64_t *load_id, struct err_detail *d)
{
    enum err e = store_insert(s, &loads_table, NULL, store_null(), l, d);
    if (e != ERR_OK)
        return e;
    *load_id = sqlite3_last_insert_rowid(s->db);
    e = put_errors(s, *load_id, l, d);
    if (e == ERR_OK)
        e = put_statuses(s, *load_id, l, d);
    return e;
}

/* ---- reading it back ------------------------------------------------------------------------------ */

static enum err get_errors(struct store *s, int64_t id, struct msg_loaded *l, struct err_detail *d)
{
    struct store_rows rows;
    l->errors = mem_zalloc(MSG_ERRORS_MAX, sizeof(*l->errors));
    store_rows_init(
        &rows, s,
        "SELECT phase, cause, count, sample FROM load_errors WHERE load = ? ORDER BY position LIMIT ?",
        STORE_VALUES(store_i64(id), store_u64(MSG_ERRORS_MAX)));
    while (store_rows_next(&rows))
        l->errors[l->error_count++] = (struct msg_error_class){
            .phase = store_column_text(&rows, 0),
            .cause = store_column_text(&rows, 1),
            .count = store_column_u64(&rows, 2),
            .sample = store_column_text(&rows, 3),
        };
    return store_rows_fini(&rows, d);
}

static enum err get_statuses(struct store *s, int64_t id, struct msg_loaded *l, struct err_detail *d)
{
    struct store_rows rows;
    l->statuses = mem_zalloc(MSG_STATUSES_MAX, sizeof(*l->statuses));
    store_rows_init(&rows, s,
                    "SELECT status, count FROM load_statuses WHERE load = ? ORDER BY position LIMIT ?",
                    STORE_VALUES(store_i64(id), store_u64(MSG_STATUSES_MAX)));
    while (store_rows_next(&rows))
        l->statuses[l->status_count++] = (struct msg_status_count){
            .status = store_column_u32(&rows, 0),
            .count = store_column_u64(&rows, 1),
        };
    return store_rows_fini(&rows, d);
}

enum err store_get_load(struct store *s, int64_t load_id, bool whole, struct msg_loaded *out,
                        struct err_detail *d)
{
    struct store_rows rows;
    struct msg_loaded l = {0};
    store_select(&rows, s, &read_table, " WHERE id = ?", STORE_VALUES(store_i64(load_id)));
    bool found = store_rows_next(&rows);
    if (found)
        store_get_row(&rows, &read_table, &l);
    enum err e = store_rows_fini(&rows, d);
    if (e == ERR_OK && !found)
        e = err_set(d, ERR_NOT_FOUND, "no load %" PRId64 " in the store", load_id);
    if (e == ERR_OK && whole)
        e = get_errors(s, load_id, &l, d);
    if (e == ERR_OK && whole)
        e = get_statuses(s, load_id, &l, d);
    if (e == ERR_OK)
        *out = l;
    else
        msg_loaded_fini(&l);
    return e;
}

/* ---- results that came too late ------------------------------------------------------------------- */

static bool was_part(struct store *s, const char *agent, const char *job, enum err *e, struct err_detail *d)
{
    struct store_rows rows;
    store_rows_init(&rows, s, "SELECT 1 FROM hosts WHERE job = ? AND agent = ? LIMIT 1",
                    STORE_VALUES(store_text(job), store_text(agent)));
    bool part = store_rows_next(&rows);
    *e = store_rows_fini(&rows, d);
    return part;
}

enum err store_admit_late_event(struct store *s, const char *agent, const char *job, struct err_detail *d)
{
    struct store_rows rows;
    enum err e = ERR_OK;
    bool part = was_part(s, agent, job, &e, d);
    if (e == ERR_OK && !part)
        e = err_set(d, ERR_DENIED, "it never was part of job %s", job);
    if (e != ERR_OK)
        return e;
    store_rows_init(&rows, s, "SELECT count(*), coalesce(sum(bytes), 0) FROM late_events WHERE agent = ?",
                    STORE_VALUES(store_text(agent)));
    bool found = store_rows_next(&rows);
    uint64_t count = found ? store_column_u64(&rows, 0) : 0;
    uint64_t bytes = found ? store_column_u64(&rows, 1) : 0;
    e = store_rows_fini(&rows, d);
    if (e == ERR_OK && (count >= STORE_LATE_EVENTS_MAX || bytes >= STORE_LATE_BYTES_MAX))
        e = err_set(d, ERR_FULL,
                    "%" PRIu64 " late results of %" PRIu64 " bytes are kept of it, and no more are", count,
                    bytes);
    return e;
}

enum err store_count_refused_late(struct store *s, const char *agent, uint64_t more, struct err_detail *d)
{
    return store_run(s,
                     "INSERT INTO late_refused (agent, count, last_wall_ns) VALUES (?1, ?2, ?3)"
                     " ON CONFLICT DO UPDATE SET count = count + ?2, last_wall_ns = ?3",
                     STORE_VALUES(store_text(agent), store_u64(more), store_u64(clock_wall_ns())), d);
}

enum err store_refused_late(struct store *s, const char *agent, uint64_t *out, struct err_detail *d)
{
    struct store_rows rows;
    store_rows_init(&rows, s, "SELECT count FROM late_refused WHERE agent = ?",
                    STORE_VALUES(store_text(agent)));
    uint64_t count = store_rows_next(&rows) ? store_column_u64(&rows, 0) : 0;
    enum err e = store_rows_fini(&rows, d);
    if (e == ERR_OK)
        *out = count;
    return e;
}

static uint64_t bytes_of(const struct msg_event *e)
{
    uint64_t bytes = strlen(msg_text(e->text));
    if (e->kind == MSG_EVENT_EXITED)
        bytes += e->u.exited.log.len;
    if (e->kind == MSG_EVENT_LOADED)
        bytes += strlen(msg_text(e->u.loaded.raw)) + e->u.loaded.latency_hist.len;
    return bytes;
}

enum err store_add_late_event(struct store *s, const char *agent, uint64_t incarnation,
                              const struct msg_event *ev, struct err_detail *d)
{
    char key[17];
    snprintf(key, sizeof(key), "%016" PRIx64, incarnation);
    enum err e = store_begin(s, d);
    if (e != ERR_OK)
        return e;
    const struct msg_bytes *log = ev->kind == MSG_EVENT_EXITED ? &ev->u.exited.log : NULL;
    e = store_run(s,
                  "INSERT INTO late_events (agent, incarnation, number, answers, job, kind, code, text, log,"
                  " came_wall_ns, bytes) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
                  STORE_VALUES(store_text(agent), store_text(key), store_u64(ev->number),
                               store_u64(ev->answers), store_text(ev->job),
                               store_text(msg_event_name(ev->kind)), store_text(err_text(ev->code)),
                               store_text(ev->text),
                               log != NULL ? store_blob(log->data, log->len) : store_null(),
                               store_u64(clock_wall_ns()), store_u64(bytes_of(ev))),
                  d);
    if (e == ERR_OK && sqlite3_changes64(s->db) == 1 && ev->kind == MSG_EVENT_LOADED) {
        int64_t event_id = sqlite3_last_insert_rowid(s->db);
        int64_t load_id = 0;
        e = store_put_load(s, &ev->u.loaded, &load_id, d);
        if (e == ERR_OK)
            e = store_run(s, "UPDATE late_events SET load = ? WHERE id = ?",
                          STORE_VALUES(store_i64(load_id), store_i64(event_id)), d);
    }
    return store_end(s, e, d);
}
