#ifndef TESTS_SUPPORT_CHILD_H
#define TESTS_SUPPORT_CHILD_H
/*
 * A part of a test in a process of its own, which may change who it is, how much it may write, and what is
 * mounted. One thread.
 */
#include "common/base.h"

#include <stdio.h>

#define CHILD_SKIPS 77 /* what a body returns when this machine does not let it */

/* In a body: says which line went wrong, and ends it. */
#define CHILD_CHECK(cond)                                                                                    \
    do {                                                                                                     \
        if (!(cond)) {                                                                                       \
            fprintf(stderr, "child: %s:%d: %s\n", __FILE__, __LINE__, #cond);                                \
            return 1;                                                                                        \
        }                                                                                                    \
    } while (0)

/* Runs `body` in a child; the running cmocka test fails when it does not return 0, and is skipped with it. */
void child_run(int (*body)(void *arg), void *arg);

/* For bodies. No file gets longer than this: writing on says so (EFBIG) and does not end the process. */
bool child_limit_files(size_t bytes);
/* An empty file system of so many bytes at `dir`, for this process alone. */
bool child_mount_small(const char *dir, size_t bytes);
/* Root becomes nobody; who is not root may stay. */
bool child_become_nobody(void);

#endif
