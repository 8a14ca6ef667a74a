#ifndef PROTO_MSG_ARENA_H
#define PROTO_MSG_ARENA_H
/*
 * Heap for one encoding or decoding: every block is counted against a budget and all are freed together.
 * protobuf-c's own use is not bounded by the wire size, so it gets its memory here. Owned by the codec
 * call; one thread.
 */
#include "common/base.h"

#include <protobuf-c/protobuf-c.h>

struct arena_block;

struct arena {
    ProtobufCAllocator allocator; /* hand &arena.allocator to protobuf-c */
    struct arena_block *blocks;
    size_t left_bytes;
    bool overdrawn; /* a block was refused */
};

void arena_init(struct arena *a, size_t budget_bytes);
void arena_fini(struct arena *a);

/* Zeroed; NULL when the budget is spent. */
void *arena_alloc(struct arena *a, size_t size);

/* The size that was asked for a block of this arena: protobuf-c hides the length of a string, and with it a
 * NUL within. */
size_t arena_size(const void *block);

#endif
