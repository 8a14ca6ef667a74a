#include "controller/view/tokens.h"

#include "common/clock.h"
#include "common/json_write.h"

static void write_time(struct json_writer *w, const char *key, uint64_t wall_ns)
{
    char text[CLOCK_TEXT_BYTES];
    json_write_string(w, key, wall_ns != 0 ? clock_wall_text(wall_ns, text) : NULL);
}

static void write_name(struct json_writer *w, const char *key, const char *name)
{
    json_write_string(w, key, name[0] != '\0' ? name : NULL);
}

static void write_token(struct json_writer *w, const struct store_token *t, uint64_t now_wall_ns)
{
    const char *state = t->used_wall_ns != 0                ? "used"
                        : t->revoked_wall_ns != 0           ? "revoked"
                        : now_wall_ns >= t->expires_wall_ns ? "expired"
                                                            : "unused";
    json_write_object(w, NULL);
    json_write_string(w, "role", msg_role_name(t->role));
    json_write_string(w, "state", state);
    write_name(w, "made_by", t->made_by);
    write_time(w, "made", t->made_wall_ns);
    write_time(w, "expires", t->expires_wall_ns);
    write_name(w, "used_by", t->used_by);
    write_time(w, "used", t->used_wall_ns);
    json_write_close(w);
}

enum err tokens_write_json(struct store *s, struct buf *out, struct err_detail *d)
{
    struct store_token *tokens = NULL;
    size_t count = 0;
    struct json_writer w;
    enum err e = store_list_tokens(s, TOKENS_MAX, &tokens, &count, d);
    if (e != ERR_OK)
        return e;
    uint64_t now = clock_wall_ns();
    json_write_init(&w, out, 2);
    json_write_object(&w, NULL);
    json_write_string(&w, "format", "splitbench-tokens/1");
    json_write_array(&w, "tokens");
    for (size_t i = 0; i < count; i++)
        write_token(&w, &tokens[i], now);
    json_write_close(&w);
    json_write_close(&w);
    e = json_write_end(&w);
    store_free_tokens(tokens, count);
    return e == ERR_OK ? ERR_OK : err_set(d, e, "the list of tokens is too long to print");
}
