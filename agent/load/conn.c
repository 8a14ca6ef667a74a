#include "agent/load/conn.h"

#include "agent/load/worker.h"
#include "common/clock.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <unistd.h>

#define BACKOFF_FIRST_NS (1 * NS_PER_MS)
#define BACKOFF_LAST_NS  (1 * NS_PER_S)
/* Of a body that nobody looks at: below this a copy costs less than the extra call. */
#define SKIP_BYTES_MIN (16u * 1024u)

void conn_init(struct conn *c, uint32_t slot)
{
    *c = (struct conn){.slot = slot, .state = CONN_CLOSED, .deadline_ns = UINT64_MAX};
}

void conn_fini(struct conn *c)
{
    response_fini(&c->response);
}

/* --- opening --- */

static void on_failed(struct worker *w, struct conn *c, const struct conn_input *in);

static void fail_to_open(struct worker *w, struct conn *c, int error)
{
    on_failed(w, c, &(struct conn_input){.error = error});
}

/* TCP only: no delay, and the source address whose turn it is. Returns an errno. */
static int set_up_socket(const struct worker *w, const struct conn *c, int fd, sa_family_t family)
{
    if (family == AF_UNIX)
        return 0;
    int on = 1;
    must(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) == 0);
    if (w->options->source_count == 0)
        return 0;
    const struct target_address *from =
        &w->options->sources[(w->first_slot + c->slot) % w->options->source_count];
    /* The port is chosen when connecting: one source address serves many destinations' worth of ports. */
    must(setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on) == 0);
    return bind(fd, (const struct sockaddr *)&from->addr, from->len) == 0 ? 0 : errno;
}

void conn_open_at(struct worker *w, struct conn *c, uint64_t at_ns)
{
    must(c->state == CONN_CLOSED);
    if (at_ns <= w->now_ns) {
        conn_open(w, c);
        return;
    }
    c->state = CONN_BACKOFF;
    worker_set_deadline(w, c, at_ns);
}

void conn_open(struct worker *w, struct conn *c)
{
    must(c->state == CONN_CLOSED || c->state == CONN_BACKOFF);
    const struct target *t = w->target;
    const struct target_address *a = &t->addresses[(w->first_slot + c->slot) % t->address_count];
    c->state = CONN_CONNECTING;
    c->opening_ns = w->now_ns;
    c->answered = 0;
    int fd = socket(a->addr.ss_family, SOCK_STREAM | SOCK_CLOEXEC | w->transport->ops->socket_flags, 0);
    if (fd < 0) {
        fail_to_open(w, c, errno);
        return;
    }
    int error = set_up_socket(w, c, fd, a->addr.ss_family);
    if (error != 0) {
        close(fd);
        fail_to_open(w, c, error);
        return;
    }
    worker_set_deadline(w, c, w->now_ns + w->options->timeout_ns);
    transport_connect(w->transport, c->slot, fd, (const struct sockaddr *)&a->addr, a->len);
}

void conn_close(struct worker *w, struct conn *c)
{
    if (c->state == CONN_READY)
        worker_unready(w, c);
    transport_close(w->transport, c->slot);
    c->state = CONN_CLOSED;
    c->deadline_ns = UINT64_MAX;
}

static void reopen(struct worker *w, struct conn *c)
{
    conn_close(w, c);
    if (w->phase != PHASE_DRAIN)
        conn_open(w, c);
}

static void on_opened(struct worker *w, struct conn *c, const struct conn_input *in)
{
    (void)in;
    hist_record(w->tally->connect, w->now_ns - c->opening_ns);
    c->state = CONN_READY;
    c->deadline_ns = UINT64_MAX;
    bool first = c->opens == 0 && c->failures == 0;
    c->failures = 0;
    if (c->opens++ != 0)
        w->accounts->reconnects++;
    if (first)
        worker_settled(w, true);
    worker_ready(w, c);
}

/* The request that would have gone out on this connection, if one was waiting, has failed with it. */
static void on_failed(struct worker *w, struct conn *c, const struct conn_input *in)
{
    worker_cross_edges(w);
    w->accounts->open_failures++;
    if (worker_wants_connection(w) && w->phase != PHASE_DRAIN) {
        fault_note(&w->tally->faults[w->phase], FAULT_CONNECT, fault_cause_of_errno(in->error),
                   strerror(in->error));
        w->accounts->scheduled++;
        w->accounts->failed++;
        if (w->pacer.next_ns <= w->now_ns)
            pacer_advance(&w->pacer);
    }
    bool first = c->opens == 0 && c->failures == 0;
    conn_close(w, c);
    if (w->phase != PHASE_DRAIN) {
        uint64_t delay = BACKOFF_FIRST_NS << (c->failures < 10 ? c->failures : 10);
        c->failures++;
        c->state = CONN_BACKOFF;
        worker_set_deadline(w, c, w->now_ns + (delay < BACKOFF_LAST_NS ? delay : BACKOFF_LAST_NS));
    }
    if (first)
        worker_settled(w, false);
}

static void on_opening_expired(struct worker *w, struct conn *c, const struct conn_input *in)
{
    (void)in;
    fail_to_open(w, c, ETIMEDOUT);
}

static void on_backoff_expired(struct worker *w, struct conn *c, const struct conn_input *in)
{
    (void)in;
    conn_open(w, c);
}

/* --- one request --- */

void conn_send(struct worker *w, struct conn *c, uint64_t intended_ns)
{
    must(c->state == CONN_READY);
    const struct request *r = w->request;
    c->intended_ns = intended_ns;
    c->sent_ns = w->now_ns;
    response_init(&c->response, r->is_head);
    worker_set_deadline(w, c, w->now_ns + w->options->timeout_ns);
    w->in_flight++;
    w->accounts->sent++;
    w->accounts->wire_out += r->len;
    bool whole = transport_send(w->transport, c->slot, r->bytes, r->len);
    c->state = whole ? CONN_WAITING : CONN_SENDING;
}

static void on_sent(struct worker *w, struct conn *c, const struct conn_input *in)
{
    (void)w;
    (void)in;
    c->state = response_untouched(&c->response) ? CONN_WAITING : CONN_RECEIVING;
}

static void fail_request(struct worker *w, struct conn *c, enum fault_phase phase, enum fault_cause cause,
                         const char *text)
{
    worker_cross_edges(w);
    w->in_flight--;
    w->accounts->failed++;
    fault_note(&w->tally->faults[w->phase], phase, cause, text);
    if (w->phase == PHASE_WINDOW && cause == CAUSE_TIMEOUT)
        hist_record(w->tally->timeouts, w->now_ns - c->intended_ns);
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
    if (w->phase == PHASE_WINDOW)
        hist_record(w->tally->failed, w->now_ns - c->intended_ns);
}

static void record_latency(struct worker *w, const struct conn *c)
{
    hist_record(w->tally->latency, w->now_ns - c->intended_ns);
    if (w->options->open_loop)
        hist_record(w->tally->service, w->now_ns - c->sent_ns);
}

/* Every whole answer ends here: counted in the phase in which it became whole. */
static void on_complete(struct worker *w, struct conn *c, size_t surplus)
{
    const struct response *r = &c->response;
    worker_cross_edges(w);
    w->in_flight--;
    w->accounts->responses++;
    c->answered++;
    if (w->phase == PHASE_WINDOW)
        w->tally->status[r->status]++;
    if (surplus != 0) {
        fail_answered(w, c, CAUSE_DESYNC, "bytes follow the answer that no request asked for");
    } else if (r->status < 200 || r->status > 299) {
        char text[32];
        snprintf(text, sizeof text, "status %u", r->status);
        fail_answered(w, c, CAUSE_STATUS, text);
    } else {
        w->accounts->ok++;
        w->accounts->body_bytes += r->body_len;
        if (w->phase == PHASE_WINDOW)
            record_latency(w, c);
    }
    bool reusable = r->keep_alive && surplus == 0 && c->state != CONN_SENDING &&
                    !w->options->keep_alive_off && c->answered != w->options->requests_per_connection;
    if (!reusable) {
        reopen(w, c);
        return;
    }
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

static void on_answer_bytes(struct worker *w, struct conn *c, const struct conn_input *in)
{
    struct response *r = &c->response;
    size_t at = 0;
    w->accounts->wire_in += in->len;
    if (response_untouched(r) && quick_know(&w->quick, in->data, in->len)) {
        response_begin(r, &w->quick.head);
        at = w->quick.head_len;
    }
    at += response_feed(r, in->data + at, in->len - at, NULL, NULL);
    if (r->fault != RESPONSE_NONE) {
        on_framing_fault(w, c);
    } else if (r->state == RESPONSE_DONE) {
        on_complete(w, c, in->len - at);
    } else {
        if (c->state == CONN_WAITING)
            c->state = CONN_RECEIVING;
        if (r->state == RESPONSE_IN_LENGTH && r->remaining >= SKIP_BYTES_MIN &&
            w->target->unix_socket == NULL)
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

static void on_idle_bytes(struct worker *w, struct conn *c, const struct conn_input *in)
{
    w->accounts->wire_in += in->len;
    w->accounts->idle_surplus++;
    reopen(w, c);
}

static void on_idle_ended(struct worker *w, struct conn *c, const struct conn_input *in)
{
    (void)in;
    w->accounts->idle_closes++;
    reopen(w, c);
}

/* --- which event is welcome when --- */

typedef void handler(struct worker *w, struct conn *c, const struct conn_input *in);

static handler *const handlers[CONN_STATE_COUNT][CONN_EVENT_COUNT] = {
    [CONN_BACKOFF] = {[CONN_EVENT_EXPIRED] = on_backoff_expired},
    [CONN_CONNECTING] = {[CONN_EVENT_OPENED] = on_opened,
                         [CONN_EVENT_FAILED] = on_failed,
                         [CONN_EVENT_EXPIRED] = on_opening_expired},
    [CONN_READY] = {[CONN_EVENT_BYTES] = on_idle_bytes, [CONN_EVENT_ENDED] = on_idle_ended},
    [CONN_SENDING] = {[CONN_EVENT_SENT] = on_sent,
                      [CONN_EVENT_BYTES] = on_answer_bytes,
                      [CONN_EVENT_SKIPPED] = on_skipped,
                      [CONN_EVENT_ENDED] = on_ended_in_request,
                      [CONN_EVENT_EXPIRED] = on_request_expired},
    [CONN_WAITING] = {[CONN_EVENT_BYTES] = on_answer_bytes,
                      [CONN_EVENT_ENDED] = on_ended_in_request,
                      [CONN_EVENT_EXPIRED] = on_request_expired},
    [CONN_RECEIVING] = {[CONN_EVENT_BYTES] = on_answer_bytes,
                        [CONN_EVENT_SKIPPED] = on_skipped,
                        [CONN_EVENT_ENDED] = on_ended_in_request,
                        [CONN_EVENT_EXPIRED] = on_request_expired},
};

void conn_handle(struct worker *w, struct conn *c, enum conn_event event, const struct conn_input *in)
{
    handler *h = handlers[c->state][event];
    must(h != NULL);
    h(w, c, in);
}
