#include "proto/msg/codec.h"

#include "common/mem.h"
#include "proto/msg/schema.h"
#include "proto/msg/text.h"
#include "tests/support/fill.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
// clang-format on

#include <stdlib.h>
#include <string.h>

static void encode(const struct msg *m, struct buf *out)
{
    struct err_detail d = {.text = ""};
    buf_init(out, LIMIT_FRAME_BYTES);
    enum err e = codec_encode(m, out, &d);
    if (e != ERR_OK)
        print_message("%s\n", d.text);
    assert_int_equal(e, ERR_OK);
}

static void test_every_kind_survives(void **state)
{
    (void)state;
    for (unsigned kind = 0; kind < MSG_KIND_COUNT; kind++)
        for (size_t n = 0; n < 4; n += 3) {
            struct msg m, back, copy;
            struct buf b;
            struct err_detail d = {.text = ""};
            fill_msg(&m, (enum msg_kind)kind, n);
            msg_copy(&copy, &m);
            encode(&m, &b);
            enum err e = codec_decode(b.data, b.len, &back, &d);
            if (e != ERR_OK)
                print_message("%s: %s\n", msg_kind_name((enum msg_kind)kind), d.text);
            assert_int_equal(e, ERR_OK);
            assert_true(fill_equal(&schema_frame, &m, &back));
            assert_true(fill_equal(&schema_frame, &m, &copy));
            assert_true(kind != MSG_HELLO || back.u.hello.protocol == MSG_PROTOCOL_VERSION);
            buf_fini(&b);
            msg_fini(&m);
            msg_fini(&copy);
            msg_fini(&back);
        }
}

/* A field of the schema file without a row would be lost in silence. */
static void check_rows(const struct schema *s)
{
    assert_non_null(s->wire);
    unsigned extra = s == &schema_frame ? 1 : 0; /* the version, which codec_encode sets */
    assert_int_equal(s->wire->n_fields, s->field_count + s->kind_count + extra);
    for (size_t i = 0; i < s->field_count; i++)
        if (s->fields[i].sub != NULL)
            check_rows(s->fields[i].sub);
    for (size_t i = 0; i < s->kind_count; i++)
        check_rows(s->kinds[i]);
}

static void test_every_wire_field_has_a_row(void **state)
{
    (void)state;
    check_rows(&schema_frame);
}

/* ---- figures ------------------------------------------------------------------------------------------- */

/* A push of one LOADED with these figures, as a frame that can be changed before it is packed again. */
static ProtobufCMessage *frame_of_figures(const struct figure *figures)
{
    struct buf b;
    struct msg m;
    msg_init(&m, MSG_PUSH);
    m.u.push.items = mem_zalloc(1, sizeof *m.u.push.items);
    m.u.push.count = 1;
    m.u.push.items[0].number = 1;
    m.u.push.items[0].kind = MSG_EVENT_LOADED;
    memcpy(m.u.push.items[0].u.loaded.figures, figures, FIGURE_LOAD_COUNT * sizeof *figures);
    encode(&m, &b);
    msg_fini(&m);
    ProtobufCMessage *frame =
        protobuf_c_message_unpack(&splitbench__v1__frame__descriptor, NULL, b.len, (uint8_t *)b.data);
    assert_non_null(frame);
    buf_fini(&b);
    return frame;
}

static Splitbench__V1__Loaded *loaded_in(ProtobufCMessage *frame)
{
    return ((Splitbench__V1__Frame *)(void *)frame)->push->items[0]->loaded;
}

static void decode_figures(ProtobufCMessage *frame, struct figure *out)
{
    size_t len = protobuf_c_message_get_packed_size(frame);
    uint8_t *data = mem_alloc(len);
    struct msg m;
    protobuf_c_message_pack(frame, data);
    assert_int_equal(codec_decode(data, len, &m, NULL), ERR_OK);
    memcpy(out, m.u.push.items[0].u.loaded.figures, FIGURE_LOAD_COUNT * sizeof *out);
    msg_fini(&m);
    free(data);
    protobuf_c_message_free_unpacked(frame, NULL);
}

static void test_unknown_is_not_zero(void **state)
{
    (void)state;
    struct figure sent[FIGURE_LOAD_COUNT] = {{0}}, got[FIGURE_LOAD_COUNT];
    decode_figures(frame_of_figures(sent), got);
    for (int i = 0; i < FIGURE_LOAD_COUNT; i++)
        assert_false(got[i].known);
    for (int i = 0; i < FIGURE_LOAD_COUNT; i++)
        sent[i] = figure_known(0);
    decode_figures(frame_of_figures(sent), got);
    for (int i = 0; i < FIGURE_LOAD_COUNT; i++)
        assert_true(got[i].known && got[i].value == 0);
}

/* An agent of the first release leaves zeros out, and knows none of the figures that came later. */
static void test_older_agents_are_understood(void **state)
{
    (void)state;
    struct figure sent[FIGURE_LOAD_COUNT] = {{0}}, got[FIGURE_LOAD_COUNT];
    ProtobufCMessage *frame = frame_of_figures(sent);
    Splitbench__V1__Loaded *l = loaded_in(frame);
#define X(NAME, name, ...) l->known_##name##_case = 0;
    FIGURE_LOAD_LIST(X)
#undef X
    l->known_responses_case = SPLITBENCH__V1__LOADED__KNOWN_RESPONSES_RESPONSES;
    l->responses = 17;
    decode_figures(frame, got);
    for (int i = 0; i < FIGURE_LOAD_COUNT; i++) {
        assert_int_equal(got[i].known, figure_load_rows[i].since == 1);
        assert_int_equal(got[i].value, i == FIGURE_RESPONSES ? 17 : 0);
    }
}

/* And a controller of the first release must not take an unknown figure for zero: it refuses this number. */
static void test_older_controllers_are_not_misled(void **state)
{
    (void)state;
    struct figure none[FIGURE_LOAD_COUNT] = {{0}};
    ProtobufCMessage *frame = frame_of_figures(none);
    assert_true(loaded_in(frame)->short_bodies == UINT64_MAX);
    assert_true(loaded_in(frame)->rss_bytes_max == UINT64_MAX);
    protobuf_c_message_free_unpacked(frame, NULL);
}

/* What was sent once keeps its number for ever. */
static void test_numbers_of_figures_stay(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        unsigned number;
    } sent[] = {{"requests_sent", 6},   {"responses", 7},     {"body_bytes", 8},   {"wire_in_bytes", 9},
                {"wire_out_bytes", 10}, {"short_bodies", 11}, {"cpu_user_ns", 15}, {"cpu_system_ns", 16},
                {"rss_bytes_max", 17},  {"unanswered", 19}};
    for (size_t i = 0; i < ARRAY_LEN(sent); i++) {
        const ProtobufCFieldDescriptor *f = protobuf_c_message_descriptor_get_field_by_name(
            &splitbench__v1__loaded__descriptor, sent[i].name);
        assert_non_null(f);
        assert_int_equal(f->id, sent[i].number);
        assert_int_equal(f->type, PROTOBUF_C_TYPE_UINT64);
    }
}

/* ---- limits, field by field, on the wire --------------------------------------------------------------- */

struct prober {
    const ProtobufCMessage *frame;
    int within;
    int beyond;
};

/* Packs the frame as it is now and decodes it. */
static enum err try_frame(const struct prober *p, struct err_detail *d)
{
    size_t len = protobuf_c_message_get_packed_size(p->frame);
    uint8_t *data = mem_alloc(len);
    struct msg m;
    protobuf_c_message_pack(p->frame, data);
    enum err e = codec_decode(data, len, &m, d);
    if (e == ERR_OK)
        msg_fini(&m);
    free(data);
    return e;
}

static void expect(struct prober *p, const struct schema *s, const struct schema_field *f, bool ok)
{
    struct err_detail d = {.text = ""};
    enum err e = try_frame(p, &d);
    bool frame_full = e == ERR_TOO_BIG;
    if ((e == ERR_OK) != ok && !(ok && frame_full)) {
        print_message("%s.%s %s the limit: %s %s\n", s->wire->short_name, f->name, ok ? "at" : "beyond",
                      err_text(e), d.text);
        fail();
    }
    if (ok)
        p->within++;
    else
        p->beyond++;
}

static void probe_number(struct prober *p, const struct schema *s, const struct schema_field *f, char *at)
{
    bool wide = f->type == SCHEMA_U64 || f->type == SCHEMA_FIGURE;
    size_t size = wide ? sizeof(uint64_t) : sizeof(uint32_t);
    uint64_t old = 0, max = f->max, min = (uint64_t)f->min, beyond = max + 1, below = min - 1;
    memcpy(&old, at, size);
    memcpy(at, &max, size);
    expect(p, s, f, true);
    memcpy(at, &min, size);
    expect(p, s, f, true);
    if (f->type != SCHEMA_BOOL && max < (wide ? UINT64_MAX : UINT32_MAX)) {
        memcpy(at, &beyond, size);
        expect(p, s, f, false);
    }
    if (f->min != 0) {
        memcpy(at, &below, size);
        expect(p, s, f, false);
    }
    memcpy(at, &old, size);
}

/* `len` bytes that keep the rule. */
static char *long_text(enum schema_rule rule, size_t len)
{
    char *text = mem_alloc(len + 1);
    memset(text, 'a', len);
    if (rule == RULE_ENV)
        text[1] = '=';
    for (size_t i = 199; rule == RULE_PATH && i + 1 < len; i += 200)
        text[i] = '/';
    text[len] = '\0';
    return text;
}

static void probe_text(struct prober *p, const struct schema *s, const struct schema_field *f, char *at)
{
    static const char *const never[] = {"\xff", "a\xc0\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe2\x82"};
    static const char *const no_name[] = {"a/b", ".a", "a b", "-a", "\xc3\xbc", "a\n"};
    static const char *const no_path[] = {"", "/a", "a/", "a//b", "..", "a/../b", "a/..", ".", "./a", "a\n"};
    static const char *const no_env[] = {"", "a", "=a"};
    char *old, *text = long_text(f->rule, f->max);
    memcpy(&old, at, sizeof old);
    memcpy(at, &text, sizeof text);
    expect(p, s, f, true);
    free(text);
    text = long_text(f->rule, f->max + 1);
    memcpy(at, &text, sizeof text);
    expect(p, s, f, false);
    free(text);
    for (size_t i = 0; i < ARRAY_LEN(never); i++) {
        memcpy(at, &never[i], sizeof never[i]);
        expect(p, s, f, false);
    }
    for (size_t i = 0; (f->rule == RULE_NAME || f->rule == RULE_NO_NAME) && i < ARRAY_LEN(no_name); i++) {
        memcpy(at, &no_name[i], sizeof no_name[i]);
        expect(p, s, f, false);
    }
    for (size_t i = 0; f->rule == RULE_PATH && i < ARRAY_LEN(no_path); i++) {
        memcpy(at, &no_path[i], sizeof no_path[i]);
        expect(p, s, f, false);
    }
    for (size_t i = 0; f->rule == RULE_ENV && i < ARRAY_LEN(no_env); i++) {
        memcpy(at, &no_env[i], sizeof no_env[i]);
        expect(p, s, f, false);
    }
    memcpy(at, &old, sizeof old);
}

static void probe_bytes(struct prober *p, const struct schema *s, const struct schema_field *f, char *at)
{
    ProtobufCBinaryData old, data = {.len = f->max, .data = (uint8_t *)long_text(RULE_ANY, f->max + 1)};
    memcpy(&old, at, sizeof old);
    memcpy(at, &data, sizeof data);
    expect(p, s, f, true);
    data.len = f->max + 1;
    memcpy(at, &data, sizeof data);
    expect(p, s, f, false);
    if (f->type == SCHEMA_FIXED) {
        data.len = f->max - 1;
        memcpy(at, &data, sizeof data);
        expect(p, s, f, false);
    }
    if (f->type == SCHEMA_RAW) {
        data.data[0] = '\0';
        data.len = 1;
        memcpy(at, &data, sizeof data);
        expect(p, s, f, false);
    }
    free(data.data);
    memcpy(at, &old, sizeof old);
}

/* The first item again and again. */
static void probe_count(struct prober *p, const struct schema *s, const struct schema_field *f, char *wire)
{
    size_t old_count, size = f->type == SCHEMA_U32S ? sizeof(uint32_t) : sizeof(void *);
    char *old_items, *items = mem_zalloc(f->max + 1, size);
    memcpy(&old_count, wire + f->wire_count, sizeof old_count);
    memcpy(&old_items, wire + f->wire, sizeof old_items);
    assert_true(old_count > 0);
    for (size_t i = 0; i <= f->max; i++)
        memcpy(items + i * size, old_items, size);
    for (size_t count = f->max; count <= f->max + 1; count++) {
        memcpy(wire + f->wire_count, &count, sizeof count);
        memcpy(wire + f->wire, &items, sizeof items);
        expect(p, s, f, count == f->max);
    }
    if (f->type == SCHEMA_STRINGS)
        for (size_t len = f->bytes_max; len <= f->bytes_max + 1; len++) {
            char *text = long_text(f->rule, len);
            size_t one = 1;
            memcpy(wire + f->wire_count, &one, sizeof one);
            memcpy(items, &text, sizeof text);
            expect(p, s, f, len == f->bytes_max);
            free(text);
        }
    memcpy(wire + f->wire_count, &old_count, sizeof old_count);
    memcpy(wire + f->wire, &old_items, sizeof old_items);
    free(items);
}

static void probe_struct(struct prober *p, const struct schema *s, ProtobufCMessage *message)
{
    char *wire = (char *)message;
    for (size_t i = 0; i < s->field_count; i++) {
        const struct schema_field *f = &s->fields[i];
        void *sub = NULL;
        if (f->type == SCHEMA_TEXT) {
            probe_text(p, s, f, wire + f->wire);
        } else if (f->type == SCHEMA_BYTES || f->type == SCHEMA_FIXED || f->type == SCHEMA_RAW) {
            probe_bytes(p, s, f, wire + f->wire);
        } else if (f->type == SCHEMA_STRUCT) {
            void *none = NULL;
            memcpy(&sub, wire + f->wire, sizeof sub);
            memcpy(wire + f->wire, &none, sizeof none);
            expect(p, s, f, false);
            memcpy(wire + f->wire, &sub, sizeof sub);
            probe_struct(p, f->sub, sub);
        } else if (f->type == SCHEMA_FIGURE) {
            probe_number(p, s, f, wire + f->wire);
        } else if (f->wire_count != 0) {
            probe_count(p, s, f, wire);
            if (f->sub != NULL) {
                void **items;
                memcpy(&items, wire + f->wire, sizeof items);
                probe_struct(p, f->sub, items[0]);
            }
        } else {
            probe_number(p, s, f, wire + f->wire);
        }
    }
    if (s->kinds != NULL) {
        unsigned number;
        ProtobufCMessage *body;
        memcpy(&number, wire + s->case_at, sizeof number);
        memcpy(&body, wire + s->body_at, sizeof body);
        probe_struct(p, s->kinds[number - SCHEMA_FIRST_CASE], body);
    }
}

static void probe_msg(const struct msg *m, struct prober *p)
{
    struct buf b;
    encode(m, &b);
    ProtobufCMessage *frame =
        protobuf_c_message_unpack(&splitbench__v1__frame__descriptor, NULL, b.len, (uint8_t *)b.data);
    assert_non_null(frame);
    p->frame = frame;
    probe_struct(p, &schema_frame, frame);
    protobuf_c_message_free_unpacked(frame, NULL);
    buf_fini(&b);
}

static void test_every_limit_is_kept(void **state)
{
    (void)state;
    struct prober p = {0};
    for (unsigned kind = 0; kind < MSG_KIND_COUNT; kind++) {
        struct msg m;
        fill_msg(&m, (enum msg_kind)kind, 1);
        if (kind == MSG_COMMANDS || kind == MSG_PUSH) {
            /* One item at a time: probing looks at the first. */
            const struct schema *item = kind == MSG_COMMANDS ? &schema_command : &schema_event;
            for (size_t i = 0; i < item->kind_count; i++) {
                struct msg one = m;
                if (kind == MSG_COMMANDS)
                    one.u.commands = (struct msg_commands){.items = m.u.commands.items + i, .count = 1};
                else
                    one.u.push.items = m.u.push.items + i, one.u.push.count = 1;
                probe_msg(&one, &p);
            }
        } else {
            probe_msg(&m, &p);
        }
        msg_fini(&m);
    }
    print_message("%d values at a limit taken, %d beyond one refused\n", p.within, p.beyond);
    assert_true(p.within > 300 && p.beyond > 700);
}

/* ---- broken frames ---------------------------------------------------------------------------------------
 */

static void test_truncated_anywhere(void **state)
{
    (void)state;
    for (unsigned kind = 0; kind < MSG_KIND_COUNT; kind++) {
        struct msg m, back;
        struct buf b;
        fill_msg(&m, (enum msg_kind)kind, 2);
        encode(&m, &b);
        for (size_t len = 0; len < b.len; len++) {
            /* An allocation of its own: reading past the end is seen. */
            uint8_t *part = mem_dup(b.data, len);
            if (codec_decode(part, len, &back, NULL) == ERR_OK)
                msg_fini(&back);
            free(part);
        }
        buf_fini(&b);
        msg_fini(&m);
    }
}

static void test_changed_anywhere(void **state)
{
    (void)state;
    for (unsigned kind = 0; kind < MSG_KIND_COUNT; kind++) {
        struct msg m, back;
        struct buf b;
        fill_msg(&m, (enum msg_kind)kind, 2);
        encode(&m, &b);
        for (size_t i = 0; i < b.len * 8; i++) {
            b.data[i / 8] = (char)(b.data[i / 8] ^ (1 << i % 8));
            if (codec_decode(b.data, b.len, &back, NULL) == ERR_OK)
                msg_fini(&back);
            b.data[i / 8] = (char)(b.data[i / 8] ^ (1 << i % 8));
        }
        buf_fini(&b);
        msg_fini(&m);
    }
}

static void test_a_hidden_nul_is_refused(void **state)
{
    (void)state;
    struct msg m, back;
    struct buf b;
    struct err_detail d;
    fill_msg(&m, MSG_SUBMIT, 1);
    mem_set_string(&m.u.submit.experiment, "find#me");
    encode(&m, &b);
    char *at = memmem(b.data, b.len, "find#me", 7);
    assert_non_null(at);
    at[4] = '\0';
    assert_int_equal(codec_decode(b.data, b.len, &back, &d), ERR_INVALID);
    assert_non_null(strstr(d.text, "NUL"));
    at[0] = '\0'; /* looks like an empty text */
    assert_int_equal(codec_decode(b.data, b.len, &back, &d), ERR_INVALID);
    buf_fini(&b);
    msg_fini(&m);
}

static void test_other_versions(void **state)
{
    (void)state;
    struct msg m, back;
    struct buf b;
    fill_msg(&m, MSG_HELLO, 1);
    m.u.hello.protocol = 77;
    encode(&m, &b);
    assert_int_equal(codec_decode(b.data, b.len, &back, NULL), ERR_OK);
    assert_int_equal(back.kind, MSG_HELLO);
    assert_int_equal(back.u.hello.protocol, 77);
    assert_null(back.u.hello.name);
    msg_fini(&back);
    msg_fini(&m);
    b.data[1] = 78; /* field 1, the version, comes first */
    assert_int_equal(codec_decode(b.data, b.len, &back, NULL), ERR_OK);
    assert_int_equal(back.u.hello.protocol, 78);
    msg_fini(&back);
    buf_fini(&b);

    fill_msg(&m, MSG_POLL, 1);
    encode(&m, &b);
    b.data[1] = 2;
    assert_int_equal(codec_decode(b.data, b.len, &back, NULL), ERR_UNSUPPORTED);
    buf_fini(&b);
    msg_fini(&m);

    fill_msg(&m, MSG_REFUSED, 1);
    encode(&m, &b);
    b.data[1] = 2;
    assert_int_equal(codec_decode(b.data, b.len, &back, NULL), ERR_OK);
    msg_fini(&back);
    buf_fini(&b);
    msg_fini(&m);
}

static void test_the_frame_has_a_cap(void **state)
{
    (void)state;
    struct msg m, back;
    struct buf b;
    struct err_detail d;
    msg_init(&m, MSG_SUBMIT);
    m.u.submit.job = mem_strdup("j");
    size_t room = LIMIT_FRAME_BYTES - 64;
    for (; room < LIMIT_FRAME_BYTES; room++) {
        free(m.u.submit.experiment);
        m.u.submit.experiment = long_text(RULE_ANY, room);
        buf_init(&b, LIMIT_FRAME_BYTES);
        if (codec_encode(&m, &b, &d) != ERR_OK)
            break;
        if (b.len == LIMIT_FRAME_BYTES) {
            assert_int_equal(codec_decode(b.data, b.len, &back, &d), ERR_OK);
            msg_fini(&back);
        }
        buf_fini(&b);
    }
    assert_true(room < LIMIT_FRAME_BYTES);
    assert_int_equal(codec_encode(&m, &b, &d), ERR_TOO_BIG);
    assert_int_equal(b.len, 0);
    msg_fini(&m);
    uint8_t *big = mem_zalloc(1, LIMIT_FRAME_BYTES + 1);
    assert_int_equal(codec_decode(big, LIMIT_FRAME_BYTES + 1, &back, &d), ERR_TOO_BIG);
    free(big);
}

/* Two bytes of wire for an empty label: a frame of them would take dozens of megabytes. */
static void test_unpacking_has_a_budget(void **state)
{
    (void)state;
    struct err_detail d;
    struct msg back;
    const size_t labels = 900000;
    Splitbench__V1__Frame frame = SPLITBENCH__V1__FRAME__INIT;
    Splitbench__V1__Hello hello = SPLITBENCH__V1__HELLO__INIT;
    Splitbench__V1__Host host = SPLITBENCH__V1__HOST__INIT;
    char **items = mem_zalloc(labels, sizeof *items);
    for (size_t i = 0; i < labels; i++)
        items[i] = (char *)(uintptr_t) "";
    host.n_labels = labels;
    host.labels = items;
    hello.host = &host;
    frame.version = MSG_PROTOCOL_VERSION;
    frame.body_case = SPLITBENCH__V1__FRAME__BODY_HELLO;
    frame.hello = &hello;
    size_t len = splitbench__v1__frame__get_packed_size(&frame);
    uint8_t *data = mem_alloc(len);
    splitbench__v1__frame__pack(&frame, data);
    assert_true(len < LIMIT_FRAME_BYTES);
    assert_int_equal(codec_decode(data, len, &back, &d), ERR_TOO_BIG);
    assert_non_null(strstr(d.text, "unpack"));
    free(data);
    free(items);
}

static void test_garbage_is_refused(void **state)
{
    (void)state;
    struct msg back;
    struct err_detail d;
    uint64_t seed = 42;
    for (int i = 0; i < 20000; i++) {
        uint8_t data[64];
        for (size_t k = 0; k < sizeof data; k++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            data[k] = (uint8_t)(seed >> 56);
        }
        if (codec_decode(data, (size_t)i % sizeof data, &back, &d) == ERR_OK)
            msg_fini(&back);
    }
    assert_int_equal(codec_decode("", 0, &back, &d), ERR_UNSUPPORTED);
}

/* ---- what is sent ----------------------------------------------------------------------------------------
 */

static void test_foreign_text_is_cleaned(void **state)
{
    (void)state;
    struct msg m, back;
    struct buf b;
    msg_init(&m, MSG_REFUSED);
    m.u.refused.code = ERR_FAILED;
    m.u.refused.text = mem_strdup("bad \xff byte");
    encode(&m, &b);
    assert_int_equal(codec_decode(b.data, b.len, &back, NULL), ERR_OK);
    assert_string_equal(back.u.refused.text, "bad ? byte");
    msg_fini(&back);
    buf_fini(&b);
    /* Cut between characters: the last one, of two bytes, would pass the limit. */
    free(m.u.refused.text);
    m.u.refused.text = long_text(RULE_ANY, LIMIT_TEXT_BYTES + 1);
    memcpy(m.u.refused.text + LIMIT_TEXT_BYTES - 1, "\xc3\xbc", 2);
    encode(&m, &b);
    assert_int_equal(codec_decode(b.data, b.len, &back, NULL), ERR_OK);
    assert_int_equal(strlen(back.u.refused.text), LIMIT_TEXT_BYTES - 1);
    msg_fini(&back);
    buf_fini(&b);
    msg_fini(&m);
}

static void test_own_mistakes_are_named(void **state)
{
    (void)state;
    struct msg m;
    struct buf b;
    struct err_detail d;
    buf_init(&b, LIMIT_FRAME_BYTES);
    fill_msg(&m, MSG_WATCH, 1);
    mem_set_string(&m.u.watch.job, "../up");
    assert_int_equal(codec_encode(&m, &b, &d), ERR_INVALID);
    assert_non_null(strstr(d.text, "watch"));
    assert_non_null(strstr(d.text, "job"));
    assert_int_equal(b.len, 0);
    msg_fini(&m);
    fill_msg(&m, MSG_COMMANDS, 1);
    m.u.commands.items[0].number = 0;
    assert_int_equal(codec_encode(&m, &b, &d), ERR_INVALID);
    assert_non_null(strstr(d.text, "number"));
    msg_fini(&m);
    buf_fini(&b);
}

/* Who fills a frame up to its cap leaves this for what stands around the items. */
static void test_the_envelope_has_a_cap(void **state)
{
    (void)state;
    struct msg m;
    struct buf b;
    fill_msg(&m, MSG_PUSH, 0);
    m.session = m.serial = m.u.push.incarnation = UINT64_MAX;
    encode(&m, &b);
    assert_true(b.len > 30 && b.len <= CODEC_ENVELOPE_BYTES);
    buf_fini(&b);
    msg_fini(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_kind_survives),
        cmocka_unit_test(test_every_wire_field_has_a_row),
        cmocka_unit_test(test_every_limit_is_kept),
        cmocka_unit_test(test_truncated_anywhere),
        cmocka_unit_test(test_changed_anywhere),
        cmocka_unit_test(test_a_hidden_nul_is_refused),
        cmocka_unit_test(test_other_versions),
        cmocka_unit_test(test_the_frame_has_a_cap),
        cmocka_unit_test(test_unpacking_has_a_budget),
        cmocka_unit_test(test_garbage_is_refused),
        cmocka_unit_test(test_foreign_text_is_cleaned),
        cmocka_unit_test(test_own_mistakes_are_named),
        cmocka_unit_test(test_the_envelope_has_a_cap),
        cmocka_unit_test(test_unknown_is_not_zero),
        cmocka_unit_test(test_older_agents_are_understood),
        cmocka_unit_test(test_older_controllers_are_not_misled),
        cmocka_unit_test(test_numbers_of_figures_stay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
