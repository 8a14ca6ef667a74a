#include "common/json.h"

#include "common/json_scan.h"
#include "common/mem.h"

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the tree ---------------------------------------------------------------------------------- */

struct json_value *json_new(enum json_kind kind, const char *text)
{
    struct json_value *v = mem_zalloc(1, sizeof *v);
    v->kind = kind;
    v->text = text != NULL ? mem_strdup(text) : NULL;
    v->boolean = kind == JSON_BOOL && text != NULL && strcmp(text, "true") == 0;
    return v;
}

void json_free(struct json_value *v)
{
    if (v == NULL)
        return;
    /* Depth is bounded by LIMIT_JSON_DEPTH, and by the owner for trees that were added to. */
    for (struct json_value *c = v->child; c != NULL;) {
        struct json_value *next = c->next;
        json_free(c);
        c = next;
    }
    free(v->key);
    free(v->text);
    free(v);
}

void json_append(struct json_value *container, const char *key, struct json_value *child)
{
    must((key != NULL) == (container->kind == JSON_OBJECT));
    must(child->parent == NULL);
    mem_set_string(&child->key, key);
    child->parent = container;
    child->index = container->count++;
    if (container->last != NULL)
        container->last->next = child;
    else
        container->child = child;
    container->last = child;
}

void json_replace(struct json_value *old, struct json_value *fresh)
{
    struct json_value *parent = old->parent;
    must(parent != NULL && fresh->parent == NULL);
    struct json_value **link = &parent->child;
    while (*link != old)
        link = &(*link)->next;
    *link = fresh;
    fresh->next = old->next;
    fresh->parent = parent;
    fresh->index = old->index;
    fresh->key_line = old->key_line;
    fresh->key_column = old->key_column;
    mem_set_string(&fresh->key, old->key);
    if (parent->last == old)
        parent->last = fresh;
    old->parent = NULL;
    json_free(old);
}

const struct json_value *json_member(const struct json_value *object, const char *key)
{
    if (object == NULL || object->kind != JSON_OBJECT)
        return NULL;
    for (const struct json_value *c = object->child; c != NULL; c = c->next)
        if (strcmp(c->key, key) == 0)
            return c;
    return NULL;
}

static bool is_plain_key(const char *key)
{
    return *key != '\0' &&
           strspn(key, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-$") == strlen(key);
}

const char *json_path(const struct json_value *v, char *out, size_t size)
{
    must(size > 0);
    out[0] = '\0';
    if (v == NULL || v->parent == NULL)
        return out;
    json_path(v->parent, out, size);
    size_t n = strlen(out);
    if (v->key == NULL)
        snprintf(out + n, size - n, "[%zu]", v->index);
    else if (is_plain_key(v->key))
        snprintf(out + n, size - n, "%s%s", n > 0 ? "." : "", v->key);
    else
        snprintf(out + n, size - n, "[\"%.60s\"]", v->key);
    return out;
}

const char *json_library_version(void)
{
    return cJSON_Version();
}

const char *json_kind_text(enum json_kind k)
{
    static const char *const texts[] = {
        [JSON_NULL] = "null",       [JSON_BOOL] = "true or false", [JSON_NUMBER] = "a number",
        [JSON_STRING] = "a string", [JSON_ARRAY] = "a list",       [JSON_OBJECT] = "an object",
    };
    return k < JSON_KIND_COUNT ? texts[k] : "unknown";
}

/* ---- reading ----------------------------------------------------------------------------------- */

/* The next mark is where the next value or key of the same walk stands. */
struct builder {
    const char *text;
    const struct json_mark *mark;
};

static enum json_kind kind_of(const cJSON *item)
{
    if (cJSON_IsObject(item))
        return JSON_OBJECT;
    if (cJSON_IsArray(item))
        return JSON_ARRAY;
    if (cJSON_IsString(item))
        return JSON_STRING;
    if (cJSON_IsNumber(item))
        return JSON_NUMBER;
    return cJSON_IsBool(item) ? JSON_BOOL : JSON_NULL;
}

static struct json_value *build(struct builder *b, const cJSON *item)
{
    const struct json_mark *mark = b->mark++;
    struct json_value *v = json_new(kind_of(item), NULL);
    v->line = mark->line;
    v->column = mark->column;
    v->boolean = cJSON_IsTrue(item);
    if (v->kind == JSON_STRING)
        v->text = mem_strdup(item->valuestring);
    else if (v->kind == JSON_NUMBER || v->kind == JSON_BOOL)
        v->text = mem_strndup(b->text + mark->offset, mark->len);
    for (const cJSON *c = item->child; c != NULL; c = c->next) {
        const struct json_mark *key = v->kind == JSON_OBJECT ? b->mark++ : NULL;
        struct json_value *child = build(b, c);
        if (key != NULL) {
            child->key_line = key->line;
            child->key_column = key->column;
        }
        json_append(v, key != NULL ? c->string : NULL, child);
    }
    return v;
}

static int by_key(const void *a, const void *b)
{
    const struct json_value *x = *(const struct json_value *const *)a;
    const struct json_value *y = *(const struct json_value *const *)b;
    int order = strcmp(x->key, y->key);
    return order != 0 ? order : (x->index > y->index) - (x->index < y->index);
}

/* Marks members whose key came before (`loose` is free for that until the owner has the tree). */
static size_t find_duplicates(const struct json_value *object, struct json_value **sorted)
{
    size_t n = 0;
    size_t found = 0;
    for (struct json_value *c = object->child; c != NULL; c = c->next)
        sorted[n++] = c;
    qsort(sorted, n, sizeof(struct json_value *), by_key);
    for (size_t i = 1; i < n; i++) {
        if (strcmp(sorted[i]->key, sorted[i - 1]->key) != 0)
            continue;
        sorted[i]->loose = true;
        found++;
    }
    return found;
}

static void drop_duplicates(struct json_value *object, const struct json_options *options)
{
    struct json_value *c = object->child;
    object->child = NULL;
    object->last = NULL;
    object->count = 0;
    while (c != NULL) {
        struct json_value *next = c->next;
        c->next = NULL;
        if (c->loose) {
            options->on_duplicate(options->arg, c, json_member(object, c->key));
            json_free(c);
        } else {
            c->parent = NULL;
            char *key = c->key;
            c->key = NULL;
            json_append(object, key, c);
            free(key);
        }
        c = next;
    }
}

static void set_place(const struct json_options *o, uint32_t line, uint32_t column)
{
    if (o->line != NULL)
        *o->line = line;
    if (o->column != NULL)
        *o->column = column;
}

static enum err refuse_duplicate(struct json_value *const *sorted, size_t n, const struct json_options *o,
                                 struct err_detail *d)
{
    size_t at = n;
    for (size_t i = 0; i < n; i++)
        if (sorted[i]->loose && (at == n || sorted[i]->index < sorted[at]->index))
            at = i;
    must(at < n);
    const struct json_value *first = sorted[at];
    set_place(o, first->key_line, first->key_column);
    err_set(d, ERR_INVALID, "key \"%.60s\" is there twice", first->key);
    return o->line != NULL ? ERR_INVALID
                           : err_prefix(d, ERR_INVALID, "%u:%u", first->key_line, first->key_column);
}

/* Depth first, so that the places come in the order of the text as far as nesting lets them. */
static enum err check_duplicates(struct json_value *v, const struct json_options *o, struct err_detail *d)
{
    enum err e = ERR_OK;
    if (v->kind == JSON_OBJECT && v->count > 1) {
        struct json_value **sorted = mem_zalloc(v->count, sizeof(struct json_value *));
        size_t n = v->count;
        if (find_duplicates(v, sorted) > 0) {
            if (o->on_duplicate != NULL)
                drop_duplicates(v, o);
            else
                e = refuse_duplicate(sorted, n, o, d);
        }
        free(sorted);
    }
    for (struct json_value *c = v->child; e == ERR_OK && c != NULL; c = c->next)
        e = check_duplicates(c, o, d);
    return e;
}

enum err json_parse(const char *text, size_t len, const struct json_options *options, struct json_value **out,
                    struct err_detail *d)
{
    static const struct json_options plain = {0};
    const struct json_options *o = options != NULL ? options : &plain;
    struct json_scan scan;
    struct json_value *v = NULL;
    char *copy = mem_alloc(len + 1);
    if (len > 0)
        memcpy(copy, text, len);
    copy[len] = '\0';
    enum err e = json_scan(&scan, copy, len, o->comments, d);
    if (e != ERR_OK) {
        set_place(o, scan.line, scan.column);
        if (o->line == NULL)
            err_prefix(d, e, "%u:%u", scan.line, scan.column);
        goto out;
    }
    cJSON *root = cJSON_ParseWithLength(copy, len + 1);
    must(root != NULL); /* the scanner accepts nothing that the library does not; else memory is gone */
    struct builder b = {.text = copy, .mark = scan.marks};
    v = build(&b, root);
    cJSON_Delete(root);
    must(b.mark == scan.marks + scan.count);
    e = check_duplicates(v, o, d);
    if (e != ERR_OK)
        goto out;
    *out = v;
    v = NULL;
out:
    json_free(v);
    json_scan_fini(&scan);
    free(copy);
    return e;
}
