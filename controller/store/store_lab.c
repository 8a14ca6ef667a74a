#include "common/clock.h"
#include "controller/store/store_db.h"

#include <stdlib.h>
#include <string.h>

enum err store_add_token(struct store *s, const uint8_t hash[MSG_HASH_BYTES], enum msg_role role,
                         uint64_t expires_wall_ns, struct err_detail *d)
{
    must(role == MSG_ROLE_AGENT || role == MSG_ROLE_OPERATOR);
    return store_run(s, "INSERT INTO tokens (hash, role, expires_wall_ns) VALUES (?, ?, ?)",
                     STORE_VALUES(store_blob(hash, MSG_HASH_BYTES), store_text(msg_role_name(role)),
                                  store_u64(expires_wall_ns)),
                     d);
}

enum err store_check_token(struct store *s, const uint8_t hash[MSG_HASH_BYTES], enum msg_role role,
                           struct err_detail *d)
{
    struct store_rows rows;
    store_rows_init(&rows, s,
                    "SELECT role, expires_wall_ns, used_wall_ns, used_by FROM tokens WHERE hash = ?",
                    STORE_VALUES(store_blob(hash, MSG_HASH_BYTES)));
    if (!store_rows_next(&rows)) {
        enum err failed = store_rows_fini(&rows, d);
        return failed != ERR_OK ? failed
                                : err_set(d, ERR_DENIED, "unknown token: `splitbench token` makes one");
    }
    char *allowed = store_column_text(&rows, 0);
    uint64_t expires = store_column_u64(&rows, 1);
    uint64_t used = store_column_u64(&rows, 2);
    char *used_by = store_column_text(&rows, 3);
    enum err e = store_rows_fini(&rows, d);
    char when[CLOCK_TEXT_BYTES];
    if (e != ERR_OK)
        goto out;
    if (used != 0)
        e = err_set(d, ERR_DENIED, "the token was used at %s by %s: every token works once",
                    clock_wall_text(used, when), used_by);
    else if (clock_wall_ns() >= expires)
        e = err_set(d, ERR_DENIED, "the token expired at %s: make a new one with `splitbench token`",
                    clock_wall_text(expires, when));
    else if (strcmp(allowed, msg_role_name(role)) != 0)
        e = err_set(d, ERR_DENIED, "the token is for an %s, not for an %s", allowed, msg_role_name(role));
out:
    free(allowed);
    free(used_by);
    return e;
}

/* One name, one party: taking the name of another role back would shut out both. */
static enum err judge_name(struct store *s, const char *name, enum msg_role role, struct err_detail *d)
{
    struct store_rows rows;
    store_rows_init(
        &rows, s,
        "SELECT role FROM certificates WHERE name = ? AND role <> ? AND revoked_wall_ns = 0 LIMIT 1",
        STORE_VALUES(store_text(name), store_text(msg_role_name(role))));
    char *holder = store_rows_next(&rows) ? store_column_text(&rows, 0) : NULL;
    enum err e = store_rows_fini(&rows, d);
    if (e == ERR_OK && holder != NULL)
        e = err_set(d, ERR_EXISTS,
                    "the name '%s' belongs to an %s: choose another one, or take it back with "
                    "`splitbench revoke %s`",
                    name, holder, name);
    free(holder);
    return e;
}

enum err store_use_token(struct store *s, const uint8_t hash[MSG_HASH_BYTES], const char *name,
                         enum msg_role role, struct err_detail *d)
{
    enum err e = store_begin(s, d);
    if (e != ERR_OK)
        return e;
    e = store_check_token(s, hash, role, d); /* first: strangers do not learn names */
    if (e == ERR_OK)
        e = judge_name(s, name, role, d);
    if (e == ERR_OK)
        e = store_run(
            s, "UPDATE tokens SET used_wall_ns = ?, used_by = ? WHERE hash = ?",
            STORE_VALUES(store_u64(clock_wall_ns()), store_text(name), store_blob(hash, MSG_HASH_BYTES)), d);
    return store_end(s, e, d);
}

enum err store_add_certificate(struct store *s, const char *serial, const char *name, enum msg_role role,
                               struct err_detail *d)
{
    must(role != MSG_ROLE_NONE && (unsigned)role < MSG_ROLE_COUNT);
    const char *word = msg_role_name(role);
    uint64_t now_ns = clock_wall_ns();
    enum err e = store_begin(s, d);
    if (e != ERR_OK)
        return e;
    e = store_run(s,
                  "UPDATE certificates SET revoked_wall_ns = ? WHERE name = ? AND role = ?"
                  " AND revoked_wall_ns = 0",
                  STORE_VALUES(store_u64(now_ns), store_text(name), store_text(word)), d);
    if (e == ERR_OK)
        e = store_run(s, "INSERT INTO certificates (serial, name, role, issued_wall_ns) VALUES (?, ?, ?, ?)",
                      STORE_VALUES(store_text(serial), store_text(name), store_text(word), store_u64(now_ns)),
                      d);
    if (e == ERR_EXISTS)
        e = err_set(d, e, "certificate serial %s was issued before", serial);
    return store_end(s, e, d);
}

enum err store_revoke(struct store *s, const char *name, struct err_detail *d)
{
    struct err_detail missing;
    (void)err_set(&missing, ERR_NOT_FOUND,
                  "no certificate was ever issued to %s: `splitbench hosts` lists the agents", name);
    return store_run_on(
        s,
        "UPDATE certificates SET revoked_wall_ns = iif(revoked_wall_ns = 0, ?, revoked_wall_ns)"
        " WHERE name = ?",
        STORE_VALUES(store_u64(clock_wall_ns()), store_text(name)), missing.text, d);
}

enum err store_is_revoked(struct store *s, const char *serial, bool *out, struct err_detail *d)
{
    struct store_rows rows;
    store_rows_init(&rows, s, "SELECT revoked_wall_ns FROM certificates WHERE serial = ?",
                    STORE_VALUES(store_text(serial)));
    bool found = store_rows_next(&rows);
    bool revoked = found && store_column_u64(&rows, 0) != 0;
    enum err e = store_rows_fini(&rows, d);
    if (e == ERR_OK && !found)
        return err_set(d, ERR_NOT_FOUND, "certificate serial %s was not issued by this controller", serial);
    if (e == ERR_OK)
        *out = revoked;
    return e;
}
