#ifndef CONTROLLER_CLI_CLI_H
#define CONTROLLER_CLI_CLI_H
/*
 * What a subcommand is: its options, its words for the help, and the function that does it. Owned by main,
 * which reads the words and says the error; main thread only.
 */
#include "common/args.h"
#include "controller/cli/place.h"

/* Exit codes, the same for every subcommand (docs/cli.md). */
enum cli_exit {
    CLI_EXIT_OK = 0,
    CLI_EXIT_EXPERIMENT = 1, /* it ran, and parity or gates failed */
    CLI_EXIT_USAGE = 2,      /* a flag or a file is wrong */
    CLI_EXIT_INFRA = 3,      /* a controller, host or disk failed */
};

#define CLI_LISTEN_MAX 7u

/* What the options of all subcommands fill in; texts are argv's own. */
struct cli_flags {
    struct place place;
    bool local; /* no controller: this machine's own results */
    bool json;
    bool detach;
    bool quiet;
    bool leash;
    bool verbose;
    bool list;
    const char *name; /* NULL: not given */
    uint64_t lease_ns;
    uint64_t expires_ns;
    struct args_texts listen;
    struct args_texts sets;
    const char *operands[2]; /* "" where none is given */
};

/* What stands in the rows that several subcommands have. */
#define CLI_AT(field) .at = offsetof(struct cli_flags, field)
#define CLI_CONTROLLER                                                                                       \
    "C", "controller", "ADDRESS",                                                                            \
        "the controller: tls+tcp://HOST:7411 or ipc:///PATH (default: $SPLITBENCH_CONTROLLER, or this "      \
        "machine's)",                                                                                        \
        ARGS_TEXT, CLI_AT(place.controller)
#define CLI_IDENTITY(help) "I", "identity", "DIR", help, ARGS_TEXT, CLI_AT(place.identity)
#define CLI_STATE(help)    "S", "state", "DIR", help, ARGS_TEXT, CLI_AT(place.state)
#define CLI_LOCAL(help)    "", "local", NULL, help, ARGS_SWITCH, CLI_AT(local)
#define CLI_JSON(help)     "", "json", NULL, help, ARGS_SWITCH, CLI_AT(json)
#define CLI_QUIET          "q", "quiet", NULL, "no progress, only the result", ARGS_SWITCH, CLI_AT(quiet)
#define CLI_DETACH         "", "detach", NULL, "print the job's id and leave", ARGS_SWITCH, CLI_AT(detach)

/* The rows of whoever asks a controller. */
#define CLI_PLACE_ROWS                                                                                       \
    {CLI_CONTROLLER}, {CLI_IDENTITY("certificate and key of an enrolled operator, for tls+tcp")},            \
    {                                                                                                        \
        CLI_STATE("where results and sockets live (default: see splitbench help)")                           \
    }

/* The table of a subcommand that takes so many operands; `what` they are. */
#define CLI_TABLE(name, rows, min, max, what)                                                                \
    .command = (name), ARGS_ROWS(rows), .operands_min = (min), .operands_max = (max), .operands = (what)

struct cli_command {
    const char *operands;    /* as the usage shows them; "" for none */
    const char *summary;     /* one line */
    const char *text;        /* more help, NULL for none */
    struct args_table table; /* its usage is made of the above */
    /* `exit_code` is CLI_EXIT_OK before; of an error it follows from the error. */
    enum err (*run)(const struct cli_flags *f, int *exit_code, struct err_detail *d);
};
extern const struct cli_command cli_run, cli_plan, cli_verify;                 /* run.c */
extern const struct cli_command cli_status, cli_hosts;                         /* list.c */
extern const struct cli_command cli_watch, cli_report, cli_resume, cli_cancel; /* follow.c */
extern const struct cli_command cli_controller, cli_enroll, cli_revoke;        /* lab.c */
extern const struct cli_command cli_token;                                     /* token.c */

#endif
