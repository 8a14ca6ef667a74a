#ifndef CONTROLLER_STORE_STORE_ROW_H
#define CONTROLLER_STORE_STORE_ROW_H
/*
 * Rows of the store as structs: a table lists each column once, with its name, its type and its place in the
 * struct, and INSERT, SELECT and freeing follow from it. So no column is counted by hand. Only files of
 * controller/store/ include this.
 *
 * A file defines ROW to its struct and lists the columns: C_U64("dead_ns", dead_ns).
 */
#include "controller/store/store_db.h"

enum store_column_type {
    STORE_COLUMN_U32,
    STORE_COLUMN_U64,
    STORE_COLUMN_I32,
    STORE_COLUMN_REF, /* int64_t, 0 = NULL: the id of another table's row */
    STORE_COLUMN_BOOL,
    STORE_COLUMN_REAL,   /* double, negative = NULL */
    STORE_COLUMN_FIGURE, /* struct figure, unknown = NULL */
    STORE_COLUMN_WORD,   /* an enum by its words */
    STORE_COLUMN_TEXT,   /* owned when read, borrowed when written; NULL is written as "" */
    STORE_COLUMN_BLOB,   /* struct msg_bytes, likewise */
};

struct store_column {
    const char *name;
    enum store_column_type type;
    bool only_read; /* `name` is an expression, or a column that the store fills itself */
    size_t at;      /* its place in the struct */
    const char *const *words;
    int word_count;
};

struct store_table {
    const char *name;
    const struct store_column *columns;
    size_t count;
};

#define STORE_COLUMNS_MAX 64u

#define C_OF(column, type_, field, c_type)                                                                   \
    {                                                                                                        \
        .name = column, .type = STORE_COLUMN_##type_, .at = TYPED_OFFSET(ROW, field, c_type)                 \
    }
#define C_U32(column, field)    C_OF(column, U32, field, uint32_t)
#define C_U64(column, field)    C_OF(column, U64, field, uint64_t)
#define C_I32(column, field)    C_OF(column, I32, field, int32_t)
#define C_REF(column, field)    C_OF(column, REF, field, int64_t)
#define C_BOOL(column, field)   C_OF(column, BOOL, field, bool)
#define C_REAL(column, field)   C_OF(column, REAL, field, double)
#define C_FIGURE(column, field) C_OF(column, FIGURE, field, struct figure)
#define C_BLOB(column, field)   C_OF(column, BLOB, field, struct msg_bytes)
#define C_WORD(column, field, of, list, n)                                                                   \
    {                                                                                                        \
        .name = column, .type = STORE_COLUMN_WORD, .at = TYPED_OFFSET(ROW, field, enum of), .words = list,   \
        .word_count = n                                                                                      \
    }
/* char * or const char * */
#define C_TEXT(column, field)                                                                                \
    {                                                                                                        \
        .name = column, .type = STORE_COLUMN_TEXT,                                                           \
        .at = offsetof(ROW, field) + 0 * sizeof(char[sizeof(*((ROW *)0)->field) == 1 ? 1 : -1])              \
    }
/* The same columns, only read. */
#define C_READ(column, type_, field, c_type)                                                                 \
    {                                                                                                        \
        .name = column, .type = STORE_COLUMN_##type_, .only_read = true,                                     \
        .at = TYPED_OFFSET(ROW, field, c_type)                                                               \
    }

#define STORE_TABLE(table, list)                                                                             \
    {                                                                                                        \
        .name = table, .columns = list, .count = ARRAY_LEN(list)                                             \
    }

/* One row; `key` names one more column that is not in the struct, or is NULL. */
NODISCARD enum err store_insert(struct store *s, const struct store_table *t, const char *key,
                                struct store_value key_value, const void *row, struct err_detail *d);

/* As store_rows_init, for the columns of the table; `rest` is what follows "FROM table". */
void store_select(struct store_rows *r, struct store *s, const struct store_table *t, const char *rest,
                  const struct store_value *values, size_t count);

/* Fills the table's fields of a struct from the row that the select is at; the others stay as they are. */
void store_get_row(struct store_rows *r, const struct store_table *t, void *row);

/* Do both hold the same in every column that is written? */
bool store_row_equal(const struct store_table *t, const void *a, const void *b);

/* Frees what a row that was read owns. */
void store_row_fini(const struct store_table *t, void *row);

#endif
