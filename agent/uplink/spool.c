#include "agent/uplink/spool.h"

#include "common/file.h"
#include "common/mem.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>
#include <zlib.h>

#define MAGIC        "SBSPOOL1"
#define MAGIC_BYTES  8u
#define HEADER_BYTES 32u
#define NAME_DIGITS  16
#define NAME_BYTES   32u
#define KIND_EVENT   1u
#define KIND_ACK     2u

struct segment {
    struct segment *next; /* the newer one */
    uint64_t id;
    int fd;
    uint64_t bytes; /* of the file; the next record begins here */
    size_t wanted;  /* entries not acknowledged */
};

struct entry {
    struct spool_entry e;
    struct segment *segment;
    uint64_t offset; /* of the payload */
};

struct spool {
    char *dir;
    int dir_fd;
    uint64_t bytes_max;
    uint64_t next_id;
    struct segment *first; /* oldest */
    struct segment *last;
    bool writable; /* `last` was made by us and ends with a whole record */
    struct entry *entries;
    size_t count;
    size_t cap;
    uint64_t damaged;
};

struct header {
    uint32_t crc;
    uint32_t kind;
    uint64_t incarnation;
    uint64_t number;
    uint32_t len;
};

static void put_le(uint8_t *p, uint64_t v, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        p[i] = (uint8_t)(v >> (8 * i));
}

static uint64_t get_le(const uint8_t *p, size_t bytes)
{
    uint64_t v = 0;
    for (size_t i = 0; i < bytes; i++)
        v |= (uint64_t)p[i] << (8 * i);
    return v;
}

static uint32_t checksum(const uint8_t head[HEADER_BYTES], const void *data, size_t len)
{
    uLong crc = crc32(0, head + 4, HEADER_BYTES - 4);
    return (uint32_t)(len > 0 ? crc32(crc, data, (uInt)len) : crc);
}

static void header_write(uint8_t out[HEADER_BYTES], const struct header *h, const void *data)
{
    memset(out, 0, HEADER_BYTES);
    put_le(out + 4, h->kind, 4);
    put_le(out + 8, h->incarnation, 8);
    put_le(out + 16, h->number, 8);
    put_le(out + 24, h->len, 4);
    put_le(out, checksum(out, data, h->len), 4);
}

static struct header header_read(const uint8_t in[HEADER_BYTES])
{
    return (struct header){.crc = (uint32_t)get_le(in, 4),
                           .kind = (uint32_t)get_le(in + 4, 4),
                           .incarnation = get_le(in + 8, 8),
                           .number = get_le(in + 16, 8),
                           .len = (uint32_t)get_le(in + 24, 4)};
}

static void segment_name(uint64_t id, char out[NAME_BYTES])
{
    snprintf(out, NAME_BYTES, "%0*" PRIx64 ".seg", NAME_DIGITS, id);
}

static bool segment_parse(const char *name, uint64_t *id)
{
    if (strlen(name) != NAME_DIGITS + 4 || strcmp(name + NAME_DIGITS, ".seg") != 0 ||
        strspn(name, "0123456789abcdef") != NAME_DIGITS)
        return false;
    *id = strtoull(name, NULL, 16);
    return true;
}

static bool read_exact(int fd, void *out, size_t len, uint64_t offset)
{
    size_t got = 0;
    return file_read_at(fd, out, len, offset, &got) == ERR_OK && got == len;
}

static void entry_add(struct spool *s, const struct entry *e)
{
    if (s->count == s->cap) {
        s->cap = s->cap == 0 ? 16 : s->cap * 2;
        s->entries = mem_realloc(s->entries, s->cap, sizeof *s->entries);
    }
    s->entries[s->count++] = *e;
    e->segment->wanted++;
}

/* Forgets without touching the disk. */
static void entries_drop(struct spool *s, uint64_t incarnation, uint64_t number)
{
    size_t kept = 0;
    for (size_t i = 0; i < s->count; i++) {
        const struct entry *e = &s->entries[i];
        if (e->e.incarnation == incarnation && e->e.number <= number)
            e->segment->wanted--;
        else
            s->entries[kept++] = *e;
    }
    s->count = kept;
}

static void segment_link(struct spool *s, struct segment *seg)
{
    if (s->last == NULL)
        s->first = seg;
    else
        s->last->next = seg;
    s->last = seg;
}

/* Removes the oldest segments nothing of which is wanted. Only from the front: an acknowledgement in a newer
 * segment must not go before the entries of an older one that it speaks of. */
static void segments_clean(struct spool *s)
{
    while (s->first != NULL && s->first->wanted == 0) {
        struct segment *seg = s->first;
        char name[NAME_BYTES];
        segment_name(seg->id, name);
        unlinkat(s->dir_fd, name, 0); /* left behind, it would be read and acknowledged again: harmless */
        close(seg->fd);
        s->first = seg->next;
        if (s->first == NULL) {
            s->last = NULL;
            s->writable = false;
        }
        free(seg);
    }
}

/* Reads one record at `offset`; false when it is torn or damaged. `payload` holds SPOOL_RECORD_BYTES. */
static bool record_load(struct spool *s, struct segment *seg, uint64_t *offset, uint8_t *payload)
{
    uint8_t head[HEADER_BYTES];
    if (seg->bytes - *offset < HEADER_BYTES || !read_exact(seg->fd, head, sizeof head, *offset))
        return false;
    struct header h = header_read(head);
    if (h.len > SPOOL_RECORD_BYTES || h.len > seg->bytes - *offset - HEADER_BYTES)
        return false;
    if (!read_exact(seg->fd, payload, h.len, *offset + HEADER_BYTES) ||
        checksum(head, payload, h.len) != h.crc)
        return false;
    if (h.kind == KIND_EVENT)
        entry_add(s, &(struct entry){.e = {.incarnation = h.incarnation, .number = h.number, .len = h.len},
                                     .segment = seg,
                                     .offset = *offset + HEADER_BYTES});
    else if (h.kind == KIND_ACK)
        entries_drop(s, h.incarnation, h.number);
    else
        return false;
    *offset += HEADER_BYTES + h.len;
    return true;
}

static enum err segment_load(struct spool *s, uint64_t id, uint8_t *payload, struct err_detail *d)
{
    char name[NAME_BYTES];
    segment_name(id, name);
    int fd = openat(s->dir_fd, name, O_RDWR | O_CLOEXEC);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) < 0) {
        int errnum = errno;
        if (fd >= 0)
            close(fd);
        return err_set(d, err_from_errno(errnum), "cannot open spool file %s/%s: %s", s->dir, name,
                       strerror(errnum));
    }
    struct segment *seg = mem_zalloc(1, sizeof *seg);
    *seg = (struct segment){.id = id, .fd = fd, .bytes = (uint64_t)st.st_size};
    segment_link(s, seg);
    char magic[MAGIC_BYTES];
    uint64_t offset = 0;
    if (seg->bytes >= MAGIC_BYTES && read_exact(fd, magic, MAGIC_BYTES, 0) &&
        memcmp(magic, MAGIC, MAGIC_BYTES) == 0) {
        offset = MAGIC_BYTES;
        while (offset < seg->bytes && record_load(s, seg, &offset, payload)) {
        }
    }
    s->damaged += seg->bytes - offset;
    return ERR_OK;
}

static int compare_ids(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static enum err load_all(struct spool *s, struct err_detail *d)
{
    int fd = dup(s->dir_fd);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (dir == NULL) {
        int errnum = errno;
        if (fd >= 0)
            close(fd);
        return err_set(d, err_from_errno(errnum), "cannot list spool %s: %s", s->dir, strerror(errnum));
    }
    uint64_t *ids = NULL;
    size_t count = 0;
    const struct dirent *ent;
    uint64_t id;
    while ((ent = readdir(dir)) != NULL) {
        if (!segment_parse(ent->d_name, &id))
            continue;
        ids = mem_realloc(ids, count + 1, sizeof *ids);
        ids[count++] = id;
    }
    closedir(dir);
    if (count > 0)
        qsort(ids, count, sizeof *ids, compare_ids);
    uint8_t *payload = count > 0 ? mem_alloc(SPOOL_RECORD_BYTES) : NULL;
    enum err e = ERR_OK;
    for (size_t i = 0; i < count && e == ERR_OK; i++) {
        e = segment_load(s, ids[i], payload, d);
        s->next_id = ids[i] + 1;
    }
    free(payload);
    free(ids);
    return e;
}

enum err spool_new(const struct spool_options *options, struct spool **out, struct err_detail *d)
{
    enum err e;
    struct spool *s = mem_zalloc(1, sizeof *s);
    s->dir = mem_strdup(options->dir);
    s->bytes_max = options->bytes_max;
    s->dir_fd = -1;
    if ((e = file_make_dir(s->dir, 0700, d)) != ERR_OK)
        goto out;
    if ((s->dir_fd = open(s->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0) {
        e = err_set(d, err_from_errno(errno), "cannot use spool directory %s: %s", s->dir, strerror(errno));
        goto out;
    }
    if ((e = load_all(s, d)) != ERR_OK)
        goto out;
    segments_clean(s);
    *out = s;
    return ERR_OK;
out:
    spool_free(s);
    return e;
}

void spool_free(struct spool *s)
{
    if (s == NULL)
        return;
    for (struct segment *seg = s->first, *next; seg != NULL; seg = next) {
        next = seg->next;
        close(seg->fd);
        free(seg);
    }
    if (s->dir_fd >= 0)
        close(s->dir_fd);
    free(s->entries);
    free(s->dir);
    free(s);
}

static enum err io_failed(const struct spool *s, int errnum, struct err_detail *d)
{
    return err_set(d, err_from_errno(errnum), "cannot write to spool %s: %s", s->dir, strerror(errnum));
}

static enum err segment_start(struct spool *s, struct err_detail *d)
{
    char name[NAME_BYTES];
    segment_name(s->next_id, name);
    int fd = openat(s->dir_fd, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return io_failed(s, errno, d);
    ssize_t n = pwrite(fd, MAGIC, MAGIC_BYTES, 0);
    if (n != (ssize_t)MAGIC_BYTES || fsync(s->dir_fd) < 0) {
        int errnum = n >= 0 && n < (ssize_t)MAGIC_BYTES ? ENOSPC : errno;
        close(fd);
        unlinkat(s->dir_fd, name, 0);
        return io_failed(s, errnum, d);
    }
    struct segment *seg = mem_zalloc(1, sizeof *seg);
    *seg = (struct segment){.id = s->next_id++, .fd = fd, .bytes = MAGIC_BYTES};
    segment_link(s, seg);
    s->writable = true;
    return ERR_OK;
}

/* Writes one record at the end of the last segment; a torn one is cut off again, or the segment given up. */
static enum err record_write(struct spool *s, const struct header *h, const void *data, bool flush,
                             struct err_detail *d)
{
    struct segment *seg = s->last;
    uint8_t head[HEADER_BYTES];
    header_write(head, h, data);
    struct iovec parts[2] = {{.iov_base = head, .iov_len = sizeof head},
                             {.iov_base = (void *)(uintptr_t)data, .iov_len = h->len}};
    ssize_t n;
    do {
        n = pwritev(seg->fd, parts, h->len > 0 ? 2 : 1, (off_t)seg->bytes);
    } while (n < 0 && errno == EINTR);
    /* A regular file is written short only when the disk is full. */
    bool torn = n >= 0 && (size_t)n != sizeof head + h->len;
    if (n < 0 || torn || (flush && fdatasync(seg->fd) < 0)) {
        int errnum = torn ? ENOSPC : errno;
        if (ftruncate(seg->fd, (off_t)seg->bytes) < 0)
            s->writable = false;
        return io_failed(s, errnum, d);
    }
    seg->bytes += sizeof head + h->len;
    return ERR_OK;
}

enum err spool_append(struct spool *s, uint64_t incarnation, uint64_t number, const void *data, size_t len,
                      struct err_detail *d)
{
    if (len > SPOOL_RECORD_BYTES)
        return err_set(d, ERR_TOO_BIG, "a result of %zu bytes is over the spool's limit of %u", len,
                       SPOOL_RECORD_BYTES);
    if (spool_bytes(s) + MAGIC_BYTES + HEADER_BYTES + len > s->bytes_max)
        return err_set(d, ERR_FULL,
                       "spool %s is at its limit of %" PRIu64 " bytes: no controller takes results", s->dir,
                       s->bytes_max);
    enum err e;
    if (!s->writable || s->last->bytes >= SPOOL_SEGMENT_BYTES) {
        if ((e = segment_start(s, d)) != ERR_OK)
            return e;
    }
    struct header h = {
        .kind = KIND_EVENT, .incarnation = incarnation, .number = number, .len = (uint32_t)len};
    if ((e = record_write(s, &h, data, true, d)) != ERR_OK) {
        segments_clean(s); /* an empty segment on a full disk helps nobody */
        return e;
    }
    entry_add(s, &(struct entry){.e = {.incarnation = incarnation, .number = number, .len = len},
                                 .segment = s->last,
                                 .offset = s->last->bytes - len});
    return ERR_OK;
}

size_t spool_count(const struct spool *s)
{
    return s->count;
}

struct spool_entry spool_at(const struct spool *s, size_t index)
{
    must(index < s->count);
    return s->entries[index].e;
}

enum err spool_read(struct spool *s, size_t index, void *out, struct err_detail *d)
{
    must(index < s->count);
    const struct entry *e = &s->entries[index];
    uint8_t head[HEADER_BYTES];
    if (!read_exact(e->segment->fd, head, sizeof head, e->offset - HEADER_BYTES) ||
        !read_exact(e->segment->fd, out, e->e.len, e->offset) ||
        checksum(head, out, e->e.len) != header_read(head).crc)
        return err_set(d, ERR_IO, "spool %s lost result %" PRIu64, s->dir, e->e.number);
    return ERR_OK;
}

void spool_ack(struct spool *s, uint64_t incarnation, uint64_t number)
{
    size_t before = s->count;
    entries_drop(s, incarnation, number);
    if (s->count == before)
        return;
    segments_clean(s);
    if (s->first == NULL)
        return;
    /* What is left shares a segment with what is gone: say so, for the next start. Best effort. */
    struct header h = {.kind = KIND_ACK, .incarnation = incarnation, .number = number};
    if (s->writable || segment_start(s, NULL) == ERR_OK) {
        if (record_write(s, &h, NULL, false, NULL) != ERR_OK)
            return;
    }
}

uint64_t spool_bytes(const struct spool *s)
{
    uint64_t sum = 0;
    for (const struct segment *seg = s->first; seg != NULL; seg = seg->next)
        sum += seg->bytes;
    return sum;
}

uint64_t spool_damaged_bytes(const struct spool *s)
{
    return s->damaged;
}
