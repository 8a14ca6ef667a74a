#ifndef CONTROLLER_JOB_JOB_SPEC_H
#define CONTROLLER_JOB_JOB_SPEC_H
/*
 * Everything that one job needs in order to run: its experiment, unrolled, and the list of its files. Made
 * from what an operator sends or from what the store kept. Immutable once it is made; owned by one holder at
 * a time; any thread.
 */
#include "controller/experiment/design.h"
#include "controller/store/store.h"

struct job_spec {
    char *id;
    enum msg_mode mode;
    char *nonce;    /* of the submission, "" when it had none */
    uint64_t run;   /* of the job: the one that is queued, or that a resume begins */
    char *base_dir; /* "" unless the operator sits on the controller's machine */
    struct experiment *experiment;
    struct design *design;
    struct msg_files files; /* owned */
};

/* From SUBMIT (borrowed). ERR_INVALID lists the experiment's problems. */
NODISCARD enum err job_spec_from_submit(const struct msg_submit *submit, struct job_spec **out,
                                        struct err_detail *d);
/* From a stored job and the list that job_spec_store_files wrote. */
NODISCARD enum err job_spec_from_store(const struct store_job *job, const char *state_dir,
                                       struct job_spec **out, struct err_detail *d);
void job_spec_free(struct job_spec *s);

/* Writes STATE/files/ID, on disk when it returns. */
NODISCARD enum err job_spec_store_files(const struct job_spec *s, const char *state_dir,
                                        struct err_detail *d);

/* That list alone, for msg_files_fini. ERR_NOT_FOUND; ERR_INVALID: damaged. */
NODISCARD enum err job_spec_read_files(const char *id, const char *state_dir, struct msg_files *out,
                                       struct err_detail *d);

/* The stored row of a job that is queued now. Strings are borrowed from `s`. */
void job_spec_row(const struct job_spec *s, struct store_job *out);

#endif
