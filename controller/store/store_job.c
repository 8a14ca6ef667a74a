#include "common/clock.h"
#include "common/mem.h"
#include "controller/store/store_row.h"

#include <stdlib.h>
#include <string.h>

static const char *const mode_words[MSG_MODE_COUNT] = {
    [MSG_MODE_RUN] = "run",
    [MSG_MODE_VERIFY] = "verify",
};

#define ROW struct store_job
static const struct store_column columns[] = {
    C_TEXT("id", id),
    C_TEXT("name", name),
    C_WORD("state", state, store_job_state, store_state_words, STORE_JOB_STATE_COUNT),
    C_WORD("mode", mode, msg_mode, mode_words, MSG_MODE_COUNT),
    C_TEXT("cause", cause),
    C_I32("exit_code", exit_code),
    C_WORD("placement", placement, store_placement, store_placement_words, STORE_PLACEMENT_COUNT),
    C_U64("created_wall_ns", created_wall_ns),
    C_U64("started_wall_ns", started_wall_ns),
    C_U64("ended_wall_ns", ended_wall_ns),
    C_TEXT("base_dir", base_dir),
    C_TEXT("nonce", nonce),
    C_U32("windows_total", windows_total),
    C_U64("run", run),
    C_READ("(SELECT count(*) FROM attempts WHERE attempts.job = jobs.id AND attempts.final)", U32,
           windows_done, uint32_t),
    C_TEXT("experiment_json", experiment_json),
};
#undef ROW
static const struct store_table jobs_table = STORE_TABLE("jobs", columns);
/* All but the last, the experiment: of many jobs it is most that there is to read. */
static const struct store_table list_table = {
    .name = "jobs", .columns = columns, .count = ARRAY_LEN(columns) - 1};

void store_job_fini(struct store_job *job)
{
    store_row_fini(&jobs_table, job);
    *job = (struct store_job){0};
}

enum err store_add_job(struct store *s, const struct store_job *job, struct err_detail *d)
{
    enum err e = store_insert(s, &jobs_table, NULL, store_null(), job, d);
    return e == ERR_EXISTS ? err_set(d, e, "job %s is in the store already", msg_text(job->id)) : e;
}

enum err store_get_job(struct store *s, const char *id, struct store_job *out, struct err_detail *d)
{
    struct store_rows rows;
    struct store_job job = {0};
    store_select(&rows, s, &jobs_table,
                 " WHERE id = ?1 OR ?1 = '' ORDER BY created_wall_ns DESC, rowid DESC LIMIT 1",
                 STORE_VALUES(store_text(id)));
    bool found = store_rows_next(&rows);
    if (found)
        store_get_row(&rows, &jobs_table, &job);
    enum err e = store_rows_fini(&rows, d);
    if (e == ERR_OK && !found)
        e = id[0] != '\0' ? err_set(d, ERR_NOT_FOUND, "no job %s: 'splitbench status' lists them", id)
                          : err_set(d, ERR_NOT_FOUND, "no job yet: 'splitbench run' makes one");
    if (e == ERR_OK)
        *out = job;
    else
        store_job_fini(&job);
    return e;
}

#define CANDIDATES_MAX 5u /* of an ambiguous beginning, shown */

/* Several jobs begin so: which, as far as they fit. */
static enum err refuse_ambiguous(const char *text, const struct msg_strings *ids, struct err_detail *d)
{
    char list[512];
    size_t n = 0;
    for (size_t i = 0; i < ids->count && i < CANDIDATES_MAX && n < sizeof list; i++)
        n += (size_t)snprintf(list + n, sizeof list - n, "%s%s", i != 0 ? ", " : "", ids->items[i]);
    return err_set(d, ERR_INVALID, "'%s' is the beginning of more than one job: %s%s; give more of its id",
                   text, list, ids->count > CANDIDATES_MAX ? " and others" : "");
}

enum err store_find_job(struct store *s, const char *text, char **id, struct err_detail *d)
{
    struct store_rows rows;
    struct msg_strings ids = {0};
    /* In order, so that a whole id comes before longer ones that begin with it. */
    store_rows_init(&rows, s,
                    "SELECT id FROM jobs WHERE id >= ?1 AND id < ?1 || char(0x10ffff) ORDER BY id LIMIT ?2",
                    STORE_VALUES(store_text(text), store_u64(CANDIDATES_MAX + 1)));
    while (store_rows_next(&rows)) {
        ids.items = store_grow(ids.items, ids.count, sizeof(*ids.items));
        ids.items[ids.count++] = store_column_text(&rows, 0);
    }
    enum err e = store_rows_fini(&rows, d);
    if (e == ERR_OK && ids.count == 0)
        e = err_set(d, ERR_NOT_FOUND, "no job %s: 'splitbench status' lists them", text);
    else if (e == ERR_OK && ids.count > 1 && strcmp(ids.items[0], text) != 0)
        e = refuse_ambiguous(text, &ids, d);
    else if (e == ERR_OK)
        *id = mem_strdup(ids.items[0]);
    mem_free_strings(&ids.items, &ids.count);
    return e;
}

enum err store_list_jobs(struct store *s, struct store_job **out, size_t *count, struct err_detail *d)
{
    struct store_rows rows;
    struct store_job *jobs = NULL;
    size_t n = 0;
    store_select(&rows, s, &list_table, " ORDER BY created_wall_ns DESC, rowid DESC", NULL, 0);
    while (store_rows_next(&rows)) {
        jobs = store_grow(jobs, n, sizeof(*jobs));
        jobs[n] = (struct store_job){0};
        store_get_row(&rows, &list_table, &jobs[n++]);
    }
    enum err e = store_rows_fini(&rows, d);
    if (e == ERR_OK) {
        *out = jobs;
        *count = n;
        return ERR_OK;
    }
    for (size_t i = 0; i < n; i++)
        store_job_fini(&jobs[i]);
    free(jobs);
    return e;
}

enum err store_set_job_state(struct store *s, const char *id, enum store_job_state state, const char *cause,
                             int32_t exit_code, struct err_detail *d)
{
    must((unsigned)state < STORE_JOB_STATE_COUNT);
    struct err_detail missing;
    (void)err_set(&missing, ERR_NOT_FOUND, "no job %s in the store", id);
    bool ended = state == STORE_JOB_DONE || state == STORE_JOB_FAILED || state == STORE_JOB_CANCELLED;
    uint64_t now = clock_wall_ns();
    /* The first start stays; a resumed job has not ended any more, and begins its next run. */
    return store_run_on(
        s,
        "UPDATE jobs SET state = ?1, cause = ?2, exit_code = ?3,"
        " started_wall_ns = iif(started_wall_ns = 0 AND ?1 = 'running', ?4, started_wall_ns),"
        " ended_wall_ns = ?5, run = run + (?1 = 'queued' AND state <> 'queued') WHERE id = ?6",
        STORE_VALUES(store_text(store_state_words[state]), store_text(cause), store_i64(exit_code),
                     store_u64(now), store_u64(ended ? now : 0), store_text(id)),
        missing.text, d);
}

enum err store_set_placement(struct store *s, const char *id, enum store_placement p, struct err_detail *d)
{
    must((unsigned)p < STORE_PLACEMENT_COUNT);
    struct err_detail missing;
    (void)err_set(&missing, ERR_NOT_FOUND, "no job %s in the store", id);
    return store_run_on(s, "UPDATE jobs SET placement = ? WHERE id = ?",
                        STORE_VALUES(store_text(store_placement_words[p]), store_text(id)), missing.text, d);
}

enum err store_fail_interrupted(struct store *s, const char *cause, size_t *count, struct err_detail *d)
{
    enum err e = store_run(s,
                           "UPDATE jobs SET state = 'failed', cause = ?, exit_code = 3, ended_wall_ns = ?"
                           " WHERE state = 'running'",
                           STORE_VALUES(store_text(cause), store_u64(clock_wall_ns())), d);
    if (e == ERR_OK)
        *count = (size_t)sqlite3_changes64(s->db);
    return e;
}

/* ---- what the job said --------------------------------------------------------------------------- */

enum err store_add_line(struct store *s, const char *job, const char *line, struct err_detail *d)
{
    return store_run(s,
                     "INSERT INTO lines (job, number, said_wall_ns, text) SELECT ?1,"
                     " 1 + coalesce((SELECT max(number) FROM lines WHERE job = ?1), 0), ?2, ?3",
                     STORE_VALUES(store_text(job), store_u64(clock_wall_ns()), store_text(line)), d);
}

enum err store_get_lines(struct store *s, const char *job, uint64_t after, size_t max,
                         struct msg_strings *out, struct err_detail *d)
{
    struct store_rows rows;
    struct msg_strings lines = {0};
    store_rows_init(&rows, s, "SELECT text FROM lines WHERE job = ? AND number > ? ORDER BY number LIMIT ?",
                    STORE_VALUES(store_text(job), store_u64(after), store_u64(max)));
    while (store_rows_next(&rows)) {
        lines.items = store_grow(lines.items, lines.count, sizeof(*lines.items));
        lines.items[lines.count++] = store_column_text(&rows, 0);
    }
    enum err e = store_rows_fini(&rows, d);
    if (e == ERR_OK)
        *out = lines;
    else
        mem_free_strings(&lines.items, &lines.count);
    return e;
}
