#ifndef COMMON_LOG_H
#define COMMON_LOG_H
/*
 * One line per event on standard error: `time level event key=value ...`. Called by programs (agent/,
 * controller/), never by common/ or proto/: an error is logged once, where it is handled. Any thread.
 */
#include "common/base.h"

enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };

/* Lines above `level` are dropped. The default is LOG_INFO. Set once, before threads start. */
void log_set_level(enum log_level level);

/* `fmt` gives the key=value pairs, or "" for none. Quote text that may hold blanks: key="%s". */
void log_line(enum log_level level, const char *event, const char *fmt, ...) PRINTF_LIKE(3, 4);

#define log_error(...) log_line(LOG_ERROR, __VA_ARGS__)
#define log_warn(...)  log_line(LOG_WARN, __VA_ARGS__)
#define log_info(...)  log_line(LOG_INFO, __VA_ARGS__)
#define log_debug(...) log_line(LOG_DEBUG, __VA_ARGS__)

#endif
