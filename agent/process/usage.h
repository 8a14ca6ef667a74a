#ifndef AGENT_PROCESS_USAGE_H
#define AGENT_PROCESS_USAGE_H
/*
 * CPU time, memory and number of the processes of one tree. Owned by whoever made it; one thread at a time.
 *
 * With a cgroup leaf the kernel keeps the account: exact, ended members included. Without one the tree is all
 * that descends from its subreaper: the CPU of the living (exact), of children they waited for and of orphans
 * the subreaper waited for (both in ticks of 10 ms). Missing there: children of a process that ignores
 * SIGCHLD, which the kernel drops without an account.
 */
#include "common/err.h"
#include "common/figure.h"

#include <sys/types.h>

struct usage_options {
    const char *proc_root; /* "/proc", or a recorded tree in tests */
    const char *leaf;      /* directory of the cgroup, or NULL */
    pid_t reaper;          /* the subreaper; not part of the tree itself */
};

struct usage_reading {
    uint64_t cpu_ns; /* never less than in the reading before */
    uint64_t
        rss_bytes; /* resident pages of each member added up; shared ones count once a member, as in ps */
    uint32_t processes; /* alive */
    /* Of the living threads. Unknown in a reading before which one of them ended, since its count went with
     * it: what it did since the reading before would be missing. Threads that come and go between are not
     * seen. */
    struct figure counters[FIGURE_TREE_COUNT];
};

struct usage;

NODISCARD enum err usage_new(const struct usage_options *options, struct usage **out, struct err_detail *d);
void usage_free(struct usage *u);

/* With a leaf about 5 us and 10 us a member; without one 10 us for every process of the host; and 20 us a
 * thread of the tree. No fork. */
NODISCARD enum err usage_read(struct usage *u, struct usage_reading *out, struct err_detail *d);

#endif
