#include "common/base64.h"

#include <string.h>

#define LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

#define NO_LETTER 0xff

static const char standard[] = LETTERS "+/";
static const char url[] = LETTERS "-_";

static size_t encode(const char *letters, const uint8_t *data, size_t len, char *out)
{
    uint32_t bits = 0;
    size_t n = 0;
    for (size_t i = 0; i < len; i++) {
        bits = bits << 8 | data[i];
        out[n++] = letters[bits >> (2 + 2 * (i % 3)) & 63];
        if (i % 3 == 2)
            out[n++] = letters[bits & 63];
    }
    if (len % 3 != 0)
        out[n++] = letters[bits << (len % 3 == 1 ? 4 : 2) & 63];
    return n;
}

size_t base64_encode(const void *data, size_t len, char *out)
{
    size_t n = encode(standard, data, len, out);
    while (n % 4 != 0)
        out[n++] = '=';
    out[n] = '\0';
    return n;
}

size_t base64url_encode(const void *data, size_t len, char *out)
{
    size_t n = encode(url, data, len, out);
    out[n] = '\0';
    return n;
}

/* The letters before any padding. Each brings six bits; from the second letter of four on, each letter
 * completes a byte. */
static bool decode(const char *letters, const char *text, size_t chars, uint8_t *out, size_t *len)
{
    if (chars % 4 == 1)
        return false;
    uint8_t values[256]; /* of each letter */
    memset(values, NO_LETTER, sizeof values);
    for (uint8_t i = 0; i < 64; i++)
        values[(unsigned char)letters[i]] = i;
    uint32_t bits = 0;
    size_t n = 0;
    for (size_t i = 0; i < chars; i++) {
        uint8_t value = values[(unsigned char)text[i]];
        if (value == NO_LETTER)
            return false;
        bits = bits << 6 | value;
        if (i % 4 != 0)
            out[n++] = (uint8_t)(bits >> (6 - 2 * (i % 4)));
    }
    *len = n;
    return true;
}

bool base64_decode(const char *text, size_t chars, uint8_t *out, size_t *len)
{
    if (chars % 4 != 0)
        return false;
    size_t padding = 0;
    while (padding < 2 && padding < chars && text[chars - 1 - padding] == '=')
        padding++;
    return decode(standard, text, chars - padding, out, len);
}

bool base64url_decode(const char *text, size_t chars, uint8_t *out, size_t *len)
{
    return decode(url, text, chars, out, len);
}
