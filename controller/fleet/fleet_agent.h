#ifndef CONTROLLER_FLEET_FLEET_AGENT_H
#define CONTROLLER_FLEET_FLEET_AGENT_H
/*
 * One agent as the fleet keeps it: its session, its queue of commands, its unsettled events. Shared by the
 * fleet's own files only. Loop thread.
 */
#include "controller/fleet/fleet.h"

#define FLEET_EVENT_LIST(X)                                                                                  \
    X(RESERVE)                                                                                               \
    X(CLOSE)  /* JOB_CLOSE was queued */                                                                     \
    X(CLOSED) /* ... and answered, or the agent says that it holds nothing */                                \
    X(LOSE)   /* silent for longer than its lease, or started anew */
enum fleet_event {
#define X(name) FLEET_EVENT_##name,
    FLEET_EVENT_LIST(X)
#undef X
        FLEET_EVENT_COUNT
};

struct fleet_open { /* a command that has not been answered */
    uint64_t number;
    uint64_t tag;
    uint64_t run; /* of the job that it is for */
    enum msg_command_kind kind;
};

struct fleet_agent {
    char *name;
    char *address;
    char *build;
    struct msg_host facts;
    uint64_t incarnation;
    uint64_t controller; /* our own incarnation */

    enum fleet_state state;
    char *job;     /* of the reservation, or of the JOB_CLOSE; NULL when free */
    uint64_t run;  /* of that job; 0 when free, or when the agent that held it did not say */
    uint32_t host; /* its number in the job */
    bool opened;   /* JOB_OPEN was answered */
    bool owned;    /* the job runs here: its events are wanted */

    void *peer; /* NULL while away */
    uint64_t heard_ns;

    void *poll; /* held request, or NULL */
    uint64_t poll_since_ns;

    struct msg_command **queue; /* not yet taken, oldest first; owned, each too */
    size_t queue_count;
    struct fleet_open *open;
    size_t open_count;
    uint64_t last_number;

    void *push; /* held request, or NULL */
    uint64_t push_since_ns;
    uint64_t push_upto;
    bool push_is_late; /* of an earlier incarnation */

    uint64_t delivered; /* number of the newest event taken in */
    uint64_t settled;
    size_t late_count; /* results being kept by on_late */
    uint64_t late_first;
};

struct fleet {
    uint64_t lease_ns;
    uint64_t incarnation;
    struct fleet_handlers handlers;
    struct fleet_agent **agents; /* by name */
    size_t agent_count;

    uint64_t now_ns;        /* of the newest call that brought it */
    uint64_t due_ns;        /* when fleet_tick is to be called; 0 = not known */
    uint64_t paused_ns;     /* how long we did not run, the last time */
    uint64_t paused_end_ns; /* ... and until when */
};

struct fleet_agent *fleet_agent_new(const char *name);
void fleet_agent_free(struct fleet_agent *a);

/* The one place where an agent's state changes; logs it. What is not permitted is our own bug. */
void fleet_agent_handle(struct fleet_agent *a, enum fleet_event event);
bool fleet_agent_permits(enum fleet_state state, enum fleet_event event);

/* Copies `c` to the end of the queue; ERR_FULL at the cap. */
NODISCARD enum err fleet_agent_queue(struct fleet_agent *a, const char *job, const struct msg_command *c,
                                     uint64_t tag);
/* The agent works for this run of `job` now, if only to close it. */
void fleet_agent_queue_close(struct fleet_agent *a, const char *job, uint64_t run);

/* A new incarnation: numbers begin anew, what was under way is gone. */
void fleet_agent_clear(struct fleet_agent *a);
/* Nobody wants what is still queued, but its numbers must arrive, without a gap: each becomes a JOB_CLOSE of
 * the same run, which does no harm twice, nor to a later run. */
void fleet_agent_void(struct fleet_agent *a);

/* The reservation ends here: the job hears "agent 'NAME' lost: WHY", what it waits for is answered, and the
 * agent is free as far as we are concerned. What it still holds is closed when it comes back and says so. */
void fleet_agent_lose(struct fleet *f, struct fleet_agent *a, const char *why);

/* The same for an agent whose own lease ran out; it is us who are named if we stood still meanwhile. */
void fleet_agent_lapse(struct fleet *f, struct fleet_agent *a, const char *why);

/* Every call that brings the time begins with it: notices that we did not run. */
void fleet_note_time(struct fleet *f, uint64_t now_ns);

/* Answers the held poll when something is queued, or when `due`. */
void fleet_agent_answer_poll(struct fleet *f, struct fleet_agent *a, bool due);
/* Answers the held push when all of it is settled, or when `due`. */
void fleet_agent_answer_push(struct fleet *f, struct fleet_agent *a, bool due);

/* Takes the open command that `e` answers off the list unless `keep`; false when there is none. */
bool fleet_agent_answered(struct fleet_agent *a, const struct msg_event *e, bool keep,
                          struct fleet_open *out);
/* Whether `e` is of that run and of this controller; an agent that does not say is believed. */
bool fleet_agent_is_of(const struct fleet_agent *a, const struct msg_event *e, uint64_t run);

/* The number up to which the agent may forget its events. */
uint64_t fleet_agent_acked(const struct fleet_agent *a);

#endif
