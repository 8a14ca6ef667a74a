#include "agent/load/request.h"

#include "common/buf.h"
#include "common/mem.h"
#include "common/response.h"

#include <strings.h>

#define HEAD_BYTES_MAX   (1024u * 1024u)
#define LENGTH_BYTES_MAX 40u /* "Content-Length: 12345\r\n\r\n" */

static bool header_is(const char *header, const char *name)
{
    size_t len = strlen(name);
    return strncasecmp(header, name, len) == 0 && header[len] == ':';
}

static enum err check_header(const char *header, struct err_detail *d)
{
    if (!response_is_token(header, strcspn(header, ":")) || strchr(header, ':') == NULL)
        return err_set(d, ERR_INVALID, "header '%s': write 'Name: value'", header);
    if (strlen(header) > LIMIT_HEADER_BYTES)
        return err_set(d, ERR_TOO_BIG, "header: longer than %u bytes", LIMIT_HEADER_BYTES);
    for (const char *p = header; *p != '\0'; p++)
        if ((unsigned char)*p < ' ' && *p != '\t')
            return err_set(d, ERR_INVALID, "header: control bytes (a line end?) are not allowed");
    if (header_is(header, "content-length") || header_is(header, "transfer-encoding"))
        return err_set(d, ERR_INVALID, "header '%s': the length follows from the body", header);
    return ERR_OK;
}

static enum err check_path(const char *path, struct err_detail *d)
{
    if (path[0] != '/' && strcmp(path, "*") != 0)
        return err_set(d, ERR_INVALID, "path '%s': must begin with /", path);
    for (const char *p = path; *p != '\0'; p++)
        if (*p <= ' ' || *p > '~')
            return err_set(d, ERR_INVALID, "path: blanks, control and non-ASCII bytes must be %%-encoded");
    return ERR_OK;
}

/* Whether the header is Connection with the option "close" in its list. */
static bool says_close(const char *header)
{
    if (!header_is(header, "connection"))
        return false;
    for (const char *at = strchr(header, ':') + 1; *at != '\0';) {
        at += strspn(at, " \t,");
        size_t len = strcspn(at, " \t,");
        if (len == strlen("close") && strncasecmp(at, "close", len) == 0)
            return true;
        at += len;
    }
    return false;
}

struct said { /* by the headers given */
    bool host;
    bool close;
};

static enum err append_headers(struct buf *b, const char *const *headers, size_t count, struct said *said,
                               struct err_detail *d)
{
    enum err e = ERR_OK;
    for (size_t i = 0; i < count && e == ERR_OK; i++) {
        e = check_header(headers[i], d);
        said->host |= header_is(headers[i], "host");
        said->close |= says_close(headers[i]);
        if (e == ERR_OK)
            e = buf_printf(b, "%s\r\n", headers[i]);
    }
    return e;
}

/* RFC 9110 8.6: a method that expects content says so even when there is none. */
static bool wants_length(const char *method, const struct request_spec *s)
{
    return s->has_body || strcmp(method, "POST") == 0 || strcmp(method, "PUT") == 0 ||
           strcmp(method, "PATCH") == 0;
}

/* Request line and headers, without Content-Length and without the empty line. */
static enum err write_head(struct buf *b, const char *method, const struct request_spec *s,
                           const struct target *t, const struct options *o, bool *closes,
                           struct err_detail *d)
{
    const char *path = s->path != NULL ? s->path : t->path;
    struct said said = {0};
    if (!response_is_token(method, strlen(method)) || strlen(method) > 32 || strcmp(method, "CONNECT") == 0)
        return err_set(d, ERR_INVALID, "method '%s': not one this program can send", method);
    enum err e = check_path(path, d);
    if (e == ERR_OK)
        e = buf_printf(b, "%s %s HTTP/1.1\r\n", method, path);
    if (e == ERR_OK)
        e = append_headers(b, o->headers.items, o->headers.count, &said, d);
    if (e == ERR_OK)
        e = append_headers(b, s->headers, s->header_count, &said, d);
    if (e == ERR_OK && !said.host)
        e = buf_printf(b, "Host: %s\r\n", t->authority);
    if (e == ERR_OK && o->keep_alive_off && !said.close)
        e = buf_append_text(b, "Connection: close\r\n");
    *closes = o->keep_alive_off || said.close;
    return e;
}

static enum err finish_fixed(struct request *r, struct buf *b, const struct request_spec *s)
{
    enum err e = ERR_OK;
    if (r->has_length)
        e = buf_printf(b, "Content-Length: %zu\r\n", s->body_len);
    if (e == ERR_OK)
        e = buf_append_text(b, "\r\n");
    if (e == ERR_OK && s->body_len != 0)
        e = buf_append(b, s->body, s->body_len);
    if (e == ERR_OK) {
        r->len = b->len;
        r->bytes = (uint8_t *)buf_take(b);
    }
    return e;
}

static enum err finish_template(struct request *r, const struct buf *b, const struct request_spec *s,
                                struct err_detail *d)
{
    enum err e = template_parse(&r->head, b->data, b->len, TEMPLATE_HEAD, d);
    return e == ERR_OK ? template_parse(&r->body, s->body, s->body_len, TEMPLATE_BODY, d) : e;
}

enum err request_make(struct request *r, const struct request_spec *spec, const struct target *t,
                      const struct options *o, struct err_detail *d)
{
    const char *method = spec->method != NULL ? spec->method : spec->has_body ? "POST" : "GET";
    *r = (struct request){.name = mem_strdup(spec->name),
                          .is_head = strcmp(method, "HEAD") == 0,
                          .has_length = wants_length(method, spec),
                          .is_template = spec->is_template,
                          .expect = spec->expect,
                          .weight = spec->weight};
    struct buf b;
    buf_init(&b, HEAD_BYTES_MAX + LIMIT_BODY_BYTES);
    enum err e = write_head(&b, method, spec, t, o, &r->closes, d);
    if (e == ERR_OK)
        e = r->is_template ? finish_template(r, &b, spec, d) : finish_fixed(r, &b, spec);
    if (e == ERR_TOO_BIG && (d == NULL || d->text[0] == '\0'))
        err_set(d, e, "the headers exceed %u bytes", HEAD_BYTES_MAX);
    buf_fini(&b);
    return e;
}

void request_fini(struct request *r)
{
    free(r->name);
    free(r->bytes);
    template_fini(&r->head);
    template_fini(&r->body);
}

size_t request_render_bytes(const struct request *r)
{
    return r->is_template ? r->head.len_max + LENGTH_BYTES_MAX + r->body.len_max : 0;
}

size_t request_render(const struct request *r, struct template_state *state, uint8_t *space)
{
    uint8_t *body = space + r->head.len_max + LENGTH_BYTES_MAX;
    size_t body_len = template_render(&r->body, state, body);
    size_t n = template_render(&r->head, state, space);
    int length = snprintf((char *)space + n, LENGTH_BYTES_MAX,
                          r->has_length ? "Content-Length: %zu\r\n\r\n" : "\r\n", body_len);
    n += (size_t)length;
    memmove(space + n, body, body_len);
    template_advance(state);
    return n + body_len;
}
