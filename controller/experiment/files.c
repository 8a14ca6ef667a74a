#include "controller/experiment/files.h"

#include "common/mem.h"
#include "common/sha256.h"
#include "common/utf8.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define VISITS_MAX 1000000u /* directory entries looked at: a glob must not walk a whole disk */
#define DEPTH_MAX  64u

struct collector {
    const char *base_dir;
    const char *glob; /* the one at work, for messages */
    char **paths;     /* owned; relative */
    size_t count;
    size_t visits;
    struct err_detail *d;
};

/* ---- one path ---------------------------------------------------------------------------------- */

/* The real file behind a path, which may be a link to somewhere below `base_dir`. */
static enum err resolve(const char *base_dir, const char *path, char **out, struct err_detail *d)
{
    char *whole = mem_printf("%s/%s", base_dir, path);
    char *real = realpath(whole, NULL);
    size_t len = strlen(base_dir);
    enum err e = ERR_OK;
    if (real == NULL)
        e = err_set(d, err_from_errno(errno), "files: %s: %s", whole, strerror(errno));
    else if (strcmp(base_dir, "/") != 0 && (strncmp(real, base_dir, len) != 0 || real[len] != '/'))
        e = err_set(d, ERR_DENIED, "files: %s is a link that leads out of %s, to %s", path, base_dir, real);
    free(whole);
    if (e != ERR_OK)
        free(real);
    else
        *out = real;
    return e;
}

enum err files_open(const char *base_dir, const char *path, int *fd, struct err_detail *d)
{
    struct stat st;
    char *real = NULL;
    enum err e = resolve(base_dir, path, &real, d);
    if (e != ERR_OK)
        return e;
    int n = open(real, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (n < 0 || fstat(n, &st) != 0)
        e = err_set(d, err_from_errno(errno), "files: %s: %s", real, strerror(errno));
    else if (!S_ISREG(st.st_mode))
        e = err_set(d, ERR_INVALID, "files: %s is not a regular file", path);
    if (e == ERR_OK)
        *fd = n;
    else if (n >= 0)
        close(n);
    free(real);
    return e;
}

/* ---- matching ---------------------------------------------------------------------------------- */

static enum err add_path(struct collector *c, const char *path)
{
    if (c->count == LIMIT_FILES)
        return err_set(c->d, ERR_TOO_BIG, "files: \"%s\" matches more than %u files", c->glob, LIMIT_FILES);
    if ((c->count & (c->count - 1)) == 0) /* doubles at powers of two */
        c->paths = mem_realloc(c->paths, c->count > 0 ? 2 * c->count : 1, sizeof *c->paths);
    c->paths[c->count++] = mem_strdup(path);
    return ERR_OK;
}

enum entry { ENTRY_OTHER, ENTRY_FILE, ENTRY_DIR, ENTRY_LINK };

/* What `path` (relative, "" = the base) is. A link to a directory is ENTRY_OTHER: it is not walked through.
 */
static enum entry entry_of(const struct collector *c, const char *path)
{
    struct stat st;
    char *whole = mem_printf("%s/%s", c->base_dir, path);
    enum entry kind = ENTRY_OTHER;
    if (lstat(whole, &st) == 0) {
        if (S_ISREG(st.st_mode))
            kind = ENTRY_FILE;
        else if (S_ISDIR(st.st_mode))
            kind = ENTRY_DIR;
        else if (S_ISLNK(st.st_mode) && (stat(whole, &st) != 0 || S_ISREG(st.st_mode)))
            kind = ENTRY_LINK; /* a dangling one, too: files_open says so */
    }
    free(whole);
    return kind;
}

static enum err walk(struct collector *c, const char *dir, const char *glob, unsigned depth);

/* `path` matched the first part of a glob; `rest` is what comes after it, "" = nothing. */
static enum err take(struct collector *c, const char *path, const char *rest, bool literal, unsigned depth)
{
    enum entry kind = entry_of(c, path);
    if (rest[0] != '\0')
        return kind == ENTRY_DIR ? walk(c, path, rest, depth + 1) : ERR_OK;
    if (kind == ENTRY_FILE || kind == ENTRY_LINK)
        return add_path(c, path);
    return kind == ENTRY_DIR && literal ? walk(c, path, "**", depth + 1) : ERR_OK;
}

static char *join(const char *dir, const char *name)
{
    return dir[0] != '\0' ? mem_printf("%s/%s", dir, name) : mem_strdup(name);
}

/* Every entry of `dir` that matches one part with wildcards; "**" goes down with the whole glob. */
static enum err walk_entries(struct collector *c, const char *dir, const char *part, const char *glob,
                             const char *rest, unsigned depth)
{
    bool deep = strcmp(part, "**") == 0;
    char *whole = mem_printf("%s/%s", c->base_dir, dir);
    DIR *stream = opendir(whole);
    enum err e = stream != NULL
                     ? ERR_OK
                     : err_set(c->d, err_from_errno(errno), "files: %s: %s", whole, strerror(errno));
    free(whole);
    if (stream == NULL)
        return e;
    while (e == ERR_OK) {
        const struct dirent *entry = readdir(stream);
        if (entry == NULL)
            break;
        if (c->visits++ == VISITS_MAX)
            e = err_set(c->d, ERR_TOO_BIG, "files: \"%s\" looks at more than %u directory entries", c->glob,
                        VISITS_MAX);
        else if (fnmatch(deep ? "*" : part, entry->d_name, FNM_PERIOD) == 0 &&
                 strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
            char *path = join(dir, entry->d_name);
            if (!deep)
                e = take(c, path, rest, false, depth);
            else if (entry_of(c, path) == ENTRY_DIR)
                e = walk(c, path, glob, depth + 1);
            else if (rest[0] == '\0')
                e = take(c, path, "", false, depth);
            free(path);
        }
    }
    closedir(stream);
    return e;
}

/* Matches `glob` below the relative directory `dir`. Recursion is bounded by DEPTH_MAX. */
static enum err walk(struct collector *c, const char *dir, const char *glob, unsigned depth)
{
    if (depth > DEPTH_MAX)
        return err_set(c->d, ERR_TOO_BIG, "files: \"%s\": %s lies deeper than %u directories", c->glob, dir,
                       DEPTH_MAX);
    size_t len = strcspn(glob, "/");
    char *part = mem_strndup(glob, len);
    const char *rest = glob[len] == '/' ? glob + len + 1 : "";
    enum err e = ERR_OK;
    if (strpbrk(part, "*?[") != NULL) {
        if (strcmp(part, "**") == 0 && rest[0] != '\0') /* no directory in between */
            e = walk(c, dir, rest, depth + 1);
        if (e == ERR_OK)
            e = walk_entries(c, dir, part, glob, rest, depth);
    } else {
        char *path = join(dir, part);
        e = take(c, path, rest, true, depth);
        free(path);
    }
    free(part);
    return e;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Two globs may match one file. */
static void sort_paths(struct collector *c)
{
    size_t kept = 0;
    if (c->count > 1)
        qsort(c->paths, c->count, sizeof *c->paths, by_text);
    for (size_t i = 0; i < c->count; i++) {
        if (kept > 0 && strcmp(c->paths[kept - 1], c->paths[i]) == 0)
            free(c->paths[i]);
        else
            c->paths[kept++] = c->paths[i];
    }
    c->count = kept;
}

/* ---- the list ---------------------------------------------------------------------------------- */

/* `left_bytes` is what the files may still have together. */
static enum err describe(struct collector *c, const char *path, uint64_t *left_bytes, struct msg_file *out)
{
    struct stat st;
    int fd = -1;
    if (!utf8_is_text(path) || strlen(path) >= LIMIT_PATH_BYTES)
        return err_set(c->d, ERR_INVALID,
                       "files: the path \"%.300s\" is not UTF-8, too long or holds control characters", path);
    enum err e = files_open(c->base_dir, path, &fd, c->d);
    if (e != ERR_OK)
        return e;
    if (fstat(fd, &st) != 0)
        e = err_set(c->d, ERR_IO, "files: %s: %s", path, strerror(errno));
    else if ((uint64_t)st.st_size > *left_bytes)
        e = err_set(c->d, ERR_TOO_BIG, "files: they have over %llu bytes in all", LIMIT_FILE_BYTES);
    else if ((e = sha256_of_fd(fd, out->hash, c->d)) != ERR_OK)
        err_prefix(c->d, e, "files: %s", path);
    if (e == ERR_OK) {
        *left_bytes -= (uint64_t)st.st_size;
        out->path = mem_strdup(path);
        out->size_bytes = (uint64_t)st.st_size;
        out->mode = st.st_mode & 0777;
    }
    close(fd);
    return e;
}

/* Adds what the glob in `c` matches, which must be something. */
static enum err match(struct collector *c)
{
    size_t before = c->count;
    enum err e = walk(c, "", c->glob, 0);
    if (e == ERR_OK && c->count == before)
        e = err_set(c->d, ERR_NOT_FOUND, "\"%s\" matches nothing below %s", c->glob, c->base_dir);
    return e;
}

enum err files_match(const char *base_dir, const char *glob, struct err_detail *d)
{
    struct collector c = {.base_dir = base_dir, .glob = glob, .d = d};
    enum err e = match(&c);
    mem_free_strings(&c.paths, &c.count);
    return e;
}

enum err files_collect(const struct experiment *e, struct msg_files *out, struct err_detail *d)
{
    struct collector c = {.base_dir = e->base_dir, .d = d};
    struct msg_files files = {0};
    uint64_t left_bytes = LIMIT_FILE_BYTES;
    enum err err = ERR_OK;
    for (size_t i = 0; err == ERR_OK && i < e->files.count; i++) {
        c.glob = e->files.items[i];
        err = match(&c);
        if (err == ERR_NOT_FOUND)
            err_prefix(d, err, "files[%zu]", i);
    }
    sort_paths(&c);
    files.items = mem_zalloc(c.count, sizeof *files.items);
    for (size_t i = 0; err == ERR_OK && i < c.count; i++) {
        err = describe(&c, c.paths[i], &left_bytes, &files.items[i]);
        files.count += err == ERR_OK;
    }
    mem_free_strings(&c.paths, &c.count);
    if (err != ERR_OK)
        msg_files_fini(&files);
    else
        *out = files;
    return err;
}
