#ifndef TESTS_SUPPORT_RAW_PEER_H
#define TESTS_SUPPORT_RAW_PEER_H
/*
 * A peer that keeps no rules: bytes by hand over a socket, with or without TLS, framed as nng does
 * (SP header, length, request number) or not at all. Blocking, with a time limit; one thread.
 */
#include "proto/identity.h"

struct raw_peer;

/* Connects and, with TLS, shakes hands; `id` may be NULL or hold only a certificate and key. NULL on failure.
 */
struct raw_peer *raw_open_ipc(const char *path);
struct raw_peer *raw_open_tls(int port, const struct identity *id);
struct raw_peer *raw_open_tcp(int port);
/* TLS begun with a ClientHello and not gone on with. */
struct raw_peer *raw_open_half_tls(int port);
void raw_free(struct raw_peer *p);
/* The same with a reset: what the other side still sends fails at once. */
void raw_reset(struct raw_peer *p);

/* Bytes as they are. False when the other side is gone. */
bool raw_send(struct raw_peer *p, const void *data, size_t len);

/* The SP header of a REQ socket, and the other side's. */
bool raw_greet(struct raw_peer *p);

/* One nng message with this request number. */
bool raw_send_frame(struct raw_peer *p, uint32_t number, const void *data, size_t len);
bool raw_send_msg(struct raw_peer *p, uint32_t number, const struct msg *m);

/* Whether something can be read now, or within `ms`. */
bool raw_readable(struct raw_peer *p, int ms);

/* The next message, decoded; false when the connection ends or nothing comes within five seconds. */
bool raw_receive(struct raw_peer *p, struct msg *out);

/* Whether the other side has closed by now; what it sent before is dropped. */
bool raw_closed(struct raw_peer *p);

#endif
