#include "proto/libraries.h"

#include <dlfcn.h>
#include <nng/nng.h>
#include <protobuf-c/protobuf-c.h>
#include <stdio.h>
#include <string.h>

/*
 * The TLS under nng. nng_tls_engine_description() tells what nng was built with; what runs is asked of Mbed
 * TLS itself, which nng loads and we neither include nor link. An nng with another engine has no such symbol.
 */
static const char *mbedtls_version(void)
{
    static char text[32];
    void *symbol = dlsym(RTLD_DEFAULT, "mbedtls_version_get_number");
    unsigned (*get_number)(void);
    if (symbol == NULL)
        return NULL;
    memcpy(&get_number, &symbol, sizeof get_number); /* ISO C has no cast from an object to a function */
    unsigned n = get_number();                       /* 0xMMNNPP00: mbedtls/version.h */
    snprintf(text, sizeof text, "%u.%u.%u", n >> 24, n >> 16 & 0xff, n >> 8 & 0xff);
    return text;
}

size_t proto_libraries(struct library out[PROTO_LIBRARIES_MAX])
{
    size_t count = 0;
    const char *tls = mbedtls_version();
    out[count++] = (struct library){"nng", nng_version()};
    if (tls != NULL)
        out[count++] = (struct library){"Mbed TLS", tls};
    out[count++] = (struct library){"protobuf-c", protobuf_c_version()};
    return count;
}
