/*
 * watch, report, resume, cancel: what one does with a job that exists.
 */
#include "controller/cli/local.h"
#include "controller/cli/show.h"
#include "controller/cli/submit.h"
#include "controller/report/report.h"

#include "common/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static enum err watch(const struct cli_flags *f, int *exit_code, struct err_detail *d)
{
    struct client *client = NULL;
    enum err e = client_open(&f->place, &client, d);
    if (e == ERR_OK)
        e = show_followed(client, f, &(struct watch_options){.job = f->operands[0]}, exit_code, d);
    client_close(&client);
    return e;
}

/* The whole id, as the controller answers with it; one of an earlier release takes nothing else. */
static const char *id_of(const struct buf *answer, const char *typed)
{
    return answer->len != 0 ? answer->data : typed;
}

static enum err cancel(const struct cli_flags *f, int *exit_code, struct err_detail *d)
{
    (void)exit_code;
    struct buf answer = {0};
    const struct client_ask ask = {.kind = MSG_ASK_CANCEL, .job = f->operands[0]};
    enum err e = client_ask_once(&f->place, &ask, &answer, d);
    if (e == ERR_OK)
        printf("job %s is cancelled; what was measured stays\n", id_of(&answer, f->operands[0]));
    buf_fini(&answer);
    return e;
}

static enum err print_report(const struct report *report, bool json, struct err_detail *d)
{
    struct buf text;
    if (json) {
        enum err e = report_write_json(report, &(struct report_sink){.write = show_piece}, d);
        return e == ERR_OK ? show_end(d) : e;
    }
    buf_init(&text, LIMIT_ANSWER_BYTES);
    enum err e = report_write_text(report, show_width(), &text);
    e = e == ERR_OK ? show_text(&text, d)
                    : err_set(d, e, "the report cannot be written as text: %s", err_text(e));
    buf_fini(&text);
    return e;
}

/* From this machine's results file: no controller has to run. */
static enum err report_local(const struct cli_flags *f, struct err_detail *d)
{
    struct store *store = NULL;
    struct report *report = NULL;
    char *id = NULL;
    enum err e = show_open_store(&f->place, &store, d);
    if (e == ERR_OK)
        e = show_find_local(store, f->operands[0], &id, d);
    if (e == ERR_OK)
        e = report_build(store, id, &report, d);
    if (e == ERR_OK)
        e = print_report(report, f->json, d);
    report_free(report);
    store_close(store);
    free(id);
    return e;
}

static enum err report(const struct cli_flags *f, int *exit_code, struct err_detail *d)
{
    (void)exit_code;
    struct client *client = NULL;
    if (f->local)
        return report_local(f, d);
    enum err e = client_open(&f->place, &client, d);
    if (e == ERR_OK)
        e = show_report(client, f->operands[0], f->json, d);
    client_close(&client);
    return e;
}

/* The hosts a local job needs are started from its own experiment, as it was stored. */
static enum err start_local_for(const struct cli_flags *f, struct local **local, struct err_detail *d)
{
    struct store *store = NULL;
    struct store_job job = {0};
    struct experiment *experiment = NULL;
    struct experiment_problems problems = {0};
    char *id = NULL;
    enum err e = show_open_store(&f->place, &store, d);
    if (e == ERR_OK)
        e = show_find_local(store, f->operands[0], &id, d);
    if (e == ERR_OK)
        e = store_get_job(store, id, &job, d);
    if (e == ERR_OK && experiment_parse(job.experiment_json, strlen(job.experiment_json),
                                        &(struct experiment_options){.file = f->operands[0]}, &experiment,
                                        &problems) != ERR_OK)
        e = err_set(d, ERR_INVALID, "job %s was stored by another version: its experiment is not understood",
                    id);
    free(id);
    store_close(store);
    if (e == ERR_OK)
        e = local_start(&f->place, experiment, local, d);
    experiment_free(experiment);
    experiment_problems_fini(&problems);
    store_job_fini(&job);
    return e;
}

/* What the controller may have thrown out since: the files that the experiment names now. */
static enum err bring_files(struct client *client, const char *file, struct err_detail *d)
{
    struct experiment *experiment = NULL;
    struct experiment_problems problems = {0};
    const struct experiment_options options = {.file = file, .use = EXPERIMENT_USE_REMOTE};
    enum err e = experiment_read(&options, &experiment, &problems, d);
    if (problems.count != 0)
        e = err_set(d, ERR_INVALID, "the files of %s cannot be sent: %s", file, problems.items[0].text);
    if (e == ERR_OK)
        e = submit_files(client, experiment, d);
    experiment_free(experiment);
    experiment_problems_fini(&problems);
    return e;
}

static void say_resumed(const struct watch_options *o)
{
    if (o->windows_total == 0)
        fputs("resumed\n", stderr);
    else
        fprintf(stderr, "resumed: %u of %u already measured\n", o->windows_done, o->windows_total);
}

static enum err resume_here(const struct cli_flags *f, struct client *client, struct local *local,
                            int *exit_code, struct err_detail *d)
{
    struct buf answer = {0};
    struct watch_options options = {.job = f->operands[0],
                                    .cancel_on_intr = true,
                                    .check = local != NULL ? local_check : NULL,
                                    .check_arg = local};
    enum err e = f->detach ? ERR_OK : watch_skip(client, &options, d);
    if (e == ERR_OK && f->operands[1][0] != '\0')
        e = bring_files(client, f->operands[1], d);
    if (e == ERR_OK)
        e = client_ask(client, &(struct client_ask){.kind = MSG_ASK_RESUME, .job = f->operands[0]}, &answer,
                       d);
    if (e != ERR_OK)
        return f->local ? show_local_error(e, f->operands[0], d) : e;
    options.job = id_of(&answer, f->operands[0]);
    if (f->detach)
        puts(options.job);
    else if (!f->quiet)
        say_resumed(&options);
    if (!f->detach)
        e = show_followed(client, f, &options, exit_code, d);
    buf_fini(&answer);
    return e;
}

static enum err resume(const struct cli_flags *f, int *exit_code, struct err_detail *d)
{
    struct local *local = NULL;
    struct client *client = NULL;
    if (f->local && f->operands[1][0] != '\0')
        return err_set(d, ERR_INVALID, "a local job works on its files where they lie: leave %s out",
                       f->operands[1]);
    enum err e = f->local ? start_local_for(f, &local, d) : ERR_OK;
    if (e == ERR_OK)
        e = local != NULL ? local_open_client(local, &client, d) : client_open(&f->place, &client, d);
    if (e == ERR_OK)
        e = resume_here(f, client, local, exit_code, d);
    client_close(&client);
    local_stop(&local);
    return e;
}

/* ---- what they are called and take --------------------------------------------------------------- */

#define HERE_ROW                                                                                             \
    {                                                                                                        \
        CLI_LOCAL("a run of this machine (run --local)")                                                     \
    }
#define RESULT_ROWS                                                                                          \
    {CLI_JSON("the result as JSON")},                                                                        \
    {                                                                                                        \
        CLI_QUIET                                                                                            \
    }
#define ONE_JOB "one job, or a beginning of its id; 'splitbench status' lists them"

static const struct args_option cancel_options[] = {CLI_PLACE_ROWS, {ARGS_HELP_ROW}};
static const struct args_option watch_options[] = {CLI_PLACE_ROWS, RESULT_ROWS, {ARGS_HELP_ROW}};
static const struct args_option report_options[] = {
    CLI_PLACE_ROWS, HERE_ROW, {CLI_JSON("everything, every attempt too, as JSON")}, {ARGS_HELP_ROW}};
static const struct args_option resume_options[] = {
    CLI_PLACE_ROWS, HERE_ROW, RESULT_ROWS, {CLI_DETACH}, {ARGS_HELP_ROW}};

const struct cli_command cli_watch = {
    .operands = "JOB",
    .summary = "follow a job",
    .text = "\n^C leaves with exit code 3; the job goes on.\n",
    .table = {CLI_TABLE("watch", watch_options, 1, 1, ONE_JOB)},
    .run = watch,
};
const struct cli_command cli_report = {
    .operands = "[JOB]",
    .summary = "the results of a job (default: the newest)",
    .table = {CLI_TABLE("report", report_options, 0, 1, NULL)},
    .run = report,
};
const struct cli_command cli_resume = {
    .operands = "JOB [FILE]",
    .summary = "go on with a job at its first missing window",
    .text = "\nWindows that are stored stay; the rest is measured. FILE is the job's\n"
            "experiment: its files are sent again, when the controller has made room.\n",
    .table = {CLI_TABLE("resume", resume_options, 1, 2,
                        ONE_JOB ", and its experiment file when that is asked for")},
    .run = resume,
};
const struct cli_command cli_cancel = {
    .operands = "JOB",
    .summary = "end a job; what was measured stays",
    .table = {CLI_TABLE("cancel", cancel_options, 1, 1, ONE_JOB)},
    .run = cancel,
};
