#ifndef CONTROLLER_REPORT_TABLE_H
#define CONTROLLER_REPORT_TABLE_H
/*
 * A table of text cells that fits a width: columns come in groups, each group stays together, and as many
 * groups share a block of lines as fit. The first column names the row and opens every block. Owned by the
 * caller; one thread.
 */
#include "common/buf.h"

#define TABLE_COLUMNS_MAX 32u

struct table_column {
    const char *title; /* borrowed for the table's life */
    unsigned group;    /* 1, 2, ... ascending; 0 only for the first column */
    bool left;         /* aligned left; numbers go right */
};

struct table {
    struct table_column columns[TABLE_COLUMNS_MAX];
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

/* Names that do not fit are cut in the middle ("node/ult..press"). ERR_TOO_BIG: `out` is full. */
NODISCARD enum err table_write(const struct table *t, unsigned width, struct buf *out);

/* At most `width` (3 or more) columns of `text`, cut in the middle; the caller frees it. */
char *table_shorten(const char *text, size_t width);

/* Columns that a text takes on a terminal: its characters, not its bytes. */
size_t table_text_width(const char *text);

/* `text` wrapped between `indent` and `width`, the first line after `lead`; control characters become blanks,
 * so that nothing that a server or an agent said can command a terminal. */
NODISCARD enum err table_wrap(const char *lead, size_t indent, const char *text, unsigned width,
                              struct buf *out);

#endif
