#ifndef TESTS_SUPPORT_FLEET_STAND_H
#define TESTS_SUPPORT_FLEET_STAND_H
/*
 * A fleet whose link and jobs are a test: what leaves the fleet is counted, the newest of it kept. Nothing is
 * sent anywhere and no time passes by itself. One thread.
 */
#include "common/clock.h"
#include "controller/fleet/fleet.h"

#define LEASE      (10 * NS_PER_S)
#define T0         (1000 * NS_PER_S) /* when a test begins */
#define CONTROLLER 77u               /* its incarnation */

/* What left the fleet, as the link and the jobs would have seen it. */
struct fleet_seen {
    size_t polls, pushes, refusals, drops, events, late, lost, changes;
    uint64_t numbers[64]; /* of the last answer to a poll */
    enum msg_command_kind kinds[64];
    uint64_t runs[64];
    size_t command_count;
    uint64_t acked;
    void *dropped;
    uint64_t event_answers, event_number;
    enum msg_event_kind event_kind;
    uint32_t event_host;
    char job[64];
    char cause[256];
    struct fleet_agent *late_agent;
};

struct fleet_stand {
    struct fleet *fleet;
    struct fleet_seen seen;
    int peers[8]; /* addresses stand for the link's peers */
    int requests[64];
    uint64_t run;      /* of reservations: 0 = the first */
    uint64_t held_run; /* said in HELLO; 0 = an agent that does not say */
};

/* For cmocka: the state is a struct fleet_stand. */
int fleet_stand_set_up(void **state);
int fleet_stand_tear_down(void **state);

/* A new session of an agent; `label` may be NULL. */
struct fleet_agent *fleet_stand_hello(struct fleet_stand *f, int peer, const char *name, uint64_t incarnation,
                                      const char *held, const char *label, uint64_t now);

/* One load host of any kind (0) and one server with pool=`label_value`, or of any kind with NULL (1). */
enum err fleet_stand_reserve(struct fleet_stand *f, const char *job, const char *label_value,
                             struct fleet_host out[2]);

/* A push of one event. */
void fleet_stand_push(struct fleet_stand *f, struct fleet_agent *a, uint64_t incarnation, uint64_t number,
                      uint64_t answers, enum msg_event_kind kind, const char *job, uint64_t now);

/* The same of one that says more. */
void fleet_stand_push_event(struct fleet_stand *f, struct fleet_agent *a, uint64_t incarnation,
                            struct msg_event *e, uint64_t now);

enum err fleet_stand_command(struct fleet_stand *f, struct fleet_agent *a, const char *job,
                             enum msg_command_kind kind, uint64_t tag);

/* A pair of agents that job "j" holds: a is its load host (0, incarnation 7), b its server (1, incarnation
 * 8), both opened. What was seen until then is forgotten. */
void fleet_stand_open_pair(struct fleet_stand *f, struct fleet_agent **a, struct fleet_agent **b);

#endif
