#ifndef AGENT_LOAD_METER_H
#define AGENT_LOAD_METER_H
/*
 * What connections record, and to which phase of the run it counts: the phase in which it is heard of. Owned
 * by one worker and used on its thread alone; main reads `public` meanwhile, and the tally after the thread's
 * end.
 */
#include "agent/load/interval.h"
#include "agent/load/tally.h"

#include <stdatomic.h>

/* How it goes, for main. */
struct meter_public {
    _Atomic uint64_t ok; /* in the window, so far; as the next */
    _Atomic uint64_t failed;
    _Atomic uint32_t untried; /* connections whose first attempt to open has not ended yet */
    _Atomic bool opened;      /* a connection, at least once */
};

struct meter {
    uint64_t now_ns; /* of the event being handled */
    enum run_phase phase;
    bool open_loop;
    uint64_t in_flight;        /* requests */
    struct accounts *accounts; /* of the phase */
    struct tally *tally;
    struct interval *interval; /* being filled; NULL outside the window */
    uint64_t failed_before;    /* requests of the window, when the interval began */
    struct meter_public public;
};

/* What the meter keeps of a request. */
struct meter_request {
    uint32_t index;       /* in the set of requests */
    uint64_t intended_ns; /* when it was due */
    uint64_t sent_ns;     /* when it was handed to the kernel */
};

/* In the phase before the window, with as many connections to be opened. */
void meter_init(struct meter *m, uint32_t connections, bool open_loop);
void meter_fini(struct meter *m);

/* The next phase begins; requests in flight are carried into it. */
void meter_enter(struct meter *m, enum run_phase phase);
/* Within the window, at its start or where another interval has just ended. */
void meter_start_interval(struct meter *m, uint64_t index, uint64_t start_ns);
/* The interval goes into the box. */
void meter_end_interval(struct meter *m, uint64_t end_ns, struct interval_box *box);
/* Shows main how many requests of the window have ended. */
void meter_publish(struct meter *m);

/* A value of the phase; not kept where the histogram is of another one. */
static inline void meter_record(struct meter *m, enum tally_hist h, uint64_t ns)
{
    if (m->phase == PHASE_WINDOW || tally_hist_rows[h].time == TALLY_RUN)
        hist_record(&m->tally->hists[h], ns);
}

/* A request is sent. It ends with meter_fail, or with meter_answer and one of the two after it. */
static inline void meter_send(struct meter *m)
{
    m->in_flight++;
    m->accounts->sent++;
}

/* Its answer is there, whole. */
void meter_answer(struct meter *m, uint16_t status);
/* The answer is as expected, */
void meter_ok(struct meter *m, const struct meter_request *r, uint64_t body_bytes);
/* or it is not. */
void meter_refuse(struct meter *m, const struct meter_request *r, const struct fault *f);

/* A request will have no answer. */
void meter_fail(struct meter *m, const struct meter_request *r, const struct fault *f);
/* A request fails that could not even be sent. */
void meter_fail_unsent(struct meter *m, const struct fault *f);

/* A connection's first attempt to open has ended, well or not. */
void meter_tried(struct meter *m, bool opened);
/* A TLS hand-shake is over, after `ns`. */
void meter_agreed(struct meter *m, const struct tls_agreed *agreed, uint64_t ns);

#endif
