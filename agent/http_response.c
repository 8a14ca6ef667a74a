#include "agent/http_response.h"

#include "common/mem.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

void http_response_init(struct http_response *r, bool to_head_request, size_t body_keep_max)
{
    *r = (struct http_response){.to_head_request = to_head_request, .body_keep_max = body_keep_max};
    buf_init(&r->body, body_keep_max);
    buf_init(&r->line, LIMIT_HEADER_BYTES);
}

static void free_headers(struct http_response *r)
{
    for (size_t i = 0; i < r->headers.count; i++) {
        free(r->headers.items[i].name);
        free(r->headers.items[i].value);
    }
    free(r->headers.items);
    r->headers = (struct msg_headers){0};
}

void http_response_fini(struct http_response *r)
{
    free_headers(r);
    buf_fini(&r->body);
    buf_fini(&r->line);
}

bool http_is_token(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        char c = text[i];
        bool alnum = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        if (!alnum && (c == '\0' || strchr("!#$%&'*+-.^_`|~", c) == NULL))
            return false;
    }
    return len > 0;
}

/* Digits of `base` (10 or 16) only, no sign, no blanks, below 2^63. */
static bool read_number(const char *text, size_t len, unsigned base, uint64_t *out)
{
    uint64_t value = 0;
    for (size_t i = 0; i < len; i++) {
        char c = text[i];
        unsigned digit = 16;
        if (c >= '0' && c <= '9')
            digit = (unsigned)(c - '0');
        else if (base == 16 && c >= 'a' && c <= 'f')
            digit = (unsigned)(c - 'a') + 10;
        else if (base == 16 && c >= 'A' && c <= 'F')
            digit = (unsigned)(c - 'A') + 10;
        if (digit >= base || value > (uint64_t)INT64_MAX / base - digit)
            return false;
        value = value * base + digit;
    }
    *out = value;
    return len > 0;
}

static enum err take_status_line(struct http_response *r, const char *line, size_t len, struct err_detail *d)
{
    uint64_t status = 0;
    bool good = len >= 12 && memcmp(line, "HTTP/1.", 7) == 0 && (line[7] == '0' || line[7] == '1') &&
                line[8] == ' ' && read_number(line + 9, 3, 10, &status) && (len == 12 || line[12] == ' ') &&
                status >= 100 && status <= 599;
    if (!good)
        return err_set(d, ERR_INVALID, "the answer is not HTTP/1: it begins with \"%.*s\"",
                       (int)(len < 40 ? len : 40), line);
    r->version_minor = (uint32_t)(line[7] - '0');
    r->status = (uint32_t)status;
    r->state = HTTP_RESPONSE_HEADER;
    return ERR_OK;
}

static enum err take_header(struct http_response *r, const char *line, size_t len, bool keep,
                            struct err_detail *d)
{
    if (line[0] == ' ' || line[0] == '\t')
        return err_set(d, ERR_INVALID, "a folded header line, which HTTP/1.1 forbids");
    const char *colon = memchr(line, ':', len);
    if (colon == NULL || !http_is_token(line, (size_t)(colon - line)))
        return err_set(d, ERR_INVALID, "a header line without a valid name: \"%.*s\"",
                       (int)(len < 80 ? len : 80), line);
    if (!keep)
        return ERR_OK;
    if (r->headers.count == LIMIT_HEADERS)
        return err_set(d, ERR_TOO_BIG, "more than %u header lines", LIMIT_HEADERS);
    const char *value = colon + 1;
    const char *end = line + len;
    while (value < end && (*value == ' ' || *value == '\t'))
        value++;
    while (end > value && (end[-1] == ' ' || end[-1] == '\t'))
        end--;
    char *name = mem_strndup(line, (size_t)(colon - line));
    for (char *c = name; *c != '\0'; c++)
        *c = *c >= 'A' && *c <= 'Z' ? (char)(*c + ('a' - 'A')) : *c;
    r->headers.items = mem_realloc(r->headers.items, r->headers.count + 1, sizeof *r->headers.items);
    r->headers.items[r->headers.count++] =
        (struct msg_header){.name = name, .value = mem_strndup(value, (size_t)(end - value))};
    return ERR_OK;
}

/* The only value of a header that may stand once; NULL when it is absent. */
static enum err only_value(const struct http_response *r, const char *name, const char **out,
                           struct err_detail *d)
{
    *out = NULL;
    for (size_t i = 0; i < r->headers.count; i++) {
        if (strcmp(r->headers.items[i].name, name) != 0)
            continue;
        if (*out != NULL)
            return err_set(d, ERR_INVALID, "two %s headers", name);
        *out = r->headers.items[i].value;
    }
    return ERR_OK;
}

/* The head is complete: decides how the body is framed (RFC 9112, 6.3). */
static enum err begin_body(struct http_response *r, struct err_detail *d)
{
    const char *length = NULL;
    const char *coding = NULL;
    enum err e = only_value(r, "content-length", &length, d);
    if (e == ERR_OK)
        e = only_value(r, "transfer-encoding", &coding, d);
    if (e != ERR_OK)
        return e;
    if (r->status == 101)
        return err_set(d, ERR_INVALID, "101: the server changed the protocol without being asked");
    if (r->status < 200) { /* an interim response: the real one follows */
        free_headers(r);
        r->status = 0;
        r->state = HTTP_RESPONSE_STATUS;
        return ERR_OK;
    }
    if (length != NULL && !read_number(length, strlen(length), 10, &r->left))
        return err_set(d, ERR_INVALID, "Content-Length is not a number: \"%.40s\"", length);
    if (length != NULL && coding != NULL)
        return err_set(d, ERR_INVALID, "both Content-Length and Transfer-Encoding");
    if (coding != NULL && (r->version_minor == 0 || strcasecmp(coding, "chunked") != 0))
        return err_set(d, ERR_INVALID, "Transfer-Encoding \"%.40s\" in HTTP/1.%u is not understood", coding,
                       r->version_minor);
    if (r->to_head_request || r->status == 204 || r->status == 304)
        r->state = HTTP_RESPONSE_DONE;
    else if (coding != NULL)
        r->state = HTTP_RESPONSE_CHUNK_SIZE;
    else if (length == NULL)
        r->state = HTTP_RESPONSE_UNTIL_CLOSE;
    else
        r->state = r->left != 0 ? HTTP_RESPONSE_COUNTED : HTTP_RESPONSE_DONE;
    return ERR_OK;
}

static enum err take_chunk_size(struct http_response *r, const char *line, size_t len, struct err_detail *d)
{
    const char *extension = memchr(line, ';', len);
    size_t digits = extension != NULL ? (size_t)(extension - line) : len;
    if (!read_number(line, digits, 16, &r->left))
        return err_set(d, ERR_INVALID, "a chunk size that is no hexadecimal number: \"%.*s\"",
                       (int)(len < 40 ? len : 40), line);
    r->state = r->left != 0 ? HTTP_RESPONSE_CHUNK_DATA : HTTP_RESPONSE_TRAILER;
    return ERR_OK;
}

/* One whole line, without its CRLF. */
static enum err take_line(struct http_response *r, const char *line, size_t len, struct err_detail *d)
{
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)line[i];
        if ((c < 0x20 && c != '\t') || c == 0x7f)
            return err_set(d, ERR_INVALID, "a control character (0x%02x) where HTTP has text", c);
    }
    if (r->state == HTTP_RESPONSE_STATUS)
        return take_status_line(r, line, len, d);
    if (r->state == HTTP_RESPONSE_HEADER)
        return len == 0 ? begin_body(r, d) : take_header(r, line, len, true, d);
    if (r->state == HTTP_RESPONSE_CHUNK_SIZE)
        return take_chunk_size(r, line, len, d);
    if (r->state == HTTP_RESPONSE_CHUNK_END) {
        if (len != 0)
            return err_set(d, ERR_INVALID, "a chunk is longer than its size says");
        r->state = HTTP_RESPONSE_CHUNK_SIZE;
        return ERR_OK;
    }
    must(r->state == HTTP_RESPONSE_TRAILER);
    if (len != 0)
        return take_header(r, line, len, false, d);
    r->state = HTTP_RESPONSE_DONE;
    return ERR_OK;
}

/* Bytes of a line up to and with its '\n'. */
static enum err feed_line(struct http_response *r, const char *data, size_t len, size_t *used,
                          struct err_detail *d)
{
    const char *newline = memchr(data, '\n', len);
    *used = newline != NULL ? (size_t)(newline - data) + 1 : len;
    r->head_bytes += *used;
    if (r->head_bytes > HTTP_RESPONSE_HEAD_BYTES_MAX || buf_append(&r->line, data, *used) != ERR_OK)
        return err_set(d, ERR_TOO_BIG, "a head of more than %u bytes, or a line of more than %u",
                       HTTP_RESPONSE_HEAD_BYTES_MAX, LIMIT_HEADER_BYTES);
    if (newline == NULL) {
        /* What is certainly no status line is refused before its end is seen. */
        if (r->state == HTTP_RESPONSE_STATUS && r->line.len >= 7 && memcmp(r->line.data, "HTTP/1.", 7) != 0)
            return take_line(r, r->line.data, r->line.len, d);
        return ERR_OK;
    }
    if (r->line.len < 2 || r->line.data[r->line.len - 2] != '\r')
        return err_set(d, ERR_INVALID, "a line that ends in LF alone: HTTP/1.1 needs CRLF");
    enum err e = take_line(r, r->line.data, r->line.len - 2, d);
    buf_clear(&r->line);
    return e;
}

static void feed_body(struct http_response *r, const char *data, size_t len, size_t *used)
{
    bool counted = r->state != HTTP_RESPONSE_UNTIL_CLOSE;
    *used = counted && r->left < len ? (size_t)r->left : len;
    r->body_bytes += *used;
    size_t room = r->body_keep_max - r->body.len;
    if (room > 0) {
        enum err e = buf_append(&r->body, data, *used < room ? *used : room);
        must(e == ERR_OK);
    }
    if (!counted)
        return;
    r->left -= *used;
    if (r->left == 0)
        r->state = r->state == HTTP_RESPONSE_COUNTED ? HTTP_RESPONSE_DONE : HTTP_RESPONSE_CHUNK_END;
}

enum err http_response_feed(struct http_response *r, const char *data, size_t len, struct err_detail *d)
{
    enum err e = ERR_OK;
    while (len > 0 && e == ERR_OK) {
        size_t used = 0;
        if (r->state == HTTP_RESPONSE_DONE)
            return err_set(d, ERR_INVALID, "more bytes than the response's framing allows");
        if (r->state == HTTP_RESPONSE_COUNTED || r->state == HTTP_RESPONSE_UNTIL_CLOSE ||
            r->state == HTTP_RESPONSE_CHUNK_DATA)
            feed_body(r, data, len, &used);
        else
            e = feed_line(r, data, len, &used, d);
        data += used;
        len -= used;
    }
    return e;
}

enum err http_response_end(struct http_response *r, struct err_detail *d)
{
    if (r->state == HTTP_RESPONSE_UNTIL_CLOSE)
        r->state = HTTP_RESPONSE_DONE;
    if (r->state == HTTP_RESPONSE_DONE)
        return ERR_OK;
    if (!http_response_has_head(r))
        return err_set(d, ERR_CLOSED, "the connection was closed before the answer's head was complete");
    return err_set(d, ERR_CLOSED, "the connection was closed inside the body, after %llu bytes of it",
                   (unsigned long long)r->body_bytes);
}

bool http_response_has_head(const struct http_response *r)
{
    return r->state > HTTP_RESPONSE_HEADER;
}

bool http_response_is_done(const struct http_response *r)
{
    return r->state == HTTP_RESPONSE_DONE;
}
