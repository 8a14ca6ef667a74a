#include "proto/identity/identity.h"

#include "common/mem.h"
#include "common/sha256.h"
#include "proto/identity/x509.h"

#include <openssl/err.h>
#include <openssl/x509v3.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define SESSION_CONTEXT "splitbench-session-1"
/* In the levels of SSL_CTX_set_security_level(3): what takes at least 2^112 tries to break. Our keys take
 * 2^128. */
#define SECURITY_LEVEL 2

void identity_random(void *out, size_t len)
{
    for (size_t got = 0; got < len;) {
        ssize_t n = getrandom((char *)out + got, len - got, 0);
        if (n > 0)
            got += (size_t)n;
        else
            must(n < 0 && errno == EINTR);
    }
}

static void free_secret(char *text)
{
    if (text != NULL)
        OPENSSL_cleanse(text, strlen(text));
    free(text);
}

void identity_fini(struct identity *id)
{
    free(id->ca_pem);
    free(id->cert_pem);
    free_secret(id->key_pem);
    *id = (struct identity){0};
}

enum err identity_make_request(const char *name, char **key_pem, char **csr_pem, struct err_detail *d)
{
    char *key = NULL;
    enum err e = x509_make_key(&key, d);
    if (e == ERR_OK)
        e = x509_make_csr(key, name, csr_pem, d);
    if (e == ERR_OK)
        *key_pem = key;
    else
        free_secret(key);
    return e;
}

enum err identity_fingerprint(const char *ca_pem, uint8_t out[MSG_HASH_BYTES], struct err_detail *d)
{
    X509 *ca = NULL;
    enum err e = x509_parse(ca_pem, &ca, d);
    if (e != ERR_OK)
        return e;
    unsigned char *der = NULL;
    int len = i2d_X509(ca, &der);
    must(len > 0);
    sha256_of(der, (size_t)len, out);
    OPENSSL_free(der);
    X509_free(ca);
    return ERR_OK;
}

/* ---- checking a certificate ---------------------------------------------------------------------------- */

/* One attribute of the subject. Refused: one that stands there twice, is neither UTF-8 nor plain text, is
 * empty, or does not fit `size`. */
static enum err subject_part(const X509 *cert, int nid, char *out, size_t size, struct err_detail *d)
{
    const X509_NAME *subject = X509_get_subject_name(cert);
    int at = X509_NAME_get_index_by_NID(subject, nid, -1);
    if (at < 0)
        return err_set(d, ERR_DENIED, "the certificate's subject is incomplete");
    const ASN1_STRING *text = X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at));
    const unsigned char *bytes = ASN1_STRING_get0_data(text);
    size_t len = (size_t)ASN1_STRING_length(text);
    bool plain =
        ASN1_STRING_type(text) == V_ASN1_UTF8STRING || ASN1_STRING_type(text) == V_ASN1_PRINTABLESTRING;
    if (!plain || len == 0 || len >= size || memchr(bytes, '\0', len) != NULL ||
        X509_NAME_get_index_by_NID(subject, nid, at) >= 0)
        return err_set(d, ERR_DENIED, "the certificate's subject is malformed");
    memcpy(out, bytes, len);
    out[len] = '\0';
    return ERR_OK;
}

/* The serial in hexadecimal, byte for byte as in the certificate, with a zero byte in front where DER has
 * one: so it is written in the store's list of revoked certificates. */
static enum err read_serial(const X509 *cert, char *out, size_t size, struct err_detail *d)
{
    unsigned char *der = NULL;
    int len = i2d_ASN1_INTEGER(X509_get0_serialNumber(cert), &der);
    bool good = len > 2 && (size_t)(len - 2) * 2 < size && der[1] == len - 2;
    for (int i = 2; good && i < len; i++)
        snprintf(out + 2 * (i - 2), 3, "%02x", der[i]);
    OPENSSL_free(der);
    return good ? ERR_OK : err_set(d, ERR_DENIED, "the certificate's serial is too long");
}

static enum err read_facts(const X509 *cert, struct identity_facts *out, struct err_detail *d)
{
    char role[32];
    enum err e = subject_part(cert, NID_commonName, out->name, sizeof out->name, d);
    if (e == ERR_OK)
        e = subject_part(cert, NID_organizationalUnitName, role, sizeof role, d);
    if (e != ERR_OK)
        return e;
    if (strcmp(role, msg_role_name(MSG_ROLE_AGENT)) == 0)
        out->role = MSG_ROLE_AGENT;
    else if (strcmp(role, msg_role_name(MSG_ROLE_OPERATOR)) == 0)
        out->role = MSG_ROLE_OPERATOR;
    else
        return err_set(d, ERR_DENIED, "the certificate is for '%s', not for an agent or operator", role);
    return read_serial(cert, out->serial, sizeof out->serial, d);
}

static enum err say_fault(int fault, struct err_detail *d)
{
    switch (fault) {
    case X509_V_ERR_CERT_HAS_EXPIRED:
        return err_set(d, ERR_DENIED, "the certificate has expired: enroll again");
    case X509_V_ERR_CERT_NOT_YET_VALID:
        return err_set(d, ERR_DENIED, "the certificate is not valid yet: check the clocks");
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY: /* another name or key of the CA */
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_CERT_SIGNATURE_FAILURE: /* its name, and no key identifiers */
        return err_set(d, ERR_DENIED, "the certificate is not of this lab");
    default:
        return err_set(d, ERR_DENIED, "the certificate does not verify: %s",
                       X509_verify_cert_error_string(fault));
    }
}

/* Signed by the CA, within its dates, nothing critical in it that OpenSSL does not know. */
static enum err check_chain(X509 *cert, X509 *ca, struct err_detail *d)
{
    X509_STORE *store = X509_STORE_new(); /* with no other CA than this one */
    X509_STORE_CTX *ctx = X509_STORE_CTX_new();
    must(store != NULL && ctx != NULL);
    bool begun = X509_STORE_add_cert(store, ca) == 1 && X509_STORE_CTX_init(ctx, store, cert, NULL) == 1;
    must(begun);
    X509_VERIFY_PARAM_set_auth_level(X509_STORE_CTX_get0_param(ctx), SECURITY_LEVEL);
    bool good = X509_verify_cert(ctx) == 1;
    int fault = X509_STORE_CTX_get_error(ctx);
    X509_STORE_CTX_free(ctx);
    X509_STORE_free(store);
    return good ? ERR_OK : say_fault(fault, d);
}

/* Each extension must be there: to OpenSSL one that is missing allows everything. */
static enum err check_use(X509 *cert, struct err_detail *d)
{
    uint32_t flags = X509_get_extension_flags(cert);
    if ((flags & EXFLAG_XKUSAGE) == 0 || (X509_get_extended_key_usage(cert) & XKU_SSL_CLIENT) == 0)
        return err_set(d, ERR_DENIED, "the certificate is not for clients");
    if ((flags & EXFLAG_KUSAGE) == 0 || (X509_get_key_usage(cert) & KU_DIGITAL_SIGNATURE) == 0 ||
        (flags & EXFLAG_CA) != 0)
        return err_set(d, ERR_DENIED, "the certificate is not for signing");
    return ERR_OK;
}

enum err identity_check_certificate(const char *ca_pem, const char *cert_pem, struct identity_facts *out,
                                    struct err_detail *d)
{
    X509 *ca = NULL, *cert = NULL;
    struct identity_facts facts = {.name = ""};
    enum err e = x509_parse(ca_pem, &ca, d);
    if (e == ERR_OK && x509_parse(cert_pem, &cert, d) != ERR_OK)
        e = ERR_DENIED;
    if (e == ERR_OK)
        e = check_chain(cert, ca, d);
    if (e == ERR_OK)
        e = check_use(cert, d);
    if (e == ERR_OK)
        e = read_facts(cert, &facts, d);
    if (e == ERR_OK)
        *out = facts;
    X509_free(cert);
    X509_free(ca);
    ERR_clear_error();
    return e;
}

/* ---- proof of a key ------------------------------------------------------------------------------------ */

struct challenge {
    uint8_t bytes[sizeof SESSION_CONTEXT + MSG_NONCE_BYTES];
};

static struct challenge make_challenge(enum msg_role role, const uint8_t nonce[MSG_NONCE_BYTES])
{
    struct challenge c;
    memcpy(c.bytes, SESSION_CONTEXT, sizeof SESSION_CONTEXT - 1);
    c.bytes[sizeof SESSION_CONTEXT - 1] = (uint8_t)role;
    memcpy(c.bytes + sizeof SESSION_CONTEXT, nonce, MSG_NONCE_BYTES);
    return c;
}

enum err identity_sign(const char *key_pem, enum msg_role role, const uint8_t nonce[MSG_NONCE_BYTES],
                       struct msg_bytes *out, struct err_detail *d)
{
    const struct challenge c = make_challenge(role, nonce);
    uint8_t signature[128]; /* two numbers of 32 bytes in DER */
    size_t len = sizeof signature;
    EVP_PKEY *key = NULL;
    enum err e = x509_parse_key(key_pem, &key, d);
    if (e != ERR_OK)
        return e;
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    must(ctx != NULL);
    if (EVP_DigestSignInit_ex(ctx, NULL, "SHA256", NULL, NULL, key, NULL) != 1 ||
        EVP_DigestSign(ctx, signature, &len, c.bytes, sizeof c.bytes) != 1)
        e = x509_failed(ERR_INVALID, "the private key cannot sign", d);
    else
        *out = (struct msg_bytes){.data = mem_dup(signature, len), .len = len};
    EVP_MD_CTX_free(ctx);
    EVP_PKEY_free(key);
    ERR_clear_error();
    return e;
}

enum err identity_verify(const char *cert_pem, enum msg_role role, const uint8_t nonce[MSG_NONCE_BYTES],
                         const struct msg_bytes *signature, struct err_detail *d)
{
    const struct challenge c = make_challenge(role, nonce);
    X509 *cert = NULL;
    enum err e = x509_parse(cert_pem, &cert, d);
    if (e != ERR_OK)
        return e;
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    must(ctx != NULL);
    if (EVP_DigestVerifyInit_ex(ctx, NULL, "SHA256", NULL, NULL, X509_get0_pubkey(cert), NULL) != 1 ||
        EVP_DigestVerify(ctx, signature->data, signature->len, c.bytes, sizeof c.bytes) != 1)
        e = err_set(d, ERR_DENIED, "the signature is not by the certificate's key");
    EVP_MD_CTX_free(ctx);
    X509_free(cert);
    ERR_clear_error();
    return e;
}
