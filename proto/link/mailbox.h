#ifndef PROTO_LINK_MAILBOX_H
#define PROTO_LINK_MAILBOX_H
/*
 * How nng's threads reach the loop: they post nodes, the loop takes them in order. Posting never blocks
 * beyond a short lock. Embedded in a link; posted to from any thread, everything else on the loop's thread.
 */
#include "common/base.h"

#include <uv.h>

struct mailbox_node {
    struct mailbox_node *next;
};

struct mailbox {
    uv_async_t wake;
    uv_mutex_t lock;
    struct mailbox_node *head;
    struct mailbox_node **tail;
    size_t count;
    bool closed;
    void (*on_node)(void *arg, struct mailbox_node *node);
    void *arg;
};

void mailbox_init(struct mailbox *b, uv_loop_t *loop, void (*on_node)(void *arg, struct mailbox_node *node),
                  void *arg);

/* Hands the node over; returns how many wait now. A node is posted again only after it was taken. */
size_t mailbox_post(struct mailbox *b, struct mailbox_node *node);

/* How many wait now. */
size_t mailbox_count(struct mailbox *b);

/* Takes all that wait now, calling on_node for each. The wake-up does this; a closing owner may, too. */
void mailbox_drain(struct mailbox *b);

/* What is posted from now on is lost; after the last post nothing is. `cb` gets the handle: its data is `arg`
 * of mailbox_init. */
void mailbox_close(struct mailbox *b, uv_close_cb cb);

#endif
