#include "agent/state_dir.h"

#include "common/file.h"
#include "common/mem.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Who has the lock, by what it wrote there; for the message only. */
static enum err refuse_busy(const char *dir, const char *lock, struct err_detail *d)
{
    char text[32];
    file_read_line(lock, text, sizeof text);
    text[strspn(text, "0123456789")] = '\0';
    return err_set(
        d, ERR_BUSY,
        "another agent%s%s uses the state directory %s: end it, or give this one its own with --state",
        text[0] != '\0' ? " with pid " : "", text, dir);
}

enum err state_dir_take(const char *dir, int *lock_fd, struct err_detail *d)
{
    enum err e = file_make_dirs(dir, d);
    if (e != ERR_OK)
        return e;
    char *path = mem_printf("%s/lock", dir);
    int fd = -1;
    e = file_lock(path, &fd, d);
    if (e == ERR_BUSY)
        e = refuse_busy(dir, path, d);
    if (e == ERR_OK) {
        char text[32];
        int len = snprintf(text, sizeof text, "%ld\n", (long)getpid());
        if (ftruncate(fd, 0) < 0 || file_write_at(fd, text, (size_t)len, 0) != ERR_OK) {
            e = err_set(d, err_from_errno(errno), "cannot write %s: %s", path, strerror(errno));
            close(fd);
        } else {
            *lock_fd = fd;
        }
    }
    free(path);
    return e;
}
