#ifndef TESTS_SUPPORT_FAKE_AGENT_H
#define TESTS_SUPPORT_FAKE_AGENT_H
/*
 * Agents that run nothing: they answer commands from a script and a seed, over a link that may lose, cut and
 * repeat. They speak to a fleet directly. One world of them per simulation; the loop's thread.
 */
#include "controller/fleet/fleet.h"

#include <uv.h>

#define FAKE_AGENTS_MAX 8u
#define FAKE_OK_PER_S   1000u /* what a load says of itself while it runs */

/* Chances are per thousand, tried each time the thing could happen. */
struct fake_faults {
    unsigned cut;        /* an answer is lost and the connection with it; it comes back by itself */
    unsigned repeat;     /* a push whose answer came is sent again */
    unsigned restart;    /* the agent program is killed and started anew (tried for each command) */
    unsigned server_die; /* the server ends in mid-window */
    unsigned load_fail;  /* the generator ends without a result */
    unsigned refused;    /* it could not connect: it ends at once, without a window */
    unsigned unbalanced; /* its accounts do not add up */
    uint64_t away_ms;    /* how long a cut lasts, at most */
};

struct fake_world;

struct fake_world_options {
    uv_loop_t *loop;
    uint64_t seed;
    uint64_t lease_ns; /* who was away for longer has ended its job, and says so behind its next words */
    struct fake_faults faults;
};

struct fake_world *fake_world_new(const struct fake_world_options *options);
void fake_world_free(struct fake_world *w);
void fake_world_set_fleet(struct fake_world *w, struct fleet *fleet);
void fake_world_set_faults(struct fake_world *w, const struct fake_faults *faults);
/* Ends its timers; run the loop once more before fake_world_free. */
void fake_world_stop(struct fake_world *w);

/* It connects at once. `label` may be NULL. */
void fake_world_add(struct fake_world *w, const char *name, const char *boot_id, const char *label);
/* The connection of an agent ends for `away_ms`, or for good with UINT64_MAX. */
void fake_world_cut(struct fake_world *w, const char *name, uint64_t away_ms);
void fake_world_kill(struct fake_world *w, const char *name); /* and it starts anew */

/* Whether a process of some job runs on some agent, for the end of a test. */
bool fake_world_is_idle(const struct fake_world *w);
/* STARTs of servers so far. */
unsigned fake_world_starts(const struct fake_world *w);
/* LOADs so far that were given a CPU of the very server they load. */
unsigned fake_world_shared(const struct fake_world *w);
/* Bytes of files taken so far. A host asks for the files of its first job: the first from its beginning, the
 * second from its second byte on, and so forth; of later jobs it has them all. */
uint64_t fake_world_file_bytes(const struct fake_world *w);
/* The shortest time from the end of a load to the next LOAD of the same server; UINT64_MAX without any. */
uint64_t fake_world_gap_ns(const struct fake_world *w);

/* The fleet's handlers for the link: give them to fleet_new with `arg` the world, or call them. */
void fake_answer_poll(void *world, void *request, const struct msg_command *const *items, size_t count);
void fake_answer_push(void *world, void *request, uint64_t acked_event);
void fake_refuse(void *world, void *request, enum err code, const char *why);
void fake_drop_peer(void *world, void *peer, const char *why);

#endif
