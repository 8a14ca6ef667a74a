#include "common/file.h"

#include "common/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define FIRST_BYTES 4096u /* room for what does not say its size: pipes, and the files of /proc */

/* `doing` is the sentence's beginning ("cannot read"). Returns the code of errno. */
static enum err failed(const char *doing, const char *path, struct err_detail *d)
{
    int errnum = errno;
    enum err e = err_from_errno(errnum);
    return err_set(d, e, "%s %s: %s%s", doing, path, strerror(errnum),
                   e == ERR_FULL ? ": make room there" : "");
}

static char *beside(const char *path)
{
    return mem_printf("%s.new", path);
}

/* ---- open files ---------------------------------------------------------------------------------------- */

enum err file_read_at(int fd, void *out, size_t len, uint64_t offset, size_t *got)
{
    *got = 0;
    while (*got < len) {
        ssize_t n = pread(fd, (char *)out + *got, len - *got, (off_t)(offset + *got));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_from_errno(errno);
        if (n == 0)
            break;
        *got += (size_t)n;
    }
    return ERR_OK;
}

enum err file_write_at(int fd, const void *data, size_t len, uint64_t offset)
{
    for (size_t done = 0; done < len;) {
        ssize_t n = pwrite(fd, (const char *)data + done, len - done, (off_t)(offset + done));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_from_errno(errno);
        done += (size_t)n;
    }
    return ERR_OK;
}

/* A file that says its size is read in one piece: no copy of a key stays behind on the heap. */
static size_t size_of(int fd)
{
    struct stat st;
    return fstat(fd, &st) == 0 && st.st_size > 0 ? (size_t)st.st_size : FIRST_BYTES;
}

enum err file_read_fd(int fd, size_t max, char **out, size_t *len)
{
    size_t expected = size_of(fd);
    size_t room = (expected < max ? expected : max) + 1; /* the byte beyond tells whether it has ended */
    char *data = mem_alloc(room + 1);
    size_t have = 0;
    for (;;) {
        ssize_t n = read(fd, data + have, room - have);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 || have + (size_t)n > max) {
            enum err e = n < 0 ? err_from_errno(errno) : ERR_TOO_BIG;
            free(data);
            return e;
        }
        if (n == 0)
            break;
        have += (size_t)n;
        if (have == room) {
            room = room < max / 2 ? room * 2 : max + 1;
            data = mem_realloc(data, room + 1, 1);
        }
    }
    data[have] = '\0';
    *out = data;
    *len = have;
    return ERR_OK;
}

/* ---- reading ------------------------------------------------------------------------------------------- */

static enum err check_kind(int fd, const char *path, enum file_kind kind, struct err_detail *d)
{
    struct stat st;
    if (fstat(fd, &st) != 0)
        return failed("cannot read", path, d);
    if (kind != FILE_ANY && !S_ISREG(st.st_mode))
        return err_set(d, ERR_INVALID, "%s is not a regular file", path);
    if (kind == FILE_SECRET && (st.st_mode & 077) != 0)
        return err_set(d, ERR_DENIED, "%s can be read by others: chmod 600 it", path);
    return ERR_OK;
}

enum err file_read(const char *path, enum file_kind kind, size_t max, char **out, size_t *len,
                   struct err_detail *d)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | (kind == FILE_ANY ? 0 : O_NONBLOCK));
    if (fd < 0)
        return failed("cannot read", path, d);
    enum err e = check_kind(fd, path, kind, d);
    if (e == ERR_OK) {
        e = file_read_fd(fd, max, out, len);
        if (e == ERR_TOO_BIG)
            err_set(d, e, "%s has more than %zu bytes", path, max);
        else if (e != ERR_OK)
            e = failed("cannot read", path, d);
    }
    close(fd);
    return e;
}

bool file_read_line(const char *path, char *out, size_t size)
{
    size_t got = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    bool there = fd >= 0 && file_read_at(fd, out, size - 1, 0, &got) == ERR_OK && got > 0;
    if (fd >= 0)
        close(fd);
    out[there ? got : 0] = '\0';
    out[strcspn(out, "\n")] = '\0';
    return there;
}

/* ---- writing ------------------------------------------------------------------------------------------- */

enum err file_write_beside(const char *path, mode_t mode, const void *data, size_t len, struct err_detail *d)
{
    char *name = beside(path);
    enum err e = ERR_OK;
    (void)unlink(name); /* of an attempt that was cut short */
    int fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        e = failed("cannot create", name, d);
    else if (file_write_at(fd, data, len, 0) != ERR_OK || fchmod(fd, mode) != 0 || fsync(fd) != 0)
        e = failed("cannot write", path, d);
    if (fd >= 0 && close(fd) != 0 && e == ERR_OK)
        e = failed("cannot write", path, d);
    if (e != ERR_OK && fd >= 0)
        (void)unlink(name);
    free(name);
    return e;
}

void file_drop_beside(const char *path)
{
    char *name = beside(path);
    (void)unlink(name);
    free(name);
}

/* A new name is on disk when its directory is. Not every file system can be asked for that (EINVAL). */
static enum err sync_dir_of(const char *path, struct err_detail *d)
{
    const char *slash = strrchr(path, '/');
    char *dir =
        slash == NULL ? mem_strdup(".") : mem_strndup(path, slash == path ? 1 : (size_t)(slash - path));
    enum err e = ERR_OK;
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || (fsync(fd) != 0 && errno != EINVAL))
        e = failed("cannot write", dir, d);
    if (fd >= 0)
        close(fd);
    free(dir);
    return e;
}

enum err file_put_in_place(const char *path, struct err_detail *d)
{
    char *name = beside(path);
    enum err e = rename(name, path) == 0 ? sync_dir_of(path, d) : failed("cannot replace", path, d);
    free(name);
    return e;
}

enum err file_write(const char *path, mode_t mode, const void *data, size_t len, struct err_detail *d)
{
    enum err e = file_write_beside(path, mode, data, len, d);
    if (e == ERR_OK)
        e = file_put_in_place(path, d);
    if (e != ERR_OK)
        file_drop_beside(path);
    return e;
}

/* ---- directories and locks ----------------------------------------------------------------------------- */

enum err file_make_dir(const char *path, mode_t mode, struct err_detail *d)
{
    struct stat st;
    if (mkdir(path, mode) == 0)
        return ERR_OK;
    if (errno != EEXIST)
        return failed("cannot make the directory", path, d);
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode)
               ? ERR_OK
               : err_set(d, ERR_INVALID, "%s is not a directory", path);
}

enum err file_make_dirs(const char *path, struct err_detail *d)
{
    char *part = mem_strdup(path);
    enum err e = ERR_OK;
    for (char *p = part; e == ERR_OK && *p != '\0';) {
        p += strspn(p, "/");
        p += strcspn(p, "/");
        char end = *p;
        *p = '\0';
        e = file_make_dir(part, 0700, d);
        *p = end;
    }
    free(part);
    return e;
}

enum err file_open_dir(const char *path, mode_t mode, int *fd, struct err_detail *d)
{
    enum err e = file_make_dir(path, mode, d);
    if (e != ERR_OK)
        return e;
    *fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return *fd >= 0 ? ERR_OK : failed("cannot open the directory", path, d);
}

enum err file_lock(const char *path, int *fd, struct err_detail *d)
{
    int n = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (n < 0)
        return failed("cannot open", path, d);
    if (flock(n, LOCK_EX | LOCK_NB) == 0) {
        *fd = n;
        return ERR_OK;
    }
    enum err e = errno == EWOULDBLOCK ? err_set(d, ERR_BUSY, "another process holds %s", path)
                                      : failed("cannot lock", path, d);
    close(n);
    return e;
}
