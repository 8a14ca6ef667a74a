#ifndef TESTS_SUPPORT_WIRE_H
#define TESTS_SUPPORT_WIRE_H
/*
 * The wire by hand: TCP, TLS and nng's framing without nng, so that a test can say what no client of ours
 * would. Blocking, one thread, owned by the test program.
 */
#include "proto/identity.h"

#include <mbedtls/ctr_drbg.h>
#include <mbedtls/entropy.h>
#include <mbedtls/net_sockets.h>
#include <mbedtls/ssl.h>

struct wire {
    mbedtls_net_context net;
    bool tls;
    mbedtls_ssl_context ssl;
    mbedtls_ssl_config config;
    mbedtls_entropy_context entropy;
    mbedtls_ctr_drbg_context random;
    mbedtls_x509_crt cert;
    mbedtls_pk_context key;
    uint32_t next_request;
};

/* TCP only. False (with a line on stderr) when nobody listens. */
bool wire_connect(struct wire *w, const char *host, const char *port);
/* TLS on top, without looking at the server's certificate; with our own when `id` is not NULL. */
bool wire_start_tls(struct wire *w, const struct identity *id);
/* nng's greeting as a REQ socket, and the other side's. */
bool wire_greet(struct wire *w);
void wire_close(struct wire *w); /* safe twice */

bool wire_write(struct wire *w, const void *data, size_t len);
/* Frame with a body as it is; `len_said` goes into its header. */
bool wire_write_frame(struct wire *w, uint64_t len_said, const void *body, size_t len);
/* A message as a request. */
bool wire_send(struct wire *w, const struct msg *m);

enum wire_outcome { WIRE_MESSAGE, WIRE_CLOSED, WIRE_SILENT, WIRE_GARBAGE };

/* The next answer, waiting at most `timeout_ms`. `out` is filled for WIRE_MESSAGE: msg_fini. */
enum wire_outcome wire_receive(struct wire *w, struct msg *out, uint32_t timeout_ms);

#endif
