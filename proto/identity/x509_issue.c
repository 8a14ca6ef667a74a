#include "proto/identity/x509.h"

#include "common/clock.h"
#include "common/mem.h"
#include "common/path.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <string.h>
#include <time.h>

/* Making: certificate requests, and the certificates that a CA gives for them. */

#define SERIAL_BYTES 16u

struct extension {
    int nid;
    const char *value; /* in the words of openssl's x509v3_config(5) */
};

/* RFC 5280, 4.2.1. The CA signs for ends only, and an end has one purpose. Unused places are zero. */
static const struct extension extensions[][6] = {
    [X509_USE_CA] = {{NID_basic_constraints, "critical,CA:TRUE,pathlen:0"},
                     {NID_key_usage, "critical,keyCertSign,cRLSign"},
                     {NID_subject_key_identifier, "hash"}},
    [X509_USE_SERVER] = {{NID_basic_constraints, "CA:FALSE"},
                         {NID_key_usage, "critical,digitalSignature"},
                         {NID_subject_key_identifier, "hash"},
                         {NID_authority_key_identifier, "keyid"},
                         {NID_ext_key_usage, "critical,serverAuth"},
                         {NID_subject_alt_name, "DNS:" IDENTITY_CONTROLLER_NAME}},
    [X509_USE_CLIENT] = {{NID_basic_constraints, "CA:FALSE"},
                         {NID_key_usage, "critical,digitalSignature"},
                         {NID_subject_key_identifier, "hash"},
                         {NID_authority_key_identifier, "keyid"},
                         {NID_ext_key_usage, "critical,clientAuth"}},
};

/* V_ASN1_UTF8STRING is taken as it is. One of OpenSSL's MBSTRING types would go through its table of strings,
 * which allows a name 64 characters; ours have up to LIMIT_NAME_BYTES. */
static bool add_part(X509_NAME *subject, int nid, const char *text)
{
    return X509_NAME_add_entry_by_NID(subject, nid, V_ASN1_UTF8STRING, (const unsigned char *)text, -1, -1,
                                      0) == 1;
}

enum err x509_make_csr(const char *key_pem, const char *name, char **csr_pem, struct err_detail *d)
{
    EVP_PKEY *key = NULL;
    enum err e = path_check_name("name", name, d);
    if (e == ERR_OK)
        e = x509_parse_key(key_pem, &key, d);
    if (e != ERR_OK)
        return e;
    X509_REQ *csr = X509_REQ_new();
    X509_NAME *subject = X509_NAME_new();
    BIO *bio = BIO_new(BIO_s_mem());
    must(csr != NULL && subject != NULL && bio != NULL);
    bool good = add_part(subject, NID_commonName, name) &&
                X509_REQ_set_version(csr, X509_REQ_VERSION_1) == 1 &&
                X509_REQ_set_subject_name(csr, subject) == 1 && X509_REQ_set_pubkey(csr, key) == 1 &&
                X509_REQ_sign(csr, key, EVP_sha256()) > 0 && PEM_write_bio_X509_REQ(bio, csr) == 1;
    if (good)
        *csr_pem = x509_take_text(bio);
    else
        BIO_free(bio);
    X509_NAME_free(subject);
    X509_REQ_free(csr);
    EVP_PKEY_free(key);
    e = good ? ERR_OK : x509_failed(ERR_FAILED, "cannot make a certificate request", d);
    ERR_clear_error();
    return e;
}

/* ---- certificates -------------------------------------------------------------------------------------- */

static bool set_serial(X509 *cert)
{
    uint8_t bytes[SERIAL_BYTES];
    identity_random(bytes, sizeof bytes);
    bytes[0] = (uint8_t)((bytes[0] & 0x3f) | 0x40); /* a positive number of always the same length */
    return ASN1_STRING_set(X509_get_serialNumber(cert), bytes, sizeof bytes) == 1;
}

static bool set_validity(X509 *cert, uint64_t from_wall_ns, uint64_t until_wall_ns)
{
    return ASN1_TIME_set(X509_getm_notBefore(cert), (time_t)(from_wall_ns / NS_PER_S)) != NULL &&
           ASN1_TIME_set(X509_getm_notAfter(cert), (time_t)(until_wall_ns / NS_PER_S)) != NULL;
}

static bool set_names(X509 *cert, const X509 *issuer, const char *name, const char *unit)
{
    X509_NAME *subject = X509_NAME_new();
    must(subject != NULL);
    bool good = add_part(subject, NID_commonName, name) &&
                add_part(subject, NID_organizationalUnitName, unit) &&
                X509_set_subject_name(cert, subject) == 1 &&
                X509_set_issuer_name(cert, issuer != cert ? X509_get_subject_name(issuer) : subject) == 1;
    X509_NAME_free(subject);
    return good;
}

static bool add_extensions(X509 *cert, X509 *issuer, enum x509_use use)
{
    X509V3_CTX ctx;
    X509V3_set_ctx(&ctx, issuer, cert, NULL, NULL, 0);
    for (const struct extension *x = extensions[use]; x < extensions[use] + ARRAY_LEN(extensions[use]); x++) {
        if (x->value == NULL)
            break;
        X509_EXTENSION *made = X509V3_EXT_conf_nid(NULL, &ctx, x->nid, x->value);
        bool good = made != NULL && X509_add_ext(cert, made, -1) == 1;
        X509_EXTENSION_free(made);
        if (!good)
            return false;
    }
    return true;
}

/* `key` is the one that is certified. The extensions come last: they speak of it and of the issuer. */
static bool write_certificate(X509 *cert, const struct x509_issue *i, EVP_PKEY *key, X509 *issuer,
                              EVP_PKEY *issuer_key)
{
    return X509_set_version(cert, X509_VERSION_3) == 1 && set_serial(cert) &&
           set_validity(cert, i->from_wall_ns, i->until_wall_ns) &&
           set_names(cert, issuer, i->name, i->use == X509_USE_CA ? "ca" : msg_role_name(i->role)) &&
           X509_set_pubkey(cert, key) == 1 && add_extensions(cert, issuer, i->use) &&
           X509_sign(cert, issuer_key, EVP_sha256()) > 0;
}

static enum err make_certificate(const struct x509_issue *i, EVP_PKEY *key, X509 *ca, EVP_PKEY *ca_key,
                                 char **cert_pem, struct err_detail *d)
{
    X509 *cert = X509_new();
    BIO *bio = BIO_new(BIO_s_mem());
    must(cert != NULL && bio != NULL);
    bool good = write_certificate(cert, i, key, ca != NULL ? ca : cert, ca != NULL ? ca_key : key) &&
                PEM_write_bio_X509(bio, cert) == 1;
    if (good)
        *cert_pem = x509_take_text(bio);
    else
        BIO_free(bio);
    X509_free(cert);
    return good ? ERR_OK : x509_failed(ERR_FAILED, "cannot make a certificate", d);
}

enum err x509_issue(const struct x509_issue *i, char **cert_pem, struct err_detail *d)
{
    X509 *ca = NULL;
    EVP_PKEY *key = NULL, *ca_key = NULL;
    enum err e = path_check_name("name", i->name, d);
    if (e == ERR_OK)
        e = i->csr_pem != NULL ? x509_parse_csr(i->csr_pem, &key, d) : x509_parse_key(i->key_pem, &key, d);
    if (e == ERR_OK && i->ca_pem != NULL)
        e = x509_parse(i->ca_pem, &ca, d);
    if (e == ERR_OK && i->ca_pem != NULL)
        e = x509_parse_key(i->ca_key_pem, &ca_key, d);
    if (e == ERR_OK && ca != NULL && X509_check_private_key(ca, ca_key) != 1)
        e = err_set(d, ERR_INVALID, "the CA's key is not its certificate's");
    if (e == ERR_OK)
        e = make_certificate(i, key, ca, ca_key, cert_pem, d);
    EVP_PKEY_free(ca_key);
    EVP_PKEY_free(key);
    X509_free(ca);
    ERR_clear_error();
    return e;
}
