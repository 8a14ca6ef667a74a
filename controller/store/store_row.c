#include "controller/store/store_row.h"

#include "common/buf.h"

#include <stdlib.h>
#include <string.h>

/* The statements are our own: of a known length. */
#define SQL_BYTES_MAX 4096u

static void add(struct buf *sql, const char *text)
{
    must(buf_append_text(sql, text) == ERR_OK);
}

static struct store_value value_of(const struct store_column *c, const void *row)
{
    const void *at = (const char *)row + c->at;
    switch (c->type) {
    case STORE_COLUMN_U32:
        return store_u64(*(const uint32_t *)at);
    case STORE_COLUMN_U64:
        return store_u64(*(const uint64_t *)at);
    case STORE_COLUMN_I32:
        return store_i64(*(const int32_t *)at);
    case STORE_COLUMN_REF:
        return *(const int64_t *)at > 0 ? store_i64(*(const int64_t *)at) : store_null();
    case STORE_COLUMN_BOOL:
        return store_u64(*(const bool *)at);
    case STORE_COLUMN_REAL:
        return store_real(*(const double *)at);
    case STORE_COLUMN_FIGURE: {
        const struct figure *f = at;
        return f->known ? store_u64(f->value) : store_null();
    }
    case STORE_COLUMN_WORD: {
        unsigned word = *(const unsigned *)at;
        must(word < (unsigned)c->word_count);
        return store_text(c->words[word]);
    }
    case STORE_COLUMN_TEXT: {
        const char *text;
        memcpy(&text, at, sizeof text);
        return store_text(text);
    }
    case STORE_COLUMN_BLOB: {
        const struct msg_bytes *bytes = at;
        return store_blob(bytes->data, bytes->len);
    }
    }
    return store_null();
}

enum err store_insert(struct store *s, const struct store_table *t, const char *key,
                      struct store_value key_value, const void *row, struct err_detail *d)
{
    struct store_value values[STORE_COLUMNS_MAX + 1];
    size_t count = 0;
    struct buf sql;
    buf_init(&sql, SQL_BYTES_MAX);
    add(&sql, "INSERT INTO ");
    add(&sql, t->name);
    add(&sql, " (");
    if (key != NULL) {
        add(&sql, key);
        values[count++] = key_value;
    }
    for (size_t i = 0; i < t->count; i++) {
        if (t->columns[i].only_read)
            continue;
        must(count <= STORE_COLUMNS_MAX);
        add(&sql, count != 0 ? ", " : "");
        add(&sql, t->columns[i].name);
        values[count++] = value_of(&t->columns[i], row);
    }
    add(&sql, ") VALUES (?");
    for (size_t i = 1; i < count; i++)
        add(&sql, ", ?");
    add(&sql, ")");
    enum err e = store_run(s, sql.data, values, count, d);
    buf_fini(&sql);
    return e;
}

void store_select(struct store_rows *r, struct store *s, const struct store_table *t, const char *rest,
                  const struct store_value *values, size_t count)
{
    struct buf sql;
    buf_init(&sql, SQL_BYTES_MAX);
    add(&sql, "SELECT ");
    for (size_t i = 0; i < t->count; i++) {
        add(&sql, i != 0 ? ", " : "");
        add(&sql, t->columns[i].name);
    }
    add(&sql, " FROM ");
    add(&sql, t->name);
    add(&sql, rest);
    store_rows_init(r, s, sql.data, values, count);
    buf_fini(&sql);
}

static void get_value(struct store_rows *r, const struct store_column *c, int column, void *row)
{
    void *at = (char *)row + c->at;
    switch (c->type) {
    case STORE_COLUMN_U32:
        *(uint32_t *)at = store_column_u32(r, column);
        break;
    case STORE_COLUMN_U64:
        *(uint64_t *)at = store_column_u64(r, column);
        break;
    case STORE_COLUMN_I32:
        *(int32_t *)at = (int32_t)store_column_i64(r, column);
        break;
    case STORE_COLUMN_REF: /* SQLite reads NULL as 0 */
        *(int64_t *)at = store_column_i64(r, column);
        break;
    case STORE_COLUMN_BOOL:
        *(bool *)at = store_column_bool(r, column);
        break;
    case STORE_COLUMN_REAL:
        *(double *)at = store_column_real(r, column);
        break;
    case STORE_COLUMN_FIGURE:
        *(struct figure *)at = store_column_figure(r, column);
        break;
    case STORE_COLUMN_WORD:
        *(unsigned *)at = (unsigned)store_column_word(r, column, c->words, c->word_count);
        break;
    case STORE_COLUMN_TEXT: {
        char *text = store_column_text(r, column);
        memcpy(at, &text, sizeof text); /* of a char * or a const char * */
        break;
    }
    case STORE_COLUMN_BLOB:
        *(struct msg_bytes *)at = store_column_blob(r, column);
        break;
    }
}

void store_get_row(struct store_rows *r, const struct store_table *t, void *row)
{
    for (size_t i = 0; i < t->count; i++)
        get_value(r, &t->columns[i], (int)i, row);
}

static bool value_equal(const struct store_value *a, const struct store_value *b)
{
    if (a->kind != b->kind)
        return false;
    switch (a->kind) {
    case STORE_NULL:
        return true;
    case STORE_U64:
        return a->u.u64 == b->u.u64;
    case STORE_I64:
        return a->u.i64 == b->u.i64;
    case STORE_REAL:
        return a->u.real == b->u.real;
    case STORE_TEXT:
        return strcmp(a->u.text, b->u.text) == 0;
    case STORE_BLOB:
        return a->len == b->len && memcmp(a->u.blob, b->u.blob, a->len) == 0;
    }
    return false;
}

bool store_row_equal(const struct store_table *t, const void *a, const void *b)
{
    for (size_t i = 0; i < t->count; i++) {
        struct store_value x = value_of(&t->columns[i], a), y = value_of(&t->columns[i], b);
        if (!t->columns[i].only_read && !value_equal(&x, &y))
            return false;
    }
    return true;
}

void store_row_fini(const struct store_table *t, void *row)
{
    for (size_t i = 0; i < t->count; i++) {
        void *at = (char *)row + t->columns[i].at;
        void *owned = NULL;
        if (t->columns[i].type == STORE_COLUMN_TEXT)
            memcpy(&owned, at, sizeof owned);
        else if (t->columns[i].type == STORE_COLUMN_BLOB)
            owned = ((struct msg_bytes *)at)->data;
        free(owned);
    }
}
