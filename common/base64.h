#ifndef COMMON_BASE64_H
#define COMMON_BASE64_H
/*
 * Bytes as text after RFC 4648: base64 (section 4, padded) and base64url (section 5, without padding). Any
 * thread; no state.
 *
 * Decoding is strict: letters of the one alphabet, whole groups, padding where the last group needs it and
 * nowhere else; no blanks, no line breaks. Bits that the last letter has too many are not looked at.
 */
#include "common/base.h"

#define BASE64_CHARS(bytes) (((size_t)(bytes) + 2) / 3 * 4) /* at most, without a NUL */
#define BASE64_BYTES(chars) (((size_t)(chars) + 3) / 4 * 3) /* at most */

/* `out` has room for BASE64_CHARS(len) and a NUL. Return the characters before the NUL. */
size_t base64_encode(const void *data, size_t len, char *out);
size_t base64url_encode(const void *data, size_t len, char *out);

/* `out` has room for BASE64_BYTES(chars). False, with `*len` as it was, for what is no such text. */
NODISCARD bool base64_decode(const char *text, size_t chars, uint8_t *out, size_t *len);
NODISCARD bool base64url_decode(const char *text, size_t chars, uint8_t *out, size_t *len);

#endif
