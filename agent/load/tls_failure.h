#ifndef AGENT_LOAD_TLS_FAILURE_H
#define AGENT_LOAD_TLS_FAILURE_H
/*
 * Why a TLS connection failed: OpenSSL's reasons, alerts and verdicts on certificates (RFC 8446 6.2) as one
 * of our causes and a sentence. No state; reads and empties the error queue of the calling thread.
 */
#include "agent/load/fault.h"

struct ssl_st;

struct tls_failure {
    enum fault_cause cause;
    char text[FAULT_SAMPLE_BYTES];
};

/* What the caller has seen of the connection. */
struct tls_story {
    bool cert_asked; /* the server asked for a certificate */
    bool cert_given; /* and we have one */
    bool saw_http;   /* its first bytes were those of an HTTP answer */
};

void tls_failure_explain(struct tls_failure *out, const struct ssl_st *ssl, const struct tls_story *story);
void tls_failure_set(struct tls_failure *out, enum fault_cause cause, const char *text);

#endif
