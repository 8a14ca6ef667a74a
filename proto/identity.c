#include "proto/identity.h"

#include "common/clock.h"
#include "common/mem.h"
#include "common/sha256.h"
#include "proto/x509.h"

#include <mbedtls/oid.h>
#include <mbedtls/pk.h>
#include <mbedtls/platform_util.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#define SESSION_CONTEXT "splitbench-session-1"

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

void identity_fini(struct identity *id)
{
    if (id->key_pem != NULL)
        mbedtls_platform_zeroize(id->key_pem, strlen(id->key_pem));
    free(id->ca_pem);
    free(id->cert_pem);
    free(id->key_pem);
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
        free(key);
    return e;
}

enum err identity_fingerprint(const char *ca_pem, uint8_t out[MSG_HASH_BYTES], struct err_detail *d)
{
    mbedtls_x509_crt ca;
    mbedtls_x509_crt_init(&ca);
    enum err e = x509_parse(ca_pem, &ca, d);
    if (e == ERR_OK)
        sha256_of(ca.raw.p, ca.raw.len, out);
    mbedtls_x509_crt_free(&ca);
    return e;
}

/* ---- checking a certificate ---------------------------------------------------------------------------- */

/* One attribute of the subject; twice the same, or too long, is refused. */
static enum err subject_part(const mbedtls_x509_crt *cert, const char *oid, size_t oid_len, char *out,
                             size_t size, struct err_detail *d)
{
    bool found = false;
    for (const mbedtls_x509_name *n = &cert->subject; n != NULL; n = n->next) {
        if (n->oid.len != oid_len || memcmp(n->oid.p, oid, oid_len) != 0)
            continue;
        if (found || n->val.len >= size || memchr(n->val.p, '\0', n->val.len) != NULL)
            return err_set(d, ERR_DENIED, "the certificate's subject is malformed");
        memcpy(out, n->val.p, n->val.len);
        out[n->val.len] = '\0';
        found = true;
    }
    return found ? ERR_OK : err_set(d, ERR_DENIED, "the certificate's subject is incomplete");
}

static enum err read_facts(const mbedtls_x509_crt *cert, struct identity_facts *out, struct err_detail *d)
{
    char role[32];
    enum err e = subject_part(cert, MBEDTLS_OID_AT_CN, MBEDTLS_OID_SIZE(MBEDTLS_OID_AT_CN), out->name,
                              sizeof out->name, d);
    if (e == ERR_OK)
        e = subject_part(cert, MBEDTLS_OID_AT_ORG_UNIT, MBEDTLS_OID_SIZE(MBEDTLS_OID_AT_ORG_UNIT), role,
                         sizeof role, d);
    if (e != ERR_OK)
        return e;
    out->role = MSG_ROLE_NONE;
    if (strcmp(role, msg_role_name(MSG_ROLE_AGENT)) == 0)
        out->role = MSG_ROLE_AGENT;
    else if (strcmp(role, msg_role_name(MSG_ROLE_OPERATOR)) == 0)
        out->role = MSG_ROLE_OPERATOR;
    else
        return err_set(d, ERR_DENIED, "the certificate is for '%s', not for an agent or operator", role);
    if (cert->serial.len * 2 >= sizeof out->serial)
        return err_set(d, ERR_DENIED, "the certificate's serial is too long");
    for (size_t i = 0; i < cert->serial.len; i++)
        snprintf(out->serial + 2 * i, 3, "%02x", cert->serial.p[i]);
    const mbedtls_x509_time *t = &cert->valid_to;
    struct tm tm = {.tm_year = t->year - 1900,
                    .tm_mon = t->mon - 1,
                    .tm_mday = t->day,
                    .tm_hour = t->hour,
                    .tm_min = t->min,
                    .tm_sec = t->sec};
    out->not_after_wall_ns = (uint64_t)timegm(&tm) * NS_PER_S;
    return ERR_OK;
}

static enum err check_chain(mbedtls_x509_crt *cert, mbedtls_x509_crt *ca, struct err_detail *d)
{
    uint32_t flags = 0;
    int rv = mbedtls_x509_crt_verify(cert, ca, NULL, NULL, &flags, NULL, NULL);
    if (flags & MBEDTLS_X509_BADCERT_EXPIRED)
        return err_set(d, ERR_DENIED, "the certificate has expired: enrol again");
    if (flags & MBEDTLS_X509_BADCERT_FUTURE)
        return err_set(d, ERR_DENIED, "the certificate is not valid yet: check the clocks");
    if (flags & MBEDTLS_X509_BADCERT_NOT_TRUSTED)
        return err_set(d, ERR_DENIED, "the certificate is not of this lab");
    if (rv != 0)
        return err_set(d, ERR_DENIED, "the certificate does not verify (flags 0x%x)", (unsigned)flags);
    /* A certificate without the extension would pass mbedTLS's check. */
    if ((cert->ext_types & MBEDTLS_X509_EXT_EXTENDED_KEY_USAGE) == 0 ||
        mbedtls_x509_crt_check_extended_key_usage(cert, MBEDTLS_OID_CLIENT_AUTH,
                                                  MBEDTLS_OID_SIZE(MBEDTLS_OID_CLIENT_AUTH)) != 0)
        return err_set(d, ERR_DENIED, "the certificate is not for clients");
    if (mbedtls_x509_crt_check_key_usage(cert, MBEDTLS_X509_KU_DIGITAL_SIGNATURE) != 0 || cert->ca_istrue)
        return err_set(d, ERR_DENIED, "the certificate is not for signing");
    return ERR_OK;
}

enum err identity_check_certificate(const char *ca_pem, const char *cert_pem, struct identity_facts *out,
                                    struct err_detail *d)
{
    mbedtls_x509_crt ca, cert;
    struct identity_facts facts = {.name = ""};
    mbedtls_x509_crt_init(&ca);
    mbedtls_x509_crt_init(&cert);
    enum err e = x509_parse(ca_pem, &ca, d);
    if (e == ERR_OK && x509_parse(cert_pem, &cert, d) != ERR_OK)
        e = ERR_DENIED;
    if (e == ERR_OK)
        e = check_chain(&cert, &ca, d);
    if (e == ERR_OK)
        e = read_facts(&cert, &facts, d);
    if (e == ERR_OK)
        *out = facts;
    mbedtls_x509_crt_free(&cert);
    mbedtls_x509_crt_free(&ca);
    return e;
}

/* ---- proof of a key ------------------------------------------------------------------------------------ */

static void hash_challenge(enum msg_role role, const uint8_t nonce[MSG_NONCE_BYTES],
                           uint8_t out[MSG_HASH_BYTES])
{
    uint8_t text[sizeof SESSION_CONTEXT + MSG_NONCE_BYTES];
    memcpy(text, SESSION_CONTEXT, sizeof SESSION_CONTEXT - 1);
    text[sizeof SESSION_CONTEXT - 1] = (uint8_t)role;
    memcpy(text + sizeof SESSION_CONTEXT, nonce, MSG_NONCE_BYTES);
    sha256_of(text, sizeof text, out);
}

static int random_bytes(void *unused, unsigned char *out, size_t len)
{
    (void)unused;
    identity_random(out, len);
    return 0;
}

enum err identity_sign(const char *key_pem, enum msg_role role, const uint8_t nonce[MSG_NONCE_BYTES],
                       struct msg_bytes *out, struct err_detail *d)
{
    mbedtls_pk_context key;
    uint8_t hash[MSG_HASH_BYTES];
    uint8_t signature[MBEDTLS_PK_SIGNATURE_MAX_SIZE];
    size_t len = 0;
    mbedtls_pk_init(&key);
    hash_challenge(role, nonce, hash);
    int rv = mbedtls_pk_parse_key(&key, (const unsigned char *)key_pem, strlen(key_pem) + 1, NULL, 0);
    if (rv == 0)
        rv = mbedtls_pk_sign(&key, MBEDTLS_MD_SHA256, hash, sizeof hash, signature, &len, random_bytes, NULL);
    mbedtls_pk_free(&key);
    if (rv != 0)
        return err_set(d, ERR_INVALID, "the private key cannot sign (mbedTLS -0x%04x)", (unsigned)-rv);
    out->data = mem_dup(signature, len);
    out->len = len;
    return ERR_OK;
}

enum err identity_verify(const char *cert_pem, enum msg_role role, const uint8_t nonce[MSG_NONCE_BYTES],
                         const struct msg_bytes *signature, struct err_detail *d)
{
    mbedtls_x509_crt cert;
    uint8_t hash[MSG_HASH_BYTES];
    mbedtls_x509_crt_init(&cert);
    hash_challenge(role, nonce, hash);
    enum err e = x509_parse(cert_pem, &cert, d);
    if (e == ERR_OK && mbedtls_pk_verify(&cert.pk, MBEDTLS_MD_SHA256, hash, sizeof hash, signature->data,
                                         signature->len) != 0)
        e = err_set(d, ERR_DENIED, "the signature is not by the certificate's key");
    mbedtls_x509_crt_free(&cert);
    return e;
}
