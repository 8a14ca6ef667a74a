#ifndef COMMON_JSON_H
#define COMMON_JSON_H
/*
 * Strict JSON, read into a tree that knows where every value stood. The tree is cJSON's, which only json.c
 * sees; json_scan.c reads the text into it, because cJSON's own reader knows no places and lets pass what we
 * refuse: trailing text, NULs, broken UTF-8, deep nesting. A tree is owned by whoever parsed it; read by any
 * thread while nobody changes it.
 *
 * Numbers keep their text, so integers are exact up to 2^64-1. Strings never hold a NUL.
 * Printing is common/json_write.h.
 */
#include "common/err.h"
#include "common/limits.h"

#define JSON_PATH_BYTES 512u

enum json_kind { JSON_NULL, JSON_BOOL, JSON_NUMBER, JSON_STRING, JSON_ARRAY, JSON_OBJECT, JSON_KIND_COUNT };

/* Within a node of the tree: what it holds is asked of the functions below. */
struct json_value {
    uint32_t line; /* of its first character, from 1; 0 = not from a text */
    uint32_t column;
    uint32_t key_line; /* of its key, when a member of an object */
    uint32_t key_column;
    bool loose;   /* set by owners of a tree: a scalar that may also be read as a string */
    bool refused; /* set by owners of a tree: reported already */
    struct json_value *parent;
    size_t index; /* position in the parent */
};

struct json_options {
    bool comments; /* allow line and block comments: files that people write */
    /*
     * Called for each member whose key its object already has, in the order of the text; the first one stays
     * in the tree, `extra` goes when the call returns. NULL: a duplicate key fails the parse.
     */
    void (*on_duplicate)(void *arg, const struct json_value *extra, const struct json_value *first);
    void *arg;
    uint32_t *line; /* out, both or neither: place of the error when the parse fails */
    uint32_t *column;
};

/*
 * Columns count characters, not bytes. ERR_INVALID: `d` says "LINE:COLUMN: what is wrong", or only what is
 * wrong when `options` takes the place. ERR_TOO_BIG: more than LIMIT_JSON_VALUES values. `options` may be
 * NULL: plain JSON, for machine-made text.
 */
NODISCARD enum err json_parse(const char *text, size_t len, const struct json_options *options,
                              struct json_value **out, struct err_detail *d);
void json_free(struct json_value *v);

enum json_kind json_kind(const struct json_value *v);
/* A string decoded; a number, true and false as written; else NULL. */
const char *json_text(const struct json_value *v);
bool json_is_true(const struct json_value *v); /* NULL is not */
/* NULL unless it is a member. */
const char *json_key(const struct json_value *v);
/* Elements or members in the order of the text; NULL at the end, and for NULL and scalars. Like strchr they
 * take off a const, for the owner. */
struct json_value *json_first(const struct json_value *container);
struct json_value *json_next(const struct json_value *v);
/* The member, or NULL when there is none or `object` is not an object. */
struct json_value *json_member(const struct json_value *object, const char *key);
size_t json_count(const struct json_value *container);

/* Of the library behind it, from a buffer of that library's: the main thread. */
const char *json_library_version(void);

/* "targets[0].start" into `out` (JSON_PATH_BYTES is plenty; longer ones are cut). "" for the root. Returns
 * `out`. */
const char *json_path(const struct json_value *v, char *out, size_t size);

/* "a whole number", "an object": for messages. */
const char *json_kind_text(enum json_kind k);

/* What a value is, short: 17, "abc", a list. For messages. Returns `out`. */
const char *json_describe(const struct json_value *v, char *out, size_t size);

/*
 * Strict conversions. `v` NULL is ERR_NOT_FOUND; the wrong type or range is ERR_INVALID, and `d` says
 * "PATH: is X, must be Y" with the place before it when there is one. Whole numbers have no fraction and no
 * exponent.
 */
NODISCARD enum err json_to_u64(const struct json_value *v, uint64_t min, uint64_t max, uint64_t *out,
                               struct err_detail *d);
NODISCARD enum err json_to_double(const struct json_value *v, double min, double max, double *out,
                                  struct err_detail *d);
NODISCARD enum err json_to_bool(const struct json_value *v, bool *out, struct err_detail *d);
/* Borrowed from the tree. */
NODISCARD enum err json_to_string(const struct json_value *v, const char **out, struct err_detail *d);

/*
 * Members that must be there, for machine-made text. As above, but a missing one is ERR_INVALID ("ok: is
 * missing"). json_get_u64 also takes a decimal string: the writer prints integers from 2^52 that way.
 */
NODISCARD enum err json_get_u64(const struct json_value *object, const char *key, uint64_t min, uint64_t max,
                                uint64_t *out, struct err_detail *d);
NODISCARD enum err json_get_bool(const struct json_value *object, const char *key, bool *out,
                                 struct err_detail *d);
NODISCARD enum err json_get_string(const struct json_value *object, const char *key, const char **out,
                                   struct err_detail *d);
/* `kind` is JSON_ARRAY or JSON_OBJECT; borrowed. */
NODISCARD enum err json_get_child(const struct json_value *object, const char *key, enum json_kind kind,
                                  const struct json_value **out, struct err_detail *d);

/* Changing a tree, for the owner of one: `text` as json_text gives it (NULL for containers), copied. */
struct json_value *json_new(enum json_kind kind, const char *text);
/* Makes it another scalar. */
void json_set(struct json_value *v, enum json_kind kind, const char *text);
/* Appends and takes over `child`; `key` is NULL in an array. The caller knows that the key is new. */
void json_append(struct json_value *container, const char *key, struct json_value *child);
/* Takes `v` out of its parent and frees it; the index of those behind it is the owner's affair. */
void json_drop(struct json_value *v);
/* Puts `fresh` where `old` stands in its parent, under the same key, and frees `old`. */
void json_replace(struct json_value *old, struct json_value *fresh);

#endif
