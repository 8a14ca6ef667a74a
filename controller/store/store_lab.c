#include "common/clock.h"
#include "common/mem.h"
#include "controller/store/store_db.h"

#include <stdlib.h>
#include <string.h>

enum err store_add_token(struct store *s, const uint8_t hash[MSG_HASH_BYTES], enum msg_role role,
                         const char *made_by, uint64_t expires_wall_ns, struct err_detail *d)
{
    must(role == MSG_ROLE_AGENT || role == MSG_ROLE_OPERATOR);
    return store_run(s,
                     "INSERT INTO tokens (hash, role, made_by, made_wall_ns, expires_wall_ns)"
                     " VALUES (?, ?, ?, ?, ?)",
                     STORE_VALUES(store_blob(hash, MSG_HASH_BYTES), store_text(msg_role_name(role)),
                                  store_text(made_by), store_u64(clock_wall_ns()),
                                  store_u64(expires_wall_ns)),
                     d);
}

enum err store_list_tokens(struct store *s, size_t max, struct store_token **out, size_t *count,
                           struct err_detail *d)
{
    static const char *const roles[] = {"agent", "operator"};
    struct store_rows rows;
    struct store_token *tokens = NULL;
    size_t n = 0;
    store_rows_init(&rows, s,
                    "SELECT role, made_by, used_by, made_wall_ns, expires_wall_ns, used_wall_ns,"
                    " revoked_wall_ns FROM tokens ORDER BY expires_wall_ns DESC LIMIT ?",
                    STORE_VALUES(store_u64(max)));
    while (store_rows_next(&rows)) {
        tokens = store_grow(tokens, n, sizeof(*tokens));
        tokens[n++] = (struct store_token){.role = store_column_word(&rows, 0, roles, ARRAY_LEN(roles)) == 0
                                                       ? MSG_ROLE_AGENT
                                                       : MSG_ROLE_OPERATOR,
                                           .made_by = store_column_text(&rows, 1),
                                           .used_by = store_column_text(&rows, 2),
                                           .made_wall_ns = store_column_u64(&rows, 3),
                                           .expires_wall_ns = store_column_u64(&rows, 4),
                                           .used_wall_ns = store_column_u64(&rows, 5),
                                           .revoked_wall_ns = store_column_u64(&rows, 6)};
    }
    enum err e = store_rows_fini(&rows, d);
    if (e != ERR_OK) {
        store_free_tokens(tokens, n);
        return e;
    }
    *out = tokens;
    *count = n;
    return ERR_OK;
}

void store_free_tokens(struct store_token *tokens, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free(tokens[i].made_by);
        free(tokens[i].used_by);
    }
    free(tokens);
}

enum err store_check_token(struct store *s, const uint8_t hash[MSG_HASH_BYTES], enum msg_role role,
                           struct err_detail *d)
{
    struct store_rows rows;
    store_rows_init(&rows, s,
                    "SELECT role, expires_wall_ns, used_wall_ns, used_by, revoked_wall_ns, made_by"
                    " FROM tokens WHERE hash = ?",
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
    uint64_t revoked = store_column_u64(&rows, 4);
    char *made_by = store_column_text(&rows, 5);
    enum err e = store_rows_fini(&rows, d);
    char when[CLOCK_TEXT_BYTES];
    if (e != ERR_OK)
        goto out;
    if (used != 0)
        e = err_set(d, ERR_DENIED, "the token was used at %s by %s: every token works once",
                    clock_wall_text(used, when), used_by);
    else if (revoked != 0)
        e = err_set(d, ERR_DENIED, "the token was taken back at %s, when %s, who made it, was revoked",
                    clock_wall_text(revoked, when), made_by);
    else if (clock_wall_ns() >= expires)
        e = err_set(d, ERR_DENIED, "the token expired at %s: make a new one with `splitbench token`",
                    clock_wall_text(expires, when));
    else if (strcmp(allowed, msg_role_name(role)) != 0)
        e = err_set(d, ERR_DENIED, "the token is for an %s, not for an %s", allowed, msg_role_name(role));
out:
    free(allowed);
    free(used_by);
    free(made_by);
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

static enum err revoke_certificates(struct store *s, const char *name, uint64_t now_ns, uint64_t *found,
                                    struct err_detail *d)
{
    enum err e = store_run(s,
                           "UPDATE certificates SET revoked_wall_ns = iif(revoked_wall_ns = 0, ?,"
                           " revoked_wall_ns) WHERE name = ?",
                           STORE_VALUES(store_u64(now_ns), store_text(name)), d);
    *found = (uint64_t)sqlite3_changes64(s->db);
    return e;
}

static enum err revoke_tokens(struct store *s, const char *name, uint64_t now_ns, uint32_t *taken,
                              struct err_detail *d)
{
    enum err e = store_run(s,
                           "UPDATE tokens SET revoked_wall_ns = ?1 WHERE made_by = ?2 AND used_wall_ns = 0"
                           " AND revoked_wall_ns = 0 AND expires_wall_ns > ?1",
                           STORE_VALUES(store_u64(now_ns), store_text(name)), d);
    *taken = (uint32_t)sqlite3_changes64(s->db);
    return e;
}

/* Who may still come in because `name` once let them. */
static enum err list_enrolled(struct store *s, const char *name, struct msg_strings *out,
                              struct err_detail *d)
{
    struct store_rows rows;
    store_rows_init(&rows, s,
                    "SELECT DISTINCT c.name FROM tokens t JOIN certificates c ON c.name = t.used_by"
                    " WHERE t.made_by = ?1 AND c.name <> ?1 AND c.revoked_wall_ns = 0"
                    " ORDER BY c.name LIMIT ?2",
                    STORE_VALUES(store_text(name), store_u64(STORE_REVOKED_NAMES_MAX)));
    while (store_rows_next(&rows)) {
        out->items = store_grow(out->items, out->count, sizeof(*out->items));
        out->items[out->count++] = store_column_text(&rows, 0);
    }
    return store_rows_fini(&rows, d);
}

enum err store_revoke(struct store *s, const char *name, struct store_revoked *out, struct err_detail *d)
{
    struct store_revoked r = {0};
    uint64_t now_ns = clock_wall_ns();
    enum err e = store_begin(s, d);
    if (e != ERR_OK)
        return e;
    e = revoke_certificates(s, name, now_ns, &r.certificates, d);
    if (e == ERR_OK)
        e = revoke_tokens(s, name, now_ns, &r.tokens, d);
    if (e == ERR_OK && r.certificates == 0 && r.tokens == 0)
        e = err_set(d, ERR_NOT_FOUND,
                    "no certificate was ever issued to %s: `splitbench hosts` lists the agents", name);
    if (e == ERR_OK)
        e = list_enrolled(s, name, &r.enrolled, d);
    e = store_end(s, e, d);
    if (e == ERR_OK)
        *out = r;
    else
        mem_free_strings(&r.enrolled.items, &r.enrolled.count);
    return e;
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
