#ifndef PROTO_X509_H
#define PROTO_X509_H
/*
 * Certificates as mbedTLS makes and checks them, below proto/identity.h: ECDSA P-256 keys, SHA-256
 * signatures, PEM in and out. Any thread; no state.
 */
#include "proto/identity.h"

#include <mbedtls/x509_crt.h>

/* What a certificate may be used for. */
enum x509_use {
    X509_USE_CA,
    X509_USE_SERVER, /* the controller: an agent obeys no other */
    X509_USE_CLIENT, /* agents and operators: can never pose as the controller */
};

struct x509_issue {
    const char *ca_pem; /* NULL: signed by itself */
    const char *ca_key_pem;
    const char *csr_pem; /* whose key is certified, or NULL: that of key_pem */
    const char *key_pem;
    const char *name;
    enum msg_role role;
    enum x509_use use;
    uint64_t from_wall_ns;
    uint64_t until_wall_ns;
};

/* Names are RULE_NAME texts. ERR_INVALID when an input does not parse or a request is not signed by its own
 * key; `cert_pem` is the caller's. */
NODISCARD enum err x509_issue(const struct x509_issue *issue, char **cert_pem, struct err_detail *d);

NODISCARD enum err x509_make_key(char **key_pem, struct err_detail *d);
NODISCARD enum err x509_make_csr(const char *key_pem, const char *name, char **csr_pem, struct err_detail *d);

/* One certificate in PEM, nothing after it. */
NODISCARD enum err x509_parse(const char *pem, mbedtls_x509_crt *out, struct err_detail *d);

/* ERR_INVALID unless the key is the certificate's. */
NODISCARD enum err x509_check_pair(const char *cert_pem, const char *key_pem, struct err_detail *d);

#endif
