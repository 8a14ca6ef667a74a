#ifndef CONTROLLER_FLEET_FLEET_H
#define CONTROLLER_FLEET_FLEET_H
/*
 * The agents: who is there, what they are, which job holds them and by what lease, the commands on their way
 * to each and the events that came from it. A pure machine: time comes in as an argument, everything that
 * leaves goes through handlers, so that tests need neither clock nor link. Loop thread.
 *
 * Delivery: a command stays queued until a poll says it was taken, so a lost answer is sent again. An event
 * is delivered once (by its number). It is settled when whoever got it has done with it all that must outlive
 * a crash: only then is it acknowledged, and the agent may forget it. A push is answered when what it brought
 * is settled, or after FLEET_PUSH_HOLD_NS with what is settled so far; the agent then sends the rest again.
 *
 * Fencing: an event is for the job only when it is of the run that holds the agent, and an answer only to a
 * command of this controller. All else is late, whatever its job's id and its number are.
 */
#include "common/clock.h"
#include "common/err.h"
#include "controller/experiment/experiment.h"
#include "proto/msg/msg.h"

#define FLEET_COMMANDS_MAX    4096u            /* queued for one agent; the job thread waits long before */
#define FLEET_ANSWER_BYTES    (1300u * 1024u)  /* of one answer to a poll: one chunk and small ones */
#define FLEET_PUSH_HOLD_NS    (20 * NS_PER_MS) /* a result waits for the store, events behind it do not */
#define FLEET_UNSETTLED_MAX   1024u            /* events of one agent delivered and not yet settled */
#define FLEET_LOST_EXTRA_NS   (1 * NS_PER_S)   /* silence beyond the lease before an agent counts as lost */
#define FLEET_POLLS_PER_LEASE 5u
/* Called later than it wanted by more than this, the controller itself did not run: it was stopped, or
 * starved. What agents said meanwhile is still unread, so their silence counts from then on. */
#define FLEET_PAUSE_NS (2 * NS_PER_S)

#define FLEET_STATE_LIST(X)                                                                                  \
    X(FREE, "free")                                                                                          \
    X(BUSY, "busy")       /* reserved by a job */                                                            \
    X(CLOSING, "closing") /* JOB_CLOSE is on its way or at work */
enum fleet_state {
#define X(name, text) FLEET_##name,
    FLEET_STATE_LIST(X)
#undef X
        FLEET_STATE_COUNT
};

const char *fleet_state_name(enum fleet_state s);

struct fleet;
struct fleet_agent; /* lives as long as the fleet */

/* `request` and `peer` are the link's, opaque here. */
struct fleet_handlers {
    void *arg;
    void (*answer_poll)(void *arg, void *request, const struct msg_command *const *items, size_t count);
    void (*answer_push)(void *arg, void *request, uint64_t acked_event);
    void (*refuse)(void *arg, void *request, enum err code, const char *why);
    void (*drop_peer)(void *arg, void *peer, const char *why);
    /* An event of the job that holds the agent, for its host number `host`. `e->answers` is the tag given
     * with the command, 0 when unasked. Settle it with fleet_settle. Borrowed. */
    void (*on_event)(void *arg, const char *job, uint32_t host, const struct msg_event *e);
    /* A result for no job that runs here: to be kept and then settled with fleet_settle_late. */
    void (*on_late)(void *arg, struct fleet_agent *agent, uint64_t incarnation, const struct msg_event *e);
    /* The job's host is gone: `cause` names it. The reservation of this host has ended. */
    void (*on_lost)(void *arg, const char *job, uint32_t host, const char *cause);
    /* An agent became free or appeared: a queued job may fit now. */
    void (*on_change)(void *arg);
};

struct fleet_options {
    uint64_t lease_ns;
    uint64_t incarnation; /* this controller's */
    struct fleet_handlers handlers;
};

struct fleet *fleet_new(const struct fleet_options *options);
void fleet_free(struct fleet *f); /* drops nothing at the link: held requests are forgotten */

/* ---- the link's side ------------------------------------------------------------------------------ */

/* A proved agent; a session of the same name that is still there is replaced. `address` is where it dialled
 * from. */
NODISCARD enum err fleet_hello(struct fleet *f, void *peer, const struct msg_hello *hello,
                               const char *address, uint64_t now_ns, struct fleet_agent **out,
                               uint64_t *acked_event, struct err_detail *d);
void fleet_gone(struct fleet *f, void *peer);
/* It may not come back: the job that it works for fails at once with `cause`. Unknown names are fine. */
void fleet_revoke(struct fleet *f, const char *name, const char *cause);
void fleet_poll(struct fleet *f, struct fleet_agent *a, void *request, uint64_t acked_command,
                uint64_t now_ns);
void fleet_push(struct fleet *f, struct fleet_agent *a, void *request, const struct msg_push *push,
                uint64_t now_ns);

/* Answers polls that have been held long enough and pushes that are due, notices silence. Returns the time at
 * which it wants to be called again. */
uint64_t fleet_tick(struct fleet *f, uint64_t now_ns);

/* ---- the jobs' side ------------------------------------------------------------------------------- */

struct fleet_host { /* borrowed from the agent until it is released */
    struct fleet_agent *agent;
    const char *name;
    const char *role;
    uint32_t ordinal; /* among the hosts of its role */
    uint64_t incarnation;
    const struct msg_host *facts;
    const char *address;
};

/* All hosts of the roles or none, for this run of the job (1, 2, ...). Fills `out` (room for the sum of
 * counts), in the order of `roles`; index in it is the host's number in handlers. ERR_BUSY when hosts exist
 * but are taken, ERR_NOT_FOUND when not even the whole fleet would do; both say which role is short. */
NODISCARD enum err fleet_reserve(struct fleet *f, const char *job, uint64_t run,
                                 const struct experiment_role *roles, size_t role_count,
                                 struct fleet_host *out, struct err_detail *d);

/* Queues a copy of `c` (number and job are filled in) for an agent held by `job`; its answer carries `tag`
 * (not 0). JOB_CLOSE begins the end of the reservation. ERR_CLOSED when the job does not hold it any more. */
NODISCARD enum err fleet_command(struct fleet *f, struct fleet_agent *a, const char *job,
                                 const struct msg_command *c, uint64_t tag);
/* The answer to a command of `job` that never reaches its host. Owned by the caller: msg_event_fini. */
struct msg_event fleet_refusal(uint64_t tag, const char *job, enum err code);
/* Sends what was queued to agents with a held poll: once after a batch of commands. */
void fleet_flush(struct fleet *f);

/* Events up to `number` of that incarnation are settled. Whoever got an event settles it in the end, or the
 * agent sends it for ever. */
void fleet_settle(struct fleet *f, struct fleet_agent *a, uint64_t incarnation, uint64_t number);
/* One result given to on_late is kept. */
void fleet_settle_late(struct fleet *f, struct fleet_agent *a);

/* Ends what is left of a job's reservations: JOB_CLOSE to every host that has not had one. */
void fleet_release(struct fleet *f, const char *job);

/* ---- looking on ----------------------------------------------------------------------------------- */

struct fleet_info {
    const char *name;
    const char *address;
    const char *build;
    const char *job; /* "" when free */
    enum fleet_state state;
    bool connected;
    uint64_t heard_ns; /* monotonic */
    const struct msg_host *facts;
};
size_t fleet_count(const struct fleet *f);
void fleet_get(const struct fleet *f, size_t i, struct fleet_info *out); /* by name, ascending */
void *fleet_agent_peer(const struct fleet_agent *a);
const char *fleet_agent_name(const struct fleet_agent *a);

#endif
