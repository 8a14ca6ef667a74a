#ifndef AGENT_LOAD_CONN_OPENING_H
#define AGENT_LOAD_CONN_OPENING_H
/*
 * The first part of a connection's life: socket, TCP, TLS, and waiting before the next attempt. Only
 * conn.c uses these, mostly in its table of handlers. Worker's thread.
 */
#include "agent/load/conn.h"

void opening_on_opened(struct worker *w, struct conn *c, const struct conn_input *in);
void opening_on_failed(struct worker *w, struct conn *c, const struct conn_input *in);
void opening_on_expired(struct worker *w, struct conn *c, const struct conn_input *in);
void opening_on_backoff_over(struct worker *w, struct conn *c, const struct conn_input *in);
void opening_on_ended(struct worker *w, struct conn *c, const struct conn_input *in); /* in the hand-shake */

/* Why a connection could not be opened. */
struct opening_failure {
    enum fault_phase phase;
    enum fault_cause cause;
    const char *text;
};

/* Opening has failed, and so has the request that waited for it; after a while it is tried again. */
void opening_fail(struct worker *w, struct conn *c, const struct opening_failure *f);
/* Closes, and opens again after a while, which grows with each failure in a row. */
void opening_back_off(struct worker *w, struct conn *c);

/* Bytes came while the hand-shake is under way: goes on with it. State HANDSHAKE only. */
void opening_shake_hands(struct worker *w, struct conn *c);

#endif
