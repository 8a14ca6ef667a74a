#ifndef CONTROLLER_STORE_STORE_WORKER_H
#define CONTROLLER_STORE_STORE_WORKER_H
/*
 * Slow work on behalf of the loop: the store, files, certificates. The pieces of a worker run one after the
 * other on libuv's threads, with the worker's own store handle; their end comes back on the loop. So the loop
 * never waits for a disk, and a worker has one thread at most, however much it is given: there may be three,
 * libuv has four. Owned by the server; called from the loop's thread.
 */
#include "controller/store/store.h"

#include <uv.h>

struct store_worker;

struct store_worker_options {
    uv_loop_t *loop;
    const char *store_path;
    bool read_only; /* it sees what is stored when a piece begins to read */
};

NODISCARD enum err store_worker_new(const struct store_worker_options *options, struct store_worker **out,
                                    struct err_detail *d);
/* Every piece that was given must have ended. */
void store_worker_free(struct store_worker *c);

/* `work` runs on a worker, `done` afterwards on the loop; both with `arg`. Pieces run in the order in which
 * they were given. */
void store_worker_do(struct store_worker *c, void (*work)(struct store *s, void *arg),
                     void (*done)(void *arg), void *arg);

/* Pieces given and not ended. */
size_t store_worker_pending(const struct store_worker *c);

#endif
