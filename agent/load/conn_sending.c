#include "agent/load/conn_sending.h"

#include <linux/tcp.h> /* glibc's struct tcp_info ends before these members */
#include <netinet/in.h>

/* What the kernel has taken, it may still hold when the connection goes: of less than this nobody asks. */
#define HELD_BYTES_MIN (16u * 1024u)

/* --- bytes --- */

static void give(struct conn_set *s, struct conn *c, const uint8_t *data, size_t len)
{
    c->given_bytes += len;
    c->send_pending = !transport_send(s->transport, c->slot, data, len);
}

void sending_flush(struct conn_set *s, struct conn *c)
{
    const uint8_t *data = NULL;
    size_t len = 0;
    while (!c->send_pending && tls_has_output(c->tls)) {
        /* The session uses its buffer again, in the same round: a hand-shake's last flight, then a request.
         */
        transport_flush(s->transport, c->slot);
        if (tls_take_output(c->tls, &data, &len))
            give(s, c, data, len);
    }
}

void sending_alert(struct conn_set *s, struct conn *c)
{
    sending_flush(s, c);
    transport_flush(s->transport, c->slot);
}

static bool is_sending(const struct conn *c)
{
    return c->send_pending || (c->tls != NULL && tls_is_writing(c->tls));
}

enum conn_state sending_go_on(struct conn_set *s, struct conn *c)
{
    if (c->tls != NULL)
        sending_flush(s, c);
    if (c->state != CONN_SENDING || is_sending(c))
        return (enum conn_state)c->state;
    return response_untouched(&c->response) ? CONN_WAITING : CONN_RECEIVING;
}

/* --- requests --- */

enum conn_state sending_begin(struct conn_set *s, struct conn *c, uint64_t intended_ns)
{
    const struct request *r = dispatch_next(&s->dispatch);
    uint64_t now_ns = s->meter.now_ns;
    c->request = r;
    c->metered = (struct meter_request){.index = r->index, .intended_ns = intended_ns, .sent_ns = now_ns};
    response_init(&c->response, r->is_head);
    if (r->expect.has_hash)
        sha256_restart(c->sum);
    conn_set_deadline(s, c, now_ns + s->share.options->timeout_ns);
    meter_send(&s->meter);
    const uint8_t *bytes = r->is_template ? c->space : r->bytes;
    size_t len = r->is_template ? request_render(r, &s->dispatch.template_state, c->space) : r->len;
    if (c->tls == NULL) {
        give(s, c, bytes, len);
    } else {
        tls_write(c->tls, bytes, len);
        sending_flush(s, c);
    }
    return is_sending(c) ? CONN_SENDING : CONN_WAITING;
}

enum conn_state sending_next(struct conn_set *s, struct conn *c)
{
    uint64_t intended_ns = 0;
    if (dispatch_claim(&s->dispatch, c->slot, &intended_ns))
        return sending_begin(s, c, intended_ns);
    c->deadline_ns = UINT64_MAX;
    return CONN_READY;
}

/* --- the end --- */

/* What has left is counted when its request is answered, or else when the connection goes. */
static void count_out(struct conn_set *s, struct conn *c, uint64_t left_bytes)
{
    s->meter.accounts->wire_out += left_bytes - c->counted_bytes;
    c->counted_bytes = left_bytes;
}

void sending_count_all(struct conn_set *s, struct conn *c)
{
    count_out(s, c, c->given_bytes);
}

/* How much of what a socket was given has left this host. The kernel takes megabytes for a peer that reads
 * none of them: what it took is not what left. Each byte counts once however often TCP sent it
 * (tcpi_bytes_sent less tcpi_bytes_retrans); all of them where the socket or the kernel does not say. */
static uint64_t bytes_left(int fd, uint64_t given_bytes)
{
    struct tcp_info info = {0};
    socklen_t len = sizeof info;
    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) != 0 ||
        len < offsetof(struct tcp_info, tcpi_bytes_retrans) + sizeof info.tcpi_bytes_retrans)
        return given_bytes;
    uint64_t left = info.tcpi_bytes_sent - info.tcpi_bytes_retrans;
    return left < given_bytes ? left : given_bytes;
}

static void count_out_at_end(struct conn_set *s, struct conn *c)
{
    uint64_t left_bytes = c->given_bytes;
    if (c->send_pending || c->given_bytes - c->counted_bytes >= HELD_BYTES_MIN)
        left_bytes = bytes_left(transport_socket(s->transport, c->slot), c->given_bytes);
    if (left_bytes > c->counted_bytes)
        count_out(s, c, left_bytes);
    c->given_bytes = c->counted_bytes = 0;
}

void sending_close(struct conn_set *s, struct conn *c)
{
    if (c->given_bytes != c->counted_bytes)
        count_out_at_end(s, c);
    transport_close(s->transport, c->slot);
    tls_free(c->tls);
    c->tls = NULL;
    c->send_pending = false;
    c->deadline_ns = UINT64_MAX;
}
