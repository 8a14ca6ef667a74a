#include "tests/support/tls_conduct.h"

#include "tests/support/tls_forge.h"
#include "tests/support/tls_modes.h"

#include <string.h>
#include <sys/socket.h>

#define RECORD_BYTES_MAX  (64u * 1024u)
#define STOPS_AFTER_BYTES (1024u * 1024u)
#define FORGED_BYTES_MAX  64u

/* ---- how a connection may end -------------------------------------------------------------------------- */

void tls_end_by_reset(struct visit *v)
{
    v->reset = true;
}

void tls_end_by_silence(struct visit *v)
{
    visit_await_end(v);
}

void tls_end_by_notify(struct visit *v)
{
    (void)SSL_shutdown(v->ssl);
}

void tls_end_by_notify_alone(struct visit *v)
{
    (void)SSL_shutdown(v->ssl);
    visit_await_end(v);
}

/* A record that no key of the session fits. */
void tls_end_by_false_record(struct visit *v)
{
    static const uint8_t record[5 + 40] = {23, 3, 3, 0, 40, 1, 2, 3, 4, 5, 6, 7, 8, 9};
    visit_say_raw(v, record, sizeof record);
    visit_await_end(v);
}

/* A record longer than any may be. */
void tls_end_by_long_record(struct visit *v)
{
    static const uint8_t record[5 + 512] = {23, 3, 3, 0x7f, 0xff};
    visit_say_raw(v, record, sizeof record);
    visit_await_end(v);
}

/* One record of TLS 1.3, of this content type: the first that the server sends. */
static void forge(struct visit *v, uint8_t type, const void *data, size_t len)
{
    uint8_t record[FORGED_BYTES_MAX + TLS_FORGE_OVERHEAD];
    must(len <= FORGED_BYTES_MAX);
    visit_say_raw(v, record, tls_forge(record, v->secret, 0, type, data, len));
    visit_await_end(v);
}

void tls_end_by_alert(struct visit *v)
{
    static const uint8_t internal_error[] = {2, 80};
    forge(v, 21, internal_error, sizeof internal_error);
}

/* A message of no known type. */
void tls_end_by_message(struct visit *v)
{
    static const uint8_t message[] = {99, 0, 0, 1, 0};
    forge(v, 22, message, sizeof message);
}

static void end(struct visit *v)
{
    if (v->service->mode->end != NULL)
        v->service->mode->end(v);
}

/* ---- what becomes of a connection ---------------------------------------------------------------------- */

static void answer_all(struct visit *v)
{
    while (visit_read_request(v)) {
        visit_answer(v);
        if (v->last)
            break;
    }
    (void)SSL_shutdown(v->ssl);
}

void tls_run_answering(struct visit *v)
{
    if (visit_shake_hands(v))
        answer_all(v);
}

/* Ends the hand-shake before the first flight, within it, or after it. */
void tls_run_breaking_hands(struct visit *v)
{
    struct buf sent;
    buf_init(&sent, RECORD_BYTES_MAX);
    unsigned share = v->service->mode->share;
    if (share == 0 ? visit_read_hello(v, &sent) : visit_make_flight(v, &sent)) {
        visit_say_raw(v, sent.data, sent.len * share / 100);
        end(v);
    }
    buf_fini(&sent);
}

/* Answers the first record of the hand-shake with bytes of its own. */
void tls_run_answering_hello(struct visit *v)
{
    struct buf hello;
    buf_init(&hello, RECORD_BYTES_MAX);
    if (visit_read_hello(v, &hello)) {
        visit_say_raw(v, v->service->mode->text, v->service->mode->len);
        end(v);
    }
    buf_fini(&hello);
}

/* Answers as it should, and then does something else: with text, to the next request; else without one. */
void tls_run_breaking_answer(struct visit *v)
{
    const struct tls_mode *m = v->service->mode;
    if (!visit_shake_hands(v))
        return;
    for (unsigned i = 0; i < m->answers; i++) {
        if (!visit_read_request(v))
            return;
        visit_answer(v);
    }
    if (m->text != NULL && !visit_read_request(v))
        return;
    if (m->text != NULL)
        visit_say(v, m->text, m->len);
    end(v);
}

/* A flight of as many segments as it has bytes. */
void tls_run_dripping(struct visit *v)
{
    struct buf flight;
    buf_init(&flight, RECORD_BYTES_MAX);
    bool ok = visit_make_flight(v, &flight);
    for (size_t i = 0; ok && i < flight.len; i++)
        visit_say_raw(v, flight.data + i, 1);
    buf_fini(&flight);
    if (ok && visit_end_hands(v))
        answer_all(v);
}

static bool has_shaken_again(const struct visit *v)
{
    return v->shakes > 1;
}

static bool has_certificate(const struct visit *v)
{
    return SSL_get0_peer_certificate(v->ssl) != NULL;
}

/* Reads until the client has gone along with what it was asked for. No data are due before it has its answer.
 */
static bool await_consent(struct visit *v, bool (*given)(const struct visit *v))
{
    char byte;
    SSL_clear_mode(v->ssl, SSL_MODE_AUTO_RETRY); /* or reading would go on after the hand-shake, for data */
    while (!given(v)) {
        int n = SSL_peek(v->ssl, &byte, 1);
        if (n > 0 || SSL_get_error(v->ssl, n) != SSL_ERROR_WANT_READ)
            return false;
    }
    SSL_set_mode(v->ssl, SSL_MODE_AUTO_RETRY);
    return true;
}

void tls_run_renegotiating_before(struct visit *v)
{
    if (!visit_shake_hands(v) || !visit_read_request(v))
        return;
    visit_ask_to_renegotiate(v);
    if (await_consent(v, has_shaken_again)) {
        visit_answer(v);
        answer_all(v);
    }
}

void tls_run_renegotiating_after(struct visit *v)
{
    if (!visit_shake_hands(v) || !visit_read_request(v))
        return;
    visit_answer(v);
    visit_ask_to_renegotiate(v);
    answer_all(v);
}

void tls_run_updating_keys(struct visit *v)
{
    if (!visit_shake_hands(v))
        return;
    while (visit_read_request(v)) {
        must(SSL_key_update(v->ssl, SSL_KEY_UPDATE_REQUESTED) == 1);
        visit_answer(v);
    }
}

/* To a client that has not said that it would have it, OpenSSL would not: then with a record of our own. */
void tls_run_asking_late(struct visit *v)
{
    static const uint8_t request[] = {13, 0, 0, 15, 4, 'l', 'a', 't', 'e', 0, 8, 0, 13, 0, 4, 0, 2, 4, 3};
    if (!visit_shake_hands(v) || !visit_read_request(v))
        return;
    SSL_set_verify(v->ssl, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
    if (SSL_verify_client_post_handshake(v->ssl) != 1) {
        forge(v, 22, request, sizeof request);
        return;
    }
    if (SSL_do_handshake(v->ssl) == 1 && await_consent(v, has_certificate)) {
        visit_note_certificate(v);
        visit_answer(v);
        answer_all(v);
    }
}

/* As servers of HTTP/2 do: its first frame does not wait for the client's. */
void tls_run_speaking_first(struct visit *v)
{
    if (!visit_shake_hands(v))
        return;
    visit_say(v, TLS_HTTP2_SETTINGS, sizeof TLS_HTTP2_SETTINGS - 1);
    visit_await_end(v);
}

void tls_run_stopping_to_read(struct visit *v)
{
    static const int window = 64 * 1024;
    (void)setsockopt(v->fd, SOL_SOCKET, SO_RCVBUF, &window, sizeof window);
    if (!visit_shake_hands(v))
        return;
    uint8_t data[16 * 1024];
    int n = 0;
    for (size_t left = STOPS_AFTER_BYTES; left != 0; left -= (size_t)n) {
        n = SSL_read(v->ssl, data, left < sizeof data ? (int)left : (int)sizeof data);
        if (n <= 0)
            return;
    }
    visit_await_end(v);
}
