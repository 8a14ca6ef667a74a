#include "common/utf8.h"

size_t utf8_len(const char *p, size_t left)
{
    const unsigned char *u = (const unsigned char *)p;
    if (left == 0)
        return 0;
    if (u[0] < 0x80)
        return 1;
    size_t n = u[0] >= 0xf0 ? 4 : u[0] >= 0xe0 ? 3 : 2;
    if (u[0] < 0xc2 || u[0] > 0xf4 || n > left)
        return 0;
    for (size_t i = 1; i < n; i++)
        if ((u[i] & 0xc0) != 0x80)
            return 0;
    if ((u[0] == 0xe0 && u[1] < 0xa0) || (u[0] == 0xed && u[1] > 0x9f) || (u[0] == 0xf0 && u[1] < 0x90) ||
        (u[0] == 0xf4 && u[1] > 0x8f))
        return 0;
    return n;
}

char *utf8_clean(char *text, const char *keep)
{
    size_t left = strlen(text);
    for (char *p = text; left > 0;) {
        size_t n = utf8_len(p, left);
        unsigned char c = (unsigned char)*p;
        bool c1 = n == 2 && c == 0xc2 && (unsigned char)p[1] < 0xa0;
        if (n == 0 || c1 || ((c < 0x20 || c == 0x7f) && strchr(keep, c) == NULL))
            memset(p, ' ', c1 ? 2 : 1);
        n = n != 0 ? n : 1;
        p += n;
        left -= n;
    }
    return text;
}

bool utf8_is_text(const char *text)
{
    size_t left = strlen(text);
    while (left > 0) {
        size_t n = utf8_len(text, left);
        if (n == 0 || (unsigned char)*text < 0x20 || *text == 0x7f)
            return false;
        text += n;
        left -= n;
    }
    return true;
}
