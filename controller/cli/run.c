/*
 * run, verify, plan: the subcommands that read an experiment file.
 */
#include "controller/cli/load_file.h"
#include "controller/cli/local.h"
#include "controller/cli/outcome.h"
#include "controller/cli/submit.h"
#include "controller/experiment/design.h"
#include "controller/experiment/plan.h"

#include <stdio.h>
#include <string.h>

enum { OPT_SET = CLI_OPT_OWN };

#define SET_OPTION                                                                                           \
    {                                                                                                        \
        OPT_SET, "set", "PATH=VALUE", "change a value of the file for this run: --set design.rounds=3"       \
    }
#define RUN_OPTIONS                                                                                          \
    CLI_PLACE_OPTIONS,                                                                                       \
        {CLI_OPT_LOCAL, "local", NULL, "on this machine: server and generator on CPUs of their own"},        \
        SET_OPTION, OUTCOME_OPTIONS, CLI_HELP_OPTION
#define ONE_FILE "one experiment file, like docs/examples/nginx-lighttpd.json"

static const struct args_option run_options[] = {RUN_OPTIONS, CLI_DETACH_OPTION};
static const struct args_option verify_options[] = {RUN_OPTIONS};
static const struct args_option plan_options[] = {
    SET_OPTION, {CLI_OPT_JSON, "json", NULL, "the schedule as JSON"}, CLI_HELP_OPTION};

struct run {
    struct cli_flags flags;
    struct load_file file;
};

static enum err take_set(void *arg, int id, const char *value, struct err_detail *d)
{
    must(id == OPT_SET);
    return load_file_take_set(arg, value, d);
}

static enum err follow(const struct run *r, struct client *client, struct local *local, const char *job,
                       int *exit_code, struct err_detail *d)
{
    struct watch_options options = {
        .job = job, .cancel_on_intr = true, .check = local != NULL ? local_check : NULL, .check_arg = local};
    if (!r->flags.quiet)
        fprintf(stderr, "job %s\n", job);
    return outcome_follow(client, &r->flags, &options, exit_code, d);
}

static int submit(struct run *r, const struct experiment *experiment, enum msg_mode mode)
{
    struct local *local = NULL;
    struct client *client = NULL;
    struct err_detail d = {0};
    const struct cli_place *place = &r->flags.place;
    char job[SUBMIT_JOB_BYTES];
    int code = CLI_EXIT_INFRA;
    submit_make_job_id(job);
    enum err e = place->local ? local_start(place, experiment, &local, &d) : ERR_OK;
    if (e == ERR_OK)
        e = local != NULL ? local_open_client(local, &client, &d) : client_open(place, &client, &d);
    if (e == ERR_OK)
        e = submit_experiment(
            client,
            &(struct submit){.experiment = experiment, .mode = mode, .job = job, .here = place->local}, &d);
    if (e == ERR_OK && !r->flags.detach) {
        e = follow(r, client, local, job, &code, &d);
    } else if (e == ERR_OK) {
        puts(job);
        code = CLI_EXIT_OK;
    }
    if (e != ERR_OK)
        code = cli_fail(e, &d);
    client_close(&client);
    local_stop(&local);
    return code;
}

static int run_or_verify(struct run *r, enum msg_mode mode)
{
    struct experiment *experiment = NULL;
    enum experiment_use use = r->flags.place.local ? EXPERIMENT_USE_LOCAL : EXPERIMENT_USE_REMOTE;
    int code = load_file_read(&r->file, r->flags.operands[0], use, &experiment);
    if (code == CLI_EXIT_OK)
        code = submit(r, experiment, mode);
    experiment_free(experiment);
    return code;
}

static int run_command(const struct args_option *options, size_t count, const char *text, enum msg_mode mode,
                       int argc, char **argv)
{
    struct run r = {0};
    struct cli_syntax syntax = {.options = options,
                                .option_count = count,
                                .operands_min = 1,
                                .operands_max = 1,
                                .operand = ONE_FILE,
                                .text = text,
                                .take = take_set,
                                .arg = &r.file};
    int code;
    if (cli_parse(&r.flags, &syntax, argc, argv, &code))
        code = run_or_verify(&r, mode);
    load_file_fini(&r.file);
    return code;
}

int cli_run(int argc, char **argv)
{
    return run_command(run_options, ARRAY_LEN(run_options),
                       "\nEvery window is stored the moment it ends: ^C cancels and keeps what was\n"
                       "measured, 'splitbench resume' goes on with the rest.\n",
                       MSG_MODE_RUN, argc, argv);
}

int cli_verify(int argc, char **argv)
{
    return run_command(verify_options, ARRAY_LEN(verify_options),
                       "\nExit code 1 when a target does not start or answers wrongly.\n", MSG_MODE_VERIFY,
                       argc, argv);
}

static int print_plan(struct run *r)
{
    struct experiment *experiment = NULL;
    struct design *design = NULL;
    struct err_detail d = {0};
    int code = load_file_read(&r->file, r->flags.operands[0], EXPERIMENT_USE_ANY, &experiment);
    if (code == CLI_EXIT_OK) {
        enum err e = design_build(experiment, &design, &d);
        if (e == ERR_OK)
            e = plan_print(experiment, design, r->flags.json, &d);
        code = e == ERR_OK ? CLI_EXIT_OK : cli_fail(e, &d);
    }
    design_free(design);
    experiment_free(experiment);
    return code;
}

int cli_plan(int argc, char **argv)
{
    struct run r = {0};
    struct cli_syntax syntax = {.options = plan_options,
                                .option_count = ARRAY_LEN(plan_options),
                                .operands_min = 1,
                                .operands_max = 1,
                                .operand = ONE_FILE,
                                .text = "",
                                .take = take_set,
                                .arg = &r.file};
    int code;
    if (cli_parse(&r.flags, &syntax, argc, argv, &code))
        code = print_plan(&r);
    load_file_fini(&r.file);
    return code;
}
