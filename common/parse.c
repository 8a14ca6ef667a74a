#include "common/parse.h"

#include "common/clock.h"
#include "common/limits.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORD_BYTES_MAX 64u

static bool read_decimal(const char **text, uint64_t *out)
{
    if (!isdigit((unsigned char)**text))
        return false;
    char *end = NULL;
    errno = 0;
    unsigned long long v = strtoull(*text, &end, 10);
    if (errno != 0)
        return false;
    *text = end;
    *out = v;
    return true;
}

enum err parse_u64(const char *text, uint64_t min, uint64_t max, uint64_t *out, const char *what,
                   struct err_detail *d)
{
    const char *p = text;
    uint64_t v = 0;
    if (!read_decimal(&p, &v) || *p != '\0' || v < min || v > max)
        return err_set(d, ERR_INVALID, "%s: '%s' is not a whole number from %" PRIu64 " to %" PRIu64, what,
                       text, min, max);
    *out = v;
    return ERR_OK;
}

static uint64_t unit_ns(const char *unit)
{
    static const struct {
        const char *name;
        uint64_t ns;
    } units[] = {{"ns", 1},       {"us", NS_PER_US},    {"ms", NS_PER_MS},
                 {"s", NS_PER_S}, {"m", 60 * NS_PER_S}, {"h", 3600 * NS_PER_S}};
    for (size_t i = 0; i < ARRAY_LEN(units); i++)
        if (strcmp(unit, units[i].name) == 0)
            return units[i].ns;
    return 0;
}

enum err parse_duration(const char *text, uint64_t *out_ns, const char *what, struct err_detail *d)
{
    const char *p = text;
    uint64_t whole = 0;
    uint64_t fraction = 0;
    uint64_t scale = 1;
    bool ok = read_decimal(&p, &whole);
    if (ok && *p == '.') {
        p++;
        ok = isdigit((unsigned char)*p);
        for (; isdigit((unsigned char)*p); p++) {
            if (scale >= NS_PER_S)
                continue; /* finer than a nanosecond */
            fraction = fraction * 10 + (uint64_t)(*p - '0');
            scale *= 10;
        }
    }
    uint64_t unit = ok && strcmp(p, "") == 0 && whole == 0 && scale == 1 ? 1 : unit_ns(p);
    if (!ok || unit == 0)
        return err_set(d, ERR_INVALID,
                       "%s: '%s' is not a duration: write a number and a unit (us, ms, s, m, h), "
                       "like 10s or 250ms",
                       what, text);
    if (whole > LIMIT_DURATION_NS / unit)
        return err_set(d, ERR_INVALID, "%s: '%s' is longer than 1000h", what, text);
    uint64_t ns = whole * unit + (uint64_t)((unsigned __int128)fraction * unit / scale);
    if (ns > LIMIT_DURATION_NS)
        return err_set(d, ERR_INVALID, "%s: '%s' is longer than 1000h", what, text);
    *out_ns = ns;
    return ERR_OK;
}

enum err parse_cpus(const char *text, cpu_set_t *out, const char *what, struct err_detail *d)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    const char *p = text;
    for (;;) {
        uint64_t first = 0;
        uint64_t last = 0;
        if (!read_decimal(&p, &first))
            break;
        last = first;
        if (*p == '-') {
            p++;
            if (!read_decimal(&p, &last))
                break;
        }
        if (last < first || last >= CPU_SETSIZE)
            break;
        for (uint64_t c = first; c <= last; c++)
            CPU_SET((size_t)c, &set);
        if (*p == '\0') {
            *out = set;
            return ERR_OK;
        }
        if (*p++ != ',')
            break;
    }
    return err_set(d, ERR_INVALID, "%s: '%s' is not a list of CPUs like 0-3,8", what, text);
}

const char *parse_cpus_text(const cpu_set_t *set, char *out, size_t size)
{
    size_t len = 0;
    must(size > 0);
    out[0] = '\0';
    for (size_t c = 0; c < CPU_SETSIZE; c++) {
        if (!CPU_ISSET(c, set))
            continue;
        size_t last = c;
        while (last + 1 < CPU_SETSIZE && CPU_ISSET(last + 1, set))
            last++;
        int n = last > c ? snprintf(out + len, size - len, "%s%zu-%zu", len != 0 ? "," : "", c, last)
                         : snprintf(out + len, size - len, "%s%zu", len != 0 ? "," : "", c);
        if (n < 0 || (size_t)n >= size - len)
            return out;
        len += (size_t)n;
        c = last;
    }
    return out;
}

const char *parse_duration_text(uint64_t ns, char *out, size_t size)
{
    uint64_t s = (ns + NS_PER_S / 2) / NS_PER_S;
    if (ns == 0)
        snprintf(out, size, "0s");
    else if (ns < NS_PER_MS)
        snprintf(out, size, "%" PRIu64 "us", ns / NS_PER_US);
    else if (ns < NS_PER_S)
        snprintf(out, size, "%" PRIu64 "ms", ns / NS_PER_MS);
    else if (ns < 10 * NS_PER_S && ns % NS_PER_S != 0)
        snprintf(out, size, "%.2fs", (double)ns / (double)NS_PER_S);
    else if (s < 120)
        snprintf(out, size, "%" PRIu64 "s", s);
    else if (s < 3600)
        snprintf(out, size, "%" PRIu64 "m%02" PRIu64 "s", s / 60, s % 60);
    else
        snprintf(out, size, "%" PRIu64 "h%02" PRIu64 "m", s / 3600, s / 60 % 60);
    return out;
}

/* Edits from one word to the other: a letter more, less or changed, or two neighbours swapped. Words are cut
 * off at WORD_BYTES_MAX bytes. */
static size_t distance(const char *a, const char *b)
{
    size_t la = strnlen(a, WORD_BYTES_MAX);
    size_t lb = strnlen(b, WORD_BYTES_MAX);
    size_t rows[3][WORD_BYTES_MAX + 1]; /* of the letters i - 2, i - 1 and i, in turn */
    for (size_t j = 0; j <= lb; j++)
        rows[0][j] = j;
    for (size_t i = 1; i <= la; i++) {
        size_t *row = rows[i % 3];
        const size_t *above = rows[(i + 2) % 3];
        const size_t *second = rows[(i + 1) % 3];
        row[0] = i;
        for (size_t j = 1; j <= lb; j++) {
            size_t best = above[j - 1] + (a[i - 1] != b[j - 1]);
            if (above[j] + 1 < best)
                best = above[j] + 1;
            if (row[j - 1] + 1 < best)
                best = row[j - 1] + 1;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && second[j - 2] + 1 < best)
                best = second[j - 2] + 1;
            row[j] = best;
        }
    }
    return rows[la % 3][lb];
}

const char *parse_closest(const char *word, const char *const *candidates, size_t count)
{
    const char *best = NULL;
    size_t best_distance = (strlen(word) + 1) / 3 + 1; /* one slip in three letters, no more */
    for (size_t i = 0; i < count; i++) {
        size_t n = distance(word, candidates[i]);
        if (n < best_distance) {
            best_distance = n;
            best = candidates[i];
        }
    }
    return best;
}
