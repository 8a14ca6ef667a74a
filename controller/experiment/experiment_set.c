#include "controller/experiment/experiment_reader.h"

#include "common/mem.h"
#include "common/parse.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * --set PATH=VALUE changes the tree as if the file had said so. A path is keys and list positions:
 * design.rounds, targets[0].port, workloads[name=ping].duration, targets[0].env["A.B"]. Members that are not
 * there are made, so that an unknown key is refused by the same check as in the file; list elements must
 * exist.
 */

#define SET_WORD_BYTES 256u
#define SET_STEPS_MAX  16u /* nothing in an experiment lies deeper */

enum err experiment_split_set(char *text, struct experiment_set *out, struct err_detail *d)
{
    bool bracket = false;
    for (char *p = text; *p != '\0'; p++) {
        bracket = *p == '[' || (bracket && *p != ']');
        if (*p != '=' || bracket)
            continue;
        if (p == text)
            break;
        *p = '\0';
        *out = (struct experiment_set){.path = text, .value = p + 1};
        return ERR_OK;
    }
    return err_set(d, ERR_INVALID, "--set %.200s: write PATH=VALUE, like design.rounds=3", text);
}

enum step_kind { STEP_KEY, STEP_INDEX, STEP_MATCH };

struct step {
    enum step_kind kind;
    char key[SET_WORD_BYTES];   /* STEP_KEY, STEP_MATCH */
    char value[SET_WORD_BYTES]; /* STEP_MATCH */
    size_t index;               /* STEP_INDEX */
};

struct setter {
    struct experiment_reader *r;
    const struct experiment_set *set;
    uint32_t number; /* of the option, from 1: the column of what it brings */
};

static bool fail(const struct setter *s, const char *fmt, ...) PRINTF_LIKE(2, 3);

static bool fail(const struct setter *s, const char *fmt, ...)
{
    char text[1024];
    va_list ap;
    int n = snprintf(text, sizeof text, "--set %.90s=%.50s: ", s->set->path, s->set->value);
    va_start(ap, fmt);
    vsnprintf(text + n, sizeof text - (size_t)n, fmt, ap);
    va_end(ap);
    reader_problem_at(s->r, 0, 0, text);
    return false;
}

static bool copy_word(char *out, const char *from, size_t len)
{
    if (len == 0 || len >= SET_WORD_BYTES)
        return false;
    memcpy(out, from, len);
    out[len] = '\0';
    return true;
}

/* [3], [name=ping] or ["A.B"]; `*path` stands on the bracket. */
static bool read_bracket(const char **path, struct step *out)
{
    const char *p = *path + 1;
    bool quoted = *p == '"';
    const char *end = quoted ? strstr(p + 1, "\"]") : strchr(p, ']');
    if (end == NULL)
        return false;
    *path = end + (quoted ? 2 : 1);
    if (quoted) {
        out->kind = STEP_KEY;
        return copy_word(out->key, p + 1, (size_t)(end - p - 1));
    }
    size_t len = (size_t)(end - p);
    const char *equals = memchr(p, '=', len);
    if (equals != NULL) {
        out->kind = STEP_MATCH;
        return copy_word(out->key, p, (size_t)(equals - p)) &&
               copy_word(out->value, equals + 1, (size_t)(end - equals - 1));
    }
    out->kind = STEP_INDEX;
    out->index = 0;
    for (size_t i = 0; i < len; i++) {
        if (!isdigit((unsigned char)p[i]) || i > 6)
            return false;
        out->index = out->index * 10 + (size_t)(p[i] - '0');
    }
    return len > 0;
}

static bool read_step(const char **path, bool first, struct step *out)
{
    if (**path == '[' && !first)
        return read_bracket(path, out);
    if (!first && *(*path)++ != '.')
        return false;
    size_t len = strcspn(*path, ".[]=");
    out->kind = STEP_KEY;
    bool ok = copy_word(out->key, *path, len);
    *path += len;
    return ok;
}

/* The names of the elements, or how many there are: what the user could have meant. */
static const char *what_is_there(const struct json_value *list, const char *key, char *out, size_t size)
{
    const char *words[16];
    size_t n = 0;
    for (const struct json_value *c = json_first(list); c != NULL && n < ARRAY_LEN(words); c = json_next(c)) {
        const struct json_value *name = json_member(c, key);
        if (name != NULL && json_text(name) != NULL)
            words[n++] = json_text(name);
    }
    if (n > 0)
        return reader_words(words, n, out, size);
    snprintf(out, size, "%zu elements", json_count(list));
    return out;
}

static struct json_value *find_element(const struct setter *s, struct json_value *list,
                                       const struct step *step)
{
    char path[JSON_PATH_BYTES];
    char there[256];
    json_path(list, path, sizeof path);
    if (json_kind(list) != JSON_ARRAY) {
        fail(s, "%s is %s, not a list", path, json_kind_text(json_kind(list)));
        return NULL;
    }
    for (struct json_value *c = json_first(list); c != NULL; c = json_next(c)) {
        const struct json_value *m = step->kind == STEP_MATCH ? json_member(c, step->key) : NULL;
        if (step->kind == STEP_INDEX
                ? c->index == step->index
                : m != NULL && json_text(m) != NULL && strcmp(json_text(m), step->value) == 0)
            return c;
    }
    if (step->kind == STEP_INDEX)
        fail(s, "%s[%zu] does not exist: %s has the elements 0 to %zu (%s)", path, step->index, path,
             json_count(list) > 0 ? json_count(list) - 1 : 0,
             what_is_there(list, "name", there, sizeof there));
    else
        fail(s, "%s has no element with %s \"%s\"; there are: %s", path, step->key, step->value,
             what_is_there(list, step->key, there, sizeof there));
    return NULL;
}

static struct json_value *find_member(const struct setter *s, struct json_value *object,
                                      const struct step *step)
{
    char path[JSON_PATH_BYTES];
    struct json_value *found = json_member(object, step->key);
    if (found != NULL)
        return found;
    json_path(object, path, sizeof path);
    if (json_kind(object) == JSON_ARRAY)
        fail(s, "%s is a list: name an element, like %s[0] or %s[name=X]", path, path, path);
    else if (json_kind(object) != JSON_OBJECT)
        fail(s, "%s is %s: it has no member \"%s\"", path, json_kind_text(json_kind(object)), step->key);
    if (json_kind(object) != JSON_OBJECT)
        return NULL;
    struct json_value *fresh = json_new(JSON_OBJECT, NULL);
    fresh->column = s->number;
    json_append(object, step->key, fresh);
    return fresh;
}

/* Everything below `v` came from the option: no place in the file. */
static void set_origin(struct json_value *v, uint32_t number)
{
    v->line = 0;
    v->column = number;
    v->key_line = 0;
    for (struct json_value *c = json_first(v); c != NULL; c = json_next(c))
        set_origin(c, number);
}

static struct json_value *read_value(const struct setter *s)
{
    struct json_value *v = NULL;
    if (json_parse(s->set->value, strlen(s->set->value), NULL, &v, NULL) != ERR_OK)
        v = json_new(JSON_STRING, s->set->value);
    v->loose = json_kind(v) == JSON_NUMBER || json_kind(v) == JSON_BOOL;
    set_origin(v, s->number);
    return v;
}

static bool apply(const struct setter *s, struct json_value *root)
{
    const char *path = s->set->path;
    struct json_value *v = root;
    struct step step;
    for (unsigned n = 0; v != NULL && *path != '\0'; n++) {
        if (n == SET_STEPS_MAX || !read_step(&path, n == 0, &step))
            return fail(s,
                        "'%s' is no path; write one like design.rounds, targets[0].port or "
                        "workloads[name=ping].duration",
                        s->set->path);
        v = step.kind == STEP_KEY ? find_member(s, v, &step) : find_element(s, v, &step);
    }
    if (v == root)
        return fail(s, "the path is empty; write PATH=VALUE, like design.rounds=3");
    if (v == NULL)
        return false;
    json_replace(v, read_value(s));
    return true;
}

void experiment_apply_sets(struct experiment_reader *r, struct json_value *root)
{
    for (size_t i = 0; i < r->options->set_count; i++) {
        struct setter s = {.r = r, .set = &r->options->sets[i], .number = (uint32_t)i + 1};
        apply(&s, root);
    }
}
