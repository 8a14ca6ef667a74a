#include "proto/text.h"

#include <string.h>

/* Length of the valid UTF-8 character at `s`, 0 when there is none (RFC 3629: no overlong forms, no
 * surrogates, nothing over U+10FFFF). */
static size_t char_len(const unsigned char *s, size_t left)
{
    if (s[0] < 0x80)
        return 1;
    size_t len = s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : 2;
    if (s[0] < 0xc2 || s[0] > 0xf4 || left < len)
        return 0;
    unsigned char low = 0x80, high = 0xbf; /* of the second byte */
    if (s[0] == 0xe0)
        low = 0xa0;
    if (s[0] == 0xed)
        high = 0x9f;
    if (s[0] == 0xf0)
        low = 0x90;
    if (s[0] == 0xf4)
        high = 0x8f;
    if (s[1] < low || s[1] > high)
        return 0;
    for (size_t i = 2; i < len; i++)
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    return len;
}

static const char *utf8_fault(const char *text, size_t len)
{
    for (size_t i = 0, n; i < len; i += n) {
        if (text[i] == '\0')
            return "holds a NUL";
        n = char_len((const unsigned char *)text + i, len - i);
        if (n == 0)
            return "is not UTF-8";
    }
    return NULL;
}

static bool is_alnum(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

static const char *name_fault(const char *text, size_t len)
{
    if (len == 0)
        return "is empty";
    if (!is_alnum(text[0]))
        return "must begin with a letter or digit";
    for (size_t i = 1; i < len; i++)
        if (!is_alnum(text[i]) && text[i] != '.' && text[i] != '_' && text[i] != '-')
            return "may hold letters, digits, '.', '_' and '-' only";
    return NULL;
}

static const char *path_fault(const char *text, size_t len)
{
    if (len == 0)
        return "is empty";
    for (size_t start = 0; start <= len;) {
        const char *slash = memchr(text + start, '/', len - start);
        size_t end = slash != NULL ? (size_t)(slash - text) : len;
        if (end == start)
            return "must be relative, without empty parts";
        if (text[start] == '.' && (end - start == 1 || (end - start == 2 && text[start + 1] == '.')))
            return "must not hold '.' or '..' parts";
        start = end + 1;
    }
    return NULL;
}

const char *text_fault(enum schema_rule rule, const char *text, size_t len)
{
    const char *fault = utf8_fault(text, len);
    if (fault != NULL)
        return fault;
    switch (rule) {
    case RULE_ANY:
    case RULE_PROSE:
        break;
    case RULE_NO_NAME:
        return len != 0 ? name_fault(text, len) : NULL;
    case RULE_NAME:
        return name_fault(text, len);
    case RULE_PATH:
        return path_fault(text, len);
    case RULE_ENV: {
        const char *equals = memchr(text, '=', len);
        return equals == NULL || equals == text ? "is not KEY=value" : NULL;
    }
    }
    return NULL;
}

size_t text_cut(const char *text, size_t len, size_t max)
{
    if (len <= max)
        return len;
    /* A character is at most 4 bytes: step back over up to 3 that continue one. */
    size_t cut = max;
    for (int i = 0; i < 3 && cut > 0 && ((unsigned char)text[cut] & 0xc0) == 0x80; i++)
        cut--;
    return cut;
}

void text_clean(char *text, size_t len)
{
    for (size_t i = 0, n; i < len; i += n) {
        n = text[i] != '\0' ? char_len((const unsigned char *)text + i, len - i) : 0;
        if (n == 0) {
            text[i] = '?';
            n = 1;
        }
    }
}
