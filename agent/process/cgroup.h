#ifndef AGENT_PROCESS_CGROUP_H
#define AGENT_PROCESS_CGROUP_H
/*
 * cgroup v2 leaves: one directory for each process tree, below the agent's own cgroup, in which the kernel
 * keeps the members together whatever they do, counts their CPU and kills them at once. No controller has
 * to be enabled. Owned by the caller; one thread at a time.
 *
 * Where there is no cgroup2 mount, or the agent may not write to its own cgroup there (an ordinary user
 * outside a delegated unit), everything here answers ERR_UNSUPPORTED and a subreaper does the work alone.
 */
#include "common/err.h"

#include <sys/types.h>

/* A job's name goes into the leaf's up to this; more would only make paths long. */
#define CGROUP_JOB_BYTES_MAX 64u
#define CGROUP_PATH_BYTES    4096u

/* The cgroup of this process in the cgroup2 mount, which is where leaves are made. `proc_root` is "/proc", or
 * a recorded tree in tests. Only finds it: cgroup_leaf_make shows whether we may write there. */
NODISCARD enum err cgroup_find_parent(const char *proc_root, char *out, size_t size, struct err_detail *d);

/* Makes a leaf, named after the job, the number and this process, and proves that processes can be born in
 * it. */
NODISCARD enum err cgroup_leaf_make(const char *parent, const char *job, uint32_t number, char *out,
                                    size_t size, struct err_detail *d);

/* SIGKILL to every member, those being forked too. A leaf that is gone is fine. */
void cgroup_leaf_kill(const char *leaf);

/* Is anything alive in it? False for a leaf that is gone. */
bool cgroup_leaf_populated(const char *leaf);

/* Returns when nothing is alive in it, at the latest after `timeout_ms`. */
void cgroup_leaf_wait_empty(const char *leaf, int timeout_ms);

/* Removes the directory and groups a member made inside. ERR_BUSY while something lives in it. */
NODISCARD enum err cgroup_leaf_remove(const char *leaf, struct err_detail *d);

/* Kills and removes leaves below `parent` whose maker is dead; how many are gone now. */
size_t cgroup_clean_stale(const char *parent);

/* Counters of a leaf; its files stay open. */
struct cgroup_counters;
NODISCARD enum err cgroup_counters_new(const char *leaf, struct cgroup_counters **out, struct err_detail *d);
void cgroup_counters_free(struct cgroup_counters *c);

/* User and system time of all members, past ones too, ns (kept by the kernel in us). */
NODISCARD enum err cgroup_counters_cpu(struct cgroup_counters *c, uint64_t *out_ns, struct err_detail *d);

/* The members now; the caller frees `*out`. */
NODISCARD enum err cgroup_counters_members(struct cgroup_counters *c, pid_t **out, size_t *count,
                                           struct err_detail *d);

#endif
