/*
 * run, verify, plan: the subcommands that read an experiment file.
 */
#include "controller/cli/local.h"
#include "controller/cli/show.h"
#include "controller/cli/submit.h"
#include "controller/experiment/design.h"
#include "controller/experiment/plan.h"

#include "common/mem.h"
#include "common/sha256.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Reads the file that was named, with what --set changes. When something is wrong with it, that is printed,
 * and `out` stays NULL. */
static enum err read_file(const struct cli_flags *f, enum experiment_use use, struct experiment **out,
                          int *exit_code, struct err_detail *d)
{
    struct experiment_set sets[ARGS_TEXTS_MAX];
    char *copies[ARGS_TEXTS_MAX];
    size_t copied = 0;
    struct experiment_problems problems = {0};
    enum err e = ERR_OK;
    for (; e == ERR_OK && copied < f->sets.count; copied++) {
        copies[copied] = mem_strdup(f->sets.items[copied]);
        e = experiment_split_set(copies[copied], &sets[copied], d);
    }
    const struct experiment_options options = {
        .file = f->operands[0], .use = use, .sets = sets, .set_count = copied};
    if (e == ERR_OK)
        e = sha256_check(d); /* the files of an experiment are told apart by it */
    if (e == ERR_OK)
        e = experiment_read(&options, out, &problems, d);
    if (e == ERR_INVALID && problems.count != 0) {
        experiment_print_problems(f->operands[0], &problems);
        experiment_problems_fini(&problems);
        *exit_code = CLI_EXIT_USAGE;
        e = ERR_OK;
    }
    for (size_t i = 0; i < copied; i++)
        free(copies[i]);
    return e;
}

static enum err follow(const struct cli_flags *f, struct client *client, struct local *local, const char *job,
                       int *exit_code, struct err_detail *d)
{
    struct watch_options options = {
        .job = job, .cancel_on_intr = true, .check = local != NULL ? local_check : NULL, .check_arg = local};
    if (!f->quiet)
        fprintf(stderr, "job %s\n", job);
    return show_followed(client, f, &options, exit_code, d);
}

static enum err submit(const struct cli_flags *f, const struct experiment *experiment, enum msg_mode mode,
                       int *exit_code, struct err_detail *d)
{
    struct local *local = NULL;
    struct client *client = NULL;
    char job[SUBMIT_JOB_BYTES];
    submit_make_job_id(job);
    enum err e = f->local ? local_start(&f->place, experiment, &local, d) : ERR_OK;
    if (e == ERR_OK)
        e = local != NULL ? local_open_client(local, &client, d) : client_open(&f->place, &client, d);
    if (e == ERR_OK)
        e = submit_experiment(
            client, &(struct submit){.experiment = experiment, .mode = mode, .job = job, .here = f->local},
            d);
    if (e == ERR_OK && f->detach)
        puts(job);
    else if (e == ERR_OK)
        e = follow(f, client, local, job, exit_code, d);
    client_close(&client);
    local_stop(&local);
    return e;
}

static enum err read_and_submit(const struct cli_flags *f, enum msg_mode mode, int *exit_code,
                                struct err_detail *d)
{
    struct experiment *experiment = NULL;
    enum experiment_use use = f->local ? EXPERIMENT_USE_LOCAL : EXPERIMENT_USE_REMOTE;
    enum err e = read_file(f, use, &experiment, exit_code, d);
    if (experiment != NULL)
        e = submit(f, experiment, mode, exit_code, d);
    experiment_free(experiment);
    return e;
}

static enum err run(const struct cli_flags *f, int *exit_code, struct err_detail *d)
{
    return read_and_submit(f, MSG_MODE_RUN, exit_code, d);
}

static enum err verify(const struct cli_flags *f, int *exit_code, struct err_detail *d)
{
    return read_and_submit(f, MSG_MODE_VERIFY, exit_code, d);
}

static enum err plan(const struct cli_flags *f, int *exit_code, struct err_detail *d)
{
    struct experiment *experiment = NULL;
    struct design *design = NULL;
    enum err e = read_file(f, EXPERIMENT_USE_ANY, &experiment, exit_code, d);
    if (experiment != NULL)
        e = design_build(experiment, &design, d);
    if (design != NULL)
        e = plan_print(experiment, design, f->json, d);
    design_free(design);
    experiment_free(experiment);
    return e;
}

/* ---- what they are called and take ---- */

#define SET                                                                                                  \
    "", "set", "PATH=VALUE", "change a value of the file for this run: --set design.rounds=3", ARGS_TEXTS,   \
        CLI_AT(sets), .max = ARGS_TEXTS_MAX
#define ONE_FILE "one experiment file, like docs/examples/nginx-lighttpd.json"

#define HERE "on this machine: server and generator on CPUs of their own"
static const struct args_option run_options[] = {
    CLI_PLACE_ROWS, {CLI_LOCAL(HERE)}, {SET},          {CLI_JSON("the result as JSON")},
    {CLI_QUIET},    {CLI_DETACH},      {ARGS_HELP_ROW}};
static const struct args_option verify_options[] = {
    CLI_PLACE_ROWS, {CLI_LOCAL(HERE)}, {SET}, {CLI_JSON("the result as JSON")}, {CLI_QUIET}, {ARGS_HELP_ROW}};
static const struct args_option plan_options[] = {{SET}, {CLI_JSON("the schedule as JSON")}, {ARGS_HELP_ROW}};

const struct cli_command cli_run = {
    .operands = "FILE",
    .summary = "run an experiment, here or on a lab's hosts",
    .text = "\nEvery window is stored the moment it ends: ^C cancels and keeps what was\n"
            "measured, 'splitbench resume' goes on with the rest.\n",
    .table = {CLI_TABLE("run", run_options, 1, 1, ONE_FILE)},
    .run = run,
};
const struct cli_command cli_verify = {
    .operands = "FILE",
    .summary = "build, start, check and stop targets; no load",
    .text = "\nExit code 1 when a target does not start or answers wrongly.\n",
    .table = {CLI_TABLE("verify", verify_options, 1, 1, ONE_FILE)},
    .run = verify,
};
const struct cli_command cli_plan = {
    .operands = "FILE",
    .summary = "the exact schedule and how long it takes",
    .table = {CLI_TABLE("plan", plan_options, 1, 1, ONE_FILE)},
    .run = plan,
};
