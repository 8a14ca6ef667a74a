#ifndef TESTS_SUPPORT_FAKE_INNER_H
#define TESTS_SUPPORT_FAKE_INNER_H
/*
 * What the files of the fake world share: fake_agent.c has its link and its time, fake_host.c what its hosts
 * do. Not for others.
 */
#include "tests/support/fake_agent.h"

#include <sched.h>

#define FAKE_OUTBOX_MAX 256u
#define FAKE_SERVERS    16u

struct fake_agent {
    struct fake_world *world;
    char *name;
    char *boot_id;
    char *label;
    uint64_t incarnation;
    bool connected;
    int *peer; /* its address is the session; never freed before the world */
    struct fleet_agent *handle;
    char *held_job;
    uint64_t held_run, held_controller;
    uint64_t taken; /* commands */
    uint64_t cut_at_ns;
    bool poll_open, push_open;
    struct msg_event *outbox[FAKE_OUTBOX_MAX]; /* not acknowledged; owned */
    size_t outbox_count;
    uint64_t last_event;
    uint32_t server; /* number of the process that is up, 0 = none */
    uint64_t load;   /* command number of the LOAD that runs, 0 = none */
};

/* Something that happens later: to the agent it belongs to, if that still is the same incarnation. */
struct fake_later {
    struct fake_later *next;
    uint64_t due_ns;
    struct fake_agent *agent;
    uint64_t incarnation;
    void (*run)(struct fake_agent *a, uint64_t number, void *data);
    uint64_t number;
    void *data;                  /* owned */
    struct msg_command *command; /* owned; then it is this that happens */
};

struct fake_request {
    struct fake_agent *agent;
    int *peer;
    bool is_poll;
};

struct fake_world {
    uv_loop_t *loop;
    uv_timer_t timer;
    struct fleet *fleet;
    struct fake_faults faults;
    uint64_t lease_ns;
    uint64_t random;
    struct fake_agent *agents[FAKE_AGENTS_MAX];
    size_t agent_count;
    struct fake_later *later;
    int **peers;
    size_t peer_count;
    unsigned starts;
    unsigned shared;
    cpu_set_t server_cpus[FAKE_SERVERS]; /* by port modulo FAKE_SERVERS; empty = not pinned */
    uint32_t loaded_port;                /* of the load before */
    uint64_t load_end_ns, gap_ns;
    uint64_t file_bytes; /* taken so far, by all hosts */
    bool stopped;
};

/* ---- fake_agent.c -------------------------------------------------------------------------------------- */

uint64_t fake_draw(struct fake_world *w);
bool fake_chance(struct fake_world *w, unsigned per_thousand);
/* `data` passes to it. */
struct fake_later *fake_later_add(struct fake_agent *a, uint64_t after_ms,
                                  void (*run)(struct fake_agent *, uint64_t, void *), uint64_t number,
                                  void *data);
/* Numbers a copy of the event and sends it as often as it takes. */
void fake_emit(struct fake_agent *a, struct msg_event *e, uint64_t answers, enum msg_event_kind kind);
/* The same of another job than the held one, or another run: `e` says which. */
void fake_emit_for(struct fake_agent *a, struct msg_event *e, uint64_t answers, enum msg_event_kind kind);

/* ---- fake_host.c --------------------------------------------------------------------------------------- */

void fake_host_handle(struct fake_agent *a, const struct msg_command *c);

#endif
