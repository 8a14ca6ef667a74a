#include "controller/experiment/experiment_keys.h"

#include "common/clock.h"
#include "common/mem.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BODY_BYTES_MAX  (1ull << 50)
#define CHECK_NS        (10 * NS_PER_S)
#define DURATION_NS_MIN (10 * NS_PER_MS)
#define DURATION_NS_MAX (24 * 3600 * NS_PER_S)

#define BODY_BYTES_ROW(about)                                                                                \
    {                                                                                                        \
        "body_bytes", about, .without = "any", AS_NUMBER(body_bytes, 0, BODY_BYTES_MAX),                     \
                             KEY_IF(has_body_bytes)                                                          \
    }

/* ---- matches: "text" or { "exact": "text" } or { "contains": "text" } --------------------------- */

static bool read_match(struct experiment_reader *r, const struct json_value *v, void *at)
{
    static const char *const keys[] = {"exact", "contains"};
    struct msg_match *out = at;
    const struct json_value *exact = json_member(v, "exact");
    const struct json_value *contains = json_member(v, "contains");
    const struct json_value *from = exact != NULL ? exact : contains != NULL ? contains : v;
    if (json_kind(v) == JSON_OBJECT) {
        reader_object(r, v, keys, ARRAY_LEN(keys));
        if ((exact != NULL) == (contains != NULL)) {
            reader_problem(r, v, "must have either exact or contains");
            return false;
        }
    } else if (reader_as_text(v) == NULL) {
        return reader_refuse(r, v, "a string, { \"contains\": \"...\" } or { \"exact\": \"...\" }");
    }
    const char *text = reader_get_text(r, from, READER_BODY_BYTES);
    if (text == NULL)
        return false;
    if (from == contains && text[0] == '\0')
        reader_problem(r, from, "is empty: every answer contains that");
    out->kind = from == contains ? MSG_MATCH_CONTAINS : MSG_MATCH_EXACT;
    out->text = (struct msg_bytes){.data = mem_dup(text, strlen(text)), .len = strlen(text)};
    return true;
}

static void lower_names(struct experiment_reader *r, const struct json_value *v, void *at)
{
    (void)r;
    (void)v;
    struct msg_match *m = *(struct msg_match **)at;
    for (size_t i = 0; i < json_count(v); i++)
        for (char *p = m[i].name; p != NULL && *p != '\0'; p++)
            *p = (char)tolower((unsigned char)*p);
}

static const struct key header_match = {.size = sizeof(struct msg_match),
                                        .kind = KEY_MATCH,
                                        .read = read_match,
                                        .key_at = offsetof(struct msg_match, name)};

/* ---- checks ------------------------------------------------------------------------------------ */

static void finish_check(struct experiment_reader *r, const struct json_value *v, void *object)
{
    (void)r;
    (void)v;
    ((struct msg_check *)object)->timeout_ns = CHECK_NS;
}

#define OF struct msg_check
static const struct key answer_rows[] = {
    {"status", "100 to 599", .initial = "200", AS_NUMBER(status, 100, 599)},
    {"body", "`\"text\"`, the same as `{ \"exact\": \"text\" }`, or `{ \"contains\": \"text\" }`",
     .without = "any", .kind = KEY_MATCH, .read = read_match, KEY_AT(body)},
    {"headers", "an object: header name (case does not matter) to such a match", .without = "any",
     AS_MAP(headers, header_count, LIMIT_HEADERS, header_match), .what = "headers",
     .example = "{ \"content-type\": { \"contains\": \"text\" } }", .pattern = KEY_HEADER_PATTERN,
     .check_key = reader_header_name, .after = lower_names},
    BODY_BYTES_ROW("exact size of the body"),
};
static const struct keys keys_answer = {KEYS(NULL, answer_rows)};

static const struct key check_rows[] = {
    {"name", "a name: what messages call it", "what messages call this check, like \"ping\"", AS_NAME(name)},
    {"request", "what is asked", "what is asked, like { \"path\": \"/\" }", AS_OBJECT(request, keys_request)},
    {"expect", "the right answer", AS_PART(keys_answer)},
};
#undef OF
const struct keys keys_check = {KEYS("checks", check_rows), .finish = finish_check};

/* ---- workloads --------------------------------------------------------------------------------- */

/* Elements that were refused are 0. */
static void check_sweep(struct experiment_reader *r, const struct json_value *v, void *at)
{
    const uint32_t *connections = *(uint32_t **)at;
    const struct json_value *c = json_first(v);
    for (size_t i = 0; c != NULL; i++, c = json_next(c)) {
        size_t j = 0;
        while (j < i && connections[j] != connections[i])
            j++;
        if (j < i && connections[i] != 0)
            reader_problem(r, c, "%u is there twice", connections[i]);
    }
}

static const struct key connection = {
    .size = sizeof(uint32_t), .kind = KEY_NUMBER, .min = 1, .max = LIMIT_CONNECTIONS};

static void finish_workload(struct experiment_reader *r, const struct json_value *v, void *object)
{
    const struct experiment_workload *w = object;
    for (size_t i = 0; i < w->connection_count; i++) {
        if (w->connections[i] >= w->threads || w->connections[i] == 0)
            continue;
        reader_problem(r, json_member(v, "threads"),
                       "is %u, but a thread needs a connection, and there are %u", w->threads,
                       w->connections[i]);
        return;
    }
}

#define OF struct experiment_workload
static const struct key length_rows[] = {BODY_BYTES_ROW("every response must have exactly this size")};
static const struct keys keys_length = {KEYS(NULL, length_rows)};

static const struct key workload_rows[] = {
    {"name", "a name: what tables and `--set` call it",
     "what tables and --set call this workload, like \"ping\"", AS_NAME(name)},
    {"request", "what is asked, again and again", "what is asked, like { \"path\": \"/\" }",
     AS_OBJECT(request, keys_request)},
    {"connections", "how many at once, up to 100,000; or a list, a sweep: one window for each",
     "how many at once, like 100, or a list to sweep, like [10, 100]", .kind = KEY_SWEEP,
     KEY_ARRAY(connections, connection_count), .element = &connection, .max = LIMIT_SWEEP,
     .what = "numbers of connections", .after = check_sweep},
    {"threads", "of the generator; not more than connections", .without = "chosen from connections and CPUs",
     AS_NUMBER(threads, 1, LIMIT_THREADS)},
    {"warmup", "load before the window, not measured", .initial = "\"0s\"",
     AS_TIME(warmup_ns, 0, DURATION_NS_MAX)},
    {"duration", "the window: 10 ms to 24 h", "how long a window is, like \"10s\"",
     AS_TIME(duration_ns, DURATION_NS_MIN, DURATION_NS_MAX)},
    {"timeout", "a response that takes longer is a failure", .initial = "\"10s\"",
     AS_TIME(timeout_ns, NS_PER_MS, DURATION_NS_MAX)},
    {"expect", "what every response must be", AS_PART(keys_length)},
};
#undef OF
const struct keys keys_workload = {KEYS("workloads", workload_rows), .finish = finish_workload};
