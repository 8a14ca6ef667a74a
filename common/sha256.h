#ifndef COMMON_SHA256_H
#define COMMON_SHA256_H
/*
 * SHA-256 of bytes and of files: names of contents, and proof of them. Owned by whoever embeds it; one thread
 * at a time. sha256_init takes memory and sha256_fini gives it back; in between one sum may follow another,
 * and one that is dropped half-way leaves nothing behind.
 */
#include "common/err.h"

#include <openssl/types.h>

#define SHA256_BYTES      32u
#define SHA256_TEXT_BYTES 65u /* lower-case hexadecimal and its NUL */

struct sha256 {
    EVP_MD_CTX *inner;
};

/* Whether this machine's OpenSSL, as it is configured, can do it: a program that will need it asks when it
 * starts, and ends with the sentence in `d`. The functions below take it for granted. */
NODISCARD enum err sha256_check(struct err_detail *d);

/* Begins a sum. */
void sha256_init(struct sha256 *s);
void sha256_fini(struct sha256 *s); /* safe on a zeroed struct and twice */

void sha256_add(struct sha256 *s, const void *data, size_t len);
/* Ends the sum; sha256_restart comes before the next byte. */
void sha256_end(struct sha256 *s, uint8_t out[SHA256_BYTES]);
/* Begins the next sum, whether the last one was ended or not. With Debian 12's OpenSSL this frees one small
 * block and allocates another, with Debian 13's neither: tests/unit/test_sha256.c counts them. */
void sha256_restart(struct sha256 *s);

void sha256_of(const void *data, size_t len, uint8_t out[SHA256_BYTES]);

/* From the beginning of the file to its end, wherever its offset is. */
NODISCARD enum err sha256_of_fd(int fd, uint8_t out[SHA256_BYTES], struct err_detail *d);

/* Returns `out`. */
const char *sha256_text(const uint8_t hash[SHA256_BYTES], char out[SHA256_TEXT_BYTES]);

/* The hash that `text` begins with: 64 hexadecimal digits, of either case. What comes behind them is not
 * looked at. False where there are fewer. */
bool sha256_parse(const char *text, uint8_t out[SHA256_BYTES]);

#endif
