#include "proto/identity/identity.h"

#include "common/base64.h"

#include <stdio.h>
#include <string.h>

/* Enrollment tokens: "sb1.<secret>.<fingerprint of the CA>", both in base64url without padding. */

#define PREFIX       "sb1."
#define SECRET_BYTES 20u /* 160 bits: nobody guesses it within its hour */
#define SECRET_CHARS 27u
#define PRINT_CHARS  43u

enum err identity_make_token(const char *ca_pem, char token[IDENTITY_TOKEN_BYTES_MAX], char secret[64],
                             struct err_detail *d)
{
    uint8_t print[MSG_HASH_BYTES], random[SECRET_BYTES];
    char print_text[BASE64_CHARS(MSG_HASH_BYTES) + 1];
    enum err e = identity_fingerprint(ca_pem, print, d);
    if (e != ERR_OK)
        return e;
    identity_random(random, sizeof random);
    base64url_encode(random, sizeof random, secret);
    base64url_encode(print, sizeof print, print_text);
    snprintf(token, IDENTITY_TOKEN_BYTES_MAX, PREFIX "%s.%s", secret, print_text);
    return ERR_OK;
}

enum err identity_parse_token(const char *token, char secret[64], uint8_t fingerprint[MSG_HASH_BYTES],
                              struct err_detail *d)
{
    const size_t prefix = sizeof PREFIX - 1;
    uint8_t random[BASE64_BYTES(SECRET_CHARS)], print[BASE64_BYTES(PRINT_CHARS)];
    size_t len;
    const char *rest = token + prefix;
    if (strlen(token) != prefix + SECRET_CHARS + 1 + PRINT_CHARS || strncmp(token, PREFIX, prefix) != 0 ||
        rest[SECRET_CHARS] != '.' || !base64url_decode(rest, SECRET_CHARS, random, &len) ||
        !base64url_decode(rest + SECRET_CHARS + 1, PRINT_CHARS, print, &len) || len != MSG_HASH_BYTES)
        return err_set(d, ERR_INVALID,
                       "not an enrollment token: copy the whole line that 'splitbench token' printed");
    memcpy(secret, rest, SECRET_CHARS);
    secret[SECRET_CHARS] = '\0';
    memcpy(fingerprint, print, MSG_HASH_BYTES);
    return ERR_OK;
}
