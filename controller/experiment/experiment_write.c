#include "controller/experiment/experiment_reader.h"

#include "common/base64.h"
#include "common/json_write.h"
#include "common/mem.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * The resolved experiment: every default written out, keys in one order, variables and files filled in. Read
 * again it gives the same experiment and the same text.
 */

#define WRITE_BYTES_MAX (64u * 1024u * 1024u) /* far over what may be kept: the reader says so */

/* "${" is a variable to the reader; the only one that may be left is a built-in. */
static void write_text(struct json_writer *w, const char *key, const char *text)
{
    struct buf b;
    buf_init(&b, WRITE_BYTES_MAX);
    enum err e = ERR_OK;
    for (const char *p = text; e == ERR_OK;) {
        const char *var = strstr(p, "${");
        e = buf_append(&b, p, var != NULL ? (size_t)(var - p) : strlen(p));
        if (var == NULL || e != ERR_OK)
            break;
        e = buf_append_text(&b, strncmp(var, "${server.address}", 17) == 0 ? "${" : "$${");
        p = var + 2;
    }
    json_write_string(w, key, e == ERR_OK && b.data != NULL ? b.data : "");
    buf_fini(&b);
}

static void write_duration(struct json_writer *w, const char *key, uint64_t ns)
{
    static const struct {
        const char *unit;
        uint64_t ns;
    } units[] = {{"s", 1000000000}, {"ms", 1000000}, {"us", 1000}, {"ns", 1}};
    char text[40];
    size_t i = 0;
    while (ns % units[i].ns != 0)
        i++;
    snprintf(text, sizeof text, "%" PRIu64 "%s", ns / units[i].ns, units[i].unit);
    json_write_string(w, key, text);
}

static void write_words(struct json_writer *w, const char *key, const struct msg_strings *s)
{
    json_write_array(w, key);
    for (size_t i = 0; i < s->count; i++)
        write_text(w, NULL, s->items[i]);
    json_write_close(w);
}

static void write_labels(struct json_writer *w, const struct experiment_label *labels, size_t count)
{
    if (count == 0)
        return;
    json_write_object(w, "labels");
    for (size_t i = 0; i < count; i++)
        write_text(w, labels[i].key, labels[i].value);
    json_write_close(w);
}

static void write_target(struct json_writer *w, const struct experiment_target *t)
{
    json_write_object(w, NULL);
    json_write_string(w, "name", t->name);
    write_labels(w, t->labels, t->label_count);
    if (t->dir[0] != '\0')
        write_text(w, "dir", t->dir);
    if (t->build_count > 0) {
        json_write_array(w, "build");
        for (size_t i = 0; i < t->build_count; i++)
            write_words(w, NULL, &t->build[i].argv);
        json_write_close(w);
    }
    write_words(w, "start", &t->start);
    if (t->env.count > 0) {
        json_write_object(w, "env");
        for (size_t i = 0; i < t->env.count; i++) {
            const char *equals = strchr(t->env.items[i], '=');
            char *key = mem_strndup(t->env.items[i], (size_t)(equals - t->env.items[i]));
            write_text(w, key, equals + 1);
            free(key);
        }
        json_write_close(w);
    }
    json_write_u64(w, "port", t->port);
    json_write_object(w, "ready");
    if (t->ready.kind == MSG_READY_HTTP) {
        write_text(w, "http", t->ready.path);
        json_write_u64(w, "port", t->ready.port);
    } else
        json_write_u64(w, "tcp", t->ready.port);
    write_duration(w, "timeout", t->ready.timeout_ns);
    json_write_close(w);
    write_duration(w, "stop_grace", t->stop_grace_ns);
    if (t->cpus != NULL)
        json_write_string(w, "cpus", t->cpus);
    json_write_close(w);
}

/* Can it stand in a JSON string as it is? */
static bool is_text(const struct msg_bytes *b)
{
    for (size_t i = 0; i < b->len; i++)
        if (b->data[i] >= 0x7f || (b->data[i] < 0x20 && strchr("\t\r\n", b->data[i]) == NULL) ||
            b->data[i] == 0)
            return false;
    return true;
}

static void write_body(struct json_writer *w, const struct msg_bytes *body)
{
    if (body->len == 0)
        return;
    if (is_text(body)) {
        char *text = mem_strndup((const char *)body->data, body->len);
        write_text(w, "body", text);
        free(text);
        return;
    }
    char *text = mem_alloc(BASE64_CHARS(body->len) + 1);
    json_write_text(w, "body_base64", text, base64_encode(body->data, body->len, text));
    free(text);
}

static void write_request(struct json_writer *w, const struct msg_request *q)
{
    json_write_object(w, "request");
    json_write_string(w, "method", q->method);
    write_text(w, "path", q->path);
    if (q->headers.count > 0) {
        json_write_object(w, "headers");
        for (size_t i = 0; i < q->headers.count; i++)
            write_text(w, q->headers.items[i].name, q->headers.items[i].value);
        json_write_close(w);
    }
    write_body(w, &q->body);
    json_write_close(w);
}

static void write_match(struct json_writer *w, const char *key, const struct msg_match *m)
{
    char *text = mem_strndup((const char *)m->text.data, m->text.len);
    json_write_object(w, key);
    write_text(w, m->kind == MSG_MATCH_EXACT ? "exact" : "contains", text);
    json_write_close(w);
    free(text);
}

static void write_check(struct json_writer *w, const struct msg_check *c)
{
    json_write_object(w, NULL);
    json_write_string(w, "name", c->name);
    write_request(w, &c->request);
    json_write_object(w, "expect");
    json_write_u64(w, "status", c->status);
    if (c->body.kind != MSG_MATCH_NONE)
        write_match(w, "body", &c->body);
    if (c->header_count > 0) {
        json_write_object(w, "headers");
        for (size_t i = 0; i < c->header_count; i++)
            write_match(w, c->headers[i].name, &c->headers[i]);
        json_write_close(w);
    }
    if (c->has_body_bytes)
        json_write_u64(w, "body_bytes", c->body_bytes);
    json_write_close(w);
    json_write_close(w);
}

static void write_workload(struct json_writer *w, const struct experiment_workload *l)
{
    json_write_object(w, NULL);
    json_write_string(w, "name", l->name);
    write_request(w, &l->request);
    json_write_array(w, "connections");
    for (size_t i = 0; i < l->connection_count; i++)
        json_write_u64(w, NULL, l->connections[i]);
    json_write_close(w);
    if (l->threads != 0)
        json_write_u64(w, "threads", l->threads);
    write_duration(w, "warmup", l->warmup_ns);
    write_duration(w, "duration", l->duration_ns);
    write_duration(w, "timeout", l->timeout_ns);
    if (l->has_body_bytes) {
        json_write_object(w, "expect");
        json_write_u64(w, "body_bytes", l->body_bytes);
        json_write_close(w);
    }
    json_write_close(w);
}

static void write_design(struct json_writer *w, const struct experiment_design *d)
{
    static const char *const fresh[] = {"round", "window", "job"};
    json_write_object(w, "design");
    json_write_u64(w, "rounds", d->rounds);
    json_write_string(w, "order", d->order == EXPERIMENT_ORDER_FIXED ? "fixed" : "latin-square");
    write_duration(w, "cooldown", d->cooldown_ns);
    write_duration(w, "gap", d->gap_ns);
    json_write_string(w, "fresh_process", fresh[d->fresh]);
    json_write_close(w);
}

static void write_gates(struct json_writer *w, const struct experiment_gates *g)
{
    json_write_object(w, "gates");
    json_write_u64(w, "errors", g->errors_max);
    if (g->has_foreign_cpu)
        json_write_double(w, "foreign_cpu", g->foreign_cpu_max);
    if (g->has_generator_cpu)
        json_write_double(w, "generator_cpu", g->generator_cpu_max);
    json_write_u64(w, "retries", g->retries);
    json_write_close(w);
}

char *experiment_write(const struct experiment *e)
{
    struct buf b;
    struct json_writer w;
    buf_init(&b, WRITE_BYTES_MAX);
    json_write_init(&w, &b, 2);
    json_write_object(&w, NULL);
    json_write_string(&w, "name", e->name);
    json_write_object(&w, "roles");
    for (size_t i = 0; i < e->role_count; i++) {
        json_write_object(&w, e->roles[i].name);
        write_labels(&w, e->roles[i].labels, e->roles[i].label_count);
        json_write_u64(&w, "count", e->roles[i].count);
        json_write_close(&w);
    }
    json_write_close(&w);
    if (e->files.count > 0)
        write_words(&w, "files", &e->files);
    json_write_array(&w, "targets");
    for (size_t i = 0; i < e->target_count; i++)
        write_target(&w, &e->targets[i]);
    json_write_close(&w);
    if (e->check_count > 0) {
        json_write_array(&w, "checks");
        for (size_t i = 0; i < e->check_count; i++)
            write_check(&w, &e->checks[i].check);
        json_write_close(&w);
    }
    json_write_array(&w, "workloads");
    for (size_t i = 0; i < e->workload_count; i++)
        write_workload(&w, &e->workloads[i]);
    json_write_close(&w);
    write_design(&w, &e->design);
    write_gates(&w, &e->gates);
    json_write_close(&w);
    enum err err = json_write_end(&w);
    if (err == ERR_OK)
        err = buf_append_text(&b, "\n");
    if (err != ERR_OK)
        buf_clear(&b);
    return buf_take(&b);
}
