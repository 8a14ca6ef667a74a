#include "agent/load/tls.h"
#include "common/mem.h"
#include "tests/support/tls_wire.h"

#include <limits.h>
#include <openssl/crypto.h>
#include <openssl/pem.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#define BODY_BYTES (16u * 1024u * 1024u)
/* What one record adds to what is in it, and what may be in one: RFC 8446 5.2. */
#define RECORD_BYTES_MAX (16u * 1024u + 256u + 5u)

/* --- what works --- */

static void test_bytes_go_through_in_pieces_of_any_size(void **state)
{
    struct tls_wire *w = *state;
    static const size_t steps[] = {1, 2, 7, 1000, SIZE_MAX};
    tls_wire_show(w, &(struct cert_wish){0});
    for (size_t i = 0; i < ARRAY_LEN(steps) * 2; i++) {
        tls_wire_speak(w, i % 2 == 0 ? TLS1_2_VERSION : TLS1_3_VERSION);
        w->step = steps[i / 2];
        tls_wire_shake_hands_well(w);
        assert_false(tls_is_proven(w->client));
        tls_write(w->client, (const uint8_t *)"a request", 9);
        tls_wire_carry(w);
        assert_int_equal(w->served.len, 9);
        assert_memory_equal(w->served.data, "a request", 9);
        tls_wire_answer(w, "an answer");
        assert_int_equal(w->got.len, 9);
        assert_memory_equal(w->got.data, "an answer", 9);
        assert_true(tls_is_proven(w->client));
        SSL_shutdown(w->server);
        tls_wire_carry(w);
        assert_int_equal(w->last, TLS_CLOSED);
    }
}

static void test_what_was_agreed_is_told(void **state)
{
    struct tls_wire *w = *state;
    struct tls_agreed agreed;
    tls_wire_show(w, &(struct cert_wish){0});
    w->options.ciphers = "TLS_AES_256_GCM_SHA384:ECDHE-ECDSA-AES256-GCM-SHA384";
    w->options.groups = "P-384:P-256"; /* TLS 1.2 needs the certificate's among them, too */
    assert_int_equal(SSL_CTX_set1_groups_list(w->context, "P-384"), 1);
    tls_wire_speak(w, TLS1_2_VERSION);
    tls_wire_shake_hands_well(w);
    tls_agreed_on(w->client, &agreed);
    assert_string_equal(agreed.version, "TLSv1.2");
    assert_string_equal(agreed.suite, "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384");
    assert_string_equal(agreed.group, "P-384");
    assert_false(agreed.resumed);
    tls_wire_speak(w, TLS1_3_VERSION);
    tls_wire_shake_hands_well(w);
    tls_agreed_on(w->client, &agreed);
    assert_string_equal(agreed.version, "TLSv1.3");
    assert_string_equal(agreed.suite, "TLS_AES_256_GCM_SHA384");
    assert_string_equal(agreed.group, "P-384");
}

static void test_a_large_request_leaves_in_bounded_pieces(void **state)
{
    struct tls_wire *w = *state;
    uint8_t *body = mem_alloc(BODY_BYTES);
    for (size_t i = 0; i < BODY_BYTES; i++)
        body[i] = (uint8_t)(i * 7 + i / 251);
    tls_wire_show(w, &(struct cert_wish){0});
    tls_wire_shake_hands_well(w);
    w->most = 0;
    tls_write(w->client, body, BODY_BYTES);
    assert_true(tls_has_output(w->client));
    tls_wire_carry_up(w);
    assert_false(tls_has_output(w->client));
    assert_true(w->most > TLS_AHEAD_BYTES / 2);
    assert_true(w->most < TLS_AHEAD_BYTES + RECORD_BYTES_MAX);
    assert_int_equal(w->served.len, BODY_BYTES);
    assert_memory_equal(w->served.data, body, BODY_BYTES);
    free(body);
}

/* Whom it asks for: no address, and no dot at the end (RFC 6066 3). */
static void test_the_server_is_asked_for_by_name(void **state)
{
    struct tls_wire *w = *state;
    static const struct {
        const char *given;
        const char *asked; /* NULL: nothing */
    } cases[] = {{"localhost", "localhost"},
                 {"localhost.", "localhost"},
                 {"LOCALHOST", "LOCALHOST"},
                 {"127.0.0.1", NULL},
                 {"::1", NULL},
                 {"a.lab.test", "a.lab.test"}};
    tls_wire_show(w, &(struct cert_wish){0});
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        w->options.server_name = cases[i].given;
        tls_wire_shake_hands_well(w);
        const char *asked = SSL_get_servername(w->server, TLSEXT_NAMETYPE_host_name);
        assert_true((asked == NULL) == (cases[i].asked == NULL));
        if (asked != NULL)
            assert_string_equal(asked, cases[i].asked);
        tls_wire_hang_up(w);
        tls_wire_forget(w);
    }
}

/* --- sessions --- */

static bool resumed(struct tls_wire *w)
{
    struct tls_agreed agreed;
    tls_wire_shake_hands_well(w);
    tls_wire_answer(w, "an answer");
    tls_agreed_on(w->client, &agreed);
    assert_int_equal(SSL_session_reused(w->server), agreed.resumed ? 1 : 0);
    return agreed.resumed;
}

static void test_a_session_goes_on_where_it_was_asked_for(void **state)
{
    struct tls_wire *w = *state;
    tls_wire_show(w, &(struct cert_wish){0});
    for (int i = 0; i < 4; i++) {
        bool resume = i >= 2;
        w->options.resume = resume;
        tls_wire_speak(w, i % 2 == 0 ? TLS1_2_VERSION : TLS1_3_VERSION);
        assert_false(resumed(w));
        assert_int_equal(resumed(w), resume);
        assert_int_equal(resumed(w), resume);
        tls_wire_hang_up(w);
        tls_session_free(w->session);
        w->session = NULL;
        tls_wire_forget(w);
    }
}

/* A session that broke is not gone on with; what it was itself resumed from still may be. */
static void test_a_broken_session_is_forgotten(void **state)
{
    struct tls_wire *w = *state;
    static const uint8_t nonsense[5 + 40] = {23, 3, 3, 0, 40};
    tls_wire_show(w, &(struct cert_wish){0});
    w->options.resume = true;
    tls_wire_speak(w, TLS1_2_VERSION);
    tls_wire_shake_hands_well(w);
    tls_wire_feed(w, nonsense, sizeof nonsense);
    assert_int_equal(w->last, TLS_FAILED);
    assert_string_equal(tls_failure_of(w->client)->text, "a record is damaged (bad MAC)");
    assert_false(resumed(w));
    assert_true(resumed(w));
}

/* --- what does not --- */

static void want_certificate(struct tls_wire *w)
{
    SSL_CTX_set_verify(w->context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
}

static void allow_psk_only(struct tls_wire *w)
{
    tls_wire_speak(w, TLS1_2_VERSION);
    assert_int_equal(SSL_CTX_set_cipher_list(w->context, "PSK-AES128-GCM-SHA256"), 1);
}

static void allow_ccm8_only(struct tls_wire *w)
{
    tls_wire_speak(w, TLS1_3_VERSION);
    assert_int_equal(SSL_CTX_set_ciphersuites(w->context, "TLS_AES_128_CCM_8_SHA256"), 1);
}

static void allow_p521_only(struct tls_wire *w)
{
    assert_int_equal(SSL_CTX_set1_groups_list(w->context, "P-521"), 1);
}

static int choose_h2(SSL *ssl, const unsigned char **out, unsigned char *out_len, const unsigned char *list,
                     unsigned len, void *fatal)
{
    (void)ssl;
    (void)list;
    (void)len;
    *out = (const unsigned char *)"h2";
    *out_len = 2;
    return fatal != NULL ? SSL_TLSEXT_ERR_ALERT_FATAL : SSL_TLSEXT_ERR_OK;
}

static void choose_h2_anyway(struct tls_wire *w)
{
    SSL_CTX_set_alpn_select_cb(w->context, choose_h2, NULL);
}

static void allow_h2_only(struct tls_wire *w)
{
    SSL_CTX_set_alpn_select_cb(w->context, choose_h2, w);
}

static const struct {
    struct cert_wish cert;
    const char *name; /* NULL: localhost */
    int version;      /* of the server; 0: any */
    void (*set_up)(struct tls_wire *w);
    enum fault_cause cause;
    const char *text;
} refusals[] = {
    {.version = TLS1_1_VERSION, .cause = CAUSE_VERSION, .text = "no TLS version that we offer"},
    {.set_up = allow_psk_only, .cause = CAUSE_CIPHER, .text = "no cipher suite"},
    {.set_up = allow_ccm8_only, .cause = CAUSE_CIPHER, .text = "no cipher suite"},
    {.set_up = allow_p521_only, .version = TLS1_2_VERSION, .cause = CAUSE_CIPHER, .text = "group"},
    {.set_up = allow_p521_only, .version = TLS1_3_VERSION, .cause = CAUSE_CIPHER, .text = "group"},
    {.set_up = want_certificate,
     .version = TLS1_2_VERSION,
     .cause = CAUSE_CERTIFICATE_WANTED,
     .text = "wants a client certificate (--cert)"},
    {.set_up = want_certificate,
     .version = TLS1_3_VERSION,
     .cause = CAUSE_CERTIFICATE_WANTED,
     .text = "wants a client certificate (--cert)"},
    {.set_up = allow_h2_only, .cause = CAUSE_PROTOCOL, .text = "does not speak http/1.1 (ALPN)"},
    {.set_up = choose_h2_anyway, .cause = CAUSE_PROTOCOL, .text = "(ALPN)"},
    {.cert = {.from_days = -9, .to_days = -2}, .cause = CAUSE_EXPIRED, .text = "has expired"},
    {.cert = {.from_days = 2, .to_days = 9}, .cause = CAUSE_EXPIRED, .text = "not yet valid"},
    {.name = "other.test", .cause = CAUSE_WRONG_NAME, .text = "hostname mismatch"},
    {.name = "a.b.lab.test", .cause = CAUSE_WRONG_NAME, .text = "hostname mismatch"},
    {.name = "127.0.0.2", .cause = CAUSE_WRONG_NAME, .text = "IP address mismatch"},
    {.name = "::2", .cause = CAUSE_WRONG_NAME, .text = "IP address mismatch"},
    {.name = "127.0.0.1",
     .cert = {.names = "DNS:127.0.0.1"},
     .cause = CAUSE_WRONG_NAME,
     .text = "IP address mismatch"},
    {.cert = {.signer = CERT_BY_ITSELF}, .cause = CAUSE_VERIFY, .text = "self-signed certificate"},
    {.cert = {.signer = CERT_BY_STRANGER}, .cause = CAUSE_VERIFY, .text = "issuer"},
    {.cert = {.signer = CERT_BY_INTERMEDIATE}, .cause = CAUSE_VERIFY, .text = "issuer"},
    {.cert = {.usage = "clientAuth"}, .cause = CAUSE_VERIFY, .text = "purpose"},
    {.cert = {.key = CERT_RSA_1024}, .cause = CAUSE_VERIFY, .text = "key too weak"},
    {.cert = {.sha1 = true}, .cause = CAUSE_VERIFY, .text = "too weak"},
};

/* The same whether it comes at once or byte by byte, and said to the server by an alert where it is ours to
 * say.
 */
static void test_a_refusal_names_its_cause(void **state)
{
    for (size_t i = 0; i < ARRAY_LEN(refusals) * 2; i++) {
        assert_int_equal(tls_wire_set_up(state), 0);
        struct tls_wire *w = *state;
        w->step = i % 2 == 0 ? SIZE_MAX : 1;
        tls_wire_show(w, &refusals[i / 2].cert);
        if (refusals[i / 2].name != NULL)
            w->options.server_name = refusals[i / 2].name;
        if (refusals[i / 2].version != 0)
            tls_wire_speak(w, refusals[i / 2].version);
        if (refusals[i / 2].set_up != NULL)
            refusals[i / 2].set_up(w);
        tls_wire_shake_hands(w);
        const struct tls_failure *f = tls_failure_of(w->client);
        if (w->last != TLS_FAILED || f->cause != refusals[i / 2].cause ||
            strstr(f->text, refusals[i / 2].text) == NULL)
            fail_msg("refusal %zu: result %d, %s: %s", i / 2, w->last, fault_cause_text(f->cause), f->text);
        tls_wire_tear_down(state);
    }
}

static void test_certificates_are_taken_as_they_are_where_that_is_wanted(void **state)
{
    for (size_t i = 0; i < ARRAY_LEN(refusals); i++) {
        if (refusals[i].set_up != NULL || refusals[i].version != 0)
            continue;
        assert_int_equal(tls_wire_set_up(state), 0);
        struct tls_wire *w = *state;
        tls_wire_show(w, &refusals[i].cert);
        w->options.insecure = true;
        tls_wire_shake_hands_well(w);
        tls_wire_tear_down(state);
    }
}

/* --- memory that runs out --- */

static unsigned allocations_left = UINT_MAX; /* until OpenSSL gets none; UINT_MAX: never */

static bool may_allocate(void)
{
    if (allocations_left == UINT_MAX)
        return true;
    if (allocations_left != 0)
        allocations_left--;
    return allocations_left != 0;
}

static void *give_memory(size_t size, const char *file, int line)
{
    (void)file;
    (void)line;
    return may_allocate() ? malloc(size) : NULL;
}

static void *give_more_memory(void *old, size_t size, const char *file, int line)
{
    (void)file;
    (void)line;
    return may_allocate() ? realloc(old, size) : NULL;
}

static void take_memory(void *old, const char *file, int line)
{
    (void)file;
    (void)line;
    free(old);
}

/* Wherever in a hand-shake memory runs out: where OpenSSL says so, it is this host's fault and not the
 * server's. In many places OpenSSL 3.0 has but "internal error" for it. */
static void test_want_of_memory_is_a_local_cause(void **state)
{
    struct tls_wire *w = *state;
    uint8_t flight[sizeof w->chunk];
    unsigned failed = 0;
    tls_wire_show(w, &(struct cert_wish){0});
    for (unsigned n = 1; n < 2000; n += n < 100 ? 1 : 37) {
        tls_wire_dial(w);
        tls_wire_feed(w, NULL, 0);
        tls_wire_carry_up(w);
        int len = BIO_read(w->from_server, flight, sizeof flight);
        assert_true(len > 0);
        allocations_left = n;
        tls_wire_feed(w, flight, (size_t)len);
        allocations_left = UINT_MAX;
        const struct tls_failure *f = tls_failure_of(w->client);
        if (w->last != TLS_FAILED || strstr(f->text, "OpenSSL has no name for") != NULL)
            continue;
        failed++;
        if (f->cause != CAUSE_LOCAL)
            fail_msg("allocation %u: %s: %s", n, fault_cause_text(f->cause), f->text);
    }
    assert_true(failed > 10);
}

static void test_what_is_not_tls_is_told_apart(void **state)
{
    static const struct {
        const char *bytes;
        size_t len;
        enum fault_cause cause;
        const char *text;
    } cases[] = {
        {"HTTP/1.1 400 Bad Request\r\n", 26, CAUSE_PROTOCOL, "plain HTTP"},
        {"SSH-2.0-OpenSSH\r\n", 17, CAUSE_PROTOCOL, "not TLS"},
        {"\x01\x02\x03\x04\x05\x06\x07\x08", 8, CAUSE_PROTOCOL, "not TLS"},
        {"\x15\x03\x03\x00\x02\x02\x28", 7, CAUSE_CIPHER, "no cipher suite"},
        {"\x15\x03\x01\x00\x02\x02\x28", 7, CAUSE_CIPHER, "no cipher suite"},
        {"\x15\x03\x03\x00\x02\x02\x46", 7, CAUSE_VERSION, "no TLS version"},
        {"\x15\x03\x03\x00\x02\x02\x47", 7, CAUSE_CIPHER, "stronger"},
        {"\x15\x03\x03\x00\x02\x02\x50", 7, CAUSE_PROTOCOL, "alert 80, internal error"},
        {"\x15\x03\x03\x00\x02\x02\x70", 7, CAUSE_WRONG_NAME, "SNI"},
        {"\x16\x03\x03\x7f\xff", 5, CAUSE_PROTOCOL, "longer than any"},
    };
    struct tls_wire *w = *state;
    tls_wire_show(w, &(struct cert_wish){0});
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        tls_wire_dial(w);
        tls_wire_feed(w, NULL, 0);
        assert_int_equal(w->last, TLS_WANT_MORE);
        tls_wire_feed(w, cases[i].bytes, cases[i].len);
        const struct tls_failure *f = tls_failure_of(w->client);
        if (w->last != TLS_FAILED || f->cause != cases[i].cause || strstr(f->text, cases[i].text) == NULL)
            fail_msg("case %zu: result %d, %s: %s", i, w->last, fault_cause_text(f->cause), f->text);
    }
}

static void test_renegotiation_is_refused(void **state)
{
    struct tls_wire *w = *state;
    tls_wire_show(w, &(struct cert_wish){0});
    tls_wire_speak(w, TLS1_2_VERSION);
    tls_wire_shake_hands_well(w);
    assert_int_equal(SSL_renegotiate(w->server), 1);
    assert_int_equal(SSL_do_handshake(w->server), 1);
    tls_wire_carry(w);
    assert_int_equal(w->last, TLS_FAILED);
    assert_int_equal(tls_failure_of(w->client)->cause, CAUSE_PROTOCOL);
    assert_non_null(strstr(tls_failure_of(w->client)->text, "renegotiation"));
}

/* New keys for both directions are no business of anybody's. */
static void test_keys_change_unseen(void **state)
{
    struct tls_wire *w = *state;
    tls_wire_show(w, &(struct cert_wish){0});
    tls_wire_speak(w, TLS1_3_VERSION);
    tls_wire_shake_hands_well(w);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(SSL_key_update(w->server, SSL_KEY_UPDATE_REQUESTED), 1);
        tls_wire_answer(w, "x");
        tls_write(w->client, (const uint8_t *)"y", 1);
        tls_wire_carry(w);
    }
    assert_string_equal(w->got.data, "xxx");
    assert_string_equal(w->served.data, "yyy");
}

/* A ticket that needs more records than one: of half of it nothing can be made, and requests are due. */
static int fill_ticket(SSL *ssl, void *arg)
{
    static const uint8_t much[4 * 512];
    (void)arg;
    return SSL_SESSION_set1_ticket_appdata(SSL_get_session(ssl), much, sizeof much);
}

static void test_a_request_waits_for_the_rest_of_a_message(void **state)
{
    struct tls_wire *w = *state;
    uint8_t half[1000];
    tls_wire_show(w, &(struct cert_wish){0});
    tls_wire_speak(w, TLS1_3_VERSION);
    assert_int_equal(SSL_CTX_set_max_send_fragment(w->context, 512), 1);
    assert_int_equal(SSL_CTX_set_session_ticket_cb(w->context, fill_ticket, NULL, NULL), 1);
    tls_wire_shake_hands_well(w);
    tls_wire_answer(w, "an answer");
    assert_int_equal(SSL_new_session_ticket(w->server), 1);
    assert_int_equal(SSL_do_handshake(w->server), 1);
    assert_int_equal(BIO_read(w->from_server, half, sizeof half), sizeof half);
    tls_wire_feed(w, half, sizeof half);
    assert_int_equal(w->last, TLS_WANT_MORE);
    tls_write(w->client, (const uint8_t *)"a request", 9);
    tls_wire_carry(w);
    assert_int_equal(w->last, TLS_WANT_MORE);
    assert_int_equal(w->served.len, 9);
    assert_memory_equal(w->served.data, "a request", 9);
}

/* Too short for what the cipher adds to each record: OpenSSL has no word of its own for it. */
static void test_a_short_record_is_a_fault_of_the_protocol(void **state)
{
    struct tls_wire *w = *state;
    static const uint8_t nonsense[] = {23, 3, 3, 0, 5, 1, 2, 3, 4, 5};
    tls_wire_show(w, &(struct cert_wish){0});
    for (int i = 0; i < 2; i++) {
        tls_wire_speak(w, i == 0 ? TLS1_2_VERSION : TLS1_3_VERSION);
        tls_wire_shake_hands_well(w);
        tls_wire_feed(w, nonsense, sizeof nonsense);
        assert_int_equal(w->last, TLS_FAILED);
        assert_int_equal(tls_failure_of(w->client)->cause, CAUSE_PROTOCOL);
        assert_null(strstr(tls_failure_of(w->client)->text, "alert"));
    }
}

/* A session that has failed swallows what is written, and never stands in the way. */
static void test_a_failed_session_takes_no_request(void **state)
{
    struct tls_wire *w = *state;
    static const uint8_t nonsense[] = {23, 3, 3, 0, 5, 1, 2, 3, 4, 5};
    const uint8_t *data = NULL;
    size_t len = 0;
    tls_wire_show(w, &(struct cert_wish){0});
    tls_wire_shake_hands_well(w);
    tls_wire_feed(w, nonsense, sizeof nonsense);
    assert_int_equal(w->last, TLS_FAILED);
    while (tls_take_output(w->client, &data, &len)) /* its alert */
        ;
    tls_write(w->client, (const uint8_t *)"a request", 9);
    assert_false(tls_take_output(w->client, &data, &len));
    assert_false(tls_has_output(w->client));
}

/* Whichever bit of the server's first flight is another, the hand-shake does not come to its end on both
 * sides. */
static void test_no_bit_of_the_first_flight_may_change(void **state)
{
    struct tls_wire *w = *state;
    tls_wire_show(w, &(struct cert_wish){0});
    for (int i = 0; i < 2; i++) {
        tls_wire_speak(w, i == 0 ? TLS1_2_VERSION : TLS1_3_VERSION);
        for (size_t at = 0, len = 1; at < len; at++) {
            tls_wire_dial(w);
            tls_wire_feed(w, NULL, 0);
            tls_wire_carry_up(w);
            uint8_t flight[8192];
            len = (size_t)BIO_read(w->from_server, flight, sizeof flight);
            /* The version of a record in the clear says nothing: RFC 8446 5.1. */
            if (at == 1 || at == 2 || at >= len)
                continue;
            flight[at] ^= (uint8_t)(1u << at % 8);
            tls_wire_feed(w, flight, len);
            if (w->last == TLS_WANT_MORE)
                tls_wire_carry(w);
            if (w->shaken && SSL_is_init_finished(w->server))
                fail_msg("version %d: byte %zu of %zu may change", i, at, len);
        }
    }
}

/* A client's certificate, and the key of another, of another kind. */
static void write_strangers(struct tls_wire *w, const char *cert_path, const char *key_path)
{
    struct cert_pair pair;
    cert_make(&w->lab, &pair, &(struct cert_wish){.usage = "clientAuth"});
    assert_true(cert_pair_write(&pair, cert_path, NULL));
    cert_pair_fini(&pair);
    cert_make(&w->lab, &pair, &(struct cert_wish){.key = CERT_RSA_2048});
    assert_true(cert_pair_write(&pair, scratch_at(&w->scratch, "other.pem"), key_path));
    cert_pair_fini(&pair);
}

static void test_what_cannot_be_used_is_refused_before_the_run(void **state)
{
    struct tls_wire *w = *state;
    struct tls_options base = w->options;
    struct tls_options bad[17];
    char long_name[300] = "";
    char *cert = mem_strdup(scratch_at(&w->scratch, "cert.pem"));
    char *key = mem_strdup(scratch_at(&w->scratch, "other.key"));
    char *pipe = mem_strdup(scratch_at(&w->scratch, "pipe"));
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        bad[i] = base;
    bad[0].ca_file = "/nonexistent/ca.pem";
    bad[1].cert_file = "/nonexistent/cert.pem";
    bad[2].key_file = base.ca_file;  /* without a certificate */
    bad[3].cert_file = base.ca_file; /* without its key */
    bad[4].ciphers = "TLS_AES_128_GCM_SHA256:NONE";
    bad[5].ciphers = "";
    bad[6].groups = "X25519:";
    bad[7].min = TLS_1_3, bad[7].max = TLS_1_2;
    write_strangers(w, cert, key);
    bad[8].cert_file = cert, bad[8].key_file = key;
    assert_int_equal(mkfifo(pipe, 0600), 0);
    bad[9].ca_file = pipe; /* would be waited for */
    bad[10].server_name = "";
    memset(long_name, 'a', sizeof long_name - 1);
    bad[11].server_name = long_name;
    bad[12].groups = "X25519:P-256:X25519";
    bad[13].groups = "P-256:prime256v1"; /* one group */
    bad[14].groups = "brainpoolP256r1:brainpoolP384r1", bad[14].min = TLS_1_3;
    bad[15].groups = "brainpoolP256r1"; /* no key share for TLS 1.3, which is offered, too */
    bad[16].groups = "X25519:x25519";
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct err_detail d = {0};
        if (tls_wire_configure(w, &bad[i], &d) == ERR_OK)
            fail_msg("case %zu is taken", i);
        assert_null(w->config);
        assert_true(strlen(d.text) > 10);
    }
    free(cert);
    free(key);
    free(pipe);
    base.groups = "brainpoolP256r1"; /* with TLS 1.2 it may be offered */
    base.max = TLS_1_2;
    assert_int_equal(tls_wire_configure(w, &base, NULL), ERR_OK);
}

/* --- whom to trust --- */

static char *write_bundle(struct tls_wire *w, const char *name, const struct cert_pair *const *pairs,
                          size_t count, const char *text)
{
    char *path = mem_strdup(scratch_at(&w->scratch, name));
    FILE *f = fopen(path, "we");
    for (size_t i = 0; i < count; i++)
        assert_int_equal(PEM_write_X509(f, pairs[i]->cert), 1);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
    return path;
}

/* Also the second of two that have one name, and whatever was asked for before. */
static void test_each_certificate_of_the_file_is_trusted(void **state)
{
    struct tls_wire *w = *state;
    static const enum cert_signer order[] = {CERT_BY_STRANGER, CERT_BY_CA,       CERT_BY_INTERMEDIATE,
                                             CERT_BY_ITSELF,   CERT_BY_STRANGER, CERT_BY_CA};
    struct cert_pair namesake;
    struct cert_wish wish = {.signer = CERT_BY_ITSELF, .subject = "the CA of the tests", .is_ca = true};
    cert_make(&w->lab, &namesake, &wish);
    const struct cert_pair *all[] = {&namesake, &w->lab.signers[CERT_BY_CA],
                                     &w->lab.signers[CERT_BY_STRANGER]};
    char *bundle = write_bundle(w, "bundle.pem", all, ARRAY_LEN(all), "");
    struct tls_options o = w->options;
    o.ca_file = bundle;
    assert_int_equal(tls_wire_configure(w, &o, NULL), ERR_OK);
    for (size_t i = 0; i < ARRAY_LEN(order); i++) {
        tls_wire_show(w, &(struct cert_wish){.signer = order[i]});
        tls_wire_shake_hands(w);
        bool trusted = order[i] == CERT_BY_CA || order[i] == CERT_BY_STRANGER;
        assert_int_equal(w->last, trusted ? TLS_WANT_MORE : TLS_FAILED);
        assert_true(trusted || tls_failure_of(w->client)->cause == CAUSE_VERIFY);
    }
    /* A server's own certificate, which nobody else has signed. */
    tls_wire_show(w, &(struct cert_wish){.signer = CERT_BY_ITSELF});
    const struct cert_pair own = {.cert = SSL_CTX_get0_certificate(w->context)};
    const struct cert_pair *one[] = {&own};
    char *alone = write_bundle(w, "own.pem", one, 1, "");
    o.ca_file = alone;
    assert_int_equal(tls_wire_configure(w, &o, NULL), ERR_OK);
    tls_wire_shake_hands_well(w);
    cert_pair_fini(&namesake);
    free(bundle);
    free(alone);
}

static void test_a_file_is_read_whole_or_refused(void **state)
{
    struct tls_wire *w = *state;
    static const char *const ends[] = {"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
                                       "-----BEGIN CERTIFICATE-----\nMIIB", "-----BEGIN CERTIFICATE-----\n"};
    const struct cert_pair *one[] = {&w->lab.signers[CERT_BY_CA]};
    for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
        struct err_detail d = {0};
        struct tls_trust *trust = NULL;
        char *path = write_bundle(w, "broken.pem", one, 1, ends[i]);
        assert_int_equal(tls_trust_read(&trust, path, &d), ERR_INVALID);
        assert_non_null(strstr(d.text, path));
        assert_null(trust);
        free(path);
    }
    char *path = write_bundle(w, "words.pem", one, 1, "and some words after it\n");
    struct tls_trust *trust = NULL;
    assert_int_equal(tls_trust_read(&trust, path, NULL), ERR_OK);
    tls_trust_free(trust);
    free(path);
}

#define WIRED(test) cmocka_unit_test_setup_teardown(test, tls_wire_set_up, tls_wire_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WIRED(test_bytes_go_through_in_pieces_of_any_size),
        WIRED(test_what_was_agreed_is_told),
        WIRED(test_a_large_request_leaves_in_bounded_pieces),
        WIRED(test_the_server_is_asked_for_by_name),
        WIRED(test_a_session_goes_on_where_it_was_asked_for),
        WIRED(test_a_broken_session_is_forgotten),
        cmocka_unit_test(test_a_refusal_names_its_cause),
        cmocka_unit_test(test_certificates_are_taken_as_they_are_where_that_is_wanted),
        WIRED(test_want_of_memory_is_a_local_cause),
        WIRED(test_what_is_not_tls_is_told_apart),
        WIRED(test_renegotiation_is_refused),
        WIRED(test_keys_change_unseen),
        WIRED(test_a_request_waits_for_the_rest_of_a_message),
        WIRED(test_a_short_record_is_a_fault_of_the_protocol),
        WIRED(test_a_failed_session_takes_no_request),
        WIRED(test_no_bit_of_the_first_flight_may_change),
        WIRED(test_what_cannot_be_used_is_refused_before_the_run),
        WIRED(test_each_certificate_of_the_file_is_trusted),
        WIRED(test_a_file_is_read_whole_or_refused),
    };
    if (CRYPTO_set_mem_functions(give_memory, give_more_memory, take_memory) != 1) /* before its first use */
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
