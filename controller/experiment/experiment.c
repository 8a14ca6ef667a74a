#include "controller/experiment/experiment.h"

#include "controller/experiment/experiment_reader.h"
#include "controller/experiment/files.h"

#include "common/file.h"
#include "common/mem.h"
#include "common/sha256.h"

#include <errno.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- freeing ----------------------------------------------------------------------------------- */

static void free_labels(struct experiment_label *labels, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free(labels[i].key);
        free(labels[i].value);
    }
    free(labels);
}

static void request_fini(struct msg_request *q)
{
    free(q->method);
    free(q->path);
    for (size_t i = 0; i < q->headers.count; i++) {
        free(q->headers.items[i].name);
        free(q->headers.items[i].value);
    }
    free(q->headers.items);
    free(q->body.data);
}

static void match_fini(struct msg_match *m)
{
    free(m->name);
    free(m->text.data);
}

static void target_fini(struct experiment_target *t)
{
    free(t->name);
    free_labels(t->labels, t->label_count);
    free(t->dir);
    for (size_t i = 0; i < t->build_count; i++)
        mem_free_strings(&t->build[i].argv.items, &t->build[i].argv.count);
    free(t->build);
    mem_free_strings(&t->start.items, &t->start.count);
    mem_free_strings(&t->env.items, &t->env.count);
    free(t->ready.path);
    free(t->cpus);
}

static void check_fini(struct msg_check *c)
{
    free(c->name);
    free(c->host);
    request_fini(&c->request);
    match_fini(&c->body);
    for (size_t i = 0; i < c->header_count; i++)
        match_fini(&c->headers[i]);
    free(c->headers);
}

void experiment_free(struct experiment *e)
{
    if (e == NULL)
        return;
    for (size_t i = 0; i < e->role_count; i++) {
        free(e->roles[i].name);
        free_labels(e->roles[i].labels, e->roles[i].label_count);
    }
    for (size_t i = 0; i < e->target_count; i++)
        target_fini(&e->targets[i]);
    for (size_t i = 0; i < e->check_count; i++)
        check_fini(&e->checks[i].check);
    for (size_t i = 0; i < e->workload_count; i++) {
        free(e->workloads[i].name);
        request_fini(&e->workloads[i].request);
        free(e->workloads[i].connections);
    }
    free(e->roles);
    free(e->targets);
    free(e->checks);
    free(e->workloads);
    mem_free_strings(&e->files.items, &e->files.count);
    free(e->name);
    free(e->base_dir);
    free(e->resolved_json);
    free(e);
}

void experiment_problems_fini(struct experiment_problems *p)
{
    for (size_t i = 0; i < p->count; i++)
        free(p->items[i].text);
    free(p->items);
    *p = (struct experiment_problems){0};
}

void experiment_print_problems(const char *file, const struct experiment_problems *p)
{
    for (size_t i = 0; i < p->count; i++) {
        const struct experiment_problem *q = &p->items[i];
        if (q->line != 0)
            fprintf(stderr, "%s:%u:%u: %s\n", file, q->line, q->column, q->text);
        else
            fprintf(stderr, "%s: %s\n", file, q->text);
    }
    fprintf(stderr, "%s: %zu problem%s\n", file, p->count, p->count == 1 ? "" : "s");
}

/* ---- reading ----------------------------------------------------------------------------------- */

/* A glob of `files`: below the experiment file, whatever it matches. */
static bool is_inside(const char *glob)
{
    for (const char *p = glob; p != NULL; p = strchr(p, '/')) {
        p += *p == '/' && p != glob;
        size_t n = strcspn(p, "/");
        if (n == 0 || (n == 1 && p[0] == '.') || (n == 2 && p[0] == '.' && p[1] == '.'))
            return false;
    }
    return true;
}

static void read_files(struct experiment_reader *r, const struct json_value *v, struct experiment *e)
{
    if (v == NULL || !reader_list(r, v, LIMIT_GLOBS, "patterns like \"dist/**\""))
        return;
    e->files.items = mem_zalloc(json_count(v), sizeof *e->files.items);
    for (const struct json_value *g = json_first(v); g != NULL; g = json_next(g)) {
        char *glob = NULL;
        if (!reader_get_string(r, g, LIMIT_PATH_BYTES - 1, &glob))
            continue;
        struct err_detail d;
        if (!is_inside(glob))
            reader_refuse(r, g,
                          "a pattern below the experiment file: no leading /, no empty part, no . or ..");
        else if (r->base_dir != NULL && files_match(r->base_dir, glob, &d) != ERR_OK)
            reader_problem(r, g, "%s", d.text);
        e->files.items[e->files.count++] = glob;
    }
}

static void read_whole(struct experiment_reader *r, struct experiment *e)
{
    static const char *const keys[] = {"$schema", "name",   "vars",      "roles",  "files",
                                       "targets", "checks", "workloads", "design", "gates"};
    const struct json_value *v = r->root;
    if (!reader_object(r, v, keys, ARRAY_LEN(keys)))
        return;
    const char *schema = NULL;
    reader_get_text(r, json_member(v, "$schema"), LIMIT_PATH_BYTES, &schema);
    if (json_member(v, "name") == NULL)
        reader_missing(r, v, "name", "what tables and reports call this experiment");
    reader_get_name(r, json_member(v, "name"), &e->name);
    experiment_read_roles(r, json_member(v, "roles"), e);
    read_files(r, json_member(v, "files"), e);
    experiment_read_targets(r, json_member(v, "targets"), e);
    experiment_read_checks(r, json_member(v, "checks"), e);
    experiment_read_workloads(r, json_member(v, "workloads"), e);
    experiment_read_design(r, json_member(v, "design"), e);
    experiment_read_gates(r, json_member(v, "gates"), e);
    experiment_check_whole(r, e);
}

static void on_duplicate(void *arg, const struct json_value *extra, const struct json_value *first)
{
    reader_problem_key(arg, extra, "key is there twice, first on line %u", first->key_line);
}

/* The text, parsed; NULL after reporting. */
static struct json_value *parse_text(struct experiment_reader *r, const char *text, size_t len)
{
    uint32_t line = 0;
    uint32_t column = 0;
    struct err_detail d;
    struct json_value *root = NULL;
    struct json_options options = {.comments = r->base_dir != NULL,
                                   .on_duplicate = on_duplicate,
                                   .arg = r,
                                   .line = &line,
                                   .column = &column};
    if (json_parse(text, len, &options, &root, &d) != ERR_OK)
        reader_problem_at(r, line, column, d.text);
    return root;
}

static void finish(struct experiment_reader *r, struct experiment *e)
{
    char text[2 * READER_TEXT_BYTES];
    e->resolved_json = experiment_write(e);
    size_t len = strlen(e->resolved_json);
    if (len == 0 || len > LIMIT_RESOLVED_BYTES) {
        snprintf(text, sizeof text,
                 "with variables, defaults and bodies filled in it has over %u bytes, which is the limit: "
                 "send smaller bodies, or split it",
                 LIMIT_RESOLVED_BYTES);
        reader_problem_at(r, 0, 0, text);
    }
    sha256_of(e->resolved_json, len, e->hash);
}

static enum err read_text(struct experiment_reader *r, const char *text, size_t len, struct experiment **out)
{
    struct experiment *e = mem_zalloc(1, sizeof *e);
    *r->problems = (struct experiment_problems){0};
    struct json_value *root = parse_text(r, text, len);
    if (root != NULL) {
        r->root = root;
        if (r->base_dir != NULL)
            experiment_apply_sets(r, root);
        experiment_substitute(r, root);
        read_whole(r, e);
    }
    if (r->problems->count == 0)
        finish(r, e);
    json_free(root);
    reader_sort_problems(r);
    if (r->problems->count > 0) {
        experiment_free(e);
        return ERR_INVALID;
    }
    *out = e;
    return ERR_OK;
}

/* Pipes are fine. */
static enum err load_file(const char *path, char **out, size_t *len, struct err_detail *d)
{
    struct stat st;
    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
        return err_set(d, ERR_INVALID, "%s: is a directory; name the experiment file in it", path);
    return file_read(path, FILE_ANY, LIMIT_EXPERIMENT_BYTES, out, len, d);
}

enum err experiment_read(const struct experiment_options *options, struct experiment **out,
                         struct experiment_problems *problems, struct err_detail *d)
{
    struct experiment *e = NULL;
    char *text = NULL;
    size_t len = 0;
    char *copy = mem_strdup(options->file);
    char *base_dir = realpath(dirname(copy), NULL);
    *problems = (struct experiment_problems){0};
    enum err err = load_file(options->file, &text, &len, d);
    if (err == ERR_OK && base_dir == NULL)
        err = err_set(d, ERR_IO, "%s: its directory cannot be found: %s", options->file, strerror(errno));
    if (err != ERR_OK)
        goto out;
    struct experiment_reader r = {.options = options, .problems = problems, .base_dir = base_dir};
    err = read_text(&r, text, len, &e);
    if (err != ERR_OK)
        goto out;
    e->base_dir = base_dir;
    base_dir = NULL;
    *out = e;
out:
    free(text);
    free(base_dir);
    free(copy);
    return err;
}

enum err experiment_parse(const char *text, size_t len, const struct experiment_options *options,
                          struct experiment **out, struct experiment_problems *problems)
{
    struct experiment *e = NULL;
    struct experiment_options plain = {.use = EXPERIMENT_USE_ANY};
    struct experiment_reader r = {.options = &plain, .problems = problems};
    enum err err = read_text(&r, text, len, &e);
    if (err != ERR_OK)
        return err;
    e->base_dir = options != NULL && options->base_dir != NULL ? mem_strdup(options->base_dir) : NULL;
    *out = e;
    return ERR_OK;
}
