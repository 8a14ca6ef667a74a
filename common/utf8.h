#ifndef COMMON_UTF8_H
#define COMMON_UTF8_H
/*
 * What counts as text from outside: UTF-8 by RFC 3629. No state; any thread.
 */
#include "common/base.h"

/* Length of the character at `p`, of which `left` bytes are there; 0 when it is none (overlong forms and
 * surrogates included). */
size_t utf8_len(const char *p, size_t left);

/* All of it is UTF-8 without control characters: fit for a table, a path, a message. */
bool utf8_is_text(const char *text);

/* What could command a terminal becomes blanks, in place: control characters (C0, DEL, C1) and bytes that are
 * no UTF-8. Those in `keep` ("\n", or "" for none) stay. Returns `text`. */
char *utf8_clean(char *text, const char *keep);

#endif
