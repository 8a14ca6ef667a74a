#include "controller/experiment/experiment_keys.h"

#include "common/clock.h"
#include "common/mem.h"
#include "common/parse.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define WAIT_NS_MAX (3600 * NS_PER_S)

/* ---- labels ------------------------------------------------------------------------------------ */

/* "pool=sut", alone or first in a list, is how the agent's command line says it: shown as the object it
 * means. */
static bool refuse_pair(struct experiment_reader *r, const struct json_value *v)
{
    const struct json_value *word = json_kind(v) == JSON_ARRAY ? json_first(v) : v;
    const char *text = word != NULL && json_kind(word) == JSON_STRING ? json_text(word) : "";
    const char *equals = strchr(text, '=');
    if (equals == NULL || equals == text || strlen(text) > LIMIT_NAME_BYTES || strpbrk(text, "\"\\") != NULL)
        return true;
    return reader_refuse(r, v, "an object of labels: { \"%.*s\": \"%s\" }", (int)(equals - text), text,
                         equals + 1);
}

static bool check_label(struct experiment_reader *r, const struct json_value *member)
{
    const char *key = json_key(member);
    size_t good = strspn(key, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._/-");
    if (good > 0 && key[good] == '\0' && good <= LIMIT_NAME_BYTES)
        return true;
    reader_problem_key(r, member, "label keys are made of letters, digits and ._/-, at most %u of them",
                       LIMIT_NAME_BYTES);
    return false;
}

static const struct key label = {KEY_PAIR(experiment_label, key, value), .kind = KEY_TEXT,
                                 .max = LIMIT_NAME_BYTES};

#define AS_LABELS                                                                                            \
    AS_MAP(labels, label_count, MSG_LABELS_MAX, label),                                                      \
        .what = "labels", .example = "{ \"pool\": \"sut\" }", .pattern = "^[A-Za-z0-9._/-]{1,128}$",         \
        .before = refuse_pair, .check_key = check_label

/* ---- roles ------------------------------------------------------------------------------------- */

#define OF struct experiment_role
static const struct key role_rows[] = {
    {"labels", "labels that a host must have, all of them", .without = "any host", AS_LABELS},
    {"count", "how many hosts, up to 64 for `load`: they share the connections of a window", .initial = "1",
     AS_NUMBER(count, 1, LIMIT_HOSTS_PER_ROLE)},
};
#undef OF
static const struct keys keys_role = {KEYS(NULL, role_rows)};

static void finish_roles(struct experiment_reader *r, const struct json_value *v, void *object)
{
    const struct json_value *count = json_member(json_member(v, "server"), "count");
    if (experiment_role(object, "server")->count > 1)
        reader_problem(r, count, "is %s: a target runs on one server host; only load may have more",
                       json_text(count));
}

#define OF struct experiment
static const struct key roles_rows[] = {
    {"server", "the host that runs the server under test", AS_OBJECT(roles[0], keys_role)},
    {"load", "the hosts that make the load", AS_OBJECT(roles[1], keys_role)},
};
#undef OF
_Static_assert(ARRAY_LEN(roles_rows) <= EXPERIMENT_ROLES_MAX, "each role has its place");
const struct keys keys_roles = {KEYS("roles", roles_rows), .finish = finish_roles};

void experiment_name_roles(struct experiment *e)
{
    e->role_count = ARRAY_LEN(roles_rows);
    for (size_t i = 0; i < e->role_count; i++)
        e->roles[i].name = roles_rows[i].name;
}

const struct experiment_role *experiment_role(const struct experiment *e, const char *name)
{
    for (size_t i = 0; i < e->role_count; i++)
        if (strcmp(e->roles[i].name, name) == 0)
            return &e->roles[i];
    return NULL;
}

/* ---- commands ---------------------------------------------------------------------------------- */

static bool refuse_line(struct experiment_reader *r, const struct json_value *v)
{
    return json_kind(v) != JSON_STRING ||
           reader_refuse(r, v, "a list of words, like [\"nginx\", \"-c\", \"my.conf\"]; no shell splits it");
}

static bool refuse_one_command(struct experiment_reader *r, const struct json_value *v)
{
    const struct json_value *first = json_kind(v) == JSON_ARRAY ? json_first(v) : NULL;
    if (first == NULL || json_kind(first) != JSON_STRING)
        return true;
    reader_problem(r, v, "is one command, must be a list of commands, like [[\"make\", \"all\"]]");
    return false;
}

static void check_command(struct experiment_reader *r, const struct json_value *v, void *at)
{
    const struct msg_strings *words = at;
    size_t bytes = 0;
    for (size_t i = 0; i < words->count; i++)
        bytes += words->items[i] != NULL ? strlen(words->items[i]) + 1 : 0;
    if (words->items[0] != NULL && words->items[0][0] == '\0')
        reader_problem(r, json_first(v), "is empty: the first word is the program");
    if (bytes > LIMIT_COMMAND_BYTES)
        reader_problem(r, v, "has %zu bytes in all, at most %u are allowed", bytes, LIMIT_COMMAND_BYTES);
}

static const struct key command_word = {.size = sizeof(char *), .kind = KEY_RAW, .max = LIMIT_COMMAND_BYTES};

#define AS_COMMAND                                                                                           \
    .kind = KEY_LIST, .max = LIMIT_ARGV_COUNT, .element = &command_word, .what = "words of a command",       \
    .before = refuse_line, .after = check_command

static const struct key build_command = {.size = sizeof(struct msg_strings), AS_COMMAND};

static bool check_variable(struct experiment_reader *r, const struct json_value *member)
{
    const char *key = json_key(member);
    size_t good = strspn(key, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
    if (good > 0 && key[good] == '\0' && !isdigit((unsigned char)key[0]))
        return true;
    reader_problem_key(r, member, "environment variables are named with letters, digits and _");
    return false;
}

static void check_env(struct experiment_reader *r, const struct json_value *v, void *at)
{
    const struct experiment_env *env = at;
    size_t bytes = 0;
    for (size_t i = 0; i < env->count; i++)
        bytes += strlen(env->items[i].key) + strlen(env->items[i].value) + 2;
    if (bytes > LIMIT_COMMAND_BYTES)
        reader_problem(r, v, "has %zu bytes in all, at most %u are allowed", bytes, LIMIT_COMMAND_BYTES);
}

static const struct key variable = {KEY_PAIR(experiment_variable, key, value), .kind = KEY_RAW,
                                    .max = LIMIT_COMMAND_BYTES};

/* ---- targets ----------------------------------------------------------------------------------- */

/* Relative directories start at the experiment file, here and in the workspace on another host. */
static void check_dir(struct experiment_reader *r, const struct json_value *v, void *at)
{
    const char *dir = *(char **)at;
    bool absolute = dir[0] == '/';
    if (r->base_dir == NULL || (absolute && r->options->use != EXPERIMENT_USE_LOCAL))
        return;
    char *path = absolute ? mem_strdup(dir) : mem_printf("%s/%s", r->base_dir, dir);
    struct stat st;
    if (stat(path, &st) != 0)
        reader_problem(r, v, "\"%s\" %s (looked for %s)", dir,
                       errno == ENOENT ? "does not exist" : strerror(errno), path);
    else if (!S_ISDIR(st.st_mode))
        reader_problem(r, v, "\"%s\" is not a directory", dir);
    free(path);
}

static void check_http(struct experiment_reader *r, const struct json_value *v, void *at)
{
    if ((*(char **)at)[0] != '/')
        reader_refuse(r, v, "a path that starts with /");
}

static void check_cpus(struct experiment_reader *r, const struct json_value *v, void *at)
{
    cpu_set_t set;
    if (parse_cpus(*(char **)at, &set, "", NULL) != ERR_OK)
        reader_refuse(r, v, "a list of CPUs, like \"0-3,8\"");
}

static bool is_http(const void *ready)
{
    return ((const struct experiment_ready *)ready)->path != NULL;
}

static bool is_tcp(const void *ready)
{
    return !is_http(ready);
}

#define OF struct experiment_ready
static const struct key ready_rows[] = {
    {"http", "a path; it serves when any HTTP answer comes", .without = "the port is asked",
     AS_TEXT(path, LIMIT_PATH_BYTES), .pattern = "^(/|.*\\$\\{)", .after = check_http},
    {"tcp", "a port; it serves when this accepts connections", .without = "the target's `port`",
     AS_PORT(port), .when = is_tcp},
    {"port", "where `http` is asked", .without = "the target's `port`", AS_PORT(port), .when = is_http},
    {"timeout", "how long it may take to serve, 1 ms to 1 h", .initial = "\"10s\"",
     AS_TIME(timeout_ns, NS_PER_MS, WAIT_NS_MAX)},
};
#undef OF
static const struct keys_apart ready_apart[] = {
    {"http", "tcp", "http waits for any answer, tcp for the port"},
    {"tcp", "port", "port belongs to http; tcp is a port itself"},
};
static const struct keys keys_ready = {KEYS(NULL, ready_rows), .apart = ready_apart,
                                       .apart_count = ARRAY_LEN(ready_apart)};

/* Where it serves may be known from `ready`, and the other way round. */
static void finish_target(struct experiment_reader *r, const struct json_value *v, void *object)
{
    struct experiment_target *t = object;
    t->ready.kind = t->ready.path != NULL ? MSG_READY_HTTP : MSG_READY_TCP;
    if (json_member(v, "port") == NULL && t->ready.port != 0)
        t->port = t->ready.port;
    else if (json_member(v, "port") == NULL)
        reader_missing(r, v, "port", "the port the server listens on, like 3000 or \"${port}\"");
    if (t->ready.port == 0)
        t->ready.port = t->port;
}

#define OF struct experiment_target
static const struct key target_rows[] = {
    {"name", "a name: what tables and `--set` call it",
     "what tables and --set call this target, like \"nginx\"", AS_NAME(name)},
    {"labels",
     "an object of strings that describe it in reports, like `{ \"runtime\": \"bun\", \"version\": \"1.2\" "
     "}`",
     .without = "none", AS_LABELS},
    {"dir",
     "where `build` and `start` run: absolute, or relative to the experiment file (on another host: to the "
     "workspace)",
     .without = "the file's directory, or the workspace", AS_TEXT(dir, LIMIT_PATH_BYTES - 1),
     .after = check_dir},
    {"build", "a list of commands, run once before anything is measured", .without = "none",
     AS_LIST(build, build_count, LIMIT_ARGV_COUNT, build_command), .what = "commands",
     .before = refuse_one_command},
    {"start", "the command that runs the server in the foreground, as a list of words; no shell",
     "the command that runs the server in the foreground, as a list of words", KEY_AT(start), AS_COMMAND},
    {"env", "variables added to the environment of `build` and `start`; strings", .without = "none",
     AS_MAP(env.items, env.count, LIMIT_ENV_COUNT, variable), .what = "variables",
     .example = "{ \"PORT\": \"3000\" }", .pattern = "^[A-Za-z_][A-Za-z0-9_]*$", .check_key = check_variable,
     .after = check_env},
    {"port", "where it listens; must be known from here or from `ready`", .without = "from `ready`",
     AS_PORT(port)},
    {"ready", "how we know that it serves", AS_OBJECT(ready, keys_ready)},
    {"stop_grace", "time between SIGTERM and SIGKILL, up to 1 h", .initial = "\"5s\"",
     AS_TIME(stop_grace_ns, 0, WAIT_NS_MAX)},
    {"cpus", "CPUs it may use, like `\"0-3,8\"`", .without = "chosen by the placement",
     AS_TEXT(cpus, LIMIT_NAME_BYTES), .pattern = "^([0-9]+(-[0-9]+)?(,[0-9]+(-[0-9]+)?)*|.*\\$\\{.*)$",
     .after = check_cpus},
};
#undef OF
const struct keys keys_target = {KEYS("targets", target_rows), .finish = finish_target};
