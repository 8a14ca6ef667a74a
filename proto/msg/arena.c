#include "proto/msg/arena.h"

#include "common/mem.h"

#include <stdlib.h>

struct arena_block {
    struct arena_block *next;
    size_t size;
    _Alignas(max_align_t) unsigned char data[];
};

/* The header of a block is counted as well: else a million empty strings would cost nothing of the budget. */
void *arena_alloc(struct arena *a, size_t size)
{
    if (size > a->left_bytes || a->left_bytes - size < sizeof(struct arena_block)) {
        a->overdrawn = true;
        return NULL;
    }
    a->left_bytes -= size + sizeof(struct arena_block);
    struct arena_block *b = mem_zalloc(1, sizeof *b + size);
    b->size = size;
    b->next = a->blocks;
    a->blocks = b;
    return b->data;
}

static void *alloc_for_protobuf(void *arena, size_t size)
{
    return arena_alloc(arena, size);
}

static void free_for_protobuf(void *arena, void *block)
{
    (void)arena;
    (void)block; /* with all the others */
}

void arena_init(struct arena *a, size_t budget_bytes)
{
    *a = (struct arena){
        .allocator = {.alloc = alloc_for_protobuf, .free = free_for_protobuf, .allocator_data = a},
        .left_bytes = budget_bytes,
    };
}

void arena_fini(struct arena *a)
{
    while (a->blocks != NULL) {
        struct arena_block *next = a->blocks->next;
        free(a->blocks);
        a->blocks = next;
    }
}

size_t arena_size(const void *block)
{
    return CONTAINER_OF(block, const struct arena_block, data)->size;
}
