#ifndef TESTS_SUPPORT_STORE_PLACE_H
#define TESTS_SUPPORT_STORE_PLACE_H
/*
 * A store of a test's own, open for writing, in a directory of its own. One thread; a test may close it, and
 * leaves NULL. What goes wrong fails the running cmocka test.
 */
#include "controller/store/store.h"
#include "tests/support/scratch.h"

struct place {
    struct scratch scratch;
    char path[96]; /* the store's file */
    struct store *store;
};

/* For cmocka: the state is a struct place. */
int place_set_up(void **state);
int place_tear_down(void **state);

void place_reopen(struct place *p);

/* sample_job of that name. */
void place_add_job(struct place *p, const char *id);

/* How many attempts of the job a store (a second one of the same file, say) can read. */
size_t place_attempts(struct store *s, const char *job);

#endif
