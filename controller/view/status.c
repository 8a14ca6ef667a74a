#include "controller/view/status.h"

#include "common/clock.h"
#include "common/json_write.h"

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

/* Why it ended, or waits; NULL when there is nothing to say. */
static const char *cause_of(const struct store_job *j, const struct msg_strings *waits)
{
    if (j->cause != NULL && j->cause[0] != '\0')
        return j->cause;
    for (size_t i = 0; j->state == STORE_JOB_QUEUED && i + 1 < waits->count; i += 2)
        if (strcmp(waits->items[i], j->id) == 0)
            return waits->items[i + 1];
    return NULL;
}

static void write_job(struct json_writer *w, const struct store_job *j, const struct msg_strings *waits)
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

enum err status_write_json(struct store *s, const char *job, const struct msg_strings *waits, struct buf *out,
                           struct err_detail *d)
{
    struct store_job *jobs = NULL;
    size_t count = 0;
    size_t written = 0;
    struct json_writer w;
    enum err e = store_list_jobs(s, &jobs, &count, d);
    if (e != ERR_OK)
        return e;
    json_write_init(&w, out, 2);
    json_write_object(&w, NULL);
    json_write_string(&w, "format", "splitbench-status/1");
    json_write_array(&w, "jobs");
    for (size_t i = 0; i < count; i++) {
        if (job[0] == '\0' || strcmp(jobs[i].id, job) == 0) {
            write_job(&w, &jobs[i], waits);
            written++;
        }
        store_job_fini(&jobs[i]);
    }
    free(jobs);
    json_write_close(&w);
    json_write_close(&w);
    e = json_write_end(&w);
    if (e != ERR_OK)
        return err_set(d, e, "the list of jobs is too long to print");
    if (job[0] != '\0' && written == 0)
        return err_set(d, ERR_NOT_FOUND, "there is no job %s; 'splitbench status' lists them", job);
    return ERR_OK;
}
