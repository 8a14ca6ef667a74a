#ifndef TESTS_SUPPORT_NNG_REPRODUCERS_H
#define TESTS_SUPPORT_NNG_REPRODUCERS_H
/*
 * The smallest program against nng alone that shows a fault of proto/link/nng_faults/faults.h. Each is for a
 * process of its own: it leaves threads and sockets behind, and with the fault it may hang or abort. What it
 * needs itself and does not get ends the process with status REPRODUCER_BROKEN.
 */
#include "proto/identity/identity.h"

#define REPRODUCER_BROKEN 3

struct reproducer_place {
    const char *dir;                 /* of its own: sockets */
    const struct identity *identity; /* of a controller */
};

/* True when the fault was seen, within `tries`. */
typedef bool reproducer(const struct reproducer_place *place, unsigned tries);

reproducer reproduce_greeting_ends_listener;
reproducer reproduce_close_hangs;
reproducer reproduce_abort_is_early;
reproducer reproduce_dial_never_ends;
reproducer reproduce_context_outlives_socket;
reproducer reproduce_redials_at_once;
reproducer reproduce_handshake_never_ends; /* takes longer than nng's own limit of 10 s for a greeting */
reproducer reproduce_end_unnoticed;        /* the same */

#endif
