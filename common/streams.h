#ifndef COMMON_STREAMS_H
#define COMMON_STREAMS_H
/*
 * The three standard streams of a program. One that was closed by who started us would give its number to
 * the next file that is opened, and what is printed would go into that file: a lock, a database, a
 * connection. Owns nothing; main's thread, before others are started and after they have ended.
 */
#include "common/base.h"

/* First thing in main: a standard descriptor that is closed becomes one that refuses to be used. */
void streams_init(void);

/* Last thing in main: what was printed is out, or `code` 0 becomes `failed` and standard error says why. */
NODISCARD int streams_end(const char *program, int code, int failed);

#endif
