#ifndef CONTROLLER_JOB_JOB_H
#define CONTROLLER_JOB_JOB_H
/*
 * One job that is alive, from the queue to its end in the store. For the table of jobs alone, which owns it.
 * Loop thread, but for what belongs to the job's own thread while that runs.
 */
#include "controller/job/job_table.h"

#include <pthread.h>

#define JOB_STATE_LIST(X)                                                                                    \
    X(QUEUED, "queued")         /* until all its hosts can be had */                                         \
    X(RUNNING, "running")       /* on a thread of its own */                                                 \
    X(CANCELLING, "cancelling") /* the thread has been told to end */                                        \
    X(STORING, "storing")       /* it has ended, and how is on its way into the store */                     \
    X(UNSTORED, "unstored")     /* the store did not take that (the disk is full): it is tried again */      \
    X(GONE, "gone")             /* the table drops it when it is next awake */
enum job_state {
#define X(name, text) JOB_##name,
    JOB_STATE_LIST(X)
#undef X
        JOB_STATE_COUNT
};

#define JOB_EVENT_LIST(X)                                                                                    \
    X(START) /* its hosts are there */                                                                       \
    X(CANCEL)                                                                                                \
    X(RETURN)  /* the thread has returned */                                                                 \
    X(STORED)  /* its end stands in the store */                                                             \
    X(REFUSED) /* the store did not take it */                                                               \
    X(RETRY)   /* the table has changed: the store may take it now */
enum job_event {
#define X(name) JOB_EVENT_##name,
    JOB_EVENT_LIST(X)
#undef X
        JOB_EVENT_COUNT
};

struct job_host { /* the loop's view of a run_host */
    struct fleet_agent *agent;
    uint64_t incarnation;
    uint64_t last_event; /* number of the newest that was delivered */
};

struct job {
    struct job *next; /* in the order in which they came */
    struct job_table *table;
    struct job_spec *spec;
    enum job_state state;
    struct channel_view view;
    char *cancel_cause;
    char *waits;                /* why it could not be started yet */
    struct run_outcome outcome; /* once it has ended; until RETURN the thread's own */
    struct err_detail refused;  /* why the outcome could not be stored */

    /* From START on. */
    struct channel *channel;
    struct job_host *hosts;
    struct run_host *run_hosts;
    size_t host_count;
    pthread_t thread;
};

struct job_table {
    struct job_table_options o;
    struct job *jobs;
    size_t count;
    bool schedule_wanted;
    uv_async_t wake;
    bool stopping;
    void (*stopped_cb)(void *arg);
    void *stopped_arg;
};

void job_free(struct job *j);

/* The one place where a job's state changes; logs it. What is not permitted is our own bug. */
void job_handle(struct job *j, enum job_event event);
bool job_permits(enum job_state state, enum job_event event);

/* Its hosts, before START: `hosts` is copied. */
void job_take_hosts(struct job *j, const struct fleet_host *hosts, size_t count);
/* Carries out what its thread has asked for since the last time, and sees it return. */
void job_carry_out(struct job *j);
/* Any thread. `table` is a struct job_table. */
void job_wake_table(void *table);

#endif
