#include "agent/probe/probe.h"

#include "agent/probe/http_client.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/machine.h"
#include "common/mem.h"
#include "common/parse.h"

#include <stdlib.h>
#include <string.h>

#define TRY_EVERY_MS 1u
/* A try that hangs (accepted by the kernel, not by the program) is given up; each may last twice as long as
 * the one before, so that a server whose first answer is slow is still met. */
#define FIRST_TRY_TIMEOUT_NS NS_PER_S
/* A last try that the time-out cuts before this has met nothing: the text of the try before it stays. */
#define TELLING_TRY_NS (100 * NS_PER_MS)

#define STATE_LIST(X)                                                                                        \
    X(TRYING) /* a try is under way */                                                                       \
    X(PAUSED) /* until the next */                                                                           \
    X(ENDED)  /* the outcome is known; the callback comes when nothing is open */
#define EVENT_LIST(X)                                                                                        \
    X(ANSWERED)                                                                                              \
    X(UNANSWERED) /* the try has ended without an answer */                                                  \
    X(DUE)        /* the next try is */                                                                      \
    X(CANCEL)
enum state { STATE_LIST(MACHINE_STATE) STATE_COUNT };
enum event { EVENT_LIST(MACHINE_EVENT) EVENT_COUNT };

struct probe {
    struct probe_options o; /* its texts are ours: */
    char *host;
    char *path;
    uint64_t try_timeout_ns;
    uint64_t try_at_ns;

    uv_timer_t timer;
    struct http_client *client;             /* the try under way, or NULL */
    const struct http_client_result *tried; /* within its callback */
    unsigned holds;                         /* the timer and the try */
    enum state state;
    enum err e;
    struct err_detail d; /* of the last try, then of the end */
    uint64_t startup_ns;
};

static void handle(struct probe *p, enum event event);

static void release(struct probe *p)
{
    if (--p->holds > 0)
        return;
    p->o.cb(p->o.arg, p->e, p->startup_ns, &p->d);
    free(p->host);
    free(p->path);
    free(p);
}

static void on_timer_closed(uv_handle_t *handle)
{
    release(CONTAINER_OF((uv_timer_t *)handle, struct probe, timer));
}

static enum state end(struct probe *p, enum err e)
{
    p->e = e;
    uv_close((uv_handle_t *)&p->timer, on_timer_closed);
    return STATE_ENDED;
}

static void on_time(uv_timer_t *timer)
{
    handle(CONTAINER_OF(timer, struct probe, timer), EVENT_DUE);
}

static void on_tried(void *arg, const struct http_client_result *result)
{
    struct probe *p = arg;
    p->client = NULL;
    p->tried = result;
    handle(p, result->e == ERR_OK ? EVENT_ANSWERED : EVENT_UNANSWERED);
    release(p);
}

static enum err try_once(struct probe *p, uint64_t left_ns)
{
    p->try_at_ns = clock_now_ns();
    struct http_client_options options = {
        .loop = p->o.loop,
        .host = p->host,
        .port = p->o.port,
        .method = "GET",
        .path = p->path,
        .timeout_ns = left_ns < p->try_timeout_ns ? left_ns : p->try_timeout_ns,
        .until = p->o.kind == MSG_READY_TCP ? HTTP_CLIENT_UNTIL_CONNECTED : HTTP_CLIENT_UNTIL_HEAD,
        .cb = on_tried,
        .arg = p,
    };
    enum err e = http_client_start(&options, &p->client, &p->d);
    p->holds += e == ERR_OK;
    return e;
}

/* ---- states --------------------------------------------------------------------------------------- */

static enum state do_end_ready(struct probe *p)
{
    uint64_t at_ns = p->tried->ended_at_ns;
    p->startup_ns = at_ns > p->o.since_ns ? at_ns - p->o.since_ns : 0;
    return end(p, ERR_OK);
}

static enum state do_pause(struct probe *p)
{
    const struct http_client_result *r = p->tried;
    if (r->e != ERR_TIMEOUT || r->took_ns >= TELLING_TRY_NS || p->d.text[0] == '\0')
        p->d = r->d;
    if (r->e == ERR_TIMEOUT)
        p->try_timeout_ns *= 2;
    uv_update_time(p->o.loop);
    uint64_t since_ms = (clock_now_ns() - p->try_at_ns) / NS_PER_MS;
    uv_timer_start(&p->timer, on_time, since_ms < TRY_EVERY_MS ? TRY_EVERY_MS : 0, 0);
    return STATE_PAUSED;
}

static enum state do_try(struct probe *p)
{
    uint64_t spent_ns = clock_now_ns() - p->o.since_ns;
    if (spent_ns >= p->o.timeout_ns) {
        char text[32];
        struct err_detail last = p->d;
        parse_duration_text(p->o.timeout_ns, text, sizeof text);
        return end(p, err_set(&p->d, ERR_TIMEOUT, "not ready after %s: %s", text, last.text));
    }
    enum err e = try_once(p, p->o.timeout_ns - spent_ns);
    return e == ERR_OK ? STATE_TRYING : end(p, e);
}

static enum state do_cancel(struct probe *p)
{
    if (p->client != NULL)
        http_client_cancel(p->client);
    return end(p, err_set(&p->d, ERR_CANCELLED, "cancelled"));
}

static enum state keep(struct probe *p)
{
    return p->state;
}

/* What each event does in each state; an empty cell cannot happen: only our own callbacks could bring it. */
static enum state (*const table[STATE_COUNT][EVENT_COUNT])(struct probe *) = {
    [STATE_TRYING] = {ON(ANSWERED, do_end_ready), ON(UNANSWERED, do_pause), ON(CANCEL, do_cancel)},
    [STATE_PAUSED] = {ON(DUE, do_try), ON(CANCEL, do_cancel)},
    [STATE_ENDED] = {ON(ANSWERED, keep), ON(UNANSWERED, keep), ON(CANCEL, keep)},
};

bool probe_permits(unsigned state, unsigned event)
{
    return state < STATE_COUNT && event < EVENT_COUNT && table[state][event] != NULL;
}

static void handle(struct probe *p, enum event event)
{
    static const char *const states[] = {STATE_LIST(MACHINE_NAME)};
    enum state from = p->state;
    must(probe_permits(from, event));
    p->state = table[from][event](p);
    if (p->state == STATE_ENDED && from != STATE_ENDED)
        log_debug("probe_state", "port=%u from=%s to=%s", p->o.port, states[from], states[p->state]);
}

/* ---- life ----------------------------------------------------------------------------------------- */

enum err probe_start(const struct probe_options *o, struct probe **out, struct err_detail *d)
{
    must(o->kind == MSG_READY_TCP || o->kind == MSG_READY_HTTP);
    *out = NULL;
    struct probe *p = mem_zalloc(1, sizeof *p);
    p->o = *o;
    p->host = mem_strdup(o->host[0] != '\0' ? o->host : "127.0.0.1");
    p->path = mem_strdup(o->path[0] != '\0' ? o->path : "/");
    p->try_timeout_ns = FIRST_TRY_TIMEOUT_NS;
    enum err e = try_once(p, p->o.timeout_ns);
    if (e != ERR_OK) {
        if (d != NULL)
            *d = p->d;
        free(p->host);
        free(p->path);
        free(p);
        return e;
    }
    uv_timer_init(p->o.loop, &p->timer);
    p->holds++;
    *out = p;
    return ERR_OK;
}

void probe_cancel(struct probe *p)
{
    handle(p, EVENT_CANCEL);
}
