#ifndef CONTROLLER_JOB_JOB_PINS_H
#define CONTROLLER_JOB_JOB_PINS_H
/*
 * Which contents the jobs of a controller still need, by what the store and their lists of files say: those
 * of jobs that are queued or run for certain, those of jobs that may be resumed if there is room. Owned by
 * the caller; any thread with a store handle of its own. It reads a list for each such job: it may take a
 * second.
 */
#include "common/blobs.h"
#include "controller/store/store.h"

struct job_pins {
    uint8_t (*needed)[SHA256_BYTES];
    size_t needed_count;
    uint8_t (*resumable)[SHA256_BYTES];
    size_t resumable_count;
};

/* A job without a list, or with a damaged one, pins nothing. */
NODISCARD enum err job_pins_read(struct store *s, const char *state_dir, struct job_pins *out,
                                 struct err_detail *d);
void job_pins_fini(struct job_pins *p);

/* Borrowed from `p`. */
struct blobs_wanted job_pins_wanted(const struct job_pins *p);

#endif
