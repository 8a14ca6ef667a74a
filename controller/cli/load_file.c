#include "controller/cli/load_file.h"

#include "common/mem.h"
#include "common/sha256.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum err load_file_take_set(struct load_file *f, const char *text, struct err_detail *d)
{
    if (f->set_count == LOAD_FILE_SETS_MAX)
        return err_set(d, ERR_TOO_BIG, "--set: more than %u of them; write a file instead",
                       LOAD_FILE_SETS_MAX);
    char *copy = mem_strdup(text);
    enum err e = experiment_split_set(copy, &f->sets[f->set_count], d);
    if (e != ERR_OK) {
        free(copy);
        return e;
    }
    f->owned[f->set_count++] = copy;
    return ERR_OK;
}

int load_file_read(const struct load_file *f, const char *path, enum experiment_use use,
                   struct experiment **out)
{
    struct experiment_options options = {
        .file = path, .use = use, .sets = f->sets, .set_count = f->set_count};
    struct experiment_problems problems = {0};
    struct err_detail d = {0};
    enum err e = sha256_check(&d);
    if (e == ERR_OK)
        e = experiment_read(&options, out, &problems, &d);
    if (e == ERR_OK)
        return CLI_EXIT_OK;
    if (e != ERR_INVALID || problems.count == 0)
        return cli_fail(e, &d);
    experiment_print_problems(path, &problems);
    experiment_problems_fini(&problems);
    return CLI_EXIT_USAGE;
}

void load_file_fini(struct load_file *f)
{
    for (size_t i = 0; i < f->set_count; i++)
        free(f->owned[i]);
    *f = (struct load_file){0};
}
