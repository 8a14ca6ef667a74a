#ifndef CONTROLLER_REPORT_TABLE_H
#define CONTROLLER_REPORT_TABLE_H
/*
 * A table of text cells that fits a width: columns come in groups, each group stays together, and as many
 * groups share a block of lines as fit. The first column names the row and opens every block. Owned by the
 * caller; one thread.
 */
#include "controller/report/page.h"

#define TABLE_COLUMNS_MAX 32u

struct table_column {
    const char *title;
    unsigned group; /* 1, 2, ... ascending; 0 only for the first column */
    bool left;      /* aligned left; numbers go right */
};

struct table {
    const struct table_column *columns; /* borrowed */
    size_t column_count;
    const char
        *group_titles[TABLE_COLUMNS_MAX]; /* by group: title of the first column in its block, or NULL */
    char **cells;                         /* row by row, owned; NULL prints as nothing */
    size_t row_count;
};

void table_init(struct table *t, const struct table_column *columns, size_t count);
void table_fini(struct table *t);

/* Opens a row; its name is the first cell. */
void table_add_row(struct table *t, const char *name);
/* A cell of the last row. */
void table_set(struct table *t, size_t column, const char *fmt, ...) PRINTF_LIKE(3, 4);

/* How many, and how many of them are bad when any is: "12, 2 bad". */
void table_set_count(struct table *t, size_t column, size_t count, size_t bad);

/* Names that do not fit are cut in the middle. */
void table_write(const struct table *t, struct page *p);

#endif
