/* The hosts of a job: who does what, open, files, close. */
#include "common/blobs.h"
#include "common/clock.h"
#include "common/mem.h"
#include "controller/run/run_inner.h"

#define CHUNKS_OPEN 4u /* on their way to one host at a time */

void run_host_fini(struct run_host *h)
{
    free(h->agent);
    free(h->role);
    free(h->address);
    msg_host_fini(&h->facts);
    *h = (struct run_host){0};
}

static enum store_placement worst(enum store_placement a, enum store_placement b)
{
    return a > b ? a : b; /* the list goes from clean to shared */
}

enum err run_place_target(struct run *r, uint32_t target, struct err_detail *d)
{
    const struct msg_host *load[LIMIT_HOSTS_PER_ROLE];
    const struct experiment_target *t = &r->e->targets[target];
    for (size_t i = 0; i < r->load_count; i++)
        load[i] = &r->o->hosts[r->load_hosts[i]].facts;
    enum err e = placement_make(&r->o->hosts[r->server_host].facts, load, r->load_count, t->cpus, r->cores,
                                &r->placement, d);
    return e == ERR_OK ? ERR_OK : err_prefix(d, e, "target '%s'", t->name);
}

/* The placement that holds for the job as a whole: the worst of its targets'. */
static enum err place_all(struct run *r, enum store_placement *kind, struct err_detail *d)
{
    *kind = STORE_PLACEMENT_SPLIT_HOSTS;
    for (uint32_t t = 0; t < r->e->target_count; t++) {
        enum err e = run_place_target(r, t, d);
        if (e != ERR_OK)
            return e;
        *kind = worst(*kind, r->placement.kind);
    }
    return ERR_OK;
}

/* After the placement: a job with hosts has been placed. */
static enum err store_hosts(struct run *r, struct err_detail *d)
{
    enum err e = ERR_OK;
    for (uint32_t i = 0; e == ERR_OK && i < r->o->host_count; i++) {
        const struct run_host *h = &r->o->hosts[i];
        struct store_host row = {
            .role = h->role, .ordinal = h->ordinal, .agent = h->agent, .facts = &h->facts};
        e = store_put_host(r->store, r->o->job, &row, d);
    }
    return e;
}

enum err run_seat_hosts(struct run *r, struct err_detail *d)
{
    bool has_server = false;
    for (uint32_t i = 0; i < r->o->host_count; i++) {
        const struct run_host *h = &r->o->hosts[i];
        if (strcmp(h->role, "server") == 0) {
            r->server_host = i;
            has_server = true;
        } else if (strcmp(h->role, "load") == 0) {
            must(r->load_count < LIMIT_HOSTS_PER_ROLE);
            r->load_hosts[r->load_count++] = i;
        }
    }
    if (!has_server || r->load_count == 0)
        return err_set(d, ERR_INVALID, "a job needs the roles 'server' and 'load'");
    const struct run_host *server = &r->o->hosts[r->server_host];
    const struct msg_host *load = &r->o->hosts[r->load_hosts[0]].facts;
    if (msg_text(server->facts.address)[0] != '\0')
        r->server_address = server->facts.address;
    else if (placement_same_machine(&server->facts, load) || server->address[0] == '\0')
        r->server_address = "127.0.0.1";
    else
        r->server_address = server->address;
    enum store_placement kind = STORE_PLACEMENT_SHARED;
    enum err e = place_all(r, &kind, d);
    if (e != ERR_OK)
        return e;
    e = store_set_placement(r->store, r->o->job, kind, d);
    if (e == ERR_OK)
        e = store_hosts(r, d);
    if (e != ERR_OK)
        return e;
    return run_say(r, d, "placement %s: server on '%s' (%s), load from '%s'%s", store_placement_name(kind),
                   server->agent, r->server_address, r->o->hosts[r->load_hosts[0]].agent,
                   r->load_count > 1 ? " and others" : "");
}

static enum err refused(const struct run *r, const struct run_reply *reply, struct err_detail *d)
{
    return err_set(d, reply->event.code, "agent '%s' refused to %s: %s", run_agent_name(r, reply->host),
                   reply->what, msg_text(reply->event.text));
}

/* All answers, none of them a refusal. Finis the replies. */
static enum err await_accepted(struct run *r, struct run_reply *replies, size_t count, uint64_t timeout_ns,
                               struct err_detail *d)
{
    enum err e = run_await(r, replies, count, timeout_ns, d);
    for (size_t i = 0; e == ERR_OK && i < count; i++) {
        if (replies[i].event.code != ERR_OK)
            e = refused(r, &replies[i], d);
    }
    run_replies_fini(replies, count);
    return e;
}

enum err run_open_hosts(struct run *r, struct err_detail *d)
{
    size_t count = r->o->host_count;
    struct run_reply *replies = mem_zalloc(count, sizeof *replies);
    for (uint32_t i = 0; i < count; i++) {
        struct msg_command c = {.kind = MSG_COMMAND_JOB_OPEN};
        c.u.job_open.role = r->o->hosts[i].role;
        c.u.job_open.workspace = i == r->server_host; /* its programs run there, files or not */
        run_ask(r, i, &c, "open the job", &replies[i]);
    }
    enum err e = await_accepted(r, replies, count, RUN_COMMAND_NS, d);
    free(replies);
    return e;
}

void run_close_hosts(struct run *r, uint64_t timeout_ns)
{
    size_t count = r->o->host_count;
    struct run_reply *replies = mem_zalloc(count, sizeof *replies);
    channel_ignore_failure(r->channel);
    for (uint32_t i = 0; i < count; i++) {
        struct msg_command c = {.kind = MSG_COMMAND_JOB_CLOSE};
        run_ask(r, i, &c, "close the job", &replies[i]);
    }
    /* A host that does not answer frees itself when its lease ends; the fleet keeps it reserved until then.
     */
    enum err e = run_await(r, replies, count, timeout_ns, NULL);
    (void)e;
    run_replies_fini(replies, count);
    free(replies);
}

/* ---- files ---------------------------------------------------------------------------------------- */

static const struct msg_file *file_of(const struct run *r, const uint8_t hash[MSG_HASH_BYTES])
{
    for (size_t i = 0; i < r->o->files->count; i++) {
        if (memcmp(r->o->files->items[i].hash, hash, MSG_HASH_BYTES) == 0)
            return &r->o->files->items[i];
    }
    return NULL;
}

/* The next piece of a file from the controller's own copies. */
static enum err read_piece(struct blobs *blobs, const struct msg_file *file, uint64_t offset,
                           struct msg_bytes *out, struct err_detail *d)
{
    uint64_t left = file->size_bytes - offset;
    size_t len = left < LIMIT_CHUNK_BYTES ? (size_t)left : LIMIT_CHUNK_BYTES;
    out->data = mem_alloc(len + 1);
    out->len = len;
    enum err e = blobs_read(blobs, file->hash, offset, out->data, len, d);
    if (e == ERR_OK)
        return ERR_OK;
    free(out->data);
    *out = (struct msg_bytes){0};
    return err_prefix(d, e, "file '%s' cannot be read from the controller's copies; submit the job again",
                      file->path);
}

static enum err send_file(struct run *r, struct blobs *blobs, uint32_t host,
                          const struct msg_missing *missing, struct err_detail *d)
{
    struct run_reply open[CHUNKS_OPEN];
    size_t count = 0;
    const struct msg_file *file = file_of(r, missing->hash);
    if (file == NULL || missing->have_bytes > file->size_bytes)
        return err_set(d, ERR_INVALID, "agent '%s' asks for a file that is not of this job",
                       run_agent_name(r, host));
    uint64_t offset = missing->have_bytes;
    do {
        struct msg_command c = {.kind = MSG_COMMAND_CHUNK};
        memcpy(c.u.chunk.hash, file->hash, MSG_HASH_BYTES);
        c.u.chunk.offset = offset;
        enum err e = read_piece(blobs, file, offset, &c.u.chunk.data, d);
        if (e == ERR_OK) {
            offset += c.u.chunk.data.len;
            run_ask(r, host, &c, "take a file", &open[count++]);
            free(c.u.chunk.data.data);
        }
        if (e == ERR_OK && count == CHUNKS_OPEN) {
            e = await_accepted(r, open, count, RUN_TRANSFER_NS, d);
            count = 0;
        }
        if (e != ERR_OK)
            return e; /* what is open has no answer yet, so nothing to free */
    } while (offset < file->size_bytes);
    return await_accepted(r, open, count, RUN_TRANSFER_NS, d);
}

/* A host got something else than it was promised: when our copy is damaged it is removed, so that the next
 * SUBMIT brings it anew; else every job with this file would fail. */
static enum err blame_own_copy(struct blobs *blobs, const struct msg_file *file, struct err_detail *d)
{
    struct err_detail why;
    if (blobs_check(blobs, file->hash, &why) != ERR_NOT_FOUND)
        return ERR_INVALID; /* with what the host said */
    return err_set(d, ERR_NOT_FOUND, "file '%s' of the controller's copies: %s; submit the job again",
                   file->path, why.text);
}

static enum err send_files_to(struct run *r, struct blobs *blobs, uint32_t host, struct err_detail *d)
{
    struct run_reply reply;
    struct msg_command c = {.kind = MSG_COMMAND_FILES, .u.files = *r->o->files};
    enum err e = run_ask_one(r, host, &c, "list its files", RUN_TRANSFER_NS, &reply, d);
    if (e == ERR_OK && (reply.event.code != ERR_OK || reply.event.kind != MSG_EVENT_FILES))
        e = refused(r, &reply, d);
    uint64_t bytes = 0;
    for (size_t i = 0; e == ERR_OK && i < reply.event.u.files.count; i++) {
        const struct msg_file *f = file_of(r, reply.event.u.files.items[i].hash);
        run_doing(r, 0, design_remaining_ns(r->e, r->design, 0), "files %zu/%zu to '%s'", i + 1,
                  reply.event.u.files.count, run_agent_name(r, host));
        e = send_file(r, blobs, host, &reply.event.u.files.items[i], d);
        if (e == ERR_INVALID && f != NULL)
            e = blame_own_copy(blobs, f, d);
        bytes += f ? f->size_bytes - reply.event.u.files.items[i].have_bytes : 0;
    }
    if (e == ERR_OK && reply.event.u.files.count == 0)
        e = run_say(r, d, "files: %zu, all at '%s' already", r->o->files->count, run_agent_name(r, host));
    else if (e == ERR_OK)
        e = run_say(r, d, "files: %zu of %zu sent to '%s', %llu bytes", reply.event.u.files.count,
                    r->o->files->count, run_agent_name(r, host), (unsigned long long)bytes);
    run_reply_fini(&reply);
    return e;
}

enum err run_send_files(struct run *r, struct err_detail *d)
{
    struct blobs *blobs = NULL;
    if (r->o->files->count == 0)
        return ERR_OK;
    enum err e = blobs_open(r->o->blob_dir, UINT64_MAX, &blobs, d);
    if (e != ERR_OK)
        return e;
    e = send_files_to(r, blobs, r->server_host, d);
    blobs_free(blobs);
    return e;
}
