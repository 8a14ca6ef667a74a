#include "common/json_scan.h"

#include "common/mem.h"
#include "common/utf8.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct mark { /* where a value or a key stands */
    uint32_t line;
    uint32_t column;
    size_t offset;
};

struct scanner {
    const char *text;
    size_t len;
    size_t pos;
    uint32_t line;
    uint32_t column;
    unsigned depth;
    size_t count; /* of values and keys */
    bool comments;
    struct json_value *root;
    struct json_value *parent; /* what is open; NULL around the root */
    char *key;                 /* of the member whose value comes next, owned */
    struct mark key_mark;
    struct mark failed;
    struct err_detail *d;
};

#define FAIL(c, ...)          fail_at(c, (c)->line, (c)->column, ERR_INVALID, __VA_ARGS__)
#define FAIL_AT(c, mark, ...) fail_at(c, (mark)->line, (mark)->column, ERR_INVALID, __VA_ARGS__)
#define fail_at(c, l, col, e, ...)                                                                           \
    ((c)->failed = (struct mark){.line = (l), .column = (col)}, err_set((c)->d, e, __VA_ARGS__))

static int peek(const struct scanner *c)
{
    return c->pos < c->len ? (unsigned char)c->text[c->pos] : -1;
}

/* Steps over `n` bytes that are one character. */
static void step(struct scanner *c, size_t n)
{
    if (c->text[c->pos] == '\n') {
        c->line++;
        c->column = 1;
    } else {
        c->column++;
    }
    c->pos += n;
}

static struct mark here(const struct scanner *c)
{
    return (struct mark){.line = c->line, .column = c->column, .offset = c->pos};
}

static enum err count_one(struct scanner *c, const struct mark *mark)
{
    if (c->count == LIMIT_JSON_VALUES)
        return fail_at(c, mark->line, mark->column, ERR_TOO_BIG, "more than %u values and keys",
                       LIMIT_JSON_VALUES);
    c->count++;
    return ERR_OK;
}

/* A value at `mark` goes into what is open, under the key that was read before it. `text` as in json.h. */
static enum err add_value(struct scanner *c, enum json_kind kind, const char *text, const struct mark *mark)
{
    enum err e = count_one(c, mark);
    if (e != ERR_OK)
        return e;
    struct json_value *v = json_new(kind, text);
    v->line = mark->line;
    v->column = mark->column;
    if (c->parent == NULL) {
        c->root = v;
    } else {
        if (c->key != NULL) {
            v->key_line = c->key_mark.line;
            v->key_column = c->key_mark.column;
        }
        json_append(c->parent, c->key, v);
    }
    free(c->key);
    c->key = NULL;
    if (kind == JSON_OBJECT || kind == JSON_ARRAY)
        c->parent = v;
    return ERR_OK;
}

/* The text from `mark` to here is a value as it is. */
static enum err add_plain(struct scanner *c, enum json_kind kind, const struct mark *mark)
{
    char *text = mem_strndup(c->text + mark->offset, c->pos - mark->offset);
    enum err e = add_value(c, kind, text, mark);
    free(text);
    return e;
}

/* What stands here, for a message: 'x', a byte by its value, or the end. */
static const char *found(const struct scanner *c, char out[24])
{
    int ch = peek(c);
    size_t n = utf8_len(c->text + c->pos, c->len - c->pos);
    if (ch < 0)
        snprintf(out, 24, "the end of the text");
    else if (n > 1 || (n == 1 && isprint(ch)))
        snprintf(out, 24, "'%.*s'", (int)n, c->text + c->pos);
    else
        snprintf(out, 24, "byte 0x%02x", (unsigned)ch);
    return out;
}

static enum err skip_comment(struct scanner *c)
{
    struct mark start = here(c);
    if (!c->comments)
        return FAIL(c, "comments are not allowed here");
    int second = c->pos + 1 < c->len ? c->text[c->pos + 1] : 0;
    if (second != '/' && second != '*')
        return FAIL(c, "a comment starts with // or /*");
    bool block = second == '*';
    size_t body = c->pos + 2;
    for (;;) {
        int ch = peek(c);
        if (block && c->pos >= body + 2 && c->text[c->pos - 2] == '*' && c->text[c->pos - 1] == '/')
            break;
        if (!block && (ch < 0 || ch == '\n'))
            break;
        if (ch < 0)
            return FAIL_AT(c, &start, "comment is not closed: */ is missing");
        size_t n = utf8_len(c->text + c->pos, c->len - c->pos);
        if (n == 0 || (ch < 0x20 && ch != '\t' && ch != '\r' && ch != '\n'))
            return FAIL(c, "byte 0x%02x is not UTF-8 text", (unsigned)ch);
        step(c, n);
    }
    return ERR_OK;
}

static enum err skip_blanks(struct scanner *c)
{
    enum err e = ERR_OK;
    while (e == ERR_OK) {
        int ch = peek(c);
        if (ch == ' ' || ch == '\t' || ch == '\r' || ch == '\n')
            step(c, 1);
        else if (ch == '/')
            e = skip_comment(c);
        else
            break;
    }
    return e;
}

/* Four hex digits at `pos`; -1 when they are not there. */
static int hex4(const struct scanner *c, size_t pos)
{
    int v = 0;
    if (pos > c->len || c->len - pos < 4)
        return -1;
    for (size_t i = 0; i < 4; i++) {
        unsigned char ch = (unsigned char)c->text[pos + i];
        if (!isxdigit(ch))
            return -1;
        v = v * 16 + (isdigit(ch) ? ch - '0' : tolower(ch) - 'a' + 10);
    }
    return v;
}

static enum err scan_escape(struct scanner *c)
{
    int ch = c->pos + 1 < c->len ? c->text[c->pos + 1] : -1;
    size_t n = 2;
    if (ch == 'u') {
        int code = hex4(c, c->pos + 2);
        n = 6;
        if (code < 0)
            return FAIL(c, "\\u needs four hex digits");
        if (code == 0)
            return FAIL(c, "\\u0000 is not accepted: strings end up in files and commands");
        if (code >= 0xdc00 && code <= 0xdfff)
            return FAIL(c, "\\u%04x is half of a surrogate pair", (unsigned)code);
        if (code >= 0xd800 && code <= 0xdbff) {
            bool pair = c->len - c->pos >= 12 && c->text[c->pos + 6] == '\\' && c->text[c->pos + 7] == 'u';
            int low = pair ? hex4(c, c->pos + 8) : -1;
            if (low < 0xdc00 || low > 0xdfff)
                return FAIL(c, "\\u%04x is half of a surrogate pair", (unsigned)code);
            n = 12;
        }
    } else if (ch <= 0 || strchr("\"\\/bfnrt", ch) == NULL) {
        return FAIL(c, "unknown escape: a backslash is written \\\\ inside a string");
    }
    for (size_t i = 0; i < n; i++)
        step(c, 1);
    return ERR_OK;
}

/* The character of a code point, as UTF-8. Returns its length. */
static size_t put_utf8(char *out, unsigned code)
{
    size_t n = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    static const unsigned char first[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (size_t i = n; i-- > 1; code >>= 6)
        out[i] = (char)(0x80 | (code & 0x3f));
    out[0] = (char)(first[n] | code);
    return n;
}

/* What the string between two places stands for; its escapes have been checked. No escape is shorter than
 * what it stands for. */
static char *decode(const struct scanner *c, size_t from, size_t to)
{
    static const char letters[] = "\"\\/bfnrt";
    static const char meant[] = "\"\\/\b\f\n\r\t";
    char *text = mem_alloc(to - from + 1);
    size_t len = 0;
    while (from < to) {
        if (c->text[from] != '\\') {
            text[len++] = c->text[from++];
            continue;
        }
        if (c->text[from + 1] != 'u') {
            text[len++] = meant[strchr(letters, c->text[from + 1]) - letters];
            from += 2;
            continue;
        }
        unsigned code = (unsigned)hex4(c, from + 2);
        from += 6;
        if (code >= 0xd800 && code <= 0xdbff) {
            code = 0x10000 + ((code - 0xd800) << 10) + ((unsigned)hex4(c, from + 2) - 0xdc00);
            from += 6;
        }
        len += put_utf8(text + len, code);
    }
    text[len] = '\0';
    return text;
}

/* A string, decoded; the caller frees it. */
static enum err scan_string(struct scanner *c, char **out)
{
    struct mark mark = here(c);
    enum err e = ERR_OK;
    step(c, 1);
    while (e == ERR_OK) {
        int ch = peek(c);
        size_t n = utf8_len(c->text + c->pos, c->len - c->pos);
        if (ch < 0 || ch == '\n')
            return FAIL_AT(c, &mark, "string is not closed on its line: write a line break as \\n");
        if (n == 0)
            return FAIL(c, "byte 0x%02x is not UTF-8 text", (unsigned)ch);
        if (ch < 0x20)
            return FAIL(c, "control character 0x%02x in a string: write it as \\u%04x", (unsigned)ch,
                        (unsigned)ch);
        if (ch == '\\') {
            e = scan_escape(c);
            continue;
        }
        step(c, n);
        if (ch == '"')
            break;
    }
    if (e == ERR_OK)
        *out = decode(c, mark.offset + 1, c->pos - 1);
    return e;
}

static enum err scan_text(struct scanner *c)
{
    struct mark mark = here(c);
    char *text = NULL;
    enum err e = scan_string(c, &text);
    if (e == ERR_OK)
        e = add_value(c, JSON_STRING, text, &mark);
    free(text);
    return e;
}

static size_t digits(struct scanner *c)
{
    size_t n = 0;
    for (; isdigit(peek(c)); n++)
        step(c, 1);
    return n;
}

static enum err scan_number(struct scanner *c)
{
    struct mark mark = here(c);
    if (peek(c) == '-')
        step(c, 1);
    bool zero = peek(c) == '0';
    size_t n = digits(c);
    if (n == 0)
        return FAIL_AT(c, &mark, "a number has a digit after its sign");
    if (zero && n > 1)
        return FAIL_AT(c, &mark, "a number does not start with 0");
    if (peek(c) == '.') {
        step(c, 1);
        if (digits(c) == 0)
            return FAIL_AT(c, &mark, "a number has a digit after its point");
    }
    if (peek(c) == 'e' || peek(c) == 'E') {
        step(c, 1);
        if (peek(c) == '+' || peek(c) == '-')
            step(c, 1);
        if (digits(c) == 0)
            return FAIL_AT(c, &mark, "an exponent has a digit");
    }
    if (isalnum(peek(c)) || peek(c) == '_')
        return FAIL_AT(c, &mark,
                       "not a number: put durations and other texts in double quotes, like \"10s\"");
    size_t len = c->pos - mark.offset;
    if (len > JSON_NUMBER_BYTES)
        return FAIL_AT(c, &mark, "number of %zu characters: at most %u", len, JSON_NUMBER_BYTES);
    return add_plain(c, JSON_NUMBER, &mark);
}

static enum err scan_word(struct scanner *c)
{
    static const char *const words[] = {"true", "false", "null"};
    struct mark mark = here(c);
    char text[24];
    const char *at = c->text + c->pos;
    size_t n = 0;
    while (c->pos + n < c->len && (isalnum((unsigned char)at[n]) || at[n] == '_'))
        n++;
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        if (strlen(words[i]) != n || memcmp(words[i], at, n) != 0)
            continue;
        while (n-- > 0)
            step(c, 1);
        return strcmp(words[i], "null") == 0 ? add_value(c, JSON_NULL, NULL, &mark)
                                             : add_plain(c, JSON_BOOL, &mark);
    }
    if (peek(c) == '\'')
        return FAIL(c, "strings stand in double quotes");
    if (n > 0)
        return FAIL(c, "'%.*s' is no value: true, false and null are; texts stand in double quotes",
                    n > 40 ? 40 : (int)n, at);
    return FAIL(c, "a value is missing: found %s", found(c, text));
}

static enum err scan_value(struct scanner *c);

static enum err scan_key(struct scanner *c)
{
    char text[24];
    if (peek(c) != '"')
        return FAIL(c, "a key in double quotes is missing: found %s", found(c, text));
    c->key_mark = here(c);
    enum err e = scan_string(c, &c->key);
    if (e == ERR_OK)
        e = count_one(c, &c->key_mark);
    if (e == ERR_OK)
        e = skip_blanks(c);
    if (e != ERR_OK)
        return e;
    if (peek(c) != ':')
        return FAIL(c, "':' is missing after the key: found %s", found(c, text));
    step(c, 1);
    return skip_blanks(c);
}

/* An array or object, from its opening bracket on. */
static enum err scan_container(struct scanner *c)
{
    struct mark mark = here(c);
    bool object = peek(c) == '{';
    int close = object ? '}' : ']';
    char text[24];
    if (++c->depth > LIMIT_JSON_DEPTH)
        return FAIL(c, "more than %u levels of nesting", LIMIT_JSON_DEPTH);
    struct json_value *around = c->parent;
    enum err e = add_value(c, object ? JSON_OBJECT : JSON_ARRAY, NULL, &mark);
    step(c, 1);
    if (e == ERR_OK)
        e = skip_blanks(c);
    for (bool first = true; e == ERR_OK && peek(c) != close; first = false) {
        if (!first) {
            struct mark comma = here(c);
            if (peek(c) < 0)
                return FAIL_AT(c, &mark, "'%c' is not closed", object ? '{' : '[');
            if (peek(c) != ',')
                return FAIL(c, "',' or '%c' is missing: found %s", close, found(c, text));
            step(c, 1);
            e = skip_blanks(c);
            if (e == ERR_OK && peek(c) == close)
                return FAIL_AT(c, &comma, "no ',' after the last %s", object ? "member" : "element");
        }
        if (e == ERR_OK && peek(c) < 0)
            return FAIL_AT(c, &mark, "'%c' is not closed", object ? '{' : '[');
        if (e == ERR_OK && object)
            e = scan_key(c);
        if (e == ERR_OK)
            e = scan_value(c);
        if (e == ERR_OK)
            e = skip_blanks(c);
    }
    if (e != ERR_OK)
        return e;
    step(c, 1);
    c->depth--;
    c->parent = around;
    return ERR_OK;
}

/* Recursion is bounded by LIMIT_JSON_DEPTH. */
static enum err scan_value(struct scanner *c)
{
    int ch = peek(c);
    if (ch == '{' || ch == '[')
        return scan_container(c);
    if (ch == '"')
        return scan_text(c);
    if (ch == '-' || isdigit(ch))
        return scan_number(c);
    return scan_word(c);
}

static enum err scan_whole(struct scanner *c)
{
    char what[24];
    if (c->len >= 3 && memcmp(c->text, "\xef\xbb\xbf", 3) == 0)
        return FAIL(c, "the text starts with a byte order mark: save it as UTF-8 without one");
    enum err e = skip_blanks(c);
    if (e == ERR_OK && c->pos == c->len)
        return FAIL(c, "the text is empty: a value is missing");
    if (e == ERR_OK)
        e = scan_value(c);
    if (e == ERR_OK)
        e = skip_blanks(c);
    if (e == ERR_OK && c->pos != c->len)
        return FAIL(c, "nothing may follow the value: found %s", found(c, what));
    return e;
}

enum err json_fail(const struct json_options *options, enum err e, uint32_t line, uint32_t column,
                   struct err_detail *d)
{
    if (options->line == NULL)
        return err_prefix(d, e, "%u:%u", line, column);
    *options->line = line;
    *options->column = column;
    return e;
}

enum err json_scan(const char *text, size_t len, const struct json_options *options, struct json_value **out,
                   struct err_detail *d)
{
    struct scanner c = {
        .text = text, .len = len, .line = 1, .column = 1, .comments = options->comments, .d = d};
    enum err e = scan_whole(&c);
    free(c.key);
    if (e == ERR_OK) {
        *out = c.root;
        return ERR_OK;
    }
    json_free(c.root);
    return json_fail(options, e, c.failed.line, c.failed.column, d);
}
