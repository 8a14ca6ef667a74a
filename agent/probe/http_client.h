#ifndef AGENT_PROBE_HTTP_CLIENT_H
#define AGENT_PROBE_HTTP_CLIENT_H
/*
 * One HTTP/1.1 exchange on a connection of its own, for probes and checks; the load generator has its own,
 * faster one. Frees itself after its callback, which runs exactly once, never inside http_client_start.
 * Everything on the agent's loop.
 */
#include "agent/probe/http_response.h"

#include <uv.h>

struct http_client;

enum http_client_until { /* how much of the exchange is wanted */
                         HTTP_CLIENT_UNTIL_CONNECTED,
                         HTTP_CLIENT_UNTIL_HEAD,
                         HTTP_CLIENT_UNTIL_END
};

struct http_client_result {
    enum err e; /* ERR_TIMEOUT, ERR_UNREACHABLE, ERR_CLOSED, ERR_INVALID (not HTTP), ERR_CANCELLED, ... */
    struct err_detail d;
    uint64_t ended_at_ns;                 /* when the wanted part was there, or the failure was known */
    uint64_t took_ns;                     /* from http_client_start */
    const struct http_response *response; /* as far as it came; borrowed for the call */
};
typedef void http_client_cb(void *arg, const struct http_client_result *result);

struct http_client_options {
    uv_loop_t *loop;
    const char *host; /* a name or an address, IPv6 without brackets */
    uint16_t port;
    const char *method;
    const char *path;                  /* "/..." */
    const struct msg_headers *headers; /* may be NULL; no Content-Length, no Transfer-Encoding */
    const void *body;
    size_t body_len;
    size_t body_keep_max; /* of the answer; the rest is counted */
    uint64_t timeout_ns;  /* of the whole exchange */
    enum http_client_until until;
    http_client_cb *cb;
    void *arg;
};

/* The request is copied. ERR_INVALID for what must not be put on a wire (then `cb` never runs). */
NODISCARD enum err http_client_start(const struct http_client_options *options, struct http_client **out,
                                     struct err_detail *d);

/* The callback comes soon, with ERR_CANCELLED unless an end was already reached. Not after the callback. */
void http_client_cancel(struct http_client *client);

/* For the test of every pair, see common/machine.h. */
bool http_client_permits(unsigned state, unsigned event);

#endif
