#include "controller/view/status.h"

#include "common/clock.h"
#include "common/json_write.h"
#include "common/mem.h"

#include <stdlib.h>
#include <string.h>

static void write_time(struct json_writer *w, const char *key, uint64_t wall_ns)
{
    char text[CLOCK_TEXT_BYTES];
    if (wall_ns == 0)
        json_write_null(w, key);
    else
        json_write_string(w, key, clock_wall_text(wall_ns, text));
}

/* Why queued jobs wait, by job: thousands may be queued. */
struct waits {
    const char *const **pairs; /* of a job's id and its reason */
    size_t count;
};

static int by_job(const void *a, const void *b)
{
    return strcmp((*(const char *const *const *)a)[0], (*(const char *const *const *)b)[0]);
}

static void sort_waits(const struct msg_strings *from, struct waits *out)
{
    out->count = from->count / 2;
    out->pairs = mem_zalloc(out->count + 1, sizeof *out->pairs);
    for (size_t i = 0; i < out->count; i++)
        out->pairs[i] = (const char *const *)&from->items[2 * i];
    qsort(out->pairs, out->count, sizeof *out->pairs, by_job);
}

/* Why it ended, or waits; NULL when there is nothing to say. */
static const char *cause_of(const struct store_job *j, const struct waits *waits)
{
    const char *id = j->id;
    const char *const *key = &id;
    if (j->cause != NULL && j->cause[0] != '\0')
        return j->cause;
    if (j->state != STORE_JOB_QUEUED)
        return NULL;
    const char *const **found = bsearch(&key, waits->pairs, waits->count, sizeof *waits->pairs, by_job);
    return found != NULL ? (*found)[1] : NULL;
}

static void write_job(struct json_writer *w, const struct store_job *j, const struct waits *waits)
{
    json_write_object(w, NULL);
    json_write_string(w, "id", j->id);
    json_write_string(w, "name", j->name);
    json_write_string(w, "state", store_job_state_name(j->state));
    json_write_string(w, "mode", j->mode == MSG_MODE_VERIFY ? "verify" : "run");
    json_write_string(w, "cause", cause_of(j, waits));
    json_write_i64(w, "exit_code", j->exit_code);
    write_time(w, "created", j->created_wall_ns);
    write_time(w, "started", j->started_wall_ns);
    write_time(w, "ended", j->ended_wall_ns);
    json_write_u64(w, "windows_done", j->windows_done);
    json_write_u64(w, "windows_total", j->windows_total);
    json_write_string(w, "placement", j->started_wall_ns != 0 ? store_placement_name(j->placement) : NULL);
    json_write_close(w);
}

/* All jobs, or the one of this id. */
static enum err read_jobs(struct store *s, const char *job, struct store_job **jobs, size_t *count,
                          struct err_detail *d)
{
    if (job[0] == '\0')
        return store_list_jobs(s, jobs, count, d);
    struct store_job *one = mem_zalloc(1, sizeof *one);
    enum err e = store_get_job(s, job, one, d);
    if (e == ERR_OK) {
        *jobs = one;
        *count = 1;
        return ERR_OK;
    }
    free(one);
    return e == ERR_NOT_FOUND ? err_set(d, e, "there is no job %s; 'splitbench status' lists them", job) : e;
}

enum err status_write_json(struct store *s, const char *job, const struct msg_strings *waits, struct buf *out,
                           struct err_detail *d)
{
    struct store_job *jobs = NULL;
    size_t count = 0;
    struct waits sorted;
    struct json_writer w;
    enum err e = read_jobs(s, job, &jobs, &count, d);
    if (e != ERR_OK)
        return e;
    sort_waits(waits, &sorted);
    json_write_init(&w, out, 2);
    json_write_object(&w, NULL);
    json_write_string(&w, "format", "splitbench-status/1");
    json_write_array(&w, "jobs");
    for (size_t i = 0; i < count; i++) {
        write_job(&w, &jobs[i], &sorted);
        store_job_fini(&jobs[i]);
    }
    free(jobs);
    free(sorted.pairs);
    json_write_close(&w);
    json_write_close(&w);
    e = json_write_end(&w);
    return e == ERR_OK ? e : err_set(d, e, "the list of jobs is too long to print");
}
