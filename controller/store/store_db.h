#ifndef CONTROLLER_STORE_STORE_DB_H
#define CONTROLLER_STORE_STORE_DB_H
/*
 * The inside of the store: one SQLite connection, statements prepared once, typed parameters and columns,
 * transactions, and SQLite's codes made ours. Only controller/store*.c include this file.
 */
#include "controller/store/store.h"

#include <sqlite3.h>

#define STORE_STATEMENTS_MAX 96u

struct store {
    sqlite3 *db;
    char *path;
    bool read_only;
    sqlite3_stmt *statements[STORE_STATEMENTS_MAX]; /* each with its text */
    size_t statement_count;
};

/* ---- parameters ---------------------------------------------------------------------------------- */

enum store_value_kind { STORE_NULL, STORE_U64, STORE_I64, STORE_REAL, STORE_TEXT, STORE_BLOB };

struct store_value {
    enum store_value_kind kind;
    union {
        uint64_t u64;
        int64_t i64;
        double real;
        const char *text;
        const void *blob;
    } u;
    size_t len; /* of a blob */
};

/* Borrowed until the statement has run. */
struct store_value store_null(void);
struct store_value
store_u64(uint64_t v); /* refused with ERR_INVALID from 2^63: SQLite's integers are signed */
struct store_value store_i64(int64_t v);
struct store_value store_real(double v);      /* negative and not finite = not known = NULL */
struct store_value store_text(const char *v); /* NULL = "" */
struct store_value store_blob(const void *data, size_t len);

#define STORE_VALUES(...)                                                                                    \
    (const struct store_value[]){__VA_ARGS__},                                                               \
        sizeof((const struct store_value[]){__VA_ARGS__}) / sizeof(struct store_value)

/* ---- statements ---------------------------------------------------------------------------------- */

/* Runs a statement that gives no rows. It is prepared once: values belong into parameters, not into `sql`. */
NODISCARD enum err store_run(struct store *s, const char *sql, const struct store_value *values, size_t count,
                             struct err_detail *d);

/* The same; ERR_NOT_FOUND with `missing` as its text when it changed no row. */
NODISCARD enum err store_run_on(struct store *s, const char *sql, const struct store_value *values,
                                size_t count, const char *missing, struct err_detail *d);

/* Rows, one at a time:
 *     struct store_rows rows;
 *     store_rows_init(&rows, s, sql, STORE_VALUES(...));
 *     while (store_rows_next(&rows)) ... store_column_u64(&rows, 0) ...
 *     e = store_rows_fini(&rows, d);
 */
struct store_rows {
    struct store *store;
    sqlite3_stmt *stmt;
    enum err e;
    struct err_detail detail;
};
void store_rows_init(struct store_rows *r, struct store *s, const char *sql, const struct store_value *values,
                     size_t count);
bool store_rows_next(struct store_rows *r);
NODISCARD enum err store_rows_fini(struct store_rows *r, struct err_detail *d);

uint64_t store_column_u64(struct store_rows *r, int column);
uint32_t store_column_u32(struct store_rows *r, int column);
int64_t store_column_i64(struct store_rows *r, int column);
double store_column_real(struct store_rows *r, int column);          /* NULL = -1 = not known */
struct figure store_column_figure(struct store_rows *r, int column); /* NULL = unknown */
bool store_column_bool(struct store_rows *r, int column);
char *store_column_text(struct store_rows *r, int column); /* a copy, never NULL */
struct msg_bytes store_column_blob(struct store_rows *r, int column);
/* Index of the column's text in `names`; ERR_INVALID in `r` when it is none of them. */
int store_column_word(struct store_rows *r, int column, const char *const *names, int count);

/* ---- transactions -------------------------------------------------------------------------------- */

NODISCARD enum err store_begin(struct store *s, struct err_detail *d);      /* to write */
NODISCARD enum err store_begin_read(struct store *s, struct err_detail *d); /* one snapshot */
/* Commits when `e` is ERR_OK, else rolls back and returns `e`. */
NODISCARD enum err store_end(struct store *s, enum err e, struct err_detail *d);

/* SQLite's code and what it says about `s`, as ours. */
enum err store_failed(struct store *s, int rc, struct err_detail *d);

/* ---- parts shared between the files of the store -------------------------------------------------- */

/* "SPLB": the mark of a file that is a store. */
#define STORE_APPLICATION_ID 0x53504c42
#define STORE_SCHEMA_VERSION FIGURE_SCHEMA

/* Statements that make a file of schema `version` (0: an empty file) one of the next, for writing. The caller
 * frees. */
char *store_upgrade_sql(unsigned version);
/* Statements that make such a file read like one of STORE_SCHEMA_VERSION, for reading. The caller frees. */
char *store_disguise_sql(unsigned version);

extern const char *const store_state_words[STORE_JOB_STATE_COUNT];
extern const char *const store_placement_words[STORE_PLACEMENT_COUNT];

/* Room for one more item at `count` in an array that doubles. */
void *store_grow(void *items, size_t count, size_t size);

/* A generator's result with its errors and statuses; part of the caller's transaction. */
NODISCARD enum err store_put_load(struct store *s, const struct msg_loaded *loaded, int64_t *load_id,
                                  struct err_detail *d);
/* Fills `out` but for the raw output; `whole`: its errors and statuses too. To be freed with
 * msg_loaded_fini. */
NODISCARD enum err store_get_load(struct store *s, int64_t load_id, bool whole, struct msg_loaded *out,
                                  struct err_detail *d);

/* Of attempts, into struct store_attempt (`loaded` is left as it is), and of hosts. */
struct store_table;
extern const struct store_table store_attempts_table, store_hosts_table;

/* The host that a select from store_hosts_table is at. */
struct store_read_host;
void store_get_host(struct store_rows *r, struct store_read_host *out);
void store_read_host_fini(struct store_read_host *host);

#endif
