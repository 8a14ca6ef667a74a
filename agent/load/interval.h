#ifndef AGENT_LOAD_INTERVAL_H
#define AGENT_LOAD_INTERVAL_H
/*
 * What one worker measured in one interval of the window, and the box through which it reaches main. An
 * interval is owned by the worker while it fills, by the box while it lies there, by main after that.
 */
#include "common/hist.h"

#include <pthread.h>

struct interval {
    struct interval *next; /* in the box, or in main's time line */
    uint32_t delivered;    /* workers whose share is in it; counted by the time line */
    uint64_t index;        /* from the window's start; the same in every worker */
    uint64_t start_ns;
    uint64_t end_ns;
    uint64_t failed;
    struct hist latency; /* of ok requests: their number is its count */
};

struct interval *interval_new(uint64_t index, uint64_t start_ns);
void interval_free(struct interval *i);
void interval_free_list(struct interval *first);

struct interval_box {
    pthread_mutex_t lock;
    struct interval *first;
    struct interval **last;
};

void interval_box_init(struct interval_box *b);
void interval_box_fini(struct interval_box *b); /* frees what was never taken */

/* Any thread. Consumes the interval. */
void interval_box_put(struct interval_box *b, struct interval **i);
/* The intervals put since the last call, oldest first, as a list; NULL for none. */
struct interval *interval_box_take(struct interval_box *b);

#endif
