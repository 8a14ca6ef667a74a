#ifndef PROTO_LINK_NNG_FAULTS_LINK_GUARD_H
#define PROTO_LINK_NNG_FAULTS_LINK_GUARD_H
/*
 * Ends TCP connections that never become a pipe: NNG_FAULT_HANDSHAKE_NEVER_ENDS
 * (proto/link/nng_faults/faults.h), by which a stranger could hold every descriptor. The guard looks through
 * the process's own sockets for connections to a listening port that nng has not announced, and shuts down
 * those that stay so. Owned by the server; the loop's thread.
 *
 * Limits: GUARD_SHY_NS for a handshake; with more than GUARD_STRANGERS_MAX waiting, GUARD_CROWDED_NS.
 */
#include "common/clock.h"
#include "proto/link/nng_faults/own_sockets.h"

#define GUARD_PORTS_MAX     8u
#define GUARD_STRANGERS_MAX 1024u
#define GUARD_SHY_NS        (10 * NS_PER_S)
#define GUARD_CROWDED_NS    (2 * NS_PER_S)

struct guard_stranger {
    uint64_t cookie; /* the kernel's name of the socket: never used twice */
    uint64_t since_ns;
};

struct link_guard {
    uint16_t ports[GUARD_PORTS_MAX]; /* listened on, host order */
    size_t port_count;
    struct guard_stranger *strangers; /* sorted by cookie */
    size_t stranger_count;
    bool (*is_known)(void *arg, const struct own_socket *s); /* nng has announced its pipe */
    void *arg;
};

void guard_fini(struct link_guard *g);

/* Watches one more port; beyond GUARD_PORTS_MAX it is not watched. */
void guard_add_port(struct link_guard *g, uint16_t port);

/* Whether this is a connection to a watched port. */
bool guard_watches(const struct link_guard *g, const struct own_socket *s);

/* One look around; returns how many connections were shut down. */
size_t guard_check(struct link_guard *g, uint64_t now_ns);

#endif
