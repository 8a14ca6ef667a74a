#ifndef AGENT_TASK_TASK_H
#define AGENT_TASK_TASK_H
/*
 * One job's work on this host: takes commands in order, drives processes, probes, checks, files and the
 * generator, and emits events. Owned by the agent's main; everything on the agent's loop. There is at most
 * one at a time: a host works for one job.
 */
#include "proto/msg/msg.h"

#include <uv.h>

struct task;

struct task_options {
    uv_loop_t *loop;
    const char *job;
    const struct msg_job_open *open; /* borrowed for the call */
    const char *state_dir;           /* agent's directory: workspaces/, blobs/, logs/ below it */
    const char *load_program;        /* path of splitbench-load */
    uint64_t lease_ns;
    /* Every event; `event` is borrowed, its number is not set yet. */
    void (*emit)(void *arg, const struct msg_event *event);
    void *arg;
};

NODISCARD enum err task_new(const struct task_options *options, struct task **out, struct err_detail *d);

/* Ends all that the job started; `cb` runs when nothing of it lives. The workspace stays for the next job. */
void task_close(struct task **task, void (*cb)(void *arg), void *arg);

/* A command other than JOB_OPEN and JOB_CLOSE. Answers, now or later, with exactly one event whose `answers`
 * is its number; a bad command is answered with DONE and a code. */
void task_handle(struct task *task, const struct msg_command *command);

/* The controller was heard: the lease begins anew. */
void task_renew(struct task *task, uint64_t lease_ns);

#endif
