#include "tests/support/tls_certs.h"

#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/rsa.h>
#include <openssl/x509v3.h>

#define FROM_DAYS (-1)
#define TO_DAYS   30

static EVP_PKEY *make_key(enum cert_key kind)
{
    switch (kind) {
    case CERT_EC_P256:
        return EVP_EC_gen("P-256");
    case CERT_RSA_2048:
        return EVP_RSA_gen(2048);
    case CERT_RSA_1024:
        return EVP_RSA_gen(1024);
    }
    return NULL;
}

static void add_extension(X509 *cert, X509 *issuer, int nid, const char *value)
{
    X509V3_CTX ctx;
    X509V3_set_ctx_nodb(&ctx);
    X509V3_set_ctx(&ctx, issuer, cert, NULL, NULL, 0);
    X509_EXTENSION *e = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
    must(e != NULL && X509_add_ext(cert, e, -1) == 1);
    X509_EXTENSION_free(e);
}

static void add_extensions(X509 *cert, X509 *issuer, const struct cert_wish *w)
{
    add_extension(cert, issuer, NID_basic_constraints, w->is_ca ? "critical,CA:TRUE" : "critical,CA:FALSE");
    add_extension(cert, issuer, NID_key_usage,
                  w->is_ca ? "critical,keyCertSign" : "critical,digitalSignature,keyEncipherment");
    add_extension(cert, issuer, NID_subject_key_identifier, "hash");
    add_extension(cert, issuer, NID_authority_key_identifier, "keyid");
    if (w->is_ca)
        return;
    add_extension(cert, issuer, NID_ext_key_usage, w->usage != NULL ? w->usage : "serverAuth");
    const char *names = w->names != NULL ? w->names : CERT_GOOD_NAMES;
    if (*names != '\0')
        add_extension(cert, issuer, NID_subject_alt_name, names);
}

void cert_make(const struct cert_lab *lab, struct cert_pair *out, const struct cert_wish *w)
{
    out->key = make_key(w->key);
    out->cert = X509_new();
    must(out->key != NULL && out->cert != NULL);
    const struct cert_pair *signer = w->signer == CERT_BY_ITSELF ? out : &lab->signers[w->signer];
    bool dated = w->from_days != 0 || w->to_days != 0;
    const char *subject = w->subject != NULL ? w->subject : "a server of the tests";
    uint64_t serial = 0;
    must(RAND_bytes((uint8_t *)&serial, sizeof serial) == 1);
    must(X509_set_version(out->cert, X509_VERSION_3) == 1);
    must(ASN1_INTEGER_set_uint64(X509_get_serialNumber(out->cert), serial >> 1) == 1);
    must(X509_NAME_add_entry_by_txt(X509_get_subject_name(out->cert), "CN", MBSTRING_UTF8,
                                    (const uint8_t *)subject, -1, -1, 0) == 1);
    must(X509_set_issuer_name(out->cert, X509_get_subject_name(signer->cert)) == 1);
    must(X509_time_adj_ex(X509_getm_notBefore(out->cert), dated ? w->from_days : FROM_DAYS, 0, NULL) != NULL);
    must(X509_time_adj_ex(X509_getm_notAfter(out->cert), dated ? w->to_days : TO_DAYS, 0, NULL) != NULL);
    must(X509_set_pubkey(out->cert, out->key) == 1);
    add_extensions(out->cert, signer->cert, w);
    must(X509_sign(out->cert, signer->key, w->sha1 ? EVP_sha1() : EVP_sha256()) > 0);
}

void cert_pair_fini(struct cert_pair *pair)
{
    X509_free(pair->cert);
    EVP_PKEY_free(pair->key);
    *pair = (struct cert_pair){0};
}

void cert_lab_init(struct cert_lab *lab)
{
    static const struct cert_wish wishes[CERT_SIGNER_COUNT] = {
        [CERT_BY_CA] = {.signer = CERT_BY_ITSELF, .subject = "the CA of the tests", .is_ca = true},
        [CERT_BY_INTERMEDIATE] = {.subject = "an intermediate of the tests", .is_ca = true},
        [CERT_BY_OLD_INTERMEDIATE] = {.subject = "an old intermediate of the tests",
                                      .is_ca = true,
                                      .from_days = -30,
                                      .to_days = -2},
        [CERT_BY_LEAF] = {.subject = "a server that signs"},
        [CERT_BY_STRANGER] = {.signer = CERT_BY_ITSELF, .subject = "a CA that nobody knows", .is_ca = true},
    };
    for (size_t i = 0; i < ARRAY_LEN(wishes); i++)
        cert_make(lab, &lab->signers[i], &wishes[i]);
}

void cert_lab_fini(struct cert_lab *lab)
{
    for (size_t i = 0; i < ARRAY_LEN(lab->signers); i++)
        cert_pair_fini(&lab->signers[i]);
}

bool cert_pair_write(const struct cert_pair *pair, const char *cert_path, const char *key_path)
{
    FILE *f = fopen(cert_path, "we");
    if (f == NULL)
        return false;
    bool ok = PEM_write_X509(f, pair->cert) == 1;
    ok = fclose(f) == 0 && ok;
    if (!ok || key_path == NULL)
        return ok;
    f = fopen(key_path, "we");
    if (f == NULL)
        return false;
    ok = PEM_write_PrivateKey(f, pair->key, NULL, NULL, 0, NULL, NULL) == 1;
    return fclose(f) == 0 && ok;
}
