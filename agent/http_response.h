#ifndef AGENT_HTTP_RESPONSE_H
#define AGENT_HTTP_RESPONSE_H
/*
 * One HTTP/1.x response read strictly from a stream of bytes (RFC 9112): what is not framed beyond doubt is
 * an error, never a guess. Owned by whoever embeds it; one thread at a time.
 *
 * Refused: bare LF, folded headers, blanks before a colon, control characters, two Content-Lengths, a
 * Content-Length beside Transfer-Encoding, codings other than one "chunked", 101, bytes after the end.
 */
#include "common/buf.h"
#include "proto/msg.h"

#define HTTP_RESPONSE_HEAD_BYTES_MAX (64u * 1024u) /* all heads, chunk lines and trailers of one response */

enum http_response_state {
    HTTP_RESPONSE_STATUS,
    HTTP_RESPONSE_HEADER,
    HTTP_RESPONSE_COUNTED,
    HTTP_RESPONSE_UNTIL_CLOSE,
    HTTP_RESPONSE_CHUNK_SIZE,
    HTTP_RESPONSE_CHUNK_DATA,
    HTTP_RESPONSE_CHUNK_END,
    HTTP_RESPONSE_TRAILER,
    HTTP_RESPONSE_DONE
};

struct http_response {
    enum http_response_state state;
    bool to_head_request;       /* the answer to HEAD has no body whatever it says */
    uint32_t version_minor;     /* HTTP/1.0 or 1.1 */
    uint32_t status;            /* of the final response, 0 before */
    struct msg_headers headers; /* names in lower case, values without blanks around them */
    struct buf body;            /* the first `body_keep_max` bytes, decoded */
    size_t body_keep_max;
    uint64_t body_bytes; /* all of them, kept or not */
    /* inside */
    struct buf line;
    size_t head_bytes;
    uint64_t left; /* of the counted body or of the chunk */
};

void http_response_init(struct http_response *r, bool to_head_request, size_t body_keep_max);
void http_response_fini(struct http_response *r);

/* Takes the next bytes. ERR_INVALID or ERR_TOO_BIG with the reason; the response is of no use then. */
NODISCARD enum err http_response_feed(struct http_response *r, const char *data, size_t len,
                                      struct err_detail *d);

/* The peer has closed: the end of a close-delimited body, ERR_CLOSED anywhere else before the end. */
NODISCARD enum err http_response_end(struct http_response *r, struct err_detail *d);

bool http_response_has_head(const struct http_response *r);
bool http_response_is_done(const struct http_response *r);

/* Whether `len` bytes are an RFC 9110 token (method and header names). */
bool http_is_token(const char *text, size_t len);

#endif
