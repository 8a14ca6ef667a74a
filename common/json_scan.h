#ifndef COMMON_JSON_SCAN_H
#define COMMON_JSON_SCAN_H
/*
 * The strict half of reading JSON: is this text exactly one JSON value, and where does everything stand.
 * Used by common/json.c alone. Owns the marks until json_scan_fini.
 */
#include "common/json.h"

struct json_mark { /* a value or a key, in the order of the text */
    uint32_t line;
    uint32_t column;
    size_t offset;
    size_t len; /* scalars and keys; quotes included. 0 for containers */
};

struct json_scan {
    struct json_mark *marks;
    size_t count;
    size_t cap;
    uint32_t line; /* where the error is, when it failed */
    uint32_t column;
};

/*
 * Checks `text`, which ends at `len`, and overwrites comments with blanks so that a plain JSON parser can go
 * on. Refuses more than LIMIT_JSON_DEPTH levels, LIMIT_JSON_VALUES marks and numbers of over
 * JSON_NUMBER_BYTES. ERR_INVALID or ERR_TOO_BIG: the place is in `s`, the sentence in `d`.
 */
#define JSON_NUMBER_BYTES 60u
NODISCARD enum err json_scan(struct json_scan *s, char *text, size_t len, bool comments,
                             struct err_detail *d);
void json_scan_fini(struct json_scan *s);

#endif
