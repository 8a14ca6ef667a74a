#ifndef AGENT_PROBE_CHECK_H
#define AGENT_PROBE_CHECK_H
/*
 * One check: a request and whether its answer is the expected one, to the byte. Frees itself after its
 * callback, which runs exactly once, never inside check_start. Everything on the agent's loop.
 */
#include "agent/probe/http_response.h"
#include "proto/msg/msg.h"

#include <uv.h>

struct check;

/* `result` is borrowed for the call; its difference is "" when there is none. Every difference is named, long
 * texts are shortened, bytes that are no text are shown as \xNN; an answer that never came is a difference
 * too. `e` is ERR_OK or ERR_CANCELLED. */
typedef void check_cb(void *arg, enum err e, const struct msg_checked *result);

/* `what` is copied. ERR_INVALID for a request that cannot be sent (then `cb` never runs). */
NODISCARD enum err check_start(uv_loop_t *loop, const struct msg_check *what, check_cb *cb, void *arg,
                               struct check **out, struct err_detail *d);

/* The callback comes soon, with ERR_CANCELLED unless an end was already reached. Not after the callback. */
void check_cancel(struct check *check);

#endif
