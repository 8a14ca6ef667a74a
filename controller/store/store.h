#ifndef CONTROLLER_STORE_STORE_H
#define CONTROLLER_STORE_STORE_H
/*
 * The results, in one SQLite file (WAL, synchronous=FULL, versioned schema): jobs, hosts, target runs, every
 * attempt of every window, log tails. A row is there when the call returns. One handle per thread; several
 * handles and processes may have the file open.
 */
#include "controller/experiment/experiment.h"
#include "proto/msg/msg.h"

struct store;

#define STORE_JOB_STATE_LIST(X)                                                                              \
    X(QUEUED, "queued")                                                                                      \
    X(RUNNING, "running")                                                                                    \
    X(DONE, "done")                                                                                          \
    X(FAILED, "failed")                                                                                      \
    X(CANCELLED, "cancelled")
enum store_job_state {
#define X(name, text) STORE_JOB_##name,
    STORE_JOB_STATE_LIST(X)
#undef X
        STORE_JOB_STATE_COUNT
};
const char *store_job_state_name(enum store_job_state s);

#define STORE_PLACEMENT_LIST(X)                                                                              \
    X(SPLIT_HOSTS, "split-hosts")                                                                            \
    X(SPLIT_CPUS, "split-cpus")                                                                              \
    X(SHARED, "shared")
enum store_placement {
#define X(name, text) STORE_PLACEMENT_##name,
    STORE_PLACEMENT_LIST(X)
#undef X
        STORE_PLACEMENT_COUNT
};
const char *store_placement_name(enum store_placement p);

/*
 * Opens or creates (read_only: must exist; reads while another process writes). A file of an older schema is
 * brought up to this one when it may be written, and read as it is when not. Refused with what to do:
 * ERR_UNSUPPORTED a newer schema version; ERR_INVALID not a store, or damaged; ERR_NOT_FOUND; ERR_DENIED.
 * Any later call that writes may give ERR_FULL (nothing of that call is stored, all before is) or ERR_BUSY
 * (another process held the file for 10 s).
 */
NODISCARD enum err store_open(const char *path, bool read_only, struct store **out, struct err_detail *d);
void store_close(struct store *s);

/* Of the SQLite that runs. Any thread. */
const char *store_library_version(void);

struct store_job {
    char *id;
    char *name;
    enum store_job_state state;
    enum msg_mode mode;
    char *cause; /* of a failure a sentence, of a cancellation "cancelled by 'ann'"; "" otherwise */
    int32_t exit_code;
    enum store_placement placement;
    uint64_t created_wall_ns;
    uint64_t started_wall_ns; /* 0 = not yet */
    uint64_t ended_wall_ns;
    char *experiment_json;
    char *base_dir;
    char *nonce; /* of its SUBMIT, "" when that had none */
    uint32_t windows_total;
    uint64_t run;          /* 1, 2, ...: one more with each resume, see proto/msg/msg.h */
    uint32_t windows_done; /* with a valid attempt or retries used up */
};
void store_job_fini(struct store_job *job);

/* `windows_done` is not taken: it is counted from the attempts. ERR_EXISTS: the id is taken. */
NODISCARD enum err store_add_job(struct store *s, const struct store_job *job, struct err_detail *d);
/* What people call a job: its id, or a beginning of it that no other job has. The caller frees `id`.
 * ERR_INVALID lists the jobs that begin so; ERR_NOT_FOUND. */
NODISCARD enum err store_find_job(struct store *s, const char *text, char **id, struct err_detail *d);
/* `id` is whole; "" is the newest. */
NODISCARD enum err store_get_job(struct store *s, const char *id, struct store_job *out,
                                 struct err_detail *d);
/* Newest first, without their experiments (NULL); the caller finis each and frees the array. */
NODISCARD enum err store_list_jobs(struct store *s, struct store_job **out, size_t *count,
                                   struct err_detail *d);
/* Sets the times that go with the state: started_wall_ns with the first "running", ended_wall_ns with an end
 * (0 again when a job is resumed); one that has ended and is queued again begins its next run. ERR_NOT_FOUND:
 * no such job. */
NODISCARD enum err store_set_job_state(struct store *s, const char *id, enum store_job_state state,
                                       const char *cause, int32_t exit_code, struct err_detail *d);
NODISCARD enum err store_set_placement(struct store *s, const char *id, enum store_placement p,
                                       struct err_detail *d);
/* Jobs left running by a controller that died become failed with `cause`; returns how many. */
NODISCARD enum err store_fail_interrupted(struct store *s, const char *cause, size_t *count,
                                          struct err_detail *d);

/*
 * A host's part in a job. A second call for the same (job, role, ordinal) counts from then on (resume
 * elsewhere); target runs that were stored before keep the host they were measured on. Call it, and
 * store_set_placement, before the target runs that it holds for.
 */
struct store_host {
    const char *role;
    uint32_t ordinal;
    const char *agent;
    const struct msg_host *facts;
};
NODISCARD enum err store_put_host(struct store *s, const char *job, const struct store_host *host,
                                  struct err_detail *d);

/* One start of a target: parity, start-up and memory. `run_id` links windows to it. */
struct store_target_run {
    uint32_t target; /* index in the experiment */
    uint32_t round;
    uint32_t slot;
    bool ok;           /* started and passed every check */
    const char *error; /* why not */
    /* Name of the check that failed, "" when none did: the report then has no number at all for the target.
     * A target that did not start or died keeps the numbers of its other runs. */
    const char *failed_check;
    uint64_t startup_ns;
    uint64_t rss_before_bytes;
    uint64_t rss_after_bytes; /* set by store_end_target_run */
    uint64_t started_wall_ns;
};
NODISCARD enum err store_add_target_run(struct store *s, const char *job, const struct store_target_run *run,
                                        int64_t *run_id, struct err_detail *d);
/* A non-empty `error` makes the run a failed one, and is kept when it is the first. */
NODISCARD enum err store_end_target_run(struct store *s, int64_t run_id, uint64_t rss_after_bytes,
                                        const char *error, const void *log, size_t log_len,
                                        struct err_detail *d);

/* One attempt of one window. What it points to is borrowed when it is stored, and belongs to the results when
 * it was read. */
struct store_attempt {
    uint32_t window;  /* design index */
    uint32_t attempt; /* 1, 2, ... */
    int64_t run_id;   /* 0 = none */
    bool valid;
    const char *gate;   /* name of the gate that failed, "" when valid */
    const char *reason; /* the sentence with its figure */
    bool final;         /* valid, or no retry left: the window is present */
    uint64_t started_wall_ns;
    const struct msg_loaded
        *loaded;     /* NULL when the generator gave nothing; several load hosts are merged before */
    int64_t load_id; /* its row in loads, 0 = none; store_add_attempt makes it */
#define X(name, ...) double name; /* negative = not known */
    FIGURE_WINDOW_LIST(X)
#undef X
    struct figure server[FIGURE_TREE_COUNT]; /* of the server's tree, between the window's edges */
    uint64_t
        dead_ns; /* from the end of the previous window to the start of this one, beyond what was asked for */
};
/* ERR_EXISTS: this attempt is stored already, or the window has its final attempt; nothing changes then. */
NODISCARD enum err store_add_attempt(struct store *s, const char *job, const struct store_attempt *a,
                                     struct err_detail *d);

/* For each of `count` windows: does it have a final attempt. The caller frees. */
NODISCARD enum err store_windows_present(struct store *s, const char *job, size_t count, bool **out,
                                         struct err_detail *d);
/* Windows whose final attempt is not valid. */
NODISCARD enum err store_count_invalid(struct store *s, const char *job, uint32_t *out, struct err_detail *d);
/* Attempts already made of a window: the highest number. */
NODISCARD enum err store_attempts_made(struct store *s, const char *job, uint32_t window, uint32_t *out,
                                       struct err_detail *d);

/* Is a late result of this agent kept? ERR_DENIED: it never was part of the job. ERR_FULL: what was kept of
 * it so far has STORE_LATE_EVENTS_MAX results, or STORE_LATE_BYTES_MAX. */
#define STORE_LATE_EVENTS_MAX 1024u
#define STORE_LATE_BYTES_MAX  (64u * 1024u * 1024u) /* the log of a process may have a mebibyte */
NODISCARD enum err store_admit_late_event(struct store *s, const char *agent, const char *job,
                                          struct err_detail *d);
/* `more` that were not kept; and how many there are. */
NODISCARD enum err store_count_refused_late(struct store *s, const char *agent, uint64_t more,
                                            struct err_detail *d);
NODISCARD enum err store_refused_late(struct store *s, const char *agent, uint64_t *out,
                                      struct err_detail *d);
/* A result that came after its controller had gone: kept, counted, never part of a figure. Twice changes
 * nothing. */
NODISCARD enum err store_add_late_event(struct store *s, const char *agent, uint64_t incarnation,
                                        const struct msg_event *e, struct err_detail *d);

/* What the job said, line by line. */
NODISCARD enum err store_add_line(struct store *s, const char *job, const char *line, struct err_detail *d);
NODISCARD enum err store_get_lines(struct store *s, const char *job, uint64_t after, size_t max,
                                   struct msg_strings *out, struct err_detail *d);

/* Enrollment tokens (by hash) and certificates. `made_by` is the operator who asked for it. */
NODISCARD enum err store_add_token(struct store *s, const uint8_t hash[MSG_HASH_BYTES], enum msg_role role,
                                   const char *made_by, uint64_t expires_wall_ns, struct err_detail *d);

struct store_token {
    enum msg_role role;
    char *made_by;         /* "" = not known */
    char *used_by;         /* "" = not yet */
    uint64_t made_wall_ns; /* 0 = not known */
    uint64_t expires_wall_ns;
    uint64_t used_wall_ns;    /* 0 = not yet */
    uint64_t revoked_wall_ns; /* 0 = good */
};
/* Those that expire last first, `max` at most; the caller frees them with store_free_tokens. */
NODISCARD enum err store_list_tokens(struct store *s, size_t max, struct store_token **out, size_t *count,
                                     struct err_detail *d);
void store_free_tokens(struct store_token *tokens, size_t count);

/* May it be used now by somebody who wants to be `role`? Reads one row. ERR_DENIED: unknown, used before,
 * expired, or made for another role. */
NODISCARD enum err store_check_token(struct store *s, const uint8_t hash[MSG_HASH_BYTES], enum msg_role role,
                                     struct err_detail *d);
/* Uses it up in one transaction. ERR_DENIED: as store_check_token. ERR_EXISTS: a certificate of another role
 * that was not taken back has this name. It is not used up then. */
NODISCARD enum err store_use_token(struct store *s, const uint8_t hash[MSG_HASH_BYTES], const char *name,
                                   enum msg_role role, struct err_detail *d);
struct store_revoked {
    uint64_t certificates; /* of this name, those revoked before too */
    uint32_t tokens;       /* that could have been used, and now cannot */
    /* Who came in with earlier tokens of the same maker and is still good; STORE_REVOKED_NAMES_MAX at most.
     */
    struct msg_strings enrolled;
};
#define STORE_REVOKED_NAMES_MAX 20u

/* Every certificate issued up to now, and every unused token that its holder made; later ones of the same
 * name are good. ERR_NOT_FOUND: there was none of either. The caller frees `out->enrolled`. */
NODISCARD enum err store_revoke(struct store *s, const char *name, struct store_revoked *out,
                                struct err_detail *d);
/* Takes the place of earlier ones of this name and role, which are revoked. ERR_EXISTS: the serial is taken.
 * Every certificate that may connect must be added, the controller's operator certificates too. */
NODISCARD enum err store_add_certificate(struct store *s, const char *serial, const char *name,
                                         enum msg_role role, struct err_detail *d);
/* ERR_NOT_FOUND: never issued here (refuse it too). */
NODISCARD enum err store_is_revoked(struct store *s, const char *serial, bool *out, struct err_detail *d);

#endif
