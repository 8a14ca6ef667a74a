#include "controller/experiment/experiment_reader.h"

#include "common/base64.h"
#include "common/file.h"
#include "common/mem.h"
#include "common/parse.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A request as checks and workloads share it: method, path, headers and one kind of body. */

/* RFC 9110, 5.6.2: what method and header names are made of. */
static bool is_token(const char *text)
{
    static const char allowed[] =
        "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    return text[0] != '\0' && strspn(text, allowed) == strlen(text);
}

static void read_method(struct experiment_reader *r, const struct json_value *v, struct msg_request *out)
{
    static const char *const known[] = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"};
    if (!reader_get_string(r, v, 32, &out->method))
        return;
    if (out->method == NULL)
        out->method = mem_strdup("GET");
    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        if (strcasecmp(known[i], out->method) != 0 || strcmp(known[i], out->method) == 0)
            continue;
        reader_problem(r, v, "is \"%s\", methods are upper case; did you mean %s?", out->method, known[i]);
        return;
    }
    /* What every generator can be told. CONNECT would make a tunnel of the connection. */
    size_t good = strspn(out->method, "ABCDEFGHIJKLMNOPQRSTUVWXYZ-_");
    if (out->method[good] != '\0' || strcmp(out->method, "CONNECT") == 0)
        reader_refuse(r, v, "a method like GET or POST, of upper-case letters, - and _");
}

static void read_path(struct experiment_reader *r, const struct json_value *request,
                      const struct json_value *v, struct msg_request *out)
{
    if (v == NULL) {
        reader_missing(r, request, "path", "what is asked for, like \"/\" or \"/id/1?name=x\"");
        return;
    }
    if (!reader_get_string(r, v, LIMIT_PATH_BYTES, &out->path))
        return;
    if (out->path[0] != '/') {
        reader_refuse(r, v, "a path that starts with /%s",
                      strstr(out->path, "://") != NULL ? ": host and port come from the target" : "");
        return;
    }
    for (const char *p = out->path; *p != '\0'; p++) {
        if ((unsigned char)*p > 0x20 && (unsigned char)*p < 0x7f && *p != '#')
            continue;
        reader_problem(r, v, "holds '%.1s' at byte %zu: write it percent-encoded, like %%%02X",
                       (unsigned char)*p < 0x7f ? p : "?", (size_t)(p - out->path) + 1,
                       (unsigned)(unsigned char)*p);
        return;
    }
}

static void read_header(struct experiment_reader *r, const struct json_value *v, struct msg_headers *out)
{
    static const char *const framing[] = {"content-length", "transfer-encoding"};
    const char *value = NULL;
    if (!is_token(json_key(v))) {
        reader_problem_key(r, v, "is not a header name");
        return;
    }
    for (size_t i = 0; i < ARRAY_LEN(framing); i++) {
        if (strcasecmp(framing[i], json_key(v)) != 0)
            continue;
        reader_problem_key(r, v, "follows from the body and cannot be set");
        return;
    }
    if (!reader_get_text(r, v, LIMIT_HEADER_BYTES, &value))
        return;
    for (const char *p = value; *p != '\0'; p++) {
        if (((unsigned char)*p >= 0x20 && *p != 0x7f) || *p == '\t')
            continue;
        reader_problem(r, v, "holds the control character 0x%02x", (unsigned)(unsigned char)*p);
        return;
    }
    for (size_t i = 0; i < out->count; i++) {
        if (strcasecmp(out->items[i].name, json_key(v)) != 0)
            continue;
        reader_problem_key(r, v, "is there twice: case does not matter in header names");
        return;
    }
    out->items[out->count++] =
        (struct msg_header){.name = mem_strdup(json_key(v)), .value = mem_strdup(value)};
}

static void read_headers(struct experiment_reader *r, const struct json_value *v, struct msg_headers *out)
{
    if (v == NULL)
        return;
    if (json_kind(v) != JSON_OBJECT) {
        reader_refuse(r, v, "an object of headers, like { \"accept\": \"text/plain\" }");
        return;
    }
    if (json_count(v) > LIMIT_HEADERS) {
        reader_problem(r, v, "has %zu headers, at most %u are allowed", json_count(v), LIMIT_HEADERS);
        return;
    }
    out->items = mem_zalloc(json_count(v), sizeof *out->items);
    size_t bytes = 0;
    for (const struct json_value *m = json_first(v); m != NULL; m = json_next(m))
        read_header(r, m, out);
    for (size_t i = 0; i < out->count; i++)
        bytes += strlen(out->items[i].name) + strlen(out->items[i].value) + 4;
    if (bytes > LIMIT_HEADER_BYTES)
        reader_problem(r, v, "has %zu bytes in all, at most %u are allowed", bytes, LIMIT_HEADER_BYTES);
}

static void read_body_file(struct experiment_reader *r, const struct json_value *v, struct msg_bytes *out)
{
    char *name = NULL;
    if (r->base_dir == NULL)
        reader_problem_key(r, v, "an experiment that was resolved names no files");
    else if (reader_get_string(r, v, LIMIT_PATH_BYTES - 1, &name)) {
        char *path = name[0] == '/' ? mem_strdup(name) : mem_printf("%s/%s", r->base_dir, name);
        struct err_detail d;
        char *data = NULL;
        if (file_read(path, FILE_REGULAR, READER_BODY_BYTES, &data, &out->len, &d) != ERR_OK)
            reader_problem(r, v, "%s", d.text);
        out->data = (uint8_t *)data;
        free(path);
    }
    free(name);
}

static void read_body_base64(struct experiment_reader *r, const struct json_value *v, struct msg_bytes *out)
{
    const char *text = NULL;
    size_t len = 0;
    if (!reader_get_text(r, v, LIMIT_RESOLVED_BYTES, &text))
        return;
    out->data = mem_alloc(BASE64_BYTES(strlen(text)));
    if (!base64_decode(text, strlen(text), out->data, &len))
        reader_problem(r, v, "is not base64");
    else if (len > READER_BODY_BYTES)
        reader_problem(r, v, "has %zu bytes, at most %u are allowed", len, READER_BODY_BYTES);
    out->len = len;
}

static void read_body(struct experiment_reader *r, const struct json_value *request, struct msg_bytes *out)
{
    static const char *const keys[] = {"body", "body_file", "body_base64"};
    const struct json_value *found = NULL;
    const char *text = NULL;
    for (const struct json_value *m = json_first(request); m != NULL; m = json_next(m)) {
        bool body = false;
        for (size_t i = 0; i < ARRAY_LEN(keys); i++)
            body = body || strcmp(json_key(m), keys[i]) == 0;
        if (body && found != NULL)
            reader_problem_key(r, m, "there is %s already: a request has one body", json_key(found));
        if (body && found == NULL)
            found = m;
    }
    if (found == NULL)
        return;
    if (strcmp(json_key(found), "body_file") == 0)
        read_body_file(r, found, out);
    else if (strcmp(json_key(found), "body_base64") == 0)
        read_body_base64(r, found, out);
    else if (reader_get_text(r, found, READER_BODY_BYTES, &text))
        *out = (struct msg_bytes){.data = mem_dup(text, strlen(text)), .len = strlen(text)};
}

bool experiment_read_request(struct experiment_reader *r, const struct json_value *v, struct msg_request *out)
{
    static const char *const keys[] = {"method", "path", "headers", "body", "body_file", "body_base64"};
    if (!reader_object(r, v, keys, ARRAY_LEN(keys)))
        return false;
    read_method(r, json_member(v, "method"), out);
    read_path(r, v, json_member(v, "path"), out);
    read_headers(r, json_member(v, "headers"), &out->headers);
    read_body(r, v, &out->body);
    return true;
}
