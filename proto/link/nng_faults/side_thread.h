#ifndef PROTO_LINK_NNG_FAULTS_SIDE_THREAD_H
#define PROTO_LINK_NNG_FAULTS_SIDE_THREAD_H
/*
 * One blocking call on a thread of its own, whose end the loop learns. Not uv's pool: a dial or a close of
 * nng's can block for ever (proto/link/nng_faults/faults.h), and four of those would end the pool. With a
 * limit such a call is abandoned: its thread and what it works on stay behind, the program goes on. Owned by
 * who starts it; the loop's thread.
 */
#include "common/base.h"

#include <uv.h>

struct side_thread;

/* Runs work(arg) on a new thread, then done(arg, false) on the loop; it is gone by then. */
struct side_thread *side_thread_start(uv_loop_t *loop, void (*work)(void *arg),
                                      void (*done)(void *arg, bool abandoned), void *arg);

/* From now on it has so long. Beyond that it is abandoned: done(arg, true), and `arg` must stay valid for
 * ever. */
void side_thread_limit(struct side_thread *w, unsigned limit_ms);

#endif
