#ifndef CONTROLLER_RUN_RUN_H
#define CONTROLLER_RUN_RUN_H
/*
 * One job's life, told from top to bottom on a thread of its own: open the hosts, bring the files, build,
 * measure round by round, close the hosts. Speaks to agents only through controller/run/channel.h and writes
 * every result itself, with its own store handle, before it goes on.
 */
#include "controller/experiment/design.h"
#include "controller/run/channel.h"
#include "controller/store/store.h"

#define RUN_EXIT_DONE   0
#define RUN_EXIT_FAILED 1 /* the experiment: parity, gates */
#define RUN_EXIT_INFRA  3

struct run_host {
    char *agent;
    char *role;
    uint32_t ordinal;
    struct msg_host facts;
    char *address; /* where it dialled from, "" over ipc */
};
void run_host_fini(struct run_host *h);

struct run_options { /* all borrowed for the call */
    const char *job;
    enum msg_mode mode;
    const struct experiment *experiment;
    const struct design *design;
    const struct msg_files *files; /* of the job's workspace; empty: none */
    const char *base_dir;          /* relative directories start here on the controller's own machine */
    const struct run_host *hosts;  /* in the order of the call's host numbers */
    size_t host_count;
    struct channel *channel;
    const char *store_path;
    const char *blob_dir;
    const char *own_boot_id; /* the controller's machine */
};

struct run_outcome {
    enum store_job_state state;
    int32_t exit_code;
    char cause[LIMIT_TEXT_BYTES];
    bool stored; /* the above stands in the store */
};

/* Blocking. */
void run_job(const struct run_options *options, struct run_outcome *out);

#endif
