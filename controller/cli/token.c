/*
 * token: letting people and hosts in, and seeing who may still come.
 */
#include "controller/cli/listing.h"
#include "controller/cli/show.h"

#include "common/json.h"

#include <stdio.h>
#include <string.h>

static const char *text_of(const struct json_value *token, const char *key)
{
    const struct json_value *v = json_member(token, key);
    return v != NULL && json_kind(v) == JSON_STRING ? json_text(v) : "";
}

static void print_tokens(const struct json_value *tokens)
{
    static const char *const keys[] = {"role", "state", "made_by", "expires", "used_by"};
    static const char *const header[ARRAY_LEN(keys)] = {"FOR", "STATE", "MADE BY", "EXPIRES", "USED BY"};
    static const bool right[ARRAY_LEN(keys)] = {false};
    struct listing t;
    listing_init(&t, ARRAY_LEN(keys), right);
    for (size_t i = 0; i < ARRAY_LEN(keys); i++)
        listing_add(&t, header[i]);
    for (const struct json_value *j = json_first(tokens); j != NULL; j = json_next(j))
        for (size_t i = 0; i < ARRAY_LEN(keys); i++)
            listing_add(&t, text_of(j, keys[i]));
    if (json_count(tokens) == 0)
        puts("no tokens yet: 'splitbench token agent' or 'token operator' makes one");
    else
        listing_print(&t);
    listing_fini(&t);
}

static enum err list(const struct cli_flags *f, struct err_detail *d)
{
    struct json_value *tree = NULL;
    struct buf text = {0};
    const struct client_ask ask = {.kind = MSG_ASK_TOKEN, .arg = MSG_TOKEN_LIST};
    enum err e = client_ask_once(&f->place, &ask, &text, d);
    if (e == ERR_OK && f->json)
        e = show_text(&text, d);
    else if (e == ERR_OK && (e = json_parse(text.data, text.len, NULL, &tree, d)) == ERR_OK)
        print_tokens(json_member(tree, "tokens"));
    json_free(tree);
    buf_fini(&text);
    return e;
}

static enum err make(const struct cli_flags *f, const char *whom, struct err_detail *d)
{
    struct buf text = {0};
    const struct client_ask ask = {.kind = MSG_ASK_TOKEN, .arg = whom, .number = f->expires_ns};
    enum err e = client_ask_once(&f->place, &ask, &text, d);
    if (e == ERR_OK)
        e = show_text(&text, d);
    buf_fini(&text);
    return e;
}

static enum err run_token(const struct cli_flags *f, int *exit_code, struct err_detail *d)
{
    (void)exit_code;
    const char *whom = f->operands[0];
    if (f->list && whom[0] != '\0')
        return err_set(d, ERR_INVALID, "token: --list lists the tokens of all: it takes no '%s'", whom);
    if (f->list)
        return list(f, d);
    if (f->json)
        return err_set(d, ERR_INVALID, "token: --json goes with --list");
    if (strcmp(whom, "agent") != 0 && strcmp(whom, "operator") != 0)
        return err_set(d, ERR_INVALID, "token: '%s' is neither agent nor operator", whom);
    return make(f, whom, d);
}

static const struct args_option token_options[] = {
    CLI_PLACE_ROWS,
    {"", "expires", "DURATION", "how long it can be used", ARGS_TIME, CLI_AT(expires_ns), .min = 1,
     .otherwise = "1h"},
    {"", "list", NULL, "make none: list those there are, who made and who used them", ARGS_SWITCH,
     CLI_AT(list)},
    {CLI_JSON("of --list: as JSON")},
    {ARGS_HELP_ROW},
};
const struct cli_command cli_token = {
    .operands = "[agent|operator]",
    .summary = "a one-time token to enroll with",
    .text = "\nIt works once, and carries the fingerprint of the lab's CA, so that whoever\n"
            "enrolls with it talks to this lab and to no other. It is taken back when\n"
            "whoever made it is revoked.\n",
    .table = {CLI_TABLE("token", token_options, 0, 1, NULL)},
    .run = run_token,
};
