#include "common/json.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *json_describe(const struct json_value *v, char *out, size_t size)
{
    if (json_kind(v) == JSON_NUMBER || json_kind(v) == JSON_BOOL)
        snprintf(out, size, "%.40s", json_text(v));
    else if (json_kind(v) == JSON_STRING)
        snprintf(out, size, strlen(json_text(v)) > 40 ? "\"%.37s...\"" : "\"%s\"", json_text(v));
    else
        snprintf(out, size, "%s", json_kind_text(json_kind(v)));
    return out;
}

/* "3:14: accounts.ok: is 17, must be ..." */
static enum err refuse(const struct json_value *v, struct err_detail *d, const char *fmt, ...)
    PRINTF_LIKE(3, 4);

static enum err refuse(const struct json_value *v, struct err_detail *d, const char *fmt, ...)
{
    char path[JSON_PATH_BYTES];
    char must_be[160];
    char is[48];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(must_be, sizeof must_be, fmt, ap);
    va_end(ap);
    json_describe(v, is, sizeof is);
    json_path(v, path, sizeof path);
    enum err e =
        err_set(d, ERR_INVALID, "%s%sis %s, must be %s", path, path[0] != '\0' ? ": " : "", is, must_be);
    return v->line != 0 ? err_prefix(d, e, "%u:%u", v->line, v->column) : e;
}

/* Whole text is decimal digits that fit. */
static bool read_u64(const char *text, uint64_t *out)
{
    if (text[0] == '\0' || strspn(text, "0123456789") != strlen(text))
        return false;
    errno = 0;
    *out = strtoull(text, NULL, 10);
    return errno == 0;
}

static enum err to_u64(const struct json_value *v, bool text_too, uint64_t min, uint64_t max, uint64_t *out,
                       struct err_detail *d)
{
    uint64_t n = 0;
    bool kind = json_kind(v) == JSON_NUMBER || (text_too && json_kind(v) == JSON_STRING);
    if (!kind || !read_u64(json_text(v), &n) || n < min || n > max)
        return refuse(v, d, "a whole number from %" PRIu64 " to %" PRIu64, min, max);
    *out = n;
    return ERR_OK;
}

enum err json_to_u64(const struct json_value *v, uint64_t min, uint64_t max, uint64_t *out,
                     struct err_detail *d)
{
    return v == NULL ? err_set(d, ERR_NOT_FOUND, "no such value") : to_u64(v, false, min, max, out, d);
}

enum err json_to_double(const struct json_value *v, double min, double max, double *out, struct err_detail *d)
{
    if (v == NULL)
        return err_set(d, ERR_NOT_FOUND, "no such value");
    double n = json_kind(v) == JSON_NUMBER ? strtod(json_text(v), NULL) : NAN;
    if (!(n >= min && n <= max))
        return refuse(v, d, "a number from %g to %g", min, max);
    *out = n;
    return ERR_OK;
}

enum err json_to_bool(const struct json_value *v, bool *out, struct err_detail *d)
{
    if (v == NULL)
        return err_set(d, ERR_NOT_FOUND, "no such value");
    if (json_kind(v) != JSON_BOOL)
        return refuse(v, d, "true or false");
    *out = json_is_true(v);
    return ERR_OK;
}

enum err json_to_string(const struct json_value *v, const char **out, struct err_detail *d)
{
    if (v == NULL)
        return err_set(d, ERR_NOT_FOUND, "no such value");
    if (json_kind(v) != JSON_STRING)
        return refuse(v, d, "a string");
    *out = json_text(v);
    return ERR_OK;
}

/* The member, or ERR_INVALID with "3:1: path.key: is missing". */
static enum err want(const struct json_value *object, const char *key, const struct json_value **out,
                     struct err_detail *d)
{
    char path[JSON_PATH_BYTES];
    *out = json_member(object, key);
    if (*out != NULL)
        return ERR_OK;
    if (object == NULL)
        return err_set(d, ERR_INVALID, "%s: is missing", key);
    if (json_kind(object) != JSON_OBJECT)
        return refuse(object, d, "an object");
    json_path(object, path, sizeof path);
    err_set(d, ERR_INVALID, "%s%s%s: is missing", path, path[0] != '\0' ? "." : "", key);
    return object->line != 0 ? err_prefix(d, ERR_INVALID, "%u:%u", object->line, object->column)
                             : ERR_INVALID;
}

enum err json_get_u64(const struct json_value *object, const char *key, uint64_t min, uint64_t max,
                      uint64_t *out, struct err_detail *d)
{
    const struct json_value *v = NULL;
    enum err e = want(object, key, &v, d);
    return e != ERR_OK ? e : to_u64(v, true, min, max, out, d);
}

enum err json_get_bool(const struct json_value *object, const char *key, bool *out, struct err_detail *d)
{
    const struct json_value *v = NULL;
    enum err e = want(object, key, &v, d);
    return e != ERR_OK ? e : json_to_bool(v, out, d);
}

enum err json_get_string(const struct json_value *object, const char *key, const char **out,
                         struct err_detail *d)
{
    const struct json_value *v = NULL;
    enum err e = want(object, key, &v, d);
    return e != ERR_OK ? e : json_to_string(v, out, d);
}

enum err json_get_child(const struct json_value *object, const char *key, enum json_kind kind,
                        const struct json_value **out, struct err_detail *d)
{
    const struct json_value *v = NULL;
    enum err e = want(object, key, &v, d);
    if (e == ERR_OK && json_kind(v) != kind)
        e = refuse(v, d, "%s", json_kind_text(kind));
    if (e == ERR_OK)
        *out = v;
    return e;
}
