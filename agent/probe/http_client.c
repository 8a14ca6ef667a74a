#include "agent/probe/http_client.h"

#include "common/clock.h"
#include "common/machine.h"
#include "common/mem.h"
#include "common/parse.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define STATE_LIST(X)                                                                                        \
    X(NEW)                                                                                                   \
    X(RESOLVING)                                                                                             \
    X(CONNECTING)                                                                                            \
    X(CLOSING) /* the socket that was refused; then the next address is tried */                             \
    X(TALKING)                                                                                               \
    X(ENDED) /* the result is known; the callback comes when libuv knows nothing of it any more */
#define EVENT_LIST(X)                                                                                        \
    X(BEGIN)                                                                                                 \
    X(RESOLVED)                                                                                              \
    X(CONNECTED)                                                                                             \
    X(REFUSED) /* by this address; there is another */                                                       \
    X(CLOSED)                                                                                                \
    X(END) /* what is wanted came, or never will */
enum state { STATE_LIST(MACHINE_STATE) STATE_COUNT };
enum event { EVENT_LIST(MACHINE_EVENT) EVENT_COUNT };

struct http_client {
    struct http_client_options o; /* of the request itself only what is in `request` lives on */
    char *host;
    uint64_t started_at_ns;
    struct buf request;
    struct http_response response;

    uv_timer_t timer;
    uv_tcp_t tcp;
    uv_getaddrinfo_t resolve;
    uv_connect_t connect;
    uv_write_t write;
    unsigned holds; /* handles and requests that libuv still knows; 0 = may be freed */
    enum state state;
    struct addrinfo *found;  /* what the resolver gave, freed at the end */
    struct addrinfo literal; /* in its place where the host is an address */
    struct sockaddr_storage literal_address;
    const struct addrinfo *next; /* address to try; NULL: there is no other */

    struct http_client_result result;
    char read_buffer[64 * 1024];
};

static void handle(struct http_client *c, enum event event);

static void release(struct http_client *c)
{
    must(c->holds > 0);
    if (--c->holds > 0)
        return;
    must(c->state == STATE_ENDED);
    c->o.cb(c->o.arg, &c->result);
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

/* `d` may be NULL when `e` is ERR_OK. */
static void set_result(struct http_client *c, enum err e, const struct err_detail *d)
{
    c->result.e = e;
    if (d != NULL)
        c->result.d = *d;
    c->result.ended_at_ns = clock_now_ns();
    c->result.took_ns = c->result.ended_at_ns - c->started_at_ns;
    c->result.response = &c->response;
}

static void set_result_uv(struct http_client *c, int status, const char *doing)
{
    struct err_detail d;
    bool unresolved = status <= UV_EAI_ADDRFAMILY && status >= UV_EAI_PROTOCOL;
    enum err e = err_set(&d, unresolved ? ERR_UNREACHABLE : err_from_errno(-status), "%s %s port %u: %s",
                         doing, c->host, c->o.port, uv_strerror(status));
    set_result(c, e, &d);
}

/* The one end of an exchange: the first call counts. */
static void end(struct http_client *c, enum err e, const struct err_detail *d)
{
    if (c->state == STATE_ENDED)
        return;
    set_result(c, e, d);
    handle(c, EVENT_END);
}

static void end_uv(struct http_client *c, int status, const char *doing)
{
    if (c->state == STATE_ENDED)
        return;
    set_result_uv(c, status, doing);
    handle(c, EVENT_END);
}

/* ---- the answer ----------------------------------------------------------------------------------- */

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
    bool enough = c->o.until == HTTP_CLIENT_UNTIL_HEAD && http_response_has_head(&c->response);
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

/* ---- states --------------------------------------------------------------------------------------- */

static enum state do_end(struct http_client *c)
{
    uv_close((uv_handle_t *)&c->timer, on_timer_closed);
    return STATE_ENDED;
}

static enum state do_close(struct http_client *c)
{
    uv_close((uv_handle_t *)&c->tcp, on_tcp_closed);
    return do_end(c);
}

/* Refused when a thread has it already: its callback comes all the same. */
static enum state do_cancel_resolving(struct http_client *c)
{
    uv_cancel((uv_req_t *)&c->resolve);
    return do_end(c);
}

static void on_connected(uv_connect_t *connect, int status)
{
    struct http_client *c = CONTAINER_OF(connect, struct http_client, connect);
    if (status == 0)
        handle(c, EVENT_CONNECTED);
    else if (c->next != NULL)
        handle(c, EVENT_REFUSED);
    else
        end_uv(c, status, "cannot connect to");
    release(c);
}

static enum state do_connect(struct http_client *c)
{
    const struct sockaddr *address = c->next->ai_addr;
    c->next = c->next->ai_next;
    must(uv_tcp_init(c->o.loop, &c->tcp) == 0);
    int status = uv_tcp_connect(&c->connect, &c->tcp, address, on_connected);
    c->holds += status == 0 ? 2 : 1; /* the socket, and the request */
    if (status == 0)
        return STATE_CONNECTING;
    set_result_uv(c, status, "cannot connect to");
    return do_close(c);
}

static void on_refused_closed(uv_handle_t *handle_closed)
{
    struct http_client *c = CONTAINER_OF((uv_tcp_t *)handle_closed, struct http_client, tcp);
    handle(c, EVENT_CLOSED);
    release(c);
}

static enum state do_close_refused(struct http_client *c)
{
    uv_close((uv_handle_t *)&c->tcp, on_refused_closed);
    return STATE_CLOSING;
}

static enum state do_talk(struct http_client *c)
{
    if (c->o.until == HTTP_CLIENT_UNTIL_CONNECTED) {
        set_result(c, ERR_OK, NULL);
        return do_close(c);
    }
    uv_buf_t out = uv_buf_init(c->request.data, (unsigned)c->request.len);
    int status = uv_read_start((uv_stream_t *)&c->tcp, on_alloc, on_read);
    if (status == 0)
        status = uv_write(&c->write, (uv_stream_t *)&c->tcp, &out, 1, on_written);
    if (status == 0) {
        c->holds++;
        return STATE_TALKING;
    }
    set_result_uv(c, status, "sending to");
    return do_close(c);
}

static void on_resolved(uv_getaddrinfo_t *resolve, int status, struct addrinfo *found)
{
    struct http_client *c = CONTAINER_OF(resolve, struct http_client, resolve);
    c->found = found;
    c->next = found;
    if (status == 0)
        handle(c, EVENT_RESOLVED);
    else
        end_uv(c, status, "cannot resolve the name of");
    release(c);
}

static bool read_literal(struct http_client *c)
{
    struct sockaddr_storage *to = &c->literal_address;
    c->literal.ai_addr = (struct sockaddr *)to;
    return uv_ip4_addr(c->host, c->o.port, (struct sockaddr_in *)to) == 0 ||
           uv_ip6_addr(c->host, c->o.port, (struct sockaddr_in6 *)to) == 0;
}

static enum state do_begin(struct http_client *c)
{
    if (read_literal(c)) {
        c->next = &c->literal;
        return do_connect(c);
    }
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_family = AF_UNSPEC};
    char service[8];
    snprintf(service, sizeof service, "%u", c->o.port);
    int status = uv_getaddrinfo(c->o.loop, &c->resolve, on_resolved, c->host, service, &hints);
    if (status == 0) {
        c->holds++;
        return STATE_RESOLVING;
    }
    set_result_uv(c, status, "cannot resolve the name of");
    return do_end(c);
}

static enum state keep(struct http_client *c)
{
    return c->state;
}

/* What each event does in each state; an empty cell cannot happen: only our own callbacks could bring it. */
static enum state (*const table[STATE_COUNT][EVENT_COUNT])(struct http_client *) = {
    [STATE_NEW] = {ON(BEGIN, do_begin)},
    [STATE_RESOLVING] = {ON(RESOLVED, do_connect), ON(END, do_cancel_resolving)},
    [STATE_CONNECTING] = {ON(CONNECTED, do_talk), ON(REFUSED, do_close_refused), ON(END, do_close)},
    [STATE_CLOSING] = {ON(CLOSED, do_connect), ON(END, do_end)},
    [STATE_TALKING] = {ON(END, do_close)},
    [STATE_ENDED] = {ON(RESOLVED, keep), ON(CONNECTED, keep), ON(REFUSED, keep), ON(CLOSED, keep)},
};

bool http_client_permits(unsigned state, unsigned event)
{
    return state < STATE_COUNT && event < EVENT_COUNT && table[state][event] != NULL;
}

/* Not traced: a probe brings thousands of them. */
static void handle(struct http_client *c, enum event event)
{
    must(http_client_permits(c->state, event));
    c->state = table[c->state][event](c);
}

/* ---- life ----------------------------------------------------------------------------------------- */

static void on_timeout(uv_timer_t *timer)
{
    struct http_client *c = CONTAINER_OF(timer, struct http_client, timer);
    struct err_detail d;
    char text[32];
    parse_duration_text(c->o.timeout_ns, text, sizeof text);
    if (http_response_has_head(&c->response))
        err_set(&d, ERR_TIMEOUT,
                "%s port %u: the answer was not complete after %s: %llu bytes of its body came", c->host,
                c->o.port, text, (unsigned long long)c->response.framing.body_len);
    else
        err_set(&d, ERR_TIMEOUT, "%s port %u: no answer within %s", c->host, c->o.port, text);
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
    bool has_host = false;
    bool expects_body =
        strcmp(o->method, "POST") == 0 || strcmp(o->method, "PUT") == 0 || strcmp(o->method, "PATCH") == 0;
    bool v6 = strchr(o->host, ':') != NULL;
    buf_init(out, LIMIT_HEADER_BYTES);
    enum err e = buf_printf(out, "%s %s HTTP/1.1\r\n", o->method, o->path);
    if (e == ERR_OK)
        e = append_headers(out, o->headers, &has_host, d);
    else
        err_set(d, e, "the request's path is over %u bytes", LIMIT_HEADER_BYTES);
    out->max = LIMIT_HEADER_BYTES + 1024u + LIMIT_BODY_BYTES; /* what we add is no fault of the request */
    if (e == ERR_OK && !has_host)
        e = buf_printf(out, "Host: %s%s%s:%u\r\n", v6 ? "[" : "", o->host, v6 ? "]" : "", o->port);
    if (e == ERR_OK && (o->body_len > 0 || expects_body))
        e = buf_printf(out, "Content-Length: %zu\r\n", o->body_len);
    if (e == ERR_OK)
        e = buf_append(out, "\r\n", 2);
    if (e == ERR_OK)
        e = buf_append(out, o->body, o->body_len);
    if (e != ERR_OK)
        buf_fini(out);
    return e;
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
    c->o = *o;
    c->host = mem_strdup(o->host);
    c->started_at_ns = clock_now_ns();
    c->request = request;
    http_response_init(&c->response, strcmp(o->method, "HEAD") == 0, o->body_keep_max);
    uv_update_time(c->o.loop); /* the timer counts from the loop's idea of now */
    uv_timer_init(c->o.loop, &c->timer);
    c->holds = 1;
    uv_timer_start(&c->timer, on_timeout, (o->timeout_ns + NS_PER_MS - 1) / NS_PER_MS, 0);
    handle(c, EVENT_BEGIN);
    *out = c;
    return ERR_OK;
}

void http_client_cancel(struct http_client *c)
{
    struct err_detail d;
    enum err e = err_set(&d, ERR_CANCELLED, "cancelled");
    end(c, e, &d);
}
