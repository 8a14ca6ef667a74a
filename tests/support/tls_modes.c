#include "tests/support/tls_modes.h"

#include "tests/support/tls_conduct.h"

#include <string.h>

#define SMALL_BYTES 512u /* the least that OpenSSL allows to be the most of a record */

/* ---- which application protocol ------------------------------------------------------------------------ */

static void note_offer(SSL *ssl, const unsigned char *list, unsigned len)
{
    visit_note_offer(SSL_get_app_data(ssl), list, len);
}

static int on_protocols(SSL *ssl, const unsigned char **out, unsigned char *out_len,
                        const unsigned char *list, unsigned len, void *arg)
{
    static const unsigned char ours[] = "\x08http/1.1";
    (void)arg;
    note_offer(ssl, list, len);
    for (unsigned i = 0; i < len; i += 1u + list[i]) {
        if (list[i] != ours[0] || memcmp(list + i + 1, ours + 1, ours[0]) != 0)
            continue;
        *out = list + i + 1;
        *out_len = list[i];
        return SSL_TLSEXT_ERR_OK;
    }
    return SSL_TLSEXT_ERR_NOACK;
}

static int on_protocols_h2_only(SSL *ssl, const unsigned char **out, unsigned char *out_len,
                                const unsigned char *list, unsigned len, void *arg)
{
    (void)out;
    (void)out_len;
    (void)arg;
    note_offer(ssl, list, len);
    return SSL_TLSEXT_ERR_ALERT_FATAL;
}

static int on_protocols_h2_anyway(SSL *ssl, const unsigned char **out, unsigned char *out_len,
                                  const unsigned char *list, unsigned len, void *arg)
{
    static const unsigned char h2[] = "h2";
    (void)arg;
    note_offer(ssl, list, len);
    *out = h2;
    *out_len = 2;
    return SSL_TLSEXT_ERR_OK;
}

static void set_h2_only(SSL_CTX *ctx, const struct cert_lab *lab)
{
    (void)lab;
    SSL_CTX_set_alpn_select_cb(ctx, on_protocols_h2_only, NULL);
}

static void set_h2_anyway(SSL_CTX *ctx, const struct cert_lab *lab)
{
    (void)lab;
    SSL_CTX_set_alpn_select_cb(ctx, on_protocols_h2_anyway, NULL);
}

static void set_no_alpn(SSL_CTX *ctx, const struct cert_lab *lab)
{
    (void)lab;
    SSL_CTX_set_alpn_select_cb(ctx, NULL, NULL);
}

/* ---- names, client certificates, sessions -------------------------------------------------------------- */

static int on_name(SSL *ssl, int *alert, void *on_unknown)
{
    const char *name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
    *alert = SSL_AD_UNRECOGNIZED_NAME;
    return name != NULL && strcmp(name, "localhost") == 0 ? SSL_TLSEXT_ERR_OK : *(const int *)on_unknown;
}

static void set_strict_name(SSL_CTX *ctx, const struct cert_lab *lab)
{
    static int fatal = SSL_TLSEXT_ERR_ALERT_FATAL;
    (void)lab;
    SSL_CTX_set_tlsext_servername_callback(ctx, on_name);
    SSL_CTX_set_tlsext_servername_arg(ctx, &fatal);
}

static void set_name_warning(SSL_CTX *ctx, const struct cert_lab *lab)
{
    static int warning = SSL_TLSEXT_ERR_ALERT_WARNING;
    (void)lab;
    SSL_CTX_set_tlsext_servername_callback(ctx, on_name);
    SSL_CTX_set_tlsext_servername_arg(ctx, &warning);
}

static void set_asks(SSL_CTX *ctx, const struct cert_lab *lab)
{
    X509 *ca = lab->signers[CERT_BY_CA].cert;
    SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
    must(X509_STORE_add_cert(SSL_CTX_get_cert_store(ctx), ca) == 1 && SSL_CTX_add_client_CA(ctx, ca) == 1);
}

static void set_wants(SSL_CTX *ctx, const struct cert_lab *lab)
{
    set_asks(ctx, lab);
    SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
}

/* Asks for nothing in the hand-shake, and knows whom it would trust when it asks later. */
static void set_asks_late(SSL_CTX *ctx, const struct cert_lab *lab)
{
    set_asks(ctx, lab);
    SSL_CTX_set_verify(ctx, SSL_VERIFY_NONE, NULL);
    must(SSL_CTX_set_num_tickets(ctx, 0) == 1);
}

static void set_no_tickets(SSL_CTX *ctx, const struct cert_lab *lab)
{
    (void)lab;
    SSL_CTX_set_options(ctx, SSL_OP_NO_TICKET);
    must(SSL_CTX_set_num_tickets(ctx, 0) == 1);
    SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
}

static void set_session_ids(SSL_CTX *ctx, const struct cert_lab *lab)
{
    (void)lab;
    SSL_CTX_set_options(ctx, SSL_OP_NO_TICKET);
}

static int on_ticket_made(SSL *ssl, void *arg)
{
    (void)ssl;
    (void)arg;
    return 1;
}

static SSL_TICKET_RETURN on_ticket_back(SSL *ssl, SSL_SESSION *session, const unsigned char *name, size_t len,
                                        SSL_TICKET_STATUS status, void *arg)
{
    (void)ssl;
    (void)session;
    (void)name;
    (void)len;
    (void)status;
    (void)arg;
    return SSL_TICKET_RETURN_IGNORE;
}

static void set_ignored_tickets(SSL_CTX *ctx, const struct cert_lab *lab)
{
    (void)lab;
    SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
    must(SSL_CTX_set_session_ticket_cb(ctx, on_ticket_made, on_ticket_back, NULL) == 1);
}

static void set_small_records(SSL_CTX *ctx, const struct cert_lab *lab)
{
    (void)lab;
    must(SSL_CTX_set_max_send_fragment(ctx, SMALL_BYTES) == 1);
}

/* ---- the table ----------------------------------------------------------------------------------------- */

#define HEAD        "HTTP/1.1 200 OK\r\n"
#define BYTES(b)    b, .len = sizeof(b) - 1
#define HELLO(b)    .run = tls_run_answering_hello, .text = BYTES(b)
#define ALERT(code) HELLO("\x15\x03\x03\x00\x02\x02" code)
#define BREAK(b)    .run = tls_run_breaking_answer, .text = BYTES(b)
/* Bytes that only fit a session whose keys the forger knows. */
#define FORGED                                                                                               \
    .version = TLS1_3_VERSION, .suites = "TLS_AES_128_GCM_SHA256", .set_up = set_no_tickets, BREAK("")

const struct tls_mode tls_modes[] = {
    {"ok", "TLS 1.2 and 1.3, tickets, everything right", .run = tls_run_answering},
    {"tls13", "TLS 1.3 only", .version = TLS1_3_VERSION},
    {"tls12", "TLS 1.2 only", .version = TLS1_2_VERSION},
    {"tls11", "TLS 1.1 only", .version = TLS1_1_VERSION},
    {"tls11-anyway", "takes TLS 1.1, whatever was offered",
     HELLO("\x16\x03\x02\x00\x2a\x02\x00\x00\x26\x03\x02"
           "a random number has 32 bytes, as"
           "\x00\xc0\x13\x00"),
     .end = tls_end_by_silence},
    {"psk-only", "TLS 1.2 with ciphers of pre-shared keys only", .version = TLS1_2_VERSION,
     .ciphers = "PSK-AES128-GCM-SHA256"},
    {"chacha-only", "no cipher but ChaCha20 in either version", .ciphers = "ECDHE-ECDSA-CHACHA20-POLY1305",
     .suites = "TLS_CHACHA20_POLY1305_SHA256"},
    {"ccm8-only", "TLS 1.3 with the one suite that nobody offers", .version = TLS1_3_VERSION,
     .suites = "TLS_AES_128_CCM_8_SHA256"},
    {"x25519-only", "no group but X25519", .groups = "X25519"},
    {"p384-only", "no group but P-384: TLS 1.3 asks for another hello", .groups = "P-384"},

    {"h2-only", "refuses when HTTP/2 is not offered", .set_up = set_h2_only},
    {"h2-anyway", "takes HTTP/2 although it was not offered", .set_up = set_h2_anyway},
    {"h2-speaks-first", "no ALPN; sends HTTP/2's first frame at once", .set_up = set_no_alpn,
     .run = tls_run_speaking_first},
    {"h2-answers", "no ALPN; answers with HTTP/2's first frame", .set_up = set_no_alpn,
     .run = tls_run_breaking_answer, .text = BYTES(TLS_HTTP2_SETTINGS), .end = tls_end_by_silence},
    {"no-alpn", "HTTP/1.1 without a word of ALPN", .set_up = set_no_alpn},

    {"expired", "its certificate ended two days ago", .cert = {.from_days = -30, .to_days = -2}},
    {"not-yet-valid", "its certificate begins in two days", .cert = {.from_days = 2, .to_days = 30}},
    {"wrong-name", "its certificate names another host",
     .cert = {.names = "DNS:other.test,IP:127.0.0.1,IP:::1"}},
    {"wrong-address", "its certificate names other addresses",
     .cert = {.names = "DNS:localhost,IP:127.0.0.2,IP:::2"}},
    {"address-as-name", "its certificate has the addresses as if they were host names",
     .cert = {.names = "DNS:127.0.0.1,DNS:::1"}},
    {"address-in-subject", "its certificate has the address as its subject alone",
     .cert = {.subject = "127.0.0.1", .names = ""}},
    {"name-in-subject", "its certificate has the host as its subject alone",
     .cert = {.subject = "localhost", .names = ""}},
    {"self-signed", "its certificate is signed by itself", .cert = {.signer = CERT_BY_ITSELF}},
    {"stranger", "its certificate is of a CA that the client does not know",
     .cert = {.signer = CERT_BY_STRANGER}},
    {"chain", "its certificate is of an intermediate CA, which it sends",
     .cert = {.signer = CERT_BY_INTERMEDIATE}},
    {"hidden-chain", "its certificate is of an intermediate CA, which it does not send",
     .cert = {.signer = CERT_BY_INTERMEDIATE}, .hides_chain = true},
    {"expired-chain", "its certificate is of an intermediate CA that has expired",
     .cert = {.signer = CERT_BY_OLD_INTERMEDIATE}},
    {"leaf-as-ca", "its certificate is signed by one that may not sign", .cert = {.signer = CERT_BY_LEAF}},
    {"wrong-usage", "its certificate is for clients only", .cert = {.usage = "clientAuth"}},
    {"weak-key", "its certificate has an RSA key of 1024 bits", .cert = {.key = CERT_RSA_1024}},
    {"weak-hash", "its certificate is signed with SHA-1", .cert = {.sha1 = true}},
    {"rsa", "its certificate has an RSA key of 2048 bits", .cert = {.key = CERT_RSA_2048}},
    {"strict-name", "refuses clients that do not ask for localhost", .set_up = set_strict_name},
    {"name-warning", "TLS 1.2; warns clients that do not ask for localhost, and goes on",
     .version = TLS1_2_VERSION, .set_up = set_name_warning},

    {"wants-certificate", "refuses clients without a certificate of its CA", .set_up = set_wants},
    {"asks-certificate", "asks for a certificate; goes on without one", .set_up = set_asks},
    {"asks-late", "TLS 1.3; wants a certificate when the first request has come", .version = TLS1_3_VERSION,
     .suites = "TLS_AES_128_GCM_SHA256", .set_up = set_asks_late, .run = tls_run_asking_late},

    {"closes-hello", "closes after the client's first words", .run = tls_run_breaking_hands},
    {"resets-hello", "resets after the client's first words", .run = tls_run_breaking_hands,
     .end = tls_end_by_reset},
    {"stalls-hello", "says nothing at all", .run = tls_run_breaking_hands, .end = tls_end_by_silence},
    {"closes-flight", "closes in the middle of its first words", .run = tls_run_breaking_hands, .share = 50},
    {"resets-flight", "resets in the middle of its first words", .run = tls_run_breaking_hands, .share = 50,
     .end = tls_end_by_reset},
    {"stalls-flight", "stalls in the middle of its first words", .run = tls_run_breaking_hands, .share = 50,
     .end = tls_end_by_silence},
    {"closes-shaken", "closes after its first words: in TLS 1.3 the client thinks it is connected",
     .run = tls_run_breaking_hands, .share = 100},
    {"resets-shaken", "resets after its first words", .run = tls_run_breaking_hands, .share = 100,
     .end = tls_end_by_reset},
    {"drips", "sends its first words byte by byte", .run = tls_run_dripping},
    {"small-records", "no record has more than 512 bytes", .set_up = set_small_records},
    {"garbage", "answers the first words with nonsense",
     HELLO("\x01\x80nonsense\xff\xfe and more of it\r\n")},
    {"plain-http", "speaks HTTP without TLS",
     HELLO("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")},
    {"ssh", "speaks SSH", HELLO("SSH-2.0-OpenSSH_9.2\r\n")},
    {"alert-handshake-failure", "that alert at once", ALERT("\x28")},
    {"alert-protocol-version", "that alert at once", ALERT("\x46")},
    {"alert-insufficient-security", "that alert at once", ALERT("\x47")},
    {"alert-internal-error", "that alert at once", ALERT("\x50")},
    {"alert-unrecognized-name", "that alert at once", ALERT("\x70")},

    {"closes-request", "closes instead of an answer", BREAK("")},
    {"resets-request", "resets instead of an answer", BREAK(""), .end = tls_end_by_reset},
    {"notifies-request", "close_notify instead of an answer", BREAK(""), .end = tls_end_by_notify},
    {"false-record", "a record that no key fits instead of an answer", BREAK(""),
     .end = tls_end_by_false_record},
    {"false-record-body", "likewise in the middle of a body", BREAK(HEAD "Content-Length: 100\r\n\r\npart"),
     .end = tls_end_by_false_record},
    {"long-record", "a record over the limit instead of an answer", BREAK(""), .end = tls_end_by_long_record},
    {"late-alert", "TLS 1.3; a fatal alert instead of an answer", FORGED, .end = tls_end_by_alert},
    {"late-message", "TLS 1.3; a hand-shake message that nobody knows instead of an answer", FORGED,
     .end = tls_end_by_message},
    {"truncates-length", "closes TCP in a body of known length",
     BREAK(HEAD "Content-Length: 100\r\n\r\npart")},
    {"truncates-chunked", "closes TCP in a chunked body",
     BREAK(HEAD "Transfer-Encoding: chunked\r\n\r\n64\r\npart")},
    {"truncates-open", "closes TCP in a body that ends with the connection",
     BREAK(HEAD "Connection: close\r\n\r\npart")},
    {"ends-open", "ends such a body as it should", BREAK(HEAD "Connection: close\r\n\r\nall"),
     .end = tls_end_by_notify},
    {"notifies-body", "close_notify in a body of known length", BREAK(HEAD "Content-Length: 100\r\n\r\npart"),
     .end = tls_end_by_notify},
    {"resets-body", "resets in a body of known length", BREAK(HEAD "Content-Length: 100\r\n\r\npart"),
     .end = tls_end_by_reset},
    {"truncates-idle", "three answers, then closes TCP", .run = tls_run_breaking_answer, .answers = 3},
    {"notifies-idle", "three answers, then ends as it should", .run = tls_run_breaking_answer, .answers = 3,
     .end = tls_end_by_notify},
    {"notifies-alone", "three answers, then close_notify, and TCP stays open", .run = tls_run_breaking_answer,
     .answers = 3, .end = tls_end_by_notify_alone},

    {"renegotiates-before", "TLS 1.2; wants a new hand-shake before its first answer",
     .version = TLS1_2_VERSION, .run = tls_run_renegotiating_before},
    {"renegotiates-after", "TLS 1.2; wants a new hand-shake after its first answer",
     .version = TLS1_2_VERSION, .run = tls_run_renegotiating_after},
    {"updates-keys", "TLS 1.3; new keys for both sides before each answer", .version = TLS1_3_VERSION,
     .run = tls_run_updating_keys},

    {"session-ids", "sessions are kept by the server", .set_up = set_session_ids},
    {"ignores-tickets", "gives tickets and knows none of them", .set_up = set_ignored_tickets},
    {"no-sessions", "no session can be resumed", .set_up = set_no_tickets},
    {"stops-reading", "reads a megabyte of a request, and no more", .run = tls_run_stopping_to_read},
};

const size_t tls_mode_count = ARRAY_LEN(tls_modes);

const struct tls_mode *tls_mode_find(const char *name)
{
    for (size_t i = 0; i < tls_mode_count; i++)
        if (strcmp(tls_modes[i].name, name) == 0)
            return &tls_modes[i];
    return NULL;
}

static void show_certificate(SSL_CTX *ctx, const struct tls_mode *m, const struct cert_lab *lab,
                             const struct cert_pair *own)
{
    must(SSL_CTX_use_certificate(ctx, own->cert) == 1 && SSL_CTX_use_PrivateKey(ctx, own->key) == 1);
    bool whole = m->cert.signer == CERT_BY_CA || m->cert.signer == CERT_BY_ITSELF;
    if (!whole && !m->hides_chain)
        must(SSL_CTX_add1_chain_cert(ctx, lab->signers[m->cert.signer].cert) == 1);
}

SSL_CTX *tls_mode_context(const struct tls_mode *m, const struct cert_lab *lab, const struct cert_pair *own)
{
    SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
    must(ctx != NULL);
    SSL_CTX_set_security_level(ctx, 0); /* what is weak is for the client to refuse */
    must(SSL_CTX_set_min_proto_version(ctx, m->version != 0 ? m->version : TLS1_2_VERSION) == 1);
    must(SSL_CTX_set_max_proto_version(ctx, m->version != 0 ? m->version : TLS1_3_VERSION) == 1);
    must(m->ciphers == NULL || SSL_CTX_set_cipher_list(ctx, m->ciphers) == 1);
    must(m->suites == NULL || SSL_CTX_set_ciphersuites(ctx, m->suites) == 1);
    must(m->groups == NULL || SSL_CTX_set1_groups_list(ctx, m->groups) == 1);
    must(SSL_CTX_set_session_id_context(ctx, (const uint8_t *)"tests", 5) == 1);
    /* Without it the chain would be made up from what the context trusts. */
    SSL_CTX_set_mode(ctx, SSL_MODE_NO_AUTO_CHAIN);
    SSL_CTX_set_alpn_select_cb(ctx, on_protocols, NULL);
    show_certificate(ctx, m, lab, own);
    visit_watch(ctx);
    if (m->set_up != NULL)
        m->set_up(ctx, lab);
    return ctx;
}

void tls_mode_run(struct visit *v)
{
    const struct tls_mode *m = v->service->mode;
    (m->run != NULL ? m->run : tls_run_answering)(v);
}
