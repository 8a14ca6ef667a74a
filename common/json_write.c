#include "common/json_write.h"

#include "common/utf8.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define U64_EXACT (1ull << 52) /* from here on many readers round */

void json_write_init(struct json_writer *w, struct buf *out, unsigned indent)
{
    *w = (struct json_writer){.out = out, .indent = indent};
}

static void put(struct json_writer *w, const char *data, size_t len)
{
    if (w->failed == ERR_OK)
        w->failed = buf_append(w->out, data, len);
}

static void put_text(struct json_writer *w, const char *text)
{
    put(w, text, strlen(text));
}

static void line_break(struct json_writer *w)
{
    if (w->indent == 0)
        return;
    put(w, "\n", 1);
    static const char blanks[] = "                                ";
    for (size_t left = w->indent * w->depth; left > 0;) {
        size_t n = left < sizeof blanks - 1 ? left : sizeof blanks - 1;
        put(w, blanks, n);
        left -= n;
    }
}

static void put_quoted(struct json_writer *w, const char *text, size_t len)
{
    static const char named[] = "\"\\\b\f\n\r\t";
    static const char letters[] = "\"\\bfnrt";
    put(w, "\"", 1);
    size_t plain = 0; /* start of what can go out as it is */
    for (size_t i = 0; i < len;) {
        unsigned char ch = (unsigned char)text[i];
        if (ch >= 0x20 && ch < 0x7f && ch != '"' && ch != '\\') { /* nearly all there is */
            i++;
            continue;
        }
        size_t n = utf8_len(text + i, len - i);
        const char *name = ch != '\0' ? strchr(named, ch) : NULL;
        if (n != 0 && ch >= 0x20 && name == NULL) {
            i += n;
            continue;
        }
        char escape[8];
        put(w, text + plain, i - plain);
        if (name != NULL)
            snprintf(escape, sizeof escape, "\\%c", letters[name - named]);
        else if (n == 0 || ch == '\0') /* our own reader refuses NUL, too */
            snprintf(escape, sizeof escape, "\xef\xbf\xbd");
        else
            snprintf(escape, sizeof escape, "\\u%04x", ch);
        put_text(w, escape);
        plain = ++i;
    }
    put(w, text + plain, len - plain);
    put(w, "\"", 1);
}

/* What stands before a value: comma, line break, key. */
static void begin(struct json_writer *w, const char *key)
{
    must((key != NULL) == w->object[w->depth]);
    must(w->depth > 0 || !w->filled[0]); /* one outermost value */
    if (w->filled[w->depth])
        put(w, ",", 1);
    w->filled[w->depth] = true;
    if (w->depth > 0)
        line_break(w);
    if (key == NULL)
        return;
    put_quoted(w, key, strlen(key));
    put(w, ": ", w->indent != 0 ? 2 : 1);
}

static void open_container(struct json_writer *w, const char *key, bool object)
{
    begin(w, key);
    put(w, object ? "{" : "[", 1);
    must(w->depth < LIMIT_JSON_DEPTH);
    w->depth++;
    w->object[w->depth] = object;
    w->filled[w->depth] = false;
}

void json_write_object(struct json_writer *w, const char *key)
{
    open_container(w, key, true);
}

void json_write_array(struct json_writer *w, const char *key)
{
    open_container(w, key, false);
}

void json_write_close(struct json_writer *w)
{
    must(w->depth > 0);
    bool object = w->object[w->depth];
    bool filled = w->filled[w->depth];
    w->depth--;
    if (filled)
        line_break(w);
    put(w, object ? "}" : "]", 1);
}

void json_write_text(struct json_writer *w, const char *key, const char *text, size_t len)
{
    begin(w, key);
    put_quoted(w, text, len);
}

void json_write_string(struct json_writer *w, const char *key, const char *text)
{
    if (text == NULL)
        json_write_null(w, key);
    else
        json_write_text(w, key, text, strlen(text));
}

void json_write_u64(struct json_writer *w, const char *key, uint64_t v)
{
    char text[32];
    snprintf(text, sizeof text, v < U64_EXACT ? "%" PRIu64 : "\"%" PRIu64 "\"", v);
    begin(w, key);
    put_text(w, text);
}

void json_write_i64(struct json_writer *w, const char *key, int64_t v)
{
    char text[32];
    bool exact = v < (int64_t)U64_EXACT && v > -(int64_t)U64_EXACT;
    snprintf(text, sizeof text, exact ? "%" PRId64 : "\"%" PRId64 "\"", v);
    begin(w, key);
    put_text(w, text);
}

void json_write_double(struct json_writer *w, const char *key, double v)
{
    char text[40] = "null";
    for (int digits = 15; digits <= 17 && isfinite(v); digits++) {
        snprintf(text, sizeof text, "%.*g", digits, v);
        if (strtod(text, NULL) == v)
            break;
    }
    begin(w, key);
    put_text(w, text);
}

void json_write_bool(struct json_writer *w, const char *key, bool v)
{
    begin(w, key);
    put_text(w, v ? "true" : "false");
}

void json_write_figure(struct json_writer *w, const char *key, struct figure f)
{
    if (f.known)
        json_write_u64(w, key, f.value);
    else
        json_write_null(w, key);
}

void json_write_null(struct json_writer *w, const char *key)
{
    begin(w, key);
    put_text(w, "null");
}

void json_write_value(struct json_writer *w, const char *key, const struct json_value *v)
{
    enum json_kind kind = json_kind(v);
    if (kind == JSON_ARRAY || kind == JSON_OBJECT) {
        open_container(w, key, kind == JSON_OBJECT);
        for (const struct json_value *c = json_first(v); c != NULL; c = json_next(c))
            json_write_value(w, json_key(c), c);
        json_write_close(w);
    } else if (kind == JSON_STRING) {
        json_write_string(w, key, json_text(v));
    } else {
        begin(w, key);
        put_text(w, kind == JSON_NULL ? "null" : json_text(v));
    }
}

enum err json_write_end(struct json_writer *w)
{
    must(w->depth == 0 && w->filled[0]);
    return w->failed;
}
