#include "controller/job/job_spec.h"

#include "common/buf.h"
#include "common/clock.h"
#include "common/file.h"
#include "common/mem.h"
#include "common/path.h"
#include "common/sha256.h"

#include <inttypes.h>
#include <unistd.h>

#define PROBLEMS_SHOWN 5u
/* A line is a hash, a size, a mode and a path. */
#define LIST_BYTES_MAX ((size_t)LIMIT_FILES * (LIMIT_PATH_BYTES + 128u))

void job_spec_free(struct job_spec *s)
{
    if (s == NULL)
        return;
    msg_files_fini(&s->files);
    design_free(s->design);
    experiment_free(s->experiment);
    free(s->base_dir);
    free(s->nonce);
    free(s->id);
    free(s);
}

static enum err parse(struct job_spec *s, const char *text, struct err_detail *d)
{
    struct experiment_problems problems = {0};
    struct experiment_options options = {.file = "experiment", .base_dir = s->base_dir};
    enum err e = experiment_parse(text, strlen(text), &options, &s->experiment, &problems);
    if (e != ERR_OK) {
        struct buf all;
        buf_init(&all, sizeof d->text - 64);
        for (size_t i = 0; i < problems.count && i < PROBLEMS_SHOWN; i++) {
            if (buf_printf(&all, "%s%s", i ? "; " : "", problems.items[i].text) != ERR_OK)
                break;
        }
        err_set(d, e, "the experiment is not valid: %s", all.data ? all.data : err_text(e));
        buf_fini(&all);
        experiment_problems_fini(&problems);
        return e;
    }
    experiment_problems_fini(&problems);
    return design_build(s->experiment, &s->design, d);
}

static enum err check_file(const struct msg_file *f, struct err_detail *d)
{
    const char *path = msg_text(f->path);
    enum err e = path_check(path, d);
    if (e != ERR_OK)
        return e;
    if (f->size_bytes > LIMIT_FILE_BYTES)
        return err_set(d, ERR_TOO_BIG, "file '%s' has %" PRIu64 " bytes; %llu are allowed", path,
                       f->size_bytes, LIMIT_FILE_BYTES);
    return ERR_OK;
}

static enum err add_file(struct msg_files *files, const struct msg_file *f, struct err_detail *d)
{
    enum err e = check_file(f, d);
    if (e != ERR_OK)
        return e;
    if (files->count == LIMIT_FILES)
        return err_set(d, ERR_TOO_BIG, "a job has more than %u files", LIMIT_FILES);
    files->items = mem_realloc(files->items, files->count + 1, sizeof *files->items);
    files->items[files->count] = *f;
    files->items[files->count++].path = mem_strdup(f->path);
    return ERR_OK;
}

enum err job_spec_from_submit(const struct msg_submit *m, struct job_spec **out, struct err_detail *d)
{
    enum err e = path_check_name("job", msg_text(m->job), d);
    if (e != ERR_OK)
        return e;
    struct job_spec *s = mem_zalloc(1, sizeof *s);
    s->id = mem_strdup(m->job);
    s->run = 1;
    s->mode = m->mode;
    s->base_dir = mem_strdup(msg_text(m->base_dir));
    s->nonce = mem_strdup(msg_text(m->nonce));
    uint64_t total = 0;
    for (size_t i = 0; e == ERR_OK && i < m->files.count; i++) {
        e = add_file(&s->files, &m->files.items[i], d);
        total += m->files.items[i].size_bytes;
        if (e == ERR_OK && total > LIMIT_FILE_BYTES)
            e = err_set(d, ERR_TOO_BIG, "the job's files have more than %llu bytes together",
                        LIMIT_FILE_BYTES);
    }
    if (e == ERR_OK)
        e = parse(s, msg_text(m->experiment), d);
    if (e != ERR_OK) {
        job_spec_free(s);
        return e;
    }
    *out = s;
    return ERR_OK;
}

/* ---- kept ----------------------------------------------------------------------------------------- */

static char *list_path(const char *state_dir, const char *id)
{
    return mem_printf("%s/files/%s", state_dir, id);
}

enum err job_spec_store_files(const struct job_spec *s, const char *state_dir, struct err_detail *d)
{
    char *dir = mem_printf("%s/files", state_dir);
    char *path = list_path(state_dir, s->id);
    struct buf text;
    buf_init(&text, LIST_BYTES_MAX);
    for (size_t i = 0; i < s->files.count; i++) {
        const struct msg_file *file = &s->files.items[i];
        char hash[SHA256_TEXT_BYTES];
        must(buf_printf(&text, "%s %" PRIu64 " %o %s\n", sha256_text(file->hash, hash), file->size_bytes,
                        file->mode, file->path) == ERR_OK);
    }
    enum err e = file_make_dir(dir, 0700, d);
    if (e == ERR_OK)
        e = file_write(path, 0600, text.data, text.len, d);
    buf_fini(&text);
    free(path);
    free(dir);
    return e;
}

/* "HASH SIZE MODE PATH"; false when it is not that. */
static bool read_line(char *line, struct msg_file *out)
{
    char *p = line, *end = NULL;
    line[strcspn(line, "\n")] = '\0';
    if (!sha256_parse(p, out->hash))
        return false;
    p += SHA256_TEXT_BYTES - 1;
    if (*p++ != ' ')
        return false;
    out->size_bytes = strtoull(p, &end, 10);
    if (end == p || *end != ' ')
        return false;
    p = end + 1;
    out->mode = (uint32_t)strtoul(p, &end, 8);
    if (end == p || *end != ' ')
        return false;
    out->path = end + 1;
    return true;
}

enum err job_spec_read_files(const char *id, const char *state_dir, struct msg_files *out,
                             struct err_detail *d)
{
    char *path = list_path(state_dir, id);
    char *text = NULL;
    size_t len = 0;
    struct msg_files files = {0};
    enum err e = file_read(path, FILE_REGULAR, LIST_BYTES_MAX, &text, &len, d);
    if (e != ERR_OK)
        e = err_prefix(d, e, "the list of the job's files");
    for (char *line = text, *next; e == ERR_OK && *line != '\0'; line = next) {
        struct msg_file file = {0};
        next = line + strcspn(line, "\n");
        next += *next == '\n';
        e = read_line(line, &file)
                ? add_file(&files, &file, d)
                : err_set(d, ERR_INVALID, "%s is damaged; submit the experiment again", path);
    }
    free(text);
    free(path);
    if (e == ERR_OK)
        *out = files;
    else
        msg_files_fini(&files);
    return e;
}

enum err job_spec_from_store(const struct store_job *job, const char *state_dir, struct job_spec **out,
                             struct err_detail *d)
{
    enum err e = path_check_name("job", job->id, d);
    if (e != ERR_OK)
        return e;
    struct job_spec *s = mem_zalloc(1, sizeof *s);
    s->id = mem_strdup(job->id);
    s->run = job->run + (job->state != STORE_JOB_QUEUED); /* as store_set_job_state counts */
    s->mode = job->mode;
    s->base_dir = mem_strdup(msg_text(job->base_dir));
    s->nonce = mem_strdup(msg_text(job->nonce));
    e = parse(s, job->experiment_json, d);
    if (e == ERR_OK)
        e = job_spec_read_files(s->id, state_dir, &s->files, d);
    if (e != ERR_OK) {
        job_spec_free(s);
        return e;
    }
    *out = s;
    return ERR_OK;
}

void job_spec_row(const struct job_spec *s, struct store_job *out)
{
    *out = (struct store_job){.id = s->id,
                              .name = s->experiment->name,
                              .state = STORE_JOB_QUEUED,
                              .mode = s->mode,
                              .placement = STORE_PLACEMENT_SHARED, /* means nothing before there are hosts */
                              .created_wall_ns = clock_wall_ns(),
                              .experiment_json = s->experiment->resolved_json,
                              .base_dir = s->base_dir,
                              .nonce = s->nonce,
                              .run = s->run};
    if (s->mode == MSG_MODE_RUN)
        out->windows_total = (uint32_t)s->design->window_count;
}
