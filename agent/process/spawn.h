#ifndef AGENT_PROCESS_SPAWN_H
#define AGENT_PROCESS_SPAWN_H
/*
 * Starts one program from the supervisor: a session of its own, clean signals, no descriptors but the three,
 * its CPUs, its directory, its environment, its cgroup. Owned by the caller; only from a process with one
 * thread, for it forks.
 */
#include "common/err.h"

#include <sched.h>
#include <sys/types.h>

/* The kernel takes a job's process first when memory runs out: it is what filled it. */
#define SPAWN_OOM_SCORE_ADJ 800

struct spawn_options {
    char *const *argv; /* argv[0] is looked up in PATH of the child's environment */
    char *const *env;  /* "K=V", put over this process's environment */
    const char *dir;
    const cpu_set_t *cpus; /* NULL: as they are */
    const char *leaf;      /* cgroup to be born in, or NULL */
    int out_fd;            /* become its stdout and stderr; stdin is /dev/null */
    int err_fd;
};

struct spawn_result {
    pid_t pid;
    uint64_t spawned_at_ns; /* monotonic, just before the fork */
    bool in_leaf;           /* false too when the kernel would not have it there */
};

/* Returns when the program runs, or with why it cannot, as a sentence; no child is left then. */
NODISCARD enum err spawn_program(const struct spawn_options *o, struct spawn_result *out,
                                 struct err_detail *d);

#endif
