#include "agent/load/request.h"

#include "common/buf.h"
#include "common/mem.h"

#include <ctype.h>
#include <strings.h>

#define HEAD_BYTES_MAX (1024u * 1024u)

static bool is_token(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (!isalnum((unsigned char)text[i]) && strchr("!#$%&'*+-.^_`|~", text[i]) == NULL)
            return false;
    return len != 0;
}

static bool header_is(const char *header, const char *name)
{
    size_t len = strlen(name);
    return strncasecmp(header, name, len) == 0 && header[len] == ':';
}

static enum err check_header(const char *header, struct err_detail *d)
{
    if (!is_token(header, strcspn(header, ":")) || strchr(header, ':') == NULL)
        return err_set(d, ERR_INVALID, "--header '%s': write 'Name: value'", header);
    if (strlen(header) > LIMIT_HEADER_BYTES)
        return err_set(d, ERR_TOO_BIG, "--header: longer than %u bytes", LIMIT_HEADER_BYTES);
    for (const char *p = header; *p != '\0'; p++)
        if ((unsigned char)*p < ' ' && *p != '\t')
            return err_set(d, ERR_INVALID, "--header: control bytes (a line end?) are not allowed");
    if (header_is(header, "content-length") || header_is(header, "transfer-encoding"))
        return err_set(d, ERR_INVALID, "--header '%s': the length follows from --body", header);
    return ERR_OK;
}

static enum err append_headers(struct buf *b, const struct target *t, const struct options *o,
                               struct err_detail *d)
{
    bool has_host = false;
    enum err e = ERR_OK;
    for (size_t i = 0; i < o->header_count && e == ERR_OK; i++) {
        e = check_header(o->headers[i], d);
        has_host |= header_is(o->headers[i], "host");
    }
    if (e == ERR_OK && !has_host)
        e = buf_printf(b, "Host: %s\r\n", t->authority);
    for (size_t i = 0; i < o->header_count && e == ERR_OK; i++)
        e = buf_printf(b, "%s\r\n", o->headers[i]);
    if (e == ERR_OK && o->keep_alive_off)
        e = buf_append_text(b, "Connection: close\r\n");
    return e;
}

/* RFC 9110 8.6: a method that expects content says so even when there is none. */
static bool wants_length(const char *method, const struct options *o)
{
    return o->has_body || strcmp(method, "POST") == 0 || strcmp(method, "PUT") == 0 ||
           strcmp(method, "PATCH") == 0;
}

enum err request_build(struct request *r, const struct target *t, const struct options *o,
                       struct err_detail *d)
{
    *r = (struct request){0};
    const char *method = o->method != NULL ? o->method : o->has_body ? "POST" : "GET";
    if (!is_token(method, strlen(method)) || strlen(method) > 32 || strcmp(method, "CONNECT") == 0)
        return err_set(d, ERR_INVALID, "--method '%s': not a method this program can send", method);
    struct buf b;
    buf_init(&b, HEAD_BYTES_MAX + LIMIT_BODY_BYTES);
    enum err e = buf_printf(&b, "%s %s HTTP/1.1\r\n", method, t->path);
    if (e == ERR_OK)
        e = append_headers(&b, t, o, d);
    if (e == ERR_OK && wants_length(method, o))
        e = buf_printf(&b, "Content-Length: %zu\r\n", o->body_len);
    if (e == ERR_OK)
        e = buf_append_text(&b, "\r\n");
    if (e == ERR_OK && o->body_len != 0)
        e = buf_append(&b, o->body, o->body_len);
    if (e == ERR_OK) {
        r->len = b.len;
        r->bytes = (uint8_t *)buf_take(&b);
        r->is_head = strcmp(method, "HEAD") == 0;
    } else if (e == ERR_TOO_BIG) {
        err_set(d, e, "the request's headers exceed %u bytes", HEAD_BYTES_MAX);
    }
    buf_fini(&b);
    return e;
}

void request_fini(struct request *r)
{
    free(r->bytes);
    *r = (struct request){0};
}
