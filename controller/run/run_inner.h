#ifndef CONTROLLER_RUN_RUN_INNER_H
#define CONTROLLER_RUN_RUN_INNER_H
/*
 * What the files of a run share: the state of one job on its thread. Not for others.
 *
 * Functions return ERR_OK or a failure of the infrastructure (with its sentence), which ends the job. What
 * the experiment itself does wrong (a check, a gate) is data: it is stored and the job goes on.
 */
#include "controller/run/gate.h"
#include "controller/run/placement.h"
#include "controller/run/run.h"

#define RUN_COMMAND_NS  (UINT64_C(10) * 1000000000) /* small commands: far beyond any round trip */
#define RUN_TRANSFER_NS (UINT64_C(60) * 1000000000) /* one chunk, or hashing what is already there */
#define RUN_CLOSE_NS    (UINT64_C(20) * 1000000000) /* ending all trees of a job on a host */
#define RUN_STOP_NS     (UINT64_C(2) * 1000000000)  /* the same while the controller itself is stopping */
#define RUN_BUILD_NS    (UINT64_C(1800) * 1000000000)
#define RUN_RESULT_NS   (UINT64_C(20) * 1000000000) /* from the end of a window to the generator's result */
#define RUN_SAMPLE_NS   (UINT64_C(2) * 1000000000)  /* end samples that are later than this do not come */

struct run_target { /* of the experiment, over the whole job */
    bool failed;    /* out for this and later rounds */
};

struct run_server { /* the newest process of a target */
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

    struct run_target *targets;
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

    struct run_window *window; /* open, or NULL: where PROGRESS and samples go */
};

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
/* An event that nobody waited for: a server that ended, a generator's progress. Finis it. */
void run_note(struct run *r, struct channel_event *e);
/* Gives an answer to the reply that waits for it; false when none does. */
bool run_give(struct run_reply *replies, size_t count, struct channel_event *e);
/* Events go on being noted until then. */
NODISCARD enum err run_pause(struct run *r, uint64_t until_ns, struct err_detail *d);

/* A line of the job's history, stored. */
NODISCARD enum err run_say(struct run *r, struct err_detail *d, const char *fmt, ...) PRINTF_LIKE(3, 4);
/* What is going on now: by the schedule it takes `step_ns` (0 when it has no time of its own there), and what
 * comes after it `then_ns`. */
void run_doing(struct run *r, uint64_t step_ns, uint64_t then_ns, const char *fmt, ...) PRINTF_LIKE(4, 5);
/* The experiment's own failure: the first one becomes the job's cause. */
void run_experiment_failed(struct run *r, const char *text);
/* A request with "${server.address}" filled into its headers; everything else is borrowed. */
void run_fill_request(const struct run *r, struct msg_request *request, struct msg_headers *owned);
void run_headers_fini(struct msg_headers *owned);
const char *run_agent_name(const struct run *r, uint32_t host);

/* ---- run_hosts.c ---------------------------------------------------------------------------------- */

NODISCARD enum err run_seat_hosts(struct run *r, struct err_detail *d);
NODISCARD enum err run_open_hosts(struct run *r, struct err_detail *d);
NODISCARD enum err run_send_files(struct run *r, struct err_detail *d);
/* Waits for the hosts at most `timeout_ns`. */
void run_close_hosts(struct run *r, uint64_t timeout_ns);

/* ---- run_target.c --------------------------------------------------------------------------------- */

/* Gives the target and its load the CPUs they have beside each other. */
void run_place_target(struct run *r, uint32_t target);
NODISCARD enum err run_build_all(struct run *r, struct err_detail *d);
/* Starts the target, checks it from the load host, reads its memory. Afterwards r->server.up, or the target
 * has failed. */
NODISCARD enum err run_start_target(struct run *r, uint32_t target, uint32_t round, uint32_t slot,
                                    struct err_detail *d);
/* The present one; nothing when it is not up. */
NODISCARD enum err run_stop_target(struct run *r, struct err_detail *d);
NODISCARD enum err run_stop_all(struct run *r, struct err_detail *d);
/* A process on the server's host ended. */
void run_server_ended(struct run *r, const struct msg_exited *exited);
/* Fails a target for the rest of the job. */
NODISCARD enum err run_fail_target(struct run *r, uint32_t target, const char *why, struct err_detail *d);

/* ---- run_window.c --------------------------------------------------------------------------------- */

/* Idle until the gap after the window before is over; nothing when there was none. */
NODISCARD enum err run_wait_gap(struct run *r, const struct design_window *w, struct err_detail *d);
/* All attempts that this window needs. The server is up when it is called; it may be down afterwards. */
NODISCARD enum err run_measure_window(struct run *r, const struct design_window *w, struct err_detail *d);
void run_window_progress(struct run *r, uint32_t host, const struct msg_progress *p);

#endif
