#ifndef CONTROLLER_RUN_CHANNEL_H
#define CONTROLLER_RUN_CHANNEL_H
/*
 * The line between one job's thread and the controller's loop. The job thread sends commands and waits for
 * events, as if every host were a function call away; the loop carries both. Two queues under one mutex; the
 * only thing the two threads share. Made and freed by the loop's side, when the job's thread is not there.
 *
 * An event is settled when the job has done with it all that must outlive a crash; the loop then lets its
 * agent forget it.
 *
 * Bounds: a host has at most FLEET_UNSETTLED_MAX events here; a job has at most CHANNEL_OPS_MAX orders to the
 * loop, after which the job thread waits.
 */
#include "common/clock.h"
#include "common/err.h"
#include "proto/msg/msg.h"

#define CHANNEL_OPS_MAX 256u
#define CHANNEL_LATE_NS (1 * NS_PER_S) /* woken so late, the controller itself did not run */

struct channel;

/* What the people who watch see now. */
struct channel_view {
    char doing[512];
    uint32_t windows_done;
    uint32_t windows_total;
    uint64_t step_end_ns; /* monotonic: when what goes on should be over */
    uint64_t then_ns;     /* what the schedule has after that */
    uint64_t ok_per_s;
};

/* The time left, by the schedule: it does not run down while something takes longer than planned. */
uint64_t channel_view_left_ns(const struct channel_view *view, uint64_t now_ns);

struct channel_options {
    size_t host_count;
    void (*wake)(void *arg); /* any thread: the loop should call channel_take */
    void *arg;
};

struct channel *channel_new(const struct channel_options *options);
void channel_free(struct channel *c);

/* ---- loop's side ---------------------------------------------------------------------------------- */

#define CHANNEL_OP_LIST(X)                                                                                   \
    X(COMMAND)                                                                                               \
    X(SETTLE) /* events of `host` up to `number` are settled */                                              \
    X(VIEW)                                                                                                  \
    X(ENDED) /* the thread returns: join it */
enum channel_op_kind {
#define X(name) CHANNEL_OP_##name,
    CHANNEL_OP_LIST(X)
#undef X
        CHANNEL_OP_COUNT
};

struct channel_op {
    enum channel_op_kind kind;
    uint32_t host;
    uint64_t number; /* SETTLE */
    uint64_t tag;    /* COMMAND */
    struct msg_command command;
    struct channel_view view;
};
void channel_op_fini(struct channel_op *op);

/* The oldest order of the job thread; false when there is none. The caller finis it. */
bool channel_take(struct channel *c, struct channel_op *out);

/* `e` is copied; its `answers` is the tag. */
void channel_deliver(struct channel *c, uint32_t host, const struct msg_event *e);
/* The first cause counts: what the job thread waits for fails with it from now on. */
void channel_fail(struct channel *c, enum err code, const char *cause);

/* ---- job's side ----------------------------------------------------------------------------------- */

struct channel_event {
    uint32_t host;
    struct msg_event event; /* owned; `answers` is the tag of the command it answers, 0 = unasked */
};
void channel_event_fini(struct channel_event *e);

/* Sends a copy. Returns the tag that the answer will carry; never 0. */
uint64_t channel_send(struct channel *c, uint32_t host, const struct msg_command *command);

/*
 * The next event, or ERR_TIMEOUT at `deadline_ns` (later by CHANNEL_LATE_NS when the controller did not run
 * at that time: what came is with the loop still), or the code and cause of channel_fail. Whatever was taken
 * before is settled by this call, unless held.
 */
NODISCARD enum err channel_next(struct channel *c, uint64_t deadline_ns, struct channel_event *out,
                                struct err_detail *d);

/* From now on events of this host are not settled when the next is taken, until channel_settle: for a result
 * on its way into the store. Nothing else of this host arrives meanwhile. */
void channel_hold(struct channel *c, uint32_t host);
/* Everything taken so far is settled. */
void channel_settle(struct channel *c);

/* After this, channel_next ignores channel_fail: hosts that are left are still to be closed. */
void channel_ignore_failure(struct channel *c);

void channel_show(struct channel *c, const struct channel_view *view);
/* The last thing a job thread does. */
void channel_end(struct channel *c);

#endif
