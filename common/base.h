#ifndef COMMON_BASE_H
#define COMMON_BASE_H
/*
 * The few words every file uses: attributes, the always-on assertion, array length.
 * Owns nothing; any thread.
 */
#include "common/banned.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NODISCARD               __attribute__((warn_unused_result))
#define NORETURN                _Noreturn
#define PRINTF_LIKE(fmt, first) __attribute__((format(printf, fmt, first)))
#define ARRAY_LEN(a)            (sizeof(a) / sizeof((a)[0]))
/* The place of `field` in struct `of`; does not compile unless it has this type. */
#define TYPED_OFFSET(of, field, type)                                                                        \
    (offsetof(of, field) +                                                                                   \
     0 * sizeof(char[__builtin_types_compatible_p(__typeof__(((of *)0)->field), type) ? 1 : -1]))
#define CONTAINER_OF(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))

/*
 * Checks what only our own bug can break; never bytes, files or flags from outside.
 * Always compiled in: a wrong number is worse than a dead process.
 */
#define must(cond) ((cond) ? (void)0 : must_failed(#cond, __FILE__, __LINE__))
/* The same for a place that nothing may reach; `what` is a literal that says what came there. */
#define must_never(what) must_failed("never: " what, __FILE__, __LINE__)
NORETURN void must_failed(const char *cond, const char *file, int line);

#endif
