/*
 * status, hosts: what there is, as tables or JSON.
 */
#include "controller/cli/show.h"

#include "common/json.h"
#include "common/mem.h"
#include "controller/status.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define JSON_OPTION                                                                                          \
    {                                                                                                        \
        CLI_OPT_JSON, "json", NULL, "JSON instead of a table"                                                \
    }

static const struct args_option status_options[] = {CLI_PLACE_OPTIONS, CLI_LOCAL_OPTION, JSON_OPTION,
                                                    CLI_HELP_OPTION};
static const struct args_option hosts_options[] = {CLI_PLACE_OPTIONS, JSON_OPTION, CLI_HELP_OPTION};

/* The text of a string or number member, "" when there is none. */
static const char *text_of(const struct json_value *object, const char *key)
{
    const struct json_value *v = json_member(object, key);
    return v != NULL && v->kind != JSON_NULL && v->text != NULL ? v->text : "";
}

static void print_jobs(const struct json_value *jobs)
{
    static const char *const header[] = {"JOB",     "NAME",      "MODE",    "STATE",
                                         "WINDOWS", "PLACEMENT", "STARTED", "CAUSE"};
    static const bool right[ARRAY_LEN(header)] = {[4] = true};
    struct cli_table t;
    cli_table_init(&t, ARRAY_LEN(header), right);
    for (size_t i = 0; i < ARRAY_LEN(header); i++)
        cli_table_add(&t, header[i]);
    for (const struct json_value *j = jobs != NULL ? jobs->child : NULL; j != NULL; j = j->next) {
        char windows[64];
        bool run = strcmp(text_of(j, "mode"), "verify") != 0;
        snprintf(windows, sizeof windows, "%s/%s", text_of(j, "windows_done"), text_of(j, "windows_total"));
        cli_table_add(&t, text_of(j, "id"));
        cli_table_add(&t, text_of(j, "name"));
        cli_table_add(&t, text_of(j, "mode"));
        cli_table_add(&t, text_of(j, "state"));
        cli_table_add(&t, run ? windows : "-");
        cli_table_add(&t, text_of(j, "placement"));
        cli_table_add(&t, text_of(j, "started"));
        cli_table_add(&t, text_of(j, "cause"));
    }
    if (t.count == t.columns)
        puts("no jobs yet");
    else
        cli_table_print(&t);
    cli_table_fini(&t);
}

static void add_labels(struct cli_table *t, const struct json_value *labels)
{
    struct buf text;
    buf_init(&text, LIMIT_TEXT_BYTES);
    for (const struct json_value *l = labels != NULL ? labels->child : NULL; l != NULL; l = l->next)
        if (buf_printf(&text, "%s%s=%s", text.len != 0 ? " " : "", l->key, l->text != NULL ? l->text : "") !=
            ERR_OK)
            break; /* more labels than a table cell holds */
    cli_table_add(t, text.data != NULL ? text.data : "");
    buf_fini(&text);
}

static void print_hosts(const struct json_value *hosts)
{
    static const char *const header[] = {"HOST",   "STATE",   "JOB",    "CPUS",
                                         "MEMORY", "ADDRESS", "LABELS", "CPU"};
    static const bool right[ARRAY_LEN(header)] = {[3] = true, [4] = true};
    struct cli_table t;
    cli_table_init(&t, ARRAY_LEN(header), right);
    for (size_t i = 0; i < ARRAY_LEN(header); i++)
        cli_table_add(&t, header[i]);
    for (const struct json_value *h = hosts != NULL ? hosts->child : NULL; h != NULL; h = h->next) {
        const struct json_value *connected = json_member(h, "connected");
        char memory[32];
        snprintf(memory, sizeof memory, "%.1f GiB",
                 strtod(text_of(h, "memory_bytes"), NULL) / (1024.0 * 1024.0 * 1024.0));
        cli_table_add(&t, text_of(h, "name"));
        cli_table_add(&t, connected != NULL && connected->boolean
                              ? (text_of(h, "job")[0] != '\0' ? "working" : "free")
                              : "gone");
        cli_table_add(&t, text_of(h, "job"));
        cli_table_add(&t, text_of(h, "cpus"));
        cli_table_add(&t, memory);
        cli_table_add(&t, text_of(h, "address"));
        add_labels(&t, json_member(h, "labels"));
        cli_table_add(&t, text_of(h, "cpu_model"));
    }
    if (t.count == t.columns)
        puts("no hosts yet: 'splitbench token agent' makes a token, 'splitbench-agent enroll' uses it");
    else
        cli_table_print(&t);
    cli_table_fini(&t);
}

static enum err read_local_status(const struct cli_flags *f, const char *job, struct buf *out,
                                  struct err_detail *d)
{
    struct store *store = NULL;
    const struct msg_strings none = {0};
    enum err e = show_open_store(&f->place, &store, d);
    buf_init(out, LIMIT_EXPERIMENT_BYTES);
    if (e == ERR_OK)
        e = show_local_error(status_write_json(store, job, &none, out, d), job, d);
    store_close(store);
    return e;
}

static int show(const struct cli_flags *f, enum msg_ask_kind kind, const char *array,
                void (*print)(const struct json_value *))
{
    struct client *client = NULL;
    struct json_value *tree = NULL;
    struct buf text = {0};
    struct err_detail d = {0};
    const char *job = f->operands[0] != NULL ? f->operands[0] : "";
    enum err e = ERR_OK;
    if (f->place.local)
        e = read_local_status(f, job, &text, &d);
    else if ((e = client_open(&f->place, &client, &d)) == ERR_OK)
        e = client_ask(client, &(struct client_ask){.kind = kind, .job = job}, &text, &d);
    if (e == ERR_OK && f->json)
        e = show_text(&text, &d);
    else if (e == ERR_OK && (e = json_parse(text.data, text.len, NULL, &tree, &d)) == ERR_OK)
        print(json_member(tree, array));
    json_free(tree);
    buf_fini(&text);
    client_close(&client);
    return e == ERR_OK ? CLI_EXIT_OK : cli_fail(e, &d);
}

int cli_status(int argc, char **argv)
{
    static const struct cli_syntax syntax = {
        .options = status_options, .option_count = ARRAY_LEN(status_options), .operands_max = 1, .text = ""};
    struct cli_flags f;
    int code;
    return cli_parse(&f, &syntax, argc, argv, &code) ? show(&f, MSG_ASK_STATUS, "jobs", print_jobs) : code;
}

int cli_hosts(int argc, char **argv)
{
    static const struct cli_syntax syntax = {
        .options = hosts_options, .option_count = ARRAY_LEN(hosts_options), .text = ""};
    struct cli_flags f;
    int code;
    return cli_parse(&f, &syntax, argc, argv, &code) ? show(&f, MSG_ASK_HOSTS, "hosts", print_hosts) : code;
}
