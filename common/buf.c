#include "common/buf.h"

#include "common/mem.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void buf_init(struct buf *b, size_t max)
{
    *b = (struct buf){.max = max};
}

void buf_fini(struct buf *b)
{
    free(b->data);
    *b = (struct buf){.max = b->max};
}

void buf_clear(struct buf *b)
{
    b->len = 0;
    if (b->data != NULL)
        b->data[0] = '\0';
}

static enum err reserve(struct buf *b, size_t more)
{
    if (more > b->max || b->len > b->max - more)
        return ERR_TOO_BIG;
    size_t need = b->len + more + 1;
    if (need <= b->cap)
        return ERR_OK;
    size_t cap = b->cap != 0 ? b->cap : 256;
    while (cap < need)
        cap *= 2;
    b->data = mem_realloc(b->data, cap, 1);
    b->cap = cap;
    return ERR_OK;
}

enum err buf_append(struct buf *b, const void *data, size_t len)
{
    enum err e = reserve(b, len);
    if (e != ERR_OK)
        return e;
    if (len != 0)
        memcpy(b->data + b->len, data, len);
    b->len += len;
    b->data[b->len] = '\0';
    return ERR_OK;
}

enum err buf_append_text(struct buf *b, const char *text)
{
    return buf_append(b, text, strlen(text));
}

enum err buf_printf(struct buf *b, const char *fmt, ...)
{
    va_list ap;
    va_list again;
    va_start(ap, fmt);
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    enum err e = n < 0 ? ERR_INVALID : reserve(b, (size_t)n);
    if (e == ERR_OK) {
        vsnprintf(b->data + b->len, (size_t)n + 1, fmt, again);
        b->len += (size_t)n;
    }
    va_end(again);
    return e;
}

void buf_consume(struct buf *b, size_t len)
{
    must(len <= b->len);
    if (len == 0)
        return;
    memmove(b->data, b->data + len, b->len - len + 1);
    b->len -= len;
}

char *buf_take(struct buf *b)
{
    char *data = b->data != NULL ? b->data : mem_strdup("");
    *b = (struct buf){.max = b->max};
    return data;
}
