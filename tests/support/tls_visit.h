#ifndef TESTS_SUPPORT_TLS_VISIT_H
#define TESTS_SUPPORT_TLS_VISIT_H
/*
 * One connection to a TLS server of the tests: the verbs that its behaviours are made of, and the books of
 * the port it came to. A visit is its thread's alone, and its verbs block, each for VISIT_PATIENCE_S at most.
 * A service is shared by all visits to a port.
 */
#include "common/buf.h"

#include <openssl/ssl.h>
#include <pthread.h>

#define VISIT_PATIENCE_S     20
#define VISIT_TRAFFIC_SECRET 32u /* of a suite with SHA-256 */

struct tls_mode;

/* What clients did since the counts were last taken; texts are those of the last client. */
struct tls_counts {
    uint64_t accepted; /* TCP connections */
    uint64_t full;     /* hand-shakes that came to their end */
    uint64_t resumed;  /* likewise, of an earlier session */
    uint64_t renegotiated;
    uint64_t requests;   /* heads and bodies read whole */
    uint64_t body_bytes; /* of requests */
    uint64_t wire_in;    /* bytes received, all of them */
    uint64_t arrived;    /* those that had come when the server gave up waiting without reading */
    char name[128];      /* that the client asked for; "": none */
    char offered[64];    /* ALPN, comma separated */
    char version[16];
    char cipher[64];
    char group[32];
    char certificate[64]; /* common name of the client's; "": none */
    char alert[64];       /* that the client sent; "": none */
};

struct tls_service {
    const struct tls_mode *mode; /* static */
    SSL_CTX *ctx;
    int release_fd;       /* an eventfd; readable: whoever waits for a client's end goes on */
    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t idle;
    unsigned open;
    struct tls_counts counts;
};

struct visit {
    struct tls_service *service;
    int fd;
    SSL *ssl;   /* NULL until there is need */
    bool reset; /* the connection is to end by RST */
    uint64_t raw_in;
    uint64_t shakes;                      /* hand-shakes that ended, renegotiations too */
    bool asking;                          /* for a renegotiation, at this moment */
    struct buf in;                        /* decrypted, not yet used */
    char path[128];                       /* of the last request */
    char sum[65];                         /* SHA-256 of its body, hexadecimal; "" without a body */
    bool last;                            /* it said Connection: close */
    uint8_t secret[VISIT_TRAFFIC_SECRET]; /* of TLS 1.3, for what the server sends */
};

/* For every context whose visits are counted. */
void visit_watch(SSL_CTX *ctx);
/* The client's list of protocols, as ALPN has it. */
void visit_note_offer(struct visit *v, const uint8_t *list, size_t len);
/* The client's certificate, when it came after the hand-shake. */
void visit_note_certificate(struct visit *v);

/* Takes the socket. */
void visit_init(struct visit *v, struct tls_service *s, int fd);
/* Ends the connection so that the client sees what was sent before the end, unless it is to be reset. */
void visit_fini(struct visit *v);

/* The hand-shake as it should be. */
NODISCARD bool visit_shake_hands(struct visit *v);
/* The first record as it came, and what OpenSSL would answer to it. */
NODISCARD bool visit_read_hello(struct visit *v, struct buf *hello);
NODISCARD bool visit_make_flight(struct visit *v, struct buf *flight);
/* Goes on with a hand-shake whose flight has been sent. */
NODISCARD bool visit_end_hands(struct visit *v);

/* Sends the request for a new hand-shake (TLS 1.2); the client's answer is dealt with in the next read. */
void visit_ask_to_renegotiate(struct visit *v);

/* The next request, whole. False: the client ended, or does not speak HTTP. */
NODISCARD bool visit_read_request(struct visit *v);
/* The proper answer to the last request: of /bytes/N that many, else the sum of the request's body, else
 * "ok". */
void visit_answer(struct visit *v);

void visit_say(struct visit *v, const void *data, size_t len);     /* encrypted */
void visit_say_raw(struct visit *v, const void *data, size_t len); /* as it is */
void visit_say_text(struct visit *v, const char *text);

/* Until the client ends or the service is released; reads nothing, but counts what has arrived. */
void visit_await_end(struct visit *v);

#endif
