#include "common/response.h"

#include "common/mem.h"

static const char head_start[] = "HTTP/1.";

void response_init(struct response *r, bool to_head)
{
    response_fini(r);
    *r = (struct response){.to_head = to_head, .length = UINT64_MAX};
}

void response_fini(struct response *r)
{
    if (r->partial == NULL)
        return;
    buf_fini(r->partial);
    free(r->partial);
    r->partial = NULL;
}

const char *response_fault_text(enum response_fault f)
{
    static const char *const texts[] = {
#define X(name, text) text,
        RESPONSE_FAULTS(X)
#undef X
    };
    return texts[f];
}

static void fail(struct response *r, enum response_fault f)
{
    r->fault = (uint8_t)f;
}

/* RFC 9112 6.3: what follows the head. */
void response_begin(struct response *r, const struct response_head *h)
{
    r->status = h->status;
    r->keep_alive = h->keep_alive;
    if (h->has_length)
        r->length = h->length;
    if (r->to_head || h->status == 204 || h->status == 304) {
        r->state = RESPONSE_DONE;
    } else if (h->chunked) {
        r->state = RESPONSE_IN_CHUNK_SIZE;
    } else if (h->has_length) {
        r->remaining = h->length;
        r->state = h->length != 0 ? RESPONSE_IN_LENGTH : RESPONSE_DONE;
    } else {
        r->state = RESPONSE_UNTIL_CLOSE;
        r->keep_alive = false;
    }
}

static void take_head(struct response *r, const uint8_t *head, size_t len, const struct response_sink *sink)
{
    struct response_head h;
    enum response_fault f =
        len <= RESPONSE_HEAD_BYTES_MAX ? response_head_parse(head, len, &h) : RESPONSE_HEAD_TOO_BIG;
    if (f != RESPONSE_NONE) {
        fail(r, f);
    } else if (h.status == 101) {
        fail(r, RESPONSE_SWITCHING);
    } else if (h.status >= 200) {
        response_begin(r, &h);
        if (sink != NULL && sink->on_head != NULL)
            sink->on_head(sink->arg, head, len);
    } else if (++r->interim_count > RESPONSE_INTERIM_MAX) {
        fail(r, RESPONSE_INTERIM_TOO_MANY);
    }
}

/* Collects a head that came in pieces. Returns the bytes of `data` that belong to it. */
static size_t feed_partial(struct response *r, const uint8_t *data, size_t len,
                           const struct response_sink *sink)
{
    if (r->partial == NULL) {
        r->partial = mem_zalloc(1, sizeof *r->partial);
        buf_init(r->partial, RESPONSE_HEAD_BYTES_MAX);
    }
    struct buf *b = r->partial;
    size_t before = b->len;
    size_t room = RESPONSE_HEAD_BYTES_MAX - before;
    size_t take = len < room ? len : room;
    must(buf_append(b, data, take) == ERR_OK);
    size_t from = before > 2 ? before - 2 : 0; /* the empty line may straddle the pieces */
    size_t end = response_head_len((const uint8_t *)b->data + from, b->len - from);
    if (end == 0) {
        if (b->len == RESPONSE_HEAD_BYTES_MAX)
            fail(r, RESPONSE_HEAD_TOO_BIG);
        return take;
    }
    size_t head_len = from + end;
    take_head(r, (const uint8_t *)b->data, head_len, sink);
    response_fini(r);
    return head_len - before;
}

static bool starts_wrong(const struct response *r, const uint8_t *data, size_t len)
{
    size_t at = r->partial != NULL ? r->partial->len : 0;
    for (size_t i = 0; at + i < sizeof head_start - 1 && i < len; i++)
        if (data[i] != (uint8_t)head_start[at + i])
            return true;
    return false;
}

static size_t feed_head(struct response *r, const uint8_t *data, size_t len, const struct response_sink *sink)
{
    if (starts_wrong(r, data, len)) {
        fail(r, RESPONSE_STATUS_LINE);
        return 0;
    }
    if (r->partial != NULL)
        return feed_partial(r, data, len, sink);
    size_t head_len = response_head_len(data, len);
    if (head_len == 0)
        return feed_partial(r, data, len, sink);
    take_head(r, data, head_len, sink);
    return head_len;
}

static size_t feed_body(struct response *r, const uint8_t *data, size_t len, const struct response_sink *sink)
{
    size_t n = len;
    if (r->state != RESPONSE_UNTIL_CLOSE && n > r->remaining)
        n = (size_t)r->remaining;
    r->body_len += n;
    if (sink != NULL && sink->on_body != NULL)
        sink->on_body(sink->arg, data, n);
    if (r->state == RESPONSE_UNTIL_CLOSE)
        return n;
    r->remaining -= n;
    if (r->remaining == 0)
        r->state = r->state == RESPONSE_IN_LENGTH ? RESPONSE_DONE : RESPONSE_AT_CHUNK_CR;
    return n;
}

void response_skip(struct response *r, uint64_t len)
{
    must(r->state == RESPONSE_IN_LENGTH && len <= r->remaining);
    r->body_len += len;
    r->remaining -= len;
    if (r->remaining == 0)
        r->state = RESPONSE_DONE;
}

static int hex_value(uint8_t c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static void feed_chunk_size(struct response *r, uint8_t c)
{
    int hex = hex_value(c);
    if (hex >= 0) {
        r->chunk_has_digit = true;
        if (r->remaining >> 56 != 0)
            fail(r, RESPONSE_CHUNK_SIZE);
        r->remaining = r->remaining << 4 | (uint64_t)hex;
    } else if (r->chunk_has_digit && c == '\r') {
        r->state = RESPONSE_AT_CHUNK_SIZE_LF;
    } else if (r->chunk_has_digit && (c == ';' || c == ' ' || c == '\t')) {
        r->state = RESPONSE_IN_CHUNK_EXTENSION;
    } else {
        fail(r, RESPONSE_CHUNK_SIZE);
    }
}

/* One byte of a trailer line before its end: a name of token bytes, a colon, a value without control bytes.
 */
static bool fits_trailer(const struct response *r, uint8_t c)
{
    if (r->after_cr)
        return false;
    if (r->named)
        return (c >= ' ' || c == '\t') && c != 0x7f;
    return (c == ':' && r->line_len != 0) || response_is_token((const char *)&c, 1);
}

static void feed_trailer(struct response *r, uint8_t c)
{
    if (++r->trailer_len > RESPONSE_TRAILER_BYTES_MAX) {
        fail(r, RESPONSE_TRAILER_TOO_BIG);
    } else if (c == '\n') {
        if (!r->after_cr)
            fail(r, RESPONSE_BARE_LF);
        else if (r->line_len == 0)
            r->state = RESPONSE_DONE;
        r->line_len = 0;
        r->after_cr = false;
        r->named = false;
    } else if (c == '\r' && !r->after_cr && (r->line_len == 0 || r->named)) {
        r->after_cr = true;
    } else if (r->line_len == 0 && !r->after_cr && (c == ' ' || c == '\t')) {
        fail(r, RESPONSE_FOLDING);
    } else if (!fits_trailer(r, c)) {
        fail(r, RESPONSE_HEADER_LINE);
    } else {
        r->named = r->named || c == ':';
        r->line_len++;
    }
}

/* One byte of chunk framing; the chunks' bytes go through feed_body. */
static void feed_framing(struct response *r, uint8_t c)
{
    bool in_line = r->state == RESPONSE_IN_CHUNK_SIZE || r->state == RESPONSE_IN_CHUNK_EXTENSION;
    if (in_line && ++r->line_len > RESPONSE_CHUNK_LINE_BYTES_MAX) {
        fail(r, RESPONSE_CHUNK_LINE_TOO_BIG);
        return;
    }
    switch ((enum response_state)r->state) {
    case RESPONSE_IN_CHUNK_SIZE:
        feed_chunk_size(r, c);
        break;
    case RESPONSE_IN_CHUNK_EXTENSION:
        if (c == '\r')
            r->state = RESPONSE_AT_CHUNK_SIZE_LF;
        else if (c == '\n')
            fail(r, RESPONSE_BARE_LF);
        break;
    case RESPONSE_AT_CHUNK_SIZE_LF:
        if (c != '\n')
            fail(r, RESPONSE_CHUNK_SIZE);
        r->state = r->remaining != 0 ? RESPONSE_IN_CHUNK : RESPONSE_IN_TRAILER;
        r->line_len = 0;
        break;
    case RESPONSE_AT_CHUNK_CR:
        if (c != '\r')
            fail(r, RESPONSE_CHUNK_END);
        r->state = RESPONSE_AT_CHUNK_LF;
        break;
    case RESPONSE_AT_CHUNK_LF:
        if (c != '\n')
            fail(r, RESPONSE_CHUNK_END);
        r->state = RESPONSE_IN_CHUNK_SIZE;
        r->chunk_has_digit = false;
        break;
    case RESPONSE_IN_TRAILER:
        feed_trailer(r, c);
        break;
    case RESPONSE_AT_HEAD:
    case RESPONSE_IN_LENGTH:
    case RESPONSE_IN_CHUNK:
    case RESPONSE_UNTIL_CLOSE:
    case RESPONSE_DONE:
        must_never("a state that has no framing bytes");
    }
}

size_t response_feed(struct response *r, const uint8_t *data, size_t len, const struct response_sink *sink)
{
    size_t at = 0;
    while (at < len && r->state != RESPONSE_DONE && r->fault == RESPONSE_NONE) {
        if (r->state == RESPONSE_AT_HEAD)
            at += feed_head(r, data + at, len - at, sink);
        else if (r->state == RESPONSE_IN_LENGTH || r->state == RESPONSE_IN_CHUNK ||
                 r->state == RESPONSE_UNTIL_CLOSE)
            at += feed_body(r, data + at, len - at, sink);
        else
            feed_framing(r, data[at++]);
    }
    return at;
}

void response_end(struct response *r)
{
    if (r->state == RESPONSE_DONE || r->fault != RESPONSE_NONE)
        return;
    if (r->state == RESPONSE_UNTIL_CLOSE)
        r->state = RESPONSE_DONE;
    else
        fail(r, r->state == RESPONSE_AT_HEAD ? RESPONSE_CLOSED_IN_HEAD : RESPONSE_CLOSED_IN_BODY);
}
