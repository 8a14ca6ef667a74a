#ifndef CONTROLLER_CLI_LISTING_H
#define CONTROLLER_CLI_LISTING_H
/*
 * A list of things for a terminal: columns as wide as their widest cell, two blanks between, header first;
 * below a row what is too long for a column. Owned by the caller; main thread only.
 */
#include "common/base.h"

struct listing {
    size_t columns;
    size_t count; /* cells */
    char **cells;
    const bool *right; /* per column: aligned to the right */
    char **notes;      /* by row; "" where there is none */
    size_t note_count;
};

void listing_init(struct listing *t, size_t columns, const bool *right);
void listing_add(struct listing *t, const char *text); /* copied; "-" for an empty one */
/* Below the row that has just become whole: indented, wrapped to the terminal, never cut. */
void listing_note(struct listing *t, const char *text);
/* Only the first line of a cell that has several. On a terminal, the last column is cut to its width. */
void listing_print(const struct listing *t);
void listing_fini(struct listing *t);

#endif
