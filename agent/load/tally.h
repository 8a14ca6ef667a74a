#ifndef AGENT_LOAD_TALLY_H
#define AGENT_LOAD_TALLY_H
/*
 * Everything one worker measures. Owned by the worker while it runs; merged into one by main afterwards.
 */
#include "agent/load/accounts.h"
#include "agent/load/agreement.h"
#include "agent/load/audit.h"
#include "agent/load/fault.h"
#include "agent/load/request_set.h"
#include "common/hist.h"

#define TALLY_STATUS_MAX 1000u

/* The histograms, all in ns: name, key in the result, the runs that have it, whether the result holds it
 * whole or its figures alone, and whether it is of the window or of the whole run. */
#define TALLY_HISTS(X)                                                                                       \
    /* ok requests, from when they were due */                                                               \
    X(LATENCY, "latency", ANY_RUN, WHOLE, WINDOW)                                                            \
    /* requests that timed out: they took at least this long */                                              \
    X(TIMEOUTS, "timeouts", ANY_RUN, FIGURES, WINDOW)                                                        \
    /* requests that were answered, but failed */                                                            \
    X(FAILED, "failed", ANY_RUN, FIGURES, WINDOW)                                                            \
    /* opening a connection, before TLS */                                                                   \
    X(CONNECT, "connect", ANY_RUN, FIGURES, RUN)                                                             \
    /* how late the loop came to its ticks */                                                                \
    X(LOOP_LAG, "loop_lag", ANY_RUN, FIGURES, WINDOW)                                                        \
    /* full hand-shakes */                                                                                   \
    X(HANDSHAKE, "handshake", TLS, WHOLE, RUN)                                                               \
    /* hand-shakes that went on with an earlier session */                                                   \
    X(HANDSHAKE_RESUMED, "handshake_resumed", TLS, WHOLE, RUN)                                               \
    /* ok requests, from when they were sent */                                                              \
    X(SERVICE, "service", OPEN_LOOP, WHOLE, WINDOW)                                                          \
    /* from when a request was due until it was sent */                                                      \
    X(SEND_LAG, "send_lag", OPEN_LOOP, WHOLE, WINDOW)                                                        \
    /* the same, of those requests for which a connection was free */                                        \
    X(OWN_LAG, "own_lag", OPEN_LOOP, FIGURES, WINDOW)

enum tally_hist {
#define X(name, ...) TALLY_##name,
    TALLY_HISTS(X)
#undef X
        TALLY_HIST_COUNT
};

enum tally_runs { TALLY_ANY_RUN, TALLY_TLS, TALLY_OPEN_LOOP };
enum tally_form { TALLY_FIGURES, TALLY_WHOLE };
enum tally_time { TALLY_WINDOW, TALLY_RUN };

struct tally_hist_row {
    const char *key;
    enum tally_runs runs;
    enum tally_form form;
    enum tally_time time;
};

extern const struct tally_hist_row tally_hist_rows[TALLY_HIST_COUNT];

struct tally {
    struct accounts accounts[PHASE_COUNT];
    struct fault_table faults[PHASE_COUNT];
    uint64_t status[TALLY_STATUS_MAX]; /* of whole answers in the window */
    struct agreement_table agreement;
    struct audit audit;
    struct tally_request {
        uint64_t ok;
        uint64_t failed;
    } requests[REQUESTS_MAX]; /* of the window */
    uint64_t cpu_user_ns;     /* of the thread in the window */
    uint64_t cpu_system_ns;
    struct hist hists[TALLY_HIST_COUNT]; /* by enum tally_hist */
};

struct tally *tally_new(void);
void tally_free(struct tally *t);
void tally_merge(struct tally *t, const struct tally *from);

#endif
