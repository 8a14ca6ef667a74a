#ifndef AGENT_STATE_DIR_H
#define AGENT_STATE_DIR_H
/*
 * The agent's state directory: made when missing, held by one agent at a time through a lock file that the
 * kernel releases with the process. Owned by main(); one thread.
 */
#include "common/err.h"

/* Makes `dir` (absolute) with its parents, 0700, and takes DIR/lock. ERR_BUSY names the process that has it.
 * `*lock_fd` stays open for as long as the directory is used; close() gives it back. */
NODISCARD enum err state_dir_take(const char *dir, int *lock_fd, struct err_detail *d);

#endif
