#ifndef COMMON_LIBRARIES_H
#define COMMON_LIBRARIES_H
/*
 * The libraries that run in this process and the versions they say they are: asked of the loaded library, not
 * taken from the header we were built with, so an upgrade below us is seen. No state; the main thread (one of
 * the libraries answers from a buffer of its own).
 */
#include "common/base.h"

#define LIBRARIES_TEXT_BYTES 256u /* what the wire takes of the whole list */

struct library {
    const char *name;
    const char *version; /* lives as long as the process */
};

/* "nng 1.5.2, libuv 1.44.2, ...": `own`, then what every program of ours links. Caller frees. */
char *libraries_text(const struct library *own, size_t count);

/* What --version prints: "PROGRAM VERSION", which scripts read, then a library a line. */
void libraries_print_version(const char *program, const struct library *own, size_t count);

#endif
