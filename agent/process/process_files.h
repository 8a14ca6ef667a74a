#ifndef AGENT_PROCESS_PROCESS_FILES_H
#define AGENT_PROCESS_PROCESS_FILES_H
/*
 * The files of one process tree: its capped log, and its stdout where that is kept apart. A supervisor writes
 * them, the agent reads them. Owned by whoever embeds it; one thread.
 */
#include "common/base.h"

struct process_files {
    char *log_path;
    char *out_path;          /* NULL: not kept apart, or taken */
    size_t out_bytes_max;    /* of the stdout */
    uint64_t log_lost_bytes; /* what the supervisor could not write, known at the end */
    uint64_t out_lost_bytes;
};

/* Names only: "DIR/NUMBER-LABEL.log" and ".out", the label made fit for a file name. */
void process_files_init(struct process_files *f, const char *dir, uint32_t number, const char *label,
                        size_t out_bytes_max);
void process_files_fini(struct process_files *f); /* the files stay */
void process_files_remove(struct process_files *f);

/* As in agent/process/process.h. What cannot be read is logged and reads as empty. The caller frees. */
char *process_files_read_log(const struct process_files *f, size_t *len, uint64_t *dropped_bytes);
char *process_files_read_tail(const struct process_files *f, size_t lines_max);
char *process_files_take_output(struct process_files *f, size_t *len, bool *truncated);

#endif
