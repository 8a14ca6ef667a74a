#ifndef AGENT_LOAD_TLS_CONFIG_H
#define AGENT_LOAD_TLS_CONFIG_H
/*
 * What holds for every TLS connection of one thread: versions, suites, trust, our certificate. One for each
 * worker, with a library context of its own, so that no two threads ever wait for the same lock of OpenSSL;
 * made and freed by main, used by the worker's thread alone in between.
 */
#include "agent/load/tls_trust.h"

#define TLS_NAMES_MAX 32u /* in a list of suites or groups */

enum tls_version { TLS_1_2, TLS_1_3 }; /* what --tls-min and --tls-max choose from */

struct tls_options {         /* texts are borrowed */
    const char *server_name; /* for SNI and for the certificate; an IP address is checked, but not sent */
    const char *ca_file;     /* PEM; NULL: the system's */
    const struct tls_trust *trust; /* what is in ca_file; borrowed. NULL without one, and until it is read */
    const char *cert_file;         /* PEM, the chain after it; NULL: none */
    const char *key_file;          /* PEM; NULL: it is in cert_file */
    const char *ciphers;           /* suites by name, with colons between; NULL: as browsers offer them */
    const char *groups;            /* for the key exchange, likewise */
    enum tls_version min;
    enum tls_version max;
    bool insecure; /* accept any certificate */
    bool resume;   /* a connection goes on with the session that it had before */
};

/* Whether any differs from its default. */
bool tls_options_given(const struct tls_options *o);

struct tls_config {
    struct ossl_lib_ctx_st *library;
    struct ssl_ctx_st *context;
    struct tls_trust_reader *reader; /* NULL: the system's CA certificates, or none */
    char *sni;                       /* NULL: none is sent */
    bool resume;
    bool has_cert;
};

/* Reads ca_file into `*trust`, which is NULL where there is none to be read; it goes into the options, and is
 * the caller's to free. The errors are those of tls_config_new. */
NODISCARD enum err tls_config_read_trust(struct tls_trust **trust, const struct tls_options *options,
                                         struct err_detail *d);

/* ERR_INVALID, ERR_NOT_FOUND or an errno's for what cannot be used of the options. */
NODISCARD enum err tls_config_new(struct tls_config **out, const struct tls_options *options,
                                  struct err_detail *d);
void tls_config_free(struct tls_config *c);

#endif
