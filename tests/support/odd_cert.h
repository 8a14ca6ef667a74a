#ifndef TESTS_SUPPORT_ODD_CERT_H
#define TESTS_SUPPORT_ODD_CERT_H
/*
 * Keys, requests and certificates that proto/identity/x509.h never makes, so that tests can offer them. For
 * cmocka tests; what goes wrong here fails the running one. Returned texts are PEM and the caller's.
 */
#include "proto/identity/identity.h"

#include <openssl/types.h>

enum odd_key {
    ODD_KEY_P256,
    ODD_KEY_P256_COMPRESSED, /* its point is half given */
    ODD_KEY_P256_EXPLICIT,   /* its curve is spelled out */
    ODD_KEY_P256_OFF_CURVE,  /* its point is none of the curve: of certificates only */
    ODD_KEY_K256,            /* a curve of the same size */
    ODD_KEY_P384,
    ODD_KEY_RSA,
};

/* Freed with EVP_PKEY_free. */
EVP_PKEY *odd_key_new(enum odd_key kind);
char *odd_key_pem(EVP_PKEY *key);

struct odd_part { /* of a subject */
    const char *attribute;
    const char *value;
    int len;  /* 0: up to its NUL */
    int kind; /* of ASN.1 text; 0: UTF8String */
};

struct odd_extension {
    const char *name;
    const char *value; /* as in x509v3_config(5) */
};

/* A certificate of a1, an agent, for clients, valid now; what is set here is so instead. */
struct odd_cert {
    const char *ca_pem;
    const char *ca_key_pem;
    enum odd_key key;
    char **key_pem; /* NULL: nobody will need it */
    struct odd_part subject[4];
    struct odd_extension extensions[8];
    const char *digest; /* of the signature */
    bool version_1;     /* without extensions */
    bool has_negative_serial;
};

char *odd_cert_make(const struct odd_cert *c);

/* A request of `key`, signed by `signer`. */
char *odd_csr_make(EVP_PKEY *key, EVP_PKEY *signer, const char *digest, uint8_t version);

/* The PEM text with `len` bytes more in its block, behind the object. */
char *odd_pem_with_tail(const char *pem, const char *label, size_t len);

#endif
