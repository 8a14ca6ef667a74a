#include "proto/msg/codec.h"

#include "common/mem.h"
#include "proto/msg/arena.h"
#include "proto/msg/schema.h"
#include "proto/msg/text.h"

/* Unpacked under a budget, every field checked against its row, copied into our struct, freed. */

struct decoder {
    const char *message; /* being decoded, for errors */
    struct err_detail *d;
};

static enum err decode_struct(struct decoder *c, const struct schema *s, const ProtobufCMessage *wire,
                              void *ours);

static enum err refuse(struct decoder *c, const struct schema_field *f, const char *why)
{
    return err_set(c->d, ERR_INVALID, "%s: %s %s", c->message, f->name, why);
}

/* protobuf-c gives absent texts its own empty string, all others come from the arena. */
static size_t text_len(const char *text)
{
    return text == NULL || text[0] == '\0'
               ? (text == NULL || text == protobuf_c_empty_string ? 0 : arena_size(text) - 1)
               : arena_size(text) - 1;
}

static enum err decode_text(struct decoder *c, const struct schema_field *f, const char *text, size_t max,
                            char **out)
{
    size_t len = text_len(text);
    const char *fault = len > max ? "is too long" : text_fault(f->rule, msg_text(text), len);
    if (fault != NULL)
        return refuse(c, f, fault);
    *out = mem_strndup(msg_text(text), len);
    return ERR_OK;
}

static enum err decode_strings(struct decoder *c, const struct schema_field *f, const char *wire,
                               struct msg_strings *out)
{
    size_t count, left = f->bytes_max;
    char **items;
    memcpy(&count, wire + f->wire_count, sizeof count);
    memcpy(&items, wire + f->wire, sizeof items);
    if (count > f->max)
        return refuse(c, f, "has too many items");
    if (count == 0)
        return ERR_OK;
    out->items = mem_zalloc(count, sizeof *out->items);
    for (size_t i = 0; i < count; i++) {
        enum err e = decode_text(c, f, items[i], left, &out->items[i]);
        if (e != ERR_OK)
            return e;
        left -= strlen(out->items[i]);
        out->count = i + 1;
    }
    return ERR_OK;
}

static enum err decode_items(struct decoder *c, const struct schema_field *f, const char *wire, char *ours)
{
    size_t count, size = f->sub->ours_size;
    ProtobufCMessage **items;
    memcpy(&count, wire + f->wire_count, sizeof count);
    memcpy(&items, wire + f->wire, sizeof items);
    if (count > f->max)
        return refuse(c, f, "has too many items");
    if (count == 0)
        return ERR_OK;
    char *to = ours + f->ours;
    if (f->type == SCHEMA_LIST) {
        to = mem_zalloc(count, size);
        memcpy(ours + f->ours, &to, sizeof to);
    }
    memcpy(ours + f->ours_count, &count, sizeof count); /* the rest is zero: it can be freed at any point */
    for (size_t i = 0; i < count; i++) {
        enum err e = decode_struct(c, f->sub, items[i], to + i * size);
        if (e != ERR_OK)
            return e;
    }
    return ERR_OK;
}

static enum err decode_u32s(struct decoder *c, const struct schema_field *f, const char *wire, char *ours)
{
    size_t count;
    uint32_t *items;
    memcpy(&count, wire + f->wire_count, sizeof count);
    memcpy(&items, wire + f->wire, sizeof items);
    if (count > f->max)
        return refuse(c, f, "has too many items");
    if (count != 0)
        memcpy(ours + f->ours, items, count * sizeof *items);
    memcpy(ours + f->ours_count, &count, sizeof count);
    return ERR_OK;
}

static enum err decode_bytes(struct decoder *c, const struct schema_field *f, const char *wire, char *at)
{
    ProtobufCBinaryData bytes;
    memcpy(&bytes, wire + f->wire, sizeof bytes);
    if (f->type == SCHEMA_FIXED) {
        if (bytes.len != f->max)
            return refuse(c, f, "has the wrong length");
        memcpy(at, bytes.data, bytes.len);
        return ERR_OK;
    }
    if (bytes.len > f->max)
        return refuse(c, f, "is too long");
    if (f->type == SCHEMA_RAW) {
        if (bytes.len != 0 && memchr(bytes.data, '\0', bytes.len) != NULL)
            return refuse(c, f, "holds a NUL");
        char *text = mem_strndup(bytes.len != 0 ? (const char *)bytes.data : "", bytes.len);
        memcpy(at, &text, sizeof text);
        return ERR_OK;
    }
    struct msg_bytes ours = {.data = bytes.len != 0 ? mem_dup(bytes.data, bytes.len) : NULL,
                             .len = bytes.len};
    memcpy(at, &ours, sizeof ours);
    return ERR_OK;
}

static enum err decode_number(struct decoder *c, const struct schema_field *f, const char *wire, char *at)
{
    uint64_t value = 0;
    uint32_t u32;
    int32_t i32;
    if (f->type == SCHEMA_U64) {
        memcpy(&value, wire + f->wire, sizeof value);
    } else if (f->type == SCHEMA_I32) {
        memcpy(&i32, wire + f->wire, sizeof i32);
        if (i32 < f->min || i32 > (int64_t)f->max)
            return refuse(c, f, "is out of range");
        memcpy(at, &i32, sizeof i32);
        return ERR_OK;
    } else {
        memcpy(&u32, wire + f->wire, sizeof u32);
        value = u32;
    }
    if (value < (uint64_t)f->min || value > f->max)
        return refuse(c, f, "is out of range");
    uint16_t u16 = (uint16_t)value;
    u32 = (uint32_t)value;
    bool flag = value != 0;
    if (f->type == SCHEMA_U64)
        memcpy(at, &value, sizeof value);
    else if (f->type == SCHEMA_U16)
        memcpy(at, &u16, sizeof u16);
    else if (f->type == SCHEMA_BOOL)
        memcpy(at, &flag, sizeof flag);
    else
        memcpy(at, &u32, sizeof u32);
    return ERR_OK;
}

static enum err decode_figure(struct decoder *c, const struct schema_field *f, const char *wire, char *at)
{
    unsigned number;
    struct figure figure = {.known = f->always_sent};
    memcpy(&number, wire + f->wire_count, sizeof number);
    if (number == f->number) {
        memcpy(&figure.value, wire + f->wire, sizeof figure.value);
        figure.known = !f->always_sent || figure.value != SCHEMA_UNKNOWN;
    }
    if (figure.known && figure.value > f->max)
        return refuse(c, f, "is out of range");
    if (figure.known)
        memcpy(at, &figure, sizeof figure);
    return ERR_OK;
}

static enum err decode_field(struct decoder *c, const struct schema_field *f, const char *wire, char *ours)
{
    char *at = ours + f->ours;
    switch (f->type) {
    case SCHEMA_TEXT: {
        const char *text;
        char *copy = NULL;
        memcpy(&text, wire + f->wire, sizeof text);
        enum err e = decode_text(c, f, text, f->max, &copy);
        memcpy(at, &copy, sizeof copy);
        return e;
    }
    case SCHEMA_RAW:
    case SCHEMA_BYTES:
    case SCHEMA_FIXED:
        return decode_bytes(c, f, wire, at);
    case SCHEMA_STRINGS:
        return decode_strings(c, f, wire, (struct msg_strings *)(void *)at);
    case SCHEMA_STRUCT:
        return decode_struct(c, f->sub, schema_get_pointer(wire + f->wire), at);
    case SCHEMA_LIST:
    case SCHEMA_ARRAY:
        return decode_items(c, f, wire, ours);
    case SCHEMA_U32S:
        return decode_u32s(c, f, wire, ours);
    case SCHEMA_FIGURE:
        return decode_figure(c, f, wire, at);
    case SCHEMA_U16:
    case SCHEMA_U32:
    case SCHEMA_U64:
    case SCHEMA_I32:
    case SCHEMA_BOOL:
    case SCHEMA_ENUM:
        return decode_number(c, f, wire, at);
    }
    return ERR_INVALID;
}

/* `ours` is zeroed and can be freed with schema_fini whatever comes out. */
static enum err decode_struct(struct decoder *c, const struct schema *s, const ProtobufCMessage *wire,
                              void *ours)
{
    if (wire == NULL)
        return err_set(c->d, ERR_INVALID, "%s: %s is missing", c->message, s->wire->short_name);
    const char *from = (const char *)wire;
    const ProtobufCMessage *body = NULL;
    unsigned kind = 0;
    if (s->kinds != NULL) {
        unsigned number;
        memcpy(&number, from + s->case_at, sizeof number);
        kind = number - SCHEMA_FIRST_CASE;
        if (number < SCHEMA_FIRST_CASE || kind >= s->kind_count)
            return err_set(c->d, ERR_INVALID, "%s: %s of no known kind", c->message, s->wire->short_name);
        memcpy((char *)ours + s->kind_at, &kind, sizeof kind);
        body = schema_get_pointer(from + s->body_at);
    }
    for (size_t i = 0; i < s->field_count; i++) {
        enum err e = decode_field(c, &s->fields[i], from, ours);
        if (e != ERR_OK)
            return e;
    }
    return s->kinds != NULL ? decode_struct(c, s->kinds[kind], body, (char *)ours + s->union_at) : ERR_OK;
}

static enum err check_version(const Splitbench__V1__Frame *frame, struct msg *out, struct err_detail *d)
{
    if (frame->version == MSG_PROTOCOL_VERSION || frame->body_case == SPLITBENCH__V1__FRAME__BODY_REFUSED)
        return ERR_OK;
    if (frame->body_case != SPLITBENCH__V1__FRAME__BODY_HELLO)
        return err_set(d, ERR_UNSUPPORTED, "a message of protocol version %u; this is version %u",
                       frame->version, MSG_PROTOCOL_VERSION);
    msg_init(out, MSG_HELLO);
    out->session = frame->session;
    out->serial = frame->serial;
    out->u.hello.protocol = frame->version;
    return ERR_NOT_NOW; /* the caller stops here: other fields of another version may mean something else */
}

enum err codec_decode(const void *data, size_t len, struct msg *out, struct err_detail *d)
{
    if (len > LIMIT_FRAME_BYTES)
        return err_set(d, ERR_TOO_BIG, "a frame of %zu bytes; at most %u", len, LIMIT_FRAME_BYTES);
    struct decoder c = {.message = "frame", .d = d};
    struct arena arena;
    arena_init(&arena, LIMIT_DECODE_BYTES);
    enum err e;
    struct msg m = {0};
    ProtobufCMessage *wire =
        protobuf_c_message_unpack(&splitbench__v1__frame__descriptor, &arena.allocator, len, data);
    if (wire == NULL) {
        e = arena.overdrawn ? err_set(d, ERR_TOO_BIG, "a frame that needs more than %u bytes to unpack",
                                      LIMIT_DECODE_BYTES)
                            : err_set(d, ERR_INVALID, "not a frame of this protocol");
        goto out;
    }
    const Splitbench__V1__Frame *frame = (const Splitbench__V1__Frame *)(const void *)wire;
    e = check_version(frame, out, d);
    if (e != ERR_OK) {
        e = e == ERR_NOT_NOW ? ERR_OK : e;
        goto out;
    }
    unsigned kind = (unsigned)frame->body_case - SCHEMA_FIRST_CASE;
    c.message = kind < MSG_KIND_COUNT ? msg_kind_name((enum msg_kind)kind) : "frame";
    e = decode_struct(&c, &schema_frame, wire, &m);
    if (e != ERR_OK) {
        msg_fini(&m);
        goto out;
    }
    if (m.kind == MSG_HELLO)
        m.u.hello.protocol = frame->version;
    *out = m;
out:
    arena_fini(&arena);
    return e;
}
