#include "tests/support/wait.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
// clang-format on

#include <poll.h>

uint64_t wait_limit(void)
{
    return clock_now_ns() + WAIT_NS;
}

bool wait_turn(uv_loop_t *loop, uint64_t limit_ns)
{
    uint64_t now_ns = clock_now_ns();
    if (now_ns >= limit_ns)
        return false;
    uv_update_time(loop);
    int left_ms = (int)((limit_ns - now_ns) / NS_PER_MS) + 1;
    int timeout_ms = uv_backend_timeout(loop); /* to its next timer, -1 for none, 0 when it must run now */
    struct pollfd events = {.fd = uv_backend_fd(loop), .events = POLLIN};
    if (timeout_ms != 0)
        (void)poll(&events, 1, timeout_ms > 0 && timeout_ms < left_ms ? timeout_ms : left_ms);
    (void)uv_run(loop, UV_RUN_NOWAIT);
    return true;
}

static void turn_or_fail(uv_loop_t *loop, uint64_t limit_ns, const char *what)
{
    if (!wait_turn(loop, limit_ns))
        fail_msg("waited too long for %s", what);
}

void wait_flag(uv_loop_t *loop, const bool *flag, const char *what)
{
    for (uint64_t limit_ns = wait_limit(); !*flag;)
        turn_or_fail(loop, limit_ns, what);
}

void wait_until(uv_loop_t *loop, bool (*over)(void *arg), void *arg, const char *what)
{
    for (uint64_t limit_ns = wait_limit(); !over(arg);)
        turn_or_fail(loop, limit_ns, what);
}
