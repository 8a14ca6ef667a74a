#include "controller/experiment/experiment_keys.h"

#include "common/base64.h"
#include "common/clock.h"
#include "common/json_write.h"
#include "common/mem.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The resolved text, and freeing, by the tables. */

#define WRITE_BYTES_MAX (64u * 1024u * 1024u) /* far over what may be kept: the reader says so */

static const void *field(const struct key *k, const void *object)
{
    return (const char *)object + k->at;
}

static uint64_t number(const struct key *k, const void *at)
{
    return k->size == sizeof(uint16_t)   ? *(const uint16_t *)at
           : k->size == sizeof(uint32_t) ? *(const uint32_t *)at
                                         : *(const uint64_t *)at;
}

/* ---- what is there ----------------------------------------------------------------------------- */

/* A pointer or a match that nothing was read into is zeros, and what is not kept has no field. */
static bool is_zero(const unsigned char *at, size_t size)
{
    while (size > 0 && at[size - 1] == 0)
        size--;
    return size == 0;
}

static bool is_there(const struct key *k, const void *object)
{
    const void *at = field(k, object);
    if (k->when != NULL)
        return k->when(object);
    if (k->has_at != 0)
        return *((const bool *)object + k->has_at);
    if (k->kind == KEY_NUMBER)
        return number(k, at) >= k->min; /* where 0 is not allowed it means that nothing was said */
    if (k->kind == KEY_TIME || k->kind == KEY_WORD)
        return true;
    if (k->element != NULL)
        return key_array(at).count > 0;
    for (size_t i = 0; k->kind == KEY_OBJECT && i < k->keys->count; i++)
        if (is_there(&k->keys->rows[i], at))
            return true;
    return k->kind != KEY_OBJECT && !is_zero(at, k->size);
}

/* ---- writing ----------------------------------------------------------------------------------- */

/* "${" is a variable to the reader; the only one that may be left is a built-in. */
static void write_text(struct json_writer *w, const char *name, const char *text, size_t len)
{
    static const char address[] = READER_ADDRESS;
    char *out = mem_alloc(2 * len + 1);
    size_t n = 0;
    for (size_t i = 0; i < len; i++) {
        size_t left = len - i;
        bool is_address = left >= strlen(address) && memcmp(text + i, address, strlen(address)) == 0;
        if (left >= 2 && memcmp(text + i, "${", 2) == 0 && !is_address)
            out[n++] = '$';
        out[n++] = text[i];
    }
    json_write_text(w, name, out, n);
    free(out);
}

static void write_time(struct json_writer *w, const char *name, uint64_t ns)
{
    static const struct {
        const char *unit;
        uint64_t ns;
    } units[] = {{"s", NS_PER_S}, {"ms", NS_PER_MS}, {"us", NS_PER_US}, {"ns", 1}};
    char text[40];
    size_t i = 0;
    while (ns % units[i].ns != 0)
        i++;
    snprintf(text, sizeof text, "%" PRIu64 "%s", ns / units[i].ns, units[i].unit);
    json_write_string(w, name, text);
}

static void write_base64(struct json_writer *w, const char *name, const struct msg_bytes *b)
{
    char *text = mem_alloc(BASE64_CHARS(b->len) + 1);
    json_write_text(w, name, text, base64_encode(b->data, b->len, text));
    free(text);
}

static void write_match(struct json_writer *w, const char *name, const struct msg_match *m)
{
    json_write_object(w, name);
    write_text(w, m->kind == MSG_MATCH_EXACT ? "exact" : "contains", (const char *)m->text.data, m->text.len);
    json_write_close(w);
}

static void write_object(struct json_writer *w, const char *name, const struct keys *t, const void *object);
static void write_value(struct json_writer *w, const struct key *k, const char *name, const void *at);

static void write_array(struct json_writer *w, const struct key *k, const char *name, const void *at)
{
    struct key_array a = key_array(at);
    if (k->kind == KEY_MAP)
        json_write_object(w, name);
    else
        json_write_array(w, name);
    for (size_t i = 0; i < a.count; i++) {
        const char *item = a.items + i * k->element->size;
        const void *key = item + k->element->key_at;
        write_value(w, k->element, k->kind == KEY_MAP ? *(char *const *)key : NULL, item + k->element->at);
    }
    json_write_close(w);
}

static void write_value(struct json_writer *w, const struct key *k, const char *name, const void *at)
{
    const struct msg_bytes *bytes = at;
    switch (k->kind) {
    case KEY_NUMBER:
        json_write_u64(w, name, number(k, at));
        break;
    case KEY_SHARE:
        json_write_double(w, name, *(const double *)at);
        break;
    case KEY_TIME:
        write_time(w, name, number(k, at));
        break;
    case KEY_WORD:
        json_write_string(w, name, k->words[*(const unsigned *)at]);
        break;
    case KEY_NAME:
    case KEY_TEXT:
    case KEY_RAW:
        write_text(w, name, *(char *const *)at, strlen(*(char *const *)at));
        break;
    case KEY_BODY:
        write_text(w, name, (const char *)bytes->data, bytes->len);
        break;
    case KEY_BODY_BASE64:
        write_base64(w, name, bytes);
        break;
    case KEY_MATCH:
        write_match(w, name, at);
        break;
    case KEY_OBJECT:
        write_object(w, name, k->keys, at);
        break;
    case KEY_LIST:
    case KEY_SWEEP:
    case KEY_MAP:
        write_array(w, k, name, at);
        break;
    case KEY_NOTE:
    case KEY_VARS:
    case KEY_BODY_FILE:
        break;
    }
}

static void write_object(struct json_writer *w, const char *name, const struct keys *t, const void *object)
{
    json_write_object(w, name);
    for (size_t i = 0; i < t->count; i++)
        if (is_there(&t->rows[i], object))
            write_value(w, &t->rows[i], t->rows[i].name, field(&t->rows[i], object));
    json_write_close(w);
}

char *keys_write(const struct keys *t, const void *object)
{
    struct buf b;
    struct json_writer w;
    buf_init(&b, WRITE_BYTES_MAX);
    json_write_init(&w, &b, 2);
    write_object(&w, NULL, t, object);
    if (json_write_end(&w) != ERR_OK || buf_append_text(&b, "\n") != ERR_OK)
        buf_clear(&b);
    return buf_take(&b);
}

/* ---- freeing ----------------------------------------------------------------------------------- */

static void fini_value(const struct key *k, void *at)
{
    if (k->kind == KEY_OBJECT)
        keys_fini(k->keys, at);
    if (k->kind == KEY_MATCH)
        free(((struct msg_match *)at)->text.data);
    if (k->kind == KEY_NAME || k->kind == KEY_TEXT || k->kind == KEY_RAW)
        free(*(char **)at);
    if (k->kind == KEY_BODY) /* the other bodies have the same field */
        free(((struct msg_bytes *)at)->data);
    if (k->element == NULL)
        return;
    struct key_array a = key_array(at);
    for (size_t i = 0; i < a.count; i++) {
        char *item = a.items + i * k->element->size;
        fini_value(k->element, item + k->element->at);
        if (k->kind == KEY_MAP)
            free(*(char **)(void *)(item + k->element->key_at));
    }
    free(a.items);
}

void keys_fini(const struct keys *t, void *object)
{
    for (size_t i = 0; i < t->count; i++)
        fini_value(&t->rows[i], (char *)object + t->rows[i].at);
}
