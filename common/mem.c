#include "common/mem.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *checked(void *p)
{
    if (p == NULL) {
        fputs("out of memory\n", stderr);
        abort();
    }
    return p;
}

void *mem_alloc(size_t size)
{
    return checked(malloc(size != 0 ? size : 1));
}

void *mem_zalloc(size_t count, size_t size)
{
    return checked(calloc(count != 0 ? count : 1, size != 0 ? size : 1));
}

void *mem_realloc(void *old, size_t count, size_t size)
{
    must(size == 0 || count <= SIZE_MAX / size);
    size_t total = count * size;
    return checked(realloc(old, total != 0 ? total : 1));
}

char *mem_strdup(const char *text)
{
    return checked(strdup(text));
}

char *mem_strndup(const char *text, size_t len)
{
    return checked(strndup(text, len));
}

void *mem_dup(const void *data, size_t len)
{
    void *copy = mem_alloc(len);
    if (len != 0)
        memcpy(copy, data, len);
    return copy;
}

char *mem_vprintf(const char *fmt, va_list ap)
{
    char *text = NULL;
    return checked(vasprintf(&text, fmt, ap) < 0 ? NULL : text);
}

char *mem_printf(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    char *text = mem_vprintf(fmt, ap);
    va_end(ap);
    return text;
}

void mem_set_string(char **slot, const char *text)
{
    char *copy = text != NULL ? mem_strdup(text) : NULL;
    free(*slot);
    *slot = copy;
}

void mem_free_strings(char ***strings, size_t *count)
{
    for (size_t i = 0; *strings != NULL && i < *count; i++)
        free((*strings)[i]);
    free(*strings);
    *strings = NULL;
    *count = 0;
}
