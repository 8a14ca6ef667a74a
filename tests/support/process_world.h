#ifndef TESTS_SUPPORT_PROCESS_WORLD_H
#define TESTS_SUPPORT_PROCESS_WORLD_H
/*
 * A process set with real children for tests: a loop, a directory for logs, what the callbacks said, and a
 * mark in the environment of everything that is started, by which survivors are found wherever they went.
 * Owned by the test; its only thread. Waits end with a failed assertion after WAIT_NS.
 */
#include "agent/process/process.h"
#include "common/buf.h"
#include "tests/support/scratch.h"
#include "tests/support/wait.h"

#define WORLD_PROCS 80u

struct world_proc {
    struct world *world;
    bool answered; /* the start callback ran */
    enum err start_error;
    char start_text[1024];
    pid_t pid;
    uint64_t spawned_at_ns;
    unsigned exits;
    struct process_exit exit;
    unsigned lines;
    struct buf text; /* the lines, each with '\n' */
};

struct world {
    uv_loop_t loop;
    struct process_set *set;
    struct scratch scratch;
    char mark[64]; /* "WORLD_MARK=..." */
    struct world_proc procs[WORLD_PROCS];
    bool lost;
    char why[512];
    bool closed;
    bool close_in_callback; /* on_exit, on_line and on_lost close the set */
};

struct world_options {
    uint64_t lease_ns;
    bool no_cgroup;
};

void world_init(struct world *w, const struct world_options *options);
/* Closes the set when it is open, and finds nothing alive and no leaf left. */
void world_fini(struct world *w);

/* Runs the loop until `*flag` (or until `*count` reaches `wanted`). */
void world_wait(struct world *w, const bool *flag);
void world_wait_count(struct world *w, const unsigned *count, unsigned wanted);

/* The test tool with its words (separated by blanks) as arguments. Fields of `spec` that are set are kept. */
enum err world_start(struct world *w, uint32_t proc, const char *words, const struct process_spec *spec,
                     struct err_detail *d);
/* The same, and waits until it runs. */
void world_run(struct world *w, uint32_t proc, const char *words, const struct process_spec *spec);
void world_close(struct world *w);

/* Does it have the mark in its environment, by inheritance? */
bool world_carries(pid_t pid, const char *mark);
/* Processes that carry the mark and are alive. */
size_t world_survivors(const char *mark);
/* Waits for the end of each of them, and of those that appear meanwhile. */
void world_wait_nobody(const char *mark);

/* The directory of the running test program, where the tools are. */
const char *world_tools(void);

#endif
