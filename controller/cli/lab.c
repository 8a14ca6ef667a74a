/*
 * controller, token, enroll, revoke: making a lab and letting people and hosts in.
 */
#include "controller/cli/show.h"

#include "common/address.h"
#include "common/clock.h"
#include "common/file.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/parse.h"
#include "controller/daemon/daemon.h"
#include "proto/link/link.h"

#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LISTEN_MAX       8u
#define TOKEN_DEFAULT_NS (3600 * NS_PER_S)
#define ENROLL_LIMIT_NS  (20 * NS_PER_S)

enum { OPT_LISTEN = CLI_OPT_OWN, OPT_LEASE, OPT_LEASH, OPT_VERBOSE, OPT_EXPIRES, OPT_NAME };

static const struct args_option controller_options[] = {
    {'S', "state", "DIR", "results, files and the lab's certificates (default: see splitbench help)"},
    {OPT_LISTEN, "listen", "ADDRESS",
     "listen here too, like tls+tcp://0.0.0.0:7411; may be repeated (ipc://STATE/controller.sock is always "
     "there)"},
    {OPT_LEASE, "lease", "DURATION", "how long a silent host keeps its job (default 10s)"},
    {OPT_LEASH, "leash", NULL, "end when standard input ends"},
    {OPT_VERBOSE, "verbose", NULL, "log more"},
    CLI_HELP_OPTION,
};
static const struct args_option token_options[] = {
    CLI_PLACE_OPTIONS,
    {OPT_EXPIRES, "expires", "DURATION", "how long it can be used (default 1h)"},
    CLI_HELP_OPTION};
static const struct args_option enroll_options[] = {
    {'I', "identity", "DIR", "where certificate and key go (default: see splitbench help)"},
    {OPT_NAME, "name", "NAME", "whose certificate it is (default: your login name)"},
    CLI_HELP_OPTION,
};
static const struct args_option revoke_options[] = {CLI_PLACE_OPTIONS, CLI_HELP_OPTION};

struct lab {
    const char *listen[LISTEN_MAX];
    size_t listen_count;
    uint64_t lease_ns;
    uint64_t expires_ns;
    bool leash;
    const char *name;
};

static enum err take(void *arg, int id, const char *value, struct err_detail *d)
{
    struct lab *lab = arg;
    switch (id) {
    case OPT_LISTEN:
        if (lab->listen_count == LISTEN_MAX - 1)
            return err_set(d, ERR_TOO_BIG, "--listen: at most %u addresses", LISTEN_MAX - 1);
        lab->listen[lab->listen_count++] = value;
        return ERR_OK;
    case OPT_LEASE:
        return parse_duration(value, &lab->lease_ns, "--lease", d);
    case OPT_EXPIRES:
        return parse_duration(value, &lab->expires_ns, "--expires", d);
    case OPT_LEASH:
        lab->leash = true;
        return ERR_OK;
    case OPT_VERBOSE:
        log_set_level(LOG_DEBUG);
        return ERR_OK;
    case OPT_NAME:
        lab->name = value;
        return ERR_OK;
    default:
        must(false);
        return ERR_INVALID;
    }
}

static int make_lab(const struct cli_place *place, const char *state, const char *dir)
{
    struct err_detail d = {0};
    enum err e = file_make_dirs(state, &d);
    if (e == ERR_OK)
        e = identity_create_lab(dir, &d);
    if (e != ERR_OK)
        return cli_fail(e, &d);
    printf("The lab's certificates are in %s; keep ca.key.pem there and nowhere else.\n"
           "Next: splitbench controller%s%s --listen tls+tcp://0.0.0.0:" ADDRESS_PORT "\n",
           dir, place->state != NULL ? " --state " : "", place->state != NULL ? place->state : "");
    return CLI_EXIT_OK;
}

static int run_controller(struct lab *lab, const char *state, const char *identity_dir)
{
    struct err_detail d = {0};
    char *ipc = mem_printf("ipc://%s/controller.sock", state);
    bool over_tls = false;
    bool over_ipc = false;
    for (size_t i = 0; i < lab->listen_count; i++) {
        over_tls = over_tls || strncmp(lab->listen[i], "tls+tcp://", 10) == 0;
        over_ipc = over_ipc || strncmp(lab->listen[i], "ipc://", 6) == 0;
    }
    if (!over_ipc)
        lab->listen[lab->listen_count++] = ipc;
    enum err e = file_make_dirs(state, &d);
    if (e == ERR_OK)
        e = daemon_run(&(struct daemon_options){.state_dir = state,
                                                .addresses = lab->listen,
                                                .address_count = lab->listen_count,
                                                .identity_dir = over_tls ? identity_dir : NULL,
                                                .leash = lab->leash,
                                                .lease_ns = lab->lease_ns},
                       &d);
    free(ipc);
    return e == ERR_OK ? CLI_EXIT_OK : cli_fail(e, &d);
}

int cli_controller(int argc, char **argv)
{
    struct lab lab = {.lease_ns = DAEMON_LEASE_NS};
    struct cli_syntax syntax = {
        .options = controller_options,
        .option_count = ARRAY_LEN(controller_options),
        .operands_max = 1,
        .text = "\n'splitbench controller init' makes the lab's own CA and the controller's\n"
                "certificate, once. Without an operand the controller runs until told to stop.\n",
        .take = take,
        .arg = &lab,
    };
    struct cli_flags f;
    int code;
    if (!cli_parse(&f, &syntax, argc, argv, &code))
        return code;
    if (f.operands[0] != NULL && strcmp(f.operands[0], "init") != 0)
        return cli_usage("controller: '%s' is not 'init'; without an operand the controller runs",
                         f.operands[0]);
    if (lab.lease_ns < DAEMON_LEASE_MIN_NS || lab.lease_ns > DAEMON_LEASE_MAX_NS)
        return cli_usage("--lease: from 1s to 10m");
    char *state = cli_state_dir(&f.place);
    char *dir = mem_printf("%s/lab", state);
    code = f.operands[0] != NULL ? make_lab(&f.place, state, dir) : run_controller(&lab, state, dir);
    free(dir);
    free(state);
    return code;
}

/* One question whose answer, if any, is printed. */
static int ask_and_print(const struct cli_flags *f, const struct client_ask *ask)
{
    struct client *client = NULL;
    struct buf text = {0};
    struct err_detail d = {0};
    enum err e = client_open(&f->place, &client, &d);
    if (e == ERR_OK)
        e = client_ask(client, ask, &text, &d);
    if (e == ERR_OK && text.len != 0)
        e = show_text(&text, &d);
    buf_fini(&text);
    client_close(&client);
    return e == ERR_OK ? CLI_EXIT_OK : cli_fail(e, &d);
}

int cli_token(int argc, char **argv)
{
    struct lab lab = {.expires_ns = TOKEN_DEFAULT_NS};
    struct cli_syntax syntax = {
        .options = token_options,
        .option_count = ARRAY_LEN(token_options),
        .operands_min = 1,
        .operands_max = 1,
        .operand = "whom it is for: agent or operator",
        .text = "\nIt works once, and carries the fingerprint of the lab's CA, so that whoever\n"
                "enrolls with it talks to this lab and to no other.\n",
        .take = take,
        .arg = &lab,
    };
    struct cli_flags f;
    int code;
    if (!cli_parse(&f, &syntax, argc, argv, &code))
        return code;
    if (strcmp(f.operands[0], "agent") != 0 && strcmp(f.operands[0], "operator") != 0)
        return cli_usage("token: '%s' is neither agent nor operator", f.operands[0]);
    if (lab.expires_ns == 0)
        return cli_usage("--expires: at least a moment, like 10m");
    return ask_and_print(
        &f, &(struct client_ask){.kind = MSG_ASK_TOKEN, .arg = f.operands[0], .number = lab.expires_ns});
}

/* Whoever revokes the certificate in use is refused the answer, which says that it worked. */
static int revoke_name(const struct cli_flags *f)
{
    struct client *client = NULL;
    struct buf text = {0};
    struct err_detail d = {0};
    const char *name = f->operands[0];
    enum err e = client_open(&f->place, &client, &d);
    bool own = e == ERR_OK && strcmp(client_name(client), name) == 0;
    if (e == ERR_OK)
        e = client_ask(client, &(struct client_ask){.kind = MSG_ASK_REVOKE, .arg = name}, &text, &d);
    if (own && e == ERR_DENIED)
        printf("%s is refused from now on; it was the certificate used here\n", name);
    else if (e == ERR_OK)
        printf("%s is refused from now on\n", name);
    buf_fini(&text);
    client_close(&client);
    return e == ERR_OK || (own && e == ERR_DENIED) ? CLI_EXIT_OK : cli_fail(e, &d);
}

int cli_revoke(int argc, char **argv)
{
    static const struct cli_syntax syntax = {.options = revoke_options,
                                             .option_count = ARRAY_LEN(revoke_options),
                                             .operands_min = 1,
                                             .operands_max = 1,
                                             .operand = "whose certificate is refused from now on",
                                             .text = ""};
    struct cli_flags f;
    int code;
    if (!cli_parse(&f, &syntax, argc, argv, &code))
        return code;
    return revoke_name(&f);
}

int cli_enroll(int argc, char **argv)
{
    const struct passwd *pw = getpwuid(geteuid());
    struct lab lab = {.name = pw != NULL ? pw->pw_name : "operator"};
    struct cli_syntax syntax = {
        .options = enroll_options,
        .option_count = ARRAY_LEN(enroll_options),
        .operands_min = 2,
        .operands_max = 2,
        .operand = "the controller's address and a token from 'splitbench token operator'",
        .text = "\nHosts enroll with 'splitbench-agent enroll'.\n",
        .take = take,
        .arg = &lab,
    };
    struct cli_flags f;
    struct err_detail d = {0};
    int code;
    if (!cli_parse(&f, &syntax, argc, argv, &code))
        return code;
    char *dir = cli_identity_dir(&f.place);
    char *address = NULL;
    enum err e = address_parse(f.operands[0], &address, &d);
    if (e == ERR_OK)
        e = file_make_dirs(dir, &d);
    if (e == ERR_OK)
        e = link_enroll(&(struct link_enroll_options){.address = address,
                                                      .token = f.operands[1],
                                                      .name = lab.name,
                                                      .role = MSG_ROLE_OPERATOR,
                                                      .dir = dir,
                                                      .timeout_ns = ENROLL_LIMIT_NS},
                        &d);
    if (e == ERR_OK)
        printf("%s is enrolled; certificate and key are in %s\nNext: splitbench hosts --controller %s%s%s\n",
               lab.name, dir, address, f.place.identity != NULL ? " --identity " : "",
               f.place.identity != NULL ? dir : "");
    free(address);
    free(dir);
    return e == ERR_OK ? CLI_EXIT_OK : cli_fail(e, &d);
}
