#include "agent/telemetry/fields.h"

#include <ctype.h>
#include <errno.h>

static bool is_end(char c)
{
    return c == ' ' || c == '\n' || c == '\0';
}

bool fields_take(const char **at, uint64_t *out)
{
    const char *p = *at;
    char *end = NULL;
    while (*p == ' ')
        p++;
    if (!isdigit((unsigned char)*p))
        return false;
    errno = 0;
    unsigned long long n = strtoull(p, &end, 10);
    if (errno != 0 || !is_end(*end))
        return false;
    *out = n;
    *at = end;
    return true;
}

bool fields_skip(const char **at, unsigned count)
{
    const char *p = *at;
    for (; count > 0; count--) {
        while (*p == ' ')
            p++;
        if (is_end(*p))
            return false;
        while (!is_end(*p))
            p++;
    }
    *at = p;
    return true;
}
