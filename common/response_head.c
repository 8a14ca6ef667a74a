#include "common/response.h"

#include <strings.h>

/* One header line, or a part of it: borrowed bytes. */
struct span {
    const uint8_t *at;
    size_t len;
};

size_t response_head_len(const uint8_t *data, size_t len)
{
    const uint8_t *end = data + len;
    for (const uint8_t *p = data; (p = memchr(p, '\n', (size_t)(end - p))) != NULL; p++) {
        if (p + 1 < end && p[1] == '\n')
            return (size_t)(p + 2 - data);
        if (p + 2 < end && p[1] == '\r' && p[2] == '\n')
            return (size_t)(p + 3 - data);
    }
    return 0;
}

static bool span_is(struct span s, const char *word)
{
    return s.len == strlen(word) && strncasecmp((const char *)s.at, word, s.len) == 0;
}

static struct span span_trim(struct span s)
{
    while (s.len != 0 && (s.at[0] == ' ' || s.at[0] == '\t')) {
        s.at++;
        s.len--;
    }
    while (s.len != 0 && (s.at[s.len - 1] == ' ' || s.at[s.len - 1] == '\t'))
        s.len--;
    return s;
}

static bool is_digit(uint8_t c)
{
    return c >= '0' && c <= '9';
}

/* RFC 9110 5.6.2 */
static bool is_token_byte(uint8_t c)
{
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c != '\0' && strchr("!#$%&'*+-.^_`|~", c) != NULL);
}

/* Takes the next line without its CRLF off `rest`. */
static enum response_fault next_line(struct span *rest, struct span *line)
{
    const uint8_t *lf = memchr(rest->at, '\n', rest->len);
    if (lf == NULL)
        return RESPONSE_HEADER_LINE;
    if (lf == rest->at || lf[-1] != '\r')
        return RESPONSE_BARE_LF;
    *line = (struct span){rest->at, (size_t)(lf - 1 - rest->at)};
    rest->len -= (size_t)(lf + 1 - rest->at);
    rest->at = lf + 1;
    return RESPONSE_NONE;
}

/* "HTTP/1.1 200 OK"; the reason may be missing, with or without the blank before it. */
static enum response_fault read_status_line(struct span line, struct response_head *out)
{
    const uint8_t *p = line.at;
    if (line.len < 12 || memcmp(p, "HTTP/1.", 7) != 0 || !is_digit(p[7]) || p[8] != ' ')
        return RESPONSE_STATUS_LINE;
    if (p[9] < '1' || p[9] > '9' || !is_digit(p[10]) || !is_digit(p[11]) || (line.len > 12 && p[12] != ' '))
        return RESPONSE_STATUS_LINE;
    out->status = (uint16_t)((p[9] - '0') * 100 + (p[10] - '0') * 10 + (p[11] - '0'));
    out->keep_alive = p[7] != '0';
    return RESPONSE_NONE;
}

static enum response_fault read_length(struct span value, struct response_head *out)
{
    if (out->has_length)
        return RESPONSE_LENGTH_CONFLICT;
    if (value.len == 0 || value.len > 18) /* below 10^18: cannot overflow */
        return RESPONSE_LENGTH_VALUE;
    uint64_t n = 0;
    for (size_t i = 0; i < value.len; i++) {
        if (!is_digit(value.at[i]))
            return value.at[i] == ',' ? RESPONSE_LENGTH_CONFLICT : RESPONSE_LENGTH_VALUE;
        n = n * 10 + (uint64_t)(value.at[i] - '0');
    }
    out->length = n;
    out->has_length = true;
    return RESPONSE_NONE;
}

/* A comma-separated list of options; "close" wins over "keep-alive". */
static void read_connection(struct span value, struct response_head *out, bool *close)
{
    while (value.len != 0) {
        const uint8_t *comma = memchr(value.at, ',', value.len);
        size_t n = comma != NULL ? (size_t)(comma - value.at) : value.len;
        struct span option = span_trim((struct span){value.at, n});
        if (span_is(option, "close"))
            *close = true;
        else if (span_is(option, "keep-alive"))
            out->keep_alive = true;
        n += comma != NULL;
        value.at += n;
        value.len -= n;
    }
}

static enum response_fault read_header(struct span line, struct response_head *out, bool *close)
{
    if (line.at[0] == ' ' || line.at[0] == '\t')
        return RESPONSE_FOLDING;
    struct span name = {line.at, 0};
    while (name.len < line.len && is_token_byte(line.at[name.len]))
        name.len++;
    if (name.len == 0 || name.len == line.len || line.at[name.len] != ':')
        return RESPONSE_HEADER_LINE;
    struct span value = span_trim((struct span){line.at + name.len + 1, line.len - name.len - 1});
    for (size_t i = 0; i < value.len; i++)
        if ((value.at[i] < ' ' && value.at[i] != '\t') || value.at[i] == 0x7f)
            return RESPONSE_HEADER_LINE;
    if (span_is(name, "content-length"))
        return read_length(value, out);
    if (span_is(name, "transfer-encoding")) {
        if (out->chunked || !span_is(value, "chunked"))
            return RESPONSE_CODING;
        out->chunked = true;
    } else if (span_is(name, "connection")) {
        read_connection(value, out, close);
    }
    return RESPONSE_NONE;
}

enum response_fault response_head_parse(const uint8_t *head, size_t len, struct response_head *out)
{
    *out = (struct response_head){0};
    struct span rest = {head, len};
    struct span line = {0};
    enum response_fault f = next_line(&rest, &line);
    if (f == RESPONSE_NONE)
        f = read_status_line(line, out);
    if (f != RESPONSE_NONE)
        return f;
    bool http10 = !out->keep_alive;
    bool close = false;
    for (;;) {
        f = next_line(&rest, &line);
        if (f != RESPONSE_NONE)
            return f;
        if (line.len == 0)
            break;
        f = read_header(line, out, &close);
        if (f != RESPONSE_NONE)
            return f;
    }
    if (close)
        out->keep_alive = false;
    if (out->chunked && http10)
        return RESPONSE_CODING_HTTP10;
    if (out->chunked && out->has_length)
        return RESPONSE_LENGTH_AND_CHUNKED;
    return RESPONSE_NONE;
}

bool response_next_header(const uint8_t *head, size_t len, size_t *at, struct response_header *out)
{
    struct span rest = {head + *at, len - *at};
    struct span line;
    if (*at == 0) /* the status line */
        must(next_line(&rest, &line) == RESPONSE_NONE);
    must(next_line(&rest, &line) == RESPONSE_NONE);
    *at = len - rest.len;
    if (line.len == 0)
        return false;
    const uint8_t *colon = memchr(line.at, ':', line.len);
    must(colon != NULL);
    size_t name_len = (size_t)(colon - line.at);
    struct span value = span_trim((struct span){colon + 1, line.len - name_len - 1});
    *out = (struct response_header){.name = (const char *)line.at,
                                    .name_len = name_len,
                                    .value = (const char *)value.at,
                                    .value_len = value.len};
    return true;
}

bool response_is_token(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (!is_token_byte((uint8_t)text[i]))
            return false;
    return len > 0;
}
