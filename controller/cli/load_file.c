#include "controller/cli/load_file.h"

#include "common/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static enum err add(struct load_file *f, char *text, struct err_detail *d)
{
    char *equals = strchr(text, '=');
    /* A selector in the path holds an '=' of its own: workloads[name=ping].duration=5s. */
    char *bracket = strrchr(text, ']');
    if (equals != NULL && bracket != NULL && equals < bracket)
        equals = strchr(bracket, '=');
    enum err e = ERR_OK;
    if (equals == NULL || equals == text)
        e = err_set(d, ERR_INVALID, "--set: '%s' is not path=value, like design.rounds=3", text);
    else if (f->set_count == LOAD_FILE_SETS_MAX)
        e = err_set(d, ERR_TOO_BIG, "--set: more than %u of them; write a file instead", LOAD_FILE_SETS_MAX);
    if (e != ERR_OK) {
        free(text);
        return e;
    }
    *equals = '\0';
    f->sets[f->set_count++] = (struct experiment_set){.path = text, .value = equals + 1};
    f->owned[f->owned_count++] = text;
    return ERR_OK;
}

enum err load_file_take_set(struct load_file *f, const char *text, struct err_detail *d)
{
    return add(f, mem_strdup(text), d);
}

static int read_once(const struct load_file *f, const char *path, struct experiment **out)
{
    struct experiment_options options = {.file = path, .sets = f->sets, .set_count = f->set_count};
    struct experiment_problems problems = {0};
    struct err_detail d = {0};
    enum err e = experiment_read(&options, out, &problems, &d);
    if (e == ERR_OK)
        return CLI_EXIT_OK;
    if (e != ERR_INVALID || problems.count == 0)
        return cli_fail(e, &d);
    experiment_print_problems(path, &problems);
    experiment_problems_fini(&problems);
    return CLI_EXIT_USAGE;
}

/* Adds the sets that make an experiment run where its file lies. */
static enum err stay_here(struct load_file *f, const struct experiment *e, struct err_detail *d)
{
    enum err err = e->files.count != 0 ? add(f, mem_strdup("files=[]"), d) : ERR_OK;
    for (size_t i = 0; err == ERR_OK && i < e->target_count; i++) {
        const char *dir = e->targets[i].dir != NULL ? e->targets[i].dir : "";
        if (dir[0] == '/')
            continue;
        err =
            add(f, mem_printf("targets[%zu].dir=%s%s%s", i, e->base_dir, dir[0] != '\0' ? "/" : "", dir), d);
    }
    return err;
}

int load_file_read(struct load_file *f, const char *path, bool local, struct experiment **out)
{
    *out = NULL;
    int code = read_once(f, path, out);
    if (code != CLI_EXIT_OK || !local)
        return code;
    struct err_detail d = {0};
    enum err e = stay_here(f, *out, &d);
    experiment_free(*out);
    *out = NULL;
    return e == ERR_OK ? read_once(f, path, out) : cli_fail(e, &d);
}

void load_file_fini(struct load_file *f)
{
    for (size_t i = 0; i < f->owned_count; i++)
        free(f->owned[i]);
    *f = (struct load_file){0};
}
