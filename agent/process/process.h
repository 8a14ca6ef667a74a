#ifndef AGENT_PROCESS_PROCESS_H
#define AGENT_PROCESS_PROCESS_H
/*
 * The processes of one job: started, watched, measured and ended as whole trees. Between the agent and the
 * job stand supervisors (agent/process/supervisor.h), one for each tree: a child process of ours that is the
 * tree's subreaper and clears everything when we die or the lease ends. Owned by the task; all calls and
 * callbacks on the agent's loop. main() begins with supervisor_main(), and the program starts no other
 * children.
 */
#include "common/err.h"
#include "common/figure.h"
#include "common/limits.h"

#include <sys/types.h>
#include <uv.h>

#define PROCESS_MAX      16u /* trees of one job alive at a time */
#define PROCESS_KEPT_MAX 64u /* ended trees whose figures and logs are kept; the oldest go first */

struct process_set;

struct process_exit {
    int32_t status; /* -1 when a signal ended it */
    int32_t signal;
    bool asked;  /* process_stop came first */
    bool lapsed; /* the lease ran out and the supervisor killed the tree */
    /* Members alive when the first process ended by itself. They were killed; a server that puts itself into
     * the background looks like this. */
    uint32_t left_behind;
};

struct process_handlers {
    void *arg;
    /* The first process of the tree has ended and nothing of the tree is alive any more: what it left running
     * was killed. So a server has to stay in the foreground. Not called once process_set_close was. */
    void (*on_exit)(void *arg, uint32_t proc, const struct process_exit *exit);
    /* One line (without its '\n', cut at 4 KiB) of a process started with `lines`. */
    void (*on_line)(void *arg, uint32_t proc, const char *line);
    /* A supervisor itself is gone: nothing of the job lives (the agent has made sure), and the set only waits
     * for process_set_close. The other trees' on_exit came before, the lost tree has none. */
    void (*on_lost)(void *arg, const char *why);
};

struct process_set_options {
    uv_loop_t *loop;
    const char *job;     /* names the cgroup leaf and the log directory */
    const char *log_dir; /* existing directory for log files */
    uint64_t lease_ns;   /* from now until the first process_set_renew */
    bool no_cgroup;      /* hold trees together by ancestry alone even where there is a cgroup to use */
    struct process_handlers handlers;
};

NODISCARD enum err process_set_new(const struct process_set_options *options, struct process_set **out,
                                   struct err_detail *d);
/* Ends every tree (SIGKILL), then the supervisors; `cb` runs when nothing of the job is alive. Starts that
 * are still under way end with ERR_CANCELLED before it. May be called from any callback. */
void process_set_close(struct process_set **set, void (*cb)(void *arg), void *arg);

/* Kills what dead agents and supervisors have left in their leaves beside ours. Every process_set_new does
 * it; an agent does it when it starts, too, for it may be long until its next job. */
void process_clean_stale(void);

/* The lease begins anew. When it runs out the supervisors kill every tree by themselves, agent or no agent;
 * time in which the host was suspended counts. */
void process_set_renew(struct process_set *set, uint64_t lease_ns);

struct process_spec {
    uint32_t proc; /* caller's number, unique in the set */
    const char *label;
    char *const *argv;    /* NULL-terminated; argv[0] is looked up in PATH of `env` */
    char *const *env;     /* NULL-terminated "K=V", added to the agent's environment; may be NULL */
    const char *dir;      /* absolute; also the child's PWD */
    const char *cpus;     /* "0-1", or NULL */
    bool lines;           /* stderr arrives through on_line too */
    size_t out_bytes_max; /* stdout is kept apart up to this (process_take_output), 0 = it goes to the log */
    uint64_t grace_ns;    /* between SIGTERM and SIGKILL in process_stop */
};

/* Starts it. ERR_TIMEOUT when the lease has run out, ERR_CLOSED after on_lost, ERR_EXISTS for a number in
 * use, ERR_TOO_BIG over a limit; `cb` does not run then. Else `cb` runs once: with the pid, or with why it
 * cannot be (no such program, no such directory, ...). */
typedef void process_start_cb(void *arg, enum err e, pid_t pid, uint64_t spawned_at_ns,
                              const struct err_detail *d);
NODISCARD enum err process_start(struct process_set *set, const struct process_spec *spec,
                                 process_start_cb *cb, void *arg, struct err_detail *d);

/* SIGTERM to the first process and its process group, grace, SIGKILL to what is left. on_exit follows when
 * nothing of it lives. */
void process_stop(struct process_set *set, uint32_t proc);

/* Counters of a tree: CPU of living and ended members, RSS and number of the living ones. ERR_NOT_FOUND for a
 * number that was never started. After its end the last CPU figure stays. */
struct process_usage {
    bool alive;
    uint64_t cpu_ns;
    uint64_t rss_bytes;
    uint32_t processes;
    struct figure counters[FIGURE_TREE_COUNT]; /* unknown after its end */
};
NODISCARD enum err process_usage(struct process_set *set, uint32_t proc, struct process_usage *out);

/* CPU of the supervisors themselves, past ones too, ns. */
uint64_t process_set_own_cpu_ns(struct process_set *set);

/* Whole capped log (stdout and stderr as they came) and the stdout kept apart; the caller frees. NULL for a
 * number not known (any more), and for an output that was not kept apart or was taken already. With dropped
 * bytes, they are missing behind the first LIMIT_LOG_HEAD_BYTES, or where the disk was full. */
char *process_read_log(struct process_set *set, uint32_t proc, size_t *len, uint64_t *dropped_bytes);
char *process_read_log_tail(struct process_set *set, uint32_t proc, size_t lines_max);
char *process_take_output(struct process_set *set, uint32_t proc, size_t *len, bool *truncated);

/* For the test of every pair, see common/machine.h. */
bool process_permits(unsigned state, unsigned event);

#endif
