#include "common/clock.h"
#include "common/mem.h"
#include "controller/store/store_db.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

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

enum err store_put_load(struct store *s, const struct msg_loaded *l, int64_t *load_id, struct err_detail *d)
{
    enum err e = store_run(
        s,
        "INSERT INTO loads (generator, window_start_ns, window_end_ns, scheduled, ok, failed, in_flight,"
        " never_sent, warmup_scheduled, warmup_ok, warmup_failed, warmup_in_flight, warmup_never_sent,"
        " requests_sent, responses, body_bytes, wire_in_bytes, wire_out_bytes, short_bodies, latency_hist,"
        " cpu_user_ns, cpu_system_ns, rss_bytes_max, raw, unanswered)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        STORE_VALUES(store_text(l->generator), store_u64(l->window_start_ns), store_u64(l->window_end_ns),
                     store_u64(l->window.scheduled), store_u64(l->window.ok), store_u64(l->window.failed),
                     store_u64(l->window.in_flight), store_u64(l->window.never_sent),
                     store_u64(l->warmup.scheduled), store_u64(l->warmup.ok), store_u64(l->warmup.failed),
                     store_u64(l->warmup.in_flight), store_u64(l->warmup.never_sent),
                     store_u64(l->requests_sent), store_u64(l->responses), store_u64(l->body_bytes),
                     store_u64(l->wire_in_bytes), store_u64(l->wire_out_bytes), store_u64(l->short_bodies),
                     store_blob(l->latency_hist.data, l->latency_hist.len), store_u64(l->cpu_user_ns),
                     store_u64(l->cpu_system_ns), store_u64(l->rss_bytes_max), store_text(l->raw),
                     store_u64(l->unanswered)),
        d);
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

static struct msg_accounts read_accounts(struct store_rows *r, int first)
{
    return (struct msg_accounts){
        .scheduled = store_column_u64(r, first),
        .ok = store_column_u64(r, first + 1),
        .failed = store_column_u64(r, first + 2),
        .in_flight = store_column_u64(r, first + 3),
        .never_sent = store_column_u64(r, first + 4),
    };
}

enum err store_get_load(struct store *s, int64_t load_id, struct msg_loaded **out, struct err_detail *d)
{
    struct store_rows rows;
    store_rows_init(
        &rows, s,
        "SELECT generator, window_start_ns, window_end_ns, scheduled, ok, failed, in_flight, never_sent,"
        " warmup_scheduled, warmup_ok, warmup_failed, warmup_in_flight, warmup_never_sent, requests_sent,"
        " responses, body_bytes, wire_in_bytes, wire_out_bytes, short_bodies, latency_hist, cpu_user_ns,"
        " cpu_system_ns, rss_bytes_max, raw, unanswered FROM loads WHERE id = ?",
        STORE_VALUES(store_i64(load_id)));
    struct msg_loaded *l = mem_zalloc(1, sizeof(*l));
    bool found = store_rows_next(&rows);
    if (found)
        *l = (struct msg_loaded){
            .generator = store_column_text(&rows, 0),
            .window_start_ns = store_column_u64(&rows, 1),
            .window_end_ns = store_column_u64(&rows, 2),
            .window = read_accounts(&rows, 3),
            .warmup = read_accounts(&rows, 8),
            .requests_sent = store_column_u64(&rows, 13),
            .responses = store_column_u64(&rows, 14),
            .body_bytes = store_column_u64(&rows, 15),
            .wire_in_bytes = store_column_u64(&rows, 16),
            .wire_out_bytes = store_column_u64(&rows, 17),
            .short_bodies = store_column_u64(&rows, 18),
            .latency_hist = store_column_blob(&rows, 19),
            .cpu_user_ns = store_column_u64(&rows, 20),
            .cpu_system_ns = store_column_u64(&rows, 21),
            .rss_bytes_max = store_column_u64(&rows, 22),
            .raw = store_column_text(&rows, 23),
            .unanswered = store_column_u64(&rows, 24),
        };
    enum err e = store_rows_fini(&rows, d);
    if (e == ERR_OK && !found)
        e = err_set(d, ERR_NOT_FOUND, "no load %" PRId64 " in the store", load_id);
    if (e == ERR_OK)
        e = get_errors(s, load_id, l, d);
    if (e == ERR_OK)
        e = get_statuses(s, load_id, l, d);
    if (e == ERR_OK)
        *out = l;
    else
        store_load_free(l);
    return e;
}

void store_load_free(struct msg_loaded *l)
{
    if (l == NULL)
        return;
    for (size_t i = 0; i < l->error_count; i++) {
        free(l->errors[i].phase);
        free(l->errors[i].cause);
        free(l->errors[i].sample);
    }
    free(l->errors);
    free(l->statuses);
    free(l->generator);
    free(l->latency_hist.data);
    free(l->raw);
    free(l);
}

/* ---- results that came too late ------------------------------------------------------------------- */

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
                  " came_wall_ns) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
                  STORE_VALUES(store_text(agent), store_text(key), store_u64(ev->number),
                               store_u64(ev->answers), store_text(ev->job),
                               store_text(msg_event_name(ev->kind)), store_text(err_text(ev->code)),
                               store_text(ev->text),
                               log != NULL ? store_blob(log->data, log->len) : store_null(),
                               store_u64(clock_wall_ns())),
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
