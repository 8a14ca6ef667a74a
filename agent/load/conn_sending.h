#ifndef AGENT_LOAD_CONN_SENDING_H
#define AGENT_LOAD_CONN_SENDING_H
/*
 * All that leaves on a connection: requests, the words of a TLS session, and the end. Only conn.c and
 * conn_opening.c use these. Worker's thread.
 */
#include "agent/load/conn_set.h"

/* Sends a request that was due at `intended_ns`. Returns the next state. */
enum conn_state sending_begin(struct conn_set *s, struct conn *c, uint64_t intended_ns);

/* The connection is open and has no request: sends the next one or leaves it idle. Returns the next state. */
enum conn_state sending_next(struct conn_set *s, struct conn *c);

/* More may leave now: what the TLS session has held back. Returns the next state. */
enum conn_state sending_go_on(struct conn_set *s, struct conn *c);

/* Sends what the TLS session has to say, unless the transport is still busy with the last of it. */
void sending_flush(struct conn_set *s, struct conn *c);

/* The TLS session has failed: the alert that tells the peer why goes out before all else. Close it then. */
void sending_alert(struct conn_set *s, struct conn *c);

/* All that the transport was given has left, as far as anybody knows: counts it. */
void sending_count_all(struct conn_set *s, struct conn *c);

/* Closes the socket without a word. A request in flight is the caller's to account for. */
void sending_close(struct conn_set *s, struct conn *c);

#endif
