#include "controller/experiment/experiment_reader.h"

#include "common/mem.h"
#include "common/parse.h"

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

/* RFC 9110, 5.6.2: what they are made of. */
bool reader_header_name(struct experiment_reader *r, const struct json_value *member)
{
    static const char allowed[] =
        "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    const char *name = json_key(member);
    const struct json_value *m = json_first(member->parent);
    if (name[0] == '\0' || strspn(name, allowed) != strlen(name)) {
        reader_problem_key(r, member, "is not a header name");
        return false;
    }
    while (m != member && strcasecmp(json_key(m), name) != 0)
        m = json_next(m);
    if (m != member)
        reader_problem_key(r, member, "is there twice: case does not matter in header names");
    return m == member;
}

/* ---- texts ------------------------------------------------------------------------------------- */

const char *reader_as_text(const struct json_value *v)
{
    return json_kind(v) == JSON_STRING || v->loose ? json_text(v) : NULL;
}

const char *reader_get_text(struct experiment_reader *r, const struct json_value *v, size_t bytes_max)
{
    const char *text = reader_as_text(v);
    if (text == NULL) {
        bool scalar = json_kind(v) == JSON_NUMBER || json_kind(v) == JSON_BOOL;
        reader_refuse(r, v, "a string%s", scalar ? ": put it in quotes" : "");
        return NULL;
    }
    if (strlen(text) <= bytes_max)
        return text;
    reader_problem(r, v, "has %zu bytes, at most %zu are allowed", strlen(text), bytes_max);
    return NULL;
}
