#ifndef TESTS_SUPPORT_WAIT_H
#define TESTS_SUPPORT_WAIT_H
/*
 * A test's loop runs until something has happened, and no longer than a limit. The limit is no handle of the
 * loop: a loop that has nothing left to do can still be seen to end. One thread.
 */
#include "common/clock.h"

#include <uv.h>

#define WAIT_NS (60 * NS_PER_S) /* far beyond anything that happens on a busy machine */

/* WAIT_NS from now, for wait_turn. */
uint64_t wait_limit(void);

/* One turn of the loop, which waits for its next event. False when the limit has passed: say what did not
 * come. */
bool wait_turn(uv_loop_t *loop, uint64_t limit_ns);

/* Turns until `*flag` is set, or until over(arg). Beyond WAIT_NS the running cmocka test fails and names
 * `what`. */
void wait_flag(uv_loop_t *loop, const bool *flag, const char *what);
void wait_until(uv_loop_t *loop, bool (*over)(void *arg), void *arg, const char *what);

#endif
