#ifndef AGENT_PROCESS_TREE_H
#define AGENT_PROCESS_TREE_H
/*
 * One process tree of a job and the agent's end of its supervisor: its life, its figures, its files. Owned by
 * the process set (agent/process/process.c), and for it only; everything on its loop.
 */
#include "agent/process/process.h"
#include "agent/process/process_files.h"
#include "agent/process/supervisor_msg.h"

struct tree;

struct tree_handlers {
    void *arg;
    /* STARTED, REFUSED or EXITED, once the tree has its new state; or LINE or NOTE. */
    void (*on_said)(void *arg, struct tree *t, const struct supervisor_msg *m);
    /* Its supervisor is gone, and is to be closed. `how` NULL: it left after its report, or had nothing to
     * report. */
    void (*on_gone)(void *arg, struct tree *t, const char *how);
};

struct tree {
    struct tree *next;          /* in the set */
    process_start_cb *start_cb; /* the set's; NULL once it ran */
    void *start_arg;
    struct tree_handlers handlers;
    unsigned state;                /* of the list in tree.c */
    struct supervised *supervised; /* alive, if only on its way out; else NULL */
    uint32_t number;
    uint64_t grace_ns;
    char *label;
    struct process_files files;
    char *leaf;          /* of the cgroup; NULL without one */
    struct usage *usage; /* while it lives */
    struct process_usage last;
    uint64_t own_cpu_ns; /* of the supervisor */
};

/* Starts the supervisor. `*leaf` is consumed in any case. */
NODISCARD enum err tree_new(uv_loop_t *loop, const struct process_spec *spec, const char *log_dir,
                            char **leaf, const struct tree_handlers *handlers, struct tree **out,
                            struct err_detail *d);
void tree_free(struct tree *t); /* the files stay */

/* Gives the supervisor its order. Where that fails it is sent away, and on_gone follows. */
NODISCARD enum err tree_start(struct tree *t, const struct process_spec *spec, uint64_t lease_until_ns,
                              struct err_detail *d);

/* As process_stop; and at once, which is what the end of the connection tells the supervisor. */
void tree_stop(struct tree *t);
void tree_cut(struct tree *t);

/* A lost supervisor's leaf: kills what is in it, and removes it when nothing is. False: again later. */
bool tree_clear_leaf(struct tree *t);

/* Nothing of it lives any more; there never was a process. */
bool tree_has_ended(const struct tree *t);
bool tree_was_refused(const struct tree *t);

struct process_usage tree_usage(struct tree *t);
uint64_t tree_own_cpu_ns(struct tree *t);

/* For the test of every pair, see common/machine.h. */
bool tree_permits(unsigned state, unsigned event);

#endif
