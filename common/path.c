#include "common/path.h"

#include "common/limits.h"

#include <limits.h>
#include <string.h>

static bool is_alnum(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

const char *path_name_fault(const char *text, size_t len)
{
    if (len == 0)
        return "is empty";
    if (len > LIMIT_NAME_BYTES)
        return "is too long";
    if (!is_alnum(text[0]))
        return "must begin with a letter or digit";
    for (size_t i = 1; i < len; i++)
        if (!is_alnum(text[i]) && text[i] != '.' && text[i] != '_' && text[i] != '-')
            return "may hold letters, digits, '.', '_' and '-' only";
    return NULL;
}

static const char *part_fault(const char *part, size_t len)
{
    if (len == 0)
        return "must be relative, without empty parts";
    if (len > NAME_MAX)
        return "has a part that is too long for a file's name";
    if (part[0] == '.' && (len == 1 || (len == 2 && part[1] == '.')))
        return "must not hold '.' or '..' parts";
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)part[i] < 0x20 || part[i] == 0x7f)
            return "holds a control character";
    return NULL;
}

const char *path_fault(const char *text, size_t len)
{
    if (len == 0)
        return "is empty";
    if (len >= LIMIT_PATH_BYTES)
        return "is too long";
    for (size_t start = 0; start <= len;) {
        const char *slash = memchr(text + start, '/', len - start);
        size_t end = slash != NULL ? (size_t)(slash - text) : len;
        const char *fault = part_fault(text + start, end - start);
        if (fault != NULL)
            return fault;
        start = end + 1;
    }
    return NULL;
}

enum err path_check_name(const char *what, const char *name, struct err_detail *d)
{
    const char *fault = path_name_fault(name, strlen(name));
    if (fault == NULL)
        return ERR_OK;
    return err_set(d, ERR_INVALID, "%s '%.64s' %s; a name has 1 to %u letters, digits, '.', '_' and '-'",
                   what, name, fault, LIMIT_NAME_BYTES);
}

enum err path_check(const char *path, struct err_detail *d)
{
    const char *fault = path_fault(path, strlen(path));
    return fault == NULL ? ERR_OK : err_set(d, ERR_INVALID, "file path \"%.300s\" %s", path, fault);
}

bool path_has_part(const char *path, const char *part)
{
    size_t len = strlen(part);
    for (const char *p = path;; p++) {
        size_t n = strcspn(p, "/");
        if (n == len && memcmp(p, part, len) == 0)
            return true;
        p += n;
        if (*p == '\0')
            return false;
    }
}
