#ifndef CONTROLLER_EXPERIMENT_EXPERIMENT_READER_H
#define CONTROLLER_EXPERIMENT_EXPERIMENT_READER_H
/*
 * One reading of one experiment: typed access to the JSON tree, where every mistake becomes a problem with
 * its place and reading goes on. Used by the experiment*.c files alone; owned by experiment_read; one thread.
 *
 * Every reader_get_* returns false after reporting, and leaves `out` alone. A `v` that is NULL is not a
 * problem: the default in `out` stays, and the answer is true.
 */
#include "common/json.h"
#include "controller/experiment/experiment.h"

#define READER_TEXT_BYTES 96u
/* A body, sent or expected: as base64 it still fits into the resolved text and into one message. */
#define READER_BODY_BYTES (LIMIT_RESOLVED_BYTES / 2)

struct experiment_reader {
    const struct experiment_options *options;
    struct experiment_problems *problems;
    const char *base_dir; /* NULL: no file is opened, the text was resolved before */
    const struct json_value *root;
    size_t dropped; /* problems beyond LIMIT_PROBLEMS */
};

/* "PATH: text" at the place of `at`, unless that was refused already. A value that came by --set has that
 * option named first. */
void reader_problem(struct experiment_reader *r, const struct json_value *at, const char *fmt, ...)
    PRINTF_LIKE(3, 4);
/* The same at the place of a member's key. */
void reader_problem_key(struct experiment_reader *r, const struct json_value *member, const char *fmt, ...)
    PRINTF_LIKE(3, 4);
/* "PATH.key: is missing: hint" at the place of `object`. */
void reader_missing(struct experiment_reader *r, const struct json_value *object, const char *key,
                    const char *hint);
/* "PATH: is 17, must be ..." */
bool reader_refuse(struct experiment_reader *r, const struct json_value *v, const char *fmt, ...)
    PRINTF_LIKE(3, 4);
/* Without a place: `path` and `text` as they are. */
void reader_problem_at(struct experiment_reader *r, uint32_t line, uint32_t column, const char *text);

/* Is it an object, and has it only these keys? Unknown ones are reported, each with what is allowed. */
bool reader_object(struct experiment_reader *r, const struct json_value *v, const char *const *keys,
                   size_t count);
/* Is it a list of 1 to `max` elements (0 with `empty`)? */
bool reader_list(struct experiment_reader *r, const struct json_value *v, size_t max, const char *what);

bool reader_get_u64(struct experiment_reader *r, const struct json_value *v, uint64_t min, uint64_t max,
                    uint64_t *out);
bool reader_get_u32(struct experiment_reader *r, const struct json_value *v, uint32_t min, uint32_t max,
                    uint32_t *out);
bool reader_get_port(struct experiment_reader *r, const struct json_value *v, uint16_t *out);
/* More than 0, at most `max`. */
bool reader_get_positive(struct experiment_reader *r, const struct json_value *v, double max, double *out);
bool reader_get_duration(struct experiment_reader *r, const struct json_value *v, uint64_t min_ns,
                         uint64_t max_ns, uint64_t *out);
/* Borrowed from the tree. Numbers count as strings where a variable or --set brought them. */
bool reader_get_text(struct experiment_reader *r, const struct json_value *v, size_t bytes_max,
                     const char **out);
/* As above, not empty, without control characters, copied. */
bool reader_get_string(struct experiment_reader *r, const struct json_value *v, size_t bytes_max, char **out);
/* Letters, digits and . _ / + -, with no part that is "." or "..". */
bool reader_get_name(struct experiment_reader *r, const struct json_value *v, char **out);
/* One of `words`; `out` is its index. */
bool reader_get_word(struct experiment_reader *r, const struct json_value *v, const char *const *words,
                     size_t count, size_t *out);
/* A command: 1 to LIMIT_ARGV_COUNT strings, the first not empty. */
bool reader_get_argv(struct experiment_reader *r, const struct json_value *v, struct msg_strings *out);
bool reader_get_labels(struct experiment_reader *r, const struct json_value *v, struct experiment_label **out,
                       size_t *count);

/* Reports the second of two elements whose "name" is equal. */
void reader_unique_names(struct experiment_reader *r, const struct json_value *list);

/* "a, b and 3 more" of the keys, into `out`. */
const char *reader_words(const char *const *words, size_t count, char *out, size_t size);

/* Puts the problems in the order of the file; those without a place come last. */
void reader_sort_problems(struct experiment_reader *r);

/* ---- the passes over the tree, in this order; each reports what it finds ------------------------- */

/* experiment_set.c: --set, by changing the tree. */
void experiment_apply_sets(struct experiment_reader *r, struct json_value *root);
/* experiment_vars.c: "${name}" in every string, by changing the tree. */
void experiment_substitute(struct experiment_reader *r, struct json_value *root);
/* experiment_target.c */
void experiment_read_roles(struct experiment_reader *r, const struct json_value *v, struct experiment *e);
void experiment_read_targets(struct experiment_reader *r, const struct json_value *v, struct experiment *e);
/* experiment_request.c */
bool experiment_read_request(struct experiment_reader *r, const struct json_value *v,
                             struct msg_request *out);
/* experiment_workload.c */
void experiment_read_checks(struct experiment_reader *r, const struct json_value *v, struct experiment *e);
void experiment_read_workloads(struct experiment_reader *r, const struct json_value *v, struct experiment *e);
/* experiment_design.c: design, gates, and what only the whole shows. */
void experiment_read_design(struct experiment_reader *r, const struct json_value *v, struct experiment *e);
void experiment_read_gates(struct experiment_reader *r, const struct json_value *v, struct experiment *e);
void experiment_check_whole(struct experiment_reader *r, const struct experiment *e);
/* experiment_write.c: the resolved text, with every default written out. The caller frees it. */
char *experiment_write(const struct experiment *e);

#endif
