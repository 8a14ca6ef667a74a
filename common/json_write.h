#ifndef COMMON_JSON_WRITE_H
#define COMMON_JSON_WRITE_H
/*
 * Prints JSON into a buffer, value by value. Owned by the caller, who also owns the buffer; one thread. The
 * first failure (the buffer is full) sticks, and json_write_end says so: no call in between needs a check.
 *
 *     struct json_writer w;
 *     json_write_init(&w, &buf, 2);
 *     json_write_object(&w, NULL);
 *     json_write_u64(&w, "ok", ok);
 *     json_write_array(&w, "names");
 *     json_write_string(&w, NULL, "nginx");
 *     json_write_close(&w);
 *     json_write_close(&w);
 *     e = json_write_end(&w);
 *
 * `key` is NULL for array elements and the outermost value. Integers from 2^52 on come as strings, because
 * most readers lose them. NaN and infinities come as null. Bytes that are not UTF-8 become U+FFFD.
 */
#include "common/buf.h"
#include "common/figure.h"
#include "common/json.h"

struct json_writer {
    struct buf *out;
    unsigned indent; /* blanks per level; 0 = one line */
    unsigned depth;
    enum err failed;
    bool object[LIMIT_JSON_DEPTH + 1]; /* per level: is it an object */
    bool filled[LIMIT_JSON_DEPTH + 1]; /* per level: does it hold a value already */
};

void json_write_init(struct json_writer *w, struct buf *out, unsigned indent);

void json_write_object(struct json_writer *w, const char *key); /* opens */
void json_write_array(struct json_writer *w, const char *key);  /* opens */
void json_write_close(struct json_writer *w);                   /* the innermost that is open */

void json_write_string(struct json_writer *w, const char *key, const char *text); /* NULL: null */
void json_write_text(struct json_writer *w, const char *key, const char *text, size_t len);
void json_write_u64(struct json_writer *w, const char *key, uint64_t v);
void json_write_i64(struct json_writer *w, const char *key, int64_t v);
/* The shortest text that reads back to the same double. */
void json_write_double(struct json_writer *w, const char *key, double v);
void json_write_bool(struct json_writer *w, const char *key, bool v);
void json_write_figure(struct json_writer *w, const char *key, struct figure f); /* unknown: null */
void json_write_null(struct json_writer *w, const char *key);
/* A whole tree; numbers as they were written. */
void json_write_value(struct json_writer *w, const char *key, const struct json_value *v);

/* Everything must be closed. ERR_TOO_BIG when the buffer could not hold it. */
NODISCARD enum err json_write_end(struct json_writer *w);

#endif
