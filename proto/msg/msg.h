#ifndef PROTO_MSG_MSG_H
#define PROTO_MSG_MSG_H
/*
 * What travels between programs, as plain structs: decoded, range-checked and copied from the wire by
 * proto/msg/codec_decode.c; the generated types stay there and in the tables (proto/msg/schema.h). A message
 * owns everything it points to; msg_fini frees it. Any thread, one at a time.
 *
 * Every request gets exactly one answer on the same connection. Agents ask (POLL, PUSH), operators ask
 * (SUBMIT, BLOB, WATCH, ASK); the controller only answers. docs/protocol.md has the whole conversation.
 */
#include "common/err.h"
#include "common/figure.h"
#include "common/limits.h"

#define MSG_PROTOCOL_VERSION 1u
#define MSG_PEM_BYTES_MAX    8192u
#define MSG_NONCE_BYTES      32u
#define MSG_HASH_BYTES       32u  /* SHA-256 */
#define MSG_COMMANDS_MAX     64u  /* commands in one answer to a poll */
#define MSG_EVENTS_MAX       256u /* events in one push */
#define MSG_PROCS_MAX        16u  /* processes in one sample */
#define MSG_ERRORS_MAX       64u  /* error classes in one result: phases x causes is bounded */
#define MSG_STATUSES_MAX     600u
#define MSG_LABELS_MAX       64u
#define MSG_LINES_MAX        256u /* log lines in one answer to a watch */
/* A compressed histogram of 3 digits over hours is under 64 KiB. */
#define MSG_HIST_BYTES_MAX (256u * 1024u)
#define MSG_RAW_BYTES_MAX  (256u * 1024u) /* of a generator's output; the sender cuts it */

struct msg_strings {
    char **items; /* owned, each too */
    size_t count;
};

struct msg_bytes {
    uint8_t *data; /* owned */
    size_t len;
};

struct msg_header {
    char *name;
    char *value;
};

struct msg_headers {
    struct msg_header *items;
    size_t count;
};

/* ---- session: any role --------------------------------------------------------------------------------- */

#define MSG_ROLE_LIST(X)                                                                                     \
    X(NONE, "none")                                                                                          \
    X(AGENT, "agent")                                                                                        \
    X(OPERATOR, "operator")                                                                                  \
    X(CONTROLLER, "controller")
enum msg_role {
#define X(name, text) MSG_ROLE_##name,
    MSG_ROLE_LIST(X)
#undef X
        MSG_ROLE_COUNT
};

/* What a host is; sent once a session, stored with every job that used it. */
struct msg_host {
    char *hostname;
    char *boot_id; /* equal on two agents = they share a machine */
    char *kernel;
    char *os;
    char *cpu_model;
    char *address;  /* where others reach servers on this host; "" = the address the agent dialled from */
    uint32_t cpus;  /* usable by the agent */
    char *cpu_list; /* "0-7": the agent's own affinity */
    uint64_t memory_bytes;
    struct msg_strings labels; /* "hardware=i7-13700k" */
    char *libraries; /* "nng 1.5.2, libuv 1.44.2": what runs there; "" = an agent that does not say */
};

struct msg_hello {
    uint32_t protocol;
    char *build;
    enum msg_role role;
    char *name;            /* agent or operator name; over TLS it must be the certificate's */
    char *certificate_pem; /* "" over ipc */
    uint64_t incarnation;  /* random at program start: a new value means earlier state is gone */
    char *held_job;        /* agent: job still open here, or "" */
    uint64_t held_run;     /* which run of it, 0 = an agent that does not say */
    struct msg_host host;  /* agents only */
};

struct msg_challenge {
    uint8_t nonce[MSG_NONCE_BYTES];
};

struct msg_proof {
    struct msg_bytes signature; /* over the challenge and the role, see proto/identity/identity.h */
};

struct msg_welcome {
    uint64_t session;
    uint64_t lease_ns; /* agents: a poll not answered for this long ends the job here */
    uint64_t poll_ns;  /* how long the controller holds a poll */
    char *build;
    uint64_t acked_event; /* agents: last event number stored from this incarnation */
    uint64_t incarnation; /* the controller's: a new value means that its command numbers start again at 1 */
};

struct msg_refused {
    enum err code;
    char *text;
};

/* ---- enrollment: a stranger with a token --------------------------------------------------------------- */

struct msg_ca_give {
    char *ca_pem;
};

struct msg_enroll {
    char *token; /* the secret part */
    char *name;
    enum msg_role role;
    char *csr_pem;
};

struct msg_enrolled {
    char *certificate_pem;
};

/* ---- commands: controller to agent --------------------------------------------------------------------- */

/*
 * A command names the run of the job that it is for, and the controller that gave it its number; an event
 * gives both back. A run is a fencing number: it begins at 1 and grows with each resume, so that what an
 * earlier run left on its way is never taken for word of the present one. 0 stands for a peer that does not
 * say, and agrees with all.
 */

#define MSG_COMMAND_LIST(X)                                                                                  \
    X(JOB_OPEN, job_open)   /* this host now works for a job */                                              \
    X(JOB_CLOSE, job_close) /* end every process of the job, forget it, be free */                           \
    X(FILES, files)         /* what the workspace must hold; answered with what is missing */                \
    X(CHUNK, chunk)         /* a piece of one file, by content hash */                                       \
    X(START, start)         /* start a process; answered when it is ready, or has ended, or cannot be */     \
    X(STOP, stop)           /* end a process and its tree; answered when nothing of it lives */              \
    X(CHECK, check)         /* one request with an expected answer, sent from here */                        \
    X(LOAD, load)           /* run the generator; answered with its result, progress in between */           \
    X(SAMPLE, sample)       /* read the CPU and memory counters now */
enum msg_command_kind {
#define X(name, text) MSG_COMMAND_##name,
    MSG_COMMAND_LIST(X)
#undef X
        MSG_COMMAND_COUNT
};

struct msg_job_open {
    char *role;     /* the experiment's word for this host: "server", "load", ... */
    bool workspace; /* the job has a workspace here; without one every directory must be absolute */
};

struct msg_file {
    char *path; /* relative, no "..", no empty part */
    uint8_t hash[MSG_HASH_BYTES];
    uint64_t size_bytes;
    uint32_t mode; /* permission bits only */
};

struct msg_files {
    struct msg_file *items;
    size_t count;
};

struct msg_chunk {
    uint8_t hash[MSG_HASH_BYTES]; /* of the whole file */
    uint64_t offset;
    struct msg_bytes data; /* at most LIMIT_CHUNK_BYTES */
};

#define MSG_READY_LIST(X)                                                                                    \
    X(NONE) /* started is enough */                                                                          \
    X(TCP)  /* the port accepts */                                                                           \
    X(HTTP) /* any HTTP answer on the path */                                                                \
    X(EXIT) /* it ends with status 0: build steps */
enum msg_ready_kind {
#define X(name) MSG_READY_##name,
    MSG_READY_LIST(X)
#undef X
        MSG_READY_COUNT
};

struct msg_start {
    uint32_t proc; /* chosen by the controller, unique within the job */
    char *label;   /* for logs and messages: "nginx", "build nginx" */
    struct msg_strings argv;
    struct msg_strings env; /* "KEY=value", added to the agent's own */
    char *dir;              /* "" = the workspace */
    char *cpus;             /* "" = no pinning */
    enum msg_ready_kind ready;
    char *ready_host; /* "" = 127.0.0.1 */
    uint16_t ready_port;
    char *ready_path;
    uint64_t ready_timeout_ns;
    uint64_t grace_ns; /* between SIGTERM and SIGKILL when it is stopped */
};

struct msg_stop {
    uint32_t proc;
};

#define MSG_MATCH_LIST(X)                                                                                    \
    X(NONE)                                                                                                  \
    X(EXACT)                                                                                                 \
    X(CONTAINS)
enum msg_match_kind {
#define X(name) MSG_MATCH_##name,
    MSG_MATCH_LIST(X)
#undef X
        MSG_MATCH_COUNT
};

struct msg_match {
    enum msg_match_kind kind;
    char *name;            /* header name in lower case; "" for the body */
    struct msg_bytes text; /* bytes to be equal to or to contain */
};

struct msg_request {
    char *method;
    char *path;
    struct msg_headers headers;
    struct msg_bytes body;
};

struct msg_check {
    char *name;
    char *host;
    uint16_t port;
    struct msg_request request;
    uint32_t status; /* 0 = any */
    struct msg_match body;
    struct msg_match *headers;
    size_t header_count;
    bool has_body_bytes;
    uint64_t body_bytes;
    uint64_t timeout_ns;
};

struct msg_load {
    uint32_t proc; /* the generator's process id in this job, for SAMPLE */
    char *tool;    /* "builtin" */
    char *host;
    uint16_t port;
    struct msg_request request;
    uint32_t connections;
    uint32_t threads;
    uint64_t warmup_ns;
    uint64_t duration_ns;
    uint64_t timeout_ns;
    bool has_body_bytes; /* every response must have exactly body_bytes */
    uint64_t body_bytes;
    char *cpus;
};

struct msg_sample {
    uint32_t procs[MSG_PROCS_MAX];
    size_t proc_count;
};

struct msg_command {
    uint64_t number; /* 1, 2, ... within (agent incarnation, controller incarnation); re-sent until acked */
    char *job;
    uint64_t run;        /* of the job */
    uint64_t controller; /* incarnation of the controller that numbered it */
    enum msg_command_kind kind;
    union {
        struct msg_job_open job_open;
        struct msg_files files;
        struct msg_chunk chunk;
        struct msg_start start;
        struct msg_stop stop;
        struct msg_check check;
        struct msg_load load;
        struct msg_sample sample;
    } u;
};

/* ---- events: agent to controller ----------------------------------------------------------------------- */

#define MSG_EVENT_LIST(X)                                                                                    \
    X(DONE, done)         /* a command without a result of its own has ended, well or not */                 \
    X(FILES, files)       /* FILES answered: hashes that are missing and how much of each is here */         \
    X(STARTED, started)   /* START answered: it is ready */                                                  \
    X(EXITED, exited)     /* a process ended: answers STOP, or comes unasked (answers = 0) */                \
    X(CHECKED, checked)   /* CHECK answered */                                                               \
    X(PROGRESS, progress) /* LOAD goes on */                                                                 \
    X(LOADED, loaded)     /* LOAD answered */                                                                \
    X(SAMPLED, sampled)   /* SAMPLE answered */
enum msg_event_kind {
#define X(name, text) MSG_EVENT_##name,
    MSG_EVENT_LIST(X)
#undef X
        MSG_EVENT_COUNT
};

struct msg_missing {
    uint8_t hash[MSG_HASH_BYTES];
    uint64_t have_bytes; /* resume from here */
};

struct msg_files_missing {
    struct msg_missing *items;
    size_t count;
};

struct msg_started {
    uint32_t proc;
    uint32_t pid;
    uint64_t startup_ns; /* from the spawn to the first answer; 0 when nothing was waited for */
    char *exe;           /* /proc/PID/exe at that moment */
};

struct msg_exited {
    uint32_t proc;
    bool asked;           /* it was told to stop */
    int32_t status;       /* exit status, or -1 when a signal ended it */
    int32_t signal;       /* 0 when none */
    char *log_tail;       /* last lines of its output */
    struct msg_bytes log; /* whole capped log; may be empty */
    uint64_t log_dropped_bytes;
};

struct msg_checked {
    bool ok;
    char *difference; /* what was expected and what came, for a person */
    uint64_t took_ns;
};

#define MSG_PROGRESS_LIST(X)                                                                                 \
    X(WARMUP_START)                                                                                          \
    X(WINDOW_START)                                                                                          \
    X(TICK)                                                                                                  \
    X(WINDOW_END)
enum msg_progress_kind {
#define X(name) MSG_PROGRESS_##name,
    MSG_PROGRESS_LIST(X)
#undef X
        MSG_PROGRESS_COUNT
};

struct msg_progress {
    enum msg_progress_kind kind;
    uint64_t at_ns; /* monotonic time of the load host */
    uint64_t ok;    /* completed so far in this phase */
    uint64_t failed;
};

/* scheduled = ok + failed + in_flight + never_sent */
#define MSG_ACCOUNTS_LIST(X)                                                                                 \
    X(scheduled)                                                                                             \
    X(ok)                                                                                                    \
    X(failed)                                                                                                \
    X(in_flight)                                                                                             \
    X(never_sent)
struct msg_accounts {
#define X(name) uint64_t name;
    MSG_ACCOUNTS_LIST(X)
#undef X
};

struct msg_error_class {
    char *phase; /* resolve connect tls send wait receive */
    char *cause; /* refused reset closed timeout protocol status ... */
    uint64_t count;
    char *sample; /* the first one's text */
};

struct msg_status_count {
    uint32_t status;
    uint64_t count;
};

struct msg_loaded {
    char *generator;          /* "splitbench-load 0.1.0" */
    uint64_t window_start_ns; /* monotonic time of the load host */
    uint64_t window_end_ns;
    struct msg_accounts window;
    struct msg_accounts warmup;
    struct figure figures[FIGURE_LOAD_COUNT];
    struct msg_error_class *errors;
    size_t error_count;
    struct msg_status_count *statuses;
    size_t status_count;
    struct msg_bytes
        latency_hist; /* text: base64 of HdrHistogram V2, compressed; empty when the tool gives none */
    char *raw;        /* what the tool printed, capped */
};

struct msg_proc_sample {
    uint32_t proc;
    bool alive;
    uint64_t cpu_ns;    /* of the whole tree since its start, ended children included */
    uint64_t rss_bytes; /* of the whole tree now */
    uint32_t processes; /* alive in the tree */
    struct figure counters[FIGURE_TREE_COUNT]; /* as cpu_ns: of the whole tree since its start */
};

struct msg_sampled {
    uint64_t at_ns;   /* monotonic time of this host */
    uint64_t busy_ns; /* all CPUs since boot: everything but idle, iowait and steal */
    uint64_t steal_ns;
    uint64_t own_ns; /* this agent and its supervisor */
    struct msg_proc_sample procs[MSG_PROCS_MAX];
    size_t proc_count;
};

struct msg_event {
    uint64_t number;  /* 1, 2, ... within an agent incarnation; re-sent until acked */
    uint64_t answers; /* number of the command it answers, 0 = unasked */
    char *job;
    uint64_t run;        /* of the command, or of the job that is held here */
    uint64_t controller; /* of the command, or who opened that job */
    enum msg_event_kind kind;
    enum err code; /* ERR_OK, or why the command failed (then kind is DONE) */
    char *text;    /* cause for a person when code is not OK */
    union {
        struct msg_files_missing files;
        struct msg_started started;
        struct msg_exited exited;
        struct msg_checked checked;
        struct msg_progress progress;
        struct msg_loaded loaded;
        struct msg_sampled sampled;
    } u;
};

/* ---- agent's requests ---------------------------------------------------------------------------------- */

struct msg_poll {
    uint64_t acked_command; /* every command up to here has been taken */
};

struct msg_commands {
    struct msg_command *items; /* empty: nothing to do, the lease is renewed */
    size_t count;
};

struct msg_push {
    uint64_t incarnation; /* the agent's that numbered them: an earlier one's, from the spool, come late */
    struct msg_event *items;
    size_t count;
};

struct msg_pushed {
    uint64_t acked_event; /* every event of the push's incarnation up to here is stored */
};

/* ---- operator's requests ------------------------------------------------------------------------------- */

#define MSG_MODE_LIST(X)                                                                                     \
    X(RUN)                                                                                                   \
    X(VERIFY)
enum msg_mode {
#define X(name) MSG_MODE_##name,
    MSG_MODE_LIST(X)
#undef X
        MSG_MODE_COUNT
};

struct msg_submit { /* repeated, with the same job id, until nothing is missing; then the job is queued */
    char *job;      /* chosen by the operator */
    enum msg_mode mode;
    char *experiment; /* resolved JSON text */
    struct msg_files files;
    char *base_dir; /* the experiment file's, when the operator is on the controller's machine; else "" */
    /* Drawn once for each submission: the same id and nonce is the same job, another nonce another one. "":
     * an operator of an earlier release, told by what is submitted. */
    char *nonce;
};

struct msg_submitted {
    struct msg_files_missing missing;
};

struct msg_blob {
    uint8_t hash[MSG_HASH_BYTES];
    uint64_t offset;
    uint64_t size_bytes; /* of the whole file */
    struct msg_bytes data;
};

struct msg_blob_taken {
    uint64_t have_bytes;
};

struct msg_watch {
    char *job;
    uint64_t after_line; /* lines already seen */
};

struct msg_watched {
    char *state;       /* queued running done failed cancelled */
    char *cause;       /* of a failure; of a queued job: what it waits for; cancelled: "cancelled by 'ann'" */
    int32_t exit_code; /* of the command line once the job has ended */
    uint32_t windows_done;
    uint32_t windows_total;
    uint64_t remaining_ns; /* by the schedule */
    char *doing;           /* "round 2/5 nginx /small c=100 window" */
    uint64_t ok_per_s;     /* live */
    uint64_t next_line;
    struct msg_strings lines;
    char *job; /* its whole id; "": a controller of an earlier release, which takes nothing else */
};

#define MSG_ASK_LIST(X)                                                                                      \
    X(STATUS)      /* jobs (or one job), as controller/view/status.h writes them */                          \
    X(HOSTS)       /* agents, as controller/view/hosts.h writes them */                                      \
    X(REPORT_JSON) /* of a job; "" = the newest */                                                           \
    X(REPORT_TEXT) /* number: columns of the terminal, 0 = 80 */                                             \
    X(CANCEL)                                                                                                \
    X(RESUME)                                                                                                \
    X(TOKEN)  /* arg: "agent" or "operator"; number: its life in ns; answers with the token's text. Or arg   \
               * MSG_TOKEN_LIST: those there are, as controller/view/tokens.h writes them */                 \
    X(REVOKE) /* arg: a name; its live connections end; answers with what came of it, for people */
#define MSG_TOKEN_LIST                                                                                       \
    "list" /* a word where a role stands: an earlier release refuses it with a sentence                      \
            */
enum msg_ask_kind {
#define X(name) MSG_ASK_##name,
    MSG_ASK_LIST(X)
#undef X
        MSG_ASK_COUNT
};

struct msg_ask {
    enum msg_ask_kind kind;
    char *job;
    char *arg;
    uint64_t number; /* second argument where one is needed */
    uint64_t offset; /* answers longer than a chunk are read in pieces */
};

struct msg_answer {
    char *text; /* a piece of at most LIMIT_CHUNK_BYTES */
    uint64_t total_bytes;
};

/* ---- the message --------------------------------------------------------------------------------------- */

#define MSG_KIND_LIST(X)                                                                                     \
    X(HELLO, hello)                                                                                          \
    X(CHALLENGE, challenge)                                                                                  \
    X(PROOF, proof)                                                                                          \
    X(WELCOME, welcome)                                                                                      \
    X(REFUSED, refused)                                                                                      \
    X(CA_ASK, ca_ask)                                                                                        \
    X(CA_GIVE, ca_give)                                                                                      \
    X(ENROLL, enroll)                                                                                        \
    X(ENROLLED, enrolled)                                                                                    \
    X(POLL, poll)                                                                                            \
    X(COMMANDS, commands)                                                                                    \
    X(PUSH, push)                                                                                            \
    X(PUSHED, pushed)                                                                                        \
    X(SUBMIT, submit)                                                                                        \
    X(SUBMITTED, submitted)                                                                                  \
    X(BLOB, blob)                                                                                            \
    X(BLOB_TAKEN, blob_taken)                                                                                \
    X(WATCH, watch)                                                                                          \
    X(WATCHED, watched)                                                                                      \
    X(ASK, ask)                                                                                              \
    X(ANSWER, answer)
enum msg_kind {
#define X(name, field) MSG_##name,
    MSG_KIND_LIST(X)
#undef X
        MSG_KIND_COUNT
};

struct msg_ca_ask {
    char unused;
};

struct msg {
    uint64_t session; /* 0 before WELCOME */
    uint64_t serial;  /* strictly increasing within a session and kind: a replay is refused */
    enum msg_kind kind;
    union {
#define X(name, field) struct msg_##field field;
        MSG_KIND_LIST(X)
#undef X
    } u;
};

void msg_init(struct msg *m, enum msg_kind kind); /* zeroed: every pointer NULL, read as "" or empty */
void msg_fini(struct msg *m);
void msg_copy(struct msg *to, const struct msg *from);

/* The same for what also stands alone: msg_host_fini, msg_host_copy and so on. */
#define MSG_OWNER_LIST(X)                                                                                    \
    X(command)                                                                                               \
    X(event)                                                                                                 \
    X(loaded)                                                                                                \
    X(host)                                                                                                  \
    X(files)
#define X(name)                                                                                              \
    void msg_##name##_fini(struct msg_##name *m);                                                            \
    void msg_##name##_copy(struct msg_##name *to, const struct msg_##name *from);
MSG_OWNER_LIST(X)
#undef X

/* Never NULL: "" for a NULL string of a message. */
const char *msg_text(const char *s);

/* A text for a message that is only built, read and forgotten: it stays the caller's, and such a message is
 * never given to a _fini. */
char *msg_borrowed(const char *text);

/* Lower-case word of an enum value, for logs and JSON: "job_open", "agent". */
const char *msg_kind_name(enum msg_kind k);
const char *msg_command_name(enum msg_command_kind k);
const char *msg_event_name(enum msg_event_kind k);
const char *msg_role_name(enum msg_role r);

#endif
