#ifndef CONTROLLER_CLI_CLI_H
#define CONTROLLER_CLI_CLI_H
/*
 * What the subcommands share: the options that name a controller, default places, exit codes, and how an
 * error is said. Owned by main; main thread only.
 */
#include "common/args.h"
#include "common/buf.h"
#include "common/err.h"
#include "common/limits.h"

/* Exit codes, the same for every subcommand (docs/cli.md). */
enum cli_exit {
    CLI_EXIT_OK = 0,
    CLI_EXIT_EXPERIMENT = 1, /* it ran, and parity or gates failed */
    CLI_EXIT_USAGE = 2,      /* a flag or a file is wrong */
    CLI_EXIT_INFRA = 3,      /* a controller, host or disk failed */
};

/* ---- flags -------------------------------------------------------------------------------------- */

struct cli_place {          /* which controller, or which files */
    const char *controller; /* NULL = the default ipc socket below `state` */
    const char *identity;   /* NULL = default below the configuration directory */
    const char *state;      /* NULL = default */
    bool local;             /* no controller: this machine's own results */
};

/* Options that several subcommands have; each lists those it takes in its own table. */
enum {
    CLI_OPT_LOCAL = 256,
    CLI_OPT_JSON,
    CLI_OPT_DETACH,
    CLI_OPT_OWN /* a subcommand's own ids begin here */
};
#define CLI_PLACE_OPTIONS                                                                                    \
    {'C', "controller", "ADDRESS",                                                                           \
     "the controller: tls+tcp://HOST:7411 or ipc:///PATH (default: $SPLITBENCH_CONTROLLER, or this "         \
     "machine's)"},                                                                                          \
        {'I', "identity", "DIR", "certificate and key of an enrolled operator, for tls+tcp"},                \
    {                                                                                                        \
        'S', "state", "DIR", "where results and sockets live (default: see splitbench help)"                 \
    }
#define CLI_LOCAL_OPTION                                                                                     \
    {                                                                                                        \
        CLI_OPT_LOCAL, "local", NULL, "a run of this machine (run --local)"                                  \
    }
#define CLI_DETACH_OPTION                                                                                    \
    {                                                                                                        \
        CLI_OPT_DETACH, "detach", NULL, "print the job's id and leave"                                       \
    }
#define CLI_HELP_OPTION                                                                                      \
    {                                                                                                        \
        'h', "help", NULL, "this text"                                                                       \
    }

struct cli_flags {
    struct cli_place place;
    bool json;
    bool detach;
    bool quiet;
    bool help;
    const char *operands[2]; /* NULL where none is given */
};

struct cli_syntax {
    const struct args_option *options;
    size_t option_count;
    int operands_min;
    int operands_max;    /* at most 2 */
    const char *operand; /* what is missing: "one experiment file, like ..." */
    const char *text;    /* more help, "" for none */
    /* The subcommand's own options; NULL when it has none. */
    enum err (*take)(void *arg, int id, const char *value, struct err_detail *d);
    void *arg;
};

/* Reads the flags. False: the subcommand is over, with `exit_code`: the help was printed or a flag is wrong.
 */
bool cli_parse(struct cli_flags *flags, const struct cli_syntax *syntax, int argc, char **argv,
               int *exit_code);

/* ---- places ------------------------------------------------------------------------------------- */

/* Default or given directories; owned by the caller. */
char *cli_state_dir(const struct cli_place *place);
char *cli_local_dir(const struct cli_place *place);    /* STATE/local: results of runs on this machine */
char *cli_local_store(const struct cli_place *place);  /* its results file */
char *cli_identity_dir(const struct cli_place *place); /* of an operator */
/* Where the controller listens; ERR_INVALID when what was given is no address. */
NODISCARD enum err cli_address(const struct cli_place *place, char **out, struct err_detail *d);

/* Says "splitbench: text" on standard error and returns the exit code that fits the error. */
int cli_fail(enum err e, const struct err_detail *d);
int cli_usage(const char *fmt, ...) PRINTF_LIKE(1, 2);

/* The subcommands: argv[0] is the subcommand's name. Each returns an exit code. */
struct cli_command {
    const char *name;
    const char *operands;
    const char *summary;
    int (*run)(int argc, char **argv);
};
#define CLI_COMMAND_LIST(X)                                                                                  \
    X(run, "FILE", "run an experiment, here or on a lab's hosts")                                            \
    X(plan, "FILE", "the exact schedule and how long it takes")                                              \
    X(verify, "FILE", "build, start, check and stop targets; no load")                                       \
    X(status, "[JOB]", "jobs and how they stand")                                                            \
    X(watch, "JOB", "follow a job")                                                                          \
    X(report, "[JOB]", "the results of a job (default: the newest)")                                         \
    X(resume, "JOB", "go on with a job at its first missing window")                                         \
    X(cancel, "JOB", "end a job; what was measured stays")                                                   \
    X(hosts, "", "the agents and what they are")                                                             \
    X(controller, "[init]", "start the controller; init: make a lab's CA")                                   \
    X(token, "agent|operator", "a one-time token to enroll with")                                            \
    X(enroll, "ADDRESS TOKEN", "get an operator's certificate with a token")                                 \
    X(revoke, "NAME", "refuse a certificate from now on")
#define X(name, operands, summary) int cli_##name(int argc, char **argv);
CLI_COMMAND_LIST(X)
#undef X

#endif
