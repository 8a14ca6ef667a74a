#ifndef TESTS_SUPPORT_MINI_CONTROLLER_H
#define TESTS_SUPPORT_MINI_CONTROLLER_H
/*
 * The controller's end of the wire for tests of the agent: a real link_server over ipc that holds polls,
 * hands out commands and keeps events, without jobs or a store. Owned by the test; on its loop.
 */
#include "proto/link/link.h"
#include "tests/support/wait.h"

struct mini_event {
    uint64_t incarnation;
    uint32_t push; /* which push brought it, from 1 */
    struct msg_event event;
};

struct mini {
    uv_loop_t *loop;
    struct link_server *server;
    uv_timer_t hold_timer;
    /* What the test chooses. */
    uint64_t incarnation;
    uint64_t lease_ns;
    uint64_t poll_ns;
    uint64_t acked_event;  /* said in WELCOME */
    bool mute_polls;       /* never answered */
    bool mute_pushes;      /* kept, not answered */
    bool take_nothing;     /* pushes are answered, but no event is acknowledged */
    enum err refuse_hello; /* ERR_OK = welcome */
    /* What came. */
    struct link_peer *peer; /* NULL when none is connected */
    uint64_t peer_incarnation;
    char held_job[LIMIT_NAME_BYTES + 1]; /* of the last HELLO */
    uint64_t held_run;
    uint32_t hellos, polls, pushes, gone;
    uint64_t push_ns;         /* when the last one came */
    uint64_t push_gap_ns_min; /* between two; 0 before there are two */
    uint64_t acked_command;   /* of the last poll */
    struct mini_event *events;
    size_t event_count;
    /* What goes. */
    struct msg_command *commands; /* not acknowledged */
    size_t command_count;
    struct link_request *held; /* a poll */
};

/* Listens at `address` ("ipc:///..."); defaults: incarnation 1, lease 10 s, hold 1 s. Fails the test on
 * error. */
void mini_init(struct mini *m, uv_loop_t *loop, const char *address);
/* Before an end is closed, where the nng has NNG_FAULT_CLOSE_HANGS: runs the loop until nothing is on its way
 * to the agent. Then a poll is held (or answered with commands that are not wanted), or no agent is
 * connected. */
void mini_settle(struct mini *m);
/* Runs the loop until everything of it is closed. */
void mini_fini(struct mini *m);

/* Queued (copied) and handed out until acknowledged. */
void mini_send(struct mini *m, const struct msg_command *command);
void mini_send_simple(struct mini *m, uint64_t number, const char *job, enum msg_command_kind kind);

/* The first event that answers command `number`, or NULL. */
const struct msg_event *mini_answer(const struct mini *m, uint64_t number);
/* The first event of this kind, or NULL. */
const struct msg_event *mini_event(const struct mini *m, enum msg_event_kind kind);

/* Until a count of it (hellos, polls, ...) is at least `wanted`. */
void mini_wait_count(struct mini *m, const uint32_t *count, uint32_t wanted, const char *what);

/* The least that an agent can say about its host. Texts are static: not to be finied. */
struct msg_host mini_host(void);

#endif
