/*
 * status, hosts: what there is, as tables or JSON.
 */
#include "controller/cli/listing.h"
#include "controller/cli/show.h"

#include "common/json.h"
#include "common/mem.h"
#include "controller/view/status.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The text of a string or number member, "" when there is none. */
static const char *text_of(const struct json_value *object, const char *key)
{
    const struct json_value *v = json_member(object, key);
    return v != NULL && json_kind(v) != JSON_NULL && json_text(v) != NULL ? json_text(v) : "";
}

/* Why a job ended so, or what it waits for: of many jobs the first line, of one all that is known. */
static void add_cause(struct listing *t, const char *cause, bool whole)
{
    cause += strspn(cause, "\n");
    char *text = mem_strndup(cause, whole ? strlen(cause) : strcspn(cause, "\n"));
    listing_note(t, text);
    free(text);
}

static void print_jobs(const struct json_value *jobs)
{
    static const char *const header[] = {"JOB", "STATE", "WINDOWS", "PLACEMENT", "NAME"};
    static const bool right[ARRAY_LEN(header)] = {[2] = true};
    struct listing t;
    listing_init(&t, ARRAY_LEN(header), right);
    for (size_t i = 0; i < ARRAY_LEN(header); i++)
        listing_add(&t, header[i]);
    for (const struct json_value *j = json_first(jobs); j != NULL; j = json_next(j)) {
        char windows[64];
        bool run = strcmp(text_of(j, "mode"), "verify") != 0;
        snprintf(windows, sizeof windows, "%s/%s", text_of(j, "windows_done"), text_of(j, "windows_total"));
        listing_add(&t, text_of(j, "id"));
        listing_add(&t, text_of(j, "state"));
        listing_add(&t, run ? windows : "verify");
        listing_add(&t, text_of(j, "placement"));
        listing_add(&t, text_of(j, "name"));
        add_cause(&t, text_of(j, "cause"), json_count(jobs) == 1);
    }
    if (t.count == t.columns)
        puts("no jobs yet");
    else
        listing_print(&t);
    listing_fini(&t);
}

/* "job J; pool=sut rack=3; AMD EPYC 7543": what is too long for columns. */
static void add_machine(struct listing *t, const struct json_value *host)
{
    struct buf text;
    const struct json_value *labels = json_member(host, "labels");
    const char *job = text_of(host, "job");
    const char *cpu = text_of(host, "cpu_model");
    buf_init(&text, LIMIT_TEXT_BYTES);
    enum err e = job[0] != '\0' ? buf_printf(&text, "job %s", job) : ERR_OK;
    for (const struct json_value *l = json_first(labels); l != NULL; l = json_next(l)) {
        const char *gap = l != json_first(labels) ? " " : text.len != 0 ? "; " : "";
        if (e == ERR_OK)
            e = buf_printf(&text, "%s%s=%s", gap, json_key(l), json_text(l) != NULL ? json_text(l) : "");
    }
    if (e == ERR_OK && cpu[0] != '\0')
        e = buf_printf(&text, "%s%s", text.len != 0 ? "; " : "", cpu);
    if (e == ERR_OK || text.len != 0) /* of too much, what came first */
        listing_note(t, text.len != 0 ? text.data : "");
    buf_fini(&text);
}

static void print_hosts(const struct json_value *hosts)
{
    static const char *const header[] = {"HOST", "STATE", "CPUS", "MEMORY", "ADDRESS"};
    static const bool right[ARRAY_LEN(header)] = {[2] = true, [3] = true};
    struct listing t;
    listing_init(&t, ARRAY_LEN(header), right);
    for (size_t i = 0; i < ARRAY_LEN(header); i++)
        listing_add(&t, header[i]);
    for (const struct json_value *h = json_first(hosts); h != NULL; h = json_next(h)) {
        char memory[32];
        snprintf(memory, sizeof memory, "%.1f GiB",
                 strtod(text_of(h, "memory_bytes"), NULL) / (1024.0 * 1024.0 * 1024.0));
        listing_add(&t, text_of(h, "name"));
        listing_add(&t, json_is_true(json_member(h, "connected"))
                            ? (text_of(h, "job")[0] != '\0' ? "working" : "free")
                            : "gone");
        listing_add(&t, text_of(h, "cpus"));
        listing_add(&t, memory);
        listing_add(&t, text_of(h, "address"));
        add_machine(&t, h);
    }
    if (t.count == t.columns)
        puts("no hosts yet: 'splitbench token agent' makes a token, 'splitbench-agent enroll' uses it");
    else
        listing_print(&t);
    listing_fini(&t);
}

static enum err read_local_status(const struct cli_flags *f, struct buf *out, struct err_detail *d)
{
    struct store *store = NULL;
    const struct msg_strings none = {0};
    char *id = NULL;
    enum err e = show_open_store(&f->place, &store, d);
    buf_init(out, LIMIT_ANSWER_BYTES);
    if (e == ERR_OK)
        e = show_find_local(store, f->operands[0], &id, d);
    if (e == ERR_OK)
        e = status_write_json(store, id, &none, out, d);
    store_close(store);
    free(id);
    return e;
}

static enum err show(const struct cli_flags *f, enum msg_ask_kind kind, const char *array,
                     void (*print)(const struct json_value *), struct err_detail *d)
{
    struct json_value *tree = NULL;
    struct buf text = {0};
    const struct client_ask ask = {.kind = kind, .job = f->operands[0]};
    enum err e = f->local ? read_local_status(f, &text, d) : client_ask_once(&f->place, &ask, &text, d);
    if (e == ERR_OK && f->json)
        e = show_text(&text, d);
    else if (e == ERR_OK && (e = json_parse(text.data, text.len, NULL, &tree, d)) == ERR_OK)
        print(json_member(tree, array));
    json_free(tree);
    buf_fini(&text);
    return e;
}

static enum err run_status(const struct cli_flags *f, int *exit_code, struct err_detail *d)
{
    (void)exit_code;
    return show(f, MSG_ASK_STATUS, "jobs", print_jobs, d);
}

static const struct args_option status_options[] = {CLI_PLACE_ROWS,
                                                    {CLI_LOCAL("a run of this machine (run --local)")},
                                                    {CLI_JSON("JSON instead of a table")},
                                                    {ARGS_HELP_ROW}};
const struct cli_command cli_status = {
    .operands = "[JOB]",
    .summary = "jobs and how they stand",
    .table = {CLI_TABLE("status", status_options, 0, 1, NULL)},
    .run = run_status,
};

static enum err run_hosts(const struct cli_flags *f, int *exit_code, struct err_detail *d)
{
    (void)exit_code;
    return show(f, MSG_ASK_HOSTS, "hosts", print_hosts, d);
}

static const struct args_option hosts_options[] = {
    CLI_PLACE_ROWS, {CLI_JSON("JSON instead of a table")}, {ARGS_HELP_ROW}};
const struct cli_command cli_hosts = {
    .operands = "",
    .summary = "the agents and what they are",
    .table = {CLI_TABLE("hosts", hosts_options, 0, 0, NULL)},
    .run = run_hosts,
};
