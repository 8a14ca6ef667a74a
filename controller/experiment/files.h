#ifndef CONTROLLER_EXPERIMENT_FILES_H
#define CONTROLLER_EXPERIMENT_FILES_H
/*
 * The files an experiment brings along: its globs, matched below the directory of the experiment file, as a
 * list of paths with sizes and SHA-256. Owned by the caller; any thread.
 *
 * A glob matches path by path: `*`, `?` and `[...]` within one part, `**` for any number of directories.
 * Hidden files must be named with their dot. A path without wildcards that is a directory means all below it.
 */
#include "controller/experiment/experiment.h"

/*
 * Sorted by path, each once, for msg_files_fini. `out` is empty when the experiment names no files.
 * ERR_NOT_FOUND: a glob matches nothing. ERR_DENIED: a link leads out of the directory. ERR_TOO_BIG: over
 * LIMIT_FILES or LIMIT_FILE_BYTES.
 */
NODISCARD enum err files_collect(const struct experiment *e, struct msg_files *out, struct err_detail *d);
/* The same rules for one glob, without reading any file. ERR_NOT_FOUND: it matches nothing. */
NODISCARD enum err files_match(const char *base_dir, const char *glob, struct err_detail *d);

/* Opens a collected file for reading, by the same rules. The caller closes `fd`. Its contents may have
 * changed since: who takes them checks the hash. */
NODISCARD enum err files_open(const char *base_dir, const char *path, int *fd, struct err_detail *d);

#endif
