#include "controller/experiment/experiment_reader.h"

#include "common/clock.h"
#include "common/mem.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BODY_BYTES_MAX  (1ull << 50)
#define TIMEOUT_NS      (10 * NS_PER_S)
#define DURATION_NS_MIN (10 * NS_PER_MS)
#define DURATION_NS_MAX (24 * 3600 * NS_PER_S)

/* ---- checks ------------------------------------------------------------------------------------ */

/* "text" or { "exact": "text" } or { "contains": "text" }. */
static void read_match(struct experiment_reader *r, const struct json_value *v, struct msg_match *out)
{
    static const char *const keys[] = {"exact", "contains"};
    const char *text = NULL;
    const struct json_value *from = v;
    out->kind = MSG_MATCH_EXACT;
    if (json_kind(v) == JSON_OBJECT) {
        reader_object(r, v, keys, ARRAY_LEN(keys));
        const struct json_value *exact = json_member(v, "exact");
        const struct json_value *contains = json_member(v, "contains");
        if ((exact != NULL) == (contains != NULL)) {
            reader_problem(r, v, "must have either exact or contains");
            return;
        }
        from = exact != NULL ? exact : contains;
        out->kind = exact != NULL ? MSG_MATCH_EXACT : MSG_MATCH_CONTAINS;
    } else if (json_kind(v) != JSON_STRING && !v->loose) {
        reader_refuse(r, v, "a string, { \"contains\": \"...\" } or { \"exact\": \"...\" }");
        return;
    }
    if (!reader_get_text(r, from, READER_BODY_BYTES, &text))
        return;
    if (out->kind == MSG_MATCH_CONTAINS && text[0] == '\0')
        reader_problem(r, from, "is empty: every answer contains that");
    out->text = (struct msg_bytes){.data = mem_dup(text, strlen(text)), .len = strlen(text)};
}

static void read_expected_headers(struct experiment_reader *r, const struct json_value *v,
                                  struct msg_check *out)
{
    if (json_kind(v) != JSON_OBJECT) {
        reader_refuse(r, v, "an object of headers, like { \"content-type\": { \"contains\": \"text\" } }");
        return;
    }
    if (json_count(v) > LIMIT_HEADERS) {
        reader_problem(r, v, "has %zu headers, at most %u are allowed", json_count(v), LIMIT_HEADERS);
        return;
    }
    out->headers = mem_zalloc(json_count(v), sizeof *out->headers);
    for (const struct json_value *m = json_first(v); m != NULL; m = json_next(m)) {
        struct msg_match *match = &out->headers[out->header_count++];
        match->name = mem_strdup(json_key(m));
        if (json_key(m)[0] == '\0' || strpbrk(json_key(m), " :\t\r\n") != NULL)
            reader_problem_key(r, m, "is not a header name");
        for (char *p = match->name; *p != '\0'; p++)
            *p = (char)tolower((unsigned char)*p);
        read_match(r, m, match);
    }
}

static void read_check(struct experiment_reader *r, const struct json_value *v, struct msg_check *out)
{
    static const char *const keys[] = {"name", "request", "expect"};
    static const char *const expect_keys[] = {"status", "body", "headers", "body_bytes"};
    out->status = 200;
    out->timeout_ns = TIMEOUT_NS;
    if (!reader_object(r, v, keys, ARRAY_LEN(keys)))
        return;
    const struct json_value *request = json_member(v, "request");
    const struct json_value *expect = json_member(v, "expect");
    if (json_member(v, "name") == NULL)
        reader_missing(r, v, "name", "what messages call this check, like \"ping\"");
    reader_get_name(r, json_member(v, "name"), &out->name);
    if (request == NULL)
        reader_missing(r, v, "request", "what is asked, like { \"path\": \"/\" }");
    else
        experiment_read_request(r, request, &out->request);
    if (expect == NULL || !reader_object(r, expect, expect_keys, ARRAY_LEN(expect_keys)))
        return;
    reader_get_u32(r, json_member(expect, "status"), 100, 599, &out->status);
    const struct json_value *body = json_member(expect, "body");
    const struct json_value *headers = json_member(expect, "headers");
    const struct json_value *bytes = json_member(expect, "body_bytes");
    if (body != NULL)
        read_match(r, body, &out->body);
    if (headers != NULL)
        read_expected_headers(r, headers, out);
    out->has_body_bytes = bytes != NULL;
    reader_get_u64(r, bytes, 0, BODY_BYTES_MAX, &out->body_bytes);
}

void experiment_read_checks(struct experiment_reader *r, const struct json_value *v, struct experiment *e)
{
    if (v == NULL || !reader_list(r, v, LIMIT_CHECKS, "checks"))
        return;
    e->checks = mem_zalloc(json_count(v), sizeof *e->checks);
    e->check_count = json_count(v);
    for (const struct json_value *c = json_first(v); c != NULL; c = json_next(c))
        read_check(r, c, &e->checks[c->index].check);
    reader_unique_names(r, v);
}

/* ---- workloads --------------------------------------------------------------------------------- */

static bool is_there(const struct experiment_workload *w, uint32_t n)
{
    for (size_t i = 0; i < w->connection_count; i++)
        if (w->connections[i] == n)
            return true;
    return false;
}

static void read_connections(struct experiment_reader *r, const struct json_value *v,
                             struct experiment_workload *w)
{
    const struct json_value *one = v;
    bool list = json_kind(v) == JSON_ARRAY;
    if (list && !reader_list(r, v, LIMIT_SWEEP, "numbers of connections"))
        return;
    if (!list && json_kind(v) != JSON_NUMBER) {
        reader_refuse(r, v, "a number of connections or a list of them, like [10, 100]");
        return;
    }
    w->connections = mem_zalloc(list ? json_count(v) : 1, sizeof *w->connections);
    for (one = list ? json_first(v) : v; one != NULL; one = list ? json_next(one) : NULL) {
        uint32_t n = 0;
        if (!reader_get_u32(r, one, 1, LIMIT_CONNECTIONS, &n))
            continue;
        if (is_there(w, n))
            reader_problem(r, one, "%u is there twice", n);
        else
            w->connections[w->connection_count++] = n;
    }
}

static void read_threads(struct experiment_reader *r, const struct json_value *v,
                         struct experiment_workload *w)
{
    if (!reader_get_u32(r, v, 1, LIMIT_THREADS, &w->threads) || v == NULL)
        return;
    for (size_t i = 0; i < w->connection_count; i++) {
        if (w->connections[i] >= w->threads)
            continue;
        reader_problem(r, v, "is %u, but a thread needs a connection, and there are %u", w->threads,
                       w->connections[i]);
        return;
    }
}

static void read_times(struct experiment_reader *r, const struct json_value *v, struct experiment_workload *w)
{
    if (json_member(v, "duration") == NULL)
        reader_missing(r, v, "duration", "how long a window is, like \"10s\"");
    reader_get_duration(r, json_member(v, "warmup"), 0, DURATION_NS_MAX, &w->warmup_ns);
    reader_get_duration(r, json_member(v, "duration"), DURATION_NS_MIN, DURATION_NS_MAX, &w->duration_ns);
    reader_get_duration(r, json_member(v, "timeout"), NS_PER_MS, DURATION_NS_MAX, &w->timeout_ns);
}

static void read_workload(struct experiment_reader *r, const struct json_value *v,
                          struct experiment_workload *w)
{
    static const char *const keys[] = {"name",   "request",  "connections", "threads",
                                       "warmup", "duration", "timeout",     "expect"};
    static const char *const expect_keys[] = {"body_bytes"};
    w->timeout_ns = TIMEOUT_NS;
    if (!reader_object(r, v, keys, ARRAY_LEN(keys)))
        return;
    const struct json_value *request = json_member(v, "request");
    const struct json_value *connections = json_member(v, "connections");
    const struct json_value *expect = json_member(v, "expect");
    if (json_member(v, "name") == NULL)
        reader_missing(r, v, "name", "what tables and --set call this workload, like \"ping\"");
    reader_get_name(r, json_member(v, "name"), &w->name);
    if (request == NULL)
        reader_missing(r, v, "request", "what is asked, like { \"path\": \"/\" }");
    else
        experiment_read_request(r, request, &w->request);
    if (connections == NULL)
        reader_missing(r, v, "connections", "how many at once, like 100, or a list to sweep, like [10, 100]");
    else
        read_connections(r, connections, w);
    read_threads(r, json_member(v, "threads"), w);
    read_times(r, v, w);
    if (expect == NULL || !reader_object(r, expect, expect_keys, ARRAY_LEN(expect_keys)))
        return;
    w->has_body_bytes = json_member(expect, "body_bytes") != NULL;
    reader_get_u64(r, json_member(expect, "body_bytes"), 0, BODY_BYTES_MAX, &w->body_bytes);
}

void experiment_read_workloads(struct experiment_reader *r, const struct json_value *v, struct experiment *e)
{
    if (v == NULL) {
        reader_missing(r, r->root, "workloads", "a list of the loads to put on each target");
        return;
    }
    if (!reader_list(r, v, LIMIT_WORKLOADS, "workloads"))
        return;
    e->workloads = mem_zalloc(json_count(v), sizeof *e->workloads);
    e->workload_count = json_count(v);
    for (const struct json_value *w = json_first(v); w != NULL; w = json_next(w))
        read_workload(r, w, &e->workloads[w->index]);
    reader_unique_names(r, v);
}
