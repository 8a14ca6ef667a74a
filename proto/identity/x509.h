#ifndef PROTO_IDENTITY_X509_H
#define PROTO_IDENTITY_X509_H
/*
 * Keys and certificates as OpenSSL reads and makes them, below proto/identity/identity.h: ECDSA P-256 keys,
 * SHA-256 signatures, PEM in and out. Any thread; no state. Nothing stays behind in OpenSSL's queue of
 * errors, which the thread's next user would take for its own.
 *
 * A PEM text has at most MSG_PEM_BYTES_MAX bytes and one block, with blanks after it at most; text
 * before it is skipped. A block that wants a password is refused: nobody is asked for one.
 */
#include "proto/identity/identity.h"

#include <openssl/types.h>

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

/* ERR_INVALID unless it is what it should be; freed with OpenSSL's X509_free, EVP_PKEY_free. */
NODISCARD enum err x509_parse(const char *pem, X509 **out, struct err_detail *d);
NODISCARD enum err x509_parse_key(const char *pem, EVP_PKEY **out, struct err_detail *d);
/* The public key of a request, whose sender has shown to hold the private one: it is signed by itself. */
NODISCARD enum err x509_parse_csr(const char *pem, EVP_PKEY **out, struct err_detail *d);

/* ERR_INVALID unless the key is the certificate's. */
NODISCARD enum err x509_check_pair(const char *cert_pem, const char *key_pem, struct err_detail *d);

/* Says "what: " and OpenSSL's oldest reason, whose queue it clears. Returns `e`. */
enum err x509_failed(enum err e, const char *what, struct err_detail *d);

/* What was written into a memory BIO, which it frees and zeroes; the caller's. */
char *x509_take_text(BIO *bio);

#endif
