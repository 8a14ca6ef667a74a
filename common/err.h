#ifndef COMMON_ERR_H
#define COMMON_ERR_H
/*
 * One small set of error codes, each of which a caller treats differently, and the human detail beside it.
 * Foreign codes (errno, nng, uv, OpenSSL, SQLite) become ours where the foreign call was made.
 */
#include "common/base.h"

#define ERR_LIST(X)                                                                                          \
    X(OK, "ok")                                                                                              \
    X(INVALID, "invalid input")                                                                              \
    X(TOO_BIG, "over a limit")                                                                               \
    X(NOT_NOW, "not allowed now")                                                                            \
    X(NOT_FOUND, "not found")                                                                                \
    X(EXISTS, "exists already")                                                                              \
    X(DENIED, "not permitted")                                                                               \
    X(IO, "input or output failed")                                                                          \
    X(FULL, "no space left")                                                                                 \
    X(TIMEOUT, "took too long")                                                                              \
    X(UNREACHABLE, "cannot be reached")                                                                      \
    X(CLOSED, "closed by the other side")                                                                    \
    X(CANCELLED, "cancelled")                                                                                \
    X(BUSY, "in use")                                                                                        \
    X(UNSUPPORTED, "not supported here")                                                                     \
    X(FAILED, "failed")

enum err {
#define X(name, text) ERR_##name,
    ERR_LIST(X)
#undef X
        ERR_COUNT
};

/* What went wrong, where, and what to do: one sentence for a person. Written only on failure. */
struct err_detail {
    char text[1024];
};

/* Static text of a code; "unknown error" outside the range. */
const char *err_text(enum err e);

/* Fills `d` (may be NULL) and returns `e`, so that a failure is one line: `return err_set(d, ERR_IO, ...)`.
 */
enum err err_set(struct err_detail *d, enum err e, const char *fmt, ...) PRINTF_LIKE(3, 4);

/* Puts "context: " before the text already in `d` (may be NULL) and returns `e`. */
enum err err_prefix(struct err_detail *d, enum err e, const char *fmt, ...) PRINTF_LIKE(3, 4);

/* Our code for an errno value. */
enum err err_from_errno(int errnum);

#endif
