#ifndef AGENT_PROCESS_SUPERVISED_H
#define AGENT_PROCESS_SUPERVISED_H
/*
 * The agent's end of one supervisor: starts it, carries messages, notices its end, and kills it when it does
 * not answer. Owned by the process set; everything on its loop.
 */
#include "agent/process/supervisor_msg.h"

#include <uv.h>

/* A supervisor that was told to end something says something at least this often (it notes slow deaths). */
#define SUPERVISED_SILENCE_MAX_MS 15000u

struct supervised;

struct supervised_handlers {
    void *arg;
    void (*on_message)(void *arg, const struct supervisor_msg *m);
    /* It has ended, its messages were delivered. `how` says how it died; NULL: it left when all was done. */
    void (*on_gone)(void *arg, const char *how);
};

NODISCARD enum err supervised_new(uv_loop_t *loop, const struct supervised_handlers *handlers,
                                  struct supervised **out, struct err_detail *d);
/* Only after on_gone; `cb` runs when the handles are closed and nothing uses the memory. */
void supervised_close(struct supervised **s, void (*cb)(void *arg), void *arg);

/* ERR_CLOSED when it is gone, ERR_BUSY when it does not read, ERR_TOO_BIG for a packet the socket refuses. */
NODISCARD enum err supervised_send(struct supervised *s, const struct supervisor_msg *m);

/* Tells it to stop its tree; one that does not read is cut. */
void supervised_stop(struct supervised *s, uint64_t grace_ns);

/* Ends the connection: it kills its tree at once, reports that and leaves. */
void supervised_cut(struct supervised *s);

/* It has `ms` (and SUPERVISED_SILENCE_MAX_MS) to say something; then it is killed. */
void supervised_expect(struct supervised *s, uint64_t ms);

/* Its own CPU time while it lives, ns. */
uint64_t supervised_cpu_ns(const struct supervised *s);
pid_t supervised_pid(const struct supervised *s);

#endif
