#ifndef COMMON_BUF_H
#define COMMON_BUF_H
/*
 * A growing byte buffer with a declared maximum, always NUL-terminated after its first append.
 * Owned by whoever embeds it; one thread at a time.
 */
#include "common/err.h"

struct buf {
    char *data; /* NULL until the first append */
    size_t len;
    size_t cap;
    size_t max; /* appends that would pass it are refused whole */
};

void buf_init(struct buf *b, size_t max);
void buf_fini(struct buf *b); /* safe on a zeroed struct and twice */
void buf_clear(struct buf *b);

/* ERR_TOO_BIG when the result would pass `max`; the buffer is unchanged then. */
NODISCARD enum err buf_append(struct buf *b, const void *data, size_t len);
NODISCARD enum err buf_append_text(struct buf *b, const char *text);
NODISCARD enum err buf_printf(struct buf *b, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* Drops the first `len` bytes. */
void buf_consume(struct buf *b, size_t len);

/* Moves the bytes out: the caller frees them; the buffer is empty again. Never NULL. */
char *buf_take(struct buf *b);

#endif
