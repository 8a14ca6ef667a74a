#include "common/json.h"

#include "common/mem.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * The library's item, and beside it what the library does not know. The item comes first, so that the
 * library, which frees an item with free(), frees the whole. A number's text is its valuestring, which the
 * library leaves alone.
 */
struct node {
    cJSON item;
    struct json_value value;
};

static const struct {
    int type; /* of the library */
    const char *text;
} kinds[JSON_KIND_COUNT] = {
    [JSON_NULL] = {cJSON_NULL, "null"},         [JSON_BOOL] = {cJSON_True, "true or false"},
    [JSON_NUMBER] = {cJSON_Number, "a number"}, [JSON_STRING] = {cJSON_String, "a string"},
    [JSON_ARRAY] = {cJSON_Array, "a list"},     [JSON_OBJECT] = {cJSON_Object, "an object"},
};

static cJSON *item_of(const struct json_value *v)
{
    return v != NULL ? (cJSON *)((const char *)v - offsetof(struct node, value)) : NULL;
}

static struct json_value *value_of(cJSON *item)
{
    return item != NULL ? &((struct node *)item)->value : NULL;
}

struct json_value *json_new(enum json_kind kind, const char *text)
{
    struct node *n = mem_zalloc(1, sizeof *n);
    json_set(&n->value, kind, text);
    return &n->value;
}

void json_set(struct json_value *v, enum json_kind kind, const char *text)
{
    cJSON *item = item_of(v);
    item->type = kinds[kind].type;
    if (kind == JSON_BOOL && strcmp(text, "true") != 0)
        item->type = cJSON_False;
    if (kind == JSON_NUMBER)
        cJSON_SetNumberValue(item, strtod(text, NULL));
    mem_set_string(&item->valuestring, text);
}

void json_free(struct json_value *v)
{
    /* Depth is bounded by LIMIT_JSON_DEPTH, and by the owner for trees that were added to. */
    cJSON_Delete(item_of(v));
}

void json_append(struct json_value *container, const char *key, struct json_value *child)
{
    cJSON *into = item_of(container);
    must((key != NULL) == (cJSON_IsObject(into) != 0));
    must(child->parent == NULL);
    child->parent = container;
    child->index = json_count(container);
    must(key != NULL ? cJSON_AddItemToObject(into, key, item_of(child))
                     : cJSON_AddItemToArray(into, item_of(child)));
}

void json_replace(struct json_value *old, struct json_value *fresh)
{
    must(old->parent != NULL && fresh->parent == NULL);
    fresh->parent = old->parent;
    fresh->index = old->index;
    fresh->key_line = old->key_line;
    fresh->key_column = old->key_column;
    mem_set_string(&item_of(fresh)->string, json_key(old));
    must(cJSON_ReplaceItemViaPointer(item_of(old->parent), item_of(old), item_of(fresh)));
}

void json_drop(struct json_value *v)
{
    cJSON_Delete(cJSON_DetachItemViaPointer(item_of(v->parent), item_of(v)));
}

enum json_kind json_kind(const struct json_value *v)
{
    const cJSON *item = item_of(v);
    enum json_kind kind = JSON_NULL;
    while (kind < JSON_OBJECT && item->type != kinds[kind].type)
        kind++;
    return cJSON_IsFalse(item) ? JSON_BOOL : kind;
}

const char *json_text(const struct json_value *v)
{
    return item_of(v)->valuestring;
}

bool json_is_true(const struct json_value *v)
{
    return cJSON_IsTrue(item_of(v));
}

const char *json_key(const struct json_value *v)
{
    return item_of(v)->string;
}

struct json_value *json_first(const struct json_value *container)
{
    return container != NULL ? value_of(item_of(container)->child) : NULL;
}

struct json_value *json_next(const struct json_value *v)
{
    return value_of(item_of(v)->next);
}

/* The library keeps the last element as the one before the first. */
size_t json_count(const struct json_value *container)
{
    cJSON *first = item_of(container)->child;
    return first != NULL ? value_of(first->prev)->index + 1 : 0;
}

struct json_value *json_member(const struct json_value *object, const char *key)
{
    return object != NULL && json_kind(object) == JSON_OBJECT
               ? value_of(cJSON_GetObjectItemCaseSensitive(item_of(object), key))
               : NULL;
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
    const char *key = json_key(v);
    if (key == NULL)
        snprintf(out + n, size - n, "[%zu]", v->index);
    else if (is_plain_key(key))
        snprintf(out + n, size - n, "%s%s", n > 0 ? "." : "", key);
    else
        snprintf(out + n, size - n, "[\"%.60s\"]", key);
    return out;
}

const char *json_library_version(void)
{
    return cJSON_Version();
}

const char *json_kind_text(enum json_kind k)
{
    return k < JSON_KIND_COUNT ? kinds[k].text : "unknown";
}
