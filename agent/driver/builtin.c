/*
 * splitbench-load, the built-in generator. docs/load.md has its flags, its events and its result.
 */
#include "agent/driver/driver.h"

#include "common/clock.h"
#include "common/hist.h"
#include "common/json.h"
#include "common/mem.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define PROGRAM_NAME  "splitbench-load"
#define RESULT_FORMAT "splitbench-load/1"

static const char *const version_arguments[] = {"--version", NULL};

/* From the end of a line on: further lines, each behind two blanks. */
static bool is_library_list(const char *p, const char *end)
{
    while (end - p > 2 && memcmp(p, "\n  ", 3) == 0) {
        p = memchr(p + 1, '\n', (size_t)(end - p) - 1);
        if (p == NULL)
            return true;
    }
    return end - p <= 1; /* the last line break */
}

/* The output's first line is "splitbench-load VERSION"; its libraries follow. */
static enum err prove(const char *output, size_t len, char **generator, struct err_detail *d)
{
    static const char before[] = PROGRAM_NAME " ";
    const char *end = memchr(output, '\n', len);
    size_t line = end != NULL ? (size_t)(end - output) : len;
    bool good = line > sizeof before - 1 && line < 100 && memcmp(output, before, sizeof before - 1) == 0 &&
                is_library_list(output + line, output + len);
    for (size_t i = sizeof before - 1; good && i < line; i++)
        good = output[i] > 0x20 && output[i] < 0x7f;
    if (!good)
        return err_set(d, ERR_INVALID,
                       "the generator's program is not " PROGRAM_NAME ": to --version it says \"%.*s\"",
                       (int)(line < 80 ? line : 80), output);
    *generator = mem_strndup(output, line);
    return ERR_OK;
}

static void add_duration(struct msg_strings *argv, const char *option, uint64_t ns)
{
    driver_add(argv, "%s", option);
    driver_add(argv, "%" PRIu64 ".%09" PRIu64 "s", ns / NS_PER_S, ns % NS_PER_S);
}

static void add_pair(struct msg_strings *argv, const char *option, const char *value)
{
    driver_add(argv, "%s", option);
    driver_add(argv, "%s", value);
}

static void add_load(struct msg_strings *argv, const struct driver_input *in, const char *body_path)
{
    const struct msg_load *load = in->load;
    /* The generator refuses more threads than connections: a sweep down to one connection is fine here. */
    uint32_t threads = load->threads < load->connections ? load->threads : load->connections;
    driver_add(argv, "%s", in->program);
    driver_add(argv, "-c");
    driver_add(argv, "%u", load->connections);
    driver_add(argv, "-t");
    driver_add(argv, "%u", threads > 0 ? threads : 1);
    add_duration(argv, "-d", load->duration_ns);
    add_duration(argv, "--warmup", load->warmup_ns);
    add_duration(argv, "--timeout", load->timeout_ns);
    if (msg_text(load->request.method)[0] != '\0')
        add_pair(argv, "-m", load->request.method);
    for (size_t i = 0; i < load->request.headers.count; i++) {
        const struct msg_header *h = &load->request.headers.items[i];
        driver_add(argv, "-H");
        driver_add(argv, "%s: %s", h->name, msg_text(h->value));
    }
    if (body_path != NULL) {
        driver_add(argv, "-b");
        driver_add(argv, "@%s", body_path);
    }
    if (msg_text(load->cpus)[0] != '\0')
        add_pair(argv, "--cpus", load->cpus);
    if (load->has_body_bytes) {
        driver_add(argv, "--expect-length");
        driver_add(argv, "%" PRIu64, load->body_bytes);
    }
    add_pair(argv, "-o", "json");
    driver_add(argv, "--events");
}

static enum err build(const struct driver_input *in, struct msg_strings *argv, struct err_detail *d)
{
    const struct msg_load *load = in->load;
    const char *method = msg_text(load->request.method);
    if (load->connections == 0 || load->connections > LIMIT_CONNECTIONS)
        return err_set(d, ERR_INVALID, "%u connections: 1 to %u are possible", load->connections,
                       LIMIT_CONNECTIONS);
    if (load->duration_ns == 0 || load->timeout_ns == 0)
        return err_set(d, ERR_INVALID, "a load needs a duration and a time-out");
    if (strspn(method, "ABCDEFGHIJKLMNOPQRSTUVWXYZ-_") != strlen(method))
        return err_set(d, ERR_INVALID, "request method \"%.40s\": upper-case letters, '-' and '_' only",
                       method);
    char *url = NULL;
    char *body_path = NULL;
    enum err e = driver_url(load, &url, d);
    if (e == ERR_OK)
        e = driver_check_headers(&load->request.headers, d);
    if (e == ERR_OK && load->request.body.len > 0)
        e = driver_write_body(in, &body_path, d);
    if (e == ERR_OK) {
        add_load(argv, in, body_path);
        driver_add(argv, "%s", url);
    }
    free(url);
    free(body_path);
    return e;
}

/* ---- events --------------------------------------------------------------------------------------- */

static bool read_event(const char *line, struct msg_progress *out)
{
    static const struct {
        const char *name;
        enum msg_progress_kind kind;
    } events[] = {{"warmup_start", MSG_PROGRESS_WARMUP_START},
                  {"window_start", MSG_PROGRESS_WINDOW_START},
                  {"progress", MSG_PROGRESS_TICK},
                  {"window_end", MSG_PROGRESS_WINDOW_END}};
    struct json_value *root = NULL;
    const char *name = NULL;
    bool known = false;
    *out = (struct msg_progress){0};
    if (line[0] != '{' || json_parse(line, strlen(line), NULL, &root, NULL) != ERR_OK)
        return false;
    bool good = json_get_string(root, "event", &name, NULL) == ERR_OK &&
                json_get_u64(root, "t_ns", 0, LIMIT_CLOCK_NS, &out->at_ns, NULL) == ERR_OK;
    for (size_t i = 0; good && i < ARRAY_LEN(events); i++) {
        if (strcmp(name, events[i].name) == 0) {
            out->kind = events[i].kind;
            known = true;
        }
    }
    if (known && out->kind == MSG_PROGRESS_TICK)
        known = json_get_u64(root, "ok", 0, LIMIT_COUNT, &out->ok, NULL) == ERR_OK &&
                json_get_u64(root, "failed", 0, LIMIT_COUNT, &out->failed, NULL) == ERR_OK;
    json_free(root);
    return known;
}

/* ---- result ---------------------------------------------------------------------------------------- */

/* 0: fine; 1: no request succeeded; 3: nothing could connect. The output is whole in each case. */
static bool has_result(int32_t status)
{
    return status == 0 || status == 1 || status == 3;
}

static enum err get_count(const struct json_value *object, const char *key, uint64_t *out,
                          struct err_detail *d)
{
    return json_get_u64(object, key, 0, LIMIT_COUNT, out, d);
}

static enum err parse_accounts(const struct json_value *root, const char *key, struct msg_accounts *out,
                               struct err_detail *d)
{
    const struct json_value *a = NULL;
    bool balanced = false;
    enum err e = json_get_child(root, key, JSON_OBJECT, &a, d);
#define X(name)                                                                                              \
    if (e == ERR_OK)                                                                                         \
        e = get_count(a, #name, &out->name, d);
    MSG_ACCOUNTS_LIST(X)
#undef X
    if (e == ERR_OK)
        e = json_get_bool(a, "balanced", &balanced, d);
    if (e != ERR_OK)
        return e;
    uint64_t sum = out->ok + out->failed + out->in_flight; /* each is at most LIMIT_COUNT */
    if (!balanced || sum > out->scheduled || out->scheduled - sum != out->never_sent)
        return err_set(d, ERR_INVALID,
                       "the accounts of the %s do not balance: scheduled %" PRIu64 ", ok %" PRIu64
                       ", failed %" PRIu64 ", in flight %" PRIu64 ", never sent %" PRIu64,
                       strcmp(key, "accounts") == 0 ? "window" : key, out->scheduled, out->ok, out->failed,
                       out->in_flight, out->never_sent);
    return ERR_OK;
}

/* The window never began: nothing could connect. The first class of failures before it says why. */
static enum err explain_no_window(const struct json_value *root, struct err_detail *d)
{
    const struct json_value *errors = NULL;
    const char *cause = NULL;
    const char *sample = NULL;
    uint64_t count = 0;
    enum err e = json_get_child(root, "warmup_errors", JSON_ARRAY, &errors, d);
    if (e == ERR_OK)
        e = json_get_string(json_first(errors), "cause", &cause, d);
    if (e == ERR_OK)
        e = json_get_string(json_first(errors), "sample", &sample, d);
    if (e == ERR_OK)
        e = get_count(json_first(errors), "count", &count, d);
    if (e != ERR_OK)
        return e;
    return err_set(d, ERR_UNREACHABLE, "no connection could be opened: %.40s, %" PRIu64 " times (%.200s)",
                   cause, count, sample);
}

static enum err parse_window(const struct json_value *root, const struct driver_span *span,
                             struct msg_loaded *out, struct err_detail *d)
{
    const struct json_value *w = NULL;
    bool interrupted = false;
    enum err e = json_get_child(root, "window", JSON_OBJECT, &w, d);
    if (e == ERR_OK)
        e = json_get_u64(w, "start_ns", 0, LIMIT_CLOCK_NS, &out->window_start_ns, d);
    if (e == ERR_OK)
        e = json_get_u64(w, "end_ns", 0, LIMIT_CLOCK_NS, &out->window_end_ns, d);
    if (e == ERR_OK)
        e = json_get_bool(root, "interrupted", &interrupted, d);
    if (e != ERR_OK)
        return e;
    if (interrupted)
        return err_set(d, ERR_CANCELLED,
                       "the generator was interrupted by a signal: its window is too short");
    if (out->window_end_ns == out->window_start_ns)
        return explain_no_window(root, d);
    if (out->window_start_ns < span->started_at_ns || out->window_end_ns < out->window_start_ns ||
        out->window_end_ns > span->ended_at_ns)
        return err_set(d, ERR_INVALID, "the window does not lie within the time the generator ran");
    return ERR_OK;
}

/* One that the generator does not know is null; a generator older than the figure does not have it. */
static enum err parse_figure(const struct json_value *root, const struct figure_row *row, struct figure *out,
                             struct err_detail *d)
{
    const struct json_value *in = row->group[0] != '\0' ? json_member(root, row->group) : root;
    const struct json_value *told = json_member(in, row->key);
    uint64_t value = 0;
    if (row->since > 1 && (told == NULL || json_kind(told) == JSON_NULL))
        return ERR_OK;
    enum err e = row->group[0] != '\0' ? json_get_child(root, row->group, JSON_OBJECT, &in, d) : ERR_OK;
    if (e == ERR_OK)
        e = get_count(in, row->key, &value, d);
    if (e == ERR_OK)
        *out = figure_known(value);
    return e;
}

static enum err parse_figures(const struct json_value *root, struct msg_loaded *out, struct err_detail *d)
{
    enum err e = ERR_OK;
    for (int i = 0; i < FIGURE_LOAD_COUNT && e == ERR_OK; i++)
        if (figure_load_rows[i].group != NULL)
            e = parse_figure(root, &figure_load_rows[i], &out->figures[i], d);
    return e;
}

static enum err parse_statuses(const struct json_value *root, struct msg_loaded *out, struct err_detail *d)
{
    const struct json_value *status = NULL;
    enum err e = json_get_child(root, "status", JSON_OBJECT, &status, d);
    if (e != ERR_OK)
        return e;
    if (json_count(status) > MSG_STATUSES_MAX)
        return err_set(d, ERR_TOO_BIG, "%zu different statuses: at most %u", json_count(status),
                       MSG_STATUSES_MAX);
    out->statuses = mem_zalloc(json_count(status), sizeof *out->statuses);
    for (const struct json_value *v = json_first(status); v != NULL && e == ERR_OK; v = json_next(v)) {
        struct msg_status_count *s = &out->statuses[out->status_count];
        bool code = strspn(json_key(v), "0123456789") == 3 && json_key(v)[3] == '\0' &&
                    json_key(v)[0] >= '1' && json_key(v)[0] <= '9';
        if (!code)
            return err_set(d, ERR_INVALID, "status: \"%.40s\" is not an HTTP status", json_key(v));
        s->status = (uint32_t)strtoul(json_key(v), NULL, 10);
        e = json_to_u64(v, 0, LIMIT_COUNT, &s->count, d);
        out->status_count++;
    }
    return e;
}

static enum err parse_error(const struct json_value *v, struct msg_error_class *out, struct err_detail *d)
{
    const char *phase = NULL;
    const char *cause = NULL;
    const char *sample = NULL;
    enum err e = json_get_string(v, "phase", &phase, d);
    if (e == ERR_OK)
        e = json_get_string(v, "cause", &cause, d);
    if (e == ERR_OK)
        e = get_count(v, "count", &out->count, d);
    if (e == ERR_OK)
        e = json_get_string(v, "sample", &sample, d);
    if (e != ERR_OK)
        return e;
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz_";
    if (strspn(phase, letters) != strlen(phase) || strspn(cause, letters) != strlen(cause) ||
        strlen(phase) > 32 || strlen(cause) > 32)
        return err_set(d, ERR_INVALID, "errors: \"%.40s\" \"%.40s\" is no class of errors", phase, cause);
    out->phase = mem_strdup(phase);
    out->cause = mem_strdup(cause);
    out->sample = driver_cut_text(sample, strlen(sample), LIMIT_TEXT_BYTES);
    return ERR_OK;
}

static enum err parse_errors(const struct json_value *root, struct msg_loaded *out, struct err_detail *d)
{
    const struct json_value *errors = NULL;
    enum err e = json_get_child(root, "errors", JSON_ARRAY, &errors, d);
    if (e != ERR_OK)
        return e;
    if (json_count(errors) > MSG_ERRORS_MAX)
        return err_set(d, ERR_TOO_BIG, "%zu classes of errors: at most %u", json_count(errors),
                       MSG_ERRORS_MAX);
    out->errors = mem_zalloc(json_count(errors), sizeof *out->errors);
    for (const struct json_value *v = json_first(errors); v != NULL && e == ERR_OK; v = json_next(v))
        e = parse_error(v, &out->errors[out->error_count++], d);
    return e;
}

/* Kept as the text it is; decoded once here, so that nobody downstream meets a broken one. */
static enum err parse_hist(const struct json_value *root, struct msg_loaded *out, struct err_detail *d)
{
    const char *text = NULL;
    enum err e = json_get_string(root, "latency_hist", &text, d);
    if (e != ERR_OK)
        return e;
    size_t len = strlen(text);
    if (len > MSG_HIST_BYTES_MAX)
        return err_set(d, ERR_TOO_BIG, "latency_hist: %zu bytes, at most %u", len, MSG_HIST_BYTES_MAX);
    struct hist *h = hist_new();
    e = hist_decode(h, text, len, d);
    if (e == ERR_OK && h->count != out->window.ok)
        e = err_set(d, ERR_INVALID, "latency_hist holds %" PRIu64 " requests, but %" PRIu64 " were ok",
                    h->count, out->window.ok);
    else if (e != ERR_OK)
        err_prefix(d, e, "latency_hist");
    hist_free(h);
    if (e == ERR_OK)
        out->latency_hist = (struct msg_bytes){(uint8_t *)mem_strdup(text), len};
    return e;
}

static enum err parse_tree(const struct json_value *root, const struct driver_span *span,
                           struct msg_loaded *out, struct err_detail *d)
{
    const char *format = NULL;
    const char *version = NULL;
    struct msg_accounts drain = {0};
    enum err e = json_get_string(root, "format", &format, d);
    if (e == ERR_OK && strcmp(format, RESULT_FORMAT) != 0)
        e = err_set(d, ERR_UNSUPPORTED, "its format is \"%.60s\", this agent reads \"" RESULT_FORMAT "\"",
                    format);
    if (e == ERR_OK)
        e = json_get_string(root, "version", &version, d);
    if (e == ERR_OK)
        e = parse_window(root, span, out, d);
    if (e == ERR_OK)
        e = parse_accounts(root, "accounts", &out->window, d);
    if (e == ERR_OK)
        e = parse_accounts(root, "warmup", &out->warmup, d);
    if (e == ERR_OK)
        e = parse_accounts(root, "drain", &drain, d);
    out->figures[FIGURE_UNANSWERED] = figure_known(drain.failed + drain.in_flight);
    if (e == ERR_OK)
        e = parse_figures(root, out, d);
    if (e == ERR_OK)
        e = parse_statuses(root, out, d);
    if (e == ERR_OK)
        e = parse_errors(root, out, d);
    if (e == ERR_OK)
        e = parse_hist(root, out, d);
    if (e == ERR_OK)
        out->generator = mem_printf(PROGRAM_NAME " %.60s", version);
    return e;
}

static enum err parse(const char *output, size_t len, const struct driver_span *span, struct msg_loaded *out,
                      struct err_detail *d)
{
    struct json_value *root = NULL;
    enum err e = json_parse(output, len, NULL, &root, d);
    if (e == ERR_OK && json_kind(root) != JSON_OBJECT)
        e = err_set(d, ERR_INVALID, "it is %s, not an object", json_kind_text(json_kind(root)));
    if (e == ERR_OK)
        e = parse_tree(root, span, out, d);
    if (e == ERR_OK)
        out->raw = driver_cut_text(output, len, MSG_RAW_BYTES_MAX); /* strict JSON: UTF-8 without NUL */
    json_free(root);
    if (e != ERR_OK)
        return err_prefix(d, e, PROGRAM_NAME);
    return ERR_OK;
}

const struct driver driver_builtin = {
    .name = "builtin",
    .version_arguments = version_arguments,
    .prove = prove,
    .build = build,
    .read_event = read_event,
    .has_result = has_result,
    .parse = parse,
};
