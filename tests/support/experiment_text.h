#ifndef TESTS_SUPPORT_EXPERIMENT_TEXT_H
#define TESTS_SUPPORT_EXPERIMENT_TEXT_H
/*
 * Experiments as texts, for tests: written into a directory of their own and read with options. A failure
 * fails the test. One thread.
 */
#include "controller/experiment/experiment.h"

struct experiment_text {
    enum err err;
    struct experiment *e;
    struct experiment_problems problems;
    struct err_detail d;
};

extern const char *const experiment_text_dir;
extern const char experiment_text_small[]; /* the shortest one that is good: target "a", workload "w" */

/* For cmocka_run_group_tests: makes the directory, and removes it. */
int experiment_text_begin(void **state);
int experiment_text_end(void **state);

void experiment_text_write(const char *name, const void *data, size_t len);

/* Reads `text` with --set options like "design.rounds=2", NULL-terminated. */
struct experiment_text experiment_text_read(const char *text, enum experiment_use use,
                                            const char *const *options);
void experiment_text_fini(struct experiment_text *r);

/* The experiment; the caller frees it. */
struct experiment *experiment_text_good(const char *text, const char *const *options);

/* All problems, each as "line:column: text\n", begin with `wanted`; "..." in it stands for what comes before
 * a
 * ';' or the end of the line, as the keys that are allowed. */
void experiment_text_bad(const char *text, const char *const *options, const char *wanted);

#endif
