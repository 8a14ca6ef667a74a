#include "proto/x509.h"

#include "common/clock.h"
#include "common/mem.h"
#include "proto/text.h"

#include <mbedtls/error.h>
#include <mbedtls/oid.h>
#include <mbedtls/pk.h>
#include <mbedtls/platform_util.h>
#include <mbedtls/x509_csr.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SERIAL_BYTES 16u

static int random_bytes(void *unused, unsigned char *out, size_t len)
{
    (void)unused;
    identity_random(out, len);
    return 0;
}

static enum err failed(struct err_detail *d, enum err e, const char *what, int code)
{
    char text[128];
    mbedtls_strerror(code, text, sizeof text);
    return err_set(d, e, "%s: %s", what, text);
}

static enum err parse_key(const char *pem, mbedtls_pk_context *out, struct err_detail *d)
{
    int rv = mbedtls_pk_parse_key(out, (const unsigned char *)pem, strlen(pem) + 1, NULL, 0);
    return rv != 0 ? failed(d, ERR_INVALID, "the private key does not parse", rv) : ERR_OK;
}

enum err x509_parse(const char *pem, mbedtls_x509_crt *out, struct err_detail *d)
{
    int rv = mbedtls_x509_crt_parse(out, (const unsigned char *)pem, strlen(pem) + 1);
    if (rv != 0)
        return rv > 0 ? err_set(d, ERR_INVALID, "a certificate does not parse")
                      : failed(d, ERR_INVALID, "the certificate does not parse", rv);
    if (out->next != NULL)
        return err_set(d, ERR_INVALID, "more than one certificate");
    return ERR_OK;
}

enum err x509_make_key(char **key_pem, struct err_detail *d)
{
    mbedtls_pk_context key;
    unsigned char pem[2048];
    mbedtls_pk_init(&key);
    int rv = mbedtls_pk_setup(&key, mbedtls_pk_info_from_type(MBEDTLS_PK_ECKEY));
    if (rv == 0)
        rv = mbedtls_ecp_gen_key(MBEDTLS_ECP_DP_SECP256R1, mbedtls_pk_ec(key), random_bytes, NULL);
    if (rv == 0)
        rv = mbedtls_pk_write_key_pem(&key, pem, sizeof pem);
    if (rv == 0)
        *key_pem = mem_strdup((const char *)pem);
    mbedtls_platform_zeroize(pem, sizeof pem);
    mbedtls_pk_free(&key);
    return rv != 0 ? failed(d, ERR_FAILED, "cannot make a key", rv) : ERR_OK;
}

enum err x509_make_csr(const char *key_pem, const char *name, char **csr_pem, struct err_detail *d)
{
    mbedtls_pk_context key;
    mbedtls_x509write_csr csr;
    unsigned char pem[4096];
    char subject[LIMIT_NAME_BYTES + 8];
    mbedtls_pk_init(&key);
    mbedtls_x509write_csr_init(&csr);
    const char *fault = text_fault(RULE_NAME, name, strlen(name));
    enum err e = fault != NULL || strlen(name) > LIMIT_NAME_BYTES
                     ? err_set(d, ERR_INVALID, "name '%s' %s", name, fault != NULL ? fault : "is too long")
                     : parse_key(key_pem, &key, d);
    if (e == ERR_OK) {
        snprintf(subject, sizeof subject, "CN=%s", name);
        mbedtls_x509write_csr_set_key(&csr, &key);
        mbedtls_x509write_csr_set_md_alg(&csr, MBEDTLS_MD_SHA256);
        int rv = mbedtls_x509write_csr_set_subject_name(&csr, subject);
        if (rv == 0)
            rv = mbedtls_x509write_csr_pem(&csr, pem, sizeof pem, random_bytes, NULL);
        if (rv != 0)
            e = failed(d, ERR_FAILED, "cannot make a certificate request", rv);
        else
            *csr_pem = mem_strdup((const char *)pem);
    }
    mbedtls_x509write_csr_free(&csr);
    mbedtls_pk_free(&key);
    return e;
}

enum err x509_check_pair(const char *cert_pem, const char *key_pem, struct err_detail *d)
{
    mbedtls_pk_context key;
    mbedtls_x509_crt cert;
    mbedtls_pk_init(&key);
    mbedtls_x509_crt_init(&cert);
    enum err e = x509_parse(cert_pem, &cert, d);
    if (e == ERR_OK)
        e = parse_key(key_pem, &key, d);
    if (e == ERR_OK && mbedtls_pk_check_pair(&cert.pk, &key) != 0)
        e = err_set(d, ERR_INVALID, "the key is not the certificate's");
    mbedtls_x509_crt_free(&cert);
    mbedtls_pk_free(&key);
    return e;
}

/* The request's key, once it has shown that its sender holds the private half (PKCS #10: the request is
 * signed by itself). */
static enum err parse_csr(const char *pem, mbedtls_x509_csr *csr, struct err_detail *d)
{
    int rv = mbedtls_x509_csr_parse(csr, (const unsigned char *)pem, strlen(pem) + 1);
    if (rv != 0)
        return failed(d, ERR_INVALID, "the certificate request does not parse", rv);
    if (!mbedtls_pk_can_do(&csr->pk, MBEDTLS_PK_ECDSA) ||
        mbedtls_pk_ec(csr->pk)->grp.id != MBEDTLS_ECP_DP_SECP256R1 || csr->sig_md != MBEDTLS_MD_SHA256)
        return err_set(d, ERR_INVALID, "the certificate request is not ECDSA P-256 with SHA-256");
    unsigned char hash[MBEDTLS_MD_MAX_SIZE];
    const mbedtls_md_info_t *md = mbedtls_md_info_from_type(csr->sig_md);
    rv = mbedtls_md(md, csr->cri.p, csr->cri.len, hash);
    if (rv == 0)
        rv =
            mbedtls_pk_verify(&csr->pk, csr->sig_md, hash, mbedtls_md_get_size(md), csr->sig.p, csr->sig.len);
    return rv != 0 ? failed(d, ERR_INVALID, "the certificate request is not signed by its own key", rv)
                   : ERR_OK;
}

static const char *x509_time(uint64_t wall_ns, char out[16])
{
    time_t t = (time_t)(wall_ns / NS_PER_S);
    struct tm tm;
    gmtime_r(&t, &tm);
    strftime(out, 16, "%Y%m%d%H%M%S", &tm);
    return out;
}

/* RFC 5280 4.2.1.12: ExtKeyUsageSyntax of one purpose; 4.2.1.6: one dNSName. */
static int set_purpose(mbedtls_x509write_cert *w, enum x509_use use)
{
    const unsigned char eku[] = {0x30, 0x0a, 0x06, 0x08, 0x2b, 0x06,
                                 0x01, 0x05, 0x05, 0x07, 0x03, use == X509_USE_SERVER ? 1 : 2};
    int rv = mbedtls_x509write_crt_set_extension(w, MBEDTLS_OID_EXTENDED_KEY_USAGE,
                                                 MBEDTLS_OID_SIZE(MBEDTLS_OID_EXTENDED_KEY_USAGE), 1, eku,
                                                 sizeof eku);
    if (rv != 0 || use != X509_USE_SERVER)
        return rv;
    unsigned char san[4 + sizeof IDENTITY_CONTROLLER_NAME - 1];
    const unsigned char len = sizeof IDENTITY_CONTROLLER_NAME - 1;
    san[0] = 0x30;
    san[1] = len + 2;
    san[2] = 0x82;
    san[3] = len;
    memcpy(san + 4, IDENTITY_CONTROLLER_NAME, len);
    return mbedtls_x509write_crt_set_extension(
        w, MBEDTLS_OID_SUBJECT_ALT_NAME, MBEDTLS_OID_SIZE(MBEDTLS_OID_SUBJECT_ALT_NAME), 0, san, sizeof san);
}

static int write_cert(const struct x509_issue *i, const char *issuer, mbedtls_pk_context *subject_key,
                      mbedtls_pk_context *issuer_key, unsigned char *pem, size_t size)
{
    mbedtls_x509write_cert w;
    mbedtls_mpi serial;
    char subject[LIMIT_NAME_BYTES + 64], from[16], until[16];
    bool ca = i->use == X509_USE_CA;
    mbedtls_x509write_crt_init(&w);
    mbedtls_mpi_init(&serial);
    snprintf(subject, sizeof subject, "CN=%s,OU=%s", i->name, ca ? "ca" : msg_role_name(i->role));
    mbedtls_x509write_crt_set_version(&w, MBEDTLS_X509_CRT_VERSION_3);
    mbedtls_x509write_crt_set_md_alg(&w, MBEDTLS_MD_SHA256);
    mbedtls_x509write_crt_set_subject_key(&w, subject_key);
    mbedtls_x509write_crt_set_issuer_key(&w, issuer_key);
    int rv = mbedtls_mpi_fill_random(&serial, SERIAL_BYTES, random_bytes, NULL);
    if (rv == 0)
        rv = mbedtls_mpi_set_bit(&serial, SERIAL_BYTES * 8 - 1, 0); /* a positive number, */
    if (rv == 0)
        rv = mbedtls_mpi_set_bit(&serial, SERIAL_BYTES * 8 - 2, 1); /* of always the same length */
    if (rv == 0)
        rv = mbedtls_x509write_crt_set_serial(&w, &serial);
    if (rv == 0)
        rv = mbedtls_x509write_crt_set_subject_name(&w, subject);
    if (rv == 0)
        rv = mbedtls_x509write_crt_set_issuer_name(&w, issuer != NULL ? issuer : subject);
    if (rv == 0)
        rv = mbedtls_x509write_crt_set_validity(&w, x509_time(i->from_wall_ns, from),
                                                x509_time(i->until_wall_ns, until));
    if (rv == 0)
        rv = mbedtls_x509write_crt_set_basic_constraints(&w, ca, ca ? 0 : -1);
    if (rv == 0)
        rv = mbedtls_x509write_crt_set_key_usage(&w,
                                                 ca ? MBEDTLS_X509_KU_KEY_CERT_SIGN | MBEDTLS_X509_KU_CRL_SIGN
                                                    : MBEDTLS_X509_KU_DIGITAL_SIGNATURE);
    if (rv == 0)
        rv = mbedtls_x509write_crt_set_subject_key_identifier(&w);
    if (rv == 0)
        rv = mbedtls_x509write_crt_set_authority_key_identifier(&w);
    if (rv == 0 && !ca)
        rv = set_purpose(&w, i->use);
    if (rv == 0)
        rv = mbedtls_x509write_crt_pem(&w, pem, size, random_bytes, NULL);
    mbedtls_mpi_free(&serial);
    mbedtls_x509write_crt_free(&w);
    return rv;
}

enum err x509_issue(const struct x509_issue *i, char **cert_pem, struct err_detail *d)
{
    mbedtls_x509_csr csr;
    mbedtls_x509_crt ca;
    mbedtls_pk_context own_key, ca_key;
    unsigned char pem[4096];
    char issuer[512];
    mbedtls_x509_csr_init(&csr);
    mbedtls_x509_crt_init(&ca);
    mbedtls_pk_init(&own_key);
    mbedtls_pk_init(&ca_key);
    const char *fault = text_fault(RULE_NAME, i->name, strlen(i->name));
    enum err e = ERR_OK;
    if (fault != NULL || strlen(i->name) > LIMIT_NAME_BYTES)
        e = err_set(d, ERR_INVALID, "name '%s' %s", i->name, fault != NULL ? fault : "is too long");
    if (e == ERR_OK)
        e = i->csr_pem != NULL ? parse_csr(i->csr_pem, &csr, d) : parse_key(i->key_pem, &own_key, d);
    if (e == ERR_OK && i->ca_pem != NULL) {
        e = x509_parse(i->ca_pem, &ca, d);
        if (e == ERR_OK)
            e = parse_key(i->ca_key_pem, &ca_key, d);
        if (e == ERR_OK && mbedtls_x509_dn_gets(issuer, sizeof issuer, &ca.subject) < 0)
            e = err_set(d, ERR_INVALID, "the CA's name cannot be read");
    }
    if (e != ERR_OK)
        goto out;
    mbedtls_pk_context *subject_key = i->csr_pem != NULL ? &csr.pk : &own_key;
    int rv = write_cert(i, i->ca_pem != NULL ? issuer : NULL, subject_key,
                        i->ca_pem != NULL ? &ca_key : subject_key, pem, sizeof pem);
    if (rv != 0)
        e = failed(d, ERR_FAILED, "cannot make a certificate", rv);
    else
        *cert_pem = mem_strdup((const char *)pem);
out:
    mbedtls_pk_free(&ca_key);
    mbedtls_pk_free(&own_key);
    mbedtls_x509_crt_free(&ca);
    mbedtls_x509_csr_free(&csr);
    return e;
}
