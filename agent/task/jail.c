#include "agent/task/jail.h"

#include "common/limits.h"
#include "common/mem.h"
#include "common/path.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FRESH_NAME ".splitbench-fresh" /* of a file on its way */

/*
 * Opens the directory that holds the path's last part, which `*name` then points to. The caller closes
 * `*dir_fd`. errno is set on failure.
 */
static bool open_parent(int root_fd, const char *path, bool make, int *dir_fd, const char **name)
{
    int fd = fcntl(root_fd, F_DUPFD_CLOEXEC, 0);
    const char *part = path;
    const char *slash;
    while (fd >= 0 && (slash = strchr(part, '/')) != NULL) {
        char text[NAME_MAX + 1];
        size_t n = (size_t)(slash - part);
        must(n > 0 && n < sizeof text);
        memcpy(text, part, n);
        text[n] = '\0';
        if (make && mkdirat(fd, text, 0755) != 0 && errno != EEXIST) {
            int errnum = errno;
            close(fd);
            errno = errnum;
            return false;
        }
        int next = openat(fd, text, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        int errnum = errno;
        close(fd);
        errno = errnum;
        fd = next;
        part = slash + 1;
    }
    *dir_fd = fd;
    *name = part;
    return fd >= 0;
}

/* Whether the file has this content and mode already. */
static bool is_right(int dir_fd, const char *name, const struct jail_file *file)
{
    /* O_NONBLOCK: a program may have left a FIFO under this name. */
    int fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return false;
    struct stat st;
    uint8_t hash[SHA256_BYTES];
    bool right = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && (uint64_t)st.st_size == file->size_bytes &&
                 (st.st_mode & 07777) == file->mode && sha256_of_fd(fd, hash, NULL) == ERR_OK &&
                 memcmp(hash, file->hash, sizeof hash) == 0;
    close(fd);
    return right;
}

static enum err put_fresh(int dir_fd, const char *name, const struct jail_file *file, struct blobs *blobs,
                          struct err_detail *d)
{
    unlinkat(dir_fd, FRESH_NAME, 0); /* left by an interrupted run; O_EXCL below fails if it stays */
    int fd = openat(dir_fd, FRESH_NAME, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return err_set(d, err_from_errno(errno), "%.300s cannot be written: %s", file->path, strerror(errno));
    enum err e = blobs_copy(blobs, file->hash, file->size_bytes, fd, d);
    if (e == ERR_OK && (fchmod(fd, file->mode) != 0 || renameat(dir_fd, FRESH_NAME, dir_fd, name) != 0))
        e = err_set(d, errno == EISDIR ? ERR_DENIED : err_from_errno(errno),
                    "%.300s cannot be put in place: %s", file->path, strerror(errno));
    close(fd);
    if (e != ERR_OK)
        unlinkat(dir_fd, FRESH_NAME, 0);
    return e;
}

enum err jail_put(int root_fd, const struct jail_file *file, struct blobs *blobs, struct err_detail *d)
{
    int dir_fd = -1;
    const char *name = NULL;
    if (!open_parent(root_fd, file->path, true, &dir_fd, &name)) {
        bool in_the_way = errno == ELOOP || errno == ENOTDIR;
        return err_set(d, in_the_way ? ERR_DENIED : err_from_errno(errno),
                       in_the_way ? "%.300s: a link or a file stands where a directory must be (%s)"
                                  : "the directory of %.300s cannot be made: %s",
                       file->path, strerror(errno));
    }
    enum err e = is_right(dir_fd, name, file) ? ERR_OK : put_fresh(dir_fd, name, file, blobs, d);
    close(dir_fd);
    return e;
}

void jail_remove(int root_fd, const char *path)
{
    char rest[LIMIT_PATH_BYTES];
    size_t len = strlen(path);
    must(len < sizeof rest);
    memcpy(rest, path, len + 1);
    int flags = 0;
    for (;;) {
        int dir_fd = -1;
        const char *name = NULL;
        if (!open_parent(root_fd, rest, false, &dir_fd, &name))
            return;
        bool gone = unlinkat(dir_fd, name, flags) == 0 || errno == ENOENT;
        close(dir_fd);
        char *slash = strrchr(rest, '/');
        if (!gone || slash == NULL)
            return;
        *slash = '\0';
        flags = AT_REMOVEDIR; /* fails as long as something is in it */
    }
}

/* ---- whole directories of ours -------------------------------------------------------------------- */

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st;
    (void)at;
    if (type == FTW_DP || type == FTW_DNR)
        rmdir(path);
    else
        unlink(path);
    return 0; /* what cannot be removed stays; the next job tries again */
}

struct old_tree {
    char *path;
    int64_t used_s;
};

static int newest_first(const void *a, const void *b)
{
    int64_t x = ((const struct old_tree *)a)->used_s;
    int64_t y = ((const struct old_tree *)b)->used_s;
    return (x < y) - (x > y);
}

void jail_keep_newest(const char *parent, const char *except, size_t count_max)
{
    struct old_tree *trees = NULL;
    size_t count = 0;
    DIR *dir = opendir(parent);
    struct dirent *entry;
    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        struct stat st;
        if (path_name_fault(entry->d_name, strlen(entry->d_name)) != NULL ||
            strcmp(entry->d_name, except) == 0 ||
            fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISDIR(st.st_mode))
            continue;
        trees = mem_realloc(trees, count + 1, sizeof *trees);
        trees[count++] = (struct old_tree){mem_printf("%s/%s", parent, entry->d_name), st.st_mtim.tv_sec};
    }
    if (dir != NULL)
        closedir(dir);
    if (count > 0)
        qsort(trees, count, sizeof *trees, newest_first);
    for (size_t i = 0; i < count; i++) {
        if (i >= count_max)
            nftw(trees[i].path, remove_entry, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
        free(trees[i].path);
    }
    free(trees);
}
