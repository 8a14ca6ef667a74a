#include "agent/state_dir.h"

#include "common/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum err state_dir_make(const char *dir, struct err_detail *d)
{
    char *path = mem_strdup(dir);
    enum err e = ERR_OK;
    for (char *p = path; e == ERR_OK && *p != '\0';) {
        p += strspn(p, "/");
        p += strcspn(p, "/");
        char end = *p;
        *p = '\0';
        if (mkdir(path, 0700) < 0 && errno != EEXIST)
            e = err_set(d, err_from_errno(errno), "cannot make directory %s: %s", path, strerror(errno));
        *p = end;
    }
    struct stat st;
    if (e == ERR_OK && (stat(dir, &st) < 0 || !S_ISDIR(st.st_mode)))
        e = err_set(d, ERR_INVALID, "%s is not a directory", dir);
    free(path);
    return e;
}

/* Who has the lock, by what it wrote there; for the message only. */
static enum err refuse_busy(const char *dir, int fd, struct err_detail *d)
{
    char text[32] = "";
    ssize_t n = pread(fd, text, sizeof text - 1, 0);
    text[n > 0 ? n : 0] = '\0';
    text[strspn(text, "0123456789")] = '\0';
    return err_set(
        d, ERR_BUSY,
        "another agent%s%s uses the state directory %s: end it, or give this one its own with --state",
        text[0] != '\0' ? " with pid " : "", text, dir);
}

enum err state_dir_take(const char *dir, int *lock_fd, struct err_detail *d)
{
    enum err e = state_dir_make(dir, d);
    if (e != ERR_OK)
        return e;
    char *path = mem_printf("%s/lock", dir);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0) {
        e = err_set(d, err_from_errno(errno), "cannot open %s: %s", path, strerror(errno));
        goto out;
    }
    if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
        e = errno == EWOULDBLOCK ? refuse_busy(dir, fd, d)
                                 : err_set(d, ERR_IO, "cannot lock %s: %s", path, strerror(errno));
        goto out;
    }
    char text[32];
    int len = snprintf(text, sizeof text, "%ld\n", (long)getpid());
    if (ftruncate(fd, 0) < 0 || pwrite(fd, text, (size_t)len, 0) != len) {
        e = err_set(d, err_from_errno(errno), "cannot write %s: %s", path, strerror(errno));
        goto out;
    }
    *lock_fd = fd;
    fd = -1;
out:
    if (fd >= 0)
        close(fd);
    free(path);
    return e;
}
