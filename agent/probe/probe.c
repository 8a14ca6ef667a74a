#include "agent/probe/probe.h"

#include "agent/probe/http_client.h"
#include "common/clock.h"
#include "common/mem.h"
#include "common/parse.h"

#include <stdlib.h>
#include <string.h>

#define TRY_EVERY_MS 1u
/* A try that hangs (accepted by the kernel, not by the program) is given up; each may last twice as long as
 * the one before, so that a server whose first answer is slow is still met. */
#define FIRST_TRY_TIMEOUT_NS NS_PER_S
/* What a try that the end has cut shorter than this has met says nothing: the one before knows better. */
#define TELLING_TRY_NS (100 * NS_PER_MS)

struct probe {
    uv_loop_t *loop;
    enum msg_ready_kind kind;
    char *host;
    uint16_t port;
    char *path;
    uint64_t since_ns;
    uint64_t timeout_ns;
    uint64_t try_timeout_ns;
    uint64_t try_at_ns;
    probe_cb *cb;
    void *arg;

    uv_timer_t timer;
    struct http_client *client; /* the try under way, or NULL */
    bool timer_closed;
    bool ended;
    enum err e;
    struct err_detail d; /* of the last try, then of the end */
    uint64_t startup_ns;
};

static void maybe_free(struct probe *p)
{
    if (!p->timer_closed || p->client != NULL)
        return;
    p->cb(p->arg, p->e, p->startup_ns, &p->d);
    free(p->host);
    free(p->path);
    free(p);
}

static void on_timer_closed(uv_handle_t *handle)
{
    struct probe *p = CONTAINER_OF((uv_timer_t *)handle, struct probe, timer);
    p->timer_closed = true;
    maybe_free(p);
}

static void end(struct probe *p, enum err e)
{
    if (p->ended)
        return;
    p->ended = true;
    p->e = e;
    if (p->client != NULL)
        http_client_cancel(p->client);
    uv_close((uv_handle_t *)&p->timer, on_timer_closed);
}

static void end_too_late(struct probe *p)
{
    char text[32];
    struct err_detail last = p->d;
    parse_duration_text(p->timeout_ns, text, sizeof text);
    enum err e = err_set(&p->d, ERR_TIMEOUT, "not ready after %s: %s", text,
                         last.text[0] != '\0' ? last.text : "no try has ended");
    end(p, e);
}

static void on_time(uv_timer_t *timer);

static void on_tried(void *arg, const struct http_client_result *result)
{
    struct probe *p = arg;
    p->client = NULL;
    if (!p->ended && result->e == ERR_OK) {
        p->startup_ns = result->ended_at_ns > p->since_ns ? result->ended_at_ns - p->since_ns : 0;
        end(p, ERR_OK);
    } else if (!p->ended) {
        if (result->e != ERR_TIMEOUT || result->took_ns >= TELLING_TRY_NS || p->d.text[0] == '\0')
            p->d = result->d;
        if (result->e == ERR_TIMEOUT)
            p->try_timeout_ns *= 2;
        uv_update_time(p->loop);
        uint64_t since_ms = (clock_now_ns() - p->try_at_ns) / NS_PER_MS;
        uv_timer_start(&p->timer, on_time, since_ms < TRY_EVERY_MS ? TRY_EVERY_MS : 0, 0);
    } else if (p->timer_closed) {
        maybe_free(p);
    }
}

static enum err try_once(struct probe *p, uint64_t left_ns)
{
    p->try_at_ns = clock_now_ns();
    struct http_client_options options = {
        .loop = p->loop,
        .host = p->host,
        .port = p->port,
        .method = "GET",
        .path = p->path,
        .timeout_ns = left_ns < p->try_timeout_ns ? left_ns : p->try_timeout_ns,
        .until = p->kind == MSG_READY_TCP ? HTTP_CLIENT_UNTIL_CONNECTED : HTTP_CLIENT_UNTIL_HEAD,
        .cb = on_tried,
        .arg = p,
    };
    return http_client_start(&options, &p->client, &p->d);
}

static void on_time(uv_timer_t *timer)
{
    struct probe *p = CONTAINER_OF(timer, struct probe, timer);
    uint64_t spent = clock_now_ns() - p->since_ns;
    enum err e = ERR_OK;
    if (spent >= p->timeout_ns)
        end_too_late(p);
    else
        e = try_once(p, p->timeout_ns - spent);
    if (e != ERR_OK)
        end(p, e);
}

enum err probe_start(const struct probe_options *o, struct probe **out, struct err_detail *d)
{
    must(o->kind == MSG_READY_TCP || o->kind == MSG_READY_HTTP);
    *out = NULL;
    struct probe *p = mem_zalloc(1, sizeof *p);
    p->loop = o->loop;
    p->kind = o->kind;
    p->host = mem_strdup(o->host[0] != '\0' ? o->host : "127.0.0.1");
    p->port = o->port;
    p->path = mem_strdup(o->path[0] != '\0' ? o->path : "/");
    p->since_ns = o->since_ns;
    p->timeout_ns = o->timeout_ns;
    p->try_timeout_ns = FIRST_TRY_TIMEOUT_NS;
    p->cb = o->cb;
    p->arg = o->arg;
    enum err e = try_once(p, p->timeout_ns);
    if (e != ERR_OK) {
        if (d != NULL)
            *d = p->d;
        free(p->host);
        free(p->path);
        free(p);
        return e;
    }
    uv_timer_init(p->loop, &p->timer);
    *out = p;
    return ERR_OK;
}

void probe_cancel(struct probe *p)
{
    if (!p->ended)
        err_set(&p->d, ERR_CANCELLED, "cancelled");
    end(p, ERR_CANCELLED);
}
