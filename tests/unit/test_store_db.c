#include "controller/store/store_db.h"

#include "tests/support/store_place.h"
#include "tests/support/store_sample.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* What SQLite says, and errno with it, made ours: without a database, as when it could not be opened. */
static void test_codes_become_ours(void **state)
{
    (void)state;
    static const struct {
        int rc;
        int os;
        enum err e;
        const char *text;
    } rows[] = {
        {SQLITE_FULL, 0, ERR_FULL, "no space left"},
        {SQLITE_FULL, EIO, ERR_FULL, "no space left"},
        {SQLITE_IOERR_WRITE, ENOSPC, ERR_FULL, "no space left"},
        {SQLITE_IOERR_FSYNC, EDQUOT, ERR_FULL, "no space left"},
        {SQLITE_IOERR_SHMSIZE, EFBIG, ERR_FULL, "no space left"},
        {SQLITE_IOERR_WRITE, EIO, ERR_IO, NULL},
        {SQLITE_IOERR_READ, 0, ERR_IO, NULL},
        {SQLITE_CORRUPT, ENOSPC, ERR_INVALID, "damaged"}, /* errno is of something else */
        {SQLITE_NOTADB, 0, ERR_INVALID, "not a SQLite database"},
        {SQLITE_READONLY, 0, ERR_DENIED, "cannot be written"},
        {SQLITE_PERM, 0, ERR_DENIED, "cannot be written"},
        {SQLITE_AUTH, 0, ERR_DENIED, "cannot be written"},
        {SQLITE_BUSY, 0, ERR_BUSY, "locked by another program"},
        {SQLITE_LOCKED, 0, ERR_BUSY, "locked by another program"},
        {SQLITE_PROTOCOL, 0, ERR_BUSY, "locked by another program"},
        {SQLITE_CANTOPEN, EACCES, ERR_DENIED, "cannot be opened: Permission denied"},
        {SQLITE_CANTOPEN, 0, ERR_IO, "is it a file in a directory that exists?"},
        {SQLITE_CONSTRAINT_UNIQUE, 0, ERR_EXISTS, "stored already"},
        {SQLITE_CONSTRAINT_PRIMARYKEY, 0, ERR_EXISTS, "stored already"},
        {SQLITE_CONSTRAINT_FOREIGNKEY, 0, ERR_NOT_FOUND, "not in the store"},
    };
    char path[] = "/lab/store.db";
    struct store s = {.path = path};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct err_detail d = {""};
        errno = rows[i].os;
        if (store_failed(&s, rows[i].rc, &d) != rows[i].e)
            fail_msg("row %zu: %s", i, d.text);
        if (rows[i].text != NULL && strstr(d.text, rows[i].text) == NULL)
            fail_msg("row %zu: '%s' is not in '%s'", i, rows[i].text, d.text);
        assert_memory_equal(d.text, path, strlen(path));
    }
}

/* Where errno is gone by the time we ask, the database still knows it. */
static void test_the_database_remembers_errno(void **state)
{
    (void)state;
    char path[] = "/proc/self/no-such-directory/store.db";
    struct store s = {.path = path};
    struct err_detail d = {""};
    assert_int_equal(sqlite3_open_v2(path, &s.db, SQLITE_OPEN_READWRITE, NULL), SQLITE_CANTOPEN);
    errno = 0;
    assert_int_equal(store_failed(&s, SQLITE_CANTOPEN, &d), ERR_NOT_FOUND);
    assert_non_null(strstr(d.text, "cannot be opened: No such file or directory"));
    errno = EACCES; /* ours goes first */
    assert_int_equal(store_failed(&s, SQLITE_CANTOPEN, &d), ERR_DENIED);
    sqlite3_close(s.db);
}

/* It is not read by us, but is there for other programs. */
static void test_raw_output_is_kept(void **state)
{
    struct place *p = *state;
    struct store_rows rows;
    struct msg_loaded *loaded = sample_loaded(1);
    struct store_attempt a = sample_attempt(0, 1, loaded);
    place_add_job(p, "j");
    assert_int_equal(store_add_attempt(p->store, "j", &a, NULL), ERR_OK);
    store_rows_init(&rows, p->store, "SELECT raw FROM loads", NULL, 0);
    assert_true(store_rows_next(&rows));
    char *raw = store_column_text(&rows, 0);
    assert_string_equal(raw, loaded->raw);
    free(raw);
    assert_false(store_rows_next(&rows));
    assert_int_equal(store_rows_fini(&rows, NULL), ERR_OK);
    sample_loaded_free(loaded);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_codes_become_ours),
        cmocka_unit_test(test_the_database_remembers_errno),
        cmocka_unit_test_setup_teardown(test_raw_output_is_kept, place_set_up, place_tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
