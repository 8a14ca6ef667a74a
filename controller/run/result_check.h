#ifndef CONTROLLER_RUN_RESULT_CHECK_H
#define CONTROLLER_RUN_RESULT_CHECK_H
/*
 * What a load host's result must hold to be believed: agents are not trusted, and a figure that cannot be
 * would stand in a table like any other. Pure; any thread.
 */
#include "common/err.h"
#include "proto/msg/msg.h"

/* The window has the length that was asked for, the latency histogram holds each ok request once, and the
 * error classes add up to the failures. ERR_INVALID: `d` says which does not. */
NODISCARD enum err result_check(const struct msg_loaded *l, uint64_t duration_ns, struct err_detail *d);

#endif
