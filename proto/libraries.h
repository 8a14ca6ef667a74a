#ifndef PROTO_LIBRARIES_H
#define PROTO_LIBRARIES_H
/*
 * The libraries behind the wire, which only proto/ knows, for common/libraries.h. No state; any thread.
 */
#include "common/libraries.h"

#define PROTO_LIBRARIES_MAX 3u

/* Fills `out`, returns how many. nng's TLS is a library of its own where nng brings one. */
size_t proto_libraries(struct library out[PROTO_LIBRARIES_MAX]);

#endif
