#include "agent/probe/http_response.h"

#include "common/mem.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define BEGINNING_BYTES 40u

void http_response_init(struct http_response *r, bool to_head_request, size_t body_keep_max)
{
    *r = (struct http_response){.body_keep_max = body_keep_max};
    response_init(&r->framing, to_head_request);
    buf_init(&r->body, body_keep_max);
}

void http_response_fini(struct http_response *r)
{
    for (size_t i = 0; i < r->headers.count; i++) {
        free(r->headers.items[i].name);
        free(r->headers.items[i].value);
    }
    free(r->headers.items);
    r->headers = (struct msg_headers){0};
    buf_fini(&r->body);
    response_fini(&r->framing);
}

static void keep_headers(void *arg, const uint8_t *head, size_t len)
{
    struct http_response *r = arg;
    struct response_header h;
    size_t at = 0;
    while (response_next_header(head, len, &at, &h)) {
        if (r->headers.count == LIMIT_HEADERS) {
            r->headers_too_many = true;
            return;
        }
        char *name = mem_strndup(h.name, h.name_len);
        for (char *c = name; *c != '\0'; c++)
            *c = (char)tolower((unsigned char)*c);
        r->headers.items = mem_realloc(r->headers.items, r->headers.count + 1, sizeof *r->headers.items);
        r->headers.items[r->headers.count++] =
            (struct msg_header){.name = name, .value = mem_strndup(h.value, h.value_len)};
    }
}

static void keep_body(void *arg, const uint8_t *data, size_t len)
{
    struct http_response *r = arg;
    size_t room = r->body_keep_max - r->body.len;
    if (room > 0)
        must(buf_append(&r->body, data, len < room ? len : room) == ERR_OK);
}

static enum err fault_code(enum response_fault f)
{
    switch (f) {
    case RESPONSE_HEAD_TOO_BIG:
    case RESPONSE_CHUNK_LINE_TOO_BIG:
    case RESPONSE_TRAILER_TOO_BIG:
    case RESPONSE_INTERIM_TOO_MANY:
        return ERR_TOO_BIG;
    case RESPONSE_CLOSED_IN_HEAD:
    case RESPONSE_CLOSED_IN_BODY:
        return ERR_CLOSED;
    case RESPONSE_NONE:
        return ERR_OK;
    case RESPONSE_STATUS_LINE:
    case RESPONSE_HEADER_LINE:
    case RESPONSE_FOLDING:
    case RESPONSE_BARE_LF:
    case RESPONSE_LENGTH_VALUE:
    case RESPONSE_LENGTH_CONFLICT:
    case RESPONSE_LENGTH_AND_CHUNKED:
    case RESPONSE_CODING:
    case RESPONSE_CODING_HTTP10:
    case RESPONSE_CHUNK_SIZE:
    case RESPONSE_CHUNK_END:
    case RESPONSE_SWITCHING:
        break;
    }
    return ERR_INVALID;
}

enum err http_response_feed(struct http_response *r, const char *data, size_t len, struct err_detail *d)
{
    const struct response_sink sink = {.arg = r, .on_head = keep_headers, .on_body = keep_body};
    bool fresh = response_untouched(&r->framing);
    size_t used = response_feed(&r->framing, (const uint8_t *)data, len, &sink);
    enum response_fault f = r->framing.fault;
    if (f == RESPONSE_STATUS_LINE && fresh)
        return err_set(d, ERR_INVALID, "the answer is not HTTP/1: it begins with \"%.*s\"",
                       (int)(len < BEGINNING_BYTES ? len : BEGINNING_BYTES), data);
    if (f != RESPONSE_NONE)
        return err_set(d, fault_code(f), "%s", response_fault_text(f));
    if (r->headers_too_many)
        return err_set(d, ERR_TOO_BIG, "more than %u header lines", LIMIT_HEADERS);
    if (used != len)
        return err_set(d, ERR_INVALID, "more bytes than the response's framing allows");
    return ERR_OK;
}

enum err http_response_end(struct http_response *r, struct err_detail *d)
{
    response_end(&r->framing);
    enum response_fault f = r->framing.fault;
    if (f == RESPONSE_CLOSED_IN_BODY)
        return err_set(d, ERR_CLOSED, "the connection was closed inside the body, after %llu bytes of it",
                       (unsigned long long)r->framing.body_len);
    if (f == RESPONSE_CLOSED_IN_HEAD)
        return err_set(d, ERR_CLOSED, "the connection was closed before the answer's head was complete");
    must(f == RESPONSE_NONE);
    return ERR_OK;
}

bool http_response_has_head(const struct http_response *r)
{
    return r->framing.state != RESPONSE_AT_HEAD;
}

bool http_response_is_done(const struct http_response *r)
{
    return r->framing.state == RESPONSE_DONE;
}
