#include "controller/store/store_db.h"

#include "common/mem.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct store_value store_null(void)
{
    return (struct store_value){.kind = STORE_NULL};
}

struct store_value store_u64(uint64_t v)
{
    return (struct store_value){.kind = STORE_U64, .u.u64 = v};
}

struct store_value store_i64(int64_t v)
{
    return (struct store_value){.kind = STORE_I64, .u.i64 = v};
}

struct store_value store_real(double v)
{
    if (!isfinite(v) || v < 0)
        return store_null();
    return (struct store_value){.kind = STORE_REAL, .u.real = v};
}

struct store_value store_text(const char *v)
{
    return (struct store_value){.kind = STORE_TEXT, .u.text = v != NULL ? v : ""};
}

struct store_value store_blob(const void *data, size_t len)
{
    return (struct store_value){.kind = STORE_BLOB, .u.blob = data != NULL ? data : "", .len = len};
}

enum err store_failed(struct store *s, int rc, struct err_detail *d)
{
    const char *says = s->db != NULL ? sqlite3_errmsg(s->db) : sqlite3_errstr(rc);
    int code = rc & 0xff;
    int os = code == SQLITE_CANTOPEN || code == SQLITE_IOERR ? errno : 0;
    /* SQLite notes errno on some paths only (not when a COMMIT fails), where ours may be gone by now. */
    if (os == 0 && (code == SQLITE_CANTOPEN || code == SQLITE_IOERR) && s->db != NULL)
        os = sqlite3_system_errno(s->db);

    if (code == SQLITE_FULL || (code == SQLITE_IOERR && (os == ENOSPC || os == EDQUOT || os == EFBIG)))
        return err_set(
            d, ERR_FULL,
            "%s: no space left; what was stored before is safe. Free some space, then resume the job",
            s->path);
    if (code == SQLITE_NOTADB)
        return err_set(d, ERR_INVALID, "%s: not a splitbench store (not a SQLite database)", s->path);
    if (code == SQLITE_CORRUPT)
        return err_set(d, ERR_INVALID,
                       "%s: the file is damaged (%s). Restore a copy, or save what is left with "
                       "`sqlite3 FILE .recover | sqlite3 NEW`",
                       s->path, says);
    if (code == SQLITE_READONLY || code == SQLITE_PERM || code == SQLITE_AUTH)
        return err_set(d, ERR_DENIED, "%s: cannot be written (%s): check its permissions and its directory's",
                       s->path, says);
    if (code == SQLITE_BUSY || code == SQLITE_LOCKED || code == SQLITE_PROTOCOL)
        return err_set(d, ERR_BUSY, "%s: locked by another program for too long", s->path);
    if (code == SQLITE_CANTOPEN && os != 0)
        return err_set(d, err_from_errno(os), "%s: cannot be opened: %s", s->path, strerror(os));
    if (code == SQLITE_CANTOPEN)
        return err_set(d, ERR_IO, "%s: cannot be opened: is it a file in a directory that exists?", s->path);
    if (code == SQLITE_CONSTRAINT && (rc == SQLITE_CONSTRAINT_UNIQUE || rc == SQLITE_CONSTRAINT_PRIMARYKEY))
        return err_set(d, ERR_EXISTS, "%s: stored already (%s)", s->path, says);
    if (rc == SQLITE_CONSTRAINT_FOREIGNKEY)
        return err_set(d, ERR_NOT_FOUND, "%s: it belongs to a job or a run that is not in the store",
                       s->path);
    if (code == SQLITE_CONSTRAINT || code == SQLITE_TOOBIG)
        return err_set(d, ERR_INVALID, "%s: refused by the store: %s", s->path, says);
    if (os != 0)
        return err_set(d, ERR_IO, "%s: %s: %s", s->path, says, strerror(os));
    return err_set(d, ERR_IO, "%s: %s", s->path, says);
}

/* ---- statements ---------------------------------------------------------------------------------- */

static enum err prepare(struct store *s, const char *sql, sqlite3_stmt **out, struct err_detail *d)
{
    for (size_t i = 0; i < s->statement_count; i++) {
        if (strcmp(sqlite3_sql(s->statements[i]), sql) == 0) {
            *out = s->statements[i];
            return ERR_OK;
        }
    }
    must(s->statement_count < STORE_STATEMENTS_MAX);
    sqlite3_stmt *stmt = NULL;
    errno = 0;
    int rc = sqlite3_prepare_v3(s->db, sql, -1, SQLITE_PREPARE_PERSISTENT, &stmt, NULL);
    if (rc != SQLITE_OK)
        return store_failed(s, rc, d);
    s->statements[s->statement_count++] = stmt;
    *out = stmt;
    return ERR_OK;
}

static int bind_one(sqlite3_stmt *stmt, int at, const struct store_value *v)
{
    switch (v->kind) {
    case STORE_NULL:
        return sqlite3_bind_null(stmt, at);
    case STORE_U64:
        return sqlite3_bind_int64(stmt, at, (sqlite3_int64)v->u.u64);
    case STORE_I64:
        return sqlite3_bind_int64(stmt, at, v->u.i64);
    case STORE_REAL:
        return sqlite3_bind_double(stmt, at, v->u.real);
    case STORE_TEXT:
        return sqlite3_bind_text64(stmt, at, v->u.text, strlen(v->u.text), SQLITE_STATIC, SQLITE_UTF8);
    case STORE_BLOB:
        return sqlite3_bind_blob64(stmt, at, v->u.blob, v->len, SQLITE_STATIC);
    }
    return SQLITE_MISUSE;
}

static enum err bind_all(struct store *s, sqlite3_stmt *stmt, const struct store_value *values, size_t count,
                         struct err_detail *d)
{
    must((int)count == sqlite3_bind_parameter_count(stmt));
    for (size_t i = 0; i < count; i++) {
        if (values[i].kind == STORE_U64 && values[i].u.u64 > INT64_MAX)
            return err_set(d, ERR_INVALID,
                           "%s: a count or time of 2^63 or more cannot be true (value %zu of: %s)", s->path,
                           i + 1, sqlite3_sql(stmt));
        int rc = bind_one(stmt, (int)i + 1, &values[i]);
        if (rc != SQLITE_OK)
            return store_failed(s, rc, d);
    }
    return ERR_OK;
}

enum err store_run(struct store *s, const char *sql, const struct store_value *values, size_t count,
                   struct err_detail *d)
{
    sqlite3_stmt *stmt = NULL;
    enum err e = prepare(s, sql, &stmt, d);
    if (e != ERR_OK)
        return e;
    e = bind_all(s, stmt, values, count, d);
    if (e == ERR_OK) {
        errno = 0;
        int rc = sqlite3_step(stmt);
        if (rc != SQLITE_DONE)
            e = store_failed(s, rc == SQLITE_ROW ? SQLITE_MISUSE : rc, d);
    }
    (void)sqlite3_reset(stmt); /* gives the step's code again, which is handled */
    (void)sqlite3_clear_bindings(stmt);
    return e;
}

enum err store_run_on(struct store *s, const char *sql, const struct store_value *values, size_t count,
                      const char *missing, struct err_detail *d)
{
    enum err e = store_run(s, sql, values, count, d);
    if (e == ERR_OK && sqlite3_changes64(s->db) == 0)
        return err_set(d, ERR_NOT_FOUND, "%s", missing);
    return e;
}

void store_rows_init(struct store_rows *r, struct store *s, const char *sql, const struct store_value *values,
                     size_t count)
{
    *r = (struct store_rows){.store = s};
    r->e = prepare(s, sql, &r->stmt, &r->detail);
    if (r->e == ERR_OK)
        r->e = bind_all(s, r->stmt, values, count, &r->detail);
}

bool store_rows_next(struct store_rows *r)
{
    if (r->e != ERR_OK)
        return false;
    errno = 0;
    int rc = sqlite3_step(r->stmt);
    if (rc != SQLITE_ROW && rc != SQLITE_DONE)
        r->e = store_failed(r->store, rc, &r->detail);
    return rc == SQLITE_ROW;
}

enum err store_rows_fini(struct store_rows *r, struct err_detail *d)
{
    if (r->stmt != NULL) {
        (void)sqlite3_reset(r->stmt); /* gives the step's code again, which is in r->e */
        (void)sqlite3_clear_bindings(r->stmt);
        r->stmt = NULL;
    }
    if (r->e != ERR_OK && d != NULL)
        *d = r->detail;
    return r->e;
}

int64_t store_column_i64(struct store_rows *r, int column)
{
    return sqlite3_column_int64(r->stmt, column);
}

uint64_t store_column_u64(struct store_rows *r, int column)
{
    int64_t v = sqlite3_column_int64(r->stmt, column);
    return v > 0 ? (uint64_t)v : 0;
}

uint32_t store_column_u32(struct store_rows *r, int column)
{
    uint64_t v = store_column_u64(r, column);
    return v < UINT32_MAX ? (uint32_t)v : UINT32_MAX;
}

double store_column_real(struct store_rows *r, int column)
{
    if (sqlite3_column_type(r->stmt, column) == SQLITE_NULL)
        return -1;
    return sqlite3_column_double(r->stmt, column);
}

struct figure store_column_figure(struct store_rows *r, int column)
{
    if (sqlite3_column_type(r->stmt, column) == SQLITE_NULL)
        return (struct figure){0};
    return figure_known(store_column_u64(r, column));
}

bool store_column_bool(struct store_rows *r, int column)
{
    return sqlite3_column_int64(r->stmt, column) != 0;
}

char *store_column_text(struct store_rows *r, int column)
{
    const char *text = (const char *)sqlite3_column_text(r->stmt, column);
    return mem_strdup(text != NULL ? text : "");
}

struct msg_bytes store_column_blob(struct store_rows *r, int column)
{
    const void *data = sqlite3_column_blob(r->stmt, column);
    size_t len = (size_t)sqlite3_column_bytes(r->stmt, column);
    if (data == NULL || len == 0)
        return (struct msg_bytes){0};
    return (struct msg_bytes){.data = mem_dup(data, len), .len = len};
}

int store_column_word(struct store_rows *r, int column, const char *const *names, int count)
{
    const char *text = (const char *)sqlite3_column_text(r->stmt, column);
    for (int i = 0; text != NULL && i < count; i++)
        if (strcmp(text, names[i]) == 0)
            return i;
    if (r->e == ERR_OK)
        r->e = err_set(&r->detail, ERR_INVALID, "%s: \"%s\" is no word for column %s", r->store->path,
                       text != NULL ? text : "", sqlite3_column_name(r->stmt, column));
    return 0;
}

void *store_grow(void *items, size_t count, size_t size)
{
    bool full = (count & (count - 1)) == 0; /* a power of two, or none yet */
    return full ? mem_realloc(items, count != 0 ? 2 * count : 1, size) : items;
}

/* ---- transactions -------------------------------------------------------------------------------- */

enum err store_begin(struct store *s, struct err_detail *d)
{
    return store_run(s, "BEGIN IMMEDIATE", NULL, 0, d);
}

enum err store_begin_read(struct store *s, struct err_detail *d)
{
    return store_run(s, "BEGIN", NULL, 0, d);
}

enum err store_end(struct store *s, enum err e, struct err_detail *d)
{
    if (e == ERR_OK)
        e = store_run(s, "COMMIT", NULL, 0, d);
    /* SQLite may have rolled back by itself (disk full): then there is nothing left to end. */
    if (e != ERR_OK && sqlite3_get_autocommit(s->db) == 0)
        (void)sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
    return e;
}
