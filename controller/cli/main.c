#include "controller/cli/cli.h"

#include "common/mem.h"
#include "common/streams.h"
#include "common/utf8.h"
#include "controller/store/store.h"
#include "proto/libraries.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct cli_command *const commands[] = {
    &cli_run,    &cli_plan,  &cli_verify,     &cli_status, &cli_watch,  &cli_report, &cli_resume,
    &cli_cancel, &cli_hosts, &cli_controller, &cli_token,  &cli_enroll, &cli_revoke,
};

static void print_usage(void)
{
    printf("usage: splitbench COMMAND [options] ...\n\n"
           "Measures servers honestly: one host runs the server, another the load.\n\n");
    for (size_t i = 0; i < ARRAY_LEN(commands); i++)
        printf("  %-10s %-14s %s\n", commands[i]->table.command, commands[i]->operands, commands[i]->summary);
    printf("\nA first run, on one machine   splitbench run --local experiment.json\n"
           "What a command can do         splitbench help COMMAND\n"
           "Results and sockets (STATE)   /var/lib/splitbench (root),\n"
           "                              ~/.local/state/splitbench (others)\n"
           "Exit codes                    0 done, 1 experiment failed, 2 usage or file,\n"
           "                              3 infrastructure\n");
}

static void print_version(void)
{
    struct library own[PROTO_LIBRARIES_MAX + 1];
    size_t count = proto_libraries(own);
    own[count++] = (struct library){"SQLite", store_library_version()};
    libraries_print_version("splitbench", own, count);
}

static const struct args_option top_options[] = {
    {"h", "help", NULL, "this text", ARGS_PRINT, .print = print_usage},
    {"", "version", NULL, "its version and those of its libraries", ARGS_PRINT, .print = print_version},
};
static const struct args_table top = {ARGS_ROWS(top_options), .operands_min = 1, .operands_max = 1,
                                      .operands = "a command: run, plan, report, ...; see splitbench help"};

static int exit_code_of(enum err e)
{
    switch (e) {
    case ERR_INVALID:
    case ERR_TOO_BIG:
    case ERR_NOT_FOUND:
    case ERR_EXISTS:
    case ERR_NOT_NOW:
        return CLI_EXIT_USAGE;
    case ERR_OK:
    case ERR_DENIED:
    case ERR_IO:
    case ERR_FULL:
    case ERR_TIMEOUT:
    case ERR_UNREACHABLE:
    case ERR_CLOSED:
    case ERR_CANCELLED:
    case ERR_BUSY:
    case ERR_UNSUPPORTED:
    case ERR_FAILED:
    case ERR_COUNT:
        break;
    }
    return CLI_EXIT_INFRA;
}

static enum err check_flags(const struct cli_flags *f, const char *command, struct err_detail *d)
{
    if (f->local && f->place.controller != NULL)
        return err_set(d, ERR_INVALID, "%s: --local and --controller exclude each other", command);
    if (f->local && f->detach)
        return err_set(d, ERR_INVALID,
                       "%s: --detach needs a controller that stays; a local one ends with the command",
                       command);
    return ERR_OK;
}

static enum args_result read_flags(const struct cli_command *command, int argc, char **argv,
                                   struct cli_flags *f, struct err_detail *d)
{
    const char *gap = command->operands[0] != '\0' ? " " : "";
    const char *text = command->text != NULL ? command->text : "";
    char *usage = mem_printf("usage: splitbench %s [options]%s%s\n\n%s.\n%s\noptions:\n",
                             command->table.command, gap, command->operands, command->summary, text);
    struct args_table table = command->table;
    char **operands;
    int count = 0;
    table.usage = usage;
    *f = (struct cli_flags){0};
    enum args_result result = args_parse(&table, argc, argv, f, &operands, &count, d);
    for (int i = 0; i < (int)ARRAY_LEN(f->operands); i++)
        f->operands[i] = i < count ? operands[i] : "";
    free(usage);
    return result == ARGS_GO && check_flags(f, table.command, d) != ERR_OK ? ARGS_BAD : result;
}

static int fail(int code, const struct err_detail *d)
{
    char *text = utf8_clean(mem_strdup(d->text), "\n");
    fprintf(stderr, "splitbench: %s\n", text);
    free(text);
    return code;
}

static int run(int argc, char **argv)
{
    struct cli_flags f;
    struct err_detail d = {0};
    const char *names[ARRAY_LEN(commands)];
    size_t command = 0;
    int code = CLI_EXIT_OK;
    for (size_t i = 0; i < ARRAY_LEN(commands); i++)
        names[i] = commands[i]->table.command;
    enum args_result result = args_pick(&top, names, ARRAY_LEN(names), &argc, &argv, &command, &d);
    if (result == ARGS_GO)
        result = read_flags(commands[command], argc, argv, &f, &d);
    if (result != ARGS_GO)
        return result == ARGS_DONE ? CLI_EXIT_OK : fail(CLI_EXIT_USAGE, &d);
    enum err e = commands[command]->run(&f, &code, &d);
    if (e != ERR_OK && d.text[0] == '\0')
        err_set(&d, e, "%s", err_text(e));
    return e == ERR_OK ? code : fail(exit_code_of(e), &d);
}

int main(int argc, char **argv)
{
    streams_init();
    signal(SIGPIPE, SIG_IGN); /* a closed pipe or peer and a full file are error values, not a death */
    signal(SIGXFSZ, SIG_IGN);
    return streams_end("splitbench", run(argc, argv), CLI_EXIT_INFRA);
}
