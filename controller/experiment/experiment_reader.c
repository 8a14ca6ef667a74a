#include "controller/experiment/experiment_reader.h"

#include "common/buf.h"
#include "common/clock.h"
#include "common/mem.h"
#include "common/parse.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PROBLEM_BYTES 2048u

/* ---- problems ---------------------------------------------------------------------------------- */

void reader_problem_at(struct experiment_reader *r, uint32_t line, uint32_t column, const char *text)
{
    struct experiment_problems *p = r->problems;
    if (p->count == LIMIT_PROBLEMS) {
        r->dropped++;
        return;
    }
    p->items = mem_realloc(p->items, p->count + 1, sizeof *p->items);
    p->items[p->count++] =
        (struct experiment_problem){.line = line, .column = column, .text = mem_strdup(text)};
}

/* Values from --set have line 0 and the number of their option as column (experiment_set.c). */
static void add_problem(struct experiment_reader *r, const struct json_value *at, uint32_t line,
                        uint32_t column, const char *key, const char *text)
{
    char path[JSON_PATH_BYTES];
    char whole[PROBLEM_BYTES];
    char option[160] = "";
    json_path(at, path, sizeof path);
    if (line == 0 && column > 0 && column <= r->options->set_count) {
        const struct experiment_set *s = &r->options->sets[column - 1];
        snprintf(option, sizeof option, "--set %.90s=%.50s: ", s->path, s->value);
        column = 0;
        if (strcmp(s->path, path) == 0)
            path[0] = '\0'; /* said already */
    }
    snprintf(whole, sizeof whole, "%s%s%s%s%s%s", option, path, path[0] != '\0' && key[0] != '\0' ? "." : "",
             key, path[0] != '\0' || key[0] != '\0' ? ": " : "", text);
    reader_problem_at(r, line, column, whole);
}

void reader_problem(struct experiment_reader *r, const struct json_value *at, const char *fmt, ...)
{
    char text[PROBLEM_BYTES / 2];
    va_list ap;
    if (at->refused)
        return;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    add_problem(r, at, at->line, at->column, "", text);
}

void reader_problem_key(struct experiment_reader *r, const struct json_value *member, const char *fmt, ...)
{
    char text[PROBLEM_BYTES / 2];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    bool placed = member->key_line != 0;
    add_problem(r, member, placed ? member->key_line : member->line,
                placed ? member->key_column : member->column, "", text);
}

void reader_missing(struct experiment_reader *r, const struct json_value *object, const char *key,
                    const char *hint)
{
    char text[PROBLEM_BYTES / 2];
    snprintf(text, sizeof text, "is missing: %s", hint);
    add_problem(r, object, object->line, object->column, key, text);
}

bool reader_refuse(struct experiment_reader *r, const struct json_value *v, const char *fmt, ...)
{
    char must_be[PROBLEM_BYTES / 4];
    char is[READER_TEXT_BYTES];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(must_be, sizeof must_be, fmt, ap);
    va_end(ap);
    reader_problem(r, v, "is %s, must be %s", json_describe(v, is, sizeof is), must_be);
    return false;
}

static int by_place(const void *a, const void *b)
{
    const struct experiment_problem *x = a;
    const struct experiment_problem *y = b;
    if ((x->line == 0) != (y->line == 0))
        return x->line == 0 ? 1 : -1;
    if (x->line != y->line)
        return x->line < y->line ? -1 : 1;
    if (x->column != y->column)
        return x->column < y->column ? -1 : 1;
    return strcmp(x->text, y->text);
}

void reader_sort_problems(struct experiment_reader *r)
{
    struct experiment_problems *p = r->problems;
    if (p->count > 1)
        qsort(p->items, p->count, sizeof *p->items, by_place);
    if (r->dropped == 0)
        return;
    char text[READER_TEXT_BYTES];
    snprintf(text, sizeof text, "%zu more problems: mend these first", r->dropped);
    p->items = mem_realloc(p->items, p->count + 1, sizeof *p->items);
    p->items[p->count++] = (struct experiment_problem){.text = mem_strdup(text)};
}

/* ---- containers -------------------------------------------------------------------------------- */

const char *reader_words(const char *const *words, size_t count, char *out, size_t size)
{
    size_t len = 0;
    must(size > 0);
    out[0] = '\0';
    for (size_t i = 0; i < count; i++) {
        int n = snprintf(out + len, size - len, "%s%s", i > 0 ? ", " : "", words[i]);
        if (n < 0 || (size_t)n + 24 >= size - len) { /* room for the closing words */
            snprintf(out + len, size - len, " and %zu more", count - i);
            break;
        }
        len += (size_t)n;
    }
    return out;
}

static bool is_word(const char *const *words, size_t count, const char *word)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(words[i], word) == 0)
            return true;
    return false;
}

bool reader_object(struct experiment_reader *r, const struct json_value *v, const char *const *keys,
                   size_t count)
{
    char allowed[512];
    if (json_kind(v) != JSON_OBJECT)
        return reader_refuse(r, v, "an object with %s", reader_words(keys, count, allowed, sizeof allowed));
    for (const struct json_value *m = json_first(v); m != NULL; m = json_next(m)) {
        if (is_word(keys, count, json_key(m)))
            continue;
        if (r->problems->count == LIMIT_PROBLEMS) { /* spares the search for what was meant */
            r->dropped++;
            continue;
        }
        const char *close = parse_closest(json_key(m), keys, count);
        reader_problem_key(
            r, m, "unknown key; allowed: %s%s%s%s", reader_words(keys, count, allowed, sizeof allowed),
            close != NULL ? "; did you mean " : "", close != NULL ? close : "", close != NULL ? "?" : "");
    }
    return true;
}

bool reader_list(struct experiment_reader *r, const struct json_value *v, size_t max, const char *what)
{
    if (json_kind(v) != JSON_ARRAY)
        return reader_refuse(r, v, "a list of %s", what);
    if (json_count(v) == 0 || json_count(v) > max) {
        reader_problem(r, v, "has %zu elements, must have 1 to %zu %s", json_count(v), max, what);
        return false;
    }
    return true;
}

void reader_unique_names(struct experiment_reader *r, const struct json_value *list)
{
    for (const struct json_value *v = json_first(list); v != NULL; v = json_next(v)) {
        const struct json_value *name = json_member(v, "name");
        if (name == NULL || json_text(name) == NULL)
            continue;
        for (const struct json_value *w = json_first(list); w != v; w = json_next(w)) {
            const struct json_value *other = json_member(w, "name");
            if (other == NULL || json_text(other) == NULL || strcmp(json_text(other), json_text(name)) != 0)
                continue;
            reader_problem(r, name, "\"%.64s\" is the name of %s[%zu] already; names must be unique",
                           json_text(name), json_key(list), w->index);
            break;
        }
    }
}

/* ---- scalars ----------------------------------------------------------------------------------- */

bool reader_get_u64(struct experiment_reader *r, const struct json_value *v, uint64_t min, uint64_t max,
                    uint64_t *out)
{
    if (v == NULL || json_to_u64(v, min, max, out, NULL) == ERR_OK)
        return true;
    return reader_refuse(r, v, "a whole number from %" PRIu64 " to %" PRIu64, min, max);
}

bool reader_get_u32(struct experiment_reader *r, const struct json_value *v, uint32_t min, uint32_t max,
                    uint32_t *out)
{
    uint64_t wide = *out;
    if (!reader_get_u64(r, v, min, max, &wide))
        return false;
    *out = (uint32_t)wide;
    return true;
}

bool reader_get_port(struct experiment_reader *r, const struct json_value *v, uint16_t *out)
{
    uint64_t wide = *out;
    if (v != NULL && json_to_u64(v, 1, UINT16_MAX, &wide, NULL) != ERR_OK)
        return reader_refuse(r, v, "a port, from 1 to %u", UINT16_MAX);
    *out = (uint16_t)wide;
    return true;
}

bool reader_get_positive(struct experiment_reader *r, const struct json_value *v, double max, double *out)
{
    double n = 0;
    if (v == NULL)
        return true;
    if (json_to_double(v, 0, max, &n, NULL) != ERR_OK || n <= 0)
        return reader_refuse(r, v, "a number over 0, at most %g", max);
    *out = n;
    return true;
}

/* A string, or what a variable or --set put in its place. NULL when it is neither. */
static const char *as_text(const struct json_value *v)
{
    return json_kind(v) == JSON_STRING || v->loose ? json_text(v) : NULL;
}

bool reader_get_duration(struct experiment_reader *r, const struct json_value *v, uint64_t min_ns,
                         uint64_t max_ns, uint64_t *out)
{
    char low[32];
    char high[32];
    uint64_t ns = 0;
    if (v == NULL)
        return true;
    const char *text = as_text(v);
    if (text == NULL || parse_duration(text, &ns, "", NULL) != ERR_OK)
        return reader_refuse(r, v, "a duration with its unit (us, ms, s, m, h), like \"10s\"");
    if (ns < min_ns || ns > max_ns)
        return reader_refuse(r, v, "a duration from %s to %s", parse_duration_text(min_ns, low, sizeof low),
                             parse_duration_text(max_ns, high, sizeof high));
    *out = ns;
    return true;
}

bool reader_get_text(struct experiment_reader *r, const struct json_value *v, size_t bytes_max,
                     const char **out)
{
    if (v == NULL)
        return true;
    const char *text = as_text(v);
    if (text == NULL)
        return reader_refuse(r, v, "a string%s",
                             json_kind(v) == JSON_NUMBER || json_kind(v) == JSON_BOOL ? ": put it in quotes"
                                                                                      : "");
    size_t len = strlen(text);
    if (len > bytes_max) {
        reader_problem(r, v, "has %zu bytes, at most %zu are allowed", len, bytes_max);
        return false;
    }
    *out = text;
    return true;
}

bool reader_get_string(struct experiment_reader *r, const struct json_value *v, size_t bytes_max, char **out)
{
    const char *text = NULL;
    if (!reader_get_text(r, v, bytes_max, &text))
        return false;
    if (text == NULL)
        return true;
    if (text[0] == '\0') {
        reader_problem(r, v, "is empty");
        return false;
    }
    for (const char *p = text; *p != '\0'; p++) {
        if ((unsigned char)*p >= 0x20 && *p != 0x7f)
            continue;
        reader_problem(r, v, "holds the control character 0x%02x", (unsigned)(unsigned char)*p);
        return false;
    }
    mem_set_string(out, text);
    return true;
}

/* "." or ".." as a part between slashes. */
static bool has_dot_part(const char *name)
{
    for (const char *p = name; p != NULL; p = strchr(p, '/')) {
        p += *p == '/';
        size_t n = strcspn(p, "/");
        if ((n == 1 && p[0] == '.') || (n == 2 && p[0] == '.' && p[1] == '.'))
            return true;
    }
    return false;
}

bool reader_get_name(struct experiment_reader *r, const struct json_value *v, char **out)
{
    const char *text = NULL;
    if (!reader_get_text(r, v, LIMIT_NAME_BYTES, &text))
        return false;
    if (text == NULL)
        return true;
    size_t good = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._/+-");
    if (text[0] == '\0' || text[good] != '\0' || text[0] == '-' || has_dot_part(text))
        return reader_refuse(r, v, "a name of letters, digits and ._/+-, not starting with -");
    mem_set_string(out, text);
    return true;
}

bool reader_get_word(struct experiment_reader *r, const struct json_value *v, const char *const *words,
                     size_t count, size_t *out)
{
    char allowed[256];
    if (v == NULL)
        return true;
    for (size_t i = 0; json_kind(v) == JSON_STRING && i < count; i++) {
        if (strcmp(words[i], json_text(v)) != 0)
            continue;
        *out = i;
        return true;
    }
    const char *close = json_kind(v) == JSON_STRING ? parse_closest(json_text(v), words, count) : NULL;
    return reader_refuse(r, v, "one of %s%s%s%s", reader_words(words, count, allowed, sizeof allowed),
                         close != NULL ? "; did you mean " : "", close != NULL ? close : "",
                         close != NULL ? "?" : "");
}

/* ---- lists of strings -------------------------------------------------------------------------- */

bool reader_get_argv(struct experiment_reader *r, const struct json_value *v, struct msg_strings *out)
{
    if (json_kind(v) == JSON_STRING)
        return reader_refuse(r, v,
                             "a list of words, like [\"nginx\", \"-c\", \"my.conf\"]; no shell splits it");
    if (!reader_list(r, v, LIMIT_ARGV_COUNT, "words of a command"))
        return false;
    size_t problems = r->problems->count + r->dropped;
    size_t bytes = 0;
    out->items = mem_zalloc(json_count(v), sizeof *out->items);
    for (const struct json_value *word = json_first(v); word != NULL; word = json_next(word)) {
        const char *text = "";
        if (!reader_get_text(r, word, LIMIT_COMMAND_BYTES, &text))
            continue;
        if (word->index == 0 && text[0] == '\0')
            reader_problem(r, word, "is empty: the first word is the program");
        bytes += strlen(text) + 1;
        out->items[out->count++] = mem_strdup(text);
    }
    if (bytes > LIMIT_COMMAND_BYTES)
        reader_problem(r, v, "has %zu bytes in all, at most %u are allowed", bytes, LIMIT_COMMAND_BYTES);
    return problems == r->problems->count + r->dropped;
}

/* "pool=sut", alone or first in a list, is how the agent's command line says it: shown as the object it
 * means. */
static bool refuse_labels(struct experiment_reader *r, const struct json_value *v)
{
    const struct json_value *word = json_kind(v) == JSON_ARRAY ? json_first(v) : v;
    const char *text = word != NULL && json_kind(word) == JSON_STRING ? json_text(word) : "";
    const char *equals = strchr(text, '=');
    if (equals == NULL || equals == text || strlen(text) > LIMIT_NAME_BYTES || strpbrk(text, "\"\\") != NULL)
        return reader_refuse(r, v, "an object of labels, like { \"pool\": \"sut\" }");
    return reader_refuse(r, v, "an object of labels: { \"%.*s\": \"%s\" }", (int)(equals - text), text,
                         equals + 1);
}

bool reader_get_labels(struct experiment_reader *r, const struct json_value *v, struct experiment_label **out,
                       size_t *count)
{
    if (v == NULL)
        return true;
    if (json_kind(v) != JSON_OBJECT)
        return refuse_labels(r, v);
    if (json_count(v) > MSG_LABELS_MAX) {
        reader_problem(r, v, "has %zu labels, at most %u are allowed", json_count(v), MSG_LABELS_MAX);
        return false;
    }
    *out = mem_zalloc(json_count(v), sizeof **out);
    for (const struct json_value *m = json_first(v); m != NULL; m = json_next(m)) {
        struct experiment_label label = {0};
        size_t good =
            strspn(json_key(m), "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._/-");
        if (json_key(m)[0] == '\0' || json_key(m)[good] != '\0' || good > LIMIT_NAME_BYTES)
            reader_problem_key(r, m, "label keys are made of letters, digits and ._/-, at most %u of them",
                               LIMIT_NAME_BYTES);
        else if (reader_get_string(r, m, LIMIT_NAME_BYTES, &label.value)) {
            label.key = mem_strdup(json_key(m));
            (*out)[(*count)++] = label;
        }
    }
    return true;
}
