#include "proto/msg/schema.h"

#include "common/mem.h"

#include <stdlib.h>

/* Freeing and copying by the tables. Decoded and built messages differ only in that texts may be NULL here.
 */

void *schema_get_pointer(const void *at)
{
    void *p;
    memcpy(&p, at, sizeof p);
    return p;
}

void schema_set_pointer(void *at, const void *p)
{
    memcpy(at, &p, sizeof p);
}

static const struct schema *kind_of(const struct schema *s, const void *ours)
{
    if (s->kinds == NULL)
        return NULL;
    unsigned kind;
    memcpy(&kind, (const char *)ours + s->kind_at, sizeof kind);
    must(kind < s->kind_count);
    return s->kinds[kind];
}

static size_t count_of(const struct schema_field *f, const void *ours)
{
    size_t count;
    memcpy(&count, (const char *)ours + f->ours_count, sizeof count);
    return count;
}

static void fini_field(const struct schema_field *f, void *ours)
{
    char *at = (char *)ours + f->ours;
    switch (f->type) {
    case SCHEMA_TEXT:
    case SCHEMA_RAW:
        free(schema_get_pointer(at));
        break;
    case SCHEMA_BYTES:
        free(((struct msg_bytes *)(void *)at)->data);
        break;
    case SCHEMA_STRINGS: {
        struct msg_strings *strings = (void *)at;
        mem_free_strings(&strings->items, &strings->count);
        break;
    }
    case SCHEMA_STRUCT:
        schema_fini(f->sub, at);
        break;
    case SCHEMA_LIST: {
        char *items = schema_get_pointer(at);
        for (size_t i = 0, n = items != NULL ? count_of(f, ours) : 0; i < n; i++)
            schema_fini(f->sub, items + i * f->sub->ours_size);
        free(items);
        break;
    }
    case SCHEMA_ARRAY:
        for (size_t i = 0, n = count_of(f, ours); i < n; i++)
            schema_fini(f->sub, at + i * f->sub->ours_size);
        break;
    case SCHEMA_U16:
    case SCHEMA_U32:
    case SCHEMA_U64:
    case SCHEMA_I32:
    case SCHEMA_BOOL:
    case SCHEMA_FIGURE:
    case SCHEMA_ENUM:
    case SCHEMA_FIXED:
    case SCHEMA_U32S:
        break;
    }
}

void schema_fini(const struct schema *s, void *ours)
{
    for (size_t i = 0; i < s->field_count; i++)
        fini_field(&s->fields[i], ours);
    const struct schema *kind = kind_of(s, ours);
    if (kind != NULL)
        schema_fini(kind, (char *)ours + s->union_at);
}

/* `to` holds a flat copy of `from`: whatever is owned is replaced by a copy of its own. */
static void copy_field(const struct schema_field *f, void *to, const void *from)
{
    char *at = (char *)to + f->ours;
    const char *from_at = (const char *)from + f->ours;
    switch (f->type) {
    case SCHEMA_TEXT:
    case SCHEMA_RAW: {
        const char *text = schema_get_pointer(from_at);
        schema_set_pointer(at, text != NULL ? mem_strdup(text) : NULL);
        break;
    }
    case SCHEMA_BYTES: {
        struct msg_bytes *bytes = (void *)at;
        bytes->data = bytes->len != 0 ? mem_dup(bytes->data, bytes->len) : NULL;
        break;
    }
    case SCHEMA_STRINGS: {
        struct msg_strings *strings = (void *)at;
        char *const *old = strings->items;
        strings->items = strings->count != 0 ? mem_zalloc(strings->count, sizeof *strings->items) : NULL;
        for (size_t i = 0; i < strings->count; i++)
            strings->items[i] = mem_strdup(msg_text(old[i]));
        break;
    }
    case SCHEMA_STRUCT:
        schema_copy(f->sub, at, from_at);
        break;
    case SCHEMA_LIST: {
        size_t n = count_of(f, from), size = f->sub->ours_size;
        const char *old = schema_get_pointer(from_at);
        char *items = n != 0 ? mem_zalloc(n, size) : NULL;
        for (size_t i = 0; i < n; i++)
            schema_copy(f->sub, items + i * size, old + i * size);
        schema_set_pointer(at, items);
        break;
    }
    case SCHEMA_ARRAY:
        for (size_t i = 0, n = count_of(f, from), size = f->sub->ours_size; i < n; i++)
            schema_copy(f->sub, at + i * size, from_at + i * size);
        break;
    case SCHEMA_U16:
    case SCHEMA_U32:
    case SCHEMA_U64:
    case SCHEMA_I32:
    case SCHEMA_BOOL:
    case SCHEMA_FIGURE:
    case SCHEMA_ENUM:
    case SCHEMA_FIXED:
    case SCHEMA_U32S:
        break;
    }
}

void schema_copy(const struct schema *s, void *to, const void *from)
{
    if (s->ours_size != 0)
        memcpy(to, from, s->ours_size);
    for (size_t i = 0; i < s->field_count; i++)
        copy_field(&s->fields[i], to, from);
    const struct schema *kind = kind_of(s, from);
    if (kind != NULL)
        schema_copy(kind, (char *)to + s->union_at, (const char *)from + s->union_at);
}
