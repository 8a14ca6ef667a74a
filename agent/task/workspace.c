#include "agent/task/workspace.h"

#include "agent/task/jail.h"
#include "common/blobs.h"
#include "common/buf.h"
#include "common/file.h"
#include "common/mem.h"
#include "common/path.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define RECORD_BYTES_MAX ((size_t)LIMIT_FILES * LIMIT_PATH_BYTES)

struct workspace {
    struct blobs *blobs;
    char *job;
    char *parent_dir;
    char *job_dir;
    char *tree_dir;
    int job_fd;
    int tree_fd;
    struct msg_command list; /* holds the msg_files; of no other use */
    const struct msg_file **by_hash;
};

enum err workspace_open(const struct workspace_options *o, struct workspace **out, struct err_detail *d)
{
    *out = NULL;
    enum err e = path_check_name("job", o->job, d);
    if (e != ERR_OK)
        return e;
    struct workspace *w = mem_zalloc(1, sizeof *w);
    w->job_fd = -1;
    w->tree_fd = -1;
    char *blobs_dir = mem_printf("%s/blobs", o->state_dir);
    w->job = mem_strdup(o->job);
    w->parent_dir = mem_printf("%s/workspaces", o->state_dir);
    w->job_dir = mem_printf("%s/%s", w->parent_dir, o->job);
    w->tree_dir = mem_printf("%s/tree", w->job_dir);
    int parent_fd = -1;
    e = blobs_open(blobs_dir, o->blob_bytes_max != 0 ? o->blob_bytes_max : WORKSPACE_BLOB_BYTES_MAX,
                   &w->blobs, d);
    if (e == ERR_OK)
        e = file_open_dir(w->parent_dir, 0755, &parent_fd, d);
    if (e == ERR_OK)
        e = file_open_dir(w->job_dir, 0755, &w->job_fd, d);
    if (e == ERR_OK)
        e = file_open_dir(w->tree_dir, 0755, &w->tree_fd, d);
    if (e == ERR_OK) {
        futimens(w->job_fd, NULL); /* used now: jail_keep_newest goes by this time */
        *out = w;
    } else {
        workspace_free(w);
    }
    if (parent_fd >= 0)
        close(parent_fd);
    free(blobs_dir);
    return e;
}

void workspace_free(struct workspace *w)
{
    if (w == NULL)
        return;
    blobs_free(w->blobs);
    if (w->job_fd >= 0)
        close(w->job_fd);
    if (w->tree_fd >= 0)
        close(w->tree_fd);
    msg_command_fini(&w->list);
    free(w->by_hash);
    free(w->job);
    free(w->parent_dir);
    free(w->job_dir);
    free(w->tree_dir);
    free(w);
}

void workspace_remove_old(struct workspace *w)
{
    jail_keep_newest(w->parent_dir, w->job, WORKSPACE_KEPT_MAX);
}

const char *workspace_dir(const struct workspace *w)
{
    return w->tree_dir;
}

/* ---- the list ------------------------------------------------------------------------------------- */

static int compare_paths(const void *a, const void *b)
{
    return strcmp((*(const struct msg_file *const *)a)->path, (*(const struct msg_file *const *)b)->path);
}

static int compare_hashes(const void *a, const void *b)
{
    return memcmp((*(const struct msg_file *const *)a)->hash, (*(const struct msg_file *const *)b)->hash,
                  MSG_HASH_BYTES);
}

static const struct msg_file **sorted(const struct msg_files *files,
                                      int (*compare)(const void *, const void *))
{
    const struct msg_file **items = mem_zalloc(files->count, sizeof(const struct msg_file *));
    for (size_t i = 0; i < files->count; i++)
        items[i] = &files->items[i];
    if (files->count > 0)
        qsort(items, files->count, sizeof(const struct msg_file *), compare);
    return items;
}

/* A path of the list, found among its sorted ones. */
static bool has_path(const struct msg_file **by_path, size_t count, const char *path)
{
    struct msg_file wanted = {.path = msg_borrowed(path)};
    const struct msg_file *key = &wanted;
    return count > 0 && bsearch(&key, by_path, count, sizeof(const struct msg_file *), compare_paths) != NULL;
}

static enum err check_conflicts(const struct msg_file **by_path, size_t count, struct err_detail *d)
{
    for (size_t i = 0; i < count; i++) {
        const char *path = by_path[i]->path;
        if (i > 0 && strcmp(by_path[i - 1]->path, path) == 0)
            return err_set(d, ERR_INVALID, "file path \"%.300s\" is on the list twice", path);
        char parent[LIMIT_PATH_BYTES];
        snprintf(parent, sizeof parent, "%s", path);
        for (char *slash = strrchr(parent, '/'); slash != NULL; slash = strrchr(parent, '/')) {
            *slash = '\0';
            if (has_path(by_path, count, parent))
                return err_set(d, ERR_INVALID, "\"%.300s\" is on the list both as a file and as a directory",
                               parent);
        }
    }
    return ERR_OK;
}

static enum err check_list(const struct msg_files *files, struct err_detail *d)
{
    if (files->count > LIMIT_FILES)
        return err_set(d, ERR_TOO_BIG, "%zu files: at most %u", files->count, LIMIT_FILES);
    uint64_t total = 0;
    for (size_t i = 0; i < files->count; i++) {
        const struct msg_file *f = &files->items[i];
        enum err e = path_check(msg_text(f->path), d);
        if (e != ERR_OK)
            return e;
        if (f->mode > 0777)
            return err_set(d, ERR_INVALID, "file \"%.300s\": mode %o has more than permission bits", f->path,
                           f->mode);
        if (f->size_bytes > LIMIT_FILE_BYTES || (total += f->size_bytes) > LIMIT_FILE_BYTES)
            return err_set(d, ERR_TOO_BIG, "the job's files have more than %llu bytes", LIMIT_FILE_BYTES);
    }
    const struct msg_file **by_path = sorted(files, compare_paths);
    const struct msg_file **by_hash = sorted(files, compare_hashes);
    enum err e = check_conflicts(by_path, files->count, d);
    for (size_t i = 1; i < files->count && e == ERR_OK; i++)
        if (compare_hashes(&by_hash[i - 1], &by_hash[i]) == 0 &&
            by_hash[i - 1]->size_bytes != by_hash[i]->size_bytes)
            e = err_set(d, ERR_INVALID, "\"%.300s\" and \"%.300s\" have one hash and two sizes",
                        by_hash[i]->path, by_hash[i - 1]->path);
    free(by_path);
    free(by_hash);
    return e;
}

/* ---- the record: one path a line ------------------------------------------------------------------ */

/* NULL when there is none. */
static char *read_record(const struct workspace *w)
{
    char *text = NULL;
    size_t len = 0;
    int fd = openat(w->job_fd, "record", O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || file_read_fd(fd, RECORD_BYTES_MAX, &text, &len) != ERR_OK)
        text = NULL;
    if (fd >= 0)
        close(fd);
    return text;
}

static enum err write_record(const struct workspace *w, struct err_detail *d)
{
    const struct msg_files *files = &w->list.u.files;
    struct buf text;
    buf_init(&text, RECORD_BYTES_MAX);
    for (size_t i = 0; i < files->count; i++)
        must(buf_printf(&text, "%s\n", files->items[i].path) == ERR_OK); /* the limits of the list */
    int fd = openat(w->job_fd, "record.fresh", O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    enum err e = ERR_OK;
    if (fd < 0 || file_write_at(fd, text.data, text.len, 0) != ERR_OK ||
        renameat(w->job_fd, "record.fresh", w->job_fd, "record") != 0)
        e = err_set(d, err_from_errno(errno), "%s/record cannot be written: %s", w->job_dir, strerror(errno));
    if (fd >= 0)
        close(fd);
    buf_fini(&text);
    return e;
}

/* Files that came from us and are not on the list any more go; what the job made itself stays. */
static void remove_dropped(const struct workspace *w)
{
    const struct msg_files *files = &w->list.u.files;
    const struct msg_file **by_path = sorted(files, compare_paths);
    char *record = read_record(w);
    char *rest = record;
    for (char *line = strsep(&rest, "\n"); line != NULL; line = strsep(&rest, "\n"))
        if (path_check(line, NULL) == ERR_OK && !has_path(by_path, files->count, line))
            jail_remove(w->tree_fd, line);
    free(record);
    free(by_path);
}

/* ---- contents ------------------------------------------------------------------------------------- */

/* What the list still needs, each hash once, in the order of hashes; and room for it. */
static enum err find_missing(struct workspace *w, struct msg_files_missing *missing, struct err_detail *d)
{
    size_t count = w->list.u.files.count;
    *missing = (struct msg_files_missing){.items = mem_zalloc(count, sizeof *missing->items)};
    uint8_t(*keep)[MSG_HASH_BYTES] = mem_zalloc(count, MSG_HASH_BYTES);
    size_t kept = 0;
    uint64_t more = 0;
    enum err e = ERR_OK;
    for (size_t i = 0; i < count && e == ERR_OK; i++) {
        const struct msg_file *f = w->by_hash[i];
        if (i > 0 && memcmp(w->by_hash[i - 1]->hash, f->hash, MSG_HASH_BYTES) == 0)
            continue;
        memcpy(keep[kept++], f->hash, MSG_HASH_BYTES);
        uint64_t have = blobs_have(w->blobs, f->hash, f->size_bytes);
        if (f->size_bytes == 0) /* nothing will be sent for it */
            e = blobs_write(w->blobs, f->hash, 0, 0, "", 0, &have, d);
        if (have == f->size_bytes)
            continue;
        memcpy(missing->items[missing->count].hash, f->hash, MSG_HASH_BYTES);
        missing->items[missing->count++].have_bytes = have;
        more += f->size_bytes - have;
    }
    if (e == ERR_OK)
        e = blobs_make_room(
            w->blobs,
            &(struct blobs_wanted){.always = (const uint8_t(*)[MSG_HASH_BYTES])keep, .always_count = kept},
            more, d);
    free(keep);
    if (e != ERR_OK || missing->count == 0) {
        free(missing->items);
        *missing = (struct msg_files_missing){0};
    }
    return e;
}

static enum err put_all(struct workspace *w, struct err_detail *d)
{
    const struct msg_files *files = &w->list.u.files;
    remove_dropped(w);
    enum err e = write_record(w, d);
    for (size_t i = 0; i < files->count && e == ERR_OK; i++) {
        const struct msg_file *f = &files->items[i];
        struct jail_file file = {
            .path = f->path, .hash = f->hash, .size_bytes = f->size_bytes, .mode = f->mode};
        e = jail_put(w->tree_fd, &file, w->blobs, d);
    }
    return e;
}

enum err workspace_set_files(struct workspace *w, const struct msg_files *files,
                             struct msg_files_missing *missing, struct err_detail *d)
{
    *missing = (struct msg_files_missing){0};
    enum err e = check_list(files, d);
    if (e != ERR_OK)
        return e;
    struct msg_command borrowed = {.kind = MSG_COMMAND_FILES, .u.files = *files};
    msg_command_fini(&w->list);
    free(w->by_hash);
    msg_command_copy(&w->list, &borrowed);
    w->by_hash = sorted(&w->list.u.files, compare_hashes);
    e = find_missing(w, missing, d);
    if (e == ERR_OK && missing->count == 0)
        e = put_all(w, d);
    if (e == ERR_NOT_FOUND) { /* a blob was damaged on the disk and is gone: it has to be sent again */
        e = find_missing(w, missing, NULL);
        if (e == ERR_OK && missing->count == 0)
            e = ERR_IO; /* then it was something else: `d` has it */
    }
    return e;
}

enum err workspace_take_chunk(struct workspace *w, const struct msg_chunk *chunk, struct err_detail *d)
{
    struct msg_file wanted;
    memcpy(wanted.hash, chunk->hash, sizeof wanted.hash);
    const struct msg_file *key = &wanted;
    size_t count = w->list.u.files.count;
    const struct msg_file **found =
        count > 0 ? bsearch(&key, w->by_hash, count, sizeof(const struct msg_file *), compare_hashes) : NULL;
    if (found == NULL)
        return err_set(d, ERR_DENIED, "a piece of a file that is not on the job's list");
    if (chunk->data.len > LIMIT_CHUNK_BYTES)
        return err_set(d, ERR_TOO_BIG, "a piece of %zu bytes: at most %u", chunk->data.len,
                       LIMIT_CHUNK_BYTES);
    uint64_t size = (*found)->size_bytes;
    bool was_whole = blobs_have(w->blobs, chunk->hash, size) == size;
    uint64_t have = 0;
    enum err e =
        blobs_write(w->blobs, chunk->hash, size, chunk->offset, chunk->data.data, chunk->data.len, &have, d);
    if (e != ERR_OK || have != size || was_whole)
        return e;
    for (size_t i = 0; i < count; i++) /* was it the last one that was missing? */
        if (blobs_have(w->blobs, w->by_hash[i]->hash, w->by_hash[i]->size_bytes) != w->by_hash[i]->size_bytes)
            return ERR_OK;
    return put_all(w, d);
}
