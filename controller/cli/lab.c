/*
 * controller, enroll, revoke: making a lab, getting into it, and putting somebody out.
 */
#include "controller/cli/show.h"

#include "common/address.h"
#include "common/clock.h"
#include "common/file.h"
#include "common/log.h"
#include "common/mem.h"
#include "controller/daemon/daemon.h"
#include "proto/link/link.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ENROLL_LIMIT_NS (20 * NS_PER_S)

static enum err make_lab(const struct place *place, const char *state, const char *dir, struct err_detail *d)
{
    enum err e = file_make_dirs(state, d);
    if (e == ERR_OK)
        e = identity_create_lab(dir, d);
    if (e == ERR_OK)
        printf("The lab's certificates are in %s; keep ca.key.pem there and nowhere else.\n"
               "Next: splitbench controller%s%s --listen tls+tcp://0.0.0.0:" ADDRESS_PORT "\n",
               dir, place->state != NULL ? " --state " : "", place->state != NULL ? place->state : "");
    return e;
}

static enum err run_daemon(const struct cli_flags *f, const char *state, const char *identity_dir,
                           struct err_detail *d)
{
    char *ipc = mem_printf("ipc://%s/controller.sock", state);
    const char *addresses[CLI_LISTEN_MAX + 1];
    size_t count = f->listen.count;
    bool over_tls = false;
    bool over_ipc = false;
    for (size_t i = 0; i < count; i++) {
        addresses[i] = f->listen.items[i];
        over_tls = over_tls || strncmp(addresses[i], "tls+tcp://", 10) == 0;
        over_ipc = over_ipc || strncmp(addresses[i], "ipc://", 6) == 0;
    }
    if (!over_ipc)
        addresses[count++] = ipc;
    if (f->verbose)
        log_set_level(LOG_DEBUG);
    enum err e = file_make_dirs(state, d);
    if (e == ERR_OK)
        e = daemon_run(&(struct daemon_options){.state_dir = state,
                                                .addresses = addresses,
                                                .address_count = count,
                                                .identity_dir = over_tls ? identity_dir : NULL,
                                                .leash = f->leash,
                                                .lease_ns = f->lease_ns},
                       d);
    free(ipc);
    return e;
}

static enum err run_controller(const struct cli_flags *f, int *exit_code, struct err_detail *d)
{
    (void)exit_code;
    bool init = strcmp(f->operands[0], "init") == 0;
    if (!init && f->operands[0][0] != '\0')
        return err_set(d, ERR_INVALID,
                       "controller: '%s' is not 'init'; without an operand the controller runs",
                       f->operands[0]);
    char *state = place_state_dir(&f->place);
    char *dir = mem_printf("%s/lab", state);
    enum err e = init ? make_lab(&f->place, state, dir, d) : run_daemon(f, state, dir, d);
    free(dir);
    free(state);
    return e;
}

static const struct args_option controller_options[] = {
    {CLI_STATE("results, files and the lab's certificates (default: see splitbench help)")},
    {"", "listen", "ADDRESS",
     "listen here too, like tls+tcp://0.0.0.0:7411; may be repeated (ipc://STATE/controller.sock is always "
     "there)",
     ARGS_TEXTS, CLI_AT(listen), .max = CLI_LISTEN_MAX},
    {"", "lease", "DURATION", "how long a silent host keeps its job", ARGS_TIME, CLI_AT(lease_ns),
     .min = DAEMON_LEASE_MIN_NS, .max = DAEMON_LEASE_MAX_NS, .otherwise = "10s"},
    {"", "leash", NULL, "end when standard input ends", ARGS_SWITCH, CLI_AT(leash)},
    {"", "verbose", NULL, "log more", ARGS_SWITCH, CLI_AT(verbose)},
    {ARGS_HELP_ROW},
};
const struct cli_command cli_controller = {
    .operands = "[init]",
    .summary = "start the controller; init: make a lab's CA",
    .text = "\n'splitbench controller init' makes the lab's own CA and the controller's\n"
            "certificate, once. Without an operand the controller runs until told to stop.\n",
    .table = {CLI_TABLE("controller", controller_options, 0, 1, NULL)},
    .run = run_controller,
};

/* A controller of an earlier release says nothing, and refuses the answer to whoever revokes the certificate
 * in use. */
static enum err run_revoke(const struct cli_flags *f, int *exit_code, struct err_detail *d)
{
    (void)exit_code;
    struct client *client = NULL;
    struct buf text = {0};
    const char *name = f->operands[0];
    enum err e = client_open(&f->place, &client, d);
    bool own = e == ERR_OK && strcmp(client_name(client), name) == 0;
    if (e == ERR_OK)
        e = client_ask(client, &(struct client_ask){.kind = MSG_ASK_REVOKE, .arg = name}, &text, d);
    own = own && e == ERR_DENIED;
    if (e == ERR_OK && text.len != 0)
        e = show_text(&text, d);
    else if (own || e == ERR_OK)
        printf("%s is refused from now on%s\n", name, own ? "; it was the certificate used here" : "");
    buf_fini(&text);
    client_close(&client);
    return own ? ERR_OK : e;
}

static const struct args_option revoke_options[] = {CLI_PLACE_ROWS, {ARGS_HELP_ROW}};
const struct cli_command cli_revoke = {
    .operands = "NAME",
    .summary = "refuse a certificate from now on",
    .table = {CLI_TABLE("revoke", revoke_options, 1, 1, "whose certificate is refused from now on")},
    .run = run_revoke,
};

static enum err run_enroll(const struct cli_flags *f, int *exit_code, struct err_detail *d)
{
    (void)exit_code;
    const char *name = f->name != NULL ? f->name : client_login_name();
    char *dir = place_identity_dir(&f->place);
    char *address = NULL;
    enum err e = address_parse(f->operands[0], &address, d);
    if (e == ERR_OK)
        e = file_make_dirs(dir, d);
    if (e == ERR_OK)
        e = link_enroll(&(struct link_enroll_options){.address = address,
                                                      .token = f->operands[1],
                                                      .name = name,
                                                      .role = MSG_ROLE_OPERATOR,
                                                      .dir = dir,
                                                      .timeout_ns = ENROLL_LIMIT_NS},
                        d);
    if (e == ERR_OK)
        printf("%s is enrolled; certificate and key are in %s\nNext: splitbench hosts --controller %s%s%s\n",
               name, dir, address, f->place.identity != NULL ? " --identity " : "",
               f->place.identity != NULL ? dir : "");
    free(address);
    free(dir);
    return e;
}

static const struct args_option enroll_options[] = {
    {CLI_IDENTITY("where certificate and key go (default: see splitbench help)")},
    {"", "name", "NAME", "whose certificate it is (default: your login name)", ARGS_TEXT, CLI_AT(name)},
    {ARGS_HELP_ROW},
};
const struct cli_command cli_enroll = {
    .operands = "ADDRESS TOKEN",
    .summary = "get an operator's certificate with a token",
    .text = "\nHosts enroll with 'splitbench-agent enroll'.\n",
    .table = {CLI_TABLE("enroll", enroll_options, 2, 2,
                        "the controller's address and a token from 'splitbench token operator'")},
    .run = run_enroll,
};
