#include "agent/load/tls.h"

#include "common/buf.h"
#include "common/mem.h"

#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <pthread.h>

/* Of one TLS record (RFC 8446 5.1). */
#define RECORD_BYTES (16u * 1024u)
/* Ciphertext waiting to be sent: what is encrypted ahead, and the flights of a hand-shake with the longest
 * chain of our own. */
#define OUTPUT_BYTES_MAX (TLS_AHEAD_BYTES + 256u * 1024u)
#define HTTP_MARK        "HTTP/"

struct tls {
    const struct tls_config *config;
    SSL_SESSION **session; /* borrowed: what is remembered */
    SSL *ssl;
    const uint8_t *in; /* borrowed from tls_feed */
    size_t in_len;
    const uint8_t *rest; /* borrowed from tls_write: not encrypted yet */
    size_t rest_len;
    bool held;         /* the rest: until more has come from the peer */
    struct buf out;    /* being filled */
    struct buf flight; /* handed out by tls_take_output */
    bool fed;
    bool proven;
    bool renegotiates;
    struct tls_story story;
    struct tls_failure failure;
};

/* --- the two ends of the filter, as OpenSSL sees them: memory --- */

static int read_input(BIO *bio, char *out, size_t size, size_t *len)
{
    struct tls *t = BIO_get_data(bio);
    size_t n = size < t->in_len ? size : t->in_len;
    BIO_clear_retry_flags(bio);
    *len = n;
    if (n == 0) {
        BIO_set_retry_read(bio);
        return 0;
    }
    memcpy(out, t->in, n);
    t->in += n;
    t->in_len -= n;
    return 1;
}

static int write_output(BIO *bio, const char *data, size_t size, size_t *len)
{
    struct tls *t = BIO_get_data(bio);
    *len = size;
    return buf_append(&t->out, data, size) == ERR_OK ? 1 : 0;
}

static long control(BIO *bio, int command, long number, void *pointer)
{
    (void)bio;
    (void)number;
    (void)pointer;
    return command == BIO_CTRL_FLUSH ? 1 : 0;
}

static BIO_METHOD *method;

static void make_method(void)
{
    method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "memory of splitbench-load");
    must(method != NULL && BIO_meth_set_read_ex(method, read_input) == 1 &&
         BIO_meth_set_write_ex(method, write_output) == 1 && BIO_meth_set_ctrl(method, control) == 1);
}

static BIO *new_bio(struct tls *t)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    must(pthread_once(&once, make_method) == 0);
    BIO *bio = BIO_new(method);
    must(bio != NULL);
    BIO_set_data(bio, t);
    BIO_set_init(bio, 1);
    return bio;
}

/* --- what is told on the way --- */

/* Called when, and only when, the server asks for a certificate. */
static int on_cert_asked(SSL *ssl, void *arg)
{
    (void)ssl;
    struct tls *t = arg;
    t->story.cert_asked = true;
    return 1;
}

/* A request for renegotiation is declined by an alert of ours, and the connection would go on (RFC 5246
 * 7.2.2); but whoever asks for one wants something that he does not get. */
static void on_info(const SSL *ssl, int where, int value)
{
    struct tls *t = SSL_get_app_data(ssl);
    if (where == SSL_CB_WRITE_ALERT && (value & 0xff) == SSL_AD_NO_RENEGOTIATION)
        t->renegotiates = true;
}

/* --- life --- */

struct tls *tls_new(const struct tls_config *c, SSL_SESSION **session)
{
    struct tls *t = mem_zalloc(1, sizeof *t);
    t->config = c;
    t->session = session;
    t->story.cert_given = c->has_cert;
    buf_init(&t->out, OUTPUT_BYTES_MAX);
    buf_init(&t->flight, OUTPUT_BYTES_MAX);
    t->ssl = SSL_new(c->context);
    must(t->ssl != NULL); /* fails for want of memory alone, as what follows */
    must(SSL_set_app_data(t->ssl, t) == 1);
    BIO *bio = new_bio(t);
    SSL_set_bio(t->ssl, bio, bio);
    SSL_set_info_callback(t->ssl, on_info);
    SSL_set_cert_cb(t->ssl, on_cert_asked, t);
    SSL_set_connect_state(t->ssl);
    must(c->sni == NULL || SSL_set_tlsext_host_name(t->ssl, c->sni) == 1);
    if (*session != NULL && SSL_set_session(t->ssl, *session) != 1)
        ERR_clear_error(); /* it has expired meanwhile: a full hand-shake, then */
    return t;
}

void tls_session_free(SSL_SESSION *session)
{
    SSL_SESSION_free(session);
}

/* The newest session that the server has offered to go on with; none after a failure. */
static void remember(struct tls *t)
{
    SSL_SESSION *session = SSL_get1_session(t->ssl);
    bool failed = t->failure.text[0] != '\0';
    bool good = !failed && session != NULL && SSL_SESSION_is_resumable(session) == 1;
    if (failed || good) {
        SSL_SESSION_free(*t->session);
        *t->session = NULL;
    }
    if (good)
        *t->session = session;
    else
        SSL_SESSION_free(session);
}

void tls_free(struct tls *t)
{
    if (t == NULL)
        return;
    if (t->config->resume)
        remember(t);
    /* Else OpenSSL would not resume the session of a connection that ended without a close_notify. */
    SSL_set_shutdown(t->ssl, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
    SSL_free(t->ssl);
    buf_fini(&t->out);
    buf_fini(&t->flight);
    free(t);
}

/* --- bytes in --- */

void tls_feed(struct tls *t, const uint8_t *data, size_t len)
{
    if (!t->fed)
        t->story.saw_http = len >= strlen(HTTP_MARK) && memcmp(data, HTTP_MARK, strlen(HTTP_MARK)) == 0;
    t->fed = true;
    t->held = false;
    t->in = data;
    t->in_len = len;
}

static enum tls_result result_of(struct tls *t, int rc)
{
    switch (SSL_get_error(t->ssl, rc)) {
    case SSL_ERROR_WANT_READ:
        return TLS_WANT_MORE;
    case SSL_ERROR_ZERO_RETURN:
        return TLS_CLOSED;
    default:
        tls_failure_explain(&t->failure, t->ssl, &t->story);
        return TLS_FAILED;
    }
}

/* ALPN binds the server to what was offered (RFC 7301 3.2); OpenSSL leaves it to us to look. */
static enum tls_result check_protocol(struct tls *t)
{
    static const char http_1_1[] = "http/1.1";
    char text[FAULT_SAMPLE_BYTES];
    const unsigned char *name = NULL;
    unsigned len = 0;
    SSL_get0_alpn_selected(t->ssl, &name, &len);
    if (len == 0 || (len == strlen(http_1_1) && memcmp(name, http_1_1, len) == 0))
        return TLS_OK;
    snprintf(text, sizeof text, "the server chose '%.*s' (ALPN), not http/1.1", (int)len, (const char *)name);
    tls_failure_set(&t->failure, CAUSE_PROTOCOL, text);
    return TLS_FAILED;
}

enum tls_result tls_handshake(struct tls *t)
{
    int rc = SSL_do_handshake(t->ssl);
    if (rc != 1)
        return result_of(t, rc);
    ERR_clear_error(); /* left by attempts from which OpenSSL recovered */
    return check_protocol(t);
}

enum tls_result tls_read(struct tls *t, uint8_t *out, size_t size, size_t *len)
{
    *len = 0;
    if (t->in_len == 0 && t->proven && SSL_pending(t->ssl) == 0)
        return TLS_WANT_MORE; /* as OpenSSL would say, at many times the cost */
    int rc = SSL_read_ex(t->ssl, out, size, len);
    if (t->renegotiates) {
        tls_failure_set(&t->failure, CAUSE_PROTOCOL, "the server asks for renegotiation, which is not done");
        return TLS_FAILED;
    }
    if (rc != 1)
        return result_of(t, rc);
    t->proven = true;
    return TLS_OK;
}

bool tls_is_proven(const struct tls *t)
{
    return t->proven;
}

/* --- bytes out --- */

void tls_write(struct tls *t, const uint8_t *data, size_t len)
{
    t->rest = data;
    t->rest_len = len;
}

/* One record. In the midst of a message of the peer's, such as a ticket in several records, nothing can be
 * written. A session that has failed swallows it all, and says why when it is read. */
static void encrypt_some(struct tls *t)
{
    size_t n = 0;
    int rc = SSL_write_ex(t->ssl, t->rest, t->rest_len < RECORD_BYTES ? t->rest_len : RECORD_BYTES, &n);
    if (rc != 1 && t->failure.text[0] == '\0' && SSL_get_error(t->ssl, rc) == SSL_ERROR_WANT_READ) {
        t->held = true;
        return;
    }
    if (rc != 1) {
        ERR_clear_error(); /* the next session of this thread has no part in it */
        n = t->rest_len;
    }
    t->rest += n;
    t->rest_len -= n;
}

bool tls_is_writing(const struct tls *t)
{
    return t->rest_len != 0;
}

bool tls_has_output(const struct tls *t)
{
    return (t->rest_len != 0 && !t->held) || t->out.len != 0;
}

bool tls_take_output(struct tls *t, const uint8_t **data, size_t *len)
{
    while (t->rest_len != 0 && !t->held && t->out.len < TLS_AHEAD_BYTES)
        encrypt_some(t);
    if (t->out.len == 0)
        return false;
    struct buf sent = t->flight;
    t->flight = t->out;
    t->out = sent;
    buf_clear(&t->out);
    *data = (const uint8_t *)t->flight.data;
    *len = t->flight.len;
    return true;
}

/* --- what became of it --- */

/* The name by which --tls-groups takes it. What has no number of its own in OpenSSL's table of objects is
 * named by SSL_get0_group_name alone, which is there since 3.2 (HISTORY in its manual page). */
static const char *group_of(SSL *ssl)
{
    int nid = (int)SSL_get_negotiated_group(ssl);
    const char *name = EC_curve_nid2nist(nid);
    if (name == NULL && nid != NID_undef)
        name = OBJ_nid2sn(nid);
#if OPENSSL_VERSION_NUMBER >= 0x30200000L
    if (name == NULL)
        name = SSL_get0_group_name(ssl);
#endif
    return name != NULL ? name : "";
}

void tls_agreed_on(const struct tls *t, struct tls_agreed *out)
{
    *out = (struct tls_agreed){.version = SSL_get_version(t->ssl),
                               .suite = SSL_CIPHER_standard_name(SSL_get_current_cipher(t->ssl)),
                               .resumed = SSL_session_reused(t->ssl) == 1};
    snprintf(out->group, sizeof out->group, "%s", group_of(t->ssl));
}

const struct tls_failure *tls_failure_of(const struct tls *t)
{
    return &t->failure;
}
