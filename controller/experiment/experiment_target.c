#include "controller/experiment/experiment_reader.h"

#include "common/clock.h"
#include "common/mem.h"
#include "common/parse.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define READY_TIMEOUT_NS (10 * NS_PER_S)
#define STOP_GRACE_NS    (5 * NS_PER_S)
#define WAIT_NS_MAX      (3600 * NS_PER_S)

/* ---- roles ------------------------------------------------------------------------------------- */

static void read_role(struct experiment_reader *r, const struct json_value *v, struct experiment_role *role)
{
    static const char *const keys[] = {"labels", "count"};
    if (!reader_object(r, v, keys, ARRAY_LEN(keys)))
        return;
    reader_get_labels(r, json_member(v, "labels"), &role->labels, &role->label_count);
    uint32_t max = strcmp(role->name, "load") == 0 ? LIMIT_HOSTS_PER_ROLE : 1;
    const struct json_value *count = json_member(v, "count");
    uint64_t n = 0;
    if (max == 1 && count != NULL && json_to_u64(count, 2, UINT32_MAX, &n, NULL) == ERR_OK)
        reader_problem(r, count, "is %s: a target runs on one server host; only load may have more",
                       json_text(count));
    else
        reader_get_u32(r, count, 1, max, &role->count);
}

void experiment_read_roles(struct experiment_reader *r, const struct json_value *v, struct experiment *e)
{
    static const char *const names[] = {"server", "load"}; /* in this order: experiment_design.c looks */
    e->role_count = ARRAY_LEN(names);
    e->roles = mem_zalloc(e->role_count, sizeof *e->roles);
    for (size_t i = 0; i < e->role_count; i++)
        e->roles[i] = (struct experiment_role){.name = mem_strdup(names[i]), .count = 1};
    if (v == NULL || !reader_object(r, v, names, ARRAY_LEN(names)))
        return;
    for (size_t i = 0; i < e->role_count; i++) {
        const struct json_value *role = json_member(v, names[i]);
        if (role != NULL)
            read_role(r, role, &e->roles[i]);
    }
}

/* ---- targets ----------------------------------------------------------------------------------- */

/* Relative directories start at the experiment file, here and in the workspace on another host. */
static void read_dir(struct experiment_reader *r, const struct json_value *v, struct experiment_target *t)
{
    if (!reader_get_string(r, v, LIMIT_PATH_BYTES - 1, &t->dir))
        return;
    if (t->dir == NULL)
        t->dir = mem_strdup("");
    bool absolute = t->dir[0] == '/';
    enum experiment_use use = r->options->use;
    if (v == NULL || r->base_dir == NULL || (absolute && use != EXPERIMENT_USE_LOCAL))
        return;
    char *path = absolute ? mem_strdup(t->dir) : mem_printf("%s/%s", r->base_dir, t->dir);
    struct stat st;
    if (stat(path, &st) != 0)
        reader_problem(r, v, "\"%s\" %s (looked for %s)", t->dir,
                       errno == ENOENT ? "does not exist" : strerror(errno), path);
    else if (!S_ISDIR(st.st_mode))
        reader_problem(r, v, "\"%s\" is not a directory", t->dir);
    free(path);
}

static void read_build(struct experiment_reader *r, const struct json_value *v, struct experiment_target *t)
{
    if (v == NULL)
        return;
    if (json_kind(v) == JSON_ARRAY && json_first(v) != NULL && json_kind(json_first(v)) == JSON_STRING) {
        reader_problem(r, v, "is one command, must be a list of commands, like [[\"make\", \"all\"]]");
        return;
    }
    if (!reader_list(r, v, LIMIT_ARGV_COUNT, "commands"))
        return;
    t->build = mem_zalloc(json_count(v), sizeof *t->build);
    for (const struct json_value *c = json_first(v); c != NULL; c = json_next(c))
        reader_get_argv(r, c, &t->build[t->build_count++].argv);
}

static void read_env(struct experiment_reader *r, const struct json_value *v, struct experiment_target *t)
{
    if (v == NULL)
        return;
    if (json_kind(v) != JSON_OBJECT) {
        reader_refuse(r, v, "an object of variables, like { \"PORT\": \"3000\" }");
        return;
    }
    if (json_count(v) > LIMIT_ENV_COUNT) {
        reader_problem(r, v, "has %zu variables, at most %u are allowed", json_count(v), LIMIT_ENV_COUNT);
        return;
    }
    t->env.items = mem_zalloc(json_count(v), sizeof *t->env.items);
    size_t bytes = 0;
    for (const struct json_value *m = json_first(v); m != NULL; m = json_next(m)) {
        const char *text = NULL;
        size_t good = strspn(json_key(m), "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
        if (good == 0 || json_key(m)[good] != '\0' || isdigit((unsigned char)json_key(m)[0])) {
            reader_problem_key(r, m, "environment variables are named with letters, digits and _");
            continue;
        }
        if (!reader_get_text(r, m, LIMIT_COMMAND_BYTES, &text))
            continue;
        bytes += good + strlen(text) + 2;
        t->env.items[t->env.count++] = mem_printf("%s=%s", json_key(m), text);
    }
    if (bytes > LIMIT_COMMAND_BYTES)
        reader_problem(r, v, "has %zu bytes in all, at most %u are allowed", bytes, LIMIT_COMMAND_BYTES);
}

static void read_ready(struct experiment_reader *r, const struct json_value *v, struct experiment_target *t)
{
    static const char *const keys[] = {"http", "tcp", "port", "timeout"};
    struct experiment_ready *ready = &t->ready;
    *ready = (struct experiment_ready){.kind = MSG_READY_TCP, .timeout_ns = READY_TIMEOUT_NS};
    if (v == NULL || !reader_object(r, v, keys, ARRAY_LEN(keys)))
        return;
    const struct json_value *http = json_member(v, "http");
    const struct json_value *tcp = json_member(v, "tcp");
    const struct json_value *port = json_member(v, "port");
    reader_get_duration(r, json_member(v, "timeout"), NS_PER_MS, WAIT_NS_MAX, &ready->timeout_ns);
    if (http != NULL && tcp != NULL)
        reader_problem(r, v,
                       "has both http and tcp, must have one: http waits for any answer, tcp for the port");
    else if (tcp != NULL && port != NULL)
        reader_problem_key(r, port, "belongs to http; tcp is a port itself");
    else if (http != NULL) {
        ready->kind = MSG_READY_HTTP;
        reader_get_port(r, port, &ready->port);
        if (reader_get_string(r, http, LIMIT_PATH_BYTES, &ready->path) && ready->path[0] != '/')
            reader_refuse(r, http, "a path that starts with /");
    } else {
        reader_get_port(r, tcp != NULL ? tcp : port, &ready->port);
    }
}

static void read_cpus(struct experiment_reader *r, const struct json_value *v, struct experiment_target *t)
{
    cpu_set_t set;
    if (reader_get_string(r, v, LIMIT_NAME_BYTES, &t->cpus) && t->cpus != NULL &&
        parse_cpus(t->cpus, &set, "", NULL) != ERR_OK)
        reader_refuse(r, v, "a list of CPUs, like \"0-3,8\"");
}

static void read_target(struct experiment_reader *r, const struct json_value *v, struct experiment_target *t)
{
    static const char *const keys[] = {"name", "labels", "dir",   "build", "start",
                                       "env",  "port",   "ready", "cpus",  "stop_grace"};
    t->stop_grace_ns = STOP_GRACE_NS;
    if (!reader_object(r, v, keys, ARRAY_LEN(keys)))
        return;
    const struct json_value *name = json_member(v, "name");
    const struct json_value *start = json_member(v, "start");
    const struct json_value *port = json_member(v, "port");
    if (name == NULL)
        reader_missing(r, v, "name", "what tables and --set call this target, like \"nginx\"");
    if (start == NULL)
        reader_missing(r, v, "start",
                       "the command that runs the server in the foreground, as a list of words");
    else
        reader_get_argv(r, start, &t->start);
    reader_get_name(r, name, &t->name);
    reader_get_labels(r, json_member(v, "labels"), &t->labels, &t->label_count);
    read_dir(r, json_member(v, "dir"), t);
    read_build(r, json_member(v, "build"), t);
    read_env(r, json_member(v, "env"), t);
    read_ready(r, json_member(v, "ready"), t);
    read_cpus(r, json_member(v, "cpus"), t);
    reader_get_duration(r, json_member(v, "stop_grace"), 0, WAIT_NS_MAX, &t->stop_grace_ns);
    bool bad = !reader_get_port(r, port, &t->port);
    if (port == NULL && t->ready.port != 0)
        t->port = t->ready.port;
    else if (port == NULL && !bad)
        reader_missing(r, v, "port", "the port the server listens on, like 3000 or \"${port}\"");
    if (t->ready.port == 0)
        t->ready.port = t->port;
}

void experiment_read_targets(struct experiment_reader *r, const struct json_value *v, struct experiment *e)
{
    if (v == NULL) {
        reader_missing(r, r->root, "targets", "a list of the servers to compare");
        return;
    }
    if (!reader_list(r, v, LIMIT_TARGETS, "targets"))
        return;
    e->targets = mem_zalloc(json_count(v), sizeof *e->targets);
    e->target_count = json_count(v);
    for (const struct json_value *t = json_first(v); t != NULL; t = json_next(t))
        read_target(r, t, &e->targets[t->index]);
    reader_unique_names(r, v);
}
