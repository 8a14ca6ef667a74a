#ifndef COMMON_JSON_SCAN_H
#define COMMON_JSON_SCAN_H
/*
 * Reading JSON, strictly: is this text exactly one JSON value, what is it, and where does everything stand.
 * Used by common/json_parse.c alone. No state; any thread.
 */
#include "common/json.h"

#define JSON_NUMBER_BYTES 60u

/*
 * The value, with duplicate keys still in it; the caller frees it. Refuses more than LIMIT_JSON_DEPTH levels,
 * LIMIT_JSON_VALUES values and keys, and numbers of over JSON_NUMBER_BYTES. Errors as of json_parse.
 */
NODISCARD enum err json_scan(const char *text, size_t len, const struct json_options *options,
                             struct json_value **out, struct err_detail *d);

/* `d` says what is wrong: adds the place, to the sentence or, when they are asked for there, to the options.
 * Returns `e`. */
enum err json_fail(const struct json_options *options, enum err e, uint32_t line, uint32_t column,
                   struct err_detail *d);

#endif
