#ifndef AGENT_PROBE_PROBE_H
#define AGENT_PROBE_PROBE_H
/*
 * Waits until a server that was just started answers: a connection accepted (TCP) or any HTTP answer at all,
 * tried once a millisecond, so that the startup time is known to about that. Frees itself after its callback,
 * which runs exactly once, never inside probe_start. Everything on the agent's loop.
 */
#include "proto/msg/msg.h"

#include <uv.h>

struct probe;

/* `startup_ns`: from `since_ns` to the first answer. ERR_TIMEOUT says what the last try met. */
typedef void probe_cb(void *arg, enum err e, uint64_t startup_ns, const struct err_detail *d);

struct probe_options {
    uv_loop_t *loop;
    enum msg_ready_kind kind; /* MSG_READY_TCP or MSG_READY_HTTP */
    const char *host;         /* "" = 127.0.0.1 */
    uint16_t port;
    const char *path;  /* HTTP only; "" = "/" */
    uint64_t since_ns; /* the spawn: startup time and time-out count from here */
    uint64_t timeout_ns;
    probe_cb *cb;
    void *arg;
};

NODISCARD enum err probe_start(const struct probe_options *options, struct probe **out, struct err_detail *d);

/* The callback comes soon, with ERR_CANCELLED unless an end was already reached. Not after the callback. */
void probe_cancel(struct probe *probe);

/* For the test of every pair, see common/machine.h. */
bool probe_permits(unsigned state, unsigned event);

#endif
