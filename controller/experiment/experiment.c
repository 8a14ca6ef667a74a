#include "controller/experiment/experiment.h"

#include "controller/experiment/experiment_keys.h"
#include "controller/experiment/files.h"

#include "common/file.h"
#include "common/mem.h"
#include "common/path.h"
#include "common/sha256.h"
#include "common/utf8.h"

#include <errno.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ---- freeing ----------------------------------------------------------------------------------- */

void experiment_free(struct experiment *e)
{
    if (e == NULL)
        return;
    keys_fini(&keys_experiment, e);
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
        (void)utf8_clean(q->text, ""); /* it quotes the file, which may be a stranger's, to a terminal */
        if (q->line != 0)
            fprintf(stderr, "%s:%u:%u: %s\n", file, q->line, q->column, q->text);
        else
            fprintf(stderr, "%s: %s\n", file, q->text);
    }
    fprintf(stderr, "%s: %zu problem%s\n", file, p->count, p->count == 1 ? "" : "s");
}

/* ---- what is checked here ------------------------------------------------------------------------ */

static void check_glob(struct experiment_reader *r, const struct json_value *v, void *at)
{
    const char *glob = *(char **)at;
    struct err_detail d;
    if (path_fault(glob, strlen(glob)) != NULL)
        reader_refuse(r, v, "a pattern below the experiment file: no leading /, no empty part, no . or ..");
    else if (r->base_dir != NULL && files_match(r->base_dir, glob, &d) != ERR_OK)
        reader_problem(r, v, "%s", d.text);
}

static void check_names(struct experiment_reader *r, const struct json_value *list, void *at)
{
    (void)at;
    for (const struct json_value *v = json_first(list); v != NULL; v = json_next(v)) {
        const struct json_value *name = json_member(v, "name");
        if (name == NULL || json_text(name) == NULL)
            continue;
        for (const struct json_value *w = json_first(list); w != v; w = json_next(w)) {
            const struct json_value *other = json_member(w, "name");
            if (other == NULL || json_text(other) == NULL || strcmp(json_text(other), json_text(name)) != 0)
                continue;
            reader_problem(r, name, "\"%.64s\" is the name of %s[%zu] already; names must be unique",
                           json_text(name), json_key(list), w->index);
            break;
        }
    }
}

/* ---- the table --------------------------------------------------------------------------------- */

static const struct key glob = {
    .size = sizeof(char *), .kind = KEY_TEXT, .max = LIMIT_PATH_BYTES - 1, .after = check_glob};
static const struct key target = {
    .size = sizeof(struct experiment_target), .kind = KEY_OBJECT, .keys = &keys_target};
static const struct key check = {.size = sizeof(struct msg_check), .kind = KEY_OBJECT, .keys = &keys_check};
static const struct key workload = {
    .size = sizeof(struct experiment_workload), .kind = KEY_OBJECT, .keys = &keys_workload};

#define OF struct experiment
static const struct key rows[] = {
    {"$schema", "where the schema is, for editors", .kind = KEY_NOTE, .max = LIMIT_PATH_BYTES},
    {"name", "a name: what tables and reports call this experiment",
     "what tables and reports call this experiment", AS_NAME(name)},
    {"vars", "values that strings use as `${name}`", .without = "none", .kind = KEY_VARS,
     .pattern = "^[A-Za-z_][A-Za-z0-9_]{0,59}$", .max = LIMIT_VARS},
    {"roles", "which hosts may do what", .without = "any host", AS_PART(keys_roles)},
    {"files", "what is copied to other hosts", .without = "nothing",
     AS_LIST(files.items, files.count, LIMIT_GLOBS, glob), .what = "patterns like \"dist/**\""},
    {"targets", "1 to 256 servers under test", "a list of the servers to compare",
     AS_LIST(targets, target_count, LIMIT_TARGETS, target), .what = "targets", .after = check_names},
    {"checks", "1 to 1024 requests with their right answers", .without = "none",
     AS_LIST(checks, check_count, LIMIT_CHECKS, check), .what = "checks", .after = check_names},
    {"workloads", "1 to 256 loads", "a list of the loads to put on each target",
     AS_LIST(workloads, workload_count, LIMIT_WORKLOADS, workload), .what = "workloads",
     .after = check_names},
    {"design", "rounds, order, pauses", .without = "one round, in the order of the file",
     AS_OBJECT(design, keys_design)},
    {"gates", "what makes a window invalid", .without = "those of its keys", AS_OBJECT(gates, keys_gates)},
};
#undef OF
const struct keys keys_experiment = {KEYS("experiment", rows), .finish = experiment_check_whole};

/* ---- reading ----------------------------------------------------------------------------------- */

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
    e->resolved_json = keys_write(&keys_experiment, e);
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
        keys_init(&keys_experiment, e);
        experiment_name_roles(e);
        keys_read(r, &keys_experiment, root, e);
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
