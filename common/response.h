#ifndef COMMON_RESPONSE_H
#define COMMON_RESPONSE_H
/*
 * HTTP/1.x response framing, strict and incremental (RFC 9112 sections 4 to 7 and 9.3): where an answer
 * begins and ends, its status, and whether the connection lives on. Nothing is kept: a sink may look at head
 * and body as they come. One reader per connection; one thread.
 */
#include "common/buf.h"
#include "common/err.h"

/* Status line and headers of one response; servers cap requests at 8 to 32 KiB, few answers come near. */
#define RESPONSE_HEAD_BYTES_MAX (64u * 1024u)
/* Interim (1xx) answers before one final answer. */
#define RESPONSE_INTERIM_MAX 16u
/* One chunk-size line with its extensions; all trailers together. */
#define RESPONSE_CHUNK_LINE_BYTES_MAX 4096u
#define RESPONSE_TRAILER_BYTES_MAX    (16u * 1024u)

#define RESPONSE_FAULTS(X)                                                                                   \
    X(NONE, "")                                                                                              \
    X(STATUS_LINE, "the status line is not HTTP/1.x")                                                        \
    X(HEADER_LINE, "a header line is malformed")                                                             \
    X(FOLDING, "a header line is folded, which is obsolete and refused")                                     \
    X(BARE_LF, "a line ends in LF without CR")                                                               \
    X(LENGTH_VALUE, "Content-Length is not a number")                                                        \
    X(LENGTH_CONFLICT, "Content-Length is given twice")                                                      \
    X(LENGTH_AND_CHUNKED, "Content-Length and Transfer-Encoding are both given")                             \
    X(CODING, "Transfer-Encoding is not 'chunked'")                                                          \
    X(CODING_HTTP10, "an HTTP/1.0 answer uses Transfer-Encoding")                                            \
    X(CHUNK_SIZE, "a chunk size is malformed")                                                               \
    X(CHUNK_END, "a chunk does not end in CRLF")                                                             \
    X(SWITCHING, "the server switches protocols (101), which was not asked for")                             \
    X(HEAD_TOO_BIG, "status line and headers exceed 64 KiB")                                                 \
    X(CHUNK_LINE_TOO_BIG, "a chunk-size line exceeds 4 KiB")                                                 \
    X(TRAILER_TOO_BIG, "trailers exceed 16 KiB")                                                             \
    X(INTERIM_TOO_MANY, "more than 16 interim (1xx) answers")                                                \
    X(CLOSED_IN_HEAD, "the connection ended inside status line or headers")                                  \
    X(CLOSED_IN_BODY, "the connection ended before the whole body had come")

enum response_fault {
#define X(name, text) RESPONSE_##name,
    RESPONSE_FAULTS(X)
#undef X
};

/* What a head says: the result of response_head_parse. */
struct response_head {
    uint16_t status;
    bool keep_alive;
    bool chunked;
    bool has_length;
    uint64_t length;
};

enum response_state {
    RESPONSE_AT_HEAD,
    RESPONSE_IN_LENGTH,
    RESPONSE_IN_CHUNK_SIZE,
    RESPONSE_IN_CHUNK_EXTENSION,
    RESPONSE_AT_CHUNK_SIZE_LF,
    RESPONSE_IN_CHUNK,
    RESPONSE_AT_CHUNK_CR,
    RESPONSE_AT_CHUNK_LF,
    RESPONSE_IN_TRAILER,
    RESPONSE_UNTIL_CLOSE,
    RESPONSE_DONE,
};

/* Who wants to see what is read; either call may be NULL. */
struct response_sink {
    void *arg;
    /* The final head, whole and well formed, its empty line included. */
    void (*on_head)(void *arg, const uint8_t *head, size_t len);
    /* Body bytes as they come, without chunk framing. */
    void (*on_body)(void *arg, const uint8_t *data, size_t len);
};

struct response {
    uint8_t state; /* enum response_state */
    uint8_t fault; /* enum response_fault */
    uint8_t interim_count;
    bool to_head; /* the request was HEAD */
    bool keep_alive;
    bool chunk_has_digit;
    bool after_cr;        /* in a trailer: the last byte was CR */
    bool named;           /* in a trailer: the line has had its colon */
    uint16_t status;      /* 0 until the final head is read */
    uint16_t line_len;    /* of the chunk-size or trailer line being read */
    uint16_t trailer_len; /* of all trailers */
    uint64_t remaining;   /* of the body (length) or of the chunk */
    uint64_t body_len;    /* body bytes so far, without chunk framing */
    uint64_t length;      /* Content-Length, UINT64_MAX when not given */
    struct buf *partial;  /* the head so far when it came in pieces; NULL most of the time */
};

/* Before each request. Keeps nothing of the last response. */
void response_init(struct response *r, bool to_head);
void response_fini(struct response *r);

/* Eats what belongs to this response and returns how many bytes that was; the rest is surplus. Look at
 * `state` (RESPONSE_DONE) and `fault` afterwards; after a fault nothing more may be fed. `sink` may be NULL.
 */
size_t response_feed(struct response *r, const uint8_t *data, size_t len, const struct response_sink *sink);

/* In place of feeding a head that is known already: as if `h` had just been read. */
void response_begin(struct response *r, const struct response_head *h);

/* `len` bytes of a body with a length were read and thrown away. */
void response_skip(struct response *r, uint64_t len);

/* The peer closed: completes a close-delimited body, is a fault anywhere else. */
void response_end(struct response *r);

/* Reads one complete head (including the empty line). RESPONSE_NONE and `*out`, or what is wrong. */
enum response_fault response_head_parse(const uint8_t *head, size_t len, struct response_head *out);

/* The length of the head at the start of `data`, including its empty line, or 0 when it is not whole. */
size_t response_head_len(const uint8_t *data, size_t len);

const char *response_fault_text(enum response_fault f);

/* The next header line of a well-formed head: `*at` starts at 0 and moves on. False after the last. The spans
 * are borrowed from `head`; the value has no blanks around it. */
struct response_header {
    const char *name;
    size_t name_len;
    const char *value;
    size_t value_len;
};
bool response_next_header(const uint8_t *head, size_t len, size_t *at, struct response_header *out);

/* Whether `len` bytes are an RFC 9110 token (method and header names). */
bool response_is_token(const char *text, size_t len);

/* True before the first byte of a final or interim head has come. */
static inline bool response_untouched(const struct response *r)
{
    return r->state == RESPONSE_AT_HEAD && r->partial == NULL && r->interim_count == 0;
}

#endif
