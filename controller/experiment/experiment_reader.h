#ifndef CONTROLLER_EXPERIMENT_EXPERIMENT_READER_H
#define CONTROLLER_EXPERIMENT_EXPERIMENT_READER_H
/*
 * One reading of one experiment: every mistake becomes a problem with its place, and reading goes on. Used by
 * the experiment*.c files alone; owned by experiment_read; one thread.
 */
#include "common/json.h"
#include "controller/experiment/experiment.h"

#define READER_TEXT_BYTES 96u
/* A body, sent or expected: as base64 it still fits into the resolved text and into one message. */
#define READER_BODY_BYTES (LIMIT_RESOLVED_BYTES / 2)
/* The built-in variable, which is left in texts until a host is chosen. */
#define READER_ADDRESS "${server.address}"

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
/* A string, or what a variable or --set put in its place; borrowed from the tree. NULL when it is neither. */
const char *reader_as_text(const struct json_value *v);
/* The same; NULL after reporting that it is no string, or too long. */
const char *reader_get_text(struct experiment_reader *r, const struct json_value *v, size_t bytes_max);

/* Is the key a header name that its object has not yet, in other letters? Reported. */
bool reader_header_name(struct experiment_reader *r, const struct json_value *member);

/* "a, b and 3 more" of the keys, into `out`. */
const char *reader_words(const char *const *words, size_t count, char *out, size_t size);

/* Puts the problems in the order of the file; those without a place come last. */
void reader_sort_problems(struct experiment_reader *r);

/* ---- the passes over the tree, in this order; each reports what it finds ------------------------- */

/* experiment_set.c: --set, by changing the tree. */
void experiment_apply_sets(struct experiment_reader *r, struct json_value *root);
/* experiment_vars.c: "${name}" in every string, by changing the tree. */
void experiment_substitute(struct experiment_reader *r, struct json_value *root);
/* experiment_design.c: what only the whole shows. */
void experiment_check_whole(struct experiment_reader *r, const struct json_value *v, void *experiment);
/* experiment_target.c: gives every role its name. */
void experiment_name_roles(struct experiment *e);

#endif
