#include "proto/msg/text.h"

#include "common/path.h"
#include "common/utf8.h"

#include <string.h>

static const char *utf8_fault(const char *text, size_t len)
{
    for (size_t i = 0, n; i < len; i += n) {
        if (text[i] == '\0')
            return "holds a NUL";
        n = utf8_len(text + i, len - i);
        if (n == 0)
            return "is not UTF-8";
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
        return len != 0 ? path_name_fault(text, len) : NULL;
    case RULE_NAME:
        return path_name_fault(text, len);
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
        n = text[i] != '\0' ? utf8_len(text + i, len - i) : 0;
        if (n == 0) {
            text[i] = '?';
            n = 1;
        }
    }
}
