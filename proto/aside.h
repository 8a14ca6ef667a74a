#ifndef PROTO_ASIDE_H
#define PROTO_ASIDE_H
/*
 * One blocking call on a thread of its own, whose end the loop learns. Not uv's pool: nng 1.5.2 can block for
 * ever in a dial or a close, and four of those would end the pool. Such a call is abandoned: its thread and
 * what it works on stay behind, the program goes on. Owned by who starts it; the loop's thread.
 */
#include "common/base.h"

#include <uv.h>

struct aside;

/* Runs work(arg) on a new thread, then done(arg) on the loop; it is gone by then. */
struct aside *aside_start(uv_loop_t *loop, void (*work)(void *arg), void (*done)(void *arg), void *arg);

/* Neither waits nor calls done any more. `arg` must stay valid for ever. */
void aside_abandon(struct aside **w);

#endif
