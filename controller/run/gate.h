#ifndef CONTROLLER_RUN_GATE_H
#define CONTROLLER_RUN_GATE_H
/*
 * What makes an attempt valid or not. Pure: figures in, the first gate that failed out, with a sentence that
 * names its figure. Any thread.
 */
#include "controller/experiment/experiment.h"

#define GATE_REASON_BYTES 512u

#define GATE_LIST(X)                                                                                         \
    X(NONE, "")                                                                                              \
    X(SERVER_DIED, "server_died")                                                                            \
    X(GENERATOR_FAILED, "generator_failed")                                                                  \
    X(START_SKEW, "start_skew") /* the windows of several load hosts are not the same window */              \
    X(ACCOUNTS, "accounts")     /* what was sent and what came of it do not add up */                        \
    X(ZERO, "zero_completions")                                                                              \
    X(ERRORS, "errors")                                                                                      \
    X(SHORT_BODIES, "short_bodies")                                                                          \
    X(FOREIGN_CPU, "foreign_cpu")                                                                            \
    X(GENERATOR_CPU, "generator_cpu")
enum gate {
#define X(name, text) GATE_##name,
    GATE_LIST(X)
#undef X
        GATE_COUNT
};
const char *gate_name(enum gate g);

struct gate_figures {
    const char *server_agent;        /* where the server runs */
    const char *server_died;         /* how it ended, NULL when it lives */
    const char *generator_failed;    /* why there is no result, NULL when there is */
    const struct msg_loaded *loaded; /* NULL only when generator_failed is set */
    uint64_t start_skew_ns;          /* between the first and the last load host's window; 0 for one host */
    uint64_t start_skew_max_ns;
    double foreign_cpu_server; /* cores; negative = not known */
    double foreign_cpu_load;
    double generator_cpu; /* share of the CPUs it could use, 0..1; negative = not known */
};

/* GATE_NONE when the attempt is valid; `reason` is "" then. A gate whose figure is not known but asked for
 * fails. */
enum gate gate_judge(const struct experiment_gates *gates, const struct gate_figures *figures,
                     char reason[GATE_REASON_BYTES]);

#endif
