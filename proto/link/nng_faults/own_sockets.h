#ifndef PROTO_LINK_NNG_FAULTS_OWN_SOCKETS_H
#define PROTO_LINK_NNG_FAULTS_OWN_SOCKETS_H
/*
 * The sockets of this process, found through /proc/self/fd: nng does not give its own out, and there are
 * things that it cannot do with them (proto/link/nng_faults/link_guard.h,
 * proto/link/nng_faults/shut_first.h). Any thread; no state.
 */
#include "common/base.h"

#include <netinet/in.h>

struct own_socket {
    int fd; /* of another owner, who may close it at any moment: for a shutdown within the visit, no more */
    bool ipc;
    struct in6_addr remote; /* IPv4 is mapped */
    uint16_t local_port;
    uint16_t remote_port;
    char remote_path[109]; /* ipc: of a socket that dialled */
};

/* Calls `visit` for every connected TCP or unix stream socket. */
void own_sockets_visit(void (*visit)(void *arg, const struct own_socket *s), void *arg);

#endif
