#include "common/clock.h"
#include "common/mem.h"
#include "controller/store/store_db.h"

#include <stdlib.h>
#include <string.h>

static const char *const mode_words[MSG_MODE_COUNT] = {
    [MSG_MODE_RUN] = "run",
    [MSG_MODE_VERIFY] = "verify",
};

void store_job_fini(struct store_job *job)
{
    free(job->id);
    free(job->name);
    free(job->cause);
    free(job->experiment_json);
    free(job->base_dir);
    *job = (struct store_job){0};
}

enum err store_add_job(struct store *s, const struct store_job *job, struct err_detail *d)
{
    must((unsigned)job->state < STORE_JOB_STATE_COUNT && (unsigned)job->placement < STORE_PLACEMENT_COUNT &&
         (unsigned)job->mode < MSG_MODE_COUNT);
    enum err e = store_run(
        s,
        "INSERT INTO jobs (id, name, state, mode, cause, exit_code, placement, created_wall_ns, "
        "started_wall_ns,"
        " ended_wall_ns, experiment_json, base_dir, windows_total)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        STORE_VALUES(store_text(job->id), store_text(job->name), store_text(store_state_words[job->state]),
                     store_text(mode_words[job->mode]), store_text(job->cause), store_i64(job->exit_code),
                     store_text(store_placement_words[job->placement]), store_u64(job->created_wall_ns),
                     store_u64(job->started_wall_ns), store_u64(job->ended_wall_ns),
                     store_text(job->experiment_json), store_text(job->base_dir),
                     store_u64(job->windows_total)),
        d);
    return e == ERR_EXISTS ? err_set(d, e, "job %s is in the store already", msg_text(job->id)) : e;
}

#define JOB_COLUMNS                                                                                          \
    "id, name, state, mode, cause, exit_code, placement, created_wall_ns, started_wall_ns, ended_wall_ns,"   \
    " experiment_json, base_dir, windows_total,"                                                             \
    " (SELECT count(*) FROM attempts WHERE attempts.job = jobs.id AND attempts.final)"

static void read_job(struct store_rows *r, struct store_job *out)
{
    *out = (struct store_job){
        .id = store_column_text(r, 0),
        .name = store_column_text(r, 1),
        .state = (enum store_job_state)store_column_word(r, 2, store_state_words, STORE_JOB_STATE_COUNT),
        .mode = (enum msg_mode)store_column_word(r, 3, mode_words, MSG_MODE_COUNT),
        .cause = store_column_text(r, 4),
        .exit_code = (int32_t)store_column_i64(r, 5),
        .placement =
            (enum store_placement)store_column_word(r, 6, store_placement_words, STORE_PLACEMENT_COUNT),
        .created_wall_ns = store_column_u64(r, 7),
        .started_wall_ns = store_column_u64(r, 8),
        .ended_wall_ns = store_column_u64(r, 9),
        .experiment_json = store_column_text(r, 10),
        .base_dir = store_column_text(r, 11),
        .windows_total = store_column_u32(r, 12),
        .windows_done = store_column_u32(r, 13),
    };
}

enum err store_get_job(struct store *s, const char *id, struct store_job *out, struct err_detail *d)
{
    struct store_rows rows;
    struct store_job job = {0};
    store_rows_init(&rows, s,
                    "SELECT " JOB_COLUMNS " FROM jobs WHERE id = ?1 OR ?1 = ''"
                    " ORDER BY created_wall_ns DESC, rowid DESC LIMIT 1",
                    STORE_VALUES(store_text(id)));
    bool found = store_rows_next(&rows);
    if (found)
        read_job(&rows, &job);
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

enum err store_list_jobs(struct store *s, struct store_job **out, size_t *count, struct err_detail *d)
{
    struct store_rows rows;
    struct store_job *jobs = NULL;
    size_t n = 0;
    size_t cap = 0;
    store_rows_init(&rows, s, "SELECT " JOB_COLUMNS " FROM jobs ORDER BY created_wall_ns DESC, rowid DESC",
                    NULL, 0);
    while (store_rows_next(&rows)) {
        if (n == cap) {
            cap = cap != 0 ? 2 * cap : 16;
            jobs = mem_realloc(jobs, cap, sizeof(*jobs));
        }
        read_job(&rows, &jobs[n++]);
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
    /* The first start stays; a resumed job has not ended any more. */
    return store_run_on(s,
                        "UPDATE jobs SET state = ?1, cause = ?2, exit_code = ?3,"
                        " started_wall_ns = iif(started_wall_ns = 0 AND ?1 = 'running', ?4, started_wall_ns),"
                        " ended_wall_ns = ?5 WHERE id = ?6",
                        STORE_VALUES(store_text(store_state_words[state]), store_text(cause),
                                     store_i64(exit_code), store_u64(now), store_u64(ended ? now : 0),
                                     store_text(id)),
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
    size_t cap = 0;
    store_rows_init(&rows, s, "SELECT text FROM lines WHERE job = ? AND number > ? ORDER BY number LIMIT ?",
                    STORE_VALUES(store_text(job), store_u64(after), store_u64(max)));
    while (store_rows_next(&rows)) {
        if (lines.count == cap) {
            cap = cap != 0 ? 2 * cap : 16;
            lines.items = mem_realloc(lines.items, cap, sizeof(*lines.items));
        }
        lines.items[lines.count++] = store_column_text(&rows, 0);
    }
    enum err e = store_rows_fini(&rows, d);
    if (e == ERR_OK)
        *out = lines;
    else
        mem_free_strings(&lines.items, &lines.count);
    return e;
}
