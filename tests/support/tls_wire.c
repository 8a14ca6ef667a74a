#include "tests/support/tls_wire.h"

#include "common/mem.h"

#include <openssl/err.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define GOT_BYTES_MAX (64u * 1024u * 1024u)

/* ---- setting up ---------------------------------------------------------------------------------------- */

int tls_wire_set_up(void **state)
{
    struct tls_wire *w = mem_zalloc(1, sizeof *w);
    scratch_init(&w->scratch);
    cert_lab_init(&w->lab);
    if (!cert_pair_write(&w->lab.signers[CERT_BY_CA], scratch_at(&w->scratch, "ca.pem"), NULL))
        return -1;
    w->options = (struct tls_options){.server_name = "localhost", .max = TLS_1_3};
    w->options.ca_file = mem_strdup(scratch_at(&w->scratch, "ca.pem"));
    w->step = SIZE_MAX;
    w->context = SSL_CTX_new(TLS_server_method());
    SSL_CTX_set_security_level(w->context, 0);
    SSL_CTX_set_session_id_context(w->context, (const uint8_t *)"tests", 5);
    buf_init(&w->got, GOT_BYTES_MAX);
    buf_init(&w->served, GOT_BYTES_MAX);
    *state = w;
    return 0;
}

void tls_wire_hang_up(struct tls_wire *w)
{
    tls_free(w->client);
    SSL_free(w->server);
    w->client = NULL;
    w->server = NULL;
    w->shaken = false;
    buf_clear(&w->got);
    buf_clear(&w->served);
}

int tls_wire_tear_down(void **state)
{
    struct tls_wire *w = *state;
    tls_wire_hang_up(w);
    tls_session_free(w->session);
    tls_wire_forget(w);
    SSL_CTX_free(w->context);
    buf_fini(&w->got);
    buf_fini(&w->served);
    free((char *)(uintptr_t)w->options.ca_file);
    scratch_fini(&w->scratch);
    cert_lab_fini(&w->lab);
    free(w);
    return 0;
}

void tls_wire_forget(struct tls_wire *w)
{
    tls_wire_hang_up(w); /* the client borrows the configuration */
    tls_config_free(w->config);
    tls_trust_free(w->trust);
    w->config = NULL;
    w->trust = NULL;
}

enum err tls_wire_configure(struct tls_wire *w, const struct tls_options *options, struct err_detail *d)
{
    struct tls_options o = *options;
    tls_wire_forget(w);
    enum err e = tls_config_read_trust(&w->trust, &o, d);
    o.trust = w->trust;
    return e == ERR_OK ? tls_config_new(&w->config, &o, d) : e;
}

void tls_wire_show(struct tls_wire *w, const struct cert_wish *wish)
{
    struct cert_pair own;
    cert_make(&w->lab, &own, wish);
    assert_int_equal(SSL_CTX_use_certificate(w->context, own.cert), 1);
    assert_int_equal(SSL_CTX_use_PrivateKey(w->context, own.key), 1);
    cert_pair_fini(&own);
}

void tls_wire_speak(struct tls_wire *w, int version)
{
    assert_int_equal(SSL_CTX_set_min_proto_version(w->context, version), 1);
    assert_int_equal(SSL_CTX_set_max_proto_version(w->context, version), 1);
}

void tls_wire_dial(struct tls_wire *w)
{
    struct err_detail d = {0};
    tls_wire_hang_up(w);
    if (w->config == NULL && tls_wire_configure(w, &w->options, &d) != ERR_OK)
        fail_msg("%s", d.text);
    w->client = tls_new(w->config, &w->session);
    w->server = SSL_new(w->context);
    w->to_server = BIO_new(BIO_s_mem());
    w->from_server = BIO_new(BIO_s_mem());
    SSL_set_bio(w->server, w->to_server, w->from_server);
    SSL_set_accept_state(w->server);
}

/* ---- moving bytes -------------------------------------------------------------------------------------- */

void tls_wire_feed(struct tls_wire *w, const void *data, size_t len)
{
    size_t n = 0;
    if (data != NULL)
        tls_feed(w->client, data, len);
    w->last = w->shaken ? TLS_OK : tls_handshake(w->client);
    w->shaken = w->last == TLS_OK;
    while (w->shaken && (w->last = tls_read(w->client, w->chunk, sizeof w->chunk, &n)) == TLS_OK)
        assert_int_equal(buf_append(&w->got, w->chunk, n), ERR_OK);
    if (w->last != TLS_WANT_MORE)
        w->shaken = false;
}

bool tls_wire_carry_up(struct tls_wire *w)
{
    const uint8_t *data = NULL;
    size_t len = 0;
    bool any = false;
    while (tls_take_output(w->client, &data, &len)) {
        any = true;
        w->most = len > w->most ? len : w->most;
        assert_int_equal(BIO_write(w->to_server, data, (int)len), (int)len);
        int n;
        while ((n = SSL_read(w->server, w->chunk, sizeof w->chunk)) > 0)
            assert_int_equal(buf_append(&w->served, w->chunk, (size_t)n), ERR_OK);
        ERR_clear_error(); /* the server's, which are of the same thread here */
    }
    return any;
}

/* All that the server has to say goes to the client, in steps, and stops where the client has enough. */
static bool carry_down(struct tls_wire *w)
{
    bool any = false;
    while (w->last == TLS_WANT_MORE && BIO_ctrl_pending(w->from_server) != 0) {
        uint8_t bytes[sizeof w->chunk];
        size_t want = w->step < sizeof bytes ? w->step : sizeof bytes;
        int n = BIO_read(w->from_server, bytes, (int)want);
        any = true;
        tls_wire_feed(w, bytes, (size_t)n);
    }
    return any;
}

void tls_wire_carry(struct tls_wire *w)
{
    bool any;
    do {
        any = tls_wire_carry_up(w);
        any = carry_down(w) || any;
    } while (any);
}

void tls_wire_shake_hands(struct tls_wire *w)
{
    tls_wire_dial(w);
    tls_wire_feed(w, NULL, 0);
    tls_wire_carry(w);
}

void tls_wire_shake_hands_well(struct tls_wire *w)
{
    tls_wire_shake_hands(w);
    if (w->last != TLS_WANT_MORE || !w->shaken)
        fail_msg("%s", tls_failure_of(w->client)->text);
    assert_true(SSL_is_init_finished(w->server));
}

void tls_wire_answer(struct tls_wire *w, const char *text)
{
    assert_int_equal(SSL_write(w->server, text, (int)strlen(text)), (int)strlen(text));
    tls_wire_carry(w);
}
