#include "controller/job/job_pins.h"

#include "common/mem.h"
#include "controller/job/job_spec.h"

#include <stdlib.h>
#include <string.h>

static void add_files(const struct msg_files *files, uint8_t (**hashes)[SHA256_BYTES], size_t *count)
{
    if (files->count == 0)
        return;
    *hashes = mem_realloc(*hashes, *count + files->count, sizeof **hashes);
    for (size_t i = 0; i < files->count; i++)
        memcpy((*hashes)[(*count)++], files->items[i].hash, SHA256_BYTES);
}

static void add_job(struct job_pins *p, const struct store_job *job, const struct msg_files *files)
{
    if (job->state == STORE_JOB_QUEUED || job->state == STORE_JOB_RUNNING)
        add_files(files, &p->needed, &p->needed_count);
    else
        add_files(files, &p->resumable, &p->resumable_count);
}

static int by_hash(const void *a, const void *b)
{
    return memcmp(a, b, SHA256_BYTES);
}

static void sort(uint8_t (*hashes)[SHA256_BYTES], size_t count)
{
    if (count != 0)
        qsort(hashes, count, sizeof *hashes, by_hash);
}

enum err job_pins_read(struct store *s, const char *state_dir, struct job_pins *out, struct err_detail *d)
{
    struct store_job *jobs = NULL;
    size_t count = 0;
    struct job_pins pins = {0};
    enum err e = store_list_jobs(s, &jobs, &count, d);
    for (size_t i = 0; i < count; i++) {
        struct msg_files files = {0};
        if (e == ERR_OK && jobs[i].state != STORE_JOB_DONE) {
            e = job_spec_read_files(jobs[i].id, state_dir, &files, d);
            e = e == ERR_NOT_FOUND || e == ERR_INVALID ? ERR_OK : e; /* it cannot be resumed either */
        }
        if (e == ERR_OK)
            add_job(&pins, &jobs[i], &files);
        msg_files_fini(&files);
        store_job_fini(&jobs[i]);
    }
    free(jobs);
    if (e != ERR_OK) {
        job_pins_fini(&pins);
        return e;
    }
    sort(pins.needed, pins.needed_count);
    sort(pins.resumable, pins.resumable_count);
    *out = pins;
    return ERR_OK;
}

void job_pins_fini(struct job_pins *p)
{
    free(p->needed);
    free(p->resumable);
    *p = (struct job_pins){0};
}

struct blobs_wanted job_pins_wanted(const struct job_pins *p)
{
    return (struct blobs_wanted){.always = (const uint8_t(*)[SHA256_BYTES])p->needed,
                                 .always_count = p->needed_count,
                                 .longest = (const uint8_t(*)[SHA256_BYTES])p->resumable,
                                 .longest_count = p->resumable_count};
}
