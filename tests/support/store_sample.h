#ifndef TESTS_SUPPORT_STORE_SAMPLE_H
#define TESTS_SUPPORT_STORE_SAMPLE_H
/*
 * Jobs and results with a different value in every field, for tests of what is stored. One thread.
 */
#include "controller/store/store_read.h"

/* A literal in a struct whose texts are owned; such a struct is not finied. */
#define SAMPLE_TEXT(text) ((char *)(text))

/* Texts are static: not to be finied. Placement split-cpus, queued, mode run. */
struct store_job sample_job(const char *id);

/* Every field is set and differs; `seed` moves them all. */
struct msg_loaded *sample_loaded(uint32_t seed);
void sample_loaded_free(struct msg_loaded *loaded);

/* Valid and final, every figure known and different; `loaded` (may be NULL) is borrowed. */
struct store_attempt sample_attempt(uint32_t window, uint32_t attempt, const struct msg_loaded *loaded);

/* Fails the running cmocka test at the first difference; what was read has no raw output. */
void assert_attempt_equal(const struct store_attempt *got, const struct store_attempt *expected);

#endif
