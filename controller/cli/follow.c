/*
 * watch, report, resume, cancel: what one does with a job that exists.
 */
#include "controller/cli/local.h"
#include "controller/cli/outcome.h"
#include "controller/cli/show.h"
#include "controller/report/report.h"

#include "common/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REPORT_BYTES_MAX (64u * 1024u * 1024u)
#define ONE_JOB          "one job; 'splitbench status' lists them"

static const struct args_option cancel_options[] = {CLI_PLACE_OPTIONS, CLI_HELP_OPTION};
static const struct args_option watch_options[] = {CLI_PLACE_OPTIONS, OUTCOME_OPTIONS, CLI_HELP_OPTION};
static const struct args_option report_options[] = {
    CLI_PLACE_OPTIONS,
    CLI_LOCAL_OPTION,
    {CLI_OPT_JSON, "json", NULL, "everything, every attempt too, as JSON"},
    CLI_HELP_OPTION};
static const struct args_option resume_options[] = {CLI_PLACE_OPTIONS, CLI_LOCAL_OPTION, OUTCOME_OPTIONS,
                                                    CLI_DETACH_OPTION, CLI_HELP_OPTION};

static int fail_or(enum err e, const struct err_detail *d, int code)
{
    return e == ERR_OK ? code : cli_fail(e, d);
}

int cli_watch(int argc, char **argv)
{
    static const struct cli_syntax syntax = {.options = watch_options,
                                             .option_count = ARRAY_LEN(watch_options),
                                             .operands_min = 1,
                                             .operands_max = 1,
                                             .operand = ONE_JOB,
                                             .text = "\n^C leaves with exit code 3; the job goes on.\n"};
    struct cli_flags f;
    struct client *client = NULL;
    struct err_detail d = {0};
    int code;
    if (!cli_parse(&f, &syntax, argc, argv, &code))
        return code;
    enum err e = client_open(&f.place, &client, &d);
    if (e == ERR_OK)
        e = outcome_follow(client, &f, &(struct watch_options){.job = f.operands[0]}, &code, &d);
    client_close(&client);
    return fail_or(e, &d, code);
}

int cli_cancel(int argc, char **argv)
{
    static const struct cli_syntax syntax = {.options = cancel_options,
                                             .option_count = ARRAY_LEN(cancel_options),
                                             .operands_min = 1,
                                             .operands_max = 1,
                                             .operand = ONE_JOB,
                                             .text = ""};
    struct cli_flags f;
    struct client *client = NULL;
    struct err_detail d = {0};
    struct buf answer = {0};
    int code;
    if (!cli_parse(&f, &syntax, argc, argv, &code))
        return code;
    enum err e = client_open(&f.place, &client, &d);
    if (e == ERR_OK)
        e = client_ask(client, &(struct client_ask){.kind = MSG_ASK_CANCEL, .job = f.operands[0]}, &answer,
                       &d);
    buf_fini(&answer);
    client_close(&client);
    if (e == ERR_OK)
        printf("job %s is cancelled; what was measured stays\n", f.operands[0]);
    return fail_or(e, &d, CLI_EXIT_OK);
}

static const char *job_or_newest(const struct cli_flags *f)
{
    return f->operands[0] != NULL ? f->operands[0] : "";
}

/* From this machine's results file: no controller has to run. */
static enum err report_local(const struct cli_flags *f, struct err_detail *d)
{
    struct store *store = NULL;
    struct report *report = NULL;
    struct buf text;
    buf_init(&text, REPORT_BYTES_MAX);
    enum err e = show_open_store(&f->place, &store, d);
    if (e == ERR_OK)
        e = show_local_error(report_build(store, job_or_newest(f), &report, d), job_or_newest(f), d);
    if (e == ERR_OK)
        e = f->json ? report_write_json(report, &text) : report_write_text(report, show_width(), &text);
    if (e == ERR_OK)
        e = show_text(&text, d);
    report_free(report);
    store_close(store);
    buf_fini(&text);
    return e;
}

int cli_report(int argc, char **argv)
{
    static const struct cli_syntax syntax = {
        .options = report_options, .option_count = ARRAY_LEN(report_options), .operands_max = 1, .text = ""};
    struct cli_flags f;
    struct client *client = NULL;
    struct err_detail d = {0};
    int code;
    if (!cli_parse(&f, &syntax, argc, argv, &code))
        return code;
    if (f.place.local)
        return fail_or(report_local(&f, &d), &d, CLI_EXIT_OK);
    enum err e = client_open(&f.place, &client, &d);
    if (e == ERR_OK)
        e = show_report(client, job_or_newest(&f), f.json, &d);
    client_close(&client);
    return fail_or(e, &d, CLI_EXIT_OK);
}

/* The hosts a local job needs are started from its own experiment, as it was stored. */
static enum err start_local_for(const struct cli_flags *f, struct local **local, struct err_detail *d)
{
    struct store *store = NULL;
    struct store_job job = {0};
    struct experiment *experiment = NULL;
    struct experiment_problems problems = {0};
    enum err e = show_open_store(&f->place, &store, d);
    if (e == ERR_OK)
        e = show_local_error(store_get_job(store, f->operands[0], &job, d), f->operands[0], d);
    if (e == ERR_OK && experiment_parse(job.experiment_json, strlen(job.experiment_json),
                                        &(struct experiment_options){.file = f->operands[0]}, &experiment,
                                        &problems) != ERR_OK)
        e = err_set(d, ERR_INVALID, "job %s was stored by another version: its experiment is not understood",
                    f->operands[0]);
    store_close(store);
    if (e == ERR_OK)
        e = local_start(&f->place, experiment, local, d);
    experiment_free(experiment);
    experiment_problems_fini(&problems);
    store_job_fini(&job);
    return e;
}

static void say_resumed(const struct watch_options *o)
{
    if (o->windows_total == 0)
        fputs("resumed\n", stderr);
    else
        fprintf(stderr, "resumed: %u of %u already measured\n", o->windows_done, o->windows_total);
}

static enum err resume(const struct cli_flags *f, struct client *client, struct local *local, int *code,
                       struct err_detail *d)
{
    struct buf answer = {0};
    struct watch_options options = {.job = f->operands[0],
                                    .cancel_on_intr = true,
                                    .check = local != NULL ? local_check : NULL,
                                    .check_arg = local};
    enum err e = f->detach ? ERR_OK : watch_skip(client, &options, d);
    if (e == ERR_OK)
        e = client_ask(client, &(struct client_ask){.kind = MSG_ASK_RESUME, .job = f->operands[0]}, &answer,
                       d);
    buf_fini(&answer);
    if (e != ERR_OK)
        return f->place.local ? show_local_error(e, f->operands[0], d) : e;
    if (f->detach) {
        puts(f->operands[0]);
        return ERR_OK;
    }
    if (!f->quiet)
        say_resumed(&options);
    return outcome_follow(client, f, &options, code, d);
}

int cli_resume(int argc, char **argv)
{
    static const struct cli_syntax syntax = {.options = resume_options,
                                             .option_count = ARRAY_LEN(resume_options),
                                             .operands_min = 1,
                                             .operands_max = 1,
                                             .operand = ONE_JOB,
                                             .text =
                                                 "\nWindows that are stored stay; the rest is measured.\n"};
    struct cli_flags f;
    struct local *local = NULL;
    struct client *client = NULL;
    struct err_detail d = {0};
    int code;
    if (!cli_parse(&f, &syntax, argc, argv, &code))
        return code;
    enum err e = f.place.local ? start_local_for(&f, &local, &d) : ERR_OK;
    if (e == ERR_OK)
        e = local != NULL ? local_open_client(local, &client, &d) : client_open(&f.place, &client, &d);
    if (e == ERR_OK)
        e = resume(&f, client, local, &code, &d);
    client_close(&client);
    local_stop(&local);
    return fail_or(e, &d, code);
}
