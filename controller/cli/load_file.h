#ifndef CONTROLLER_CLI_LOAD_FILE_H
#define CONTROLLER_CLI_LOAD_FILE_H
/*
 * Reading the experiment file a subcommand was given: --set values, selection, and the problems said to the
 * person. Main thread only.
 */
#include "controller/cli/cli.h"
#include "controller/experiment/experiment.h"

#define LOAD_FILE_SETS_MAX 256u

struct load_file {
    struct experiment_set sets[LOAD_FILE_SETS_MAX];
    size_t set_count;
    char *owned[LOAD_FILE_SETS_MAX]; /* text behind the sets */
};

/* Takes the argument of one --set ("path=value"). */
NODISCARD enum err load_file_take_set(struct load_file *f, const char *text, struct err_detail *d);

/* Reads FILE for `use`. Problems are printed; the exit code says how it went and `out` is set only when it is
 * 0. */
int load_file_read(const struct load_file *f, const char *path, enum experiment_use use,
                   struct experiment **out);

void load_file_fini(struct load_file *f);

#endif
