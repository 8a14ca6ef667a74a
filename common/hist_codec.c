#include "common/hist.h"

#include "common/base64.h"
#include "common/mem.h"

#include <zlib.h>

/*
 * HdrHistogram V2. Encoded: a 40-byte big-endian header (cookie, payload bytes, index offset, digits,
 * lowest, highest, ratio), then counts from slot 0 as ZigZag LEB128, a run of n zeros being -n.
 * Compressed: cookie, byte count, deflate of the above. As text: base64.
 */
#define COOKIE_PLAIN      0x1c849313u
#define COOKIE_COMPRESSED 0x1c849314u
#define HEADER_BYTES      40u
#define RATIO_ONE         UINT64_C(0x3ff0000000000000) /* 1.0 as IEEE 754 bits */
#define VARINT_BYTES_MAX  9u
#define PLAIN_BYTES_MAX   (HEADER_BYTES + HIST_SLOT_COUNT * VARINT_BYTES_MAX)

static void put_u32(uint8_t *p, uint32_t v)
{
    for (int i = 0; i < 4; i++)
        p[i] = (uint8_t)(v >> (24 - 8 * i));
}

static void put_u64(uint8_t *p, uint64_t v)
{
    put_u32(p, (uint32_t)(v >> 32));
    put_u32(p + 4, (uint32_t)v);
}

static uint32_t get_u32(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static uint64_t get_u64(const uint8_t *p)
{
    return (uint64_t)get_u32(p) << 32 | get_u32(p + 4);
}

/* Seven bits a byte, low first; the ninth byte holds eight. Returns the bytes written. */
static size_t put_varint(uint8_t *p, int64_t value)
{
    uint64_t v = ((uint64_t)value << 1) ^ (value < 0 ? UINT64_MAX : 0);
    size_t n = 0;
    while (v > 0x7f && n < VARINT_BYTES_MAX - 1) {
        p[n++] = (uint8_t)(v | 0x80);
        v >>= 7;
    }
    p[n++] = (uint8_t)v;
    return n;
}

/* Returns the bytes read, 0 when the input ends too soon. */
static size_t get_varint(const uint8_t *p, size_t len, int64_t *out)
{
    uint64_t v = 0;
    for (size_t n = 0; n < len && n < VARINT_BYTES_MAX; n++) {
        bool last = n == VARINT_BYTES_MAX - 1;
        v |= (uint64_t)(last ? p[n] : p[n] & 0x7f) << (7 * n);
        if (last || (p[n] & 0x80) == 0) {
            *out = (int64_t)(v >> 1) ^ -(int64_t)(v & 1);
            return n + 1;
        }
    }
    return 0;
}

static size_t encode_plain(const struct hist *h, uint8_t *out)
{
    size_t n = HEADER_BYTES;
    uint32_t end = h->count != 0 ? hist_slot(h->max) + 1 : 0;
    for (uint32_t i = 0; i < end;) {
        uint32_t zeros = 0;
        while (i + zeros < end && h->slots[i + zeros] == 0)
            zeros++;
        if (zeros != 0)
            n += put_varint(out + n, -(int64_t)zeros);
        else
            n += put_varint(out + n, (int64_t)h->slots[i]);
        i += zeros != 0 ? zeros : 1;
    }
    put_u32(out, COOKIE_PLAIN);
    put_u32(out + 4, (uint32_t)(n - HEADER_BYTES));
    put_u32(out + 8, 0);
    put_u32(out + 12, HIST_DIGITS);
    put_u64(out + 16, 1);
    put_u64(out + 24, HIST_VALUE_MAX);
    put_u64(out + 32, RATIO_ONE);
    return n;
}

enum err hist_encode(const struct hist *h, struct buf *out)
{
    uint8_t *plain = mem_alloc(PLAIN_BYTES_MAX);
    size_t plain_len = encode_plain(h, plain);
    uLongf packed_len = compressBound(plain_len);
    uint8_t *packed = mem_alloc(8 + packed_len);
    must(compress2(packed + 8, &packed_len, plain, plain_len, Z_DEFAULT_COMPRESSION) == Z_OK);
    put_u32(packed, COOKIE_COMPRESSED);
    put_u32(packed + 4, (uint32_t)packed_len);
    char *text = mem_alloc(BASE64_CHARS(8 + packed_len) + 1);
    enum err e = buf_append(out, text, base64_encode(packed, 8 + packed_len, text));
    free(text);
    free(packed);
    free(plain);
    return e;
}

/* The lowest value of a slot. */
static uint64_t low_of(uint32_t slot)
{
    return slot < HIST_SUB_COUNT
               ? slot
               : (uint64_t)((slot & (HIST_SUB_HALF - 1u)) + HIST_SUB_HALF) << ((slot >> 10u) - 1u);
}

static enum err decode_plain(struct hist *h, const uint8_t *p, size_t len, struct err_detail *d)
{
    if (len < HEADER_BYTES || get_u32(p) != COOKIE_PLAIN)
        return err_set(d, ERR_INVALID, "histogram: not HdrHistogram V2 data");
    if (get_u32(p + 4) != len - HEADER_BYTES || get_u32(p + 8) != 0 || get_u64(p + 32) != RATIO_ONE)
        return err_set(d, ERR_INVALID, "histogram: header and size disagree");
    if (get_u32(p + 12) != HIST_DIGITS || get_u64(p + 16) != 1)
        return err_set(d, ERR_UNSUPPORTED, "histogram: only 3 significant digits from 1 on are read");
    uint64_t slot = 0;
    uint32_t last = 0; /* the highest that is used */
    for (size_t at = HEADER_BYTES; at < len;) {
        int64_t value = 0;
        size_t n = get_varint(p + at, len - at, &value);
        if (n == 0)
            return err_set(d, ERR_INVALID, "histogram: data ends inside a count");
        at += n;
        uint64_t step = value < 0 ? (uint64_t)0 - (uint64_t)value : 1;
        if (step > HIST_SLOT_COUNT - slot)
            return err_set(d, ERR_INVALID, "histogram: more counts than the range has");
        if (value > 0) {
            if ((uint64_t)value > UINT64_MAX / 4 / HIST_SLOT_COUNT)
                return err_set(d, ERR_INVALID, "histogram: a count is out of range");
            last = (uint32_t)slot;
            h->min = h->count == 0 ? low_of(last) : h->min;
            h->count += (uint64_t)value;
            h->slots[last] = (uint64_t)value;
        }
        slot += step;
    }
    /* What its highest slot can hold: the encoding does not carry the exact maximum. */
    if (h->count != 0)
        h->max = hist_highest_equivalent(low_of(last));
    return ERR_OK;
}

static enum err decode_bytes(struct hist *h, const uint8_t *p, size_t len, struct err_detail *d)
{
    if (len < 8 || get_u32(p) != COOKIE_COMPRESSED)
        return decode_plain(h, p, len, d);
    if (get_u32(p + 4) != len - 8)
        return err_set(d, ERR_INVALID, "histogram: compressed size and data disagree");
    uLongf plain_len = PLAIN_BYTES_MAX;
    uint8_t *plain = mem_alloc(plain_len);
    enum err e = uncompress(plain, &plain_len, p + 8, len - 8) == Z_OK
                     ? decode_plain(h, plain, plain_len, d)
                     : err_set(d, ERR_INVALID, "histogram: the compressed data is damaged or too large");
    free(plain);
    return e;
}

enum err hist_decode(struct hist *h, const char *text, size_t len, struct err_detail *d)
{
    hist_clear(h);
    if (len > HIST_TEXT_BYTES_MAX)
        return err_set(d, ERR_TOO_BIG, "histogram: %zu characters, at most %u", len, HIST_TEXT_BYTES_MAX);
    uint8_t *bytes = mem_alloc(BASE64_BYTES(len));
    size_t byte_len = 0;
    enum err e = base64_decode(text, len, bytes, &byte_len)
                     ? decode_bytes(h, bytes, byte_len, d)
                     : err_set(d, ERR_INVALID, "histogram: not base64");
    free(bytes);
    if (e != ERR_OK)
        hist_clear(h);
    return e;
}
