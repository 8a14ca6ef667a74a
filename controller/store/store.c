#include "controller/store/store.h"

#include "common/buf.h"
#include "common/clock.h"
#include "common/mem.h"
#include "controller/store/store_db.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* How long a call waits for another process's transaction; those last milliseconds. */
#define BUSY_TIMEOUT_MS 10000

const char *const store_state_words[STORE_JOB_STATE_COUNT] = {
#define X(name, text) text,
    STORE_JOB_STATE_LIST(X)
#undef X
};

const char *const store_placement_words[STORE_PLACEMENT_COUNT] = {
#define X(name, text) text,
    STORE_PLACEMENT_LIST(X)
#undef X
};

const char *store_job_state_name(enum store_job_state s)
{
    return (unsigned)s < STORE_JOB_STATE_COUNT ? store_state_words[s] : "unknown";
}

const char *store_placement_name(enum store_placement p)
{
    return (unsigned)p < STORE_PLACEMENT_COUNT ? store_placement_words[p] : "unknown";
}

/* One integer that a PRAGMA or SELECT gives. */
static enum err read_integer(struct store *s, const char *sql, int64_t *out, struct err_detail *d)
{
    struct store_rows rows;
    store_rows_init(&rows, s, sql, NULL, 0);
    *out = store_rows_next(&rows) ? store_column_i64(&rows, 0) : 0;
    return store_rows_fini(&rows, d);
}

static enum err execute(struct store *s, const char *sql, struct err_detail *d)
{
    errno = 0;
    int rc = sqlite3_exec(s->db, sql, NULL, NULL, NULL);
    return rc == SQLITE_OK ? ERR_OK : store_failed(s, sqlite3_extended_errcode(s->db), d);
}

static enum err execute_made(struct store *s, char *sql, struct err_detail *d)
{
    enum err e = execute(s, sql, d);
    free(sql);
    return e;
}

/* Schema version of the file, 0 when it holds nothing yet; refused when it is no store, or a newer one. */
static enum err inspect(struct store *s, int64_t *out, struct err_detail *d)
{
    int64_t mark = 0;
    int64_t version = 0;
    int64_t tables = 0;
    enum err e = read_integer(s, "PRAGMA application_id", &mark, d);
    if (e == ERR_OK)
        e = read_integer(s, "PRAGMA user_version", &version, d);
    if (e == ERR_OK)
        e = read_integer(s, "SELECT count(*) FROM sqlite_schema", &tables, d);
    if (e != ERR_OK)
        return e;
    *out = version;
    if (mark == 0 && version == 0 && tables == 0)
        return ERR_OK;
    if (mark != STORE_APPLICATION_ID)
        return err_set(d, ERR_INVALID, "%s: a SQLite database of another program, not a splitbench store",
                       s->path);
    if (version > STORE_SCHEMA_VERSION)
        return err_set(d, ERR_UNSUPPORTED,
                       "%s: written by a newer splitbench (schema %lld, this program knows %d): "
                       "use that version or name another file",
                       s->path, (long long)version, STORE_SCHEMA_VERSION);
    if (version < 1)
        return err_set(d, ERR_INVALID, "%s: schema version %lld has never existed", s->path,
                       (long long)version);
    return ERR_OK;
}

/* Two programs may create or upgrade the same file at once: the second finds it done. */
static enum err bring_up(struct store *s, struct err_detail *d)
{
    enum err e = store_begin(s, d);
    if (e != ERR_OK)
        return e;
    int64_t version = 0;
    e = inspect(s, &version, d);
    for (; e == ERR_OK && version < STORE_SCHEMA_VERSION; version++)
        e = execute_made(s, store_upgrade_sql((unsigned)version), d);
    return store_end(s, e, d);
}

/* The file holds tokens and the environment of experiments: nobody else reads it. Only a new file is opened
 * here: closing a descriptor of one that SQLite has open would drop SQLite's locks on it. */
static void create_private(const char *path)
{
    int fd = open(path, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, S_IRUSR | S_IWUSR);
    if (fd >= 0)
        (void)close(fd); /* nothing was written */
}

static enum err try_wal(struct store *s, struct err_detail *d)
{
    struct store_rows rows;
    store_rows_init(&rows, s, "PRAGMA journal_mode = WAL", NULL, 0);
    char *mode = store_rows_next(&rows) ? store_column_text(&rows, 0) : mem_strdup("");
    enum err e = store_rows_fini(&rows, d);
    if (e == ERR_OK && strcmp(mode, "wal") != 0)
        e = err_set(
            d, ERR_UNSUPPORTED,
            "%s: this file system has no shared memory for SQLite's WAL: put the store on a local disk",
            s->path);
    free(mode);
    return e;
}

/* SQLite does not wait by itself when two programs switch a new file to WAL at once. */
static enum err use_wal(struct store *s, struct err_detail *d)
{
    uint64_t deadline = clock_now_ns() + BUSY_TIMEOUT_MS * NS_PER_MS;
    enum err e = try_wal(s, d);
    while (e == ERR_BUSY && clock_now_ns() < deadline) {
        (void)sqlite3_sleep(2);
        e = try_wal(s, d);
    }
    return e;
}

/* As inspect, of one moment: another program may be making the file. */
static enum err inspect_now(struct store *s, int64_t *version, struct err_detail *d)
{
    enum err e = store_begin_read(s, d);
    return e != ERR_OK ? e : store_end(s, inspect(s, version, d), d);
}

static enum err set_up(struct store *s, struct err_detail *d)
{
    (void)sqlite3_extended_result_codes(s->db, 1);
    (void)sqlite3_busy_timeout(s->db, BUSY_TIMEOUT_MS);
    /* Steps may replace a table that others refer to: references are watched from when all is in place. */
    enum err e = execute(s, "PRAGMA foreign_keys = OFF; PRAGMA synchronous = FULL;", d);
    int64_t version = 0;
    if (e == ERR_OK)
        e = inspect_now(s, &version, d);
    if (e != ERR_OK)
        return e;
    if (s->read_only && version == 0)
        return err_set(d, ERR_INVALID, "%s: an empty file, no job was ever stored in it", s->path);
    if (s->read_only)
        return version < STORE_SCHEMA_VERSION ? execute_made(s, store_disguise_sql((unsigned)version), d)
                                              : ERR_OK;
    e = use_wal(s, d);
    if (e == ERR_OK && version < STORE_SCHEMA_VERSION)
        e = bring_up(s, d);
    return e == ERR_OK ? execute(s, "PRAGMA foreign_keys = ON", d) : e;
}

/* Read only, in a directory where SQLite may not make its shared-memory file: when nobody has the store open
 * for writing (no -wal file), it does not change and can be read as it lies. */
static bool can_be_immutable(const char *path)
{
    char *wal = mem_printf("%s-wal", path);
    struct stat st;
    bool none = stat(wal, &st) != 0 || st.st_size == 0;
    free(wal);
    return none;
}

static enum err open_file(struct store *s, bool immutable, struct err_detail *d)
{
    int flags = s->read_only ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
    struct buf uri;
    buf_init(&uri, 3 * LIMIT_PATH_BYTES + 32);
    enum err e = buf_append_text(&uri, s->path[0] == '/' ? "file://" : "file:");
    for (const char *p = s->path; e == ERR_OK && *p != '\0'; p++)
        e = strchr("?#%", *p) != NULL ? buf_printf(&uri, "%%%02x", (unsigned)*p) : buf_append(&uri, p, 1);
    if (e == ERR_OK && immutable)
        e = buf_append_text(&uri, "?immutable=1");
    if (e == ERR_OK) {
        errno = 0;
        int rc = sqlite3_open_v2(uri.data, &s->db, flags | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX, NULL);
        e = rc == SQLITE_OK ? ERR_OK : store_failed(s, rc, d);
    }
    buf_fini(&uri);
    return e == ERR_OK ? set_up(s, d) : e;
}

static void close_file(struct store *s)
{
    for (size_t i = 0; i < s->statement_count; i++)
        (void)sqlite3_finalize(s->statements[i]); /* repeats the last step's code */
    s->statement_count = 0;
    int rc = sqlite3_close(s->db);
    must(rc == SQLITE_OK); /* a statement was forgotten */
    s->db = NULL;
}

enum err store_open(const char *path, bool read_only, struct store **out, struct err_detail *d)
{
    struct stat st;
    if (path[0] == '\0' || strlen(path) >= LIMIT_PATH_BYTES)
        return err_set(d, ERR_INVALID, "store: a path of 1 to %u bytes is needed", LIMIT_PATH_BYTES - 1);
    if (stat(path, &st) == 0 && !S_ISREG(st.st_mode))
        return err_set(d, ERR_INVALID, "%s: not a file", path);
    if (read_only && stat(path, &st) != 0)
        return err_set(d, err_from_errno(errno), "%s: cannot be read: %s", path, strerror(errno));

    struct store *s = mem_zalloc(1, sizeof(*s));
    s->path = mem_strdup(path);
    s->read_only = read_only;
    if (!read_only)
        create_private(path);
    enum err e = open_file(s, false, d);
    if (e != ERR_OK && e != ERR_INVALID && e != ERR_UNSUPPORTED && read_only && can_be_immutable(path)) {
        close_file(s);
        e = open_file(s, true, d);
    }
    if (e != ERR_OK) {
        store_close(s);
        return e;
    }
    *out = s;
    return ERR_OK;
}

const char *store_library_version(void)
{
    return sqlite3_libversion();
}

void store_close(struct store *s)
{
    if (s == NULL)
        return;
    close_file(s);
    free(s->path);
    free(s);
}
