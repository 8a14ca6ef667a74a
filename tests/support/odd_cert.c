#include "tests/support/odd_cert.h"

#include "common/mem.h"
#include "proto/identity/x509.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
// clang-format on

#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <openssl/x509v3.h>

#include <stdlib.h>
#include <string.h>

static char *take(BIO *bio)
{
    char *text = x509_take_text(bio);
    ERR_clear_error();
    return text;
}

/* ---- keys ---------------------------------------------------------------------------------------------- */

EVP_PKEY *odd_key_new(enum odd_key kind)
{
    static const char *const groups[] = {
        [ODD_KEY_P256] = "P-256",          [ODD_KEY_P256_COMPRESSED] = "P-256",
        [ODD_KEY_P256_EXPLICIT] = "P-256", [ODD_KEY_P256_OFF_CURVE] = "P-256",
        [ODD_KEY_K256] = "secp256k1",      [ODD_KEY_P384] = "P-384"};
    EVP_PKEY *key = kind == ODD_KEY_RSA ? EVP_RSA_gen(2048) : EVP_EC_gen(groups[kind]);
    assert_non_null(key);
    if (kind == ODD_KEY_P256_COMPRESSED)
        assert_int_equal(EVP_PKEY_set_utf8_string_param(key, OSSL_PKEY_PARAM_EC_POINT_CONVERSION_FORMAT,
                                                        OSSL_PKEY_EC_POINT_CONVERSION_FORMAT_COMPRESSED),
                         1);
    if (kind == ODD_KEY_P256_EXPLICIT)
        assert_int_equal(
            EVP_PKEY_set_utf8_string_param(key, OSSL_PKEY_PARAM_EC_ENCODING, OSSL_PKEY_EC_ENCODING_EXPLICIT),
            1);
    return key;
}

char *odd_key_pem(EVP_PKEY *key)
{
    BIO *bio = BIO_new(BIO_s_mem());
    assert_int_equal(PEM_write_bio_PrivateKey(bio, key, NULL, NULL, 0, NULL, NULL), 1);
    return take(bio);
}

static EVP_PKEY *read_key(const char *pem)
{
    EVP_PKEY *key = NULL;
    struct err_detail d;
    assert_int_equal(x509_parse_key(pem, &key, &d), ERR_OK);
    return key;
}

static void leave_curve(X509_PUBKEY *key)
{
    unsigned char *point = OPENSSL_zalloc(65);
    point[0] = POINT_CONVERSION_UNCOMPRESSED;
    point[64] = 5;
    assert_int_equal(X509_PUBKEY_set0_param(key, OBJ_nid2obj(NID_X9_62_id_ecPublicKey), V_ASN1_OBJECT,
                                            OBJ_nid2obj(NID_X9_62_prime256v1), point, 65),
                     1);
}

/* ---- certificates -------------------------------------------------------------------------------------- */

static void set_subject(X509 *cert, const struct odd_part *part, size_t count)
{
    static const struct odd_part usual[] = {{.attribute = "CN", .value = "a1"},
                                            {.attribute = "OU", .value = "agent"}};
    if (part[0].attribute == NULL) {
        part = usual;
        count = ARRAY_LEN(usual);
    }
    X509_NAME *name = X509_NAME_new();
    for (const struct odd_part *p = part; p < part + count && p->attribute != NULL; p++)
        assert_int_equal(
            X509_NAME_add_entry_by_txt(name, p->attribute, p->kind != 0 ? p->kind : V_ASN1_UTF8STRING,
                                       (const unsigned char *)p->value, p->len != 0 ? p->len : -1, -1, 0),
            1);
    assert_int_equal(X509_set_subject_name(cert, name), 1);
    X509_NAME_free(name);
}

static void add_extensions(X509 *cert, X509 *ca, const struct odd_extension *extension, size_t count)
{
    static const struct odd_extension usual[] = {{"keyUsage", "critical,digitalSignature"},
                                                 {"extendedKeyUsage", "clientAuth"}};
    if (extension[0].name == NULL) {
        extension = usual;
        count = ARRAY_LEN(usual);
    }
    X509V3_CTX ctx;
    X509V3_set_ctx(&ctx, ca, cert, NULL, NULL, 0);
    for (const struct odd_extension *x = extension; x < extension + count && x->name != NULL; x++) {
        X509_EXTENSION *made = X509V3_EXT_conf(NULL, &ctx, x->name, x->value);
        assert_non_null(made);
        assert_int_equal(X509_add_ext(cert, made, -1), 1);
        X509_EXTENSION_free(made);
    }
}

char *odd_cert_make(const struct odd_cert *c)
{
    struct err_detail d;
    X509 *cert = X509_new(), *ca = NULL;
    EVP_PKEY *key = odd_key_new(c->key), *ca_key = read_key(c->ca_key_pem);
    assert_int_equal(x509_parse(c->ca_pem, &ca, &d), ERR_OK);
    assert_int_equal(X509_set_version(cert, c->version_1 ? X509_VERSION_1 : X509_VERSION_3), 1);
    assert_int_equal(ASN1_INTEGER_set_int64(X509_get_serialNumber(cert), c->has_negative_serial ? -200 : 200),
                     1);
    assert_non_null(X509_gmtime_adj(X509_getm_notBefore(cert), -3600));
    assert_non_null(X509_gmtime_adj(X509_getm_notAfter(cert), 3600));
    set_subject(cert, c->subject, ARRAY_LEN(c->subject));
    assert_int_equal(X509_set_issuer_name(cert, X509_get_subject_name(ca)), 1);
    assert_int_equal(X509_set_pubkey(cert, key), 1);
    if (c->key == ODD_KEY_P256_OFF_CURVE)
        leave_curve(X509_get_X509_PUBKEY(cert));
    if (!c->version_1)
        add_extensions(cert, ca, c->extensions, ARRAY_LEN(c->extensions));
    assert_true(X509_sign(cert, ca_key, EVP_get_digestbyname(c->digest != NULL ? c->digest : "SHA256")) > 0);
    BIO *bio = BIO_new(BIO_s_mem());
    assert_int_equal(PEM_write_bio_X509(bio, cert), 1);
    if (c->key_pem != NULL)
        *c->key_pem = odd_key_pem(key);
    EVP_PKEY_free(key);
    EVP_PKEY_free(ca_key);
    X509_free(ca);
    X509_free(cert);
    return take(bio);
}

/* ---- requests ------------------------------------------------------------------------------------------ */

/* In DER: the X509_REQ_set_version of Debian 13's OpenSSL refuses every version but the one there is. */
static X509_REQ *with_version(X509_REQ *csr, uint8_t version)
{
    unsigned char *der = NULL;
    int len = i2d_X509_REQ(csr, &der);
    assert_true(len > 0);
    unsigned char *number = memmem(der, (size_t)len, "\x02\x01\x00", 3);
    assert_non_null(number);
    number[2] = version;
    const unsigned char *at = der;
    X509_REQ_free(csr);
    csr = d2i_X509_REQ(NULL, &at, len);
    assert_non_null(csr);
    OPENSSL_free(der);
    return csr;
}

char *odd_csr_make(EVP_PKEY *key, EVP_PKEY *signer, const char *digest, uint8_t version)
{
    X509_REQ *csr = X509_REQ_new();
    const EVP_MD *md = EVP_get_digestbyname(digest);
    assert_int_equal(X509_REQ_set_pubkey(csr, key), 1);
    assert_true(X509_REQ_sign(csr, signer, md) > 0);
    csr = with_version(csr, version);
    assert_true(X509_REQ_sign(csr, signer, md) > 0);
    BIO *bio = BIO_new(BIO_s_mem());
    assert_int_equal(PEM_write_bio_X509_REQ(bio, csr), 1);
    X509_REQ_free(csr);
    return take(bio);
}

char *odd_pem_with_tail(const char *pem, const char *label, size_t len)
{
    char *name = NULL, *header = NULL;
    unsigned char *der = NULL;
    long der_len = 0;
    BIO *bio = BIO_new_mem_buf(pem, -1);
    assert_int_equal(PEM_read_bio(bio, &name, &header, &der, &der_len), 1);
    BIO_free(bio);
    unsigned char *longer = mem_zalloc((size_t)der_len + len, 1);
    memcpy(longer, der, (size_t)der_len);
    bio = BIO_new(BIO_s_mem());
    assert_true(PEM_write_bio(bio, label, "", longer, der_len + (long)len) > 0);
    free(longer);
    OPENSSL_free(name);
    OPENSSL_free(header);
    OPENSSL_free(der);
    return take(bio);
}
