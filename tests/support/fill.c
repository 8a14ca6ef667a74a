#include "tests/support/fill.h"

#include "common/mem.h"

#include <string.h>

static char *text_for(const struct schema_field *f, size_t n)
{
    if (n == 0 && f->rule != RULE_NAME && f->rule != RULE_PATH && f->rule != RULE_ENV)
        return NULL;
    const char *text = f->rule == RULE_PATH                              ? "dir/f\xc3\xbc.js"
                       : f->rule == RULE_ENV                             ? "KEY=value"
                       : f->rule == RULE_NAME || f->rule == RULE_NO_NAME ? "job-1"
                                                                         : "w\xc3\xb6rd";
    return mem_strdup(strlen(text) <= f->max || f->type == SCHEMA_STRINGS ? text : "x");
}

static void fill_items(const struct schema_field *f, char *ours, size_t n)
{
    if (n > f->max)
        n = f->max;
    char *items = ours + f->ours;
    if (f->type == SCHEMA_LIST) {
        items = n != 0 ? mem_zalloc(n, f->sub->ours_size) : NULL;
        memcpy(ours + f->ours, &items, sizeof items);
    }
    for (size_t i = 0; i < n; i++)
        fill_struct(f->sub, items + i * f->sub->ours_size, n);
    memcpy(ours + f->ours_count, &n, sizeof n);
}

static void fill_field(const struct schema_field *f, char *ours, size_t n)
{
    char *at = ours + f->ours;
    uint64_t number = f->max > 7 && f->min < 7 ? 7 : f->max;
    uint32_t u32 = (uint32_t)number;
    uint16_t u16 = (uint16_t)number;
    bool flag = true;
    switch (f->type) {
    case SCHEMA_U16:
        memcpy(at, &u16, sizeof u16);
        break;
    case SCHEMA_U64:
        memcpy(at, &number, sizeof number);
        break;
    case SCHEMA_BOOL:
        memcpy(at, &flag, sizeof flag);
        break;
    case SCHEMA_FIGURE: {
        struct figure figure = {.known = n != 0, .value = n != 0 ? number : 0};
        memcpy(at, &figure, sizeof figure);
        break;
    }
    case SCHEMA_U32:
    case SCHEMA_I32:
    case SCHEMA_ENUM:
        memcpy(at, &u32, sizeof u32);
        break;
    case SCHEMA_TEXT:
    case SCHEMA_RAW: {
        char *text = text_for(f, n);
        memcpy(at, &text, sizeof text);
        break;
    }
    case SCHEMA_BYTES: {
        struct msg_bytes bytes = {.data = n != 0 ? mem_dup("\0\1\2", 3) : NULL, .len = n != 0 ? 3 : 0};
        memcpy(at, &bytes, sizeof bytes);
        break;
    }
    case SCHEMA_FIXED:
        memset(at, 0xa5, f->max);
        break;
    case SCHEMA_STRINGS: {
        struct msg_strings strings = {.count = n};
        strings.items = n != 0 ? mem_zalloc(n, sizeof *strings.items) : NULL;
        for (size_t i = 0; i < n; i++)
            strings.items[i] = text_for(f, n);
        memcpy(at, &strings, sizeof strings);
        break;
    }
    case SCHEMA_STRUCT:
        fill_struct(f->sub, at, n);
        break;
    case SCHEMA_LIST:
    case SCHEMA_ARRAY:
        fill_items(f, ours, n);
        break;
    case SCHEMA_U32S:
        for (size_t i = 0; i < n && i < f->max; i++)
            memcpy(at + i * sizeof u32, &i, sizeof u32);
        memcpy(ours + f->ours_count, &n, sizeof n);
        break;
    }
}

static void fill_kind(const struct schema *s, void *ours, unsigned kind, size_t n)
{
    memset(ours, 0, s->ours_size);
    for (size_t i = 0; i < s->field_count; i++)
        fill_field(&s->fields[i], ours, n);
    if (s->kinds == NULL)
        return;
    memcpy((char *)ours + s->kind_at, &kind, sizeof kind);
    const struct schema *sub = s->kinds[kind];
    if (sub->ours_size != 0)
        fill_struct(sub, (char *)ours + s->union_at, n);
}

void fill_struct(const struct schema *s, void *ours, size_t n)
{
    fill_kind(s, ours, 0, n);
}

void fill_msg(struct msg *m, enum msg_kind kind, size_t n)
{
    fill_kind(&schema_frame, m, kind, n);
    if (kind == MSG_HELLO)
        m->u.hello.protocol = MSG_PROTOCOL_VERSION;
    if (n == 0 || (kind != MSG_COMMANDS && kind != MSG_PUSH))
        return;
    const struct schema *item = kind == MSG_COMMANDS ? &schema_command : &schema_event;
    const struct schema_field *f = NULL;
    const struct schema *list = schema_frame.kinds[kind];
    for (size_t i = 0; i < list->field_count; i++)
        if (list->fields[i].type == SCHEMA_LIST)
            f = &list->fields[i];
    must(f != NULL);
    schema_fini(list, &m->u);
    char *items = mem_zalloc(item->kind_count, item->ours_size);
    for (unsigned k = 0; k < item->kind_count; k++)
        fill_kind(item, items + k * item->ours_size, k, n);
    memcpy((char *)&m->u + f->ours, &items, sizeof items);
    memcpy((char *)&m->u + f->ours_count, &item->kind_count, sizeof item->kind_count);
}

/* ---- comparing ----------------------------------------------------------------------------------------- */

static bool texts_equal(const void *a, const void *b)
{
    const char *x, *y;
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    return strcmp(msg_text(x), msg_text(y)) == 0;
}

static bool items_equal(const struct schema_field *f, const char *a, const char *b)
{
    size_t n, m;
    memcpy(&n, a + f->ours_count, sizeof n);
    memcpy(&m, b + f->ours_count, sizeof m);
    if (n != m)
        return false;
    if (f->type == SCHEMA_U32S)
        return memcmp(a + f->ours, b + f->ours, n * sizeof(uint32_t)) == 0;
    const char *x = a + f->ours, *y = b + f->ours;
    if (f->type == SCHEMA_LIST) {
        memcpy(&x, a + f->ours, sizeof x);
        memcpy(&y, b + f->ours, sizeof y);
    }
    for (size_t i = 0; i < n; i++)
        if (!fill_equal(f->sub, x + i * f->sub->ours_size, y + i * f->sub->ours_size))
            return false;
    return true;
}

static bool strings_equal(const struct msg_strings *a, const struct msg_strings *b)
{
    if (a->count != b->count)
        return false;
    for (size_t i = 0; i < a->count; i++)
        if (strcmp(a->items[i], b->items[i]) != 0)
            return false;
    return true;
}

static bool field_equal(const struct schema_field *f, const char *a, const char *b)
{
    const char *x = a + f->ours, *y = b + f->ours;
    switch (f->type) {
    case SCHEMA_U16:
        return memcmp(x, y, sizeof(uint16_t)) == 0;
    case SCHEMA_U64:
        return memcmp(x, y, sizeof(uint64_t)) == 0;
    case SCHEMA_BOOL:
        return memcmp(x, y, sizeof(bool)) == 0;
    case SCHEMA_FIGURE: {
        const struct figure *p = (const void *)x, *q = (const void *)y;
        return p->known == q->known && (!p->known || p->value == q->value);
    }
    case SCHEMA_U32:
    case SCHEMA_I32:
    case SCHEMA_ENUM:
        return memcmp(x, y, sizeof(uint32_t)) == 0;
    case SCHEMA_TEXT:
    case SCHEMA_RAW:
        return texts_equal(x, y);
    case SCHEMA_BYTES: {
        const struct msg_bytes *p = (const void *)x, *q = (const void *)y;
        return p->len == q->len && (p->len == 0 || memcmp(p->data, q->data, p->len) == 0);
    }
    case SCHEMA_FIXED:
        return memcmp(x, y, f->max) == 0;
    case SCHEMA_STRINGS:
        return strings_equal((const void *)x, (const void *)y);
    case SCHEMA_STRUCT:
        return fill_equal(f->sub, x, y);
    case SCHEMA_LIST:
    case SCHEMA_ARRAY:
    case SCHEMA_U32S:
        return items_equal(f, a, b);
    }
    return false;
}

bool fill_equal(const struct schema *s, const void *a, const void *b)
{
    for (size_t i = 0; i < s->field_count; i++)
        if (!field_equal(&s->fields[i], a, b))
            return false;
    if (s->kinds == NULL)
        return true;
    unsigned x, y;
    memcpy(&x, (const char *)a + s->kind_at, sizeof x);
    memcpy(&y, (const char *)b + s->kind_at, sizeof y);
    return x == y && fill_equal(s->kinds[x], (const char *)a + s->union_at, (const char *)b + s->union_at);
}
