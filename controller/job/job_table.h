#ifndef CONTROLLER_JOB_JOB_TABLE_H
#define CONTROLLER_JOB_JOB_TABLE_H
/*
 * The jobs that are alive: queued until all their hosts can be had, then each on a thread of its own
 * (controller/run/run.h). Carries orders from those threads to the fleet and events back. Jobs that have
 * ended are in the store only. Loop thread.
 *
 * Queued jobs are tried in the order in which they came, whenever a host becomes free; a later one that fits
 * may overtake one that does not.
 */
#include "controller/fleet/fleet.h"
#include "controller/job/job_spec.h"
#include "controller/run/channel.h"
#include "controller/run/run.h"
#include "controller/store/store_worker.h"

#include <uv.h>

#define JOB_LIVE_MAX 1024u

struct job_table;

struct job_table_options { /* borrowed for the table's life */
    uv_loop_t *loop;
    struct fleet *fleet;
    struct store_worker *worker;
    const char *store_path;
    const char *blob_dir;
    const char *own_boot_id;
};

NODISCARD enum err job_table_new(const struct job_table_options *options, struct job_table **out,
                                 struct err_detail *d);
/* Fails what runs with `cause` and leaves what is queued in the store; `cb` runs when every thread has
 * returned. */
void job_table_stop(struct job_table *t, const char *cause, void (*cb)(void *arg), void *arg);
/* After job_table_stop and a run of the loop that let handles close. */
void job_table_close(struct job_table **t, void (*cb)(void *arg), void *arg);

/* A job that stands in the store as queued. Takes the spec. ERR_EXISTS when it is alive already. */
NODISCARD enum err job_table_add(struct job_table *t, struct job_spec **spec, struct err_detail *d);

/* `cause` says who cancels it, as a sentence that goes on from the job's name: "cancelled by 'ann'".
 * ERR_NOT_NOW when it is not alive, or is ending. */
NODISCARD enum err job_table_cancel(struct job_table *t, const char *id, const char *cause,
                                    struct err_detail *d);

struct job_look { /* at a live job, until the table changes */
    const struct channel_view *view;
    const char *waits; /* why it is still queued; NULL when it is not, or was not tried yet */
    /* How it ended, while that is not stored: at once when the disk is full; NULL else. */
    const struct run_outcome *unstored;
};
/* False, and all NULL, when it is not alive. */
bool job_table_look(const struct job_table *t, const char *id, struct job_look *out);

/* Pairs of a queued job's id and why it waits. The caller frees. */
void job_table_copy_waits(const struct job_table *t, struct msg_strings *out);

/* For the fleet's handlers. */
void job_table_on_event(struct job_table *t, const char *id, uint32_t host, const struct msg_event *e);
void job_table_on_lost(struct job_table *t, const char *id, uint32_t host, const char *cause);
void job_table_on_change(struct job_table *t);

#endif
