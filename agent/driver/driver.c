#include "agent/driver/driver.h"

#include "common/file.h"
#include "common/mem.h"
#include "common/response.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct driver *const drivers[] = {&driver_builtin};

enum err driver_find(const char *name, const struct driver **out, struct err_detail *d)
{
    char known[256] = "";
    size_t used = 0;
    for (size_t i = 0; i < ARRAY_LEN(drivers); i++) {
        if (strcmp(drivers[i]->name, name) == 0) {
            *out = drivers[i];
            return ERR_OK;
        }
        int n = snprintf(known + used, sizeof known - used, "%s%s", i > 0 ? ", " : "", drivers[i]->name);
        used += n > 0 && (size_t)n < sizeof known - used ? (size_t)n : 0;
    }
    return err_set(d, ERR_UNSUPPORTED, "generator \"%.80s\" is not known to this agent; it knows: %s", name,
                   known);
}

static bool is_graphic(const char *text)
{
    for (const unsigned char *c = (const unsigned char *)text; *c != '\0'; c++)
        if (*c <= 0x20 || *c >= 0x7f)
            return false;
    return true;
}

enum err driver_url(const struct msg_load *load, char **url, struct err_detail *d)
{
    const char *host = msg_text(load->host);
    const char *path = msg_text(load->request.path);
    size_t host_len = strlen(host);
    bool host_good =
        host_len > 0 && host_len <= 253 &&
        strspn(host, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.-_:%") == host_len;
    if (!host_good || load->port == 0)
        return err_set(d, ERR_INVALID, "\"%.100s\" port %u cannot be loaded: not a host and a port", host,
                       load->port);
    if (path[0] != '/' || !is_graphic(path) || strchr(path, '#') != NULL ||
        strlen(path) >= LIMIT_HEADER_BYTES)
        return err_set(d, ERR_INVALID,
                       "request path \"%.200s\": it begins with / and holds no blanks, no # and only ASCII",
                       path);
    bool v6 = strchr(host, ':') != NULL;
    *url = mem_printf("http://%s%s%s:%u%s", v6 ? "[" : "", host, v6 ? "]" : "", load->port, path);
    return ERR_OK;
}

enum err driver_check_headers(const struct msg_headers *headers, struct err_detail *d)
{
    if (headers->count > LIMIT_HEADERS)
        return err_set(d, ERR_TOO_BIG, "%zu request headers: at most %u", headers->count, LIMIT_HEADERS);
    size_t total = 0;
    for (size_t i = 0; i < headers->count; i++) {
        const char *name = msg_text(headers->items[i].name);
        const char *value = msg_text(headers->items[i].value);
        bool good = response_is_token(name, strlen(name));
        for (const unsigned char *c = (const unsigned char *)value; *c != '\0'; c++)
            good = good && (*c >= 0x20 || *c == '\t') && *c != 0x7f;
        if (!good)
            return err_set(d, ERR_INVALID, "request header \"%.80s\" is not a valid HTTP header", name);
        total += strlen(name) + strlen(value) + 4;
    }
    if (total > LIMIT_HEADER_BYTES)
        return err_set(d, ERR_TOO_BIG, "%zu bytes of request headers: at most %u", total, LIMIT_HEADER_BYTES);
    return ERR_OK;
}

static char *body_path(const struct driver_input *in)
{
    return mem_printf("%s/body-%u", in->work_dir, in->load->proc);
}

void driver_remove_body(const struct driver_input *in)
{
    char *path = body_path(in);
    if (in->load->request.body.len > 0)
        unlink(path);
    free(path);
}

enum err driver_write_body(const struct driver_input *in, char **path, struct err_detail *d)
{
    const struct msg_bytes *body = &in->load->request.body;
    char *name = body_path(in);
    int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    enum err e = ERR_OK;
    if (fd < 0 || file_write_at(fd, body->data, body->len, 0) != ERR_OK)
        e = err_set(d, err_from_errno(errno), "%s cannot be written: %s", name, strerror(errno));
    if (fd >= 0 && close(fd) != 0 && e == ERR_OK)
        e = err_set(d, err_from_errno(errno), "%s cannot be written: %s", name, strerror(errno));
    if (e == ERR_OK)
        *path = name;
    else
        free(name);
    return e;
}

char *driver_cut_text(const char *text, size_t len, size_t max)
{
    size_t cut = len < max ? len : max;
    while (cut < len && cut > 0 && ((unsigned char)text[cut] & 0xc0) == 0x80)
        cut--;
    return mem_strndup(text, cut);
}

void driver_add(struct msg_strings *argv, const char *fmt, ...)
{
    char *text = NULL;
    va_list ap;
    va_start(ap, fmt);
    int n = vasprintf(&text, fmt, ap);
    va_end(ap);
    must(n >= 0); /* as mem_printf: memory is gone otherwise */
    argv->items = mem_realloc(argv->items, argv->count + 1, sizeof *argv->items);
    argv->items[argv->count++] = text;
}
