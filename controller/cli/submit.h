#ifndef CONTROLLER_CLI_SUBMIT_H
#define CONTROLLER_CLI_SUBMIT_H
/*
 * Giving an experiment and its files to a controller. Repeated until nothing is missing, so that a cut in
 * between costs only what was under way. Main thread only.
 */
#include "controller/cli/client.h"
#include "controller/experiment/experiment.h"

#define SUBMIT_JOB_BYTES 32u

/* A new job id: "20261130-131943-7f3a5c0e9td2b": sortable; 65 random bits, so that no two are alike; and a
 * beginning of it is enough to type. */
void submit_make_job_id(char out[SUBMIT_JOB_BYTES]);

struct submit {
    const struct experiment *experiment;
    enum msg_mode mode;
    const char *job;
    bool here; /* targets run where they lie: no files are sent */
};
/* The files of an experiment alone, for a job that had them before: of one that is there already, a piece at
 * most. */
NODISCARD enum err submit_files(struct client *client, const struct experiment *e, struct err_detail *d);
NODISCARD enum err submit_experiment(struct client *client, const struct submit *s, struct err_detail *d);

#endif
