#ifndef AGENT_LOAD_TLS_H
#define AGENT_LOAD_TLS_H
/*
 * TLS 1.2 and 1.3 as a filter between bytes on the wire and bytes of HTTP: what comes from the peer is fed
 * in, what goes to the peer is taken out, and no socket is ever touched. One session for each opening of a
 * connection; the worker's thread alone.
 *
 * Limits: a request is encrypted as it leaves, TLS_AHEAD_BYTES at a time, whatever its size.
 */
#include "agent/load/tls_config.h"
#include "agent/load/tls_failure.h"

#define TLS_AHEAD_BYTES (64u * 1024u)

struct tls;
struct ssl_session_st;

enum tls_result {
    TLS_OK,
    TLS_WANT_MORE, /* everything fed in is used up */
    TLS_CLOSED,    /* the peer said that it is done */
    TLS_FAILED     /* tls_failure_of says why */
};

/* Both are borrowed. `*session` is what a connection remembers from one opening to the next: OpenSSL's, NULL
 * at first, to be freed by the caller; only written to with `resume`. */
struct tls *tls_new(const struct tls_config *c, struct ssl_session_st **session);
void tls_free(struct tls *t);
void tls_session_free(struct ssl_session_st *session);

/* Borrows `data` until a call below returns TLS_WANT_MORE or something worse. */
void tls_feed(struct tls *t, const uint8_t *data, size_t len);
enum tls_result tls_handshake(struct tls *t);
enum tls_result tls_read(struct tls *t, uint8_t *out, size_t size, size_t *len);

/* Borrows `data` while tls_is_writing. */
void tls_write(struct tls *t, const uint8_t *data, size_t len);

/* Whether some of it is not encrypted yet: there was no need so far, or the peer is in the midst of a message
 * and nothing can be written until the rest of that has been fed in. */
bool tls_is_writing(const struct tls *t);

/* Whether there are bytes for the peer, at this moment. */
bool tls_has_output(const struct tls *t);

/* These bytes, valid until the next call of this function; false when there are none. */
bool tls_take_output(struct tls *t, const uint8_t **data, size_t *len);

/* Whether the peer has sent any byte of HTTP. Until then a TLS 1.3 server may still refuse the hand-shake
 * that is over for us (RFC 8446 4.4.2: for want of a certificate). */
bool tls_is_proven(const struct tls *t);

/* Of a hand-shake that is over. */
struct tls_agreed {
    const char *version; /* "TLSv1.3"; static text, as the next */
    const char *suite;   /* its standard (IANA) name */
    char group[32];      /* of the key exchange; "" where OpenSSL does not say */
    bool resumed;
};
void tls_agreed_on(const struct tls *t, struct tls_agreed *out);

/* Why the last call returned TLS_FAILED. */
const struct tls_failure *tls_failure_of(const struct tls *t);

#endif
