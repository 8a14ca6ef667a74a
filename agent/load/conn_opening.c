#include "agent/load/conn_opening.h"

#include "agent/load/worker.h"
#include "common/clock.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <unistd.h>

#define BACKOFF_FIRST_NS (1 * NS_PER_MS)
#define BACKOFF_LAST_NS  (1 * NS_PER_S)
#define BACKOFF_DOUBLED  10u /* times, at most: far past BACKOFF_LAST_NS */

/* The request that would have gone out on this connection, if one was waiting, fails with it. */
static void fail_waiting_request(struct worker *w, const struct opening_failure *f)
{
    if (!worker_wants_connection(w) || w->phase == PHASE_DRAIN)
        return;
    fault_note(&w->tally->faults[w->phase], f->phase, f->cause, f->text);
    w->accounts->scheduled++;
    w->accounts->failed++;
    if (w->pacer.next_ns <= w->now_ns)
        pacer_advance(&w->pacer);
}

void opening_back_off(struct worker *w, struct conn *c)
{
    conn_close(w, c);
    if (w->phase == PHASE_DRAIN)
        return;
    uint64_t delay = BACKOFF_FIRST_NS << (c->failures < BACKOFF_DOUBLED ? c->failures : BACKOFF_DOUBLED);
    c->failures++;
    c->state = CONN_BACKOFF;
    worker_set_deadline(w, c, w->now_ns + (delay < BACKOFF_LAST_NS ? delay : BACKOFF_LAST_NS));
}

void opening_fail(struct worker *w, struct conn *c, const struct opening_failure *f)
{
    bool first = c->opens == 0 && c->failures == 0;
    w->accounts->open_failures++;
    fail_waiting_request(w, f);
    opening_back_off(w, c);
    if (first)
        worker_settled(w, false);
}

static void fail_with_errno(struct worker *w, struct conn *c, enum fault_phase phase, int error)
{
    opening_fail(w, c, &(struct opening_failure){phase, fault_cause_of_errno(error), strerror(error)});
}

/* TCP only: no delay, and the source address whose turn it is. Returns an errno. */
static int set_up_socket(const struct worker *w, const struct conn *c, int fd, sa_family_t family)
{
    if (family == AF_UNIX)
        return 0;
    int on = 1;
    must(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) == 0);
    const struct options *o = w->options;
    if (o->source_count == 0)
        return 0;
    const struct target_address *from = &o->sources[(w->first_slot + c->slot) % o->source_count];
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
        fail_with_errno(w, c, FAULT_CONNECT, errno);
        return;
    }
    int error = set_up_socket(w, c, fd, a->addr.ss_family);
    if (error != 0) {
        close(fd);
        fail_with_errno(w, c, FAULT_CONNECT, error);
        return;
    }
    worker_set_deadline(w, c, w->now_ns + w->options->timeout_ns);
    transport_connect(w->transport, c->slot, fd, (const struct sockaddr *)&a->addr, a->len);
}

static void become_ready(struct worker *w, struct conn *c)
{
    bool first = c->opens == 0 && c->failures == 0;
    c->state = CONN_READY;
    c->deadline_ns = UINT64_MAX;
    if (c->opens++ != 0)
        w->accounts->reconnects++;
    if (first)
        worker_settled(w, true);
    worker_ready(w, c);
}

void opening_on_opened(struct worker *w, struct conn *c, const struct conn_input *in)
{
    (void)in;
    hist_record(&w->tally->hists[TALLY_CONNECT], w->now_ns - c->opening_ns);
    if (w->tls == NULL) {
        become_ready(w, c);
        return;
    }
    c->tls = tls_new(w->tls, &c->memory);
    c->state = CONN_HANDSHAKE;
    c->shaking_ns = w->now_ns;
    opening_shake_hands(w, c);
}

static void note_handshake(struct worker *w, const struct conn *c)
{
    struct tls_agreed agreed;
    tls_agreed_on(c->tls, &agreed);
    agreement_note(&w->tally->agreement, &agreed);
    hist_record(&w->tally->hists[agreed.resumed ? TALLY_HANDSHAKE_RESUMED : TALLY_HANDSHAKE],
                w->now_ns - c->shaking_ns);
}

void opening_shake_hands(struct worker *w, struct conn *c)
{
    const struct tls_failure *f = tls_failure_of(c->tls);
    switch (tls_handshake(c->tls)) {
    case TLS_OK:
        note_handshake(w, c);
        become_ready(w, c);
        conn_flush(w, c); /* after the first request, if one is due: both leave in one send */
        break;
    case TLS_WANT_MORE:
        conn_flush(w, c);
        break;
    case TLS_CLOSED:
        opening_fail(
            w, c, &(struct opening_failure){FAULT_TLS, CAUSE_CLOSED_EARLY, "the peer ended the hand-shake"});
        break;
    case TLS_FAILED:
        conn_send_alert(w, c);
        opening_fail(w, c, &(struct opening_failure){FAULT_TLS, f->cause, f->text});
        break;
    }
}

void opening_on_failed(struct worker *w, struct conn *c, const struct conn_input *in)
{
    fail_with_errno(w, c, FAULT_CONNECT, in->error);
}

void opening_on_ended(struct worker *w, struct conn *c, const struct conn_input *in)
{
    if (in->error != 0)
        fail_with_errno(w, c, FAULT_TLS, in->error);
    else
        opening_fail(
            w, c,
            &(struct opening_failure){FAULT_TLS, CAUSE_CLOSED_EARLY, "the peer closed in the hand-shake"});
}

void opening_on_expired(struct worker *w, struct conn *c, const struct conn_input *in)
{
    (void)in;
    fail_with_errno(w, c, c->state == CONN_HANDSHAKE ? FAULT_TLS : FAULT_CONNECT, ETIMEDOUT);
}

void opening_on_backoff_over(struct worker *w, struct conn *c, const struct conn_input *in)
{
    (void)in;
    conn_open(w, c);
}
