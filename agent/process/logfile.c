#include "agent/process/logfile.h"

#include "common/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

/* A reader that meets a flood tries this often for a ring nobody touched meanwhile. */
#define READ_TRIES 8

enum err logfile_init(struct logfile *f, const char *path, size_t head_max, size_t tail_max,
                      struct err_detail *d)
{
    *f = (struct logfile){.fd = -1, .head_max = head_max, .tail_max = tail_max};
    f->fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (f->fd < 0)
        return err_set(d, err_from_errno(errno), "cannot create log file %s: %s", path, strerror(errno));
    return ERR_OK;
}

void logfile_fini(struct logfile *f)
{
    if (f->fd >= 0)
        close(f->fd);
    f->fd = -1;
}

/* Bytes written; fewer than `len` only after a failure, which failed_errno keeps. */
static size_t write_at(struct logfile *f, const void *data, size_t len, uint64_t offset)
{
    size_t done = 0;
    while (done < len) {
        ssize_t n = pwrite(f->fd, (const char *)data + done, len - done, (off_t)(offset + done));
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            f->failed_errno = n < 0 ? errno : ENOSPC;
            break;
        }
        done += (size_t)n;
    }
    return done;
}

/* Bytes that could not be written; those that the ring has no room for are dropped, not lost. */
static size_t append_ring(struct logfile *f, const char *data, size_t len)
{
    uint64_t end = f->total + len;
    if (len > f->tail_max) {
        data += len - f->tail_max;
        len = f->tail_max;
    }
    size_t left = len;
    while (left > 0 && f->failed_errno == 0) {
        uint64_t at = (end - left - f->head_max) % f->tail_max;
        size_t part = f->tail_max - at < left ? (size_t)(f->tail_max - at) : left;
        size_t done = write_at(f, data, part, f->head_max + at);
        data += done;
        left -= done;
    }
    if (left == 0 && end > f->head_max + f->tail_max &&
        write_at(f, &end, sizeof end, f->head_max + f->tail_max) < sizeof end)
        left = len;
    return left;
}

void logfile_append(struct logfile *f, const void *data, size_t len)
{
    const char *p = data;
    if (f->fd < 0)
        return;
    if (f->failed_errno == 0 && f->total < f->head_max) {
        size_t part = f->head_max - f->total < len ? (size_t)(f->head_max - f->total) : len;
        size_t done = write_at(f, p, part, f->total);
        f->total += done;
        p += done;
        len -= done;
    }
    if (f->failed_errno != 0)
        f->lost += len;
    else if (len > 0)
        f->lost += append_ring(f, p, len);
    f->total += len;
}

/* Reads up to `max` bytes; what a shrinking file lacks is simply not there. */
static enum err read_at(int fd, char *out, size_t max, uint64_t offset, size_t *got)
{
    *got = 0;
    while (*got < max) {
        ssize_t n = pread(fd, out + *got, max - *got, (off_t)(offset + *got));
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

/* `text` holds head and ring; turns the ring so that its oldest byte comes first. */
static void unroll(char *text, size_t head_max, size_t tail_max, uint64_t total)
{
    size_t oldest = (size_t)((total - head_max) % tail_max);
    char *ring = mem_dup(text + head_max, tail_max);
    memcpy(text + head_max, ring + oldest, tail_max - oldest);
    memcpy(text + head_max + tail_max - oldest, ring, oldest);
    free(ring);
}

static enum err read_whole(int fd, size_t head_max, size_t tail_max, char *text, size_t *len,
                           uint64_t *dropped)
{
    size_t cap = head_max + tail_max;
    size_t got = 0;
    uint64_t mark = 0;
    uint64_t mark_after = 0;
    for (int i = 0; i < READ_TRIES; i++) {
        enum err e = read_at(fd, (char *)&mark, sizeof mark, cap, &got);
        bool marked = e == ERR_OK && got == sizeof mark;
        if (e == ERR_OK)
            e = read_at(fd, text, cap, 0, len);
        if (e == ERR_OK)
            e = read_at(fd, (char *)&mark_after, sizeof mark_after, cap, &got);
        if (e != ERR_OK)
            return e;
        if (!marked)
            mark = 0;
        if (got != sizeof mark_after)
            mark_after = 0;
        if (mark == mark_after)
            break;
    }
    *dropped = 0;
    if (mark > cap && *len == cap) {
        *dropped = mark - cap;
        if (tail_max > 0)
            unroll(text, head_max, tail_max, mark);
    }
    return ERR_OK;
}

enum err logfile_read(const char *path, size_t head_max, size_t tail_max, char **out, size_t *len,
                      uint64_t *dropped, struct err_detail *d)
{
    size_t got = 0;
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return err_set(d, err_from_errno(errno), "cannot read log file %s: %s", path, strerror(errno));
    char *text = mem_alloc(head_max + tail_max + 1);
    enum err e = read_whole(fd, head_max, tail_max, text, &got, dropped);
    close(fd);
    if (e != ERR_OK) {
        free(text);
        return err_set(d, e, "cannot read log file %s: %s", path, err_text(e));
    }
    text[got] = '\0';
    *out = mem_realloc(text, got + 1, 1);
    *len = got;
    return ERR_OK;
}

const char *logfile_last_lines(const char *text, size_t len, size_t lines_max)
{
    size_t at = len;
    if (at > 0 && text[at - 1] == '\n')
        at--;
    for (size_t lines = 0; at > 0; at--) {
        if (text[at - 1] == '\n' && ++lines == lines_max)
            break;
    }
    return lines_max == 0 ? text + len : text + at;
}
