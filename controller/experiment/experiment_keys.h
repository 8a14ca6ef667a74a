#ifndef CONTROLLER_EXPERIMENT_EXPERIMENT_KEYS_H
#define CONTROLLER_EXPERIMENT_EXPERIMENT_KEYS_H
/*
 * The keys of the experiment file, as rows of tables: a row is all there is to know of a key. Reading, the
 * resolved text, freeing, the list of what is allowed, the JSON Schema and the tables of
 * docs/experiment-file.md come from them. A new key is a field in experiment.h and a row; `make docs` does
 * the rest. Constant; any thread.
 *
 * A file with tables #defines OF to the struct that the rows of a table fill in.
 */
#include "controller/experiment/experiment_reader.h"

#include <string.h>

enum key_kind {
    KEY_NUMBER, /* uint16_t, uint32_t or uint64_t */
    KEY_SHARE,  /* double, over 0 to `max` */
    KEY_TIME,   /* uint64_t, ns */
    KEY_WORD,   /* an enum, by its place among `words` */
    KEY_NAME,   /* char *: letters, digits and . _ / + - */
    KEY_TEXT,   /* char *: not empty, no control characters */
    KEY_RAW,    /* char *: any string */
    KEY_NOTE,   /* a string that is not kept */
    KEY_VARS,   /* what experiment_vars.c has read */
    KEY_BODY,   /* struct msg_bytes, from a string */
    KEY_BODY_FILE,
    KEY_BODY_BASE64,
    KEY_MATCH,  /* struct msg_match */
    KEY_OBJECT, /* a struct within, or a part of the same */
    KEY_LIST,   /* an owned array and its count */
    KEY_SWEEP,  /* the same; a number alone is a list of one */
    KEY_MAP,    /* the same, from an object; each element has its key, too */
};

struct key {
    const char *name;
    const char *help;    /* one sentence; what one types stands in `backticks` */
    const char *missing; /* it must be there: what is said when it is not */
    const char *initial; /* the value without it, as JSON */
    const char *without; /* or what happens then, for people */
    enum key_kind kind;
    size_t at; /* of the field */
    size_t size;
    size_t has_at; /* of a bool that says that the key is there; 0: there is none */
    uint64_t min;  /* of a number or a time */
    uint64_t max;  /* the same; bytes of a text; elements of a list or a map */
    const char *const *words;
    const char *what;          /* in messages: what a list or a map has, what kind of number this is */
    const char *example;       /* in messages: a map as one writes it */
    const char *pattern;       /* for the JSON Schema: of a text, or of the keys of a map */
    const struct keys *keys;   /* of an object */
    const struct key *element; /* of a list or a map */
    size_t key_at;             /* of an element of a map: its key, char * */
    /* Into the field, for what is no plain value. False after reporting: nothing was stored. */
    bool (*read)(struct experiment_reader *r, const struct json_value *v, void *at);
    /* Before the value is looked at; after it was read; each key of a map. False after reporting. */
    bool (*before)(struct experiment_reader *r, const struct json_value *v);
    void (*after)(struct experiment_reader *r, const struct json_value *v, void *at);
    bool (*check_key)(struct experiment_reader *r, const struct json_value *member);
    bool (*when)(const void *object); /* it stands in the resolved text; NULL: when it has a value */
};

/* Two keys of which an object has one at most. */
struct keys_apart {
    const char *one;
    const char *other;
    const char *why;
};

#define KEYS_MAX 16u /* of one object */

struct keys {
    const char *title; /* of its table in the document; NULL: its rows stand in the table of its owner */
    const struct key *rows;
    size_t count;
    const struct keys_apart *apart;
    size_t apart_count;
    /* What all of it together must be, and what follows from that. It was read, well or not. */
    void (*finish)(struct experiment_reader *r, const struct json_value *v, void *object);
};

extern const struct keys keys_experiment, keys_roles, keys_target, keys_request, keys_check, keys_workload,
    keys_design, keys_gates;

/* A list or a map as it lies in a struct: an array of any type, and behind it its count. */
struct key_array {
    char *items;
    size_t count;
};

static inline struct key_array key_array(const void *at)
{
    struct key_array a;
    memcpy(&a, at, sizeof a);
    return a;
}

/* Sets every default. `object` is zeros. */
void keys_init(const struct keys *t, void *object);
/* `object` holds the defaults. False: `v` is no object. */
bool keys_read(struct experiment_reader *r, const struct keys *t, const struct json_value *v, void *object);
/* The resolved text: every default written out, in the order of the rows. Read again it gives the same
 * experiment and the same text. "" when it is far too long. The caller frees it. */
char *keys_write(const struct keys *t, const void *object);
void keys_fini(const struct keys *t, void *object);

/* ---- rows ------------------------------------------------------------------------------------------- */

#define KEY_AT(field) .at = offsetof(OF, field), .size = sizeof(((OF *)0)->field)
/* An array whose count stands behind it; does not compile otherwise. */
#define KEY_ARRAY(field, counter)                                                                            \
    .at = offsetof(OF, field) +                                                                              \
          0 * sizeof(char[offsetof(OF, counter) == offsetof(OF, field) + sizeof(void *) ? 1 : -1])
#define KEY_IF(field)            .has_at = offsetof(OF, field)
#define AS_NUMBER(field, lo, hi) .kind = KEY_NUMBER, KEY_AT(field), .min = (lo), .max = (hi)
#define AS_PORT(field)           AS_NUMBER(field, 1, UINT16_MAX), .what = "a port,"
#define AS_SHARE(field, hi)      .kind = KEY_SHARE, KEY_AT(field), .max = (hi)
#define AS_TIME(field, lo, hi)   .kind = KEY_TIME, KEY_AT(field), .min = (lo), .max = (hi)
#define AS_WORD(field, list)     .kind = KEY_WORD, KEY_AT(field), .words = (list)
#define AS_NAME(field)           .kind = KEY_NAME, KEY_AT(field), .max = LIMIT_NAME_BYTES
#define AS_TEXT(field, bytes)    .kind = KEY_TEXT, KEY_AT(field), .max = (bytes)
#define AS_OBJECT(field, table)  .kind = KEY_OBJECT, KEY_AT(field), .keys = &(table)
/* Keys of the same struct that have an object of their own in the file. */
#define AS_PART(table) .kind = KEY_OBJECT, .keys = &(table)
#define AS_LIST(field, counter, most, row)                                                                   \
    .kind = KEY_LIST, KEY_ARRAY(field, counter), .max = (most), .element = &(row)
#define AS_MAP(field, counter, most, row)                                                                    \
    .kind = KEY_MAP, KEY_ARRAY(field, counter), .max = (most), .element = &(row)
/* An element of a map: a struct of a key and a text. */
#define KEY_PAIR(of, key, text)                                                                              \
    .size = sizeof(struct of), .key_at = offsetof(struct of, key), .at = offsetof(struct of, text)
#define KEYS(heading, list) .title = (heading), .rows = (list), .count = ARRAY_LEN(list)

#define KEY_HEADER_PATTERN "^[!#$%&'*+.^_`|~0-9A-Za-z-]+$"

#endif
