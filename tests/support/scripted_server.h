#ifndef TESTS_SUPPORT_SCRIPTED_SERVER_H
#define TESTS_SUPPORT_SCRIPTED_SERVER_H
/*
 * A TCP server on 127.0.0.1 that answers every request with the same bytes, right or wrong. Owned by the
 * test; lives on the test's loop.
 */
#include "common/base.h"

#include <uv.h>

struct scripted_server;

struct script {
    const char *answer; /* borrowed; NULL = says nothing and keeps the connection open */
    size_t len;         /* 0 = strlen(answer) */
    bool close_after;   /* the connection ends with the answer */
    bool reset;         /* ... by RST */
};

struct scripted_server *scripted_server_new(uv_loop_t *loop, const struct script *script);
/* Ends listener and connections; run the loop to its end before it is freed for good. */
void scripted_server_free(struct scripted_server *s);

uint16_t scripted_server_port(const struct scripted_server *s);

/* All bytes of the requests that came, in order. Borrowed. */
const char *scripted_server_requests(const struct scripted_server *s);

#endif
