#include "proto/link/link.h"

#include "common/clock.h"
#include "common/mem.h"
#include "proto/link/attempt.h"
#include "proto/link/link_nng.h"
#include "proto/link/session.h"
#include "proto/msg/codec.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One connection for one question, on a loop of its own. */
struct exchange {
    struct attempt *attempt;
    uv_timer_t timer;
    const char *address;
    const struct msg *question;
    uint64_t timeout_ns;
    enum err result;
    struct msg answer;
    struct err_detail *d;
};

static void finish(struct exchange *x, enum err e)
{
    x->result = e;
    if (x->attempt != NULL)
        attempt_close(&x->attempt);
}

static void on_timeout(uv_timer_t *timer)
{
    struct exchange *x = timer->data;
    finish(x, err_set(x->d, ERR_TIMEOUT, "no answer from %s in time", x->address));
}

static void on_call_over(void *arg, struct attempt_call *call, int nng_code, nng_msg *reply)
{
    (void)call;
    struct exchange *x = arg;
    if (nng_code != 0) {
        finish(x, err_set(x->d, link_err(nng_code), "%s did not answer: %s", x->address,
                          nng_strerror(nng_code)));
        return;
    }
    struct msg m;
    enum err e = codec_decode(nng_msg_body(reply), nng_msg_len(reply), &m, x->d);
    nng_msg_free(reply);
    if (e == ERR_OK && m.kind == MSG_REFUSED) {
        e = err_set(x->d, m.u.refused.code, "%s refuses: %s", x->address, msg_text(m.u.refused.text));
        msg_fini(&m);
    } else if (e == ERR_OK && !session_answers(x->question->kind, m.kind)) {
        e = err_set(x->d, ERR_INVALID, "%s answers %s with %s", x->address, msg_kind_name(x->question->kind),
                    msg_kind_name(m.kind));
        msg_fini(&m);
    } else if (e == ERR_OK) {
        x->answer = m;
    }
    finish(x, e);
}

static void on_dialled(void *arg, enum err e, const struct err_detail *d)
{
    struct exchange *x = arg;
    nng_msg *packed = NULL;
    if (e != ERR_OK)
        e = err_set(x->d, e, "%s", d->text);
    else
        e = link_pack(x->question, &packed, x->d);
    if (e != ERR_OK)
        finish(x, e);
    else
        attempt_start_call(attempt_take_call(x->attempt), packed, x->timeout_ns);
}

static void on_lost(void *arg)
{
    struct exchange *x = arg;
    finish(x, err_set(x->d, ERR_CLOSED, "%s closed the connection", x->address));
}

static void on_closed(void *arg)
{
    struct exchange *x = arg;
    uv_close((uv_handle_t *)&x->timer, NULL);
}

static enum err ask(const char *address, nng_tls_config *tls, const struct msg *question, uint64_t timeout_ns,
                    struct msg *answer, struct err_detail *d)
{
    struct exchange x = {.address = address, .question = question, .timeout_ns = timeout_ns, .d = d};
    const struct attempt_handlers handlers = {.arg = &x,
                                              .on_dialled = on_dialled,
                                              .on_call_over = on_call_over,
                                              .on_lost = on_lost,
                                              .on_closed = on_closed};
    uv_loop_t loop;
    must(uv_loop_init(&loop) == 0);
    must(uv_timer_init(&loop, &x.timer) == 0);
    x.timer.data = &x;
    x.result = attempt_new(&loop, address, tls, &handlers, &x.attempt, d);
    if (x.result == ERR_OK)
        uv_timer_start(&x.timer, on_timeout, timeout_ns / NS_PER_MS + 1, 0);
    else
        on_closed(&x);
    uv_run(&loop, UV_RUN_DEFAULT);
    must(uv_loop_close(&loop) == 0);
    if (x.result == ERR_OK)
        *answer = x.answer;
    return x.result;
}

/* Over a connection that proves nothing: the CA is believed only if it has the token's fingerprint. */
static enum err fetch_ca(const struct link_enroll_options *o, const uint8_t fingerprint[MSG_HASH_BYTES],
                         char **ca_pem, struct err_detail *d)
{
    nng_tls_config *tls;
    struct msg question, answer;
    uint8_t found[MSG_HASH_BYTES];
    msg_init(&question, MSG_CA_ASK);
    question.serial = 1;
    enum err e = link_tls_client(NULL, NULL, NULL, &tls, d);
    if (e != ERR_OK)
        return e;
    e = ask(o->address, tls, &question, o->timeout_ns, &answer, d);
    nng_tls_config_free(tls);
    if (e != ERR_OK)
        return e;
    e = identity_fingerprint(answer.u.ca_give.ca_pem, found, d);
    if (e == ERR_OK && memcmp(found, fingerprint, sizeof found) != 0)
        e = err_set(d, ERR_DENIED, "%s is not the controller that made this token", o->address);
    if (e == ERR_OK)
        *ca_pem = mem_strdup(answer.u.ca_give.ca_pem);
    msg_fini(&answer);
    return e;
}

/* Over a connection whose controller is verified: only here does the token travel. */
static enum err fetch_certificate(const struct link_enroll_options *o, const char *secret,
                                  const char *csr_pem, struct identity *id, struct err_detail *d)
{
    nng_tls_config *tls;
    struct msg question, answer;
    enum err e = link_tls_client(id->ca_pem, NULL, NULL, &tls, d);
    if (e != ERR_OK)
        return e;
    msg_init(&question, MSG_ENROLL);
    question.serial = 1;
    question.u.enroll.token = mem_strdup(secret);
    question.u.enroll.name = mem_strdup(o->name);
    question.u.enroll.role = o->role;
    question.u.enroll.csr_pem = mem_strdup(csr_pem);
    e = ask(o->address, tls, &question, o->timeout_ns, &answer, d);
    nng_tls_config_free(tls);
    msg_fini(&question);
    if (e != ERR_OK)
        return e;
    id->cert_pem = mem_strdup(answer.u.enrolled.certificate_pem);
    msg_fini(&answer);
    return ERR_OK;
}

enum err link_enroll(const struct link_enroll_options *o, struct err_detail *d)
{
    char secret[64];
    uint8_t fingerprint[MSG_HASH_BYTES];
    struct identity id = {0};
    struct identity_facts facts = {.role = MSG_ROLE_NONE};
    char *csr_pem = NULL;
    enum err e = link_check_address(o->address, d);
    if (e == ERR_OK && link_is_ipc(o->address))
        e = err_set(d, ERR_INVALID, "%s: on the controller's own machine no enrollment is needed",
                    o->address);
    if (e == ERR_OK)
        e = identity_parse_token(o->token, secret, fingerprint, d);
    if (e == ERR_OK)
        e = identity_make_request(o->name, &id.key_pem, &csr_pem, d);
    if (e == ERR_OK)
        e = fetch_ca(o, fingerprint, &id.ca_pem, d);
    if (e == ERR_OK)
        e = fetch_certificate(o, secret, csr_pem, &id, d);
    if (e == ERR_OK)
        e = identity_check_certificate(id.ca_pem, id.cert_pem, &facts, d);
    if (e == ERR_OK && (strcmp(facts.name, o->name) != 0 || facts.role != o->role))
        e = err_set(d, ERR_DENIED, "%s certifies %s '%s', not what was asked for", o->address,
                    msg_role_name(facts.role), facts.name);
    if (e == ERR_OK)
        e = identity_store(o->dir, &id, d);
    free(csr_pem);
    identity_fini(&id);
    return e;
}
