#include "agent/load/conn_opening.h"

#include "agent/load/conn_sending.h"
#include "common/clock.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <unistd.h>

#define BACKOFF_FIRST_NS (1 * NS_PER_MS)
#define BACKOFF_LAST_NS  (1 * NS_PER_S)
#define BACKOFF_DOUBLED  10u /* times, at most: far past BACKOFF_LAST_NS */

/* --- failing --- */

enum conn_state opening_back_off(struct conn_set *s, struct conn *c)
{
    sending_close(s, c);
    if (s->meter.phase == PHASE_DRAIN)
        return CONN_CLOSED;
    uint64_t delay = BACKOFF_FIRST_NS << (c->failures < BACKOFF_DOUBLED ? c->failures : BACKOFF_DOUBLED);
    c->failures++;
    conn_set_deadline(s, c, s->meter.now_ns + (delay < BACKOFF_LAST_NS ? delay : BACKOFF_LAST_NS));
    return CONN_BACKOFF;
}

static bool is_first_attempt(const struct conn *c)
{
    return c->opens == 0 && c->failures == 0;
}

enum conn_state opening_fail(struct conn_set *s, struct conn *c, const struct fault *f)
{
    if (is_first_attempt(c))
        meter_tried(&s->meter, false);
    s->meter.accounts->open_failures++;
    if (dispatch_take_waiting(&s->dispatch))
        meter_fail_unsent(&s->meter, f);
    return opening_back_off(s, c);
}

static enum conn_state fail_with_errno(struct conn_set *s, struct conn *c, enum fault_phase phase, int error)
{
    return opening_fail(s, c, &(struct fault){phase, fault_cause_of_errno(error), strerror(error)});
}

/* --- connecting --- */

/* TCP only: no delay, and the source address whose turn it is. Returns an errno. */
static int set_up_socket(const struct conn_set *s, const struct conn *c, int fd, sa_family_t family)
{
    if (family == AF_UNIX)
        return 0;
    int on = 1;
    must(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) == 0);
    const struct options *o = s->share.options;
    if (o->source_count == 0)
        return 0;
    const struct target_address *from = &o->sources[(s->share.first_slot + c->slot) % o->source_count];
    /* The port is chosen when connecting: one source address serves many destinations' worth of ports. */
    must(setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on) == 0);
    return bind(fd, (const struct sockaddr *)&from->addr, from->len) == 0 ? 0 : errno;
}

static enum conn_state connect_now(struct conn_set *s, struct conn *c)
{
    const struct target *t = s->share.target;
    const struct target_address *a = &t->addresses[(s->share.first_slot + c->slot) % t->address_count];
    c->opening_ns = s->meter.now_ns;
    c->answered = 0;
    int fd = socket(a->addr.ss_family, SOCK_STREAM | SOCK_CLOEXEC | s->transport->ops->socket_flags, 0);
    if (fd < 0)
        return fail_with_errno(s, c, FAULT_CONNECT, errno);
    int error = set_up_socket(s, c, fd, a->addr.ss_family);
    if (error != 0) {
        close(fd);
        return fail_with_errno(s, c, FAULT_CONNECT, error);
    }
    conn_set_deadline(s, c, s->meter.now_ns + s->share.options->timeout_ns);
    transport_connect(s->transport, c->slot, fd, (const struct sockaddr *)&a->addr, a->len);
    return CONN_CONNECTING;
}

enum conn_state opening_again(struct conn_set *s, struct conn *c)
{
    sending_close(s, c);
    return s->meter.phase != PHASE_DRAIN ? connect_now(s, c) : CONN_CLOSED;
}

enum conn_state opening_on_start(struct conn_set *s, struct conn *c, const struct conn_input *in)
{
    conn_set_deadline(s, c, in->at_ns);
    return CONN_BACKOFF;
}

enum conn_state opening_on_backoff_over(struct conn_set *s, struct conn *c, const struct conn_input *in)
{
    (void)in;
    return connect_now(s, c);
}

/* --- the hand-shake --- */

static enum conn_state become_open(struct conn_set *s, struct conn *c)
{
    if (is_first_attempt(c))
        meter_tried(&s->meter, true);
    if (c->opens++ != 0)
        s->meter.accounts->reconnects++;
    return sending_next(s, c);
}

static enum conn_state end_handshake(struct conn_set *s, struct conn *c)
{
    struct tls_agreed agreed;
    tls_agreed_on(c->tls, &agreed);
    meter_agreed(&s->meter, &agreed, s->meter.now_ns - c->shaking_ns);
    enum conn_state next = become_open(s, c);
    sending_flush(s, c); /* after the first request, if one is due: both leave in one send */
    return next;
}

enum conn_state opening_on_fed(struct conn_set *s, struct conn *c, const struct conn_input *in)
{
    (void)in;
    const struct tls_failure *f = tls_failure_of(c->tls);
    switch (tls_handshake(c->tls)) {
    case TLS_OK:
        return end_handshake(s, c);
    case TLS_WANT_MORE:
        sending_flush(s, c);
        return CONN_HANDSHAKE;
    case TLS_CLOSED:
        return opening_fail(s, c,
                            &(struct fault){FAULT_TLS, CAUSE_CLOSED_EARLY, "the peer ended the hand-shake"});
    case TLS_FAILED:
        break;
    }
    sending_alert(s, c);
    return opening_fail(s, c, &(struct fault){FAULT_TLS, f->cause, f->text});
}

enum conn_state opening_on_opened(struct conn_set *s, struct conn *c, const struct conn_input *in)
{
    meter_record(&s->meter, TALLY_CONNECT, s->meter.now_ns - c->opening_ns);
    if (s->tls == NULL)
        return become_open(s, c);
    c->tls = tls_new(s->tls, &c->session);
    c->shaking_ns = s->meter.now_ns;
    return opening_on_fed(s, c, in); /* the session speaks first */
}

/* --- what goes wrong --- */

enum conn_state opening_on_failed(struct conn_set *s, struct conn *c, const struct conn_input *in)
{
    return fail_with_errno(s, c, FAULT_CONNECT, in->error);
}

enum conn_state opening_on_ended(struct conn_set *s, struct conn *c, const struct conn_input *in)
{
    if (in->error != 0)
        return fail_with_errno(s, c, FAULT_TLS, in->error);
    return opening_fail(s, c,
                        &(struct fault){FAULT_TLS, CAUSE_CLOSED_EARLY, "the peer closed in the hand-shake"});
}

enum conn_state opening_on_expired(struct conn_set *s, struct conn *c, const struct conn_input *in)
{
    (void)in;
    return fail_with_errno(s, c, c->state == CONN_HANDSHAKE ? FAULT_TLS : FAULT_CONNECT, ETIMEDOUT);
}
