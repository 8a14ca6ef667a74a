#ifndef AGENT_LOAD_TLS_TRUST_H
#define AGENT_LOAD_TLS_TRUST_H
/*
 * The CA certificates of --ca, read once for all threads: as names and bytes. What takes time is to read
 * their keys (OpenSSL 3.0: 0.2 ms each, 30 ms for a system's bundle), and nothing of OpenSSL that holds a
 * lock is shared between threads: so each thread reads those certificates for itself that servers'
 * certificates name, when they do. Made and freed by main; read by every worker, changed by none.
 */
#include "common/err.h"

#define TLS_TRUST_CERTS_MAX 10000u /* a system's bundle has 150 */

struct tls_trust;
struct tls_trust_reader;
struct ossl_lib_ctx_st;
struct x509_store_st;

/* From a file of certificates in PEM. */
NODISCARD enum err tls_trust_read(struct tls_trust **out, const char *path, struct err_detail *d);
void tls_trust_free(struct tls_trust *t);

/* From now on `store` finds what is in `t`. All are borrowed until the store has been freed, and then the
 * reader is. */
struct tls_trust_reader *tls_trust_reader_new(const struct tls_trust *t, struct ossl_lib_ctx_st *library,
                                              struct x509_store_st *store);
void tls_trust_reader_free(struct tls_trust_reader *r);

#endif
