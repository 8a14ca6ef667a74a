#include "controller/cli/cli.h"

#include "common/address.h"
#include "common/mem.h"
#include "common/utf8.h"
#include "controller/daemon/daemon.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool take_common(struct cli_flags *f, int id, const char *value)
{
    switch (id) {
    case 'C':
        f->place.controller = value;
        return true;
    case 'I':
        f->place.identity = value;
        return true;
    case 'S':
        f->place.state = value;
        return true;
    case 'q':
        f->quiet = true;
        return true;
    case 'h':
        f->help = true;
        return true;
    case CLI_OPT_LOCAL:
        f->place.local = true;
        return true;
    case CLI_OPT_JSON:
        f->json = true;
        return true;
    case CLI_OPT_DETACH:
        f->detach = true;
        return true;
    default:
        return false;
    }
}

/* "usage: splitbench NAME [options] OPERANDS", the summary, the text, the options. */
static void print_help(const char *name, const struct cli_syntax *syntax)
{
    static const struct cli_command commands[] = {
#define X(n, o, s) {#n, o, s, cli_##n},
        CLI_COMMAND_LIST(X)
#undef X
    };
    for (size_t i = 0; i < ARRAY_LEN(commands); i++)
        if (strcmp(commands[i].name, name) == 0)
            printf("usage: splitbench %s [options]%s%s\n\n%s.\n", name,
                   commands[i].operands[0] != '\0' ? " " : "", commands[i].operands, commands[i].summary);
    printf("%s\noptions:\n", syntax->text);
    args_print_help(syntax->options, syntax->option_count);
}

static int check_operands(const struct cli_flags *f, const struct cli_syntax *syntax, char **argv,
                          char **operands, int n)
{
    if (n < syntax->operands_min)
        return cli_usage("%s: name %s", argv[0], syntax->operand);
    if (n > syntax->operands_max)
        return cli_usage("%s: '%s' is too much; see --help", argv[0], operands[syntax->operands_max]);
    if (f->place.local && f->place.controller != NULL)
        return cli_usage("%s: --local and --controller exclude each other", argv[0]);
    if (f->place.local && f->detach)
        return cli_usage("%s: --detach needs a controller that stays; a local one ends with the command",
                         argv[0]);
    return CLI_EXIT_OK;
}

bool cli_parse(struct cli_flags *f, const struct cli_syntax *syntax, int argc, char **argv, int *exit_code)
{
    struct args args;
    struct err_detail d = {0};
    enum err e = ERR_OK;
    char **operands;
    int id;
    *f = (struct cli_flags){0};
    args_init(&args, syntax->options, syntax->option_count, argc, argv);
    while (e == ERR_OK && (id = args_next(&args, &d)) != ARGS_END) {
        if (id == ARGS_BAD)
            e = ERR_INVALID;
        else if (!take_common(f, id, args.value))
            e = syntax->take(syntax->arg, id, args.value, &d);
    }
    int n = args_operands(&args, &operands);
    args_fini(&args);
    if (e != ERR_OK) {
        *exit_code = cli_fail(e, &d);
        return false;
    }
    if (f->help) {
        print_help(argv[0], syntax);
        *exit_code = CLI_EXIT_OK;
        return false;
    }
    for (int i = 0; i < n && i < syntax->operands_max; i++)
        f->operands[i] = operands[i];
    *exit_code = check_operands(f, syntax, argv, operands, n);
    return *exit_code == CLI_EXIT_OK;
}

/* Root's places are the system's; a person's are below the XDG base directories. */
static char *default_dir(const char *system, const char *xdg_variable, const char *below_home)
{
    if (geteuid() == 0)
        return mem_strdup(system);
    const char *xdg = getenv(xdg_variable);
    if (xdg != NULL && xdg[0] == '/')
        return mem_printf("%s/splitbench", xdg);
    const char *home = getenv("HOME");
    return mem_printf("%s/%s/splitbench", home != NULL && home[0] == '/' ? home : "/tmp", below_home);
}

char *cli_state_dir(const struct cli_place *place)
{
    char cwd[LIMIT_PATH_BYTES];
    if (place->state != NULL && place->state[0] != '/' && getcwd(cwd, sizeof cwd) != NULL)
        return mem_printf("%s/%s", cwd, place->state); /* a socket's address needs all of it */
    if (place->state != NULL)
        return mem_strdup(place->state);
    return default_dir("/var/lib/splitbench", "XDG_STATE_HOME", ".local/state");
}

char *cli_local_dir(const struct cli_place *place)
{
    char *state = cli_state_dir(place);
    char *dir = mem_printf("%s/local", state);
    free(state);
    return dir;
}

char *cli_local_store(const struct cli_place *place)
{
    char *dir = cli_local_dir(place);
    char *path = daemon_store_path(dir);
    free(dir);
    return path;
}

char *cli_identity_dir(const struct cli_place *place)
{
    if (place->identity != NULL)
        return mem_strdup(place->identity);
    char *config = default_dir("/etc/splitbench", "XDG_CONFIG_HOME", ".config");
    char *dir = mem_printf("%s/operator", config);
    free(config);
    return dir;
}

enum err cli_address(const struct cli_place *place, char **out, struct err_detail *d)
{
    const char *set = getenv("SPLITBENCH_CONTROLLER");
    if (place->controller != NULL)
        return address_parse(place->controller, out, d);
    if (set != NULL && set[0] != '\0')
        return err_prefix(d, address_parse(set, out, d), "$SPLITBENCH_CONTROLLER");
    char *state = cli_state_dir(place);
    *out = mem_printf("ipc://%s/controller.sock", state);
    free(state);
    return ERR_OK;
}

int cli_fail(enum err e, const struct err_detail *d)
{
    char *text = utf8_clean(mem_strdup(d->text[0] != '\0' ? d->text : err_text(e)), "\n");
    fprintf(stderr, "splitbench: %s\n", text);
    free(text);
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

int cli_usage(const char *fmt, ...)
{
    va_list ap;
    fputs("splitbench: ", stderr);
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fputc('\n', stderr);
    return CLI_EXIT_USAGE;
}
