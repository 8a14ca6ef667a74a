#include "common/blobs.h"

#include "common/file.h"
#include "common/mem.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PART_SUFFIX ".part"

struct blobs {
    char *path; /* for messages */
    int dir_fd;
    uint64_t bytes_max;
};

struct name {
    char text[SHA256_TEXT_BYTES + sizeof PART_SUFFIX];
};

static struct name whole_name(const uint8_t hash[SHA256_BYTES])
{
    struct name n = {""};
    sha256_text(hash, n.text);
    return n;
}

static struct name part_name(const uint8_t hash[SHA256_BYTES])
{
    struct name n = whole_name(hash);
    memcpy(n.text + SHA256_TEXT_BYTES - 1, PART_SUFFIX, sizeof PART_SUFFIX);
    return n;
}

enum err blobs_open(const char *dir, uint64_t bytes_max, struct blobs **out, struct err_detail *d)
{
    *out = NULL;
    int fd = -1;
    enum err e = file_open_dir(dir, 0700, &fd, d);
    if (e != ERR_OK)
        return e;
    struct blobs *b = mem_zalloc(1, sizeof *b);
    b->path = mem_strdup(dir);
    b->dir_fd = fd;
    b->bytes_max = bytes_max;
    *out = b;
    return ERR_OK;
}

void blobs_free(struct blobs *b)
{
    if (b == NULL)
        return;
    close(b->dir_fd);
    free(b->path);
    free(b);
}

/* Size of a regular file, or -1. */
static int64_t size_of(const struct blobs *b, const char *name)
{
    struct stat st;
    if (fstatat(b->dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(st.st_mode))
        return -1;
    return st.st_size;
}

uint64_t blobs_have(struct blobs *b, const uint8_t hash[SHA256_BYTES], uint64_t size_bytes)
{
    struct name whole = whole_name(hash);
    if (size_of(b, whole.text) == (int64_t)size_bytes) {
        /* Where this fails, the blob counts as older than it is, and is removed earlier than others: no harm.
         */
        utimensat(b->dir_fd, whole.text, NULL, AT_SYMLINK_NOFOLLOW);
        return size_bytes;
    }
    int64_t have = size_of(b, part_name(hash).text);
    return have > 0 && (uint64_t)have < size_bytes ? (uint64_t)have : 0;
}

/* After the last byte has come: compares the hash, brings the bytes to the disk, and drops ".part" from the
 * name. */
static enum err complete(struct blobs *b, int fd, const uint8_t hash[SHA256_BYTES], struct err_detail *d)
{
    struct name part = part_name(hash);
    struct name whole = whole_name(hash);
    uint8_t got[SHA256_BYTES];
    enum err e = sha256_of_fd(fd, got, d);
    if (e == ERR_OK && memcmp(got, hash, sizeof got) != 0) {
        char text[SHA256_TEXT_BYTES];
        unlinkat(b->dir_fd, part.text, 0);
        return err_set(
            d, ERR_INVALID,
            "the pieces of file %.16s... make one with hash %.16s...: removed, send it from the beginning",
            whole.text, sha256_text(got, text));
    }
    if (e == ERR_OK && (fsync(fd) != 0 || renameat(b->dir_fd, part.text, b->dir_fd, whole.text) != 0 ||
                        fsync(b->dir_fd) != 0))
        e = err_set(d, err_from_errno(errno), "%s/%s cannot be stored: %s", b->path, whole.text,
                    strerror(errno));
    return e;
}

enum err blobs_write(struct blobs *b, const uint8_t hash[SHA256_BYTES], uint64_t size_bytes, uint64_t offset,
                     const void *data, size_t len, uint64_t *have, struct err_detail *d)
{
    struct name part = part_name(hash);
    *have = blobs_have(b, hash, size_bytes);
    if (offset > size_bytes || len > size_bytes - offset)
        return err_set(d, ERR_INVALID,
                       "a piece of file %.16s... from %llu on with %zu bytes passes its size of %llu",
                       part.text, (unsigned long long)offset, len, (unsigned long long)size_bytes);
    if (offset > *have)
        return err_set(d, ERR_INVALID,
                       "a piece of file %.16s... begins at %llu, but only %llu bytes are here", part.text,
                       (unsigned long long)offset, (unsigned long long)*have);
    if (size_of(b, whole_name(hash).text) == (int64_t)size_bytes || (offset + len <= *have && len > 0))
        return ERR_OK;
    int fd = openat(b->dir_fd, part.text, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return err_set(d, err_from_errno(errno), "%s/%s cannot be written: %s", b->path, part.text,
                       strerror(errno));
    enum err e = ftruncate(fd, (off_t)*have) == 0 ? file_write_at(fd, data, len, offset) : ERR_IO;
    if (e != ERR_OK) {
        /* The disk may be full: what came before this piece stays, to go on from. */
        int undone = ftruncate(fd, (off_t)*have);
        err_set(d, e, "%s/%s cannot be written: %s%s", b->path, part.text, err_text(e),
                undone != 0 ? " (and a broken piece is left)" : "");
    } else {
        *have = offset + len;
        if (*have == size_bytes)
            e = complete(b, fd, hash, d);
    }
    close(fd);
    return e;
}

static enum err copy_checked(int from, int to, uint8_t hash[SHA256_BYTES], struct err_detail *d)
{
    struct sha256 sum;
    sha256_init(&sum);
    char block[64 * 1024];
    size_t n = sizeof block;
    enum err e = ERR_OK;
    for (uint64_t offset = 0; e == ERR_OK && n == sizeof block; offset += n) {
        e = file_read_at(from, block, sizeof block, offset, &n);
        if (e != ERR_OK) {
            err_set(d, e, "a stored file cannot be read: %s", err_text(e));
            break;
        }
        sha256_add(&sum, block, n);
        e = file_write_at(to, block, n, offset);
        if (e != ERR_OK)
            err_set(d, e, "a file of the workspace cannot be written: %s", err_text(e));
    }
    sha256_end(&sum, hash);
    sha256_fini(&sum);
    return e;
}

/* -1 when it is not here; the caller says ERR_NOT_FOUND. */
static int open_whole(const struct blobs *b, const struct name *whole, struct err_detail *d)
{
    int fd = openat(b->dir_fd, whole->text, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        err_set(d, ERR_NOT_FOUND, "file %.16s... is not here", whole->text);
    return fd;
}

enum err blobs_copy(struct blobs *b, const uint8_t hash[SHA256_BYTES], uint64_t size_bytes, int fd,
                    struct err_detail *d)
{
    struct name whole = whole_name(hash);
    int from = open_whole(b, &whole, d);
    if (from < 0)
        return ERR_NOT_FOUND;
    uint8_t got[SHA256_BYTES];
    enum err e = size_of(b, whole.text) == (int64_t)size_bytes
                     ? copy_checked(from, fd, got, d)
                     : err_set(d, ERR_NOT_FOUND, "file %.16s... has another size here", whole.text);
    if (e == ERR_OK && memcmp(got, hash, sizeof got) != 0)
        e = err_set(d, ERR_NOT_FOUND, "file %.16s... was damaged on this host: removed", whole.text);
    if (e == ERR_NOT_FOUND)
        unlinkat(b->dir_fd, whole.text, 0);
    close(from);
    return e;
}

enum err blobs_check(struct blobs *b, const uint8_t hash[SHA256_BYTES], struct err_detail *d)
{
    struct name whole = whole_name(hash);
    int fd = open_whole(b, &whole, d);
    if (fd < 0)
        return ERR_NOT_FOUND;
    uint8_t got[SHA256_BYTES];
    enum err e = sha256_of_fd(fd, got, d);
    close(fd);
    if (e != ERR_OK || memcmp(got, hash, sizeof got) == 0)
        return e;
    unlinkat(b->dir_fd, whole.text, 0);
    return err_set(d, ERR_NOT_FOUND, "file %.16s... was damaged on this host: removed", whole.text);
}

enum err blobs_read(struct blobs *b, const uint8_t hash[SHA256_BYTES], uint64_t offset, void *out, size_t len,
                    struct err_detail *d)
{
    struct name whole = whole_name(hash);
    int fd = open_whole(b, &whole, d);
    if (fd < 0)
        return ERR_NOT_FOUND;
    size_t got = 0;
    enum err e = file_read_at(fd, out, len, offset, &got);
    close(fd);
    if (e != ERR_OK)
        return err_set(d, e, "file %.16s... cannot be read: %s", whole.text, err_text(e));
    if (got < len)
        return err_set(d, ERR_NOT_FOUND, "file %.16s... is shorter than it should be", whole.text);
    return ERR_OK;
}

struct kept {
    struct name name;
    uint64_t size_bytes;
    struct timespec used_at;
    enum want { UNWANTED, LONGEST, ALWAYS } want; /* in the order of removal */
};

static int by_removal(const void *a, const void *b)
{
    const struct kept *k = a;
    const struct kept *l = b;
    const struct timespec *x = &k->used_at;
    const struct timespec *y = &l->used_at;
    if (k->want != l->want)
        return k->want < l->want ? -1 : 1;
    if (x->tv_sec != y->tv_sec)
        return x->tv_sec < y->tv_sec ? -1 : 1;
    return (x->tv_nsec > y->tv_nsec) - (x->tv_nsec < y->tv_nsec);
}

static int by_hash(const void *a, const void *b)
{
    return memcmp(a, b, SHA256_BYTES);
}

static bool is_among(const uint8_t hash[SHA256_BYTES], const uint8_t (*list)[SHA256_BYTES], size_t count)
{
    return count > 0 && bsearch(hash, list, count, SHA256_BYTES, by_hash) != NULL;
}

/* `name` begins with the digits of a hash. */
static enum want want_of(const char *name, const struct blobs_wanted *wanted)
{
    uint8_t hash[SHA256_BYTES];
    if (!sha256_parse(name, hash))
        return UNWANTED;
    if (is_among(hash, wanted->always, wanted->always_count))
        return ALWAYS;
    return is_among(hash, wanted->longest, wanted->longest_count) ? LONGEST : UNWANTED;
}

/* Everything of ours in the directory; the caller frees. */
static struct kept *list(struct blobs *b, const struct blobs_wanted *wanted, size_t *count)
{
    struct kept *items = NULL;
    *count = 0;
    int fd = openat(b->dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    struct dirent *entry;
    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        struct stat st;
        size_t len = strlen(entry->d_name);
        bool ours =
            strspn(entry->d_name, "0123456789abcdef") == SHA256_TEXT_BYTES - 1 &&
            (len == SHA256_TEXT_BYTES - 1 || strcmp(entry->d_name + SHA256_TEXT_BYTES - 1, PART_SUFFIX) == 0);
        if (!ours || fstatat(b->dir_fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0)
            continue;
        items = mem_realloc(items, *count + 1, sizeof *items);
        struct kept *k = &items[(*count)++];
        *k = (struct kept){.size_bytes = (uint64_t)st.st_size,
                           .used_at = st.st_mtim,
                           .want = want_of(entry->d_name, wanted)};
        memcpy(k->name.text, entry->d_name, len + 1);
    }
    if (dir != NULL)
        closedir(dir);
    else if (fd >= 0)
        close(fd);
    return items;
}

static uint64_t bytes_of(const struct kept *items, size_t count)
{
    uint64_t total = 0;
    for (size_t i = 0; i < count; i++)
        total += items[i].size_bytes;
    return total;
}

bool blobs_have_room(struct blobs *b, uint64_t more_bytes)
{
    size_t count = 0;
    struct kept *items = list(b, &(struct blobs_wanted){0}, &count);
    uint64_t total = bytes_of(items, count);
    free(items);
    return total <= b->bytes_max && more_bytes <= b->bytes_max - total;
}

enum err blobs_make_room(struct blobs *b, const struct blobs_wanted *wanted, uint64_t more_bytes,
                         struct err_detail *d)
{
    size_t count = 0;
    struct kept *items = list(b, wanted, &count);
    uint64_t total = bytes_of(items, count) + more_bytes;
    if (count > 0)
        qsort(items, count, sizeof *items, by_removal);
    for (size_t i = 0; i < count && items[i].want != ALWAYS && total > b->bytes_max; i++)
        if (unlinkat(b->dir_fd, items[i].name.text, 0) == 0)
            total -= items[i].size_bytes;
    free(items);
    if (total > b->bytes_max)
        return err_set(d, ERR_FULL, "the job's files need %llu bytes in %s, where %llu are allowed",
                       (unsigned long long)total, b->path, (unsigned long long)b->bytes_max);
    return ERR_OK;
}
