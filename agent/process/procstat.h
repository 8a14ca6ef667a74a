#ifndef AGENT_PROCESS_PROCSTAT_H
#define AGENT_PROCESS_PROCSTAT_H
/*
 * What /proc/PID/stat says of one process and of all of them, and who descends from whom. Owned by the
 * caller; one thread at a time.
 */
#include "common/err.h"

#include <sys/types.h>

struct procstat {
    pid_t pid;
    pid_t ppid;
    char state;                /* 'Z' is dead and waits for its parent */
    bool member;               /* set by procstat_mark_descendants */
    uint64_t cpu_ticks;        /* user and system */
    uint64_t reaped_cpu_ticks; /* of children it waited for */
    uint64_t start_ticks;      /* since boot: with the pid, the identity of a process */
    uint64_t rss_pages;
    char name[16];
};

struct procstat_list {
    struct procstat *items; /* by pid, ascending */
    size_t count;
};

/* `proc_root` is "/proc", or a recorded tree in tests. ERR_NOT_FOUND when there is no such process,
 * ERR_INVALID when the text is not that of proc(5). */
NODISCARD enum err procstat_read(const char *proc_root, pid_t pid, struct procstat *out);

/* Every process: about 10 us each. The caller calls procstat_list_fini, also after a failure. */
NODISCARD enum err procstat_list_init(struct procstat_list *list, const char *proc_root,
                                      struct err_detail *d);
void procstat_list_fini(struct procstat_list *list);

/* Sets `member` on every process below `root` (not on `root` itself); the number of them. Processes for which
 * `skip` answers true are left out with all below them; `skip` may be NULL. */
size_t procstat_mark_descendants(struct procstat_list *list, pid_t root,
                                 bool (*skip)(const struct procstat *p));

/* Sends SIGKILL to exactly this process, never to a later one with its number. */
void procstat_kill(const struct procstat *p);

#endif
