#ifndef TESTS_SUPPORT_FILL_H
#define TESTS_SUPPORT_FILL_H
/*
 * Messages with something in every field, made by the tables: whatever kind is added is covered.
 */
#include "proto/msg/schema.h"

/* Valid values everywhere, `n` items in every list (0 leaves lists and texts empty where they may be). The
 * struct is overwritten; free it with schema_fini. */
void fill_struct(const struct schema *s, void *ours, size_t n);

/* A message of this kind; of COMMANDS and PUSH, one item of each kind. */
void fill_msg(struct msg *m, enum msg_kind kind, size_t n);

/* Whether two structs say the same; NULL and "" do. */
bool fill_equal(const struct schema *s, const void *a, const void *b);

#endif
