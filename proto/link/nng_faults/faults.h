#ifndef PROTO_LINK_NNG_FAULTS_FAULTS_H
#define PROTO_LINK_NNG_FAULTS_FAULTS_H
/*
 * Which faults the nng has that we compile against. Each has its case in tests/unit/test_nng_faults.c, which
 * tries the nng that runs; docs/protocol.md says which versions were tried. What bends around a fault that
 * some version mended is compiled only where its macro is 1. Where no version has mended it, both the bend
 * and the macro wait for one.
 *
 * Two releases carry the version of an earlier one in their header: 1.9.0 says 1.8.0, 1.12.0 says 1.11.0.
 * There the macros are on the safe side.
 */
#include <nng/nng.h>

#define NNG_SINCE(major, minor)                                                                              \
    (NNG_MAJOR_VERSION > (major) || (NNG_MAJOR_VERSION == (major) && NNG_MINOR_VERSION >= (minor)))

/* A peer that is gone before nng has sent its greeting ends the listener: EPIPE becomes NNG_ECLOSED, which
 * the accept loop takes for its own end. Mended in 1.6.0. Bent by proto/link/nng_faults/sendmsg.c. */
#define NNG_FAULT_GREETING_ENDS_LISTENER (!NNG_SINCE(1, 6))

/* A pipe that is closed while a message comes in hangs the thread that reaps pipes, and with it every later
 * close. Mended in 1.9.0, undone in 1.12.0. Bent by proto/link/nng_faults/shut_first.c. */
#define NNG_FAULT_CLOSE_HANGS (!NNG_SINCE(1, 10) || NNG_SINCE(1, 11))

/* What is aborted, stopped or closed in the moment in which it begins or ends is taken for over too early,
 * and may be freed under the thread that ends it: the program aborts. Since 1.9.0, mended in 1.12.0. Bent by
 * queue_messages in proto/link/link_server.c. */
#define NNG_FAULT_ABORT_IS_EARLY (NNG_SINCE(1, 8) && !NNG_SINCE(1, 12))

/* A dial that is cancelled in its first instructions never ends. Not mended. Bent by proto/link/attempt.c. */
#define NNG_FAULT_DIAL_NEVER_ENDS 1

/* A socket can be closed before the last user of one of its contexts is out of it: the program aborts. Not
 * mended. Bent by proto/link/attempt.c. */
#define NNG_FAULT_CONTEXT_OUTLIVES_SOCKET 1

/* A TLS hand-shake that does not come is waited for for ever. Not mended. Bent by
 * proto/link/nng_faults/link_guard.c. */
#define NNG_FAULT_HANDSHAKE_NEVER_ENDS 1

/* A peer that closes between hand-shake and greeting can go unnoticed: its descriptor and 70 KB stay until
 * the listener is closed. Not mended, and nothing from outside helps. */
#define NNG_FAULT_END_UNNOTICED 1

/* A lost connection is dialled anew at once, whatever the back-off, half of the time: a random number is
 * taken for a signed one. Mended in 1.10.0. Bent by what is needed anyway, since dialling again is ours: a
 * lost connection's dialer is closed (proto/link/attempt.c). */
#define NNG_FAULT_REDIALS_AT_ONCE (!NNG_SINCE(1, 10))

#endif
