#include "proto/link/attempt.h"

#include "common/clock.h"
#include "common/mem.h"
#include "proto/link/link_nng.h"

#include <stdlib.h>
#include <string.h>

/* NNG_FAULT_DIAL_NEVER_ENDS: a dial is not cancelled before it is so old; one that has not ended CANCEL_MS
 * after that is abandoned with its thread. */
#define CANCEL_AFTER_NS (50 * NS_PER_MS)
#define CANCEL_MS       5000u

/* ---- on nng's threads ---------------------------------------------------------------------------------- */

/* nng would dial again by itself, and would leak that dial if the socket closed in the middle of it. Dialling
 * again is link_client.c's business, so the dialer goes with its first connection. */
static void on_pipe_gone(nng_pipe pipe, nng_pipe_ev ev, void *arg)
{
    (void)pipe;
    (void)ev;
    struct attempt *a = arg;
    nng_dialer_close(a->dialer);
    shut_first_note_end(&a->shut);
    mailbox_post(&a->box, &a->lost);
}

static void set_timeout(struct attempt_call *call)
{
    uint64_t now = clock_now_ns();
    uint64_t left_ms = call->deadline_ns > now ? (call->deadline_ns - now) / NS_PER_MS + 1 : 1;
    nng_aio_set_timeout(call->aio, left_ms < INT32_MAX ? (nng_duration)left_ms : INT32_MAX);
}

static void on_aio(void *arg)
{
    struct attempt_call *call = arg;
    if (!call->receiving && nng_aio_result(call->aio) == 0) {
        call->receiving = true;
        set_timeout(call);
        nng_ctx_recv(call->ctx, call->aio);
        return;
    }
    mailbox_post(&call->attempt->box, &call->node);
}

/* ---- on the loop --------------------------------------------------------------------------------------- */

static void on_node(void *arg, struct mailbox_node *node)
{
    struct attempt *a = arg;
    if (node == &a->lost) {
        if (!a->closing)
            a->handlers.on_lost(a->handlers.arg);
        return;
    }
    struct attempt_call *call = CONTAINER_OF(node, struct attempt_call, node);
    int code = nng_aio_result(call->aio);
    nng_msg *m = nng_aio_get_msg(call->aio); /* the answer, or the question that was not sent */
    nng_aio_set_msg(call->aio, NULL);
    if (code != 0 && !call->receiving)
        nng_msg_free(m);
    call->busy = false;
    if (!a->closing)
        a->handlers.on_call_over(a->handlers.arg, call, code, code == 0 ? m : NULL);
    else if (code == 0)
        nng_msg_free(m);
}

struct attempt_call *attempt_take_call(struct attempt *a)
{
    for (size_t i = 0; i < ATTEMPT_CALLS; i++)
        if (!a->calls[i].busy)
            return &a->calls[i];
    return NULL;
}

void attempt_start_call(struct attempt_call *call, nng_msg *m, uint64_t timeout_ns)
{
    call->busy = true;
    call->receiving = false;
    call->deadline_ns = clock_now_ns() + timeout_ns;
    set_timeout(call);
    nng_aio_set_msg(call->aio, m);
    nng_ctx_send(call->ctx, call->aio);
}

/* ---- closing ------------------------------------------------------------------------------------------- */

/* On a thread of its own: waits for all that nng still runs for this socket. The contexts go before it, and
 * only when no callback can be inside one: NNG_FAULT_CONTEXT_OUTLIVES_SOCKET. */
static void close_socket(void *arg)
{
    struct attempt *a = arg;
    shut_first_end(&a->shut);
    for (size_t i = 0; i < ATTEMPT_CALLS; i++)
        nng_aio_stop(a->calls[i].aio);
    for (size_t i = 0; i < ATTEMPT_CALLS; i++)
        nng_ctx_close(a->calls[i].ctx);
    nng_close(a->socket);
}

static void on_timer_closed(uv_handle_t *handle)
{
    struct attempt *a = handle->data;
    struct attempt_handlers h = a->handlers;
    if (!a->abandoned) {
        for (size_t i = 0; i < ATTEMPT_CALLS; i++)
            nng_aio_free(a->calls[i].aio);
        free(a->address);
        free(a);
    }
    h.on_closed(h.arg);
}

static void on_box_closed(uv_handle_t *handle)
{
    struct attempt *a = handle->data;
    uv_close((uv_handle_t *)&a->timer, on_timer_closed);
}

/* The socket is closed, or nng has hung and may still use all of it. */
static void leave(struct attempt *a, bool abandoned)
{
    a->abandoned = abandoned;
    if (!abandoned)
        mailbox_drain(&a->box);
    mailbox_close(&a->box, on_box_closed);
}

static void on_socket_closed(void *arg, bool abandoned)
{
    leave(arg, abandoned);
}

static void start_closing(struct attempt *a)
{
    uv_timer_stop(&a->timer);
    shut_first_limit(side_thread_start(a->loop, close_socket, on_socket_closed, a));
}

static void cancel_dial(uv_timer_t *timer)
{
    struct attempt *a = timer->data;
    nng_dialer_close(a->dialer); /* on_dialled starts the closing */
    side_thread_limit(a->dial, CANCEL_MS);
}

void attempt_close(struct attempt **attempt)
{
    struct attempt *a = *attempt;
    *attempt = NULL;
    a->closing = true;
    if (a->dial == NULL) {
        start_closing(a);
        return;
    }
    uint64_t age_ns = clock_now_ns() - a->started_ns;
    uint64_t wait_ns = age_ns < CANCEL_AFTER_NS ? CANCEL_AFTER_NS - age_ns : 0;
    uv_timer_start(&a->timer, cancel_dial, wait_ns / NS_PER_MS + 1, 0);
}

/* ---- dialling ------------------------------------------------------------------------------------------ */

static void dial(void *arg)
{
    struct attempt *a = arg;
    a->dial_code = nng_dialer_start(a->dialer, 0);
}

static void on_dialled(void *arg, bool abandoned)
{
    struct attempt *a = arg;
    a->dial = NULL;
    if (abandoned) {
        leave(a, true);
        return;
    }
    if (a->closing) {
        start_closing(a);
        return;
    }
    struct err_detail d = {.text = ""};
    enum err e = a->dial_code != 0 ? link_dial_err(a->dial_code, a->address, &d) : ERR_OK;
    a->handlers.on_dialled(a->handlers.arg, e, &d);
}

enum err attempt_new(uv_loop_t *loop, const char *address, nng_tls_config *tls,
                     const struct attempt_handlers *handlers, struct attempt **out, struct err_detail *d)
{
    nng_socket socket;
    nng_dialer dialer;
    enum err e = link_open_client(address, tls, &socket, &dialer, d);
    if (e != ERR_OK)
        return e;
    struct attempt *a = mem_zalloc(1, sizeof *a);
    a->loop = loop;
    a->handlers = *handlers;
    a->address = mem_strdup(address);
    a->socket = socket;
    a->dialer = dialer;
    mailbox_init(&a->box, loop, on_node, a);
    must(uv_timer_init(loop, &a->timer) == 0);
    a->timer.data = a;
    for (size_t i = 0; i < ATTEMPT_CALLS; i++) {
        struct attempt_call *call = &a->calls[i];
        call->attempt = a;
        must(nng_ctx_open(&call->ctx, socket) == 0);
        must(nng_aio_alloc(&call->aio, on_aio, call) == 0);
    }
    shut_first_watch(&a->shut, socket, a->address + strlen(LINK_IPC));
    must(nng_pipe_notify(socket, NNG_PIPE_EV_REM_POST, on_pipe_gone, a) == 0);
    a->started_ns = clock_now_ns();
    a->dial = side_thread_start(loop, dial, on_dialled, a);
    *out = a;
    return ERR_OK;
}
