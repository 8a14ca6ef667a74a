/*
 * Prints what docs/ says of the experiment's keys, from the tables that the program reads by:
 *   tool_keys schema            the JSON Schema
 *   tool_keys tables DOCUMENT   the document with its tables anew; each follows a line "<!-- keys: TITLE -->"
 */
#include "common/file.h"
#include "common/json_write.h"
#include "common/mem.h"
#include "controller/experiment/experiment_keys.h"

#include <stdio.h>
#include <stdlib.h>

#define OUT_BYTES_MAX (1u << 20)

static const struct keys *const tables[] = {
    &keys_experiment, &keys_roles,    &keys_target, &keys_check,
    &keys_request,    &keys_workload, &keys_design, &keys_gates,
};

/* ---- the JSON Schema ----------------------------------------------------------------------------------- */

static void describe_keys(struct json_writer *w, const struct keys *t);
static void describe(struct json_writer *w, const struct key *k);

static void describe_text(struct json_writer *w, const char *pattern)
{
    json_write_string(w, "type", "string");
    if (pattern != NULL)
        json_write_string(w, "pattern", pattern);
}

/* A number or a word, or the variable that stands for it. */
static void describe_plain(struct json_writer *w, const struct key *k)
{
    json_write_array(w, "anyOf");
    json_write_object(w, NULL);
    if (k->kind == KEY_WORD) {
        json_write_array(w, "enum");
        for (size_t i = 0; k->words[i] != NULL; i++)
            json_write_string(w, NULL, k->words[i]);
        json_write_close(w);
    } else {
        json_write_string(w, "type", k->kind == KEY_NUMBER ? "integer" : "number");
        json_write_u64(w, k->kind == KEY_NUMBER ? "minimum" : "exclusiveMinimum", k->min);
        json_write_u64(w, "maximum", k->max);
    }
    json_write_close(w);
    json_write_object(w, NULL);
    json_write_string(w, "$ref", "#/definitions/variable");
    json_write_close(w);
    json_write_close(w);
}

static void describe_match(struct json_writer *w)
{
    json_write_array(w, "anyOf");
    json_write_object(w, NULL);
    describe_text(w, NULL);
    json_write_close(w);
    json_write_object(w, NULL);
    json_write_string(w, "type", "object");
    json_write_bool(w, "additionalProperties", false);
    json_write_u64(w, "minProperties", 1);
    json_write_u64(w, "maxProperties", 1);
    json_write_object(w, "properties");
    json_write_object(w, "exact");
    describe_text(w, NULL);
    json_write_close(w);
    json_write_object(w, "contains");
    describe_text(w, NULL);
    json_write_u64(w, "minLength", 1);
    json_write_close(w);
    json_write_close(w);
    json_write_close(w);
    json_write_close(w);
}

static void describe_list(struct json_writer *w, const struct key *k)
{
    json_write_string(w, "type", "array");
    json_write_object(w, "items");
    describe(w, k->element);
    json_write_close(w);
    json_write_u64(w, "minItems", 1);
    json_write_u64(w, "maxItems", k->max);
}

static void describe_sweep(struct json_writer *w, const struct key *k)
{
    json_write_array(w, "anyOf");
    json_write_object(w, NULL);
    describe_list(w, k);
    json_write_bool(w, "uniqueItems", true);
    json_write_close(w);
    json_write_object(w, NULL);
    describe(w, k->element);
    json_write_close(w);
    json_write_close(w);
}

/* A map, and the variables: keys by a pattern. */
static void describe_map(struct json_writer *w, const struct key *k)
{
    static const char *const scalars[] = {"string", "number", "boolean"};
    json_write_string(w, "type", "object");
    json_write_object(w, "propertyNames");
    json_write_string(w, "pattern", k->pattern);
    json_write_close(w);
    json_write_object(w, "additionalProperties");
    if (k->kind == KEY_MAP) {
        describe(w, k->element);
    } else {
        json_write_array(w, "type");
        for (size_t i = 0; i < ARRAY_LEN(scalars); i++)
            json_write_string(w, NULL, scalars[i]);
        json_write_close(w);
    }
    json_write_close(w);
    json_write_u64(w, "maxProperties", k->max);
}

static void describe(struct json_writer *w, const struct key *k)
{
    switch (k->kind) {
    case KEY_NUMBER:
    case KEY_SHARE:
    case KEY_WORD:
        describe_plain(w, k);
        break;
    case KEY_TIME:
        describe_text(w, "^([0-9]+(\\.[0-9]+)?(ns|us|ms|s|m|h)|0|.*\\$\\{.*)$");
        break;
    case KEY_NAME:
        describe_text(w, "^((?!(.*/)?\\.\\.?(/|$))[A-Za-z0-9._/+][A-Za-z0-9._/+-]*|.*\\$\\{.*)$");
        json_write_u64(w, "maxLength", k->max);
        break;
    case KEY_TEXT:
    case KEY_BODY_FILE:
        describe_text(w, k->pattern);
        json_write_u64(w, "minLength", 1);
        json_write_u64(w, "maxLength", k->max);
        break;
    case KEY_RAW:
    case KEY_NOTE:
    case KEY_BODY:
    case KEY_BODY_BASE64:
        describe_text(w, k->pattern);
        break;
    case KEY_MATCH:
        describe_match(w);
        break;
    case KEY_OBJECT:
        describe_keys(w, k->keys);
        break;
    case KEY_LIST:
        describe_list(w, k);
        break;
    case KEY_SWEEP:
        describe_sweep(w, k);
        break;
    case KEY_MAP:
    case KEY_VARS:
        describe_map(w, k);
        break;
    }
}

static void describe_apart(struct json_writer *w, const struct keys *t)
{
    json_write_object(w, "not");
    json_write_array(w, "anyOf");
    for (size_t i = 0; i < t->apart_count; i++) {
        json_write_object(w, NULL);
        json_write_array(w, "required");
        json_write_string(w, NULL, t->apart[i].one);
        json_write_string(w, NULL, t->apart[i].other);
        json_write_close(w);
        json_write_close(w);
    }
    json_write_close(w);
    json_write_close(w);
}

static void write_help(struct json_writer *w, const char *help)
{
    char *plain = mem_strdup(help);
    size_t n = 0;
    for (const char *p = help; *p != '\0'; p++)
        if (*p != '`')
            plain[n++] = *p;
    json_write_text(w, "description", plain, n);
    free(plain);
}

static void write_default(struct json_writer *w, const char *json)
{
    struct json_value *v = NULL;
    must(json_parse(json, strlen(json), NULL, &v, NULL) == ERR_OK);
    json_write_value(w, "default", v);
    json_free(v);
}

static void describe_keys(struct json_writer *w, const struct keys *t)
{
    json_write_string(w, "type", "object");
    json_write_bool(w, "additionalProperties", false);
    size_t required = 0;
    for (size_t i = 0; i < t->count; i++) {
        if (t->rows[i].missing == NULL)
            continue;
        if (required++ == 0)
            json_write_array(w, "required");
        json_write_string(w, NULL, t->rows[i].name);
    }
    if (required > 0)
        json_write_close(w);
    json_write_object(w, "properties");
    for (size_t i = 0; i < t->count; i++) {
        json_write_object(w, t->rows[i].name);
        write_help(w, t->rows[i].help);
        describe(w, &t->rows[i]);
        if (t->rows[i].initial != NULL)
            write_default(w, t->rows[i].initial);
        json_write_close(w);
    }
    json_write_close(w);
    if (t->apart_count > 0)
        describe_apart(w, t);
}

static enum err print_schema(struct buf *out)
{
    struct json_writer w;
    json_write_init(&w, out, 2);
    json_write_object(&w, NULL);
    json_write_string(&w, "$schema", "http://json-schema.org/draft-07/schema#");
    json_write_string(&w, "title", "splitbench experiment");
    json_write_string(
        &w, "description",
        "What is measured: servers (targets), what they are asked (workloads), and in which order "
        "(design). docs/experiment-file.md explains every key.");
    describe_keys(&w, &keys_experiment);
    json_write_object(&w, "definitions");
    json_write_object(&w, "variable");
    describe_text(&w, "^\\$\\{[A-Za-z_][A-Za-z0-9_]*\\}$");
    json_write_close(&w);
    json_write_close(&w);
    json_write_close(&w);
    enum err e = json_write_end(&w);
    return e == ERR_OK ? buf_append_text(out, "\n") : e;
}

/* ---- the tables of the document ------------------------------------------------------------------------ */

/* The rows of an object without a table of its own come in its place. */
static enum err print_rows(const struct keys *t, const char *prefix, struct buf *out)
{
    enum err e = ERR_OK;
    for (size_t i = 0; e == ERR_OK && i < t->count; i++) {
        const struct key *k = &t->rows[i];
        const char *bold = k->missing != NULL ? "**" : "";
        if (k->kind == KEY_OBJECT && k->keys->title == NULL) {
            char *inner = mem_printf("%s%s.", prefix, k->name);
            e = print_rows(k->keys, inner, out);
            free(inner);
            continue;
        }
        e = buf_printf(out, "| %s`%s%s`%s | %s | ", bold, prefix, k->name, bold, k->help);
        if (e == ERR_OK && k->initial != NULL)
            e = buf_printf(out, "`%s` |\n", k->initial);
        else if (e == ERR_OK)
            e = buf_printf(out, k->without != NULL ? "%s |\n" : "|\n", k->without);
    }
    return e;
}

static enum err print_table(const char *title, size_t len, struct buf *out)
{
    for (size_t i = 0; i < ARRAY_LEN(tables); i++) {
        if (strlen(tables[i]->title) != len || memcmp(tables[i]->title, title, len) != 0)
            continue;
        enum err e = buf_append_text(out, "| key | value | without it |\n|---|---|---|\n");
        return e == ERR_OK ? print_rows(tables[i], "", out) : e;
    }
    fprintf(stderr, "tool_keys: there are no keys of '%.*s'\n", (int)len, title);
    return ERR_NOT_FOUND;
}

static enum err print_document(const char *document, struct buf *out)
{
    static const char mark[] = "<!-- keys: ";
    enum err e = ERR_OK;
    bool in_table = false;
    for (const char *line = document, *next = NULL; e == ERR_OK && *line != '\0'; line = next) {
        size_t len = strcspn(line, "\n");
        next = line + len + (line[len] == '\n');
        in_table = in_table && line[0] == '|';
        if (!in_table)
            e = buf_append(out, line, (size_t)(next - line));
        if (e != ERR_OK || strncmp(line, mark, strlen(mark)) != 0)
            continue;
        e = print_table(line + strlen(mark), strcspn(line + strlen(mark), " \n"), out);
        in_table = true;
    }
    return e;
}

int main(int argc, char **argv)
{
    struct buf out;
    struct err_detail d = {"usage: tool_keys schema | tool_keys tables DOCUMENT"};
    char *document = NULL;
    size_t len = 0;
    enum err e = ERR_INVALID;
    buf_init(&out, OUT_BYTES_MAX);
    if (argc == 2 && strcmp(argv[1], "schema") == 0)
        e = print_schema(&out);
    else if (argc == 3 && strcmp(argv[1], "tables") == 0 &&
             (e = file_read(argv[2], FILE_REGULAR, OUT_BYTES_MAX, &document, &len, &d)) == ERR_OK)
        e = print_document(document, &out);
    if (e != ERR_OK)
        fprintf(stderr, "tool_keys: %s\n", d.text);
    else if (fwrite(out.data, 1, out.len, stdout) != out.len || fflush(stdout) != 0)
        e = ERR_IO;
    buf_fini(&out);
    free(document);
    return e == ERR_OK ? 0 : 1;
}
