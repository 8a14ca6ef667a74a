#ifndef PROTO_MSG_SCHEMA_H
#define PROTO_MSG_SCHEMA_H
/*
 * What every message is made of, as tables: for each field its place in our struct, its place in the
 * generated struct, and its limits. Encoding, decoding, copying and freeing walk these tables, so that no
 * field can be decoded without a limit. Constant; any thread. For proto/ and its tests only.
 *
 * A schema_*.c file writes one table a message: #define OURS and WIRE to the two struct types, list the
 * fields. Both structs name a field alike; a row of the wrong type does not compile.
 */
#include "proto/msg/msg.h"

#include "proto/splitbench.pb-c.h"

enum schema_type {
    SCHEMA_U16,
    SCHEMA_U32,
    SCHEMA_U64,
    SCHEMA_I32,
    SCHEMA_BOOL,
    SCHEMA_FIGURE, /* struct figure; on the wire a oneof of one number */
    SCHEMA_ENUM,
    SCHEMA_TEXT,    /* char *, owned */
    SCHEMA_RAW,     /* char *, owned, any bytes but NUL */
    SCHEMA_BYTES,   /* struct msg_bytes */
    SCHEMA_FIXED,   /* uint8_t[max] */
    SCHEMA_STRINGS, /* struct msg_strings */
    SCHEMA_STRUCT,  /* a struct within */
    SCHEMA_LIST,    /* owned array of structs and its count */
    SCHEMA_ARRAY,   /* array of structs within, and its count */
    SCHEMA_U32S,    /* uint32_t array within, and its count */
};

enum schema_rule {
    RULE_ANY,     /* UTF-8 without NUL */
    RULE_PROSE,   /* the same; made so and cut to size by the sender: text of foreign programs */
    RULE_NAME,    /* common/path.h */
    RULE_NO_NAME, /* a name or nothing */
    RULE_PATH,    /* common/path.h */
    RULE_ENV,     /* "KEY=value" */
};

struct schema;

struct schema_field {
    const char *name;
    enum schema_type type;
    enum schema_rule rule;
    size_t ours;
    size_t ours_count;
    size_t wire;
    size_t wire_count;
    int64_t min;      /* of a number */
    uint64_t max;     /* of a number; bytes of a text; items of a list */
    size_t bytes_max; /* STRINGS: of all items together */
    unsigned number;  /* FIGURE: of the field; wire_count is where the oneof says that it is there */
    bool always_sent; /* FIGURE of the first release: absent is zero, SCHEMA_UNKNOWN is unknown */
    const struct schema *sub;
};

struct schema {
    const ProtobufCMessageDescriptor *wire;
    size_t ours_size;
    const struct schema_field *fields;
    size_t field_count;
    /* A message of one of several kinds: NULL where there are none. The wire's number of kind k is
     * SCHEMA_FIRST_CASE + k. */
    const struct schema *const *kinds;
    size_t kind_count;
    size_t kind_at;
    size_t union_at;
    size_t case_at;
    size_t body_at;
};

#define SCHEMA_FIRST_CASE 10u

/* Beyond every limit: a controller of the first release refuses it, and does not take it for zero. */
#define SCHEMA_UNKNOWN UINT64_MAX

extern const struct schema schema_frame;
extern const struct schema schema_empty;
extern const struct schema schema_command;
extern const struct schema schema_event;
extern const struct schema schema_loaded, schema_host;
extern const struct schema schema_hello, schema_challenge, schema_proof, schema_welcome, schema_refused;
extern const struct schema schema_ca_give, schema_enroll, schema_enrolled;
extern const struct schema schema_files, schema_files_missing;

/* Frees or deep-copies what a struct of this schema owns. `to` is overwritten. */
void schema_fini(const struct schema *s, void *ours);
void schema_copy(const struct schema *s, void *to, const void *from);

/* The pointer that lies at this place, whatever it points to. */
void *schema_get_pointer(const void *at);
void schema_set_pointer(void *at, const void *p);

/* ---- rows ---------------------------------------------------------------------------------------------- */

#define SCHEMA_ROW(t, field, our_type, wire_type)                                                            \
    .name = #field, .type = SCHEMA_##t, .ours = TYPED_OFFSET(OURS, field, our_type),                         \
    .wire = TYPED_OFFSET(WIRE, field, wire_type)

#define F_U16(field, lo, hi)                                                                                 \
    {                                                                                                        \
        SCHEMA_ROW(U16, field, uint16_t, uint32_t), .min = lo, .max = hi                                     \
    }
#define F_U32(field, lo, hi)                                                                                 \
    {                                                                                                        \
        SCHEMA_ROW(U32, field, uint32_t, uint32_t), .min = lo, .max = hi                                     \
    }
#define F_U64(field, lo, hi)                                                                                 \
    {                                                                                                        \
        SCHEMA_ROW(U64, field, uint64_t, uint64_t), .min = lo, .max = hi                                     \
    }
#define F_I32(field, lo, hi)                                                                                 \
    {                                                                                                        \
        SCHEMA_ROW(I32, field, int32_t, int32_t), .min = lo, .max = hi                                       \
    }
#define F_BOOL(field)                                                                                        \
    {                                                                                                        \
        SCHEMA_ROW(BOOL, field, bool, protobuf_c_boolean), .max = 1                                          \
    }
#define F_NS(field)    F_U64(field, 0, LIMIT_DURATION_NS)
#define F_COUNT(field) F_U64(field, 0, LIMIT_COUNT)
#define F_CLOCK(field) F_U64(field, 0, LIMIT_CLOCK_NS)
#define F_ANY(field)   F_U64(field, 0, UINT64_MAX) /* numbers that are only compared */
/* A row of a list in common/figure_list.h, which struct and wire call alike. */
#define F_FIGURE(NAME, field, array, number_, since)                                                         \
    {                                                                                                        \
        .name = #field, .type = SCHEMA_FIGURE,                                                               \
        .ours = offsetof(OURS, array) + FIGURE_##NAME * sizeof(struct figure),                               \
        .wire = TYPED_OFFSET(WIRE, field, uint64_t), .wire_count = offsetof(WIRE, known_##field##_case),     \
        .max = LIMIT_COUNT, .number = number_, .always_sent = (since) == 1                                   \
    }
#define F_ENUM(field, our_enum, wire_enum, lo, count)                                                        \
    {                                                                                                        \
        SCHEMA_ROW(ENUM, field, enum our_enum, wire_enum), .min = lo, .max = (count)-1                       \
    }
#define F_CODE(field, lo)                                                                                    \
    {                                                                                                        \
        SCHEMA_ROW(ENUM, field, enum err, uint32_t), .min = lo, .max = ERR_COUNT - 1                         \
    }
#define F_TEXT(field, how, bytes)                                                                            \
    {                                                                                                        \
        SCHEMA_ROW(TEXT, field, char *, char *), .rule = RULE_##how, .max = bytes                            \
    }
#define F_RAW(field, bytes)                                                                                  \
    {                                                                                                        \
        SCHEMA_ROW(RAW, field, char *, ProtobufCBinaryData), .max = bytes                                    \
    }
#define F_BYTES(field, bytes)                                                                                \
    {                                                                                                        \
        SCHEMA_ROW(BYTES, field, struct msg_bytes, ProtobufCBinaryData), .max = bytes                        \
    }
#define F_FIXED(field, bytes)                                                                                \
    {                                                                                                        \
        SCHEMA_ROW(FIXED, field, uint8_t[bytes], ProtobufCBinaryData), .max = bytes                          \
    }
#define F_STRUCT(field, of, sub_)                                                                            \
    {                                                                                                        \
        SCHEMA_ROW(STRUCT, field, struct of, __typeof__(((WIRE *)0)->field)), .sub = &(sub_)                 \
    }
#define F_STRINGS(field, how, count, bytes)                                                                  \
    {                                                                                                        \
        SCHEMA_ROW(STRINGS, field, struct msg_strings, char **),                                             \
            .rule = RULE_##how, .wire_count = offsetof(WIRE, n_##field), .max = count, .bytes_max = bytes    \
    }
#define F_LIST(field, count_field, limit, of, sub_)                                                          \
    {                                                                                                        \
        SCHEMA_ROW(LIST, field, struct of *, __typeof__(((WIRE *)0)->field)),                                \
            .ours_count = TYPED_OFFSET(OURS, count_field, size_t), .wire_count = offsetof(WIRE, n_##field),  \
            .max = limit, .sub = &(sub_)                                                                     \
    }
/* The same where ours has array and count in a struct of their own. */
#define F_LIST_IN(field, array, count_field, limit, of, sub_)                                                \
    {                                                                                                        \
        .name = #field, .type = SCHEMA_LIST, .ours = TYPED_OFFSET(OURS, field.array, struct of *),           \
        .ours_count = TYPED_OFFSET(OURS, field.count_field, size_t), .wire = offsetof(WIRE, field),          \
        .wire_count = offsetof(WIRE, n_##field), .max = limit, .sub = &(sub_)                                \
    }
#define F_ARRAY(field, count_field, limit, of, sub_)                                                         \
    {                                                                                                        \
        SCHEMA_ROW(ARRAY, field, struct of[limit], __typeof__(((WIRE *)0)->field)),                          \
            .ours_count = TYPED_OFFSET(OURS, count_field, size_t), .wire_count = offsetof(WIRE, n_##field),  \
            .max = limit, .sub = &(sub_)                                                                     \
    }
#define F_U32S(field, count_field, limit)                                                                    \
    {                                                                                                        \
        SCHEMA_ROW(U32S, field, uint32_t[limit], uint32_t *),                                                \
            .ours_count = TYPED_OFFSET(OURS, count_field, size_t), .wire_count = offsetof(WIRE, n_##field),  \
            .max = limit                                                                                     \
    }

#define SCHEMA_OF(our_type, descriptor, rows)                                                                \
    {                                                                                                        \
        .wire = &splitbench__v1__##descriptor, .ours_size = sizeof(our_type), .fields = rows,                \
        .field_count = ARRAY_LEN(rows)                                                                       \
    }

#endif
