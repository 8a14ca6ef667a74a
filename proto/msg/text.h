#ifndef PROTO_MSG_TEXT_H
#define PROTO_MSG_TEXT_H
/*
 * What a text of a message may be: one check for each rule of proto/msg/schema.h, and the cleaning of foreign
 * text. Any thread; no state.
 */
#include "proto/msg/schema.h"

/* Why `text` (`len` bytes, no terminator needed) breaks the rule, or NULL. */
const char *text_fault(enum schema_rule rule, const char *text, size_t len);

/* Bytes of the longest beginning of `text` that is within `max` and does not end inside a character. */
size_t text_cut(const char *text, size_t len, size_t max);

/* Replaces every byte that is not part of valid UTF-8, and every NUL, by '?'. */
void text_clean(char *text, size_t len);

#endif
