#ifndef AGENT_LOAD_CONN_OPENING_H
#define AGENT_LOAD_CONN_OPENING_H
/*
 * The first part of a connection's life: socket, TCP, TLS, and waiting before the next attempt. All return
 * the next state. Only conn.c uses these, mostly in its table of handlers. Worker's thread.
 */
#include "agent/load/conn_set.h"

enum conn_state opening_on_start(struct conn_set *s, struct conn *c, const struct conn_input *in);
enum conn_state opening_on_backoff_over(struct conn_set *s, struct conn *c, const struct conn_input *in);
enum conn_state opening_on_opened(struct conn_set *s, struct conn *c, const struct conn_input *in);
enum conn_state opening_on_failed(struct conn_set *s, struct conn *c, const struct conn_input *in);
enum conn_state opening_on_fed(struct conn_set *s, struct conn *c, const struct conn_input *in);
enum conn_state opening_on_ended(struct conn_set *s, struct conn *c, const struct conn_input *in);
enum conn_state opening_on_expired(struct conn_set *s, struct conn *c, const struct conn_input *in);

/* Opening has failed, and so has the request that waited for it; after a while it is tried again. */
enum conn_state opening_fail(struct conn_set *s, struct conn *c, const struct fault *f);
/* Closes, and opens again after a while, which grows with each failure in a row. */
enum conn_state opening_back_off(struct conn_set *s, struct conn *c);
/* Closes, and opens again at once. */
enum conn_state opening_again(struct conn_set *s, struct conn *c);

#endif
