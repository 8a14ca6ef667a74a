#include "agent/load/request_set.h"

#include "common/file.h"
#include "common/json.h"
#include "common/mem.h"

static enum err add(struct request_set *s, const struct request_spec *spec, const struct target *t,
                    const struct options *o, struct err_detail *d)
{
    if (s->count == REQUESTS_MAX)
        return err_set(d, ERR_TOO_BIG, "more than %u requests", REQUESTS_MAX);
    struct request *r = &s->items[s->count];
    enum err e = request_make(r, spec, t, o, d);
    r->index = s->count++;
    size_t space = request_render_bytes(r);
    s->render_bytes = space > s->render_bytes ? space : s->render_bytes;
    s->has_hash |= r->expect.has_hash;
    return e;
}

/* --- from a file --- */

/* Everything of one entry that must live until its request is built. */
struct entry {
    struct request_spec spec;
    char *headers[LIMIT_HEADERS];
    char *body; /* of body_file */
    char name[32];
};

static const char *const keys[] = {"name", "weight",    "method",   "path",  "headers",
                                   "body", "body_file", "template", "expect"};
static const char *const expect_keys[] = {"status", "body_bytes", "body_sha256"};

static enum err refuse(const struct json_value *v, const char *what, struct err_detail *d)
{
    char path[JSON_PATH_BYTES];
    return err_set(d, ERR_INVALID, "%u:%u: %s: %s", v->line, v->column, json_path(v, path, sizeof path),
                   what);
}

static enum err refuse_unknown(const struct json_value *object, const char *const *known, size_t count,
                               struct err_detail *d)
{
    if (json_kind(object) != JSON_OBJECT)
        return refuse(object, "must be an object", d);
    for (const struct json_value *m = json_first(object); m != NULL; m = json_next(m)) {
        bool found = false;
        for (size_t i = 0; i < count; i++)
            found |= strcmp(json_key(m), known[i]) == 0;
        if (!found)
            return refuse(m, "is not known here", d);
    }
    return ERR_OK;
}

/* The string member, or NULL when there is none. */
static enum err optional_text(const struct json_value *object, const char *key, const char **out,
                              struct err_detail *d)
{
    const struct json_value *v = json_member(object, key);
    *out = NULL;
    return v != NULL ? json_to_string(v, out, d) : ERR_OK;
}

static enum err read_headers(struct entry *e, const struct json_value *headers, struct err_detail *d)
{
    if (headers == NULL)
        return ERR_OK;
    if (json_kind(headers) != JSON_OBJECT || json_count(headers) > LIMIT_HEADERS)
        return refuse(headers, "must be an object with at most 128 headers", d);
    for (const struct json_value *h = json_first(headers); h != NULL; h = json_next(h)) {
        const char *value = NULL;
        enum err err = json_to_string(h, &value, d);
        if (err != ERR_OK)
            return err;
        e->headers[e->spec.header_count++] = mem_printf("%s: %s", json_key(h), value);
    }
    e->spec.headers = (const char *const *)e->headers;
    return ERR_OK;
}

static enum err read_status(struct expect *x, const struct json_value *v, struct err_detail *d)
{
    if (v == NULL)
        return ERR_OK;
    if (json_kind(v) == JSON_NUMBER || json_kind(v) == JSON_STRING)
        return expect_parse_status(x, json_text(v), "expect.status", d);
    return refuse(v, "must be a status or a text like \"200,304\"", d);
}

static enum err read_expect(struct expect *x, const struct json_value *v, struct err_detail *d)
{
    if (v == NULL)
        return ERR_OK;
    const char *hash = NULL;
    enum err e = refuse_unknown(v, expect_keys, ARRAY_LEN(expect_keys), d);
    if (e == ERR_OK)
        e = read_status(x, json_member(v, "status"), d);
    const struct json_value *length = json_member(v, "body_bytes");
    if (e == ERR_OK && length != NULL) {
        x->has_length = true;
        e = json_to_u64(length, 0, UINT64_C(1) << 52, &x->length, d);
    }
    if (e == ERR_OK)
        e = optional_text(v, "body_sha256", &hash, d);
    if (e == ERR_OK && hash != NULL)
        e = expect_parse_hash(x, hash, "expect.body_sha256", d);
    return e;
}

static enum err read_body(struct entry *e, const struct json_value *v, struct err_detail *d)
{
    const char *file = NULL;
    enum err err = optional_text(v, "body", &e->spec.body, d);
    if (err == ERR_OK)
        err = optional_text(v, "body_file", &file, d);
    if (err != ERR_OK)
        return err;
    if (file != NULL && e->spec.body != NULL)
        return refuse(v, "has both body and body_file", d);
    if (e->spec.body != NULL)
        e->spec.body_len = strlen(e->spec.body);
    if (file != NULL) {
        err = file_read(file, FILE_ANY, LIMIT_BODY_BYTES, &e->body, &e->spec.body_len, d);
        e->spec.body = e->body;
    }
    e->spec.has_body = e->spec.body != NULL;
    return err;
}

static enum err read_entry(struct entry *e, const struct json_value *v, const struct options *o,
                           uint32_t index, struct err_detail *d)
{
    snprintf(e->name, sizeof e->name, "request %u", index + 1);
    e->spec = (struct request_spec){
        .name = e->name, .weight = 1, .expect = o->expect, .is_template = o->is_template};
    enum err err = refuse_unknown(v, keys, ARRAY_LEN(keys), d);
    const char *name = NULL;
    if (err == ERR_OK)
        err = optional_text(v, "name", &name, d);
    if (name != NULL)
        e->spec.name = name;
    const struct json_value *weight = json_member(v, "weight");
    uint64_t n = 1;
    if (err == ERR_OK && weight != NULL)
        err = json_to_u64(weight, 1, REQUEST_WEIGHT_MAX, &n, d);
    e->spec.weight = (uint32_t)n;
    if (err == ERR_OK)
        err = optional_text(v, "method", &e->spec.method, d);
    if (err == ERR_OK)
        err = optional_text(v, "path", &e->spec.path, d);
    const struct json_value *is_template = json_member(v, "template");
    if (err == ERR_OK && is_template != NULL)
        err = json_to_bool(is_template, &e->spec.is_template, d);
    if (err == ERR_OK)
        err = read_headers(e, json_member(v, "headers"), d);
    if (err == ERR_OK)
        err = read_body(e, v, d);
    return err == ERR_OK ? read_expect(&e->spec.expect, json_member(v, "expect"), d) : err;
}

static enum err read_list(struct request_set *s, const struct json_value *list, const struct target *t,
                          const struct options *o, struct err_detail *d)
{
    if (json_kind(list) != JSON_ARRAY || json_count(list) == 0)
        return refuse(list, "must be a list of requests", d);
    enum err e = ERR_OK;
    for (const struct json_value *v = json_first(list); v != NULL && e == ERR_OK; v = json_next(v)) {
        struct entry entry = {0};
        e = read_entry(&entry, v, o, s->count, d);
        if (e == ERR_OK) {
            e = add(s, &entry.spec, t, o, d);
            if (e != ERR_OK)
                e = err_prefix(d, e, "%u:%u", v->line, v->column);
        }
        for (size_t i = 0; i < entry.spec.header_count; i++)
            free(entry.headers[i]);
        free(entry.body);
    }
    return e;
}

static enum err read_file(struct request_set *s, const char *path, const struct target *t,
                          const struct options *o, struct err_detail *d)
{
    char *text = NULL;
    size_t len = 0;
    struct json_value *list = NULL;
    struct json_options comments = {.comments = true};
    enum err e = file_read(path, FILE_ANY, REQUESTS_FILE_BYTES, &text, &len, d);
    if (e == ERR_OK)
        e = json_parse(text, len, &comments, &list, d);
    if (e == ERR_OK)
        e = read_list(s, list, t, o, d);
    if (e != ERR_OK)
        e = err_prefix(d, e, "--requests %s", path);
    json_free(list);
    free(text);
    return e;
}

/* --- all of them --- */

/* Smooth weighted turns: at each step the item that is furthest behind its share goes next. */
static void make_cycle(struct request_set *s)
{
    int64_t credit[REQUESTS_MAX] = {0};
    for (uint32_t i = 0; i < s->count; i++)
        s->cycle_len += s->items[i].weight;
    s->cycle = mem_alloc(s->cycle_len);
    for (uint32_t k = 0; k < s->cycle_len; k++) {
        uint32_t best = 0;
        for (uint32_t i = 0; i < s->count; i++) {
            credit[i] += s->items[i].weight;
            if (credit[i] > credit[best])
                best = i;
        }
        credit[best] -= s->cycle_len;
        s->cycle[k] = (uint8_t)best;
    }
}

enum err request_set_build(struct request_set *s, const struct target *t, const struct options *o,
                           struct err_detail *d)
{
    const struct request_spec only = {.name = "request",
                                      .method = o->method,
                                      .body = o->body,
                                      .body_len = o->body_len,
                                      .has_body = o->has_body,
                                      .is_template = o->is_template,
                                      .weight = 1,
                                      .expect = o->expect};
    *s = (struct request_set){0};
    enum err e = o->requests_path != NULL ? read_file(s, o->requests_path, t, o, d) : add(s, &only, t, o, d);
    if (e == ERR_OK)
        make_cycle(s);
    return e;
}

void request_set_fini(struct request_set *s)
{
    for (uint32_t i = 0; i < s->count; i++)
        request_fini(&s->items[i]);
    free(s->cycle);
    *s = (struct request_set){0};
}
