#include "proto/identity.h"

#include <mbedtls/base64.h>

#include <stdio.h>
#include <string.h>

/* Enrolment tokens: "sb1.<secret>.<fingerprint of the CA>", both in base64url without padding. */

#define PREFIX       "sb1."
#define SECRET_BYTES 20u /* 160 bits: nobody guesses it within its hour */
#define SECRET_CHARS 27u
#define PRINT_CHARS  43u

static void encode(const uint8_t *data, size_t len, char *out, size_t size)
{
    size_t n;
    must(mbedtls_base64_encode((unsigned char *)out, size, &n, data, len) == 0);
    while (n > 0 && out[n - 1] == '=')
        n--;
    out[n] = '\0';
    for (size_t i = 0; i < n; i++)
        out[i] = out[i] == '+' ? '-' : out[i] == '/' ? '_' : out[i];
}

/* Exactly `len` bytes from `chars` characters of the alphabet, or false. */
static bool decode(const char *text, size_t chars, uint8_t *out, size_t len)
{
    char padded[64];
    uint8_t data[64];
    size_t n;
    if (chars + 2 > sizeof padded)
        return false;
    for (size_t i = 0; i < chars; i++) {
        if (text[i] == '+' || text[i] == '/' || text[i] == '=')
            return false;
        padded[i] = text[i] == '-' ? '+' : text[i] == '_' ? '/' : text[i];
    }
    while (chars % 4 != 0)
        padded[chars++] = '=';
    if (mbedtls_base64_decode(data, sizeof data, &n, (unsigned char *)padded, chars) != 0 || n != len)
        return false;
    memcpy(out, data, len);
    return true;
}

enum err identity_make_token(const char *ca_pem, char token[IDENTITY_TOKEN_BYTES_MAX], char secret[64],
                             struct err_detail *d)
{
    uint8_t print[MSG_HASH_BYTES], random[SECRET_BYTES];
    char print_text[64];
    enum err e = identity_fingerprint(ca_pem, print, d);
    if (e != ERR_OK)
        return e;
    identity_random(random, sizeof random);
    encode(random, sizeof random, secret, 64);
    encode(print, sizeof print, print_text, sizeof print_text);
    snprintf(token, IDENTITY_TOKEN_BYTES_MAX, PREFIX "%s.%s", secret, print_text);
    return ERR_OK;
}

enum err identity_parse_token(const char *token, char secret[64], uint8_t fingerprint[MSG_HASH_BYTES],
                              struct err_detail *d)
{
    const size_t prefix = sizeof PREFIX - 1;
    uint8_t random[SECRET_BYTES], print[MSG_HASH_BYTES];
    const char *rest = token + prefix;
    if (strlen(token) != prefix + SECRET_CHARS + 1 + PRINT_CHARS || strncmp(token, PREFIX, prefix) != 0 ||
        rest[SECRET_CHARS] != '.' || !decode(rest, SECRET_CHARS, random, sizeof random) ||
        !decode(rest + SECRET_CHARS + 1, PRINT_CHARS, print, sizeof print))
        return err_set(d, ERR_INVALID,
                       "not an enrolment token: copy the whole line that 'splitbench token' printed");
    memcpy(secret, rest, SECRET_CHARS);
    secret[SECRET_CHARS] = '\0';
    memcpy(fingerprint, print, sizeof print);
    return ERR_OK;
}
