#ifndef AGENT_LOAD_TLS_H
#define AGENT_LOAD_TLS_H
/*
 * TLS as a filter between bytes on the wire and bytes of HTTP: what comes from the peer is fed in, what goes
 * to the peer is taken out, and no socket is ever touched. One config for the process, made by main and read
 * by all threads; one session per connection. No session is ever resumed: every hand-shake is a full one.
 */
#include "common/buf.h"
#include "common/err.h"

struct tls_config;
struct tls;

struct tls_options {
    bool insecure;           /* accept any certificate */
    const char *ca_file;     /* PEM; NULL: the system's */
    const char *server_name; /* for SNI and for the certificate; an IP address is checked, but not sent */
};

NODISCARD enum err tls_config_new(struct tls_config **out, const struct tls_options *options,
                                  struct err_detail *d);
void tls_config_free(struct tls_config *c);

enum tls_result {
    TLS_OK,
    TLS_WANT_MORE, /* everything fed in is used up */
    TLS_CLOSED,    /* the peer said that it is done */
    TLS_UNTRUSTED, /* the certificate */
    TLS_FAILED
};

struct tls *tls_new(const struct tls_config *c);
void tls_free(struct tls *t);

/* Borrows `data` until a call below returns TLS_WANT_MORE or something worse. */
void tls_feed(struct tls *t, const uint8_t *data, size_t len);
enum tls_result tls_handshake(struct tls *t);
enum tls_result tls_read(struct tls *t, uint8_t *out, size_t size, size_t *len);
enum tls_result tls_write(struct tls *t, const uint8_t *data, size_t len);

/* Bytes for the peer, valid until the next call of this function; false when there are none. */
bool tls_take_output(struct tls *t, const uint8_t **data, size_t *len);

/* Why the last call was not TLS_OK, for a person. */
const char *tls_error_text(const struct tls *t);

#endif
