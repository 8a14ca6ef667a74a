#include "proto/identity/x509.h"

#include "common/mem.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <string.h>

/* Reading: from PEM to objects of OpenSSL. proto/identity/x509_issue.c makes them. */

/* What OpenSSL says of a failure. It queues an error at each level that gives up; the oldest is the cause. */
static const char *reason(void)
{
    const char *why = ERR_reason_error_string(ERR_peek_error());
    return why != NULL ? why : "no reason is known";
}

enum err x509_failed(enum err e, const char *what, struct err_detail *d)
{
    err_set(d, e, "%s: %s", what, reason());
    ERR_clear_error();
    return e;
}

char *x509_take_text(BIO *bio)
{
    char *text = NULL;
    long len = BIO_get_mem_data(bio, &text);
    char *copy = mem_strndup(text, (size_t)len);
    BIO_free(bio);
    return copy;
}

/* ---- PEM ----------------------------------------------------------------------------------------------- */

struct block {
    char *label;
    char *header; /* of one that is encrypted */
    unsigned char *der;
    long len;
};

static void block_fini(struct block *b)
{
    OPENSSL_free(b->label);
    OPENSSL_free(b->header);
    OPENSSL_clear_free(b->der, (size_t)b->len); /* it may be a key */
}

static bool only_blanks_left(BIO *bio)
{
    char c;
    while (BIO_read(bio, &c, 1) == 1)
        if (c != ' ' && c != '\t' && c != '\r' && c != '\n')
            return false;
    return true;
}

/* The one block of `pem`, called `label` or `other_label`. `what` it is, for a person. */
static enum err block_read(struct block *b, const char *pem, const char *label, const char *other_label,
                           const char *what, struct err_detail *d)
{
    *b = (struct block){0};
    ERR_clear_error(); /* what others left there; from here on an error in the queue is this block's */
    size_t len = strlen(pem);
    if (len > MSG_PEM_BYTES_MAX)
        return err_set(d, ERR_INVALID, "the %s has more than %u characters", what, MSG_PEM_BYTES_MAX);
    BIO *bio = BIO_new_mem_buf(pem, (int)len);
    must(bio != NULL);
    enum err e = ERR_OK;
    if (PEM_read_bio(bio, &b->label, &b->header, &b->der, &b->len) != 1)
        e = err_set(d, ERR_INVALID, "the %s does not parse: it is not in PEM form (%s)", what, reason());
    else if (strcmp(b->label, label) != 0 && strcmp(b->label, other_label) != 0)
        e = err_set(d, ERR_INVALID, "the %s does not parse: another kind of PEM block is there", what);
    else if (b->header[0] != '\0')
        e = err_set(d, ERR_INVALID, "the %s does not parse: it is encrypted", what);
    else if (!only_blanks_left(bio))
        e = err_set(d, ERR_INVALID, "more than one %s, or other text after it", what);
    BIO_free(bio);
    ERR_clear_error();
    return e;
}

/* Why DER did not become an object: OpenSSL's reason, or that the object ends before its bytes do. */
static enum err der_failed(const char *what, struct err_detail *d)
{
    return ERR_peek_error() != 0 ? x509_failed(ERR_INVALID, what, d)
                                 : err_set(d, ERR_INVALID, "%s: too many bytes", what);
}

/* ---- keys ---------------------------------------------------------------------------------------------- */

/* The curve by its name, the point in full and on it: the form that every TLS stack reads. */
static bool is_p256(const X509_PUBKEY *key)
{
    ASN1_OBJECT *type = NULL;
    X509_ALGOR *algorithm = NULL;
    const unsigned char *point = NULL;
    const void *curve = NULL;
    int len = 0, curve_kind = 0;
    if (X509_PUBKEY_get0_param(&type, &point, &len, &algorithm, key) != 1)
        return false;
    X509_ALGOR_get0(NULL, &curve_kind, &curve, algorithm);
    return OBJ_obj2nid(type) == NID_X9_62_id_ecPublicKey && curve_kind == V_ASN1_OBJECT &&
           OBJ_obj2nid(curve) == NID_X9_62_prime256v1 && len == 65 &&
           point[0] == POINT_CONVERSION_UNCOMPRESSED && X509_PUBKEY_get0(key) != NULL;
}

static bool is_private_p256(const EVP_PKEY *key)
{
    char group[32];
    return EVP_PKEY_is_a(key, "EC") == 1 && EVP_PKEY_get_group_name(key, group, sizeof group, NULL) == 1 &&
           strcmp(group, SN_X9_62_prime256v1) == 0;
}

enum err x509_parse_key(const char *pem, EVP_PKEY **out, struct err_detail *d)
{
    struct block b;
    EVP_PKEY *key = NULL;
    enum err e = block_read(&b, pem, PEM_STRING_PKCS8INF, PEM_STRING_ECPRIVATEKEY, "private key", d);
    if (e == ERR_OK) {
        const unsigned char *at = b.der;
        key = d2i_AutoPrivateKey(NULL, &at, b.len);
        if (key == NULL || at != b.der + b.len)
            e = der_failed("the private key does not parse", d);
        else if (!is_private_p256(key))
            e = err_set(d, ERR_INVALID, "the private key is not ECDSA P-256");
    }
    if (e == ERR_OK)
        *out = key;
    else
        EVP_PKEY_free(key);
    block_fini(&b);
    ERR_clear_error();
    return e;
}

enum err x509_make_key(char **key_pem, struct err_detail *d)
{
    BIO *bio = BIO_new(BIO_s_mem());
    EVP_PKEY *key = EVP_EC_gen(SN_X9_62_prime256v1);
    must(bio != NULL);
    bool good = key != NULL && PEM_write_bio_PrivateKey(bio, key, NULL, NULL, 0, NULL, NULL) == 1;
    EVP_PKEY_free(key);
    if (good)
        *key_pem = x509_take_text(bio);
    else
        BIO_free(bio);
    enum err e = good ? ERR_OK : x509_failed(ERR_FAILED, "cannot make a key", d);
    ERR_clear_error();
    return e;
}

/* ---- certificates -------------------------------------------------------------------------------------- */

enum err x509_parse(const char *pem, X509 **out, struct err_detail *d)
{
    struct block b;
    X509 *cert = NULL;
    enum err e = block_read(&b, pem, PEM_STRING_X509, "", "certificate", d);
    if (e == ERR_OK) {
        const unsigned char *at = b.der;
        cert = d2i_X509(NULL, &at, b.len);
        if (cert == NULL || at != b.der + b.len)
            e = der_failed("the certificate does not parse", d);
        else if (!is_p256(X509_get_X509_PUBKEY(cert)))
            e = err_set(d, ERR_INVALID, "the certificate's key is not ECDSA P-256");
        else if (X509_get_version(cert) != X509_VERSION_3 ||
                 (X509_get_extension_flags(cert) & EXFLAG_INVALID))
            e = err_set(d, ERR_INVALID, "the certificate's extensions are malformed");
    }
    if (e == ERR_OK)
        *out = cert;
    else
        X509_free(cert);
    block_fini(&b);
    ERR_clear_error();
    return e;
}

/* The key's value fits the certificate's, and its public half its private one. */
static bool is_pair(const X509 *cert, EVP_PKEY *key)
{
    EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new_from_pkey(NULL, key, NULL);
    must(ctx != NULL);
    bool good = EVP_PKEY_eq(X509_get0_pubkey(cert), key) == 1 && EVP_PKEY_check(ctx) == 1;
    EVP_PKEY_CTX_free(ctx);
    return good;
}

enum err x509_check_pair(const char *cert_pem, const char *key_pem, struct err_detail *d)
{
    X509 *cert = NULL;
    EVP_PKEY *key = NULL;
    enum err e = x509_parse(cert_pem, &cert, d);
    if (e == ERR_OK)
        e = x509_parse_key(key_pem, &key, d);
    if (e == ERR_OK && !is_pair(cert, key))
        e = err_set(d, ERR_INVALID, "the key is not the certificate's");
    X509_free(cert);
    EVP_PKEY_free(key);
    ERR_clear_error();
    return e;
}

/* ---- requests ------------------------------------------------------------------------------------------ */

static enum err check_csr(X509_REQ *csr, struct err_detail *d)
{
    if (X509_REQ_get_version(csr) != X509_REQ_VERSION_1)
        return err_set(d, ERR_INVALID, "the certificate request is of a version that nobody knows");
    if (!is_p256(X509_REQ_get_X509_PUBKEY(csr)) || X509_REQ_get_signature_nid(csr) != NID_ecdsa_with_SHA256)
        return err_set(d, ERR_INVALID, "the certificate request is not ECDSA P-256 with SHA-256");
    if (X509_REQ_verify(csr, X509_REQ_get0_pubkey(csr)) != 1)
        return err_set(d, ERR_INVALID, "the certificate request is not signed by its own key");
    return ERR_OK;
}

enum err x509_parse_csr(const char *pem, EVP_PKEY **out, struct err_detail *d)
{
    struct block b;
    X509_REQ *csr = NULL;
    enum err e = block_read(&b, pem, PEM_STRING_X509_REQ, PEM_STRING_X509_REQ_OLD, "certificate request", d);
    if (e == ERR_OK) {
        const unsigned char *at = b.der;
        csr = d2i_X509_REQ(NULL, &at, b.len);
        e = csr == NULL || at != b.der + b.len ? der_failed("the certificate request does not parse", d)
                                               : check_csr(csr, d);
    }
    if (e == ERR_OK)
        *out = X509_REQ_get_pubkey(csr);
    X509_REQ_free(csr);
    block_fini(&b);
    ERR_clear_error();
    return e;
}
