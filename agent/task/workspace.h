#ifndef AGENT_TASK_WORKSPACE_H
#define AGENT_TASK_WORKSPACE_H
/*
 * The files of one job on this host: what the controller says must be there is put there, from contents kept
 * by hash (common/blobs.h). Owned by the task, which runs the slow calls on a worker thread, one at a time.
 *
 * STATE/blobs/            contents, kept for later jobs
 * STATE/workspaces/JOB/tree/   the files; processes of the job run here and may add their own
 * STATE/workspaces/JOB/record  paths that came from us, so that they can be taken away again
 *
 * Nothing outside tree/ can be written: paths are relative and plain, and each directory on the way is opened
 * by itself without following links. Files are copies, not links to the blobs: a program that changes its own
 * file must not change the next job's. A file that is already right is not touched.
 */
#include "proto/msg/msg.h"

#define WORKSPACE_BLOB_BYTES_MAX (4ull * 1024ull * 1024ull * 1024ull) /* four of the largest jobs */
#define WORKSPACE_KEPT_MAX       4u                                   /* trees of earlier jobs */

struct workspace;

struct workspace_options {
    const char *state_dir; /* exists */
    const char *job;
    uint64_t blob_bytes_max; /* 0 = WORKSPACE_BLOB_BYTES_MAX */
};

/* Makes what is missing of the layout. Quick: may be called on the loop. */
NODISCARD enum err workspace_open(const struct workspace_options *options, struct workspace **out,
                                  struct err_detail *d);
void workspace_free(struct workspace *w);

/* Removes the oldest trees of other jobs, beyond WORKSPACE_KEPT_MAX. May take seconds. */
void workspace_remove_old(struct workspace *w);

/* Absolute path of tree/. Borrowed. */
const char *workspace_dir(const struct workspace *w);

/* The whole list anew (copied). `missing` (caller frees `items`) says what must be sent; when it is empty the
 * tree is in place. ERR_INVALID names the bad path, and nothing has been changed then. */
NODISCARD enum err workspace_set_files(struct workspace *w, const struct msg_files *files,
                                       struct msg_files_missing *missing, struct err_detail *d);

/* A piece of a file that is on the list. With the last missing one the tree is put in place. */
NODISCARD enum err workspace_take_chunk(struct workspace *w, const struct msg_chunk *chunk,
                                        struct err_detail *d);

#endif
