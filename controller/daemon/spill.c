#include "controller/daemon/spill.h"

#include "common/file.h"
#include "common/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct spill {
    int fd;
    uint64_t bytes;
};

enum err spill_new(const char *dir, struct spill **out, struct err_detail *d)
{
    char *path = mem_printf("%s/answer.XXXXXX", dir);
    int fd = mkostemp(path, O_CLOEXEC);
    enum err e = ERR_OK;
    if (fd < 0)
        e = err_set(d, err_from_errno(errno), "no file for a long answer can be made in %s: %s", dir,
                    strerror(errno));
    else
        (void)unlink(path); /* else it stays until somebody tidies up: nothing reads it */
    free(path);
    if (e != ERR_OK)
        return e;
    *out = mem_zalloc(1, sizeof **out);
    (*out)->fd = fd;
    return ERR_OK;
}

void spill_free(struct spill *s)
{
    if (s == NULL)
        return;
    close(s->fd);
    free(s);
}

enum err spill_write(struct spill *s, const char *data, size_t len, struct err_detail *d)
{
    enum err e = file_write_at(s->fd, data, len, s->bytes);
    if (e != ERR_OK)
        return err_set(d, e, "a long answer cannot be kept on the controller's disk: %s", err_text(e));
    s->bytes += len;
    return ERR_OK;
}

uint64_t spill_bytes(const struct spill *s)
{
    return s->bytes;
}

struct spill *spill_share(const struct spill *s)
{
    int fd = fcntl(s->fd, F_DUPFD_CLOEXEC, 0);
    if (fd < 0)
        return NULL;
    struct spill *twin = mem_dup(s, sizeof *s);
    twin->fd = fd;
    return twin;
}

enum err spill_read(const struct spill *s, uint64_t offset, size_t max, char **text, struct err_detail *d)
{
    size_t got = 0;
    uint64_t left = offset < s->bytes ? s->bytes - offset : 0;
    size_t want = left <= max ? (size_t)left : max + 1; /* the byte behind says whether a character ends */
    char *data = mem_zalloc(want + 1, 1);
    enum err e = file_read_at(s->fd, data, want, offset, &got);
    if (e == ERR_OK && got != want)
        e = ERR_IO;
    if (e != ERR_OK) {
        free(data);
        return err_set(d, e, "a long answer cannot be read back from the controller's disk: %s", err_text(e));
    }
    size_t end = left <= max ? want : max;
    while (end < want && end > 0 && ((unsigned char)data[end] & 0xc0) == 0x80)
        end--;
    data[end] = '\0';
    *text = data;
    return ERR_OK;
}
