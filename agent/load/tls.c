#include "agent/load/tls.h"

#include "common/mem.h"

#include <arpa/inet.h>
#include <mbedtls/ctr_drbg.h>
#include <mbedtls/entropy.h>
#include <mbedtls/error.h>
#include <mbedtls/ssl.h>
#include <unistd.h>

/* Ciphertext waiting to be sent: a request with the largest body, and its records' overhead. */
#define OUTPUT_BYTES_MAX (40u * 1024u * 1024u)
#define ERROR_BYTES      160u
#define SAN_IP           (MBEDTLS_ASN1_CONTEXT_SPECIFIC | MBEDTLS_X509_SAN_IP_ADDRESS)

struct tls_config {
    mbedtls_ssl_config ssl;
    mbedtls_x509_crt trusted;
    mbedtls_entropy_context entropy;
    mbedtls_ctr_drbg_context random;
    bool insecure;
    char *name;     /* host name to ask for and to find in the certificate; NULL for an address */
    uint8_t ip[16]; /* address to find in the certificate */
    size_t ip_len;
};

struct tls {
    const struct tls_config *config;
    mbedtls_ssl_context ssl;
    const uint8_t *in; /* borrowed from tls_feed */
    size_t in_len;
    struct buf out;    /* being filled */
    struct buf flight; /* handed out by tls_take_output */
    char error[ERROR_BYTES];
};

/* What every browser offers first, the fastest in front: mbedTLS's own order puts the costly ones first. */
static const int suites[] = {
    MBEDTLS_TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
    MBEDTLS_TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
    MBEDTLS_TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
    MBEDTLS_TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
    MBEDTLS_TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
    MBEDTLS_TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
    0,
};
static const mbedtls_ecp_group_id curves[] = {MBEDTLS_ECP_DP_CURVE25519, MBEDTLS_ECP_DP_SECP256R1,
                                              MBEDTLS_ECP_DP_SECP384R1, MBEDTLS_ECP_DP_NONE};

static enum err fail(struct err_detail *d, enum err e, const char *what, int rc)
{
    char text[ERROR_BYTES];
    mbedtls_strerror(rc, text, sizeof text);
    return err_set(d, e, "TLS: %s: %s", what, text);
}

static enum err load_trust(struct tls_config *c, const char *ca_file, struct err_detail *d)
{
    static const char *const places[] = {"/etc/ssl/certs/ca-certificates.crt",
                                         "/etc/pki/tls/certs/ca-bundle.crt"};
    if (c->insecure)
        return ERR_OK;
    for (size_t i = 0; ca_file == NULL && i < ARRAY_LEN(places); i++)
        if (access(places[i], R_OK) == 0)
            ca_file = places[i];
    if (ca_file == NULL)
        return err_set(d, ERR_NOT_FOUND,
                       "TLS: this system has no CA certificates: give --ca FILE or --insecure");
    int rc = mbedtls_x509_crt_parse_file(&c->trusted, ca_file); /* positive: how many were not understood */
    if (rc < 0 || c->trusted.raw.p == NULL)
        return err_prefix(d, fail(d, ERR_INVALID, ca_file, rc), "cannot read CA certificates");
    return ERR_OK;
}

static void take_name(struct tls_config *c, const char *name)
{
    if (inet_pton(AF_INET, name, c->ip) == 1)
        c->ip_len = 4;
    else if (inet_pton(AF_INET6, name, c->ip) == 1)
        c->ip_len = 16;
    else
        c->name = mem_strdup(name);
}

enum err tls_config_new(struct tls_config **out, const struct tls_options *options, struct err_detail *d)
{
    static const char *protocols[] = {"http/1.1", NULL};
    struct tls_config *c = mem_zalloc(1, sizeof *c);
    c->insecure = options->insecure;
    take_name(c, options->server_name);
    mbedtls_ssl_config_init(&c->ssl);
    mbedtls_x509_crt_init(&c->trusted);
    mbedtls_entropy_init(&c->entropy);
    mbedtls_ctr_drbg_init(&c->random);
    enum err e = ERR_OK;
    int rc = mbedtls_ctr_drbg_seed(&c->random, mbedtls_entropy_func, &c->entropy, NULL, 0);
    if (rc == 0)
        rc = mbedtls_ssl_config_defaults(&c->ssl, MBEDTLS_SSL_IS_CLIENT, MBEDTLS_SSL_TRANSPORT_STREAM,
                                         MBEDTLS_SSL_PRESET_DEFAULT);
    if (rc == 0)
        rc = mbedtls_ssl_conf_alpn_protocols(&c->ssl, protocols);
    if (rc != 0)
        e = fail(d, ERR_FAILED, "cannot be set up", rc);
    if (e == ERR_OK)
        e = load_trust(c, options->ca_file, d);
    if (e != ERR_OK) {
        tls_config_free(c);
        return e;
    }
    mbedtls_ssl_conf_ciphersuites(&c->ssl, suites);
    mbedtls_ssl_conf_curves(&c->ssl, curves);
    mbedtls_ssl_conf_rng(&c->ssl, mbedtls_ctr_drbg_random, &c->random);
    mbedtls_ssl_conf_ca_chain(&c->ssl, &c->trusted, NULL);
    mbedtls_ssl_conf_authmode(&c->ssl, c->insecure ? MBEDTLS_SSL_VERIFY_NONE : MBEDTLS_SSL_VERIFY_REQUIRED);
    mbedtls_ssl_conf_min_version(&c->ssl, MBEDTLS_SSL_MAJOR_VERSION_3, MBEDTLS_SSL_MINOR_VERSION_3); /* 1.2 */
    *out = c;
    return ERR_OK;
}

void tls_config_free(struct tls_config *c)
{
    if (c == NULL)
        return;
    mbedtls_ssl_config_free(&c->ssl);
    mbedtls_x509_crt_free(&c->trusted);
    mbedtls_ctr_drbg_free(&c->random);
    mbedtls_entropy_free(&c->entropy);
    free(c->name);
    free(c);
}

static int read_input(void *arg, unsigned char *out, size_t size)
{
    struct tls *t = arg;
    size_t n = size < t->in_len ? size : t->in_len;
    if (n == 0)
        return MBEDTLS_ERR_SSL_WANT_READ;
    memcpy(out, t->in, n);
    t->in += n;
    t->in_len -= n;
    return (int)n;
}

static int write_output(void *arg, const unsigned char *data, size_t len)
{
    struct tls *t = arg;
    return buf_append(&t->out, data, len) == ERR_OK ? (int)len : MBEDTLS_ERR_SSL_INTERNAL_ERROR;
}

struct tls *tls_new(const struct tls_config *c)
{
    struct tls *t = mem_zalloc(1, sizeof *t);
    t->config = c;
    buf_init(&t->out, OUTPUT_BYTES_MAX);
    buf_init(&t->flight, OUTPUT_BYTES_MAX);
    mbedtls_ssl_init(&t->ssl);
    /* Both fail for want of memory alone. */
    must(mbedtls_ssl_setup(&t->ssl, &c->ssl) == 0);
    must(mbedtls_ssl_set_hostname(&t->ssl, c->name) == 0);
    mbedtls_ssl_set_bio(&t->ssl, t, write_output, read_input, NULL);
    return t;
}

void tls_free(struct tls *t)
{
    if (t == NULL)
        return;
    mbedtls_ssl_free(&t->ssl);
    buf_fini(&t->out);
    buf_fini(&t->flight);
    free(t);
}

void tls_feed(struct tls *t, const uint8_t *data, size_t len)
{
    t->in = data;
    t->in_len = len;
}

static enum tls_result result_of(struct tls *t, int rc)
{
    if (rc >= 0)
        return TLS_OK;
    if (rc == MBEDTLS_ERR_SSL_WANT_READ)
        return TLS_WANT_MORE;
    if (rc == MBEDTLS_ERR_SSL_PEER_CLOSE_NOTIFY)
        return TLS_CLOSED;
    mbedtls_strerror(rc, t->error, sizeof t->error);
    return TLS_FAILED;
}

static void explain_distrust(struct tls *t)
{
    uint32_t flags = mbedtls_ssl_get_verify_result(&t->ssl);
    if (mbedtls_x509_crt_verify_info(t->error, sizeof t->error, "", flags) <= 0)
        snprintf(t->error, sizeof t->error, "the certificate is not to be trusted");
    t->error[strcspn(t->error, "\n")] = '\0';
}

/* mbedTLS 2.28 checks names alone; an address is looked for here. */
static bool names_address(const mbedtls_x509_crt *cert, const uint8_t *ip, size_t ip_len)
{
    for (const mbedtls_x509_sequence *s = &cert->subject_alt_names; s != NULL; s = s->next)
        if (s->buf.tag == SAN_IP && s->buf.len == ip_len && memcmp(s->buf.p, ip, ip_len) == 0)
            return true;
    return false;
}

enum tls_result tls_handshake(struct tls *t)
{
    int rc = mbedtls_ssl_handshake(&t->ssl);
    if (rc == MBEDTLS_ERR_X509_CERT_VERIFY_FAILED) {
        explain_distrust(t);
        return TLS_UNTRUSTED;
    }
    const struct tls_config *c = t->config;
    if (rc == 0 && !c->insecure && c->ip_len != 0 &&
        !names_address(mbedtls_ssl_get_peer_cert(&t->ssl), c->ip, c->ip_len)) {
        snprintf(t->error, sizeof t->error, "the certificate does not name this address");
        return TLS_UNTRUSTED;
    }
    return result_of(t, rc);
}

enum tls_result tls_read(struct tls *t, uint8_t *out, size_t size, size_t *len)
{
    int rc = mbedtls_ssl_read(&t->ssl, out, size);
    if (rc == 0)
        return TLS_CLOSED;
    *len = rc > 0 ? (size_t)rc : 0;
    return result_of(t, rc);
}

enum tls_result tls_write(struct tls *t, const uint8_t *data, size_t len)
{
    for (size_t at = 0; at < len;) {
        int rc = mbedtls_ssl_write(&t->ssl, data + at, len - at);
        if (rc <= 0)
            return result_of(t, rc);
        at += (size_t)rc;
    }
    return TLS_OK;
}

bool tls_take_output(struct tls *t, const uint8_t **data, size_t *len)
{
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

const char *tls_error_text(const struct tls *t)
{
    return t->error;
}
