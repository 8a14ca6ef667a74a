#include "common/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

const char *err_text(enum err e)
{
    static const char *const text[] = {
#define X(name, t) [ERR_##name] = t,
        ERR_LIST(X)
#undef X
    };
    return (unsigned)e < ERR_COUNT ? text[e] : "unknown error";
}

enum err err_set(struct err_detail *d, enum err e, const char *fmt, ...)
{
    if (d != NULL) {
        va_list ap;
        va_start(ap, fmt);
        vsnprintf(d->text, sizeof d->text, fmt, ap);
        va_end(ap);
    }
    return e;
}

enum err err_prefix(struct err_detail *d, enum err e, const char *fmt, ...)
{
    if (d == NULL)
        return e;
    struct err_detail old = *d;
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(d->text, sizeof d->text, fmt, ap);
    va_end(ap);
    if (n >= 0 && (size_t)n < sizeof d->text) {
        /* Cut on purpose when both together do not fit. */
        int cut = (int)(sizeof d->text - (size_t)n) - 3;
        snprintf(d->text + n, sizeof d->text - (size_t)n, ": %.*s", cut > 0 ? cut : 0, old.text);
    }
    return e;
}

enum err err_from_errno(int errnum)
{
    switch (errnum) {
    case 0:
        return ERR_OK;
    case ENOENT:
    case ENOTDIR:
    case ESRCH:
        return ERR_NOT_FOUND;
    case EEXIST:
        return ERR_EXISTS;
    case EACCES:
    case EPERM:
        return ERR_DENIED;
    case ENOSPC:
    case EDQUOT:
        return ERR_FULL;
    case ETIMEDOUT:
        return ERR_TIMEOUT;
    case ECONNREFUSED:
    case EHOSTUNREACH:
    case ENETUNREACH:
        return ERR_UNREACHABLE;
    case EPIPE:
    case ECONNRESET:
        return ERR_CLOSED;
    case EADDRINUSE:
    case EBUSY:
        return ERR_BUSY;
    case EINVAL:
        return ERR_INVALID;
    case E2BIG:
    case EFBIG:
    case ENAMETOOLONG:
        return ERR_TOO_BIG;
    default:
        return ERR_IO;
    }
}
