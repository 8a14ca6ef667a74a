#include "common/log.h"

#include "common/clock.h"
#include "common/utf8.h"

#include <stdarg.h>
#include <stdio.h>

static enum log_level level_max = LOG_INFO;

void log_set_level(enum log_level level)
{
    level_max = level;
}

void log_line(enum log_level level, const char *event, const char *fmt, ...)
{
    static const char *const names[] = {"error", "warn", "info", "debug"};
    if (level > level_max)
        return;
    char when[CLOCK_TEXT_BYTES];
    char pairs[2048];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(pairs, sizeof pairs, fmt, ap);
    va_end(ap);
    utf8_clean(pairs, ""); /* a peer's text must not forge lines or drive the terminal */
    fprintf(stderr, "%s %s %s%s%s\n", clock_wall_text(clock_wall_ns(), when), names[level], event,
            pairs[0] != '\0' ? " " : "", pairs);
}
