#include "proto/link/link.h"

#include "common/clock.h"
#include "common/machine.h"
#include "common/mem.h"
#include "proto/link/attempt.h"
#include "proto/link/link_nng.h"
#include "proto/link/session.h"
#include "proto/msg/codec.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BACKOFF_FIRST_NS (100 * NS_PER_MS)
#define BACKOFF_LAST_NS  (5 * NS_PER_S)

#define STATE_LIST(X)                                                                                        \
    X(PAUSING)  /* until the next attempt */                                                                 \
    X(DIALLING) /* up to WELCOME */                                                                          \
    X(UP)                                                                                                    \
    X(REFUSED) /* for good: no more attempts */                                                              \
    X(CLOSING)
#define EVENT_LIST(X)                                                                                        \
    X(DUE) /* the next attempt */                                                                            \
    X(WELCOME)                                                                                               \
    X(LOST) /* the attempt has failed, or its connection ended */                                            \
    X(REFUSE)                                                                                                \
    X(CLOSE)
enum state { STATE_LIST(MACHINE_STATE) STATE_COUNT };
enum event { EVENT_LIST(MACHINE_EVENT) EVENT_COUNT };

/* One connection after the other, each an attempt: dialled, welcomed, lost. Between two, a pause. */
struct link_client {
    uv_loop_t *loop;
    char *address;
    const struct identity *identity; /* borrowed */
    nng_tls_config *tls;             /* NULL over ipc */
    uint64_t connect_timeout_ns;
    struct link_client_handlers handlers;
    struct msg hello;
    struct attempt *attempt; /* NULL between attempts */
    struct session session;  /* what is heard from the controller */
    uint64_t last_serial;
    uint64_t backoff_ns;
    uv_timer_t timer;     /* the end of an attempt that takes too long, or of the pause */
    uv_idle_t redial;     /* a redial asked for within a callback waits for the next turn */
    char redial_why[256]; /* "" when none is asked for */
    size_t closing;       /* attempts that still close */
    enum state state;
    void (*on_closed)(void *arg);
    void *on_closed_arg;
};

static void handle(struct link_client *c, enum event event);
static void lose(struct link_client *c, enum err e, const char *why, bool final);

/* ---- calls ---------------------------------------------------------------------------------------- */

/* Tells the caller, once; the answer may be one it does not expect to free. */
static void tell(struct attempt_call *call, enum err e, const struct msg *m, const struct err_detail *d)
{
    link_reply_cb *cb = call->cb;
    call->cb = NULL;
    if (cb != NULL)
        cb(call->arg, e, m, d);
}

static enum err start_call(struct link_client *c, const struct msg *m, uint64_t timeout_ns, link_reply_cb *cb,
                           void *arg, struct err_detail *d)
{
    struct attempt_call *call = attempt_take_call(c->attempt);
    if (call == NULL)
        return err_set(d, ERR_BUSY, "too many open calls");
    struct msg out = *m;
    nng_msg *packed;
    out.session = c->session.id;
    out.serial = c->last_serial + 1;
    enum err e = link_pack(&out, &packed, d);
    if (e != ERR_OK)
        return e;
    c->last_serial++;
    call->kind = m->kind;
    call->serial = out.serial;
    call->cb = cb;
    call->arg = arg;
    attempt_start_call(call, packed, timeout_ns);
    return ERR_OK;
}

/* What came back must be an answer to this very question. */
static enum err check_reply(struct link_client *c, const struct attempt_call *call, const struct msg *m,
                            struct err_detail *d)
{
    enum err e = session_hear(&c->session, m, d);
    if (e != ERR_OK)
        return e;
    if (!session_answers(call->kind, m->kind) || m->serial != call->serial)
        return err_set(d, ERR_DENIED, "%s does not answer %s", msg_kind_name(m->kind),
                       msg_kind_name(call->kind));
    return ERR_OK;
}

static void on_call_over(void *arg, struct attempt_call *call, int nng_code, nng_msg *reply)
{
    struct link_client *c = arg;
    struct err_detail d = {.text = ""};
    struct msg m;
    if (nng_code != 0) {
        enum err e = link_err(nng_code);
        tell(call, err_set(&d, e, "%s: %s", msg_kind_name(call->kind), err_text(e)), NULL, &d);
        return;
    }
    enum err e = codec_decode(nng_msg_body(reply), nng_msg_len(reply), &m, &d);
    nng_msg_free(reply);
    if (e != ERR_OK) {
        lose(c, e, d.text, false);
        return;
    }
    e = check_reply(c, call, &m, &d);
    if (e != ERR_OK) {
        lose(c, e, d.text, false);
    } else if (m.kind == MSG_REFUSED) {
        e = err_set(&d, m.u.refused.code, "%s", msg_text(m.u.refused.text));
        tell(call, e, NULL, &d);
    } else {
        tell(call, ERR_OK, &m, &d);
    }
    msg_fini(&m);
}

enum err link_client_call(struct link_client *c, const struct msg *m, uint64_t timeout_ns, link_reply_cb *cb,
                          void *arg)
{
    if (c->state != STATE_UP)
        return ERR_CLOSED;
    size_t busy = 0;
    for (size_t i = 0; i < ATTEMPT_CALLS; i++)
        busy += c->attempt->calls[i].busy;
    return busy < ATTEMPT_CALLS - 1 ? start_call(c, m, timeout_ns, cb, arg, NULL) : ERR_BUSY;
}

/* ---- losing a connection -------------------------------------------------------------------------- */

static void on_pause_over(uv_timer_t *timer);

/* Half of it fixed, half random: a lab that lost its controller does not come back all at once. */
static void pause_before_dialling(struct link_client *c)
{
    uint32_t random;
    identity_random(&random, sizeof random);
    uint64_t half_ms = c->backoff_ns / 2 / NS_PER_MS;
    c->backoff_ns = c->backoff_ns * 2 < BACKOFF_LAST_NS ? c->backoff_ns * 2 : BACKOFF_LAST_NS;
    uv_timer_start(&c->timer, on_pause_over, half_ms + random % (half_ms + 1), 0);
}

static void drop_attempt(struct link_client *c)
{
    session_init(&c->session, MSG_ROLE_CONTROLLER);
    if (c->attempt == NULL)
        return;
    c->closing++;
    attempt_close(&c->attempt);
}

/* The attempt is given up before its open calls are answered: a caller may call again, and finds it closed.
 */
static void lose(struct link_client *c, enum err e, const char *why, bool final)
{
    struct err_detail d;
    struct attempt *a = c->attempt;
    snprintf(d.text, sizeof d.text, "%s", why);
    handle(c, final ? EVENT_REFUSE : EVENT_LOST);
    for (size_t i = 0; a != NULL && i < ATTEMPT_CALLS; i++)
        tell(&a->calls[i], ERR_CLOSED, NULL, &d);
    if (c->state != STATE_CLOSING && c->handlers.on_down != NULL)
        c->handlers.on_down(c->handlers.arg, e, d.text, final);
}

static void on_lost(void *arg)
{
    lose(arg, ERR_CLOSED, "the controller closed the connection", false);
}

static void on_redial(uv_idle_t *idle)
{
    struct link_client *c = idle->data;
    lose(c, ERR_CLOSED, c->redial_why, false);
}

void link_client_redial(struct link_client *c, const char *why)
{
    if (c->state != STATE_DIALLING && c->state != STATE_UP)
        return; /* it is about to, anyway */
    snprintf(c->redial_why, sizeof c->redial_why, "%s", why);
    uv_idle_start(&c->redial, on_redial);
}

/* ---- making a connection, in order ---------------------------------------------------------------- */

/* Some refusals would only be repeated: the wrong version, a revoked certificate, a name of another. */
static bool is_final(enum err e)
{
    return e == ERR_DENIED || e == ERR_UNSUPPORTED || e == ERR_INVALID;
}

static void on_timeout(uv_timer_t *timer)
{
    struct link_client *c = timer->data;
    char why[512];
    snprintf(why, sizeof why, "no answer from %s in time", c->address);
    lose(c, ERR_TIMEOUT, why, false);
}

static void on_proved(void *arg, enum err e, const struct msg *m, const struct err_detail *d);

static void send_proof(struct link_client *c, const struct msg *challenge)
{
    struct err_detail d;
    struct msg m;
    msg_init(&m, MSG_PROOF);
    enum err e = c->identity == NULL ? err_set(&d, ERR_DENIED, "the controller asks for a certificate")
                                     : identity_sign(c->identity->key_pem, c->hello.u.hello.role,
                                                     challenge->u.challenge.nonce, &m.u.proof.signature, &d);
    if (e == ERR_OK)
        e = start_call(c, &m, c->connect_timeout_ns, on_proved, c, &d);
    msg_fini(&m);
    if (e != ERR_OK)
        lose(c, e, d.text, true);
    else
        must(session_handle(&c->session, SESSION_EV_CHALLENGE));
}

static void come_up(struct link_client *c, const struct msg_welcome *welcome)
{
    must(session_handle(&c->session, SESSION_EV_WELCOME));
    c->session.id = welcome->session;
    handle(c, EVENT_WELCOME);
    if (c->handlers.on_up != NULL)
        c->handlers.on_up(c->handlers.arg, welcome);
}

/* The answer to HELLO or PROOF. */
static void on_proved(void *arg, enum err e, const struct msg *m, const struct err_detail *d)
{
    struct link_client *c = arg;
    if (c->state != STATE_DIALLING)
        return; /* it was lost, and that has been told; or the client closes */
    if (e != ERR_OK)
        lose(c, e, d->text, is_final(e));
    else if (m->kind == MSG_CHALLENGE)
        send_proof(c, m);
    else
        come_up(c, &m->u.welcome);
}

static void on_dialled(void *arg, enum err e, const struct err_detail *dial_detail)
{
    struct link_client *c = arg;
    struct err_detail d = *dial_detail;
    if (e == ERR_OK)
        e = start_call(c, &c->hello, c->connect_timeout_ns, on_proved, c, &d);
    if (e != ERR_OK)
        lose(c, e, d.text, false);
}

static void on_redial_closed(uv_handle_t *handle)
{
    struct link_client *c = handle->data;
    void (*cb)(void *arg) = c->on_closed;
    void *arg = c->on_closed_arg;
    if (c->tls != NULL)
        nng_tls_config_free(c->tls);
    msg_fini(&c->hello);
    free(c->address);
    free(c);
    if (cb != NULL)
        cb(arg);
}

static void on_timer_closed(uv_handle_t *handle)
{
    struct link_client *c = handle->data;
    uv_close((uv_handle_t *)&c->redial, on_redial_closed);
}

static void finish_close(struct link_client *c)
{
    if (c->attempt == NULL && c->closing == 0 && !uv_is_closing((uv_handle_t *)&c->timer))
        uv_close((uv_handle_t *)&c->timer, on_timer_closed);
}

static void on_close_turn(uv_idle_t *idle)
{
    struct link_client *c = idle->data;
    uv_idle_stop(&c->redial);
    lose(c, ERR_CLOSED, "closed here", false);
    finish_close(c);
}

static void on_attempt_closed(void *arg)
{
    struct link_client *c = arg;
    c->closing--;
    if (c->state == STATE_CLOSING)
        finish_close(c);
}

static void on_pause_over(uv_timer_t *timer)
{
    struct link_client *c = timer->data;
    const struct attempt_handlers handlers = {.arg = c,
                                              .on_dialled = on_dialled,
                                              .on_call_over = on_call_over,
                                              .on_lost = on_lost,
                                              .on_closed = on_attempt_closed};
    struct err_detail d;
    handle(c, EVENT_DUE);
    enum err e = attempt_new(c->loop, c->address, c->tls, &handlers, &c->attempt, &d);
    if (e != ERR_OK)
        lose(c, e, d.text, false);
}

/* ---- states --------------------------------------------------------------------------------------- */

static enum state do_dial(struct link_client *c)
{
    c->last_serial = 0;
    uv_timer_start(&c->timer, on_timeout, c->connect_timeout_ns / NS_PER_MS, 0);
    return STATE_DIALLING;
}

static enum state do_come_up(struct link_client *c)
{
    c->backoff_ns = BACKOFF_FIRST_NS;
    uv_timer_stop(&c->timer);
    return STATE_UP;
}

static enum state do_pause(struct link_client *c)
{
    uv_idle_stop(&c->redial);
    drop_attempt(c);
    pause_before_dialling(c);
    return STATE_PAUSING;
}

static enum state do_give_up(struct link_client *c)
{
    uv_timer_stop(&c->timer);
    uv_idle_stop(&c->redial);
    drop_attempt(c);
    return STATE_REFUSED;
}

/* Open calls are answered on the next turn, not within link_client_close. */
static enum state do_close(struct link_client *c)
{
    uv_timer_stop(&c->timer);
    uv_idle_stop(&c->redial);
    uv_idle_start(&c->redial, on_close_turn);
    return STATE_CLOSING;
}

static enum state do_drop(struct link_client *c)
{
    drop_attempt(c);
    return STATE_CLOSING;
}

/* What each event does in each state; an empty cell cannot happen: only our own callbacks could bring it. */
static enum state (*const table[STATE_COUNT][EVENT_COUNT])(struct link_client *) = {
    [STATE_PAUSING] = {ON(DUE, do_dial), ON(CLOSE, do_close)},
    [STATE_DIALLING] = {ON(WELCOME, do_come_up), ON(LOST, do_pause), ON(REFUSE, do_give_up),
                        ON(CLOSE, do_close)},
    [STATE_UP] = {ON(LOST, do_pause), ON(CLOSE, do_close)},
    [STATE_REFUSED] = {ON(CLOSE, do_close)},
    [STATE_CLOSING] = {ON(LOST, do_drop)},
};

bool link_client_permits(unsigned state, unsigned event)
{
    return state < STATE_COUNT && event < EVENT_COUNT && table[state][event] != NULL;
}

/* Not traced: proto/ never logs. */
static void handle(struct link_client *c, enum event event)
{
    must(link_client_permits(c->state, event));
    c->state = table[c->state][event](c);
}

/* ---- life ----------------------------------------------------------------------------------------- */

enum err link_client_new(const struct link_client_options *options, const struct msg_hello *hello,
                         struct link_client **out, struct err_detail *d)
{
    const struct identity *id = options->identity;
    enum err e = link_check_address(options->address, d);
    if (e != ERR_OK)
        return e;
    bool ipc = link_is_ipc(options->address);
    if (!ipc && id == NULL)
        return err_set(d, ERR_INVALID, "%s needs a certificate: enroll first", options->address);
    nng_tls_config *tls = NULL;
    if (!ipc)
        e = link_tls_client(id->ca_pem, id->cert_pem, id->key_pem, &tls, d);
    if (e != ERR_OK)
        return e;
    struct link_client *c = mem_zalloc(1, sizeof *c);
    c->loop = options->loop;
    c->address = mem_strdup(options->address);
    c->identity = ipc ? NULL : id;
    c->tls = tls;
    c->connect_timeout_ns = options->connect_timeout_ns;
    c->handlers = options->handlers;
    c->backoff_ns = BACKOFF_FIRST_NS;
    session_init(&c->session, MSG_ROLE_CONTROLLER);
    struct msg m = {.kind = MSG_HELLO, .u.hello = *hello};
    msg_copy(&c->hello, &m);
    mem_set_string(&c->hello.u.hello.certificate_pem, ipc ? NULL : id->cert_pem);
    must(uv_timer_init(c->loop, &c->timer) == 0);
    must(uv_idle_init(c->loop, &c->redial) == 0);
    c->timer.data = c->redial.data = c;
    *out = c;
    /* From the loop, so that no callback comes before this has returned. */
    uv_timer_start(&c->timer, on_pause_over, 0, 0);
    return ERR_OK;
}

void link_client_set_held_job(struct link_client *c, const char *job, uint64_t run)
{
    c->hello.u.hello.held_run = run;
    mem_set_string(&c->hello.u.hello.held_job, job);
}

void link_client_close(struct link_client **client, void (*cb)(void *arg), void *arg)
{
    struct link_client *c = *client;
    *client = NULL;
    c->on_closed = cb;
    c->on_closed_arg = arg;
    handle(c, EVENT_CLOSE);
}
