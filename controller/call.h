#ifndef CONTROLLER_CALL_H
#define CONTROLLER_CALL_H
/*
 * The line between one job's thread and the controller's loop. The job thread sends commands and waits for
 * events, as if every host were a function call away; the loop carries both. Two queues under one mutex; the
 * only thing the two threads share. Made and freed by the loop's side, when the job's thread is not there.
 *
 * Bounds: a host has at most FLEET_UNSETTLED_MAX events here; a job has at most CALL_OPS_MAX orders to the
 * loop, after which the job thread waits.
 */
#include "common/err.h"
#include "proto/msg.h"

#define CALL_OPS_MAX   256u
#define CALL_HOSTS_MAX 1024u

struct call;

/* What the people who watch see now. */
struct call_view {
    char doing[512];
    uint32_t windows_done;
    uint32_t windows_total;
    uint64_t step_end_ns; /* monotonic: when what goes on should be over */
    uint64_t then_ns;     /* what the schedule has after that */
    uint64_t ok_per_s;
};

/* The time left, by the schedule: it does not run down while something takes longer than planned. */
uint64_t call_view_left_ns(const struct call_view *view, uint64_t now_ns);

struct call_options {
    size_t host_count;
    void (*wake)(void *arg); /* any thread: the loop should call call_take */
    void *arg;
};

struct call *call_new(const struct call_options *options);
void call_free(struct call *c);

/* ---- loop's side --------------------------------------------------------------------------------- */

#define CALL_OP_LIST(X)                                                                                      \
    X(COMMAND)                                                                                               \
    X(SETTLE) /* events of `host` up to `number` are dealt with */                                           \
    X(VIEW)                                                                                                  \
    X(ENDED) /* the thread returns: join it */
enum call_op_kind {
#define X(name) CALL_OP_##name,
    CALL_OP_LIST(X)
#undef X
        CALL_OP_COUNT
};

struct call_op {
    enum call_op_kind kind;
    uint32_t host;
    uint64_t number; /* SETTLE */
    uint64_t tag;    /* COMMAND */
    struct msg_command command;
    struct call_view view;
};
void call_op_fini(struct call_op *op);

/* The oldest order of the job thread; false when there is none. The caller finis it. */
bool call_take(struct call *c, struct call_op *out);

/* `e` is copied; its `answers` is the tag. */
void call_deliver(struct call *c, uint32_t host, const struct msg_event *e);
/* The first cause counts: what the job thread waits for fails with it from now on. */
void call_fail(struct call *c, enum err code, const char *cause);

/* ---- job's side ---------------------------------------------------------------------------------- */

struct call_event {
    uint32_t host;
    struct msg_event event; /* owned; `answers` is the tag of the command it answers, 0 = unasked */
};
void call_event_fini(struct call_event *e);

/* Sends a copy. Returns the tag that the answer will carry; never 0. */
uint64_t call_send(struct call *c, uint32_t host, const struct msg_command *command);

/*
 * The next event, or ERR_TIMEOUT at `deadline_ns`, or the code and cause of call_fail. Whatever was taken
 * before is settled by this call, unless held.
 */
NODISCARD enum err call_next(struct call *c, uint64_t deadline_ns, struct call_event *out,
                             struct err_detail *d);

/* From now on events of this host are not settled when the next is taken, until call_settle: for a result on
 * its way into the store. Nothing else of this host arrives meanwhile. */
void call_hold(struct call *c, uint32_t host);
/* Everything taken so far is dealt with. */
void call_settle(struct call *c);

/* After this, call_next ignores call_fail: hosts that are left are still to be closed. */
void call_ignore_failure(struct call *c);

void call_tell(struct call *c, const struct call_view *view);
/* The last thing a job thread does. */
void call_end(struct call *c);

#endif
