#ifndef TESTS_SUPPORT_SCRATCH_H
#define TESTS_SUPPORT_SCRATCH_H
/*
 * A directory of a test's own under /tmp, named after the test program. Caller's storage; one thread. What
 * goes wrong fails the running cmocka test.
 */
struct scratch {
    char dir[64];
    char path[160]; /* what scratch_at said last */
};

void scratch_init(struct scratch *s);
/* Removes it with everything in it; follows no link. */
void scratch_fini(struct scratch *s);

/* The path of `name` in it, until the next call. */
const char *scratch_at(struct scratch *s, const char *name);

/* Writes a file there, 0644, with the directories on the way. */
void scratch_put(struct scratch *s, const char *name, const char *text);

/* For tests that need nothing else: the state is a struct scratch. */
int scratch_set_up(void **state);
int scratch_tear_down(void **state);

#endif
