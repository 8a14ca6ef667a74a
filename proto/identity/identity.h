#ifndef PROTO_IDENTITY_IDENTITY_H
#define PROTO_IDENTITY_IDENTITY_H
/*
 * The lab's certificates: a CA of its own, one controller certificate (server only), client-only ones for
 * agents and operators (the role stands in OU, the name in CN), and one-time enrollment tokens. ECDSA P-256,
 * by OpenSSL. Files live in one directory, keys 0600. Any thread; no state but the files.
 *
 * DIR/ca.pem, DIR/ca.key.pem (controller only), DIR/cert.pem, DIR/key.pem.
 */
#include "proto/msg/msg.h"

#define IDENTITY_CONTROLLER_NAME "splitbench-controller" /* every dialer asks for this server name */
#define IDENTITY_TOKEN_BYTES_MAX 512u

struct identity { /* what the PEM files hold; owned strings */
    char *ca_pem;
    char *cert_pem;
    char *key_pem;
};

struct identity_facts { /* of a verified certificate */
    char name[LIMIT_NAME_BYTES + 1];
    enum msg_role role;
    char serial[65]; /* hex; the handle for revocation */
};

/* Makes CA, controller key and certificate in `dir` (created 0700). ERR_EXISTS when there is one already. */
NODISCARD enum err identity_create_lab(const char *dir, struct err_detail *d);

/* Reads DIR. ERR_NOT_FOUND says which command makes it. */
NODISCARD enum err identity_load(const char *dir, struct identity *out, struct err_detail *d);
void identity_fini(struct identity *id);

/* A new key and a certificate request for `name`; both PEM, owned by the caller. */
NODISCARD enum err identity_make_request(const char *name, char **key_pem, char **csr_pem,
                                         struct err_detail *d);

/* Signs a request with the CA key of `dir`: client-only, OU = role, CN = name (the request's own name counts
 * for nothing). */
NODISCARD enum err identity_sign_request(const char *dir, const char *csr_pem, const char *name,
                                         enum msg_role role, uint64_t life_ns, char **cert_pem,
                                         struct err_detail *d);

/* Writes the files of an enrolled party; key first, all or nothing. */
NODISCARD enum err identity_store(const char *dir, const struct identity *id, struct err_detail *d);

/* Chain to `ca_pem`, validity now, client key usage; fills `out`. ERR_DENIED with the reason otherwise. */
NODISCARD enum err identity_check_certificate(const char *ca_pem, const char *cert_pem,
                                              struct identity_facts *out, struct err_detail *d);

/* Signature over "splitbench-session-1" || role || nonce by the key; checked against a certificate. */
NODISCARD enum err identity_sign(const char *key_pem, enum msg_role role,
                                 const uint8_t nonce[MSG_NONCE_BYTES], struct msg_bytes *out,
                                 struct err_detail *d);
NODISCARD enum err identity_verify(const char *cert_pem, enum msg_role role,
                                   const uint8_t nonce[MSG_NONCE_BYTES], const struct msg_bytes *signature,
                                   struct err_detail *d);

/* Random bytes from the operating system. */
void identity_random(void *out, size_t len);

/* SHA-256 of the CA certificate's DER form. */
NODISCARD enum err identity_fingerprint(const char *ca_pem, uint8_t out[MSG_HASH_BYTES],
                                        struct err_detail *d);

/* Token text "sb1.<secret>.<fingerprint>" (base64url, 160-bit secret) and its parts. The controller keeps
 * only the secret's hash. */
NODISCARD enum err identity_make_token(const char *ca_pem, char token[IDENTITY_TOKEN_BYTES_MAX],
                                       char secret[64], struct err_detail *d);
NODISCARD enum err identity_parse_token(const char *token, char secret[64],
                                        uint8_t fingerprint[MSG_HASH_BYTES], struct err_detail *d);

#endif
