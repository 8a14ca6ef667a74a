#include "proto/link/mailbox.h"

static void on_wake(uv_async_t *handle)
{
    mailbox_drain(CONTAINER_OF(handle, struct mailbox, wake));
}

void mailbox_init(struct mailbox *b, uv_loop_t *loop, void (*on_node)(void *arg, struct mailbox_node *node),
                  void *arg)
{
    *b = (struct mailbox){.on_node = on_node, .arg = arg};
    b->tail = &b->head;
    must(uv_mutex_init(&b->lock) == 0);
    must(uv_async_init(loop, &b->wake, on_wake) == 0);
    b->wake.data = arg;
}

size_t mailbox_post(struct mailbox *b, struct mailbox_node *node)
{
    node->next = NULL;
    uv_mutex_lock(&b->lock);
    size_t count = ++b->count;
    if (!b->closed) {
        *b->tail = node;
        b->tail = &node->next;
        /* Still under the lock: after it the loop may take the node, close the mailbox and free both. */
        uv_async_send(&b->wake);
    }
    uv_mutex_unlock(&b->lock);
    return count;
}

size_t mailbox_count(struct mailbox *b)
{
    uv_mutex_lock(&b->lock);
    size_t count = b->count;
    uv_mutex_unlock(&b->lock);
    return count;
}

void mailbox_drain(struct mailbox *b)
{
    uv_mutex_lock(&b->lock);
    struct mailbox_node *node = b->head;
    b->head = NULL;
    b->tail = &b->head;
    b->count = 0;
    uv_mutex_unlock(&b->lock);
    while (node != NULL) {
        struct mailbox_node *next = node->next;
        b->on_node(b->arg, node);
        node = next;
    }
}

void mailbox_close(struct mailbox *b, uv_close_cb cb)
{
    uv_mutex_lock(&b->lock);
    b->closed = true;
    uv_mutex_unlock(&b->lock);
    uv_close((uv_handle_t *)&b->wake, cb);
}
