#include "agent/probe/http_client.h"

#include "common/clock.h"
#include "common/mem.h"
#include "common/parse.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct http_client {
    uv_loop_t *loop;
    char *host;
    uint16_t port;
    enum http_client_until until;
    uint64_t timeout_ns;
    uint64_t started_at_ns;
    http_client_cb *cb;
    void *arg;
    struct buf request;
    struct http_response response;

    uv_timer_t timer;
    uv_tcp_t tcp;
    uv_getaddrinfo_t resolve;
    uv_connect_t connect;
    uv_write_t write;
    unsigned holds; /* handles and requests that libuv still knows; 0 = may be freed */
    bool tcp_open;
    struct addrinfo *found;      /* what the resolver gave, freed at the end */
    const struct addrinfo *next; /* address to try when this one fails */
    struct sockaddr_storage literal;

    bool ended;
    struct http_client_result result;
    char read_buffer[64 * 1024];
};

static void try_address(struct http_client *c, const struct sockaddr *address);

static void release(struct http_client *c)
{
    must(c->holds > 0);
    if (--c->holds > 0)
        return;
    must(c->ended);
    c->cb(c->arg, &c->result);
    if (c->found != NULL)
        uv_freeaddrinfo(c->found);
    http_response_fini(&c->response);
    buf_fini(&c->request);
    free(c->host);
    free(c);
}

static void on_timer_closed(uv_handle_t *handle)
{
    release(CONTAINER_OF((uv_timer_t *)handle, struct http_client, timer));
}

static void on_tcp_closed(uv_handle_t *handle)
{
    release(CONTAINER_OF((uv_tcp_t *)handle, struct http_client, tcp));
}

/* The one end of an exchange: the first call counts. `d` may be NULL when `e` is ERR_OK. */
static void end(struct http_client *c, enum err e, const struct err_detail *d)
{
    if (c->ended)
        return;
    c->ended = true;
    c->result.e = e;
    if (d != NULL)
        c->result.d = *d;
    c->result.ended_at_ns = clock_now_ns();
    c->result.took_ns = c->result.ended_at_ns - c->started_at_ns;
    c->result.response = &c->response;
    uv_close((uv_handle_t *)&c->timer, on_timer_closed);
    if (c->tcp_open && !uv_is_closing((uv_handle_t *)&c->tcp))
        uv_close((uv_handle_t *)&c->tcp, on_tcp_closed);
    if (c->resolve.loop != NULL)
        uv_cancel(
            (uv_req_t *)&c->resolve); /* refused when a thread has it: its callback comes all the same */
}

static void end_uv(struct http_client *c, int status, const char *doing)
{
    struct err_detail d;
    bool unresolved = status <= UV_EAI_ADDRFAMILY && status >= UV_EAI_PROTOCOL;
    enum err e = err_set(&d, unresolved ? ERR_UNREACHABLE : err_from_errno(-status), "%s %s port %u: %s",
                         doing, c->host, c->port, uv_strerror(status));
    end(c, e, &d);
}

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *out)
{
    (void)suggested;
    struct http_client *c = CONTAINER_OF((uv_tcp_t *)handle, struct http_client, tcp);
    *out = uv_buf_init(c->read_buffer, sizeof c->read_buffer);
}

/* libuv reports a reset after a short read as a plain end, which would make half a close-delimited body a
 * whole one: the socket still knows better. Returns UV_EOF or the error. */
static ssize_t end_or_reset(const struct http_client *c)
{
    int fd = -1;
    int error = 0;
    socklen_t len = sizeof error;
    bool known = uv_fileno((const uv_handle_t *)&c->tcp, &fd) == 0 &&
                 getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) == 0 && error != 0;
    return known ? uv_translate_sys_error(error) : UV_EOF;
}

static void on_read(uv_stream_t *stream, ssize_t count, const uv_buf_t *buf)
{
    struct http_client *c = CONTAINER_OF((uv_tcp_t *)stream, struct http_client, tcp);
    struct err_detail d;
    enum err e = ERR_OK;
    if (count == UV_EOF)
        count = end_or_reset(c);
    if (count > 0)
        e = http_response_feed(&c->response, buf->base, (size_t)count, &d);
    else if (count == UV_EOF)
        e = http_response_end(&c->response, &d);
    else if (count < 0) {
        end_uv(c, (int)count, "reading the answer of");
        return;
    }
    /* Where the head is all that is wanted, it does not matter what the body is like. */
    bool enough = c->until == HTTP_CLIENT_UNTIL_HEAD && http_response_has_head(&c->response);
    if (enough || (e == ERR_OK && http_response_is_done(&c->response)))
        end(c, ERR_OK, NULL);
    else if (e != ERR_OK)
        end(c, e, &d);
}

static void on_written(uv_write_t *write, int status)
{
    struct http_client *c = CONTAINER_OF(write, struct http_client, write);
    /* A server may answer and close before it has read a long body: then the answer is what counts, and the
     * read side tells how the connection ended. */
    if (status < 0 && status != UV_EPIPE && status != UV_ECONNRESET && status != UV_ECANCELED)
        end_uv(c, status, "sending to");
    release(c);
}

static void send_request(struct http_client *c)
{
    uv_buf_t out = uv_buf_init(c->request.data, (unsigned)c->request.len);
    int status = uv_read_start((uv_stream_t *)&c->tcp, on_alloc, on_read);
    if (status == 0)
        status = uv_write(&c->write, (uv_stream_t *)&c->tcp, &out, 1, on_written);
    if (status == 0)
        c->holds++;
    else
        end_uv(c, status, "sending to");
}

static void on_retry_closed(uv_handle_t *handle)
{
    struct http_client *c = CONTAINER_OF((uv_tcp_t *)handle, struct http_client, tcp);
    c->tcp_open = false;
    const struct addrinfo *next = c->next;
    if (!c->ended && next != NULL) {
        c->next = next->ai_next;
        try_address(c, next->ai_addr);
    }
    release(c);
}

static void on_connected(uv_connect_t *connect, int status)
{
    struct http_client *c = CONTAINER_OF(connect, struct http_client, connect);
    if (status < 0 && !c->ended && c->next != NULL)
        uv_close((uv_handle_t *)&c->tcp, on_retry_closed);
    else if (status < 0)
        end_uv(c, status, "cannot connect to");
    else if (c->until == HTTP_CLIENT_UNTIL_CONNECTED)
        end(c, ERR_OK, NULL);
    else if (!c->ended)
        send_request(c);
    release(c);
}

static void try_address(struct http_client *c, const struct sockaddr *address)
{
    int status = uv_tcp_init(c->loop, &c->tcp);
    must(status == 0);
    c->tcp_open = true;
    c->holds++;
    status = uv_tcp_connect(&c->connect, &c->tcp, address, on_connected);
    if (status == 0)
        c->holds++;
    else
        end_uv(c, status, "cannot connect to");
}

static void on_resolved(uv_getaddrinfo_t *resolve, int status, struct addrinfo *found)
{
    struct http_client *c = CONTAINER_OF(resolve, struct http_client, resolve);
    c->resolve.loop = NULL;
    c->found = found;
    if (status < 0)
        end_uv(c, status, "cannot resolve the name of");
    else if (!c->ended) {
        c->next = found->ai_next;
        try_address(c, found->ai_addr);
    }
    release(c);
}

static void on_timeout(uv_timer_t *timer)
{
    struct http_client *c = CONTAINER_OF(timer, struct http_client, timer);
    struct err_detail d;
    char text[32];
    parse_duration_text(c->timeout_ns, text, sizeof text);
    if (http_response_has_head(&c->response))
        err_set(&d, ERR_TIMEOUT,
                "%s port %u: the answer was not complete after %s: %llu bytes of its body came", c->host,
                c->port, text, (unsigned long long)c->response.framing.body_len);
    else
        err_set(&d, ERR_TIMEOUT, "%s port %u: no answer within %s", c->host, c->port, text);
    end(c, ERR_TIMEOUT, &d);
}

static bool text_is_printable(const char *text, bool blanks)
{
    for (const unsigned char *c = (const unsigned char *)text; *c != '\0'; c++) {
        bool blank = *c == ' ' || *c == '\t';
        if (blank ? !blanks : *c < 0x20 || *c == 0x7f)
            return false;
    }
    return true;
}

static enum err append_headers(struct buf *out, const struct msg_headers *headers, bool *has_host,
                               struct err_detail *d)
{
    for (size_t i = 0; headers != NULL && i < headers->count; i++) {
        const char *name = msg_text(headers->items[i].name);
        const char *value = msg_text(headers->items[i].value);
        if (!response_is_token(name, strlen(name)) || !text_is_printable(value, true))
            return err_set(d, ERR_INVALID, "request header \"%.80s\" is not a valid HTTP header", name);
        if (strcasecmp(name, "content-length") == 0 || strcasecmp(name, "transfer-encoding") == 0)
            return err_set(d, ERR_INVALID, "request header %s: the length is set by the body itself", name);
        *has_host = *has_host || strcasecmp(name, "host") == 0;
        if (buf_printf(out, "%s: %s\r\n", name, value) != ERR_OK)
            return err_set(d, ERR_TOO_BIG, "the request's headers are over %u bytes", LIMIT_HEADER_BYTES);
    }
    return ERR_OK;
}

static enum err build_request(const struct http_client_options *o, struct buf *out, struct err_detail *d)
{
    if (!response_is_token(o->method, strlen(o->method)))
        return err_set(d, ERR_INVALID, "request method \"%.40s\" is not an HTTP method", o->method);
    if (o->path[0] != '/' || !text_is_printable(o->path, false))
        return err_set(d, ERR_INVALID, "request path \"%.200s\": it begins with / and holds no blanks",
                       o->path);
    if (o->body_len > LIMIT_BODY_BYTES)
        return err_set(d, ERR_TOO_BIG, "a request body of %zu bytes: at most %u", o->body_len,
                       LIMIT_BODY_BYTES);
    struct buf head;
    buf_init(&head, LIMIT_HEADER_BYTES);
    bool has_host = false;
    bool expects_body =
        strcmp(o->method, "POST") == 0 || strcmp(o->method, "PUT") == 0 || strcmp(o->method, "PATCH") == 0;
    enum err e = buf_printf(&head, "%s %s HTTP/1.1\r\n", o->method, o->path);
    if (e == ERR_OK)
        e = append_headers(&head, o->headers, &has_host, d);
    else
        err_set(d, e, "the request's path is over %u bytes", LIMIT_HEADER_BYTES);
    bool v6 = strchr(o->host, ':') != NULL;
    buf_init(out, LIMIT_HEADER_BYTES + 1024u + LIMIT_BODY_BYTES);
    if (e == ERR_OK)
        e = buf_append(out, head.data, head.len);
    if (e == ERR_OK && !has_host)
        e = buf_printf(out, "Host: %s%s%s:%u\r\n", v6 ? "[" : "", o->host, v6 ? "]" : "", o->port);
    if (e == ERR_OK && (o->body_len > 0 || expects_body))
        e = buf_printf(out, "Content-Length: %zu\r\n", o->body_len);
    if (e == ERR_OK)
        e = buf_append(out, "\r\n", 2);
    if (e == ERR_OK)
        e = buf_append(out, o->body, o->body_len);
    buf_fini(&head);
    if (e != ERR_OK)
        buf_fini(out);
    return e;
}

static bool read_literal(const char *host, uint16_t port, struct sockaddr_storage *out)
{
    return uv_ip4_addr(host, port, (struct sockaddr_in *)out) == 0 ||
           uv_ip6_addr(host, port, (struct sockaddr_in6 *)out) == 0;
}

static void begin(struct http_client *c)
{
    if (read_literal(c->host, c->port, &c->literal)) {
        try_address(c, (const struct sockaddr *)&c->literal);
        return;
    }
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_family = AF_UNSPEC};
    char service[8];
    snprintf(service, sizeof service, "%u", c->port);
    int status = uv_getaddrinfo(c->loop, &c->resolve, on_resolved, c->host, service, &hints);
    if (status == 0)
        c->holds++;
    else
        end_uv(c, status, "cannot resolve the name of");
}

enum err http_client_start(const struct http_client_options *o, struct http_client **out,
                           struct err_detail *d)
{
    *out = NULL;
    size_t host_len = strlen(o->host);
    if (host_len == 0 || host_len > 253 || !text_is_printable(o->host, false))
        return err_set(d, ERR_INVALID, "\"%.100s\" is not a host name", o->host);
    if (o->port == 0)
        return err_set(d, ERR_INVALID, "port 0 cannot be connected to");
    struct buf request;
    enum err e = build_request(o, &request, d);
    if (e != ERR_OK)
        return e;
    struct http_client *c = mem_zalloc(1, sizeof *c);
    c->loop = o->loop;
    c->host = mem_strdup(o->host);
    c->port = o->port;
    c->until = o->until;
    c->timeout_ns = o->timeout_ns;
    c->started_at_ns = clock_now_ns();
    c->cb = o->cb;
    c->arg = o->arg;
    c->request = request;
    http_response_init(&c->response, strcmp(o->method, "HEAD") == 0, o->body_keep_max);
    uv_update_time(c->loop); /* the timer counts from the loop's idea of now */
    uv_timer_init(c->loop, &c->timer);
    c->holds = 1;
    uv_timer_start(&c->timer, on_timeout, (o->timeout_ns + NS_PER_MS - 1) / NS_PER_MS, 0);
    begin(c);
    *out = c;
    return ERR_OK;
}

void http_client_cancel(struct http_client *c)
{
    struct err_detail d;
    enum err e = err_set(&d, ERR_CANCELLED, "cancelled");
    end(c, e, &d);
}
