#ifndef COMMON_SHA256_H
#define COMMON_SHA256_H
/*
 * SHA-256 of bytes and of files: names of contents, and proof of them. Owned by whoever embeds it; one thread
 * at a time.
 */
#include "common/err.h"

#include <mbedtls/sha256.h>

#define SHA256_BYTES      32u
#define SHA256_TEXT_BYTES 65u /* lower-case hexadecimal and its NUL */

struct sha256 {
    mbedtls_sha256_context inner;
};

void sha256_init(struct sha256 *s);
void sha256_add(struct sha256 *s, const void *data, size_t len);
/* Ends the sum; `s` needs sha256_init before its next use. */
void sha256_end(struct sha256 *s, uint8_t out[SHA256_BYTES]);

void sha256_of(const void *data, size_t len, uint8_t out[SHA256_BYTES]);

/* From the beginning of the file to its end; the offset is left there. */
NODISCARD enum err sha256_of_fd(int fd, uint8_t out[SHA256_BYTES], struct err_detail *d);

/* Returns `out`. */
const char *sha256_text(const uint8_t hash[SHA256_BYTES], char out[SHA256_TEXT_BYTES]);

#endif
