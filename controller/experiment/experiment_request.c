#include "controller/experiment/experiment_keys.h"

#include "common/base64.h"
#include "common/file.h"
#include "common/mem.h"

#include <stdlib.h>
#include <string.h>

/* A request as checks and workloads share it: method, path, headers and one kind of body. */

static void check_method(struct experiment_reader *r, const struct json_value *v, void *at)
{
    static const char *const known[] = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"};
    const char *method = *(char **)at;
    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        if (strcasecmp(known[i], method) != 0 || strcmp(known[i], method) == 0)
            continue;
        reader_problem(r, v, "is \"%s\", methods are upper case; did you mean %s?", method, known[i]);
        return;
    }
    /* What every generator can be told. CONNECT would make a tunnel of the connection. */
    if (method[strspn(method, "ABCDEFGHIJKLMNOPQRSTUVWXYZ-_")] != '\0' || strcmp(method, "CONNECT") == 0)
        reader_refuse(r, v, "a method like GET or POST, of upper-case letters, - and _");
}

static void check_path(struct experiment_reader *r, const struct json_value *v, void *at)
{
    const char *path = *(char **)at;
    if (path[0] != '/') {
        reader_refuse(r, v, "a path that starts with /%s",
                      strstr(path, "://") != NULL ? ": host and port come from the target" : "");
        return;
    }
    for (const char *p = path; *p != '\0'; p++) {
        if ((unsigned char)*p > 0x20 && (unsigned char)*p < 0x7f && *p != '#')
            continue;
        reader_problem(r, v, "holds '%.1s' at byte %zu: write it percent-encoded, like %%%02X",
                       (unsigned char)*p < 0x7f ? p : "?", (size_t)(p - path) + 1,
                       (unsigned)(unsigned char)*p);
        return;
    }
}

/* ---- headers ----------------------------------------------------------------------------------- */

static bool check_header_name(struct experiment_reader *r, const struct json_value *member)
{
    static const char *const framing[] = {"content-length", "transfer-encoding"};
    const char *name = json_key(member);
    for (size_t i = 0; i < ARRAY_LEN(framing); i++) {
        if (strcasecmp(framing[i], name) != 0)
            continue;
        reader_problem_key(r, member, "follows from the body and cannot be set");
        return false;
    }
    return reader_header_name(r, member);
}

static void check_header_value(struct experiment_reader *r, const struct json_value *v, void *at)
{
    for (const char *p = *(char **)at; *p != '\0'; p++) {
        if (((unsigned char)*p >= 0x20 && *p != 0x7f) || *p == '\t')
            continue;
        reader_problem(r, v, "holds the control character 0x%02x", (unsigned)(unsigned char)*p);
        return;
    }
}

static void check_headers(struct experiment_reader *r, const struct json_value *v, void *at)
{
    const struct msg_headers *headers = at;
    size_t bytes = 0;
    for (size_t i = 0; i < headers->count; i++)
        bytes += strlen(headers->items[i].name) + strlen(headers->items[i].value) + 4;
    if (bytes > LIMIT_HEADER_BYTES)
        reader_problem(r, v, "has %zu bytes in all, at most %u are allowed", bytes, LIMIT_HEADER_BYTES);
}

static const struct key header = {KEY_PAIR(msg_header, name, value), .kind = KEY_RAW,
                                  .max = LIMIT_HEADER_BYTES, .after = check_header_value};

/* ---- bodies ------------------------------------------------------------------------------------ */

static bool read_body_file(struct experiment_reader *r, const struct json_value *v, void *at)
{
    const char *name = json_text(v);
    if (r->base_dir == NULL) {
        reader_problem_key(r, v, "an experiment that was resolved names no files");
        return false;
    }
    struct msg_bytes *out = at;
    struct err_detail d;
    char *data = NULL;
    char *path = name[0] == '/' ? mem_strdup(name) : mem_printf("%s/%s", r->base_dir, name);
    if (file_read(path, FILE_REGULAR, READER_BODY_BYTES, &data, &out->len, &d) != ERR_OK)
        reader_problem(r, v, "%s", d.text);
    out->data = (uint8_t *)data;
    free(path);
    return true;
}

static bool read_body_base64(struct experiment_reader *r, const struct json_value *v, void *at)
{
    struct msg_bytes *out = at;
    const char *text = reader_get_text(r, v, LIMIT_RESOLVED_BYTES);
    if (text == NULL)
        return false;
    out->data = mem_alloc(BASE64_BYTES(strlen(text)));
    if (!base64_decode(text, strlen(text), out->data, &out->len))
        reader_problem(r, v, "is not base64");
    else if (out->len > READER_BODY_BYTES)
        reader_problem(r, v, "has %zu bytes, at most %u are allowed", out->len, READER_BODY_BYTES);
    return true;
}

/* Can the body stand in a JSON string as it is? One from a file may hold what the reader takes for a
 * variable.
 */
static bool is_text(const struct msg_bytes *b)
{
    if (b->len > 0 && memmem(b->data, b->len, READER_ADDRESS, strlen(READER_ADDRESS)) != NULL)
        return false;
    for (size_t i = 0; i < b->len; i++)
        if (b->data[i] >= 0x7f || (b->data[i] < 0x20 && strchr("\t\r\n", b->data[i]) == NULL) ||
            b->data[i] == 0)
            return false;
    return true;
}

static bool has_text(const void *request)
{
    const struct msg_bytes *b = &((const struct msg_request *)request)->body;
    return b->len > 0 && is_text(b);
}

static bool has_bytes(const void *request)
{
    return !is_text(&((const struct msg_request *)request)->body);
}

/* ---- the table --------------------------------------------------------------------------------- */

#define OF struct msg_request
static const struct key request_rows[] = {
    {"method", "of upper-case letters, `-` and `_`; not CONNECT", .initial = "\"GET\"", AS_TEXT(method, 32),
     .pattern = "^((?!CONNECT$)[A-Z_-]+|.*\\$\\{.*)$", .after = check_method},
    {"path", "starts with `/`, with its query, percent-encoded",
     "what is asked for, like \"/\" or \"/id/1?name=x\"", AS_TEXT(path, LIMIT_PATH_BYTES),
     .pattern = "^(/[!\"$-~]*|.*\\$\\{.*)$", .after = check_path},
    {"headers",
     "an object of strings; not `Content-Length` or `Transfer-Encoding`, which follow from the body",
     .without = "what HTTP needs", AS_MAP(headers.items, headers.count, LIMIT_HEADERS, header),
     .what = "headers", .example = "{ \"accept\": \"text/plain\" }", .pattern = KEY_HEADER_PATTERN,
     .check_key = check_header_name, .after = check_headers},
    {"body", "a string", .without = "none", .kind = KEY_BODY, KEY_AT(body), .max = READER_BODY_BYTES,
     .when = has_text},
    {"body_file", "a file relative to the experiment file", .without = "none", .kind = KEY_BODY_FILE,
     .at = offsetof(OF, body), .max = LIMIT_PATH_BYTES - 1, .read = read_body_file},
    {"body_base64", "bytes that are no text, padded and without line breaks", .without = "none",
     .kind = KEY_BODY_BASE64, KEY_AT(body), .read = read_body_base64, .when = has_bytes},
};
#undef OF
static const struct keys_apart request_apart[] = {
    {"body", "body_file", "a request has one body"},
    {"body", "body_base64", "a request has one body"},
    {"body_file", "body_base64", "a request has one body"},
};
const struct keys keys_request = {KEYS("request", request_rows), .apart = request_apart,
                                  .apart_count = ARRAY_LEN(request_apart)};
