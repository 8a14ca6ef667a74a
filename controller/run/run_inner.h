#ifndef CONTROLLER_RUN_RUN_INNER_H
#define CONTROLLER_RUN_RUN_INNER_H
/*
 * What the files of a run share: the state of one job on its thread. Not for others.
 *
 * Functions return ERR_OK or a failure of the infrastructure (with its sentence), which ends the job. What
 * the experiment itself does wrong (a check, a gate) is data: it is stored and the job goes on.
 */
#include "common/clock.h"
#include "controller/run/placement.h"
#include "controller/run/run.h"

#define RUN_COMMAND_NS  (10 * NS_PER_S) /* small commands: far beyond any round trip */
#define RUN_TRANSFER_NS (60 * NS_PER_S) /* one chunk, or hashing what is already there */
#define RUN_CLOSE_NS    (20 * NS_PER_S) /* ending all trees of a job on a host */
#define RUN_STOP_NS     (2 * NS_PER_S)  /* the same while the controller itself is stopping */
#define RUN_BUILD_NS    (1800 * NS_PER_S)

struct run_server { /* a target and its newest process */
    bool failed;    /* the target is out for this and later rounds */
    bool up;
    bool died; /* ended without being asked */
    uint32_t target;
    uint32_t proc;
    int64_t run_id;
    char died_text[1024];
    uint64_t ready_ns; /* controller's time: checks passed, or it came to its turn again */
    char *log;         /* of its end, until it is stored */
    size_t log_len;
};

struct run_reply {          /* one answer that is waited for */
    struct msg_event event; /* owned */
    const char *what;       /* for the time-out's sentence */
    uint64_t tag;
    uint32_t host;
    bool answered;
};

struct run {
    const struct run_options *o;
    const struct experiment *e;
    const struct design *design;
    struct channel *channel;
    struct store *store;
    struct placement_cores *cores; /* NULL when not known */

    uint32_t server_host;
    uint32_t load_hosts[LIMIT_HOSTS_PER_ROLE];
    size_t load_count;
    const char *server_address;
    struct placement placement; /* of the present target */

    struct run_server *servers; /* per target */
    struct run_server *server;  /* of the present target; never NULL */
    bool *present;              /* per window: has its final attempt */
    uint32_t targets_failed;
    uint32_t windows_invalid; /* final ones, those of an earlier part of the job included */
    uint32_t next_proc;
    char first_failure[1024]; /* of the experiment */

    struct channel_view view;

    /* The window before, of the same server process. */
    bool has_previous;
    uint64_t previous_end_ns;      /* load host's time */
    uint64_t previous_end_here_ns; /* controller's time */
};

/* Each file below uses only those that stand above it. */

/* ---- run_server.c: what is known of the processes under test -------------------------------------- */

/* A fresh process of the target takes the place of the one before, and becomes r->server. */
void run_server_begin(struct run *r, uint32_t target);
/* A process on the server's host ended. */
void run_server_ended(struct run *r, const struct msg_exited *exited);
void run_server_keep_log(struct run_server *s, const struct msg_exited *exited);
/* How it ended, as the end of a sentence; `when` is "" or begins with a blank. */
void run_server_describe_end(const struct msg_exited *exited, const char *when, char *out, size_t size);
/* The row of a start gets how it went on, and its log. Nothing when there is no such row. */
NODISCARD enum err run_server_store_end(struct run *r, struct run_server *s, uint64_t rss_after_bytes,
                                        const char *error, struct err_detail *d);

/* ---- run_wait.c: commands and answers, what people see -------------------------------------------- */

void run_ask(struct run *r, uint32_t host, const struct msg_command *c, const char *what,
             struct run_reply *reply);
/* Until all are answered, or `timeout_ns` from now (ERR_TIMEOUT names the agent). A command that failed is
 * answered, too: see run_reply.event.code. */
NODISCARD enum err run_await(struct run *r, struct run_reply *replies, size_t count, uint64_t timeout_ns,
                             struct err_detail *d);
/* Ask and await one. */
NODISCARD enum err run_ask_one(struct run *r, uint32_t host, const struct msg_command *c, const char *what,
                               uint64_t timeout_ns, struct run_reply *reply, struct err_detail *d);
/* Fails when the agent lost what it had started, with its supervisor: the experiment cannot be blamed. */
NODISCARD enum err run_expect_kept(const struct run *r, const struct run_reply *reply, struct err_detail *d);
void run_reply_fini(struct run_reply *reply);
void run_replies_fini(struct run_reply *replies, size_t count);
/* An event that nobody waited for: a server may have ended. Finis it. */
void run_note(struct run *r, struct channel_event *event);
/* Gives an answer to the reply that waits for it; false when none does. */
bool run_give(struct run_reply *replies, size_t count, const struct channel_event *event);
bool run_all_answered(const struct run_reply *replies, size_t count);
/* Events go on being noted until then. */
NODISCARD enum err run_pause(struct run *r, uint64_t until_ns, struct err_detail *d);

/* A line of the job's history, stored. */
NODISCARD enum err run_say(struct run *r, struct err_detail *d, const char *fmt, ...) PRINTF_LIKE(3, 4);
/* What is going on now: by the schedule it takes `step_ns` (0 when it has no time of its own there), and what
 * comes after it `then_ns`. */
void run_doing(struct run *r, uint64_t step_ns, uint64_t then_ns, const char *fmt, ...) PRINTF_LIKE(4, 5);
/* "${server.address}" in the values of a request's own headers becomes the address. */
void run_fill_headers(const struct run *r, struct msg_headers *headers);
const char *run_agent_name(const struct run *r, uint32_t host);
/* Whether a host is the controller's own machine. */
bool run_is_here(const struct run *r, uint32_t host);

/* ---- run_hosts.c ---------------------------------------------------------------------------------- */

/* Finds out which host is the server's and which make load, where the load reaches the server, and whether
 * every target can be placed; stores that. */
NODISCARD enum err run_seat_hosts(struct run *r, struct err_detail *d);
NODISCARD enum err run_open_hosts(struct run *r, struct err_detail *d);
NODISCARD enum err run_send_files(struct run *r, struct err_detail *d);
/* Gives the target and its load the CPUs they have beside each other. Fails for no target once
 * run_seat_hosts has passed. */
NODISCARD enum err run_place_target(struct run *r, uint32_t target, struct err_detail *d);
/* Waits for the hosts at most `timeout_ns`. */
void run_close_hosts(struct run *r, uint64_t timeout_ns);

/* ---- run_target.c --------------------------------------------------------------------------------- */

NODISCARD enum err run_build_all(struct run *r, struct err_detail *d);
/* Starts the target, checks it from the load host, reads its memory. Afterwards r->server.up, or the target
 * has failed. */
NODISCARD enum err run_start_target(struct run *r, uint32_t target, uint32_t round, uint32_t slot,
                                    struct err_detail *d);
/* The present one; nothing when it is not up. */
NODISCARD enum err run_stop_target(struct run *r, struct err_detail *d);
NODISCARD enum err run_stop_all(struct run *r, struct err_detail *d);

/* ---- window_conduct.c ----------------------------------------------------------------------------- */

/* Idle until the gap after the window before is over; nothing when there was none. */
NODISCARD enum err run_wait_gap(struct run *r, const struct design_window *w, struct err_detail *d);
/* All attempts that this window needs. The server is up when it is called; it may be down afterwards. */
NODISCARD enum err run_measure_window(struct run *r, const struct design_window *w, struct err_detail *d);

#endif
