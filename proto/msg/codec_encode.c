#include "proto/msg/codec.h"

#include "proto/msg/arena.h"
#include "proto/msg/schema.h"
#include "proto/msg/text.h"

/* Our structs into generated ones, by the tables, then packed. Texts and bytes are borrowed; what the
 * generated structs need besides lives in an arena. */

struct encoder {
    struct arena arena;
    const char *message; /* being encoded, for errors */
    struct err_detail *d;
};

/* The generated structs of a frame that fits are far smaller than this. */
#define ENCODE_HEAP_BYTES (64u * 1024u * 1024u)

static enum err encode_struct(struct encoder *c, const struct schema *s, const void *ours,
                              ProtobufCMessage **out);

static enum err refuse(struct encoder *c, const struct schema_field *f, const char *why)
{
    return err_set(c->d, ERR_INVALID, "cannot send %s: %s %s", c->message, f->name, why);
}

static void *alloc(struct encoder *c, size_t size)
{
    return arena_alloc(&c->arena, size);
}

static enum err too_big(struct encoder *c)
{
    return err_set(c->d, ERR_TOO_BIG, "cannot send %s: more than one frame holds", c->message);
}

static enum err encode_text(struct encoder *c, const struct schema_field *f, const char *text, char **out,
                            size_t max)
{
    text = msg_text(text);
    size_t len = strlen(text);
    const char *fault = len > max ? "is too long" : text_fault(f->rule, text, len);
    if (fault == NULL) {
        *out = msg_borrowed(text);
        return ERR_OK;
    }
    if (f->rule != RULE_PROSE)
        return refuse(c, f, fault);
    size_t cut = text_cut(text, len, max);
    char *clean = alloc(c, cut + 1);
    if (clean == NULL)
        return too_big(c);
    memcpy(clean, text, cut);
    text_clean(clean, cut);
    *out = clean;
    return ERR_OK;
}

static enum err encode_strings(struct encoder *c, const struct schema_field *f,
                               const struct msg_strings *strings, char *wire)
{
    size_t left = f->bytes_max;
    if (strings->count > f->max)
        return refuse(c, f, "has too many items");
    char **items = alloc(c, strings->count * sizeof *items);
    if (items == NULL)
        return too_big(c);
    for (size_t i = 0; i < strings->count; i++) {
        enum err e = encode_text(c, f, strings->items[i], &items[i], left);
        if (e != ERR_OK)
            return e;
        left -= strlen(items[i]);
    }
    memcpy(wire + f->wire, &items, sizeof items);
    memcpy(wire + f->wire_count, &strings->count, sizeof strings->count);
    return ERR_OK;
}

static enum err encode_items(struct encoder *c, const struct schema_field *f, const char *ours, char *wire)
{
    size_t count;
    memcpy(&count, ours + f->ours_count, sizeof count);
    if (count > f->max)
        return refuse(c, f, "has too many items");
    const char *from = ours + f->ours;
    if (f->type == SCHEMA_LIST)
        memcpy(&from, ours + f->ours, sizeof from);
    ProtobufCMessage **items = alloc(c, count * sizeof(void *));
    if (items == NULL)
        return too_big(c);
    for (size_t i = 0; i < count; i++) {
        enum err e = encode_struct(c, f->sub, from + i * f->sub->ours_size, &items[i]);
        if (e != ERR_OK)
            return e;
    }
    memcpy(wire + f->wire, &items, sizeof items);
    memcpy(wire + f->wire_count, &count, sizeof count);
    return ERR_OK;
}

static enum err encode_u32s(struct encoder *c, const struct schema_field *f, const char *ours, char *wire)
{
    size_t count;
    memcpy(&count, ours + f->ours_count, sizeof count);
    if (count > f->max)
        return refuse(c, f, "has too many items");
    uint32_t *items = alloc(c, count * sizeof *items);
    if (items == NULL)
        return too_big(c);
    memcpy(items, ours + f->ours, count * sizeof *items);
    memcpy(wire + f->wire, &items, sizeof items);
    memcpy(wire + f->wire_count, &count, sizeof count);
    return ERR_OK;
}

static enum err encode_bytes(struct encoder *c, const struct schema_field *f, const void *data, size_t len,
                             char *wire)
{
    if (len > f->max)
        return refuse(c, f, "is too long");
    ProtobufCBinaryData bytes = {.len = len, .data = schema_get_pointer(&data)};
    memcpy(wire + f->wire, &bytes, sizeof bytes);
    return ERR_OK;
}

static enum err encode_number(struct encoder *c, const struct schema_field *f, const char *ours, char *wire)
{
    uint16_t u16;
    uint32_t u32 = 0;
    uint64_t u64 = 0;
    int32_t i32 = 0;
    bool flag;
    const void *value = &u32;
    size_t size = sizeof u32;
    if (f->type == SCHEMA_U16) {
        memcpy(&u16, ours + f->ours, sizeof u16);
        u64 = u32 = u16;
    } else if (f->type == SCHEMA_BOOL) {
        memcpy(&flag, ours + f->ours, sizeof flag);
        u64 = u32 = flag;
    } else if (f->type == SCHEMA_U64) {
        memcpy(&u64, ours + f->ours, sizeof u64);
        value = &u64;
        size = sizeof u64;
    } else if (f->type == SCHEMA_I32) {
        memcpy(&i32, ours + f->ours, sizeof i32);
        if (i32 < f->min || i32 > (int64_t)f->max)
            return refuse(c, f, "is out of range");
        memcpy(wire + f->wire, &i32, sizeof i32);
        return ERR_OK;
    } else {
        memcpy(&u32, ours + f->ours, sizeof u32);
        u64 = u32;
    }
    if (u64 < (uint64_t)f->min || u64 > f->max)
        return refuse(c, f, "is out of range");
    memcpy(wire + f->wire, value, size);
    return ERR_OK;
}

static enum err encode_figure(struct encoder *c, const struct schema_field *f, const char *ours, char *wire)
{
    struct figure figure;
    memcpy(&figure, ours + f->ours, sizeof figure);
    if (figure.known && figure.value > f->max)
        return refuse(c, f, "is out of range");
    if (!figure.known && !f->always_sent)
        return ERR_OK;
    uint64_t value = figure.known ? figure.value : SCHEMA_UNKNOWN;
    memcpy(wire + f->wire, &value, sizeof value);
    memcpy(wire + f->wire_count, &f->number, sizeof f->number);
    return ERR_OK;
}

static enum err encode_field(struct encoder *c, const struct schema_field *f, const char *ours, char *wire)
{
    const char *at = ours + f->ours;
    switch (f->type) {
    case SCHEMA_TEXT: {
        const char *text;
        char *clean;
        memcpy(&text, at, sizeof text);
        enum err e = encode_text(c, f, text, &clean, f->max);
        if (e == ERR_OK)
            memcpy(wire + f->wire, &clean, sizeof clean);
        return e;
    }
    case SCHEMA_RAW: {
        const char *text;
        memcpy(&text, at, sizeof text);
        text = msg_text(text);
        return encode_bytes(c, f, text, strlen(text), wire);
    }
    case SCHEMA_BYTES: {
        struct msg_bytes bytes;
        memcpy(&bytes, at, sizeof bytes);
        return encode_bytes(c, f, bytes.data, bytes.len, wire);
    }
    case SCHEMA_FIXED:
        return encode_bytes(c, f, at, f->max, wire);
    case SCHEMA_STRINGS:
        return encode_strings(c, f, (const struct msg_strings *)(const void *)at, wire);
    case SCHEMA_STRUCT: {
        ProtobufCMessage *sub = NULL;
        enum err e = encode_struct(c, f->sub, at, &sub);
        if (e == ERR_OK)
            schema_set_pointer(wire + f->wire, sub);
        return e;
    }
    case SCHEMA_LIST:
    case SCHEMA_ARRAY:
        return encode_items(c, f, ours, wire);
    case SCHEMA_U32S:
        return encode_u32s(c, f, ours, wire);
    case SCHEMA_FIGURE:
        return encode_figure(c, f, ours, wire);
    case SCHEMA_U16:
    case SCHEMA_U32:
    case SCHEMA_U64:
    case SCHEMA_I32:
    case SCHEMA_BOOL:
    case SCHEMA_ENUM:
        return encode_number(c, f, ours, wire);
    }
    return ERR_INVALID;
}

static enum err encode_struct(struct encoder *c, const struct schema *s, const void *ours,
                              ProtobufCMessage **out)
{
    char *wire = alloc(c, s->wire->sizeof_message);
    if (wire == NULL)
        return too_big(c);
    protobuf_c_message_init(s->wire, wire);
    enum err e = ERR_OK;
    for (size_t i = 0; i < s->field_count && e == ERR_OK; i++)
        e = encode_field(c, &s->fields[i], ours, wire);
    if (e == ERR_OK && s->kinds != NULL) {
        unsigned kind;
        memcpy(&kind, (const char *)ours + s->kind_at, sizeof kind);
        must(kind < s->kind_count);
        unsigned number = SCHEMA_FIRST_CASE + kind;
        ProtobufCMessage *body = NULL;
        e = encode_struct(c, s->kinds[kind], (const char *)ours + s->union_at, &body);
        memcpy(wire + s->case_at, &number, sizeof number);
        if (e == ERR_OK)
            schema_set_pointer(wire + s->body_at, body);
    }
    *out = (ProtobufCMessage *)(void *)wire;
    return e;
}

enum err codec_encode(const struct msg *m, struct buf *out, struct err_detail *d)
{
    must((unsigned)m->kind < MSG_KIND_COUNT);
    struct encoder c = {.message = msg_kind_name(m->kind), .d = d};
    arena_init(&c.arena, ENCODE_HEAP_BYTES);
    ProtobufCMessage *message = NULL;
    uint8_t *packed = NULL;
    enum err e = encode_struct(&c, &schema_frame, m, &message);
    if (e != ERR_OK)
        goto out;
    must(message != NULL);
    Splitbench__V1__Frame *frame = (Splitbench__V1__Frame *)(void *)message;
    frame->version = m->kind == MSG_HELLO ? m->u.hello.protocol : MSG_PROTOCOL_VERSION;
    size_t len = protobuf_c_message_get_packed_size(message);
    packed = len <= LIMIT_FRAME_BYTES ? alloc(&c, len) : NULL;
    if (packed == NULL) {
        e = err_set(d, ERR_TOO_BIG, "cannot send %s: %zu bytes, a frame holds %u", c.message, len,
                    LIMIT_FRAME_BYTES);
        goto out;
    }
    protobuf_c_message_pack(message, packed);
    if (buf_append(out, packed, len) != ERR_OK)
        e = err_set(d, ERR_TOO_BIG, "cannot send %s: %zu bytes do not fit the buffer", c.message, len);
out:
    arena_fini(&c.arena);
    return e;
}
