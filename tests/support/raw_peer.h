#ifndef TESTS_SUPPORT_RAW_PEER_H
#define TESTS_SUPPORT_RAW_PEER_H
/*
 * A peer that keeps no rules: bytes by hand over a socket, with or without TLS, framed as nng does (SP
 * header, length, request number) or not at all. Blocking, with a time limit; one thread; owned by the test.
 */
#include "proto/identity/identity.h"

struct raw_peer;

/* Connects. NULL on failure. */
struct raw_peer *raw_open_ipc(const char *path);
struct raw_peer *raw_open_tcp(const char *host, const char *port);
/* Safe on NULL. */
void raw_free(struct raw_peer *p);
/* The same with a reset: what the other side still sends fails at once. */
void raw_reset(struct raw_peer *p);

/* TLS on top, without looking at the server's certificate; with our own when `id` is not NULL. */
bool raw_start_tls(struct raw_peer *p, const struct identity *id);
/* Only the ClientHello of it. */
bool raw_start_half_tls(struct raw_peer *p);

/* Bytes as they are. False when the other side is gone. */
bool raw_send(struct raw_peer *p, const void *data, size_t len);
/* Nothing comes after this. */
void raw_end_sending(struct raw_peer *p);

/* The SP header of a REQ socket, and the other side's. */
bool raw_greet(struct raw_peer *p);

/* A frame's header that says `len_said`, and these bytes. */
bool raw_send_frame(struct raw_peer *p, uint64_t len_said, const void *data, size_t len);
/* One nng message with this request number. */
bool raw_send_request(struct raw_peer *p, uint32_t number, const void *data, size_t len);
bool raw_send_msg(struct raw_peer *p, uint32_t number, const struct msg *m);

/* Whether something can be read now, or within `ms`. */
bool raw_readable(struct raw_peer *p, int ms);

enum raw_outcome {
    RAW_MESSAGE,
    RAW_CLOSED,
    RAW_SILENT,
    RAW_GARBAGE,
};

/* The next answer, waiting at most `timeout_ms` for each piece. `out` is filled for RAW_MESSAGE: msg_fini. */
enum raw_outcome raw_receive(struct raw_peer *p, struct msg *out, int timeout_ms);

/* Whether the other side has closed by now; what it sent before is dropped. */
bool raw_closed(struct raw_peer *p);

#endif
