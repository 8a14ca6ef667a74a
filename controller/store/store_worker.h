#ifndef CONTROLLER_STORE_STORE_WORKER_H
#define CONTROLLER_STORE_STORE_WORKER_H
/*
 * Slow work on behalf of the loop: the store, files, certificates. Each piece runs on one of libuv's worker
 * threads, one at a time, with the worker's own store handle; its end comes back on the loop. So the loop
 * never waits for a disk. Owned by the server; called from the loop's thread.
 */
#include "controller/store/store.h"

#include <uv.h>

struct store_worker;

struct store_worker_options {
    uv_loop_t *loop;
    const char *store_path;
};

NODISCARD enum err store_worker_new(const struct store_worker_options *options, struct store_worker **out,
                                    struct err_detail *d);
/* Every piece that was given must have ended. */
void store_worker_free(struct store_worker *c);

/* `work` runs on a worker, `done` afterwards on the loop; both with `arg`. Pieces run one at a time, in no
 * fixed order. */
void store_worker_do(struct store_worker *c, void (*work)(struct store *s, void *arg),
                     void (*done)(void *arg), void *arg);

/* Pieces given and not ended. */
size_t store_worker_pending(const struct store_worker *c);

#endif
