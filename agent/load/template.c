#include "agent/load/template.h"

#include "common/buf.h"
#include "common/file.h"
#include "common/mem.h"
#include "common/parse.h"

#include <errno.h>
#include <inttypes.h>

#define NUMBER_BYTES_MAX 20u

enum part_kind { PART_LITERAL, PART_COUNTER, PART_RANDOM, PART_LINE };

struct line {
    const char *text; /* in the part's file */
    size_t len;
};

struct template_part {
    enum part_kind kind;
    const char *text; /* literal: in the template's text */
    size_t len;
    uint64_t min;   /* random */
    uint64_t range; /* max - min + 1; 0: all of 64 bits */
    char *file;     /* lines */
    struct line *lines;
    size_t line_count;
};

static bool fits_place(const char *text, size_t len, enum template_place place)
{
    if (place == TEMPLATE_BODY)
        return true;
    for (size_t i = 0; i < len; i++)
        if (text[i] <= ' ' || text[i] == 0x7f)
            return false;
    return true;
}

static enum err load_lines(struct template_part *p, const char *path, enum template_place place,
                           struct err_detail *d)
{
    size_t len = 0;
    enum err e = file_read(path, FILE_ANY, TEMPLATE_FILE_BYTES_MAX, &p->file, &len, d);
    if (e != ERR_OK)
        return err_prefix(d, e, "template");
    const char *at = p->file;
    const char *end = at + len;
    size_t cap = 0;
    while (at < end) {
        const char *lf = memchr(at, '\n', (size_t)(end - at));
        size_t n = (size_t)((lf != NULL ? lf : end) - at);
        size_t kept = n != 0 && at[n - 1] == '\r' ? n - 1 : n;
        if (kept > TEMPLATE_LINE_BYTES_MAX || !fits_place(at, kept, place))
            return err_set(
                d, ERR_INVALID,
                "template: line %zu of '%s' is longer than %u bytes, or holds a blank or control byte",
                p->line_count + 1, path, TEMPLATE_LINE_BYTES_MAX);
        if (p->line_count == cap) {
            cap = cap != 0 ? 2 * cap : 64;
            p->lines = mem_realloc(p->lines, cap, sizeof *p->lines);
        }
        p->lines[p->line_count++] = (struct line){at, kept};
        p->len = kept > p->len ? kept : p->len;
        at += n + 1;
    }
    return p->line_count != 0 ? ERR_OK : err_set(d, ERR_INVALID, "template: '%s' has no line", path);
}

static enum err read_range(struct template_part *p, char *text, struct err_detail *d)
{
    char *dash = strchr(text, '-');
    uint64_t max = 0;
    if (dash == NULL)
        return err_set(d, ERR_INVALID, "template: write {{random:MIN-MAX}}");
    *dash = '\0';
    enum err e = parse_u64(text, 0, UINT64_MAX, &p->min, "{{random}}", d);
    if (e == ERR_OK)
        e = parse_u64(dash + 1, p->min, UINT64_MAX, &max, "{{random}}", d);
    p->range = max - p->min + 1;
    return e;
}

/* What stands between the braces. */
static enum err read_place(struct template_part *p, char *name, enum template_place place,
                           struct err_detail *d)
{
    if (strcmp(name, "counter") == 0) {
        p->kind = PART_COUNTER;
        p->len = NUMBER_BYTES_MAX;
        return ERR_OK;
    }
    if (strncmp(name, "random:", 7) == 0) {
        p->kind = PART_RANDOM;
        p->len = NUMBER_BYTES_MAX;
        return read_range(p, name + 7, d);
    }
    if (strncmp(name, "line:", 5) == 0) {
        p->kind = PART_LINE;
        return load_lines(p, name + 5, place, d);
    }
    return err_set(d, ERR_INVALID, "template: {{%s}} is none of counter, random:MIN-MAX, line:FILE", name);
}

static enum err add_place(struct template *t, const char *name, size_t len, enum template_place place,
                          struct err_detail *d)
{
    char *copy = mem_strndup(name, len);
    enum err e = read_place(&t->parts[t->part_count++], copy, place, d);
    free(copy);
    return e;
}

enum err template_parse(struct template *t, const char *text, size_t len, enum template_place place,
                        struct err_detail *d)
{
    *t = (struct template){.text = mem_dup(text, len)};
    t->parts = mem_zalloc(TEMPLATE_PARTS_MAX, sizeof *t->parts);
    const char *at = t->text;
    const char *end = at + len;
    enum err e = ERR_OK;
    while (at < end && e == ERR_OK) {
        if (t->part_count + 2 > TEMPLATE_PARTS_MAX)
            return err_set(d, ERR_TOO_BIG, "template: more than %u parts", TEMPLATE_PARTS_MAX - 1);
        const char *open = memmem(at, (size_t)(end - at), "{{", 2);
        const char *close = open != NULL ? memmem(open, (size_t)(end - open), "}}", 2) : NULL;
        if (open != NULL && close == NULL)
            return err_set(d, ERR_INVALID, "template: {{ without }}");
        size_t plain = (size_t)((open != NULL ? open : end) - at);
        if (plain != 0)
            t->parts[t->part_count++] =
                (struct template_part){.kind = PART_LITERAL, .text = at, .len = plain};
        if (open != NULL)
            e = add_place(t, open + 2, (size_t)(close - open - 2), place, d);
        at = open != NULL ? close + 2 : end;
    }
    for (size_t i = 0; i < t->part_count; i++)
        t->len_max += t->parts[i].len;
    return e;
}

void template_fini(struct template *t)
{
    for (size_t i = 0; i < t->part_count; i++) {
        free(t->parts[i].file);
        free(t->parts[i].lines);
    }
    free(t->parts);
    free(t->text);
    *t = (struct template){0};
}

void template_state_init(struct template_state *s, uint32_t index, uint32_t threads, uint64_t seed)
{
    *s = (struct template_state){.number = index, .step = threads};
    s->random = ((seed + 1) * UINT64_C(0x9e3779b97f4a7c15)) ^ ((index + 1) * UINT64_C(0xbf58476d1ce4e5b9));
    s->random |= 1;
}

static uint64_t next_random(struct template_state *s)
{
    s->random ^= s->random >> 12;
    s->random ^= s->random << 25;
    s->random ^= s->random >> 27;
    return s->random * UINT64_C(0x2545f4914f6cdd1d);
}

static size_t put_number(uint8_t *out, uint64_t n)
{
    uint8_t digits[NUMBER_BYTES_MAX];
    size_t len = 0;
    do {
        digits[len++] = (uint8_t)('0' + n % 10);
        n /= 10;
    } while (n != 0);
    for (size_t i = 0; i < len; i++)
        out[i] = digits[len - 1 - i];
    return len;
}

static size_t put_bytes(uint8_t *out, const char *text, size_t len)
{
    memcpy(out, text, len);
    return len;
}

size_t template_render(const struct template *t, struct template_state *s, uint8_t *out)
{
    size_t n = 0;
    for (size_t i = 0; i < t->part_count; i++) {
        const struct template_part *p = &t->parts[i];
        switch (p->kind) {
        case PART_LITERAL:
            n += put_bytes(out + n, p->text, p->len);
            break;
        case PART_COUNTER:
            n += put_number(out + n, s->number);
            break;
        case PART_RANDOM: {
            uint64_t draw = next_random(s);
            /* The product's upper half: even to one part in 2^64 / range. */
            uint64_t value = p->range != 0 ? (uint64_t)((unsigned __int128)draw * p->range >> 64) : draw;
            n += put_number(out + n, p->min + value);
            break;
        }
        case PART_LINE: {
            const struct line *l = &p->lines[s->number % p->line_count];
            n += put_bytes(out + n, l->text, l->len);
            break;
        }
        }
    }
    return n;
}
