#ifndef AGENT_TASK_JAIL_H
#define AGENT_TASK_JAIL_H
/*
 * Files below one directory, by paths from outside that can never lead out of it: each directory on the way
 * is opened by itself, without following links, and a file appears whole under its name or not at all. No
 * state; any thread.
 */
#include "common/blobs.h"

struct jail_file {
    const char *path; /* passed path_check */
    const uint8_t *hash;
    uint64_t size_bytes;
    uint32_t mode;
};

/* Puts a blob's copy at its path, making directories (0755). A file that has this content and mode already is
 * not touched. ERR_NOT_FOUND: the blob is not here; ERR_DENIED: a link or a file is in the way. */
NODISCARD enum err jail_put(int root_fd, const struct jail_file *file, struct blobs *blobs,
                            struct err_detail *d);

/* Removes the directories of `parent` that were changed longest ago, with all that is in them, until
 * `count_max` are left. `except` is neither counted nor removed. May take seconds. */
void jail_keep_newest(const char *parent, const char *except, size_t count_max);

/* Removes a file, and the directories that are empty then. What is not there, or no longer ours to reach
 * without following a link, is left alone. */
void jail_remove(int root_fd, const char *path);

#endif
