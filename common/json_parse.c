#include "common/json_scan.h"

#include "common/mem.h"

#include <stdlib.h>
#include <string.h>

/* Reading: the scanner makes the tree, and here go the keys that are there twice. */

static int by_key(const void *a, const void *b)
{
    const struct json_value *x = *(const struct json_value *const *)a;
    const struct json_value *y = *(const struct json_value *const *)b;
    int order = strcmp(json_key(x), json_key(y));
    return order != 0 ? order : (x->index > y->index) - (x->index < y->index);
}

/* Marks members whose key came before (`loose` is free for that until the owner has the tree). */
static void mark_duplicates(struct json_value *object)
{
    size_t n = 0;
    struct json_value **sorted = mem_zalloc(json_count(object), sizeof(struct json_value *));
    for (struct json_value *m = json_first(object); m != NULL; m = json_next(m))
        sorted[n++] = m;
    if (n > 1)
        qsort(sorted, n, sizeof(struct json_value *), by_key);
    for (size_t i = 1; i < n; i++)
        sorted[i]->loose = strcmp(json_key(sorted[i]), json_key(sorted[i - 1])) == 0;
    free(sorted);
}

/* From the outside in, so that the places come in the order of the text as far as nesting lets them. */
static enum err drop_duplicates(struct json_value *v, const struct json_options *o, struct err_detail *d)
{
    enum err e = ERR_OK;
    if (json_kind(v) == JSON_OBJECT)
        mark_duplicates(v);
    for (struct json_value *m = json_first(v), *next = NULL; m != NULL; m = next) {
        next = json_next(m);
        if (!m->loose)
            continue;
        if (o->on_duplicate == NULL) {
            err_set(d, ERR_INVALID, "key \"%.60s\" is there twice", json_key(m));
            return json_fail(o, ERR_INVALID, m->key_line, m->key_column, d);
        }
        o->on_duplicate(o->arg, m, json_member(v, json_key(m)));
        json_drop(m);
    }
    size_t index = 0;
    for (struct json_value *c = json_first(v); e == ERR_OK && c != NULL; c = json_next(c)) {
        c->index = index++;
        e = drop_duplicates(c, o, d);
    }
    return e;
}

enum err json_parse(const char *text, size_t len, const struct json_options *options, struct json_value **out,
                    struct err_detail *d)
{
    static const struct json_options plain = {0};
    const struct json_options *o = options != NULL ? options : &plain;
    struct json_value *v = NULL;
    enum err e = json_scan(text, len, o, &v, d);
    if (e == ERR_OK)
        e = drop_duplicates(v, o, d);
    if (e == ERR_OK)
        *out = v;
    else
        json_free(v);
    return e;
}
