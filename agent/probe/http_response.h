#ifndef AGENT_PROBE_HTTP_RESPONSE_H
#define AGENT_PROBE_HTTP_RESPONSE_H
/*
 * One HTTP/1.x response, kept: status, headers and the beginning of its body. Framing is common/response.h's.
 * Owned by whoever embeds it; one thread at a time.
 */
#include "common/buf.h"
#include "common/response.h"
#include "proto/msg/msg.h"

struct http_response {
    struct response framing;    /* status, lengths, where it stands */
    struct msg_headers headers; /* names in lower case, values without blanks around them */
    struct buf body;            /* the first `body_keep_max` bytes, decoded */
    size_t body_keep_max;
    bool headers_too_many;
};

void http_response_init(struct http_response *r, bool to_head_request, size_t body_keep_max);
void http_response_fini(struct http_response *r);

/* Takes the next bytes; bytes after the end are an error. ERR_INVALID, or ERR_TOO_BIG for a head over 64 KiB
 * or more than LIMIT_HEADERS headers, with the reason; the response is of no use then. */
NODISCARD enum err http_response_feed(struct http_response *r, const char *data, size_t len,
                                      struct err_detail *d);

/* The peer has closed: the end of a close-delimited body, ERR_CLOSED anywhere else before the end. */
NODISCARD enum err http_response_end(struct http_response *r, struct err_detail *d);

bool http_response_has_head(const struct http_response *r);
bool http_response_is_done(const struct http_response *r);

#endif
