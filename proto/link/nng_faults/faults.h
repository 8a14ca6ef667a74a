#ifndef PROTO_LINK_NNG_FAULTS_FAULTS_H
#define PROTO_LINK_NNG_FAULTS_FAULTS_H
/*
 * Which faults the nng has that we compile against. README.md beside this says what each is, what bends
 * around it, and which versions were tried. What bends around a fault that some version mended does so only
 * where its macro is 1; where no version has mended it, both wait for one.
 *
 * Two releases carry the version of an earlier one in their header: 1.9.0 says 1.8.0, 1.12.0 says 1.11.0.
 * There the macros are on the safe side.
 */
#include <nng/nng.h>

#define NNG_SINCE(major, minor)                                                                              \
    (NNG_MAJOR_VERSION > (major) || (NNG_MAJOR_VERSION == (major) && NNG_MINOR_VERSION >= (minor)))

/* Mended in 1.6.0. */
#define NNG_FAULT_GREETING_ENDS_LISTENER (!NNG_SINCE(1, 6))
/* Mended in 1.9.0, undone in 1.12.0. */
#define NNG_FAULT_CLOSE_HANGS (!NNG_SINCE(1, 10) || NNG_SINCE(1, 11))
/* Since 1.9.0, mended in 1.12.0. */
#define NNG_FAULT_ABORT_IS_EARLY (NNG_SINCE(1, 8) && !NNG_SINCE(1, 12))
/* Mended in 1.10.0. */
#define NNG_FAULT_REDIALS_AT_ONCE (!NNG_SINCE(1, 10))

#define NNG_FAULT_DIAL_NEVER_ENDS         1
#define NNG_FAULT_CONTEXT_OUTLIVES_SOCKET 1
#define NNG_FAULT_HANDSHAKE_NEVER_ENDS    1
#define NNG_FAULT_END_UNNOTICED           1

#endif
