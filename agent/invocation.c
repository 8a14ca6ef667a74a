#include "agent/invocation.h"

#include "common/address.h"
#include "common/dirs.h"
#include "common/limits.h"
#include "common/mem.h"
#include "common/path.h"
#include "proto/libraries.h"

#include <stdlib.h>
#include <string.h>

/* ---- options with a function of their own ---- */

static enum err take_controller(void *into, const char *value, const char *what, struct err_detail *d)
{
    struct invocation *o = into;
    (void)what;
    free(o->controller);
    o->controller = NULL;
    return address_parse(value, &o->controller, d);
}

static enum err take_name(void *into, const char *value, const char *what, struct err_detail *d)
{
    ((struct invocation *)into)->name = value;
    return path_check_name(what, value, d);
}

static enum err take_address(void *into, const char *value, const char *what, struct err_detail *d)
{
    if (!address_is_host(value, strlen(value)))
        return err_set(d, ERR_INVALID, "%s \"%s\" is not an address or a host's name", what, value);
    ((struct invocation *)into)->address = value;
    return ERR_OK;
}

static void print_version(void)
{
    struct library own[PROTO_LIBRARIES_MAX];
    libraries_print_version("splitbench-agent", own, proto_libraries(own));
}

/* ---- the tables ---- */

#define AT(field)   .at = offsetof(struct invocation, field)
#define PATH_LIMITS .min = 1, .max = LIMIT_PATH_BYTES / 2
#define DIRECTORIES                                                                                          \
    "\nDirectories when not told:\n"                                                                         \
    "  root     /etc/splitbench/agent and /var/lib/splitbench/agent\n"                                       \
    "  others   ~/.config/splitbench/agent and ~/.local/state/splitbench/agent\n"

static const struct args_option top_options[] = {
    {ARGS_HELP_ROW},
    {"", "version", NULL, "its version and those of its libraries", ARGS_PRINT, .print = print_version}};

static const struct args_table top_table = {
    ARGS_ROWS(top_options),
    .usage = "usage: splitbench-agent run [OPTIONS]\n"
             "       splitbench-agent enroll ADDRESS TOKEN [OPTIONS]\n\n"
             "The daemon on every lab machine: it does what its controller says (starts\n"
             "servers and load generators, measures them, sends results) and keeps results\n"
             "until the controller has them.\n\n"
             "  run       serve a controller until told to end (SIGTERM)\n"
             "  enroll    once a machine: make a key here and get a certificate for it\n\n",
    .more = "\nA new machine:\n"
            "  on the controller   splitbench token agent\n"
            "  here                splitbench-agent enroll lab1.example TOKEN\n"
            "                      splitbench-agent run --label pool=sut\n\n"
            "Exit codes: 0 ended as told, 2 usage, 3 something needed is missing or refused.\n"
            "See also: splitbench-agent run --help, splitbench-agent enroll --help\n",
    .operands_min = 1,
    .operands_max = 1,
    .operands = "a command: run or enroll; see splitbench-agent --help",
};

static const struct args_option run_options[] = {
    {"", "controller", "ADDRESS",
     "where the controller listens: HOST[:PORT] (TLS, port " ADDRESS_PORT
     "), or the path of its socket on this "
     "machine. Default: the one enrolled at",
     ARGS_OTHER, .take = take_controller},
    {"", "name", "NAME",
     "over a socket: what this agent is called (default: the host's name). Over TLS it is called what its "
     "certificate says",
     ARGS_OTHER, .take = take_name},
    {"", "label", "KEY=VALUE",
     "describes this machine, for experiments to choose it by: pool=sut, hardware=i7-13700k. May be repeated",
     ARGS_TEXTS, AT(labels), .max = ARGS_TEXTS_MAX},
    {"", "address", "ADDR",
     "where other machines reach servers on this one (default: the address this agent dials from)",
     ARGS_OTHER, .take = take_address},
    {"", "identity", "DIR", "where key and certificate are (made by enroll)", ARGS_TEXT, AT(identity),
     PATH_LIMITS},
    {"", "state", "DIR", "where workspaces, logs and unsent results are kept", ARGS_TEXT, AT(state),
     PATH_LIMITS},
    {"", "load-program", "FILE", "the built-in generator (default: splitbench-load beside this program)",
     ARGS_TEXT, AT(load)},
    {"", "leash", NULL,
     "end, and everything started with it, when standard input ends: for programs that start an agent and "
     "must "
     "not leave it behind",
     ARGS_SWITCH, AT(leash)},
    {"v", "verbose", NULL, "log what is done, not only what changes", ARGS_SWITCH, AT(verbose)},
    {ARGS_HELP_ROW}};

static const struct args_option enroll_options[] = {
    {"", "name", "NAME", "what this agent is called (default: the host's name)", ARGS_OTHER,
     .take = take_name},
    {"", "identity", "DIR", "where key and certificate are put", ARGS_TEXT, AT(identity), PATH_LIMITS},
    {ARGS_HELP_ROW}};

/* In the order of their names in invocation_parse. */
static const struct args_table tables[] = {
    {ARGS_ROWS(run_options), .command = "run",
     .usage = "usage: splitbench-agent run [OPTIONS]\n\n"
              "Dials the controller, again and again until it answers, and works for it.\n"
              "SIGTERM ends the job here, every process of it, then the agent. One agent per\n"
              "state directory.\n\n",
     .more = DIRECTORIES "\nExamples:\n"
                         "  splitbench-agent run --label pool=sut --label hardware=i7-13700k\n"
                         "  splitbench-agent run --controller /run/splitbench/controller.sock --name here\n"},
    {ARGS_ROWS(enroll_options), .command = "enroll",
     .usage = "usage: splitbench-agent enroll ADDRESS TOKEN [OPTIONS]\n\n"
              "ADDRESS is where the controller listens, HOST[:PORT] (port " ADDRESS_PORT "). TOKEN comes\n"
              "from `splitbench token agent` there; it is good once and not for long. It also\n"
              "names the lab's CA, so nobody on the way can pose as the controller. The key is\n"
              "made here and never leaves this machine. TOKEN may be \"-\": it is then read from\n"
              "standard input, and does not show in the process list.\n\n",
     .more = DIRECTORIES "\nExample:\n"
                         "  splitbench-agent enroll lab1.example TOKEN --name sut-01\n",
     .operands_min = 2, .operands_max = 2,
     .operands = "ADDRESS and TOKEN; see splitbench-agent enroll --help"},
};

/* ---- what was not told ---- */

/* A directory that was told, from the root on; else `fallback`, which is consumed. */
static enum err find_dir(const char *told, char *fallback, const char *what, char **out, struct err_detail *d)
{
    *out = told != NULL ? dirs_absolute(told) : fallback;
    if (told != NULL)
        free(fallback);
    if (*out != NULL)
        return ERR_OK;
    return told != NULL
               ? err_set(d, ERR_INVALID, "%s \"%s\" is relative, and the current directory is gone", what,
                         told)
               : err_set(d, ERR_INVALID, "there is no HOME to put a default below: give %s DIR", what);
}

static char *find_load_program(void)
{
    char *dir = dirs_program();
    char *path = dir != NULL ? mem_printf("%s/splitbench-load", dir) : mem_strdup("splitbench-load");
    free(dir);
    return path;
}

static enum err fill_defaults(struct invocation *o, struct err_detail *d)
{
    char *identity = dirs_default("/etc/splitbench/agent", "XDG_CONFIG_HOME", ".config", "splitbench/agent");
    enum err e = find_dir(o->identity, identity, "--identity", &o->identity_dir, d);
    if (e != ERR_OK || o->command == INVOCATION_ENROLL)
        return e;
    o->load_program = o->load != NULL ? mem_strdup(o->load) : find_load_program();
    char *state =
        dirs_default("/var/lib/splitbench/agent", "XDG_STATE_HOME", ".local/state", "splitbench/agent");
    return find_dir(o->state, state, "--state", &o->state_dir, d);
}

enum err invocation_parse(int argc, char **argv, struct invocation *o, struct err_detail *d)
{
    static const char *const commands[] = {"run", "enroll"};
    char **words;
    int count;
    size_t command = 0;
    *o = (struct invocation){.command = INVOCATION_DONE};
    enum args_result result = args_pick(&top_table, commands, ARRAY_LEN(commands), &argc, &argv, &command, d);
    if (result == ARGS_GO)
        result = args_parse(&tables[command], argc, argv, o, &words, &count, d);
    if (result != ARGS_GO)
        return result == ARGS_DONE ? ERR_OK : ERR_INVALID;
    o->command = command == 0 ? INVOCATION_RUN : INVOCATION_ENROLL;
    if (o->command == INVOCATION_ENROLL) {
        enum err e = address_parse(words[0], &o->controller, d);
        if (e != ERR_OK)
            return e;
        o->token = words[1];
    }
    return fill_defaults(o, d);
}

void invocation_fini(struct invocation *o)
{
    free(o->controller);
    free(o->identity_dir);
    free(o->state_dir);
    free(o->load_program);
    *o = (struct invocation){0};
}
