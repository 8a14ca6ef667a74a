#include "common/libraries.h"

#include "common/json.h"
#include "common/mem.h"

#include <gnu/libc-version.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <string.h>
#include <uv.h>
#include <zlib.h>

enum { SHARED_COUNT = 5 };

static void list_shared(struct library out[SHARED_COUNT])
{
    const struct library shared[SHARED_COUNT] = {
        {"libuv", uv_version_string()},    {"OpenSSL", OpenSSL_version(OPENSSL_VERSION_STRING)},
        {"cJSON", json_library_version()}, {"zlib", zlibVersion()},
        {"glibc", gnu_get_libc_version()},
    };
    memcpy(out, shared, sizeof shared);
}

static void add(char *text, const struct library *list, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        size_t at = strlen(text);
        snprintf(text + at, LIBRARIES_TEXT_BYTES - at, "%s%s %s", at != 0 ? ", " : "", list[i].name,
                 list[i].version);
    }
}

char *libraries_text(const struct library *own, size_t count)
{
    struct library shared[SHARED_COUNT];
    char text[LIBRARIES_TEXT_BYTES] = ""; /* a list that is too long is cut */
    list_shared(shared);
    add(text, own, count);
    add(text, shared, SHARED_COUNT);
    return mem_strdup(text);
}

static void print(const struct library *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        printf("  %s %s\n", list[i].name, list[i].version);
}

void libraries_print_version(const char *program, const struct library *own, size_t count)
{
    struct library shared[SHARED_COUNT];
    list_shared(shared);
    printf("%s %s\n", program, SPLITBENCH_BUILD);
    print(own, count);
    print(shared, SHARED_COUNT);
}
