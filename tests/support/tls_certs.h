#ifndef TESTS_SUPPORT_TLS_CERTS_H
#define TESTS_SUPPORT_TLS_CERTS_H
/*
 * Certificates for tests of TLS, made in memory: a good one, and such that are wrong in exactly one way.
 * Owned by the test; made on one thread, read by any. What OpenSSL cannot do ends the program: nothing here
 * comes from outside.
 */
#include "common/base.h"

#include <openssl/x509.h>

struct cert_pair {
    X509 *cert;
    EVP_PKEY *key;
};

enum cert_signer {
    CERT_BY_CA,               /* the one that clients are told to trust */
    CERT_BY_INTERMEDIATE,     /* signed by the CA */
    CERT_BY_OLD_INTERMEDIATE, /* signed by the CA, and expired */
    CERT_BY_LEAF,             /* signed by the CA, and not allowed to sign */
    CERT_BY_STRANGER,         /* another CA */
    CERT_SIGNER_COUNT,
    CERT_BY_ITSELF = CERT_SIGNER_COUNT
};

enum cert_key { CERT_EC_P256, CERT_RSA_2048, CERT_RSA_1024 };

/* What is left at 0 is as in a good server certificate. */
struct cert_wish {
    enum cert_signer signer;
    enum cert_key key;
    const char *subject;    /* common name; NULL: one that is no host's */
    const char *names;      /* as in x509v3_config(5); NULL: CERT_GOOD_NAMES; "": none */
    const char *usage;      /* extended; NULL: serverAuth */
    int from_days, to_days; /* from now; both 0: valid */
    bool is_ca;
    bool sha1; /* instead of SHA-256, in the signature */
};

#define CERT_GOOD_NAMES "DNS:localhost,DNS:*.lab.test,IP:127.0.0.1,IP:::1"

struct cert_lab {
    struct cert_pair signers[CERT_SIGNER_COUNT];
};

void cert_lab_init(struct cert_lab *lab);
void cert_lab_fini(struct cert_lab *lab);

void cert_make(const struct cert_lab *lab, struct cert_pair *out, const struct cert_wish *wish);
void cert_pair_fini(struct cert_pair *pair);

/* As PEM files, the key into NULL for none; false with errno when the file cannot be written. */
NODISCARD bool cert_pair_write(const struct cert_pair *pair, const char *cert_path, const char *key_path);

#endif
