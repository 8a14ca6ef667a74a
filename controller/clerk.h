#ifndef CONTROLLER_CLERK_H
#define CONTROLLER_CLERK_H
/*
 * Slow work on behalf of the loop: the store, files, certificates. Each piece runs on one of libuv's worker
 * threads, one at a time, with the clerk's own store handle; its end comes back on the loop. So the loop
 * never waits for a disk. Owned by the server; called from the loop's thread.
 */
#include "controller/store/store.h"

#include <uv.h>

struct clerk;

struct clerk_options {
    uv_loop_t *loop;
    const char *store_path;
};

NODISCARD enum err clerk_new(const struct clerk_options *options, struct clerk **out, struct err_detail *d);
/* Every piece that was given must have ended. */
void clerk_free(struct clerk *c);

/* `work` runs on a worker, `done` afterwards on the loop; both with `arg`. Pieces run one at a time, in no
 * fixed order. */
void clerk_do(struct clerk *c, void (*work)(struct store *s, void *arg), void (*done)(void *arg), void *arg);

/* Pieces given and not ended. */
size_t clerk_pending(const struct clerk *c);

#endif
