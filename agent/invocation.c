#include "agent/invocation.h"

#include "common/address.h"
#include "common/args.h"
#include "common/limits.h"
#include "common/mem.h"
#include "common/parse.h"
#include "common/path.h"
#include "proto/libraries.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    OPT_CONTROLLER = 256,
    OPT_IDENTITY,
    OPT_NAME,
    OPT_LABEL,
    OPT_ADDRESS,
    OPT_STATE,
    OPT_LOAD_PROGRAM,
    OPT_LEASH,
    OPT_VERSION,
};

static const struct args_option top_options[] = {
    {'h', "help", NULL, "this text"},
    {OPT_VERSION, "version", NULL, "its version and those of its libraries"},
};

static const struct args_option run_options[] = {
    {OPT_CONTROLLER, "controller", "ADDRESS",
     "where the controller listens: HOST[:PORT] (TLS, port " ADDRESS_PORT "), or the "
     "path of its socket on this machine. Default: the one enrolled at"},
    {OPT_NAME, "name", "NAME",
     "over a socket: what this agent is called (default: the host's name). "
     "Over TLS it is called what its certificate says"},
    {OPT_LABEL, "label", "KEY=VALUE",
     "describes this machine, for experiments to choose it by: pool=sut, "
     "hardware=i7-13700k. May be repeated"},
    {OPT_ADDRESS, "address", "ADDR",
     "where other machines reach servers on this one (default: the address "
     "this agent dials from)"},
    {OPT_IDENTITY, "identity", "DIR", "where key and certificate are (made by enroll)"},
    {OPT_STATE, "state", "DIR", "where workspaces, logs and unsent results are kept"},
    {OPT_LOAD_PROGRAM, "load-program", "FILE",
     "the built-in generator (default: splitbench-load beside this program)"},
    {OPT_LEASH, "leash", NULL,
     "end, and everything started with it, when standard input ends: for "
     "programs that start an agent and must not leave it behind"},
    {'v', "verbose", NULL, "log what is done, not only what changes"},
    {'h', "help", NULL, "this text"},
};

static const struct args_option enroll_options[] = {
    {OPT_NAME, "name", "NAME", "what this agent is called (default: the host's name)"},
    {OPT_IDENTITY, "identity", "DIR", "where key and certificate are put"},
    {'h', "help", NULL, "this text"},
};

static void print_defaults(void)
{
    fputs("\nDirectories when not told:\n"
          "  root     /etc/splitbench/agent and /var/lib/splitbench/agent\n"
          "  others   ~/.config/splitbench/agent and ~/.local/state/splitbench/agent\n",
          stdout);
}

static void print_top_help(void)
{
    fputs("usage: splitbench-agent run [OPTIONS]\n"
          "       splitbench-agent enroll ADDRESS TOKEN [OPTIONS]\n\n"
          "The daemon on every lab machine: it does what its controller says (starts\n"
          "servers and load generators, measures them, sends results) and keeps results\n"
          "until the controller has them.\n\n"
          "  run       serve a controller until told to end (SIGTERM)\n"
          "  enroll    once a machine: make a key here and get a certificate for it\n\n",
          stdout);
    args_print_help(top_options, ARRAY_LEN(top_options));
    fputs("\nA new machine:\n"
          "  on the controller   splitbench token agent\n"
          "  here                splitbench-agent enroll lab1.example TOKEN\n"
          "                      splitbench-agent run --label pool=sut\n\n"
          "Exit codes: 0 ended as told, 2 usage, 3 something needed is missing or refused.\n"
          "See also: splitbench-agent run --help, splitbench-agent enroll --help\n",
          stdout);
}

static void print_run_help(void)
{
    fputs("usage: splitbench-agent run [OPTIONS]\n\n"
          "Dials the controller, again and again until it answers, and works for it.\n"
          "SIGTERM ends the job here, every process of it, then the agent. One agent per\n"
          "state directory.\n\n",
          stdout);
    args_print_help(run_options, ARRAY_LEN(run_options));
    print_defaults();
    fputs("\nExamples:\n"
          "  splitbench-agent run --label pool=sut --label hardware=i7-13700k\n"
          "  splitbench-agent run --controller /run/splitbench/controller.sock --name here\n",
          stdout);
}

static void print_enroll_help(void)
{
    fputs("usage: splitbench-agent enroll ADDRESS TOKEN [OPTIONS]\n\n"
          "ADDRESS is where the controller listens, HOST[:PORT] (port " ADDRESS_PORT "). TOKEN comes\n"
          "from `splitbench token agent` there; it is good once and not for long. It also\n"
          "names the lab's CA, so nobody on the way can pose as the controller. The key is\n"
          "made here and never leaves this machine. TOKEN may be \"-\": it is then read from\n"
          "standard input, and does not show in the process list.\n\n",
          stdout);
    args_print_help(enroll_options, ARRAY_LEN(enroll_options));
    print_defaults();
    fputs("\nExample:\n"
          "  splitbench-agent enroll lab1.example TOKEN --name sut-01\n",
          stdout);
}

static enum err take_option(struct invocation *o, int id, const char *value, struct err_detail *d)
{
    switch (id) {
    case OPT_CONTROLLER:
        free(o->controller);
        o->controller = NULL;
        return address_parse(value, &o->controller, d);
    case OPT_IDENTITY:
        mem_set_string(&o->identity_dir, value);
        o->identity_given = true;
        return ERR_OK;
    case OPT_NAME:
        mem_set_string(&o->name, value);
        return path_check_name("--name", value, d);
    case OPT_LABEL:
        o->labels = mem_realloc(o->labels, o->label_count + 1, sizeof *o->labels);
        o->labels[o->label_count++] = mem_strdup(value);
        return ERR_OK;
    case OPT_ADDRESS:
        if (!address_is_host(value, strlen(value)))
            return err_set(d, ERR_INVALID, "--address \"%s\" is not an address or a host's name", value);
        mem_set_string(&o->address, value);
        return ERR_OK;
    case OPT_STATE:
        mem_set_string(&o->state_dir, value);
        return ERR_OK;
    case OPT_LOAD_PROGRAM:
        mem_set_string(&o->load_program, value);
        return ERR_OK;
    case OPT_LEASH:
        o->leash = true;
        return ERR_OK;
    case 'v':
        o->verbose = true;
        return ERR_OK;
    default:
        must_failed("an option without a case", __FILE__, __LINE__);
    }
}

static char *default_dir(const char *root_dir, const char *variable, const char *below_home)
{
    if (geteuid() == 0)
        return mem_strdup(root_dir);
    const char *base = getenv(variable);
    if (base != NULL && base[0] == '/')
        return mem_printf("%s/splitbench/agent", base);
    const char *home = getenv("HOME");
    return home != NULL && home[0] == '/' ? mem_printf("%s/%s/splitbench/agent", home, below_home) : NULL;
}

static enum err make_absolute(char **path, const char *what, struct err_detail *d)
{
    if (*path == NULL)
        return err_set(d, ERR_INVALID, "there is no HOME to put a default below: give --%s DIR", what);
    if ((*path)[0] == '\0' || strlen(*path) > LIMIT_PATH_BYTES / 2)
        return err_set(d, ERR_INVALID, "--%s must have 1 to %u bytes", what, LIMIT_PATH_BYTES / 2);
    if ((*path)[0] == '/')
        return ERR_OK;
    char cwd[PATH_MAX];
    if (getcwd(cwd, sizeof cwd) == NULL)
        return err_set(d, ERR_INVALID, "--%s \"%s\" is relative, and the current directory is gone", what,
                       *path);
    char *whole = mem_printf("%s/%s", cwd, *path);
    free(*path);
    *path = whole;
    return ERR_OK;
}

static char *find_load_program(void)
{
    char exe[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", exe, sizeof exe - 1);
    exe[n > 0 ? n : 0] = '\0';
    char *slash = strrchr(exe, '/');
    if (slash == NULL)
        return mem_strdup("splitbench-load");
    *slash = '\0';
    return mem_printf("%s/splitbench-load", exe);
}

static enum err fill_defaults(struct invocation *o, struct err_detail *d)
{
    enum err e;
    if (o->identity_dir == NULL)
        o->identity_dir = default_dir("/etc/splitbench/agent", "XDG_CONFIG_HOME", ".config");
    if ((e = make_absolute(&o->identity_dir, "identity", d)) != ERR_OK || o->command == INVOCATION_ENROLL)
        return e;
    if (o->state_dir == NULL)
        o->state_dir = default_dir("/var/lib/splitbench/agent", "XDG_STATE_HOME", ".local/state");
    if ((e = make_absolute(&o->state_dir, "state", d)) != ERR_OK)
        return e;
    if (o->load_program == NULL)
        o->load_program = find_load_program();
    return ERR_OK;
}

/* A command's words, from argv[0] = its name on. */
static enum err parse_command(int argc, char **argv, const struct args_option *table, size_t count,
                              void (*print_help)(void), struct invocation *o, struct err_detail *d)
{
    struct args a;
    args_init(&a, table, count, argc, argv);
    enum err e = ERR_OK;
    int id;
    while (e == ERR_OK && (id = args_next(&a, d)) != ARGS_END) {
        if (id == ARGS_BAD) {
            e = ERR_INVALID;
        } else if (id == 'h') {
            print_help();
            o->command = INVOCATION_HELP;
            break;
        } else {
            e = take_option(o, id, a.value, d);
        }
    }
    if (e == ERR_OK && o->command != INVOCATION_HELP) {
        char **words;
        int n = args_operands(&a, &words);
        if (o->command == INVOCATION_RUN && n > 0)
            e = err_set(d, ERR_INVALID, "run takes no \"%s\"; see splitbench-agent run --help", words[0]);
        else if (o->command == INVOCATION_ENROLL && n != 2)
            e = err_set(d, ERR_INVALID, "enroll takes ADDRESS and TOKEN; see splitbench-agent enroll --help");
        else if (o->command == INVOCATION_ENROLL &&
                 (e = address_parse(words[0], &o->controller, d)) == ERR_OK)
            o->token = mem_strdup(words[1]);
    }
    args_fini(&a);
    return e;
}

enum err invocation_parse(int argc, char **argv, struct invocation *o, struct err_detail *d)
{
    static const char *const commands[] = {"run", "enroll"};
    *o = (struct invocation){.command = INVOCATION_HELP};
    if (argc < 2)
        return err_set(d, ERR_INVALID, "say what to do: run or enroll; see splitbench-agent --help");
    const char *word = argv[1];
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 || strcmp(word, "help") == 0) {
        print_top_help();
        return ERR_OK;
    }
    if (strcmp(word, "--version") == 0) {
        o->command = INVOCATION_VERSION;
        struct library own[PROTO_LIBRARIES_MAX];
        libraries_print_version("splitbench-agent", own, proto_libraries(own));
        return ERR_OK;
    }
    enum err e;
    if (strcmp(word, "run") == 0) {
        o->command = INVOCATION_RUN;
        e = parse_command(argc - 1, argv + 1, run_options, ARRAY_LEN(run_options), print_run_help, o, d);
    } else if (strcmp(word, "enroll") == 0) {
        o->command = INVOCATION_ENROLL;
        e = parse_command(argc - 1, argv + 1, enroll_options, ARRAY_LEN(enroll_options), print_enroll_help, o,
                          d);
    } else {
        const char *close = parse_closest(word, commands, ARRAY_LEN(commands));
        return err_set(d, ERR_INVALID, "unknown command \"%s\"; %s%s%s", word,
                       close != NULL ? "did you mean " : "see splitbench-agent --help",
                       close != NULL ? close : "", close != NULL ? "?" : "");
    }
    if (e == ERR_OK && o->command != INVOCATION_HELP)
        e = fill_defaults(o, d);
    return e;
}

void invocation_fini(struct invocation *o)
{
    free(o->controller);
    free(o->token);
    free(o->identity_dir);
    free(o->state_dir);
    free(o->name);
    free(o->address);
    free(o->load_program);
    mem_free_strings(&o->labels, &o->label_count);
    *o = (struct invocation){0};
}
