#include "tests/support/scripted_server.h"

#include "common/buf.h"
#include "common/mem.h"

#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#define REQUESTS_BYTES_MAX (1024u * 1024u)

struct scripted_server {
    uv_tcp_t listener;
    struct script script;
    struct buf requests;
    struct peer *peers;
    unsigned holds;
};

struct peer {
    uv_tcp_t tcp;
    uv_write_t write;
    struct scripted_server *server;
    struct peer *next;
    char head[4]; /* the last bytes seen, to find the end of a head */
    bool answered;
    char buffer[4096];
};

static void release(struct scripted_server *s)
{
    if (--s->holds > 0)
        return;
    buf_fini(&s->requests);
    free(s);
}

static void on_peer_closed(uv_handle_t *handle)
{
    struct peer *p = CONTAINER_OF((uv_tcp_t *)handle, struct peer, tcp);
    struct peer **at = &p->server->peers;
    while (*at != p)
        at = &(*at)->next;
    *at = p->next;
    release(p->server);
    free(p);
}

static void end_peer(struct peer *p)
{
    if (!uv_is_closing((uv_handle_t *)&p->tcp))
        uv_close((uv_handle_t *)&p->tcp, on_peer_closed);
}

static void on_answered(uv_write_t *write, int status)
{
    struct peer *p = CONTAINER_OF(write, struct peer, write);
    if (status != 0 || uv_is_closing((uv_handle_t *)&p->tcp))
        return;
    if (p->server->script.reset)
        must(uv_tcp_close_reset(&p->tcp, on_peer_closed) == 0);
    else if (p->server->script.close_after)
        end_peer(p);
}

static void answer(struct peer *p)
{
    const struct script *script = &p->server->script;
    p->answered = true;
    if (script->answer == NULL)
        return;
    size_t len = script->len != 0 ? script->len : strlen(script->answer);
    uv_buf_t out = uv_buf_init((char *)(uintptr_t)script->answer, (unsigned)len);
    must(uv_write(&p->write, (uv_stream_t *)&p->tcp, &out, 1, on_answered) == 0);
}

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *out)
{
    (void)suggested;
    struct peer *p = CONTAINER_OF((uv_tcp_t *)handle, struct peer, tcp);
    *out = uv_buf_init(p->buffer, sizeof p->buffer);
}

static void on_read(uv_stream_t *stream, ssize_t count, const uv_buf_t *buf)
{
    struct peer *p = CONTAINER_OF((uv_tcp_t *)stream, struct peer, tcp);
    if (count < 0) {
        end_peer(p);
        return;
    }
    enum err e = buf_append(&p->server->requests, buf->base, (size_t)count);
    must(e == ERR_OK);
    for (ssize_t i = 0; i < count; i++) {
        memmove(p->head, p->head + 1, 3);
        p->head[3] = buf->base[i];
        if (!p->answered && memcmp(p->head, "\r\n\r\n", 4) == 0)
            answer(p);
    }
}

static void on_connection(uv_stream_t *stream, int status)
{
    struct scripted_server *s = CONTAINER_OF((uv_tcp_t *)stream, struct scripted_server, listener);
    must(status == 0);
    struct peer *p = mem_zalloc(1, sizeof *p);
    p->server = s;
    p->next = s->peers;
    s->peers = p;
    s->holds++;
    must(uv_tcp_init(stream->loop, &p->tcp) == 0);
    must(uv_accept(stream, (uv_stream_t *)&p->tcp) == 0);
    must(uv_read_start((uv_stream_t *)&p->tcp, on_alloc, on_read) == 0);
}

struct scripted_server *scripted_server_new(uv_loop_t *loop, const struct script *script)
{
    struct scripted_server *s = mem_zalloc(1, sizeof *s);
    s->script = *script;
    s->holds = 1;
    buf_init(&s->requests, REQUESTS_BYTES_MAX);
    must(buf_append(&s->requests, "", 0) == ERR_OK);
    struct sockaddr_in any;
    must(uv_ip4_addr("127.0.0.1", 0, &any) == 0);
    must(uv_tcp_init(loop, &s->listener) == 0);
    must(uv_tcp_bind(&s->listener, (const struct sockaddr *)&any, 0) == 0);
    must(uv_listen((uv_stream_t *)&s->listener, 16, on_connection) == 0);
    return s;
}

static void on_listener_closed(uv_handle_t *handle)
{
    release(CONTAINER_OF((uv_tcp_t *)handle, struct scripted_server, listener));
}

void scripted_server_free(struct scripted_server *s)
{
    for (struct peer *p = s->peers; p != NULL; p = p->next)
        end_peer(p);
    uv_close((uv_handle_t *)&s->listener, on_listener_closed);
}

uint16_t scripted_server_port(const struct scripted_server *s)
{
    struct sockaddr_in bound;
    int len = sizeof bound;
    must(uv_tcp_getsockname(&s->listener, (struct sockaddr *)&bound, &len) == 0);
    return ntohs(bound.sin_port);
}

const char *scripted_server_requests(const struct scripted_server *s)
{
    return s->requests.data;
}
