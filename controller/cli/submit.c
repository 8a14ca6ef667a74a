#include "controller/cli/submit.h"

#include "common/clock.h"
#include "common/mem.h"
#include "controller/experiment/files.h"
#include "proto/identity/identity.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ANSWER_LIMIT_NS (30 * NS_PER_S)
#define PASSES_MAX      16u /* submit again after each round of uploads; files may change under us */

#define TAIL_CHARS 13u /* of five random bits each */

void submit_make_job_id(char out[SUBMIT_JOB_BYTES])
{
    static const char digits[] = "0123456789abcdefghjkmnpqrstvwxyz"; /* none is taken for another */
    uint8_t random[TAIL_CHARS];
    struct tm tm;
    time_t now = (time_t)(clock_wall_ns() / NS_PER_S);
    identity_random(random, sizeof random);
    must(gmtime_r(&now, &tm) != NULL);
    size_t n = strftime(out, SUBMIT_JOB_BYTES, "%Y%m%d-%H%M%S-", &tm);
    must(n + TAIL_CHARS < SUBMIT_JOB_BYTES);
    for (size_t i = 0; i < TAIL_CHARS; i++)
        out[n++] = digits[random[i] & 31];
    out[n] = '\0';
}

static char *make_nonce(void)
{
    uint64_t bits[2];
    identity_random(bits, sizeof bits);
    return mem_printf("%016" PRIx64 "%016" PRIx64, bits[0], bits[1]);
}

struct missing {
    struct msg_missing *items;
    size_t count;
    bool bad;
};

static void take_submitted(void *arg, const struct msg *reply)
{
    struct missing *missing = arg;
    missing->bad = reply->kind != MSG_SUBMITTED;
    if (missing->bad)
        return;
    const struct msg_files_missing *from = &reply->u.submitted.missing;
    missing->count = from->count;
    missing->items = mem_dup(from->items, from->count * sizeof *from->items);
}

static void take_blob_taken(void *arg, const struct msg *reply)
{
    *(uint64_t *)arg = reply->kind == MSG_BLOB_TAKEN ? reply->u.blob_taken.have_bytes : 0;
}

static enum err send_piece(struct client *client, const struct msg_file *file, int fd, uint64_t *offset,
                           struct err_detail *d)
{
    struct msg m;
    msg_init(&m, MSG_BLOB);
    memcpy(m.u.blob.hash, file->hash, sizeof m.u.blob.hash);
    m.u.blob.offset = *offset;
    m.u.blob.size_bytes = file->size_bytes;
    uint64_t left = file->size_bytes - *offset;
    size_t want = left < LIMIT_CHUNK_BYTES ? (size_t)left : LIMIT_CHUNK_BYTES;
    m.u.blob.data.data = mem_alloc(want);
    ssize_t n = pread(fd, m.u.blob.data.data, want, (off_t)*offset);
    m.u.blob.data.len = n > 0 ? (size_t)n : 0;
    uint64_t have = 0;
    enum err e = ERR_OK;
    if (n < 0 || ((size_t)n < want))
        e = err_set(d, ERR_IO, "cannot read %s at byte %" PRIu64 ": %s", file->path, *offset,
                    n < 0 ? strerror(errno) : "it became shorter while it was sent");
    else
        e = client_call(client, &m, ANSWER_LIMIT_NS, take_blob_taken, &have, d);
    msg_fini(&m);
    if (e == ERR_OK && have <= *offset && file->size_bytes != 0)
        e = err_set(d, ERR_FAILED, "the controller did not take %s (it changed while it was sent?)",
                    file->path);
    *offset = have;
    return e;
}

static enum err send_file(struct client *client, const char *base_dir, const struct msg_file *file,
                          uint64_t offset, struct err_detail *d)
{
    int fd = -1;
    enum err e = files_open(base_dir, file->path, &fd, d);
    do {
        if (e == ERR_OK)
            e = send_piece(client, file, fd, &offset, d);
    } while (e == ERR_OK && offset < file->size_bytes);
    if (fd >= 0)
        close(fd);
    return e;
}

static enum err send_missing(struct client *client, const struct experiment *e, const struct msg_files *files,
                             const struct missing *missing, struct err_detail *d)
{
    for (size_t i = 0; i < missing->count; i++) {
        const struct msg_missing *want = &missing->items[i];
        const struct msg_file *file = NULL;
        for (size_t k = 0; file == NULL && k < files->count; k++)
            if (memcmp(files->items[k].hash, want->hash, MSG_HASH_BYTES) == 0)
                file = &files->items[k];
        if (file == NULL || want->have_bytes > file->size_bytes)
            return err_set(d, ERR_INVALID,
                           "the controller asks for a file that is not part of this experiment");
        enum err err = send_file(client, e->base_dir, file, want->have_bytes, d);
        if (err != ERR_OK)
            return err;
    }
    return ERR_OK;
}

enum err submit_files(struct client *client, const struct experiment *e, struct err_detail *d)
{
    struct msg_files files = {0};
    enum err err = files_collect(e, &files, d);
    for (size_t i = 0; err == ERR_OK && i < files.count; i++)
        err = send_file(client, e->base_dir, &files.items[i], 0, d);
    msg_files_fini(&files);
    return err;
}

enum err submit_experiment(struct client *client, const struct submit *s, struct err_detail *d)
{
    const struct experiment *e = s->experiment;
    struct msg m;
    msg_init(&m, MSG_SUBMIT);
    mem_set_string(&m.u.submit.job, s->job);
    mem_set_string(&m.u.submit.experiment, e->resolved_json);
    mem_set_string(&m.u.submit.base_dir, s->here ? e->base_dir : "");
    m.u.submit.mode = s->mode;
    m.u.submit.nonce = make_nonce(); /* once: what is sent again is the same submission */
    enum err err = s->here ? ERR_OK : files_collect(e, &m.u.submit.files, d);
    bool whole = false;
    for (unsigned pass = 0; err == ERR_OK && !whole; pass++) {
        struct missing missing = {0};
        err = client_call(client, &m, ANSWER_LIMIT_NS, take_submitted, &missing, d);
        if (err == ERR_OK && (missing.bad || pass == PASSES_MAX))
            err = err_set(d, ERR_FAILED,
                          "the controller keeps asking for files; do they change while they are sent?");
        whole = err == ERR_OK && missing.count == 0;
        if (err == ERR_OK && !whole)
            err = send_missing(client, e, &m.u.submit.files, &missing, d);
        free(missing.items);
    }
    msg_fini(&m);
    return err;
}
