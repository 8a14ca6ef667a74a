#include "agent/load/conn.h"

#include "agent/load/conn_opening.h"
#include "agent/load/wire_out.h"
#include "agent/load/worker.h"
#include "common/clock.h"

#include <inttypes.h>

/* Of a body that nobody looks at: below this a copy costs less than the extra call. */
#define SKIP_BYTES_MIN (16u * 1024u)
/* What the kernel has taken, it may still hold when the connection goes: of less than this nobody asks. */
#define HELD_BYTES_MIN (16u * 1024u)
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
    tls_memory_fini(&c->memory);
}

/* What has left is counted when its request is answered, or else when the connection goes. */
static void count_out(struct worker *w, struct conn *c, uint64_t left_bytes)
{
    w->accounts->wire_out += left_bytes - c->counted_bytes;
    c->counted_bytes = left_bytes;
}

static void count_out_at_end(struct worker *w, struct conn *c)
{
    uint64_t left_bytes = c->given_bytes;
    if (c->send_pending || c->given_bytes - c->counted_bytes >= HELD_BYTES_MIN)
        left_bytes = wire_out_left(transport_socket(w->transport, c->slot), c->given_bytes);
    if (left_bytes > c->counted_bytes)
        count_out(w, c, left_bytes);
    c->given_bytes = c->counted_bytes = 0;
}

void conn_close(struct worker *w, struct conn *c)
{
    if (c->given_bytes != c->counted_bytes)
        count_out_at_end(w, c);
    if (c->state == CONN_READY)
        worker_unready(w, c);
    transport_close(w->transport, c->slot);
    tls_free(c->tls);
    c->tls = NULL;
    c->send_pending = false;
    c->state = CONN_CLOSED;
    c->deadline_ns = UINT64_MAX;
}

static void reopen(struct worker *w, struct conn *c)
{
    conn_close(w, c);
    if (w->phase != PHASE_DRAIN)
        conn_open(w, c);
}

/* --- sending --- */

static void give(struct worker *w, struct conn *c, const uint8_t *data, size_t len)
{
    c->given_bytes += len;
    c->send_pending = !transport_send(w->transport, c->slot, data, len);
}

void conn_flush(struct worker *w, struct conn *c)
{
    const uint8_t *data = NULL;
    size_t len = 0;
    while (!c->send_pending && tls_has_output(c->tls)) {
        transport_settle(w->transport, c->slot); /* a hand-shake's last flight and a request in one round */
        if (tls_take_output(c->tls, &data, &len))
            give(w, c, data, len);
    }
}

void conn_send_alert(struct worker *w, struct conn *c)
{
    conn_flush(w, c);
    transport_settle(w->transport, c->slot);
}

static void send_bytes(struct worker *w, struct conn *c, const uint8_t *data, size_t len)
{
    if (c->tls == NULL) {
        give(w, c, data, len);
        return;
    }
    tls_write(c->tls, data, len);
    conn_flush(w, c);
}

static bool is_sending(const struct conn *c)
{
    return c->send_pending || (c->tls != NULL && tls_is_writing(c->tls));
}

static void go_on_sending(struct worker *w, struct conn *c)
{
    if (c->tls != NULL)
        conn_flush(w, c);
    if (c->state == CONN_SENDING && !is_sending(c))
        c->state = response_untouched(&c->response) ? CONN_WAITING : CONN_RECEIVING;
}

static void on_sent(struct worker *w, struct conn *c, const struct conn_input *in)
{
    (void)in;
    c->send_pending = false;
    go_on_sending(w, c);
}

/* --- one request --- */

void conn_send(struct worker *w, struct conn *c, uint64_t intended_ns)
{
    must(c->state == CONN_READY);
    const struct request *r = worker_next_request(w);
    c->request = r;
    c->intended_ns = intended_ns;
    c->sent_ns = w->now_ns;
    response_init(&c->response, r->is_head);
    if (r->expect.has_hash)
        sha256_restart(c->sum);
    worker_set_deadline(w, c, w->now_ns + w->options->timeout_ns);
    w->in_flight++;
    w->accounts->sent++;
    if (r->is_template)
        send_bytes(w, c, c->space, request_render(r, &w->template_state, c->space));
    else
        send_bytes(w, c, r->bytes, r->len);
    c->state = is_sending(c) ? CONN_SENDING : CONN_WAITING;
}

static void count_failed(struct worker *w, struct conn *c, enum fault_phase phase, enum fault_cause cause,
                         const char *text)
{
    w->in_flight--;
    w->accounts->failed++;
    fault_note(&w->tally->faults[w->phase], phase, cause, text);
    if (w->phase == PHASE_WINDOW) {
        w->tally->requests[c->request->index].failed++;
        if (cause == CAUSE_TIMEOUT)
            hist_record(&w->tally->hists[TALLY_TIMEOUTS], w->now_ns - c->intended_ns);
    }
}

static void fail_request(struct worker *w, struct conn *c, enum fault_phase phase, enum fault_cause cause,
                         const char *text)
{
    count_failed(w, c, phase, cause, text);
    reopen(w, c);
}

/* The phase of a request that is under way. */
static enum fault_phase phase_of(const struct conn *c)
{
    if (c->state == CONN_SENDING)
        return FAULT_SEND;
    return response_untouched(&c->response) ? FAULT_WAIT : FAULT_RECEIVE;
}

static void fail_answered(struct worker *w, struct conn *c, enum fault_cause cause, const char *text)
{
    w->accounts->failed++;
    fault_note(&w->tally->faults[w->phase], FAULT_RECEIVE, cause, text);
    if (w->phase != PHASE_WINDOW)
        return;
    w->tally->requests[c->request->index].failed++;
    hist_record(&w->tally->hists[TALLY_FAILED], w->now_ns - c->intended_ns);
}

static void record_ok(struct worker *w, const struct conn *c)
{
    w->tally->requests[c->request->index].ok++;
    hist_record(&w->interval->latency, w->now_ns - c->intended_ns);
    if (w->options->open_loop)
        hist_record(&w->tally->hists[TALLY_SERVICE], w->now_ns - c->sent_ns);
}

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
static void on_complete(struct worker *w, struct conn *c, size_t surplus)
{
    const struct response *r = &c->response;
    char text[FAULT_SAMPLE_BYTES];
    w->in_flight--;
    w->accounts->responses++;
    c->answered++;
    c->failures = 0;
    if (w->phase == PHASE_WINDOW)
        w->tally->status[r->status]++;
    enum fault_cause cause = judge(c, surplus, text, sizeof text);
    if (cause != FAULT_CAUSE_COUNT) {
        fail_answered(w, c, cause, text);
    } else {
        w->accounts->ok++;
        w->accounts->body_bytes += r->body_len;
        if (w->phase == PHASE_WINDOW)
            record_ok(w, c);
    }
    bool reusable = r->keep_alive && surplus == 0 && c->state != CONN_SENDING && !c->request->closes &&
                    c->answered != w->options->requests_per_connection;
    if (!reusable) {
        reopen(w, c);
        return;
    }
    count_out(w, c, c->given_bytes);
    c->state = CONN_READY;
    c->deadline_ns = UINT64_MAX;
    worker_ready(w, c);
}

static void on_framing_fault(struct worker *w, struct conn *c)
{
    enum response_fault f = (enum response_fault)c->response.fault;
    enum fault_phase phase = response_untouched(&c->response) ? FAULT_WAIT : FAULT_RECEIVE;
    bool big = f == RESPONSE_HEAD_TOO_BIG || f == RESPONSE_CHUNK_LINE_TOO_BIG ||
               f == RESPONSE_TRAILER_TOO_BIG || f == RESPONSE_INTERIM_TOO_MANY;
    fail_request(w, c, phase, big ? CAUSE_TOO_BIG : CAUSE_PROTOCOL, response_fault_text(f));
}

static void on_body(void *arg, const uint8_t *data, size_t len)
{
    sha256_add(arg, data, len);
}

static void on_answer_bytes(struct worker *w, struct conn *c, const struct conn_input *in)
{
    struct response *r = &c->response;
    size_t at = 0;
    struct quick *quick = &w->quick[c->request->index];
    if (response_untouched(r) && quick_know(quick, in->data, in->len)) {
        response_begin(r, &quick->head);
        at = quick->head_len;
    }
    bool hashing = c->request->expect.has_hash;
    const struct response_sink sum = {.arg = c->sum, .on_body = on_body};
    at += response_feed(r, in->data + at, in->len - at, hashing ? &sum : NULL);
    if (r->fault != RESPONSE_NONE) {
        on_framing_fault(w, c);
    } else if (r->state == RESPONSE_DONE) {
        on_complete(w, c, in->len - at);
    } else {
        if (c->state == CONN_WAITING)
            c->state = CONN_RECEIVING;
        if (w->may_skip && !hashing && r->state == RESPONSE_IN_LENGTH && r->remaining >= SKIP_BYTES_MIN)
            transport_skip(w->transport, c->slot, r->remaining);
    }
}

static void on_skipped(struct worker *w, struct conn *c, const struct conn_input *in)
{
    struct response *r = &c->response;
    w->accounts->wire_in += in->len;
    response_skip(r, in->len);
    if (r->state == RESPONSE_DONE)
        on_complete(w, c, 0);
}

static void on_ended_in_request(struct worker *w, struct conn *c, const struct conn_input *in)
{
    struct response *r = &c->response;
    enum fault_phase phase = phase_of(c);
    if (phase != FAULT_RECEIVE || in->error != 0) {
        enum fault_cause cause = in->error != 0 ? fault_cause_of_errno(in->error) : CAUSE_CLOSED_EARLY;
        if (c->answered != 0 && response_untouched(r))
            cause = CAUSE_STALE;
        if (phase == FAULT_RECEIVE && r->status != 0)
            w->accounts->short_bodies++;
        fail_request(w, c, phase, cause,
                     in->error != 0 ? strerror(in->error) : "the peer closed the connection");
        return;
    }
    if (in->truncated && r->state == RESPONSE_UNTIL_CLOSE) {
        w->accounts->short_bodies++;
        fail_request(w, c, FAULT_RECEIVE, CAUSE_CLOSED_EARLY, "the peer closed without a TLS close_notify");
        return;
    }
    response_end(r);
    if (r->state == RESPONSE_DONE) {
        on_complete(w, c, 0);
        return;
    }
    if (r->fault == RESPONSE_CLOSED_IN_BODY)
        w->accounts->short_bodies++;
    fail_request(w, c, FAULT_RECEIVE, CAUSE_CLOSED_EARLY, response_fault_text((enum response_fault)r->fault));
}

static void on_request_expired(struct worker *w, struct conn *c, const struct conn_input *in)
{
    (void)in;
    static const char *const texts[FAULT_PHASE_COUNT] = {
        [FAULT_SEND] = "the request was not taken in time",
        [FAULT_WAIT] = "no byte of an answer in time",
        [FAULT_RECEIVE] = "the answer was not whole in time",
    };
    enum fault_phase phase = phase_of(c);
    fail_request(w, c, phase, CAUSE_TIMEOUT, texts[phase]);
}

/* --- between requests --- */

/* A peer that ends a connection as soon as it is open may do so with each: not at once again, then. */
static void replace_idle(struct worker *w, struct conn *c)
{
    if (c->answered == 0 && w->now_ns - c->opening_ns < USELESS_NS)
        opening_back_off(w, c);
    else
        reopen(w, c);
}

static void on_idle_bytes(struct worker *w, struct conn *c, const struct conn_input *in)
{
    (void)in;
    w->accounts->idle_surplus++;
    replace_idle(w, c);
}

static void on_idle_ended(struct worker *w, struct conn *c, const struct conn_input *in)
{
    (void)in;
    w->accounts->idle_closes++;
    replace_idle(w, c);
}

/* --- which event is welcome when --- */

typedef void handler(struct worker *w, struct conn *c, const struct conn_input *in);

static handler *const handlers[CONN_STATE_COUNT][CONN_EVENT_COUNT] = {
    [CONN_BACKOFF] = {[CONN_EVENT_EXPIRED] = opening_on_backoff_over},
    [CONN_CONNECTING] = {[CONN_EVENT_OPENED] = opening_on_opened,
                         [CONN_EVENT_FAILED] = opening_on_failed,
                         [CONN_EVENT_EXPIRED] = opening_on_expired},
    [CONN_HANDSHAKE] = {[CONN_EVENT_SENT] = on_sent,
                        [CONN_EVENT_ENDED] = opening_on_ended,
                        [CONN_EVENT_EXPIRED] = opening_on_expired},
    [CONN_READY] = {[CONN_EVENT_SENT] = on_sent, /* the end of a hand-shake */
                    [CONN_EVENT_BYTES] = on_idle_bytes,
                    [CONN_EVENT_ENDED] = on_idle_ended},
    [CONN_SENDING] = {[CONN_EVENT_SENT] = on_sent,
                      [CONN_EVENT_BYTES] = on_answer_bytes,
                      [CONN_EVENT_SKIPPED] = on_skipped,
                      [CONN_EVENT_ENDED] = on_ended_in_request,
                      [CONN_EVENT_EXPIRED] = on_request_expired},
    [CONN_WAITING] = {[CONN_EVENT_SENT] = on_sent, /* a word of the TLS session's own */
                      [CONN_EVENT_BYTES] = on_answer_bytes,
                      [CONN_EVENT_ENDED] = on_ended_in_request,
                      [CONN_EVENT_EXPIRED] = on_request_expired},
    [CONN_RECEIVING] = {[CONN_EVENT_SENT] = on_sent,
                        [CONN_EVENT_BYTES] = on_answer_bytes,
                        [CONN_EVENT_SKIPPED] = on_skipped,
                        [CONN_EVENT_ENDED] = on_ended_in_request,
                        [CONN_EVENT_EXPIRED] = on_request_expired},
};

bool conn_welcomes(enum conn_state state, enum conn_event event)
{
    return handlers[state][event] != NULL;
}

void conn_handle(struct worker *w, struct conn *c, enum conn_event event, const struct conn_input *in)
{
    handler *h = handlers[c->state][event];
    must(h != NULL);
    h(w, c, in);
}

/* --- bytes as they come --- */

/* The session failed while it was read. */
static void fail_session(struct worker *w, struct conn *c)
{
    const struct tls_failure *f = tls_failure_of(c->tls);
    conn_send_alert(w, c);
    if (tls_is_proven(c->tls) && conn_in_flight(c)) {
        fail_request(w, c, FAULT_RECEIVE, CAUSE_PROTOCOL, f->text);
    } else if (tls_is_proven(c->tls)) {
        reopen(w, c);
    } else if (conn_in_flight(c)) {
        count_failed(w, c, FAULT_TLS, f->cause, f->text);
        opening_back_off(w, c);
    } else {
        opening_fail(w, c, &(struct opening_failure){FAULT_TLS, f->cause, f->text});
    }
}

/* Reads what the session makes of the bytes just fed to it, until that is used up or the session over. */
static void receive_through_tls(struct worker *w, struct conn *c)
{
    const struct tls *session = c->tls;
    for (;;) {
        size_t len = 0;
        enum tls_result result = tls_read(c->tls, w->plain, sizeof w->plain, &len);
        if (result == TLS_WANT_MORE)
            break;
        if (result == TLS_OK)
            conn_handle(w, c, CONN_EVENT_BYTES, &(struct conn_input){.data = w->plain, .len = len});
        else if (result == TLS_CLOSED)
            conn_handle(w, c, CONN_EVENT_ENDED, &(struct conn_input){0});
        else
            fail_session(w, c);
        if (c->tls != session || result != TLS_OK)
            return;
    }
    go_on_sending(w, c);
}

void conn_receive(struct worker *w, struct conn *c, const uint8_t *data, size_t len)
{
    w->accounts->wire_in += len;
    if (c->tls == NULL) {
        conn_handle(w, c, CONN_EVENT_BYTES, &(struct conn_input){.data = data, .len = len});
        return;
    }
    tls_feed(c->tls, data, len);
    if (c->state == CONN_HANDSHAKE)
        opening_shake_hands(w, c);
    if (c->tls != NULL && c->state != CONN_HANDSHAKE)
        receive_through_tls(w, c);
}

void conn_end(struct worker *w, struct conn *c, int error)
{
    /* Within TLS an orderly end was announced, and handled, before. */
    conn_handle(w, c, CONN_EVENT_ENDED, &(struct conn_input){.error = error, .truncated = c->tls != NULL});
}
