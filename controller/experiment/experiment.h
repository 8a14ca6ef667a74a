#ifndef CONTROLLER_EXPERIMENT_EXPERIMENT_H
#define CONTROLLER_EXPERIMENT_EXPERIMENT_H
/*
 * An experiment: the file people write, checked and turned into plain structs. Reading never stops at the
 * first problem: every one is reported with its place. Immutable after reading; owned by the caller.
 * The format is docs/experiment-file.md and docs/experiment.schema.json; its keys are the tables of
 * experiment_keys.h.
 */
#include "common/err.h"
#include "proto/msg/msg.h"

enum experiment_order { EXPERIMENT_ORDER_FIXED, EXPERIMENT_ORDER_LATIN_SQUARE };
enum experiment_fresh { EXPERIMENT_FRESH_ROUND, EXPERIMENT_FRESH_WINDOW, EXPERIMENT_FRESH_JOB };

/* The words of the file for these. */
extern const char *const experiment_orders[];
extern const char *const experiment_fresh[];

struct experiment_label {
    char *key;
    char *value;
};

#define EXPERIMENT_ROLES_MAX 2u

struct experiment_role {
    const char *name;                /* "server", "load"; a literal */
    struct experiment_label *labels; /* a host must have all of them */
    size_t label_count;
    uint32_t count; /* hosts wanted; more than 1 only for load */
};

struct experiment_ready {
    enum msg_ready_kind kind;
    uint16_t port;
    char *path; /* HTTP */
    uint64_t timeout_ns;
};

struct experiment_variable {
    char *key;
    char *value;
};

struct experiment_env {
    struct experiment_variable *items;
    size_t count;
};

struct experiment_target {
    char *name;
    struct experiment_label *labels;
    size_t label_count;
    char *
        dir; /* absolute, or relative to the experiment file (local) or the workspace (files); NULL = there */
    struct msg_strings *build; /* commands */
    size_t build_count;
    struct msg_strings start;
    struct experiment_env env;
    uint16_t port; /* where it serves: from `port`, or from ready */
    struct experiment_ready ready;
    uint64_t stop_grace_ns;
    char *cpus; /* NULL = chosen by the placement */
};

struct experiment_workload {
    char *name;
    struct msg_request request;
    uint32_t *connections; /* swept values, at least one */
    size_t connection_count;
    uint32_t threads; /* 0 = chosen from connections and CPUs */
    uint64_t warmup_ns;
    uint64_t duration_ns;
    uint64_t timeout_ns;
    bool has_body_bytes;
    uint64_t body_bytes;
};

struct experiment_gates {
    uint64_t errors_max; /* failed requests allowed in a window */
    bool has_foreign_cpu;
    double foreign_cpu_max; /* cores */
    bool has_generator_cpu;
    double generator_cpu_max; /* share of the CPUs it was given, 0..1 */
    uint32_t retries;         /* further attempts of an invalid window */
};

struct experiment_design {
    uint32_t rounds;
    enum experiment_order order;
    uint64_t cooldown_ns; /* before each target */
    uint64_t gap_ns;      /* between windows of one target */
    enum experiment_fresh fresh;
};

struct experiment {
    char *name;
    struct experiment_role roles[EXPERIMENT_ROLES_MAX];
    size_t role_count;
    struct msg_strings files; /* globs, relative to the experiment file */
    struct experiment_target *targets;
    size_t target_count;
    struct msg_check *checks; /* host and port are filled in when they are sent */
    size_t check_count;
    struct experiment_workload *workloads;
    size_t workload_count;
    struct experiment_gates gates;
    struct experiment_design design;
    char *base_dir;               /* absolute directory of the file; relative dirs start here in local mode */
    char *resolved_json;          /* after vars and --set: what is stored, sent and hashed */
    uint8_t hash[MSG_HASH_BYTES]; /* SHA-256 of resolved_json */
};

/*
 * Built-in variables are known once a host is chosen: "${server.address}" in build, start and env of a target
 * and in headers of requests is left in the experiment. These fill it in; the caller frees the result.
 */
char *experiment_fill(const char *text, const char *server_address);
void experiment_fill_strings(const struct msg_strings *in, const char *server_address,
                             struct msg_strings *out);
/* Each as "KEY=value". */
void experiment_fill_env(const struct experiment_env *in, const char *server_address,
                         struct msg_strings *out);

struct experiment_problem {
    uint32_t line; /* 1-based; 0 when the problem has no place in the file */
    uint32_t column;
    char *text; /* "targets[0].start: what is wrong, what is allowed" */
};

struct experiment_problems {
    struct experiment_problem *items; /* at most LIMIT_PROBLEMS and a closing word */
    size_t count;
};

struct experiment_set { /* one --set path=value */
    const char *path;
    const char *value; /* JSON, or taken as a string when it is not */
};

/*
 * Splits "path=value" at the first '=' outside brackets, in place: `text` must outlive `out`. ERR_INVALID
 * when there is none.
 */
NODISCARD enum err experiment_split_set(char *text, struct experiment_set *out, struct err_detail *d);

enum experiment_use {
    EXPERIMENT_USE_ANY,    /* plan: absolute dirs may be on another host */
    EXPERIMENT_USE_LOCAL,  /* every dir must exist here */
    EXPERIMENT_USE_REMOTE, /* relative dirs need `files` */
};

struct experiment_options {
    const char *file; /* to read; as named by the user */
    const struct experiment_set *sets;
    size_t set_count;
    enum experiment_use use;
    const char *base_dir; /* experiment_parse only: becomes the experiment's; may be NULL */
};

/* Reads a file. ERR_OK fills `out`; ERR_INVALID fills `problems` (at least one, in file order); others fill
 * `d`. */
NODISCARD enum err experiment_read(const struct experiment_options *options, struct experiment **out,
                                   struct experiment_problems *problems, struct err_detail *d);

/* The same from text that was resolved before (sent or stored): strict JSON, and no file is opened. `sets`
 * and `file` are not looked at. */
NODISCARD enum err experiment_parse(const char *text, size_t len, const struct experiment_options *options,
                                    struct experiment **out, struct experiment_problems *problems);

/* NULL when there is no such role. */
const struct experiment_role *experiment_role(const struct experiment *e, const char *name);

void experiment_free(struct experiment *e); /* NULL and half-read ones are fine */
void experiment_problems_fini(struct experiment_problems *p);

/* "file:line:column: text" lines to stderr, and a closing line with the count. */
void experiment_print_problems(const char *file, const struct experiment_problems *p);

#endif
