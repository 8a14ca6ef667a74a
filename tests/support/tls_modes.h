#ifndef TESTS_SUPPORT_TLS_MODES_H
#define TESTS_SUPPORT_TLS_MODES_H
/*
 * The ways in which a TLS server of the tests can be: right, or wrong in exactly one respect. A table,
 * static; any thread.
 */
#include "tests/support/tls_certs.h"
#include "tests/support/tls_visit.h"

struct tls_mode {
    const char *name;
    const char *what;      /* it does, for --list */
    struct cert_wish cert; /* who it says it is */
    bool hides_chain;      /* sends its own certificate alone */
    int version;           /* the only one it speaks; 0: TLS 1.2 and 1.3 */
    const char *ciphers;   /* of TLS 1.2; NULL: as OpenSSL has it, here and below */
    const char *suites;    /* of TLS 1.3 */
    const char *groups;
    void (*set_up)(SSL_CTX *ctx, const struct cert_lab *lab); /* all the rest of it; NULL: nothing */
    void (*run)(struct visit *v); /* what becomes of a connection; NULL: requests are answered */
    /* What `run` goes by, where it does. */
    unsigned answers; /* proper ones, before anything goes wrong */
    unsigned share;   /* of the server's first flight that is sent, per cent */
    const char *text;
    size_t len;
    void (*end)(struct visit *v); /* NULL: TCP's alone, with FIN */
};

extern const struct tls_mode tls_modes[];
extern const size_t tls_mode_count;

/* NULL: there is none of this name. */
const struct tls_mode *tls_mode_find(const char *name);

/* A context for all visits to a server of this kind. */
SSL_CTX *tls_mode_context(const struct tls_mode *m, const struct cert_lab *lab, const struct cert_pair *own);

/* The whole life of a connection, after visit_init and before visit_fini. */
void tls_mode_run(struct visit *v);

#endif
