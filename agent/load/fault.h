#ifndef AGENT_LOAD_FAULT_H
#define AGENT_LOAD_FAULT_H
/*
 * What can go wrong with a request: the phase it was in and the cause, counted, with the first text of
 * each kind. A bounded table, the same in every report. Owned by one worker; merged after the threads end.
 */
#include "common/base.h"

#define FAULT_PHASES(X)                                                                                      \
    X(RESOLVE, "resolve")                                                                                    \
    X(CONNECT, "connect")                                                                                    \
    X(TLS, "tls")                                                                                            \
    X(SEND, "send")                                                                                          \
    X(WAIT, "wait")                                                                                          \
    X(RECEIVE, "receive")

/* closed_early: the peer ended the connection before the answer was whole. stale: it did so on a kept-alive
 * connection before the first byte of the answer. version to verify: of TLS, the last three about the
 * server's certificate. local: this host ran out of ports, files or memory. */
#define FAULT_CAUSES(X)                                                                                      \
    X(REFUSED, "refused")                                                                                    \
    X(RESET, "reset")                                                                                        \
    X(CLOSED_EARLY, "closed_early")                                                                          \
    X(STALE, "stale")                                                                                        \
    X(TIMEOUT, "timeout")                                                                                    \
    X(UNREACHABLE, "unreachable")                                                                            \
    X(NOT_FOUND, "not_found")                                                                                \
    X(PROTOCOL, "protocol")                                                                                  \
    X(DESYNC, "desync")                                                                                      \
    X(TOO_BIG, "too_big")                                                                                    \
    X(STATUS, "status")                                                                                      \
    X(CHECK, "check")                                                                                        \
    X(VERSION, "version")                                                                                    \
    X(CIPHER, "cipher")                                                                                      \
    X(CERTIFICATE_WANTED, "certificate_wanted")                                                              \
    X(WRONG_NAME, "wrong_name")                                                                              \
    X(EXPIRED, "expired")                                                                                    \
    X(VERIFY, "verify")                                                                                      \
    X(LOCAL, "local")                                                                                        \
    X(OTHER, "other")

enum fault_phase {
#define X(name, text) FAULT_##name,
    FAULT_PHASES(X)
#undef X
        FAULT_PHASE_COUNT
};

enum fault_cause {
#define X(name, text) CAUSE_##name,
    FAULT_CAUSES(X)
#undef X
        FAULT_CAUSE_COUNT
};

#define FAULT_SAMPLE_BYTES 112u

struct fault {
    enum fault_phase phase;
    enum fault_cause cause;
    const char *text; /* borrowed */
};

struct fault_cell {
    uint64_t count;
    char sample[FAULT_SAMPLE_BYTES]; /* of the first one; printable ASCII */
};

struct fault_table {
    struct fault_cell cells[FAULT_PHASE_COUNT][FAULT_CAUSE_COUNT];
};

const char *fault_phase_text(enum fault_phase phase);
const char *fault_cause_text(enum fault_cause cause);

/* The cause behind an errno of connect, send or receive. */
enum fault_cause fault_cause_of_errno(int errnum);

/* Counts one; keeps the text when it is the first of its kind (bytes that are not printable become '?'). */
void fault_note(struct fault_table *t, const struct fault *f);
void fault_merge(struct fault_table *t, const struct fault_table *from);
uint64_t fault_total(const struct fault_table *t);
uint64_t fault_total_of(const struct fault_table *t, enum fault_phase phase);

#endif
