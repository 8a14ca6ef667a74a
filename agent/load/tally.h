#ifndef AGENT_LOAD_TALLY_H
#define AGENT_LOAD_TALLY_H
/*
 * Everything one worker measures. Owned by the worker while it runs; merged into one by main afterwards.
 */
#include "agent/load/accounts.h"
#include "agent/load/agreement.h"
#include "agent/load/audit.h"
#include "agent/load/fault.h"
#include "agent/load/request.h"
#include "common/hist.h"

#define TALLY_STATUS_MAX 1000u

struct tally {
    struct accounts accounts[PHASE_COUNT];
    struct fault_table faults[PHASE_COUNT];
    uint64_t status[TALLY_STATUS_MAX]; /* of whole answers in the window */
    struct hist *latency;              /* ok requests of the window, from when they were due, ns */
    struct hist *failed;               /* answered but failed requests of the window */
    struct hist *timeouts;             /* requests of the window that timed out: at least this long */
    struct hist *connect;              /* every connection opened: ns to open it */
    struct hist *handshake;            /* TLS, of every connection opened with a full one */
    struct hist *handshake_resumed;    /* and with one that went on with an earlier session */
    struct hist *service;              /* open loop: ok requests of the window, from when they were sent */
    struct hist *send_lag;             /* open loop: from due to sent, requests of the window */
    struct hist *own_lag;              /* of those, the ones for which a connection was free */
    struct hist *loop_lag;             /* how late the loop came to its ticks in the window */
    struct agreement_table agreement;
    struct audit audit;
    struct tally_request {
        uint64_t ok;
        uint64_t failed;
    } requests[REQUESTS_MAX]; /* of the window */
    uint64_t cpu_user_ns;     /* of the thread in the window */
    uint64_t cpu_system_ns;
};

struct tally *tally_new(void);
void tally_free(struct tally *t);
void tally_merge(struct tally *t, const struct tally *from);

#endif
