#include "controller/report/units.h"

#include <math.h>
#include <stdio.h>

static const char *unknown(char *out)
{
    snprintf(out, UNITS_TEXT_BYTES, "-");
    return out;
}

/* The largest value that still prints below 1000 with `digits` significant ones. */
static double below_thousand(int digits)
{
    return digits <= 3 ? 999.5 : 1000 - 0.5 * pow(10, 3 - digits);
}

/* In the largest unit that leaves it below `step`, with `digits` significant ones. */
static const char *with_prefix(double v, int digits, double step, const char *const *units, size_t count,
                               char *out)
{
    size_t i = 0;
    if (!isfinite(v) || v < 0)
        return unknown(out);
    double limit = step < 1024 ? below_thousand(digits) : 1023.5;
    while (i + 1 < count && v >= limit) {
        v /= step;
        i++;
    }
    int whole = v >= 100 ? 3 : v >= 10 ? 2 : 1;
    int decimals = v < 1000 && digits > whole ? digits - whole : 0;
    snprintf(out, UNITS_TEXT_BYTES, "%.*f%s", decimals, v, units[i]);
    return out;
}

const char *units_rate(double per_s, int digits, char *out)
{
    static const char *const units[] = {"", "k", "M", "G"};
    return with_prefix(per_s, digits, 1000, units, ARRAY_LEN(units), out);
}

const char *units_time(double ns, char *out)
{
    static const char *const units[] = {"ns", "us", "ms", "s"};
    return with_prefix(ns, ns < 999.5 ? 1 : 3, 1000, units, ARRAY_LEN(units), out);
}

const char *units_bytes(double bytes, char *out)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    return with_prefix(bytes, bytes < 1023.5 ? 1 : 3, 1024, units, ARRAY_LEN(units), out);
}

const char *units_percent(double fraction, bool sign, char *out)
{
    if (!isfinite(fraction))
        return unknown(out);
    double percent = 100 * fraction;
    if (fabs(percent) < 0.05) /* no "-0.0%" */
        percent = 0;
    snprintf(out, UNITS_TEXT_BYTES, sign ? "%+.1f%%" : "%.1f%%", percent);
    return out;
}

const char *units_cores(double cores, char *out)
{
    if (!isfinite(cores) || cores < 0)
        return unknown(out);
    snprintf(out, UNITS_TEXT_BYTES, cores < 99.995 ? "%.2f" : "%.0f", cores);
    return out;
}

const char *units_plural(uint64_t n)
{
    return n == 1 ? "" : "s";
}
