#ifndef CONTROLLER_DAEMON_SERVER_INNER_H
#define CONTROLLER_DAEMON_SERVER_INNER_H
/*
 * What the files of the server share. Not for others.
 */
#include "controller/daemon/doorstep.h"
#include "controller/daemon/late_gate.h"
#include "controller/daemon/server.h"
#include "controller/daemon/spill.h"

struct server_answer { /* the last long answer to an operator, read in pieces */
    enum msg_ask_kind kind;
    char *job;
    char *arg;
    char *text; /* or, when it is longer than memory should be: */
    struct spill *spill;
    size_t len;
};

struct server_peer {
    struct server_peer *next;
    uint64_t id; /* a pointer may come again, this does not */
    struct link_peer *link;
    struct fleet_agent *agent; /* NULL: an operator */
    struct server_answer answer;
};

struct server {
    struct server_options o;
    char *blob_dir;
    char own_boot_id[64];
    uint64_t incarnation;
    struct link_server *link;
    struct fleet *fleet;
    struct store_worker *worker;  /* all that writes, and files */
    struct store_worker *looks;   /* what is answered at once: status, watch, pieces of a long answer */
    struct store_worker *reports; /* what takes as long as a job is large; nobody else waits for it */
    struct job_table *jobs;
    struct store *store; /* the loop's own, for reading only */
    struct server_peer *peers;
    struct doorstep *doorstep;
    struct late_gate *late_gate;
    uint64_t last_peer_id;
    uv_timer_t tick;
    bool closing;
    void (*close_cb)(void *arg);
    void *close_arg;
};

/* ---- peers.c: who has a session ------------------------------------------------------------------- */

void server_add_peer(struct server *s, struct link_peer *link, struct fleet_agent *agent);
void server_remove_peer(struct server *s, struct server_peer *peer);
/* NULL when it has gone. */
struct server_peer *server_find_peer(struct server *s, uint64_t id);
/* Those that came with a certificate of this name. `asker` (0: nobody) has just been answered: its connection
 * goes once that has had time to arrive. */
void server_drop_peers(struct server *s, const char *name, const char *why, uint64_t asker);

/* The pieces of `answer` (taken) are asked for next; those of the one before are not any more. */
void server_keep_answer(struct server_peer *peer, const struct server_answer *answer);

/* operator.c: answers one request of an operator, now or later. */
void operator_handle(struct server *s, struct server_peer *peer, const struct msg *m,
                     struct link_request *request);

/* enroll.c */
void server_enroll(struct server *s, const struct msg_enroll *m, struct link_request *request);
/* Blocking, for the worker: a fresh token's text (owned by the caller). */
NODISCARD enum err server_make_token(struct server *s, struct store *store, const char *who, const char *role,
                                     uint64_t life_ns, char **text, struct err_detail *d);

#endif
