#include "controller/experiment/experiment_keys.h"

#include "common/mem.h"
#include "common/parse.h"
#include "common/path.h"

#include <inttypes.h>
#include <string.h>

/* Reading by the tables. Recursion is as deep as the tables are. */

static bool read_value(struct experiment_reader *r, const struct key *k, const struct json_value *v,
                       void *at);

void keys_init(const struct keys *t, void *object)
{
    for (size_t i = 0; i < t->count; i++) {
        const struct key *k = &t->rows[i];
        char *at = (char *)object + k->at;
        struct json_value *v = NULL;
        if (k->kind == KEY_OBJECT)
            keys_init(k->keys, at);
        if (k->initial == NULL)
            continue;
        must(json_parse(k->initial, strlen(k->initial), NULL, &v, NULL) == ERR_OK);
        must(read_value(NULL, k, v, at)); /* nothing to report: no reader is needed */
        json_free(v);
    }
}

/* ---- scalars ----------------------------------------------------------------------------------- */

static bool read_number(struct experiment_reader *r, const struct key *k, const struct json_value *v,
                        void *at)
{
    uint64_t n = 0;
    if (json_to_u64(v, k->min, k->max, &n, NULL) != ERR_OK)
        return reader_refuse(r, v, "%s from %" PRIu64 " to %" PRIu64,
                             k->what != NULL ? k->what : "a whole number", k->min, k->max);
    if (k->size == sizeof(uint16_t))
        *(uint16_t *)at = (uint16_t)n;
    else if (k->size == sizeof(uint32_t))
        *(uint32_t *)at = (uint32_t)n;
    else
        *(uint64_t *)at = n;
    return true;
}

static bool read_share(struct experiment_reader *r, const struct key *k, const struct json_value *v,
                       double *out)
{
    double n = 0;
    double max = (double)k->max;
    if (json_to_double(v, 0, max, &n, NULL) != ERR_OK || n <= 0)
        return reader_refuse(r, v, "a number over 0, at most %g", max);
    *out = n;
    return true;
}

static bool read_time(struct experiment_reader *r, const struct key *k, const struct json_value *v,
                      uint64_t *out)
{
    char low[32];
    char high[32];
    uint64_t ns = 0;
    const char *text = reader_as_text(v);
    if (text == NULL || parse_duration(text, &ns, "", NULL) != ERR_OK)
        return reader_refuse(r, v, "a duration with its unit (us, ms, s, m, h), like \"10s\"");
    if (ns < k->min || ns > k->max)
        return reader_refuse(r, v, "a duration from %s to %s", parse_duration_text(k->min, low, sizeof low),
                             parse_duration_text(k->max, high, sizeof high));
    *out = ns;
    return true;
}

static bool read_word(struct experiment_reader *r, const struct key *k, const struct json_value *v,
                      unsigned *out)
{
    char allowed[256];
    unsigned count = 0;
    const char *text = json_kind(v) == JSON_STRING ? json_text(v) : NULL;
    for (; k->words[count] != NULL; count++) {
        if (text == NULL || strcmp(k->words[count], text) != 0)
            continue;
        *out = count;
        return true;
    }
    const char *close = text != NULL ? parse_closest(text, k->words, count) : NULL;
    return reader_refuse(r, v, "one of %s%s%s%s", reader_words(k->words, count, allowed, sizeof allowed),
                         close != NULL ? "; did you mean " : "", close != NULL ? close : "",
                         close != NULL ? "?" : "");
}

/* Is it what this kind of text must be? */
static bool check_text(struct experiment_reader *r, const struct key *k, const struct json_value *v,
                       const char *text)
{
    static const char letters[] = PATH_NAME_LETTERS "/+";
    if (k->kind == KEY_NAME && (text[0] == '\0' || text[0] == '-' || text[strspn(text, letters)] != '\0' ||
                                path_has_part(text, ".") || path_has_part(text, "..")))
        return reader_refuse(r, v, "a name of letters, digits and ._/+-, not starting with -");
    if (k->kind != KEY_TEXT && k->kind != KEY_BODY_FILE)
        return true;
    const char *p = text;
    while ((unsigned char)*p >= 0x20 && *p != 0x7f)
        p++;
    if (text[0] == '\0')
        reader_problem(r, v, "is empty");
    else if (*p != '\0')
        reader_problem(r, v, "holds the control character 0x%02x", (unsigned)(unsigned char)*p);
    return text[0] != '\0' && *p == '\0';
}

static bool read_text(struct experiment_reader *r, const struct key *k, const struct json_value *v, void *at)
{
    const char *text = reader_get_text(r, v, k->max);
    if (text == NULL || !check_text(r, k, v, text))
        return false;
    if (k->kind == KEY_BODY)
        *(struct msg_bytes *)at =
            (struct msg_bytes){.data = mem_dup(text, strlen(text)), .len = strlen(text)};
    else if (k->kind == KEY_BODY_FILE)
        return k->read(r, v, at);
    else if (k->kind != KEY_NOTE)
        mem_set_string(at, text);
    return true;
}

/* ---- lists and maps ---------------------------------------------------------------------------- */

/* What the row wants before and after included. */
static bool read_checked(struct experiment_reader *r, const struct key *k, const struct json_value *v,
                         void *at)
{
    if ((k->before != NULL && !k->before(r, v)) || !read_value(r, k, v, at))
        return false;
    if (k->after != NULL)
        k->after(r, v, at);
    return true;
}

static bool read_list(struct experiment_reader *r, const struct key *k, const struct json_value *v, void *at)
{
    bool one = k->kind == KEY_SWEEP && json_kind(v) == JSON_NUMBER;
    size_t count = one ? 1 : json_count(v);
    if (!one && json_kind(v) != JSON_ARRAY)
        return k->kind == KEY_SWEEP
                   ? reader_refuse(r, v, "a number of connections or a list of them, like [10, 100]")
                   : reader_refuse(r, v, "a list of %s", k->what);
    if (count == 0 || count > k->max) {
        reader_problem(r, v, "has %zu elements, must have 1 to %" PRIu64 " %s", count, k->max, k->what);
        return false;
    }
    struct key_array a = {.items = mem_zalloc(count, k->element->size), .count = count};
    char *item = a.items;
    memcpy(at, &a, sizeof a);
    for (const struct json_value *c = one ? v : json_first(v); c != NULL; c = one ? NULL : json_next(c)) {
        if (k->element->kind == KEY_OBJECT)
            keys_init(k->element->keys, item);
        (void)read_checked(r, k->element, c, item); /* refused: the element keeps its zeros */
        item += k->element->size;
    }
    return true;
}

/* Elements that are refused are left out. */
static bool read_map(struct experiment_reader *r, const struct key *k, const struct json_value *v, void *at)
{
    size_t count = json_count(v);
    if (json_kind(v) != JSON_OBJECT)
        return reader_refuse(r, v, "an object of %s, like %s", k->what, k->example);
    if (count > k->max) {
        reader_problem(r, v, "has %zu %s, at most %" PRIu64 " are allowed", count, k->what, k->max);
        return false;
    }
    struct key_array a = {.items = mem_zalloc(count, k->element->size)};
    for (const struct json_value *m = json_first(v); m != NULL; m = json_next(m)) {
        char *item = a.items + a.count * k->element->size;
        if (!k->check_key(r, m) || !read_checked(r, k->element, m, item + k->element->at))
            continue;
        mem_set_string((char **)(void *)(item + k->element->key_at), json_key(m));
        a.count++;
    }
    memcpy(at, &a, sizeof a);
    return true;
}

static bool read_value(struct experiment_reader *r, const struct key *k, const struct json_value *v, void *at)
{
    switch (k->kind) {
    case KEY_NUMBER:
        return read_number(r, k, v, at);
    case KEY_SHARE:
        return read_share(r, k, v, at);
    case KEY_TIME:
        return read_time(r, k, v, at);
    case KEY_WORD:
        return read_word(r, k, v, at); /* an enum of ours is an unsigned int */
    case KEY_NAME:
    case KEY_TEXT:
    case KEY_RAW:
    case KEY_NOTE:
    case KEY_BODY:
    case KEY_BODY_FILE:
        return read_text(r, k, v, at);
    case KEY_VARS:
        return true;
    case KEY_BODY_BASE64:
    case KEY_MATCH:
        return k->read(r, v, at);
    case KEY_OBJECT:
        return keys_read(r, k->keys, v, at);
    case KEY_LIST:
    case KEY_SWEEP:
        return read_list(r, k, v, at);
    case KEY_MAP:
        return read_map(r, k, v, at);
    }
    return false;
}

/* ---- objects ----------------------------------------------------------------------------------- */

/* Is a key there, before this one, that excludes it? Reported. */
static bool is_excluded(struct experiment_reader *r, const struct keys *t, const struct json_value *member)
{
    for (const struct json_value *m = json_first(member->parent); m != member; m = json_next(m)) {
        for (size_t i = 0; i < t->apart_count; i++) {
            const struct keys_apart *a = &t->apart[i];
            const char *other = strcmp(a->one, json_key(member)) == 0     ? a->other
                                : strcmp(a->other, json_key(member)) == 0 ? a->one
                                                                          : "";
            if (strcmp(other, json_key(m)) != 0)
                continue;
            reader_problem_key(r, member, "there is %s already: %s", other, a->why);
            return true;
        }
    }
    return false;
}

bool keys_read(struct experiment_reader *r, const struct keys *t, const struct json_value *v, void *object)
{
    const char *names[KEYS_MAX];
    must(t->count <= KEYS_MAX);
    for (size_t i = 0; i < t->count; i++)
        names[i] = t->rows[i].name;
    if (!reader_object(r, v, names, t->count))
        return false;
    for (size_t i = 0; i < t->count; i++) {
        const struct key *k = &t->rows[i];
        const struct json_value *m = json_member(v, k->name);
        if (m == NULL && k->missing != NULL)
            reader_missing(r, v, k->name, k->missing);
        if (m == NULL || is_excluded(r, t, m) || !read_checked(r, k, m, (char *)object + k->at))
            continue;
        if (k->has_at != 0)
            *((bool *)object + k->has_at) = true;
    }
    if (t->finish != NULL)
        t->finish(r, v, object);
    return true;
}
