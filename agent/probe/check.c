#include "agent/probe/check.h"

#include "agent/probe/http_client.h"
#include "common/mem.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define SHOWN_BYTES 60u /* of an expected or received text */

struct check {
    struct msg_command copy; /* holds the msg_check; of no other use */
    struct http_client *client;
    check_cb *cb;
    void *arg;
};

struct text { /* cut where it is full */
    size_t len;
    char data[LIMIT_TEXT_BYTES + 1];
};

PRINTF_LIKE(2, 3) static void say(struct text *t, const char *fmt, ...)
{
    size_t room = sizeof t->data - t->len;
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(t->data + t->len, room, fmt, ap);
    va_end(ap);
    t->len += n < 0 ? 0 : (size_t)n < room ? (size_t)n : room - 1;
}

/* Says `data` in quotes, shortened and safe for a terminal. */
static void show(struct text *out, const char *data, size_t len)
{
    size_t shown = len < SHOWN_BYTES ? len : SHOWN_BYTES;
    say(out, "\"");
    for (size_t i = 0; i < shown; i++) {
        unsigned char c = (unsigned char)data[i];
        if (c == '\n')
            say(out, "\\n");
        else if (c < 0x20 || c >= 0x7f)
            say(out, "\\x%02x", c);
        else
            say(out, c == '"' || c == '\\' ? "\\%c" : "%c", c);
    }
    say(out, shown < len ? "\"..." : "\"");
}

/* What stands before the next difference. */
static const char *next(const struct text *out)
{
    return out->len > 0 ? "; " : "";
}

static bool matches(const struct msg_match *m, const char *data, size_t len)
{
    if (m->kind == MSG_MATCH_EXACT)
        return len == m->text.len && (len == 0 || memcmp(data, m->text.data, len) == 0);
    return m->kind == MSG_MATCH_NONE || m->text.len == 0 ||
           (len >= m->text.len && memmem(data, len, m->text.data, m->text.len) != NULL);
}

/* A header that stands more than once matches when one of its lines does. */
static void compare_header(struct text *out, const struct msg_match *m, const struct http_response *answer)
{
    const char *name = msg_text(m->name);
    const char *got = NULL;
    for (size_t i = 0; i < answer->headers.count; i++) {
        const struct msg_header *h = &answer->headers.items[i];
        if (strcmp(h->name, name) != 0)
            continue;
        if (matches(m, h->value, strlen(h->value)))
            return;
        got = h->value;
    }
    say(out, "%sheader %s: expected %s", next(out), name, m->kind == MSG_MATCH_CONTAINS ? "to contain " : "");
    show(out, (const char *)m->text.data, m->text.len);
    say(out, got != NULL ? ", got " : ", got no such header");
    if (got != NULL)
        show(out, got, strlen(got));
}

static void compare_body(struct text *out, const struct msg_match *m, const struct http_response *answer)
{
    const char *got = answer->body.len > 0 ? answer->body.data : "";
    bool whole = answer->framing.body_len == answer->body.len;
    if (m->kind == MSG_MATCH_NONE ||
        (matches(m, got, answer->body.len) && (whole || m->kind == MSG_MATCH_CONTAINS)))
        return;
    say(out, "%sbody: expected %s", next(out), m->kind == MSG_MATCH_CONTAINS ? "to contain " : "");
    show(out, (const char *)m->text.data, m->text.len);
    if (m->kind == MSG_MATCH_EXACT)
        say(out, " (%zu bytes)", m->text.len);
    say(out, ", got ");
    show(out, got, answer->body.len);
    say(out, " (%llu bytes)", (unsigned long long)answer->framing.body_len);
    if (!whole && m->kind == MSG_MATCH_CONTAINS)
        say(out, ", of which the first %zu bytes were searched", answer->body.len);
    size_t common = 0;
    while (common < m->text.len && common < answer->body.len && (uint8_t)got[common] == m->text.data[common])
        common++;
    if (m->kind == MSG_MATCH_EXACT && common > SHOWN_BYTES / 2)
        say(out, ", they differ from byte %zu on", common);
}

static char *difference_of(const struct msg_check *expected, const struct http_response *answer)
{
    struct text out = {0};
    if (expected->status != 0 && answer->framing.status != expected->status)
        say(&out, "status: expected %u, got %u", expected->status, answer->framing.status);
    for (size_t i = 0; i < expected->header_count; i++)
        compare_header(&out, &expected->headers[i], answer);
    compare_body(&out, &expected->body, answer);
    if (expected->has_body_bytes && answer->framing.body_len != expected->body_bytes)
        say(&out, "%sbody size: expected exactly %llu bytes, got %llu", next(&out),
            (unsigned long long)expected->body_bytes, (unsigned long long)answer->framing.body_len);
    return mem_strdup(out.data);
}

static void on_answered(void *arg, const struct http_client_result *result)
{
    struct check *c = arg;
    struct msg_checked checked = {.took_ns = result->took_ns};
    if (result->e == ERR_OK)
        checked.difference = difference_of(&c->copy.u.check, result->response);
    else
        checked.difference = mem_strdup(result->d.text);
    checked.ok = result->e == ERR_OK && checked.difference[0] == '\0';
    c->cb(c->arg, result->e == ERR_CANCELLED ? ERR_CANCELLED : ERR_OK, &checked);
    free(checked.difference);
    msg_command_fini(&c->copy);
    free(c);
}

static const char *text_or(const char *text, const char *otherwise)
{
    return msg_text(text)[0] != '\0' ? text : otherwise;
}

enum err check_start(uv_loop_t *loop, const struct msg_check *what, check_cb *cb, void *arg,
                     struct check **out, struct err_detail *d)
{
    *out = NULL;
    if (what->timeout_ns == 0)
        return err_set(d, ERR_INVALID, "check \"%s\" has no time-out", msg_text(what->name));
    struct check *c = mem_zalloc(1, sizeof *c);
    struct msg_command borrowed = {.kind = MSG_COMMAND_CHECK, .u.check = *what};
    msg_command_copy(&c->copy, &borrowed);
    c->cb = cb;
    c->arg = arg;
    const struct msg_check *check = &c->copy.u.check;
    /* A body that nothing is compared with is counted, not kept. */
    size_t keep = check->body.kind == MSG_MATCH_NONE ? 0 : LIMIT_BODY_BYTES;
    struct http_client_options options = {
        .loop = loop,
        .host = text_or(check->host, "127.0.0.1"),
        .port = check->port,
        .method = text_or(check->request.method, "GET"),
        .path = text_or(check->request.path, "/"),
        .headers = &check->request.headers,
        .body = check->request.body.data,
        .body_len = check->request.body.len,
        .body_keep_max = keep,
        .timeout_ns = check->timeout_ns,
        .until = HTTP_CLIENT_UNTIL_END,
        .cb = on_answered,
        .arg = c,
    };
    enum err e = http_client_start(&options, &c->client, d);
    if (e != ERR_OK) {
        msg_command_fini(&c->copy);
        free(c);
        return e;
    }
    *out = c;
    return ERR_OK;
}

void check_cancel(struct check *c)
{
    http_client_cancel(c->client);
}
