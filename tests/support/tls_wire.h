#ifndef TESTS_SUPPORT_TLS_WIRE_H
#define TESTS_SUPPORT_TLS_WIRE_H
/*
 * The TLS of splitbench-load and OpenSSL as its server, with nothing but memory in between. For cmocka tests,
 * each of which owns its own (tls_wire_set_up, tls_wire_tear_down); what goes wrong here fails the running
 * one.
 */
#include "agent/load/tls.h"
#include "common/buf.h"
#include "tests/support/scratch.h"
#include "tests/support/tls_certs.h"

#include <openssl/ssl.h>

struct tls_wire {
    struct scratch scratch;
    struct cert_lab lab;
    struct tls_options options;
    struct tls_trust *trust;
    struct tls_config *config;
    struct ssl_session_st *session; /* what the client remembers */
    struct tls *client;
    SSL_CTX *context;
    SSL *server;
    BIO *to_server, *from_server;
    enum tls_result last; /* what the client said to the last bytes */
    bool shaken;          /* the client's hand-shake is over */
    size_t step;          /* bytes that the client is fed at a time */
    size_t most;          /* that it gave out at once */
    struct buf got;       /* what the client has read */
    struct buf served;    /* what the server has read */
    uint8_t chunk[64u * 1024u];
};

int tls_wire_set_up(void **state);
int tls_wire_tear_down(void **state);

/* As the program does it: reads what is to be trusted, then the rest. Ends the configuration before. */
enum err tls_wire_configure(struct tls_wire *w, const struct tls_options *options, struct err_detail *d);
void tls_wire_forget(struct tls_wire *w);

/* What holds for the server's next sessions: its certificate, and the one version that it speaks. */
void tls_wire_show(struct tls_wire *w, const struct cert_wish *wish);
void tls_wire_speak(struct tls_wire *w, int version);

/* A new session on both ends; nothing is said yet. Ends the one before. */
void tls_wire_dial(struct tls_wire *w);
void tls_wire_hang_up(struct tls_wire *w);

/* What the client makes of some bytes, as a connection would use it; NULL: of its beginning. */
void tls_wire_feed(struct tls_wire *w, const void *data, size_t len);
/* All that the client has to say goes to the server. True: there was something. */
bool tls_wire_carry_up(struct tls_wire *w);
/* Both ways, until nobody has anything to say or the client has failed. */
void tls_wire_carry(struct tls_wire *w);

/* Dials and carries; the second fails the test where that is no hand-shake. */
void tls_wire_shake_hands(struct tls_wire *w);
void tls_wire_shake_hands_well(struct tls_wire *w);

/* The server says this. */
void tls_wire_answer(struct tls_wire *w, const char *text);

#endif
