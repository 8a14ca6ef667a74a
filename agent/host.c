#include "agent/host.h"

#include "common/file.h"
#include "common/mem.h"
#include "common/parse.h"
#include "common/path.h"
#include "proto/libraries.h"

#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FILE_BYTES_MAX 16777216u /* 16 MiB: /proc/cpuinfo of 256 CPUs is 350 KiB */
#define CPU_LIST_BYTES 1024u

/* Whole file, or NULL. The caller frees. */
static char *read_file(const char *root, const char *name)
{
    char *path = mem_printf("%s%s", root, name);
    char *text = NULL;
    size_t len = 0;
    enum err e = file_read(path, FILE_ANY, FILE_BYTES_MAX, &text, &len, NULL);
    free(path);
    return e == ERR_OK ? text : NULL;
}

/* The text without what must not travel: cut at the first line's end, blanks trimmed. */
static char *first_line(const char *text)
{
    text += strspn(text, " \t");
    size_t len = strcspn(text, "\n");
    while (len > 0 && (text[len - 1] == ' ' || text[len - 1] == '\t' || text[len - 1] == '\r'))
        len--;
    return mem_strndup(text, len);
}

static char *read_line(const char *root, const char *name)
{
    char *text = read_file(root, name);
    char *line = first_line(text != NULL ? text : "");
    free(text);
    return line;
}

/* Value of the first line "key<blanks>SEP value", or NULL. The caller frees. */
static char *find_value(const char *text, const char *key, char separator)
{
    size_t len = strlen(key);
    for (const char *line = text; line != NULL && *line != '\0'; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, key, len) != 0)
            continue;
        const char *p = line + len;
        p += strspn(p, " \t");
        if (*p == separator)
            return first_line(p + 1);
    }
    return NULL;
}

static char *read_os(const char *root)
{
    char *text = read_file(root, "/etc/os-release");
    if (text == NULL)
        text = read_file(root, "/usr/lib/os-release");
    if (text == NULL)
        return mem_strdup("");
    char *value = find_value(text, "PRETTY_NAME", '=');
    free(text);
    if (value == NULL)
        return mem_strdup("");
    size_t len = strlen(value);
    if (len >= 2 && (value[0] == '"' || value[0] == '\'') && value[len - 1] == value[0]) {
        value[len - 1] = '\0';
        memmove(value, value + 1, len - 1);
    }
    return value;
}

/* x86 says "model name"; ARM boards have a device tree; other ARM says implementer and part. */
static char *read_cpu_model(const char *root)
{
    char *text = read_file(root, "/proc/cpuinfo");
    char *model = text != NULL ? find_value(text, "model name", ':') : NULL;
    if (model == NULL) {
        model = read_line(root, "/sys/firmware/devicetree/base/model");
        if (model[0] == '\0') {
            free(model);
            model = NULL;
        }
    }
    if (model == NULL && text != NULL) {
        char *implementer = find_value(text, "CPU implementer", ':');
        char *part = find_value(text, "CPU part", ':');
        if (implementer != NULL && part != NULL)
            model = mem_printf("ARM implementer %s part %s", implementer, part);
        free(implementer);
        free(part);
    }
    free(text);
    return model != NULL ? model : mem_strdup("");
}

static uint64_t read_memory_bytes(const char *root)
{
    char *text = read_file(root, "/proc/meminfo");
    char *value = text != NULL ? find_value(text, "MemTotal", ':') : NULL;
    free(text);
    if (value == NULL)
        return 0;
    char *end;
    errno = 0;
    unsigned long long kib = strtoull(value, &end, 10);
    bool good = errno == 0 && end != value && strcmp(end, " kB") == 0 && kib <= UINT64_MAX / 1024;
    free(value);
    return good ? (uint64_t)kib * 1024 : 0;
}

/* Cuts to what the wire takes, so that an odd machine is described shortly rather than not at all. */
static void cap_text(char *text)
{
    if (strlen(text) > LIMIT_NAME_BYTES)
        text[LIMIT_NAME_BYTES] = '\0';
    for (char *p = text; *p != '\0'; p++) {
        if ((unsigned char)*p < 0x20 || *p == 0x7f)
            *p = ' ';
    }
}

enum err host_read(const char *root, struct msg_host *out, struct err_detail *d)
{
    *out = (struct msg_host){0};
    out->hostname = read_line(root, "/proc/sys/kernel/hostname");
    out->kernel = read_line(root, "/proc/sys/kernel/osrelease");
    out->boot_id = read_line(root, "/proc/sys/kernel/random/boot_id");
    out->os = read_os(root);
    out->cpu_model = read_cpu_model(root);
    out->memory_bytes = read_memory_bytes(root);
    cap_text(out->hostname);
    cap_text(out->kernel);
    cap_text(out->boot_id);
    cap_text(out->os);
    cap_text(out->cpu_model);
    out->address = mem_strdup("");
    struct library own[PROTO_LIBRARIES_MAX];
    out->libraries = libraries_text(own, proto_libraries(own));
    cpu_set_t set;
    CPU_ZERO(&set);
    char list[CPU_LIST_BYTES] = "";
    if (sched_getaffinity(0, sizeof set, &set) == 0) {
        out->cpus = (uint32_t)CPU_COUNT(&set);
        parse_cpus_text(&set, list, sizeof list);
    }
    out->cpu_list = mem_strdup(list);
    if (out->boot_id[0] == '\0')
        return err_set(d, ERR_IO, "cannot read %s/proc/sys/kernel/random/boot_id: is /proc mounted?", root);
    return ERR_OK;
}

enum err host_add_label(struct msg_host *host, const char *label, struct err_detail *d)
{
    size_t key = strspn(label, PATH_NAME_LETTERS);
    if (key == 0 || label[key] != '=' || label[key + 1] == '\0')
        return err_set(d, ERR_INVALID, "label \"%s\" is not KEY=VALUE, as in hardware=i7-13700k", label);
    if (strlen(label) > LIMIT_NAME_BYTES)
        return err_set(d, ERR_TOO_BIG, "label \"%.32s...\" is longer than %u bytes", label, LIMIT_NAME_BYTES);
    for (const char *p = label + key; *p != '\0'; p++) {
        if ((unsigned char)*p < 0x20 || *p == 0x7f)
            return err_set(d, ERR_INVALID, "label %.*s holds a control character", (int)key, label);
    }
    for (size_t i = 0; i < host->labels.count; i++) {
        if (strncmp(host->labels.items[i], label, key + 1) == 0)
            return err_set(d, ERR_EXISTS, "label %.*s is given twice", (int)key, label);
    }
    if (host->labels.count == MSG_LABELS_MAX)
        return err_set(d, ERR_TOO_BIG, "more than %u labels", MSG_LABELS_MAX);
    host->labels.items = mem_realloc(host->labels.items, host->labels.count + 1, sizeof *host->labels.items);
    host->labels.items[host->labels.count++] = mem_strdup(label);
    return ERR_OK;
}
