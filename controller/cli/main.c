#include "controller/cli/cli.h"

#include "common/parse.h"
#include "common/streams.h"
#include "controller/store/store.h"
#include "proto/libraries.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

static const struct cli_command commands[] = {
#define X(name, operands, summary) {#name, operands, summary, cli_##name},
    CLI_COMMAND_LIST(X)
#undef X
};

static void print_usage(void)
{
    printf("usage: splitbench COMMAND [options] ...\n\n"
           "Measures servers honestly: one host runs the server, another the load.\n\n");
    for (size_t i = 0; i < ARRAY_LEN(commands); i++)
        printf("  %-10s %-14s %s\n", commands[i].name, commands[i].operands, commands[i].summary);
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

static const struct cli_command *find(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(commands); i++)
        if (strcmp(commands[i].name, name) == 0)
            return &commands[i];
    return NULL;
}

static int refuse_command(const char *name)
{
    const char *names[ARRAY_LEN(commands)];
    for (size_t i = 0; i < ARRAY_LEN(commands); i++)
        names[i] = commands[i].name;
    const char *close = parse_closest(name, names, ARRAY_LEN(commands));
    if (close != NULL)
        return cli_usage("unknown command '%s'; did you mean '%s'?", name, close);
    return cli_usage("unknown command '%s'; see splitbench help", name);
}

static int run(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "";
    if (strcmp(name, "--version") == 0) {
        print_version();
        return CLI_EXIT_OK;
    }
    bool help = strcmp(name, "help") == 0;
    if ((help && argc < 3) || strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) {
        print_usage();
        return CLI_EXIT_OK;
    }
    if (argc < 2)
        return cli_usage("name a command: run, plan, report, ...; see splitbench help");
    name = help ? argv[2] : name;
    const struct cli_command *command = find(name);
    if (command != NULL && help) {
        char option[] = "--help";
        return command->run(2, (char *[]){argv[2], option, NULL});
    }
    if (command != NULL)
        return command->run(argc - 1, argv + 1);
    return refuse_command(name);
}

int main(int argc, char **argv)
{
    streams_init();
    signal(SIGPIPE, SIG_IGN); /* a closed pipe or peer and a full file are error values, not a death */
    signal(SIGXFSZ, SIG_IGN);
    return streams_end("splitbench", run(argc, argv), CLI_EXIT_INFRA);
}
