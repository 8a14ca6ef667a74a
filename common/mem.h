#ifndef COMMON_MEM_H
#define COMMON_MEM_H
/*
 * Heap memory that is never NULL: the process ends when memory is gone. Sizes from outside are capped
 * (common/limits.h) before they come here. Free with free(). Any thread.
 */
#include "common/base.h"

#include <stdarg.h>

void *mem_alloc(size_t size);
void *mem_zalloc(size_t count, size_t size);
void *mem_realloc(void *old, size_t count, size_t size);
char *mem_strdup(const char *text);
char *mem_strndup(const char *text, size_t len);
void *mem_dup(const void *data, size_t len);
char *mem_printf(const char *fmt, ...) PRINTF_LIKE(1, 2);
char *mem_vprintf(const char *fmt, va_list ap) PRINTF_LIKE(1, 0);

/* Replaces the owned string `*slot` by a copy of `text` (NULL allowed). */
void mem_set_string(char **slot, const char *text);

/* Frees `count` owned strings and the array, NULLs and zeroes the caller's. */
void mem_free_strings(char ***strings, size_t *count);

#endif
