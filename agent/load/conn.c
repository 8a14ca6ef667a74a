#include "agent/load/conn.h"

#include "agent/load/conn_opening.h"
#include "agent/load/conn_sending.h"
#include "common/clock.h"

#include <inttypes.h>

/* Of a body that nobody looks at: below this a copy costs less than the extra call. */
#define SKIP_BYTES_MIN (16u * 1024u)
/* A connection that ended within this time, and without a request, was never of use. Servers' own limits for
 * idle ones are longer, and what they end so is opened again at once. */
#define USELESS_NS (100 * NS_PER_MS)

void conn_init(struct conn *c, uint32_t slot, uint8_t *space, struct sha256 *sum)
{
    *c = (struct conn){
        .slot = slot, .state = CONN_CLOSED, .deadline_ns = UINT64_MAX, .space = space, .sum = sum};
}

void conn_fini(struct conn *c)
{
    response_fini(&c->response);
    tls_free(c->tls);
    tls_session_free(c->session);
}

static enum conn_state on_sent(struct conn_set *s, struct conn *c, const struct conn_input *in)
{
    (void)in;
    c->send_pending = false;
    return sending_go_on(s, c);
}

static enum conn_state on_fed(struct conn_set *s, struct conn *c, const struct conn_input *in)
{
    (void)in;
    return sending_go_on(s, c);
}

static enum conn_state on_close(struct conn_set *s, struct conn *c, const struct conn_input *in)
{
    (void)in;
    sending_close(s, c);
    return CONN_CLOSED;
}

/* --- a request without an answer --- */

static enum conn_state fail_request(struct conn_set *s, struct conn *c, enum fault_phase phase,
                                    enum fault_cause cause, const char *text)
{
    meter_fail(&s->meter, &c->metered, &(struct fault){phase, cause, text});
    return opening_again(s, c);
}

/* Of a request whose whole has been sent. */
static enum fault_phase phase_of_answer(const struct conn *c)
{
    return response_untouched(&c->response) ? FAULT_WAIT : FAULT_RECEIVE;
}

static enum fault_phase phase_of(const struct conn *c)
{
    return c->state == CONN_SENDING ? FAULT_SEND : phase_of_answer(c);
}

static enum conn_state on_request_expired(struct conn_set *s, struct conn *c, const struct conn_input *in)
{
    (void)in;
    static const char *const texts[FAULT_PHASE_COUNT] = {
        [FAULT_SEND] = "the request was not taken in time",
        [FAULT_WAIT] = "no byte of an answer in time",
        [FAULT_RECEIVE] = "the answer was not whole in time",
    };
    enum fault_phase phase = phase_of(c);
    return fail_request(s, c, phase, CAUSE_TIMEOUT, texts[phase]);
}

/* The TLS session failed. Before the server has proved itself the whole opening was in vain. */
static enum conn_state on_broken_in_request(struct conn_set *s, struct conn *c, const struct conn_input *in)
{
    (void)in;
    const struct tls_failure *f = tls_failure_of(c->tls);
    sending_alert(s, c);
    if (tls_is_proven(c->tls))
        return fail_request(s, c, FAULT_RECEIVE, CAUSE_PROTOCOL, f->text);
    meter_fail(&s->meter, &c->metered, &(struct fault){FAULT_TLS, f->cause, f->text});
    return opening_back_off(s, c);
}

/* --- answers --- */

/* What is wrong with a whole answer; FAULT_CAUSE_COUNT when it is as expected. */
static enum fault_cause judge(const struct conn *c, size_t surplus, char *text, size_t size)
{
    const struct response *r = &c->response;
    const struct expect *e = &c->request->expect;
    if (surplus != 0) {
        snprintf(text, size, "bytes follow the answer that no request asked for");
        return CAUSE_DESYNC;
    }
    if (!expect_has_status(e, r->status)) {
        snprintf(text, size, "status %u", r->status);
        return CAUSE_STATUS;
    }
    if (e->has_length && r->body_len != e->length) {
        snprintf(text, size, "the body has %" PRIu64 " bytes, not %" PRIu64, r->body_len, e->length);
        return CAUSE_CHECK;
    }
    if (e->has_hash) {
        uint8_t hash[SHA256_BYTES];
        sha256_end(c->sum, hash);
        if (memcmp(hash, e->hash, sizeof hash) != 0) {
            snprintf(text, size, "the body has another SHA-256");
            return CAUSE_CHECK;
        }
    }
    return FAULT_CAUSE_COUNT;
}

/* Every whole answer ends here: counted in the phase in which it became whole. */
static enum conn_state on_complete(struct conn_set *s, struct conn *c, size_t surplus)
{
    const struct response *r = &c->response;
    char text[FAULT_SAMPLE_BYTES];
    c->answered++;
    c->failures = 0;
    meter_answer(&s->meter, r->status);
    enum fault_cause cause = judge(c, surplus, text, sizeof text);
    if (cause == FAULT_CAUSE_COUNT)
        meter_ok(&s->meter, &c->metered, r->body_len);
    else
        meter_refuse(&s->meter, &c->metered, &(struct fault){FAULT_RECEIVE, cause, text});
    bool reusable = r->keep_alive && surplus == 0 && c->state != CONN_SENDING && !c->request->closes &&
                    c->answered != s->share.options->requests_per_connection;
    if (!reusable)
        return opening_again(s, c);
    sending_count_all(s, c);
    return sending_next(s, c);
}

static enum conn_state on_framing_fault(struct conn_set *s, struct conn *c)
{
    enum response_fault f = (enum response_fault)c->response.fault;
    bool big = f == RESPONSE_HEAD_TOO_BIG || f == RESPONSE_CHUNK_LINE_TOO_BIG ||
               f == RESPONSE_TRAILER_TOO_BIG || f == RESPONSE_INTERIM_TOO_MANY;
    return fail_request(s, c, phase_of_answer(c), big ? CAUSE_TOO_BIG : CAUSE_PROTOCOL,
                        response_fault_text(f));
}

static void add_to_sum(void *arg, const uint8_t *data, size_t len)
{
    sha256_add(arg, data, len);
}

static enum conn_state on_answer_bytes(struct conn_set *s, struct conn *c, const struct conn_input *in)
{
    struct response *r = &c->response;
    size_t at = 0;
    struct quick *quick = &s->quick[c->request->index];
    if (response_untouched(r) && quick_know(quick, in->data, in->len)) {
        response_begin(r, &quick->head);
        at = quick->head_len;
    }
    bool hashing = c->request->expect.has_hash;
    const struct response_sink sum = {.arg = c->sum, .on_body = add_to_sum};
    at += response_feed(r, in->data + at, in->len - at, hashing ? &sum : NULL);
    if (r->fault != RESPONSE_NONE)
        return on_framing_fault(s, c);
    if (r->state == RESPONSE_DONE)
        return on_complete(s, c, in->len - at);
    if (s->may_skip && !hashing && r->state == RESPONSE_IN_LENGTH && r->remaining >= SKIP_BYTES_MIN)
        transport_skip(s->transport, c->slot, r->remaining);
    return c->state == CONN_SENDING ? CONN_SENDING : CONN_RECEIVING;
}

static enum conn_state on_skipped(struct conn_set *s, struct conn *c, const struct conn_input *in)
{
    struct response *r = &c->response;
    s->meter.accounts->wire_in += in->len;
    response_skip(r, in->len);
    return r->state == RESPONSE_DONE ? on_complete(s, c, 0) : (enum conn_state)c->state;
}

static enum conn_state fail_short(struct conn_set *s, struct conn *c, const char *text)
{
    s->meter.accounts->short_bodies++;
    return fail_request(s, c, FAULT_RECEIVE, CAUSE_CLOSED_EARLY, text);
}

/* An orderly end in an answer: some are whole by that. */
static enum conn_state on_closed_in_answer(struct conn_set *s, struct conn *c, bool truncated)
{
    struct response *r = &c->response;
    if (truncated && r->state == RESPONSE_UNTIL_CLOSE)
        return fail_short(s, c, "the peer closed without a TLS close_notify");
    response_end(r);
    if (r->state == RESPONSE_DONE)
        return on_complete(s, c, 0);
    const char *text = response_fault_text((enum response_fault)r->fault);
    return r->fault == RESPONSE_CLOSED_IN_BODY ? fail_short(s, c, text)
                                               : fail_request(s, c, FAULT_RECEIVE, CAUSE_CLOSED_EARLY, text);
}

static enum conn_state on_ended_in_request(struct conn_set *s, struct conn *c, const struct conn_input *in)
{
    const struct response *r = &c->response;
    enum fault_phase phase = phase_of(c);
    if (phase == FAULT_RECEIVE && in->error == 0)
        return on_closed_in_answer(s, c, in->truncated);
    enum fault_cause cause = in->error != 0 ? fault_cause_of_errno(in->error) : CAUSE_CLOSED_EARLY;
    if (c->answered != 0 && response_untouched(r))
        cause = CAUSE_STALE;
    if (phase == FAULT_RECEIVE && r->status != 0)
        s->meter.accounts->short_bodies++;
    return fail_request(s, c, phase, cause,
                        in->error != 0 ? strerror(in->error) : "the peer closed the connection");
}

/* --- between requests --- */

/* A peer that ends a connection as soon as it is open may do so with each: not at once again, then. */
static enum conn_state replace_idle(struct conn_set *s, struct conn *c)
{
    dispatch_withdraw(&s->dispatch, c->slot);
    return c->answered == 0 && s->meter.now_ns - c->opening_ns < USELESS_NS ? opening_back_off(s, c)
                                                                            : opening_again(s, c);
}

static enum conn_state on_idle_bytes(struct conn_set *s, struct conn *c, const struct conn_input *in)
{
    (void)in;
    s->meter.accounts->idle_surplus++;
    return replace_idle(s, c);
}

static enum conn_state on_idle_ended(struct conn_set *s, struct conn *c, const struct conn_input *in)
{
    (void)in;
    s->meter.accounts->idle_closes++;
    return replace_idle(s, c);
}

static enum conn_state on_idle_broken(struct conn_set *s, struct conn *c, const struct conn_input *in)
{
    (void)in;
    const struct tls_failure *f = tls_failure_of(c->tls);
    dispatch_withdraw(&s->dispatch, c->slot);
    sending_alert(s, c);
    return tls_is_proven(c->tls) ? opening_again(s, c)
                                 : opening_fail(s, c, &(struct fault){FAULT_TLS, f->cause, f->text});
}

static enum conn_state on_due(struct conn_set *s, struct conn *c, const struct conn_input *in)
{
    return sending_begin(s, c, in->at_ns);
}

/* --- what each event does in each state; an empty cell cannot happen --- */

typedef enum conn_state handler(struct conn_set *s, struct conn *c, const struct conn_input *in);

static handler *const table[CONN_STATE_COUNT][CONN_EVENT_COUNT] = {
    [CONN_CLOSED] = {[CONN_EVENT_START] = opening_on_start, [CONN_EVENT_CLOSE] = on_close},
    [CONN_BACKOFF] = {[CONN_EVENT_EXPIRED] = opening_on_backoff_over, [CONN_EVENT_CLOSE] = on_close},
    [CONN_CONNECTING] = {[CONN_EVENT_OPENED] = opening_on_opened,
                         [CONN_EVENT_FAILED] = opening_on_failed,
                         [CONN_EVENT_EXPIRED] = opening_on_expired,
                         [CONN_EVENT_CLOSE] = on_close},
    [CONN_HANDSHAKE] = {[CONN_EVENT_SENT] = on_sent,
                        [CONN_EVENT_FED] = opening_on_fed,
                        [CONN_EVENT_ENDED] = opening_on_ended,
                        [CONN_EVENT_EXPIRED] = opening_on_expired,
                        [CONN_EVENT_CLOSE] = on_close},
    [CONN_READY] = {[CONN_EVENT_DUE] = on_due,
                    [CONN_EVENT_SENT] = on_sent, /* the end of a hand-shake */
                    [CONN_EVENT_BYTES] = on_idle_bytes,
                    [CONN_EVENT_FED] = on_fed,
                    [CONN_EVENT_BROKEN] = on_idle_broken,
                    [CONN_EVENT_ENDED] = on_idle_ended,
                    [CONN_EVENT_CLOSE] = on_close},
    [CONN_SENDING] = {[CONN_EVENT_SENT] = on_sent,
                      [CONN_EVENT_BYTES] = on_answer_bytes,
                      [CONN_EVENT_SKIPPED] = on_skipped,
                      [CONN_EVENT_FED] = on_fed,
                      [CONN_EVENT_BROKEN] = on_broken_in_request,
                      [CONN_EVENT_ENDED] = on_ended_in_request,
                      [CONN_EVENT_EXPIRED] = on_request_expired,
                      [CONN_EVENT_CLOSE] = on_close},
    [CONN_WAITING] = {[CONN_EVENT_SENT] = on_sent, /* a word of the TLS session's own */
                      [CONN_EVENT_BYTES] = on_answer_bytes,
                      [CONN_EVENT_FED] = on_fed,
                      [CONN_EVENT_BROKEN] = on_broken_in_request,
                      [CONN_EVENT_ENDED] = on_ended_in_request,
                      [CONN_EVENT_EXPIRED] = on_request_expired,
                      [CONN_EVENT_CLOSE] = on_close},
    [CONN_RECEIVING] = {[CONN_EVENT_SENT] = on_sent,
                        [CONN_EVENT_BYTES] = on_answer_bytes,
                        [CONN_EVENT_SKIPPED] = on_skipped,
                        [CONN_EVENT_FED] = on_fed,
                        [CONN_EVENT_BROKEN] = on_broken_in_request,
                        [CONN_EVENT_ENDED] = on_ended_in_request,
                        [CONN_EVENT_EXPIRED] = on_request_expired,
                        [CONN_EVENT_CLOSE] = on_close},
};

void conn_handle(struct conn_set *s, struct conn *c, enum conn_event event, const struct conn_input *in)
{
    handler *h = table[c->state][event];
    must(h != NULL);
    c->state = (uint8_t)h(s, c, in);
}

/* --- bytes as they come --- */

/* Reads what the session makes of the bytes just fed to it, until that is used up or the session over. */
static void receive_through_tls(struct conn_set *s, struct conn *c)
{
    static const struct conn_input nothing = {0};
    const struct tls *session = c->tls;
    enum tls_result result = TLS_OK;
    while (result == TLS_OK && c->tls == session) {
        struct conn_input in = {.data = s->plain};
        result = tls_read(c->tls, s->plain, sizeof s->plain, &in.len);
        if (result == TLS_OK)
            conn_handle(s, c, CONN_EVENT_BYTES, &in);
    }
    if (result == TLS_WANT_MORE)
        conn_handle(s, c, CONN_EVENT_FED, &nothing);
    else if (result == TLS_CLOSED)
        conn_handle(s, c, CONN_EVENT_ENDED, &nothing);
    else if (result == TLS_FAILED)
        conn_handle(s, c, CONN_EVENT_BROKEN, &nothing);
}

void conn_receive(struct conn_set *s, struct conn *c, const uint8_t *data, size_t len)
{
    s->meter.accounts->wire_in += len;
    if (c->tls == NULL) {
        conn_handle(s, c, CONN_EVENT_BYTES, &(struct conn_input){.data = data, .len = len});
        return;
    }
    tls_feed(c->tls, data, len);
    if (c->state == CONN_HANDSHAKE)
        conn_handle(s, c, CONN_EVENT_FED, &(struct conn_input){0});
    if (c->tls != NULL && c->state != CONN_HANDSHAKE)
        receive_through_tls(s, c);
}

void conn_end(struct conn_set *s, struct conn *c, int error)
{
    /* Within TLS an orderly end was announced, and handled, before. */
    conn_handle(s, c, CONN_EVENT_ENDED, &(struct conn_input){.error = error, .truncated = c->tls != NULL});
}
