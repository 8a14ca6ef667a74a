#include "controller/experiment/experiment_reader.h"

#include "common/buf.h"
#include "common/mem.h"
#include "common/parse.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * "${name}" in a string stands for the variable of that name in `vars`; "$${" is a plain "${". A variable may
 * use those that stand before it. A string that is nothing but one variable takes its type, too.
 * "${server.address}" stays as it is until a host is chosen, and only where experiment_fill will find it.
 */

struct vars {
    struct experiment_reader *r;
    const struct json_value **items; /* done: what a string may use */
    size_t count;
    size_t left_bytes; /* what may still come out of substitution: small texts must not grow without end */
};

static const struct json_value *find_var(const struct vars *vars, const char *name, size_t len)
{
    for (size_t i = 0; i < vars->count; i++)
        if (strncmp(json_key(vars->items[i]), name, len) == 0 && json_key(vars->items[i])[len] == '\0')
            return vars->items[i];
    return NULL;
}

static void refuse_unknown(const struct vars *vars, const struct json_value *v, const char *name, size_t len)
{
    char word[64];
    char there[256];
    const char *keys[64];
    size_t n = 0;
    snprintf(word, sizeof word, "%.*s", len > 60 ? 60 : (int)len, name);
    for (; n < vars->count && n + 1 < ARRAY_LEN(keys); n++)
        keys[n] = json_key(vars->items[n]);
    keys[n] = "server.address"; /* not in vars, but could be meant */
    const char *close = parse_closest(word, keys, n + 1);
    reader_problem(vars->r, v, "unknown variable ${%s}; vars has: %s%s%s%s", word,
                   n > 0 ? reader_words(keys, n, there, sizeof there) : "nothing",
                   close != NULL ? "; did you mean ${" : "", close != NULL ? close : "",
                   close != NULL ? "}?" : "");
}

/* In a target's build, start and env, and in the headers of a request. */
static bool may_hold_address(const struct json_value *v)
{
    const struct json_value *chain[LIMIT_JSON_DEPTH] = {NULL}; /* the innermost first */
    size_t n = 0;
    for (; v != NULL && v->parent != NULL && n < ARRAY_LEN(chain); v = v->parent)
        chain[n++] = v;
    const char *top = n > 2 && json_key(chain[n - 1]) != NULL ? json_key(chain[n - 1]) : "";
    const char *part = n > 2 && json_key(chain[n - 3]) != NULL ? json_key(chain[n - 3]) : "";
    if (strcmp(top, "targets") == 0)
        return strcmp(part, "start") == 0 || strcmp(part, "build") == 0 || strcmp(part, "env") == 0;
    return (strcmp(top, "checks") == 0 || strcmp(top, "workloads") == 0) && strcmp(part, "request") == 0 &&
           n > 4 && strcmp(json_key(chain[n - 4]), "headers") == 0;
}

/* The value of the name at `name`, or NULL after reporting. */
static const char *value_of(const struct vars *vars, const struct json_value *v, const char *name, size_t len)
{
    if (len == strlen("server.address") && strncmp(name, "server.address", len) == 0) {
        if (may_hold_address(v))
            return READER_ADDRESS;
        reader_problem(vars->r, v,
                       "%s can stand in build, start and env of a target and in headers of a "
                       "request only",
                       READER_ADDRESS);
        return NULL;
    }
    const struct json_value *var = find_var(vars, name, len);
    if (var == NULL)
        refuse_unknown(vars, v, name, len);
    return var != NULL ? json_text(var) : NULL;
}

/* What was put together must not be taken for the built-in variable by whoever reads the resolved text. */
static bool check_address(const struct vars *vars, const struct json_value *v, const struct buf *out,
                          size_t addresses)
{
    for (const char *p = out->data; p != NULL && (p = strstr(p, READER_ADDRESS)) != NULL; p++) {
        if (addresses-- > 0 && (p == out->data || p[-1] != '$'))
            continue;
        reader_problem(vars->r, v, "%s cannot be had as plain characters", READER_ADDRESS);
        return false;
    }
    return true;
}

/* Replaces every use in `text`. False after reporting. */
static bool expand(struct vars *vars, const struct json_value *v, const char *text, struct buf *out)
{
    enum err e = ERR_OK;
    size_t addresses = 0;
    while (*text != '\0' && e == ERR_OK) {
        size_t plain = strcspn(text, "$");
        e = buf_append(out, text, plain);
        text += plain;
        if (e != ERR_OK || *text == '\0')
            break;
        if (strncmp(text, "$" READER_ADDRESS, strlen(READER_ADDRESS) + 1) == 0) {
            reader_problem(vars->r, v, "%s cannot be had as plain characters", READER_ADDRESS);
            return false;
        }
        if (strncmp(text, "$${", 3) == 0) {
            e = buf_append_text(out, "${");
            text += 3;
        } else if (text[1] == '{') {
            const char *name = text + 2;
            size_t len = strcspn(name, "}");
            if (name[len] == '\0') {
                reader_problem(vars->r, v, "'${' without '}'; write $${ for the characters themselves");
                return false;
            }
            const char *value = value_of(vars, v, name, len);
            if (value == NULL)
                return false;
            addresses += strcmp(value, READER_ADDRESS) == 0;
            e = buf_append_text(out, value);
            text = name + len + 1;
        } else {
            e = buf_append(out, text++, 1);
        }
    }
    if (e != ERR_OK)
        reader_problem(vars->r, v, "all texts with variables have over %u bytes when these are filled in",
                       LIMIT_EXPERIMENT_BYTES);
    return e == ERR_OK && check_address(vars, v, out, addresses);
}

/* The variable that is the whole of `text`, or NULL. */
static const struct json_value *sole_var(const struct vars *vars, const char *text)
{
    size_t len = strlen(text);
    if (len < 4 || strncmp(text, "${", 2) != 0 || strcspn(text, "}") != len - 1)
        return NULL;
    return find_var(vars, text + 2, len - 3);
}

static void substitute_string(struct vars *vars, struct json_value *v)
{
    if (strchr(json_text(v), '$') == NULL)
        return;
    const struct json_value *sole = sole_var(vars, json_text(v));
    struct buf out;
    buf_init(&out, vars->left_bytes);
    if (expand(vars, v, json_text(v), &out)) {
        vars->left_bytes -= out.len;
        v->loose = sole != NULL && json_kind(sole) != JSON_STRING;
        json_set(v, v->loose ? json_kind(sole) : JSON_STRING, out.data != NULL ? out.data : "");
    } else {
        v->refused = true;
    }
    buf_fini(&out);
}

static void substitute(struct vars *vars, struct json_value *v)
{
    if (json_kind(v) == JSON_STRING)
        substitute_string(vars, v);
    for (struct json_value *c = json_first(v); c != NULL; c = json_next(c))
        substitute(vars, c);
}

static bool is_var_name(const char *name)
{
    size_t len = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
    return len > 0 && len <= 60 && name[len] == '\0' && !isdigit((unsigned char)name[0]);
}

static void read_vars(struct vars *vars, struct json_value *object)
{
    struct experiment_reader *r = vars->r;
    if (json_kind(object) != JSON_OBJECT) {
        reader_refuse(r, object, "an object of variables, like { \"port\": 3000 }");
        return;
    }
    if (json_count(object) > LIMIT_VARS) {
        reader_problem(r, object, "has %zu variables, at most %u are allowed", json_count(object),
                       LIMIT_VARS);
        return;
    }
    vars->items = mem_zalloc(json_count(object), sizeof(struct json_value *));
    for (struct json_value *v = json_first(object); v != NULL; v = json_next(v)) {
        if (!is_var_name(json_key(v)))
            reader_problem_key(r, v,
                               "variables are named with letters, digits and _, not starting with a "
                               "digit, at most 60");
        else if (json_text(v) == NULL)
            reader_refuse(r, v, "a string, a number, true or false");
        else {
            if (json_kind(v) == JSON_STRING)
                substitute_string(vars, v);
            vars->items[vars->count++] = v;
        }
    }
}

void experiment_substitute(struct experiment_reader *r, struct json_value *root)
{
    struct vars vars = {.r = r, .left_bytes = LIMIT_EXPERIMENT_BYTES};
    struct json_value *object = json_member(root, "vars");
    if (object != NULL)
        read_vars(&vars, object);
    for (struct json_value *v = json_first(root); v != NULL; v = json_next(v))
        if (v != object)
            substitute(&vars, v);
    free(vars.items);
}

char *experiment_fill(const char *text, const char *server_address)
{
    struct buf out;
    buf_init(&out, LIMIT_RESOLVED_BYTES);
    enum err e = ERR_OK;
    for (const char *p = text; e == ERR_OK;) {
        const char *at = strstr(p, READER_ADDRESS);
        e = buf_append(&out, p, at != NULL ? (size_t)(at - p) : strlen(p));
        if (at == NULL || e != ERR_OK)
            break;
        e = buf_append_text(&out, server_address);
        p = at + strlen(READER_ADDRESS);
    }
    must(e == ERR_OK); /* texts and addresses were capped when they were read */
    return buf_take(&out);
}

void experiment_fill_strings(const struct msg_strings *in, const char *server_address,
                             struct msg_strings *out)
{
    *out = (struct msg_strings){.items = mem_zalloc(in->count, sizeof *out->items), .count = in->count};
    for (size_t i = 0; i < in->count; i++)
        out->items[i] = experiment_fill(in->items[i], server_address);
}

void experiment_fill_env(const struct experiment_env *in, const char *server_address, struct msg_strings *out)
{
    *out = (struct msg_strings){.items = mem_zalloc(in->count, sizeof *out->items), .count = in->count};
    for (size_t i = 0; i < in->count; i++) {
        char *value = experiment_fill(in->items[i].value, server_address);
        out->items[i] = mem_printf("%s=%s", in->items[i].key, value);
        free(value);
    }
}
