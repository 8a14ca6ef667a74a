/* What operators ask: submit, send files, watch, ask. Slow parts run at the worker's. */
#include "common/blobs.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/mem.h"
#include "controller/daemon/server_inner.h"
#include "controller/job/job_pins.h"
#include "controller/report/report.h"
#include "controller/run/run.h"
#include "controller/view/hosts.h"
#include "controller/view/status.h"
#include "controller/view/tokens.h"

#include <inttypes.h>

struct operator_work {
    struct server *server;
    uint64_t peer; /* id */
    char *who;     /* for log and history */
    char *serial;  /* of its certificate, "" over ipc */
    bool own;      /* it revoked the certificate that it asked with */
    void (*work)(struct store *store, void *arg);
    struct link_request *request;
    struct msg question;                     /* a copy */
    void (*answer)(struct operator_work *w); /* on the loop, when all went well */
    enum err err;
    struct err_detail detail;
    /* Results, by what was asked. */
    struct job_spec *spec; /* to be made alive */
    struct msg_files_missing missing;
    uint64_t have_bytes;
    struct store_job job;
    struct msg_strings lines;
    struct msg_strings waits; /* taken when the question came */
    char *id;                 /* whole, of the job that was asked about; NULL: none was named */
    char *text;
    size_t text_len;
    struct spill *spill; /* of a report as JSON, which may be longer than memory should be */
};

static void work_free(struct operator_work *w)
{
    msg_fini(&w->question);
    job_spec_free(w->spec);
    free(w->missing.items);
    store_job_fini(&w->job);
    mem_free_strings(&w->lines.items, &w->lines.count);
    mem_free_strings(&w->waits.items, &w->waits.count);
    free(w->id);
    free(w->text);
    spill_free(w->spill);
    free(w->who);
    free(w->serial);
    free(w);
}

/* The question keeps what was typed: the pieces of a long answer are asked for with the same. */
static enum err name_job(struct operator_work *w, struct store *store, const char *typed,
                         struct err_detail *d)
{
    return msg_text(typed)[0] != '\0' ? store_find_job(store, typed, &w->id, d) : ERR_OK;
}

/* ---- SUBMIT --------------------------------------------------------------------------------------- */

static enum err find_missing(struct operator_work *w, const struct msg_files *files, struct err_detail *d)
{
    struct blobs *blobs = NULL;
    enum err e = blobs_open(w->server->blob_dir, w->server->o.blob_bytes_max, &blobs, d);
    if (e != ERR_OK)
        return e;
    w->missing.items = mem_zalloc(files->count + 1, sizeof *w->missing.items);
    for (size_t i = 0; i < files->count; i++) {
        uint64_t have = blobs_have(blobs, files->items[i].hash, files->items[i].size_bytes);
        /* Of an empty file blobs_have cannot say whether it is there: it is written in any case. */
        if (files->items[i].size_bytes == 0) {
            e = blobs_write(blobs, files->items[i].hash, 0, 0, "", 0, &have, d);
            if (e != ERR_OK)
                break;
            continue;
        }
        if (have == files->items[i].size_bytes)
            continue;
        struct msg_missing *m = &w->missing.items[w->missing.count++];
        memcpy(m->hash, files->items[i].hash, MSG_HASH_BYTES);
        m->have_bytes = have;
    }
    blobs_free(blobs);
    return e;
}

/* True when the same job stands in the store already: the answer to its first SUBMIT was lost. */
static bool is_repeated(struct store *store, const struct job_spec *spec, enum err *e, struct err_detail *d)
{
    struct store_job old = {0};
    *e = store_get_job(store, spec->id, &old, d);
    if (*e == ERR_NOT_FOUND) {
        *e = ERR_OK;
        return false;
    }
    bool same = *e == ERR_OK && old.mode == spec->mode && strcmp(old.nonce, spec->nonce) == 0 &&
                strcmp(old.experiment_json, spec->experiment->resolved_json) == 0;
    if (*e == ERR_OK && !same)
        *e = err_set(d, ERR_EXISTS, "there is another job '%s' already; choose another id", spec->id);
    store_job_fini(&old);
    return same;
}

static enum err submit(struct operator_work *w, struct store *store, struct err_detail *d)
{
    struct job_spec *spec = NULL;
    struct store_job row;
    const struct msg_submit *m = &w->question.u.submit;
    enum err e = job_spec_from_submit(m, &spec, d);
    if (e != ERR_OK)
        return e;
    if (is_repeated(store, spec, &e, d) || e != ERR_OK)
        goto out;
    e = find_missing(w, &spec->files, d);
    if (e != ERR_OK || w->missing.count > 0)
        goto out;
    e = job_spec_store_files(spec, w->server->o.state_dir, d);
    if (e != ERR_OK)
        goto out;
    job_spec_row(spec, &row);
    e = store_add_job(store, &row, d);
    if (e == ERR_OK) {
        w->spec = spec;
        spec = NULL;
    }
out:
    job_spec_free(spec);
    return e;
}

static void work_submit(struct store *store, void *arg)
{
    struct operator_work *w = arg;
    w->err = submit(w, store, &w->detail);
}

static void answer_submit(struct operator_work *w)
{
    struct msg m;
    msg_init(&m, MSG_SUBMITTED);
    m.u.submitted.missing = w->missing;
    link_answer(&w->request, &m);
}

/* ---- BLOB ----------------------------------------------------------------------------------------- */

/* What queued and running jobs need stays, what may be resumed goes last. Who needs what is read only when it
 * matters: it takes a file for each job. */
static enum err make_room(struct operator_work *w, struct store *store, struct blobs *blobs,
                          struct err_detail *d)
{
    struct job_pins pins = {0};
    uint64_t more_bytes = w->question.u.blob.size_bytes;
    if (blobs_have_room(blobs, more_bytes))
        return ERR_OK;
    enum err e = job_pins_read(store, w->server->o.state_dir, &pins, d);
    if (e != ERR_OK)
        return e;
    struct blobs_wanted wanted = job_pins_wanted(&pins);
    e = blobs_make_room(blobs, &wanted, more_bytes, d);
    job_pins_fini(&pins);
    return e;
}

static enum err take_blob(struct operator_work *w, struct store *store, struct err_detail *d)
{
    const struct msg_blob *m = &w->question.u.blob;
    struct blobs *blobs = NULL;
    if (m->size_bytes > LIMIT_FILE_BYTES)
        return err_set(d, ERR_TOO_BIG, "a file may have %llu bytes", LIMIT_FILE_BYTES);
    enum err e = blobs_open(w->server->blob_dir, w->server->o.blob_bytes_max, &blobs, d);
    if (e != ERR_OK)
        return e;
    if (m->offset == 0)
        e = make_room(w, store, blobs, d);
    if (e == ERR_OK)
        e = blobs_write(blobs, m->hash, m->size_bytes, m->offset, m->data.data, m->data.len, &w->have_bytes,
                        d);
    blobs_free(blobs);
    return e;
}

static void work_blob(struct store *store, void *arg)
{
    struct operator_work *w = arg;
    w->err = take_blob(w, store, &w->detail);
}

static void answer_blob(struct operator_work *w)
{
    struct msg m;
    msg_init(&m, MSG_BLOB_TAKEN);
    m.u.blob_taken.have_bytes = w->have_bytes;
    link_answer(&w->request, &m);
}

/* ---- WATCH ---------------------------------------------------------------------------------------- */

static void work_watch(struct store *store, void *arg)
{
    struct operator_work *w = arg;
    const struct msg_watch *m = &w->question.u.watch;
    /* The state first: a job that has ended has said all its lines. */
    w->err = name_job(w, store, m->job, &w->detail);
    if (w->err == ERR_OK)
        w->err = store_get_job(store, msg_text(w->id), &w->job, &w->detail);
    if (w->err == ERR_OK)
        w->err = store_get_lines(store, w->job.id, m->after_line, MSG_LINES_MAX, &w->lines, &w->detail);
}

static void answer_watch(struct operator_work *w)
{
    struct msg m;
    const struct store_job *job = &w->job;
    struct job_look look;
    bool live = job_table_look(w->server->jobs, job->id, &look);
    const struct run_outcome *end = look.unstored;
    bool waits = job->state == STORE_JOB_QUEUED && look.waits != NULL;
    const char *cause = end != NULL ? end->cause : waits ? look.waits : job->cause;
    msg_init(&m, MSG_WATCHED);
    m.u.watched =
        (struct msg_watched){.state = mem_strdup(store_job_state_name(end != NULL ? end->state : job->state)),
                             .cause = mem_strdup(msg_text(cause)),
                             .exit_code = end != NULL ? end->exit_code : job->exit_code,
                             .windows_done = job->windows_done,
                             .windows_total = job->windows_total,
                             .doing = live ? mem_strdup(look.view->doing) : NULL,
                             .remaining_ns = live ? channel_view_left_ns(look.view, clock_now_ns()) : 0,
                             .ok_per_s = live ? look.view->ok_per_s : 0,
                             .next_line = w->question.u.watch.after_line + w->lines.count,
                             .lines = w->lines,
                             .job = mem_strdup(job->id)};
    w->lines = (struct msg_strings){0};
    link_answer(&w->request, &m);
    msg_fini(&m);
}

/* ---- RESUME --------------------------------------------------------------------------------------- */

/* The job's files were kept as long as there was room. Better now than when its hosts are taken. */
static enum err check_files(struct operator_work *w, const struct job_spec *spec, struct err_detail *d)
{
    enum err e = find_missing(w, &spec->files, d);
    if (e != ERR_OK || w->missing.count == 0)
        return e;
    const char *path = "";
    for (size_t i = 0; i < spec->files.count; i++)
        if (memcmp(spec->files.items[i].hash, w->missing.items[0].hash, MSG_HASH_BYTES) == 0)
            path = spec->files.items[i].path;
    return err_set(
        d, ERR_NOT_NOW,
        "%zu of the %zu files of job '%s' %s no longer here, as the job had them (%s): room was made "
        "for other jobs. Name its experiment to send them again: 'splitbench resume %s FILE'",
        w->missing.count, spec->files.count, spec->id, w->missing.count == 1 ? "is" : "are", path, spec->id);
}

static enum err resume(struct operator_work *w, struct store *store, struct err_detail *d)
{
    struct job_spec *spec = NULL;
    const char *id = w->id;
    if (id == NULL)
        return err_set(d, ERR_INVALID, "say which job is to be resumed");
    enum err e = store_get_job(store, id, &w->job, d);
    if (e != ERR_OK)
        return e;
    if (w->job.state != STORE_JOB_FAILED && w->job.state != STORE_JOB_CANCELLED)
        return err_set(d, ERR_NOT_NOW, "job '%s' is %s; only a failed or cancelled one can be resumed", id,
                       store_job_state_name(w->job.state));
    e = job_spec_from_store(&w->job, w->server->o.state_dir, &spec, d);
    if (e != ERR_OK)
        return e;
    e = check_files(w, spec, d);
    if (e == ERR_OK)
        e = store_set_job_state(store, id, STORE_JOB_QUEUED, "", 0, d);
    if (e == ERR_OK) {
        w->spec = spec;
        spec = NULL;
    }
    job_spec_free(spec);
    return e;
}

/* ---- TOKEN, REVOKE -------------------------------------------------------------------------------- */

static enum err token(struct operator_work *w, struct store *store, struct buf *out, struct err_detail *d)
{
    const struct msg_ask *m = &w->question.u.ask;
    char *text = NULL;
    if (strcmp(msg_text(m->arg), MSG_TOKEN_LIST) == 0)
        return tokens_write_json(store, out, d);
    enum err e = server_make_token(w->server, store, w->who, msg_text(m->arg), m->number, &text, d);
    if (e == ERR_OK)
        e = buf_append_text(out, text);
    free(text);
    return e;
}

/* What came of it, in a sentence. */
static enum err say_revoked(const char *name, bool own, const struct store_revoked *r, struct buf *out)
{
    enum err e = buf_printf(
        out, "%s %s%s", name, r->certificates != 0 ? "is refused from now on" : "never had a certificate",
        own ? "; it is the certificate that this was asked with, and the last answer to it" : "");
    if (e == ERR_OK && r->tokens != 0)
        e = buf_printf(out, "; %" PRIu32 " unused token%s of its making cannot be used any more", r->tokens,
                       r->tokens == 1 ? "" : "s");
    for (size_t i = 0; e == ERR_OK && i < r->enrolled.count; i++)
        e = buf_printf(out, "%s%s", i == 0 ? "\nstill in, with earlier tokens of its making: " : ", ",
                       r->enrolled.items[i]);
    if (e == ERR_OK && r->enrolled.count == STORE_REVOKED_NAMES_MAX)
        e = buf_append_text(out, " and perhaps others (`splitbench token --list`)");
    return e;
}

static enum err revoke_name(struct operator_work *w, struct store *store, struct buf *out,
                            struct err_detail *d)
{
    const char *name = msg_text(w->question.u.ask.arg);
    struct store_revoked r;
    enum err e = store_revoke(store, name, &r, d);
    if (e != ERR_OK)
        return e;
    w->own = w->serial[0] != '\0' && strcmp(w->who, name) == 0;
    e = say_revoked(name, w->own, &r, out);
    mem_free_strings(&r.enrolled.items, &r.enrolled.count);
    return e;
}

/* ---- ASK ------------------------------------------------------------------------------------------ */

static enum err spill_piece(void *arg, const char *data, size_t len, struct err_detail *d)
{
    return spill_write(arg, data, len, d);
}

static enum err write_json(struct operator_work *w, const struct report *report, struct err_detail *d)
{
    enum err e = spill_new(w->server->o.state_dir, &w->spill, d);
    if (e == ERR_OK)
        e = report_write_json(report, &(struct report_sink){.write = spill_piece, .arg = w->spill}, d);
    if (e == ERR_OK)
        e = spill_read(w->spill, w->question.u.ask.offset, LIMIT_CHUNK_BYTES, &w->text, d);
    return e;
}

static enum err write_report(struct operator_work *w, struct store *store, struct buf *out,
                             struct err_detail *d)
{
    const struct msg_ask *m = &w->question.u.ask;
    struct report *report = NULL;
    enum err e = report_build(store, msg_text(w->id), &report, d);
    if (e != ERR_OK)
        return e;
    unsigned width = m->number >= 80 && m->number <= 1000 ? (unsigned)m->number : 80;
    if (m->kind == MSG_ASK_REPORT_JSON)
        e = write_json(w, report, d);
    else if ((e = report_write_text(report, width, out)) == ERR_TOO_BIG)
        err_set(d, e, "the report as text is larger than %u bytes: ask for it with --json",
                LIMIT_ANSWER_BYTES);
    else if (e != ERR_OK)
        err_set(d, e, "the report cannot be written: %s", err_text(e));
    report_free(report);
    return e;
}

static enum err ask(struct operator_work *w, struct store *store, struct buf *out, struct err_detail *d)
{
    const struct msg_ask *m = &w->question.u.ask;
    enum err e = name_job(w, store, m->job, d);
    if (e != ERR_OK)
        return e;
    switch (m->kind) {
    case MSG_ASK_STATUS:
        return status_write_json(store, msg_text(w->id), &w->waits, out, d);
    case MSG_ASK_REPORT_JSON:
    case MSG_ASK_REPORT_TEXT:
        return write_report(w, store, out, d);
    case MSG_ASK_RESUME:
        e = resume(w, store, d);
        return e == ERR_OK ? buf_append_text(out, w->id) : e;
    case MSG_ASK_TOKEN:
        return token(w, store, out, d);
    case MSG_ASK_REVOKE:
        return revoke_name(w, store, out, d);
    case MSG_ASK_CANCEL: /* the loop does it, which has the id now */
        return ERR_OK;
    case MSG_ASK_HOSTS:
    case MSG_ASK_COUNT:
        break;
    }
    return err_set(d, ERR_UNSUPPORTED, "this is not asked of the store");
}

static void work_ask(struct store *store, void *arg)
{
    struct operator_work *w = arg;
    struct buf out;
    buf_init(&out, LIMIT_ANSWER_BYTES);
    w->err = ask(w, store, &out, &w->detail);
    if (w->spill == NULL) {
        w->text_len = out.len;
        w->text = buf_take(&out);
    }
    buf_fini(&out);
}

/* A piece of the text; the rest is kept with the peer and read with higher offsets. */
static void answer_piece(struct link_request **request, const char *text, size_t len, uint64_t offset)
{
    struct msg m;
    size_t from = offset < len ? (size_t)offset : len;
    size_t piece = len - from < LIMIT_CHUNK_BYTES ? len - from : LIMIT_CHUNK_BYTES;
    /* Not in the middle of a character. */
    while (piece > 0 && from + piece < len && ((unsigned char)text[from + piece] & 0xc0) == 0x80)
        piece--;
    msg_init(&m, MSG_ANSWER);
    m.u.answer.text = mem_strndup(text + from, piece);
    m.u.answer.total_bytes = len;
    link_answer(request, &m);
    msg_fini(&m);
}

/* A piece that was read from a long answer's file. */
static void answer_spilled(struct operator_work *w)
{
    struct msg m;
    msg_init(&m, MSG_ANSWER);
    m.u.answer.text = w->text;
    m.u.answer.total_bytes = spill_bytes(w->spill);
    w->text = NULL;
    link_answer(&w->request, &m);
    msg_fini(&m);
}

static void work_piece(struct store *store, void *arg)
{
    struct operator_work *w = arg;
    (void)store;
    w->err = spill_read(w->spill, w->question.u.ask.offset, LIMIT_CHUNK_BYTES, &w->text, &w->detail);
}

static void keep_answer(struct operator_work *w)
{
    const struct msg_ask *m = &w->question.u.ask;
    struct server_peer *peer = server_find_peer(w->server, w->peer);
    size_t len = w->spill != NULL ? (size_t)spill_bytes(w->spill) : w->text_len;
    if (peer == NULL || len <= LIMIT_CHUNK_BYTES)
        return;
    server_keep_answer(peer, &(struct server_answer){.kind = m->kind,
                                                     .job = mem_strdup(msg_text(m->job)),
                                                     .arg = mem_strdup(msg_text(m->arg)),
                                                     .text = w->text,
                                                     .spill = w->spill,
                                                     .len = len});
    w->text = NULL;
    w->spill = NULL;
}

static void answer_ask(struct operator_work *w)
{
    const struct msg_ask *m = &w->question.u.ask;
    if (m->kind == MSG_ASK_REVOKE) {
        log_info("revoked", "name=%s by=%s", msg_text(m->arg), w->who);
        char cause[512];
        snprintf(cause, sizeof cause, "agent '%.200s' was revoked by '%.200s'", msg_text(m->arg), w->who);
        fleet_revoke(w->server->fleet, msg_text(m->arg), cause);
    }
    if (w->spill != NULL)
        answer_spilled(w);
    else
        answer_piece(&w->request, w->text, w->text_len, m->offset);
    if (m->kind == MSG_ASK_REVOKE)
        server_drop_peers(w->server, msg_text(m->arg), "its certificate was revoked", w->own ? w->peer : 0);
    keep_answer(w);
}

/* ---- HOSTS and CANCEL: from the loop's own knowledge ---------------------------------------------- */

static void answer_hosts(struct server *s, const struct msg_ask *m, struct link_request **request)
{
    struct buf out;
    buf_init(&out, LIMIT_ANSWER_BYTES);
    enum err e = hosts_write_json(s->fleet, &out);
    if (e == ERR_OK)
        answer_piece(request, out.data, out.len, m->offset);
    else
        link_refuse(request, e, "the list of hosts is too long");
    buf_fini(&out);
}

static void answer_cancel(struct server *s, const char *id, const char *who, struct link_request **request)
{
    struct err_detail d;
    char cause[512];
    snprintf(cause, sizeof cause, "cancelled by '%s'", who);
    enum err e = job_table_cancel(s->jobs, id, cause, &d);
    if (e != ERR_OK) {
        link_refuse(request, e, "%s", d.text);
        return;
    }
    log_info("job_cancel", "job=%s by=%s", id, who);
    answer_piece(request, id, strlen(id), 0);
}

static void answer_cancel_named(struct operator_work *w)
{
    answer_cancel(w->server, msg_text(w->id), w->who, &w->request);
}

/* With a whole id nobody waits for the worker, which may be writing a long report. */
static bool is_alive(const struct server *s, const char *id)
{
    struct job_look look;
    return job_table_look(s->jobs, id, &look);
}

/* ---- all of them ---------------------------------------------------------------------------------- */

static void on_work_done(void *arg)
{
    struct operator_work *w = arg;
    if (w->spec != NULL) { /* only when all went well */
        log_info(w->question.kind == MSG_SUBMIT ? "job_queued" : "job_resumed", "job=%s by=%s", w->spec->id,
                 w->who);
        w->err = job_table_add(w->server->jobs, &w->spec, &w->detail);
    }
    if (w->err == ERR_OK)
        w->answer(w);
    else
        link_refuse(&w->request, w->err, "%s", w->detail.text);
    work_free(w);
}

/* What waited behind a revocation of its own sender comes too late. */
static void work_if_welcome(struct store *store, void *arg)
{
    struct operator_work *w = arg;
    bool revoked = false;
    w->err = w->serial[0] != '\0' ? store_is_revoked(store, w->serial, &revoked, &w->detail) : ERR_OK;
    if (w->err == ERR_OK && revoked)
        w->err = err_set(&w->detail, ERR_DENIED,
                         "the certificate of '%s' was revoked; enroll with a new token", w->who);
    if (w->err == ERR_OK)
        w->work(store, w);
}

static struct operator_work *work_new(struct server *s, const struct server_peer *peer, const struct msg *m,
                                      struct link_request *request, void (*answer)(struct operator_work *w))
{
    struct operator_work *w = mem_zalloc(1, sizeof *w);
    w->server = s;
    w->peer = peer->id;
    w->who = mem_strdup(link_peer_name(peer->link));
    w->serial = mem_strdup(link_peer_serial(peer->link));
    w->request = request;
    w->answer = answer;
    msg_copy(&w->question, m);
    return w;
}

/* Who works on a question: see server_inner.h. */
static struct store_worker *worker_for(const struct server *s, const struct msg *m)
{
    if (m->kind == MSG_WATCH || (m->kind == MSG_ASK && m->u.ask.kind == MSG_ASK_STATUS))
        return s->looks;
    bool report =
        m->kind == MSG_ASK && (m->u.ask.kind == MSG_ASK_REPORT_JSON || m->u.ask.kind == MSG_ASK_REPORT_TEXT);
    return report ? s->reports : s->worker;
}

static void give_to_worker(struct server *s, const struct server_peer *peer, const struct msg *m,
                           struct link_request *request, void (*work)(struct store *store, void *arg),
                           void (*answer)(struct operator_work *w))
{
    struct operator_work *w = work_new(s, peer, m, request, answer);
    if (m->kind == MSG_ASK && m->u.ask.kind == MSG_ASK_STATUS)
        job_table_copy_waits(s->jobs, &w->waits);
    w->work = work;
    store_worker_do(worker_for(s, m), work_if_welcome, on_work_done, w);
}

/* The next piece of a kept answer. */
static void answer_kept(struct server *s, const struct server_peer *peer, const struct msg *m,
                        struct link_request *request)
{
    const struct server_answer *kept = &peer->answer;
    struct operator_work *w = NULL;
    if (kept->spill == NULL) {
        answer_piece(&request, kept->text, kept->len, m->u.ask.offset);
        return;
    }
    w = work_new(s, peer, m, request, answer_spilled);
    w->spill = spill_share(kept->spill);
    if (w->spill != NULL) {
        store_worker_do(s->looks, work_piece, on_work_done, w);
        return;
    }
    link_refuse(&w->request, ERR_BUSY, "the controller has too many files open; ask again");
    work_free(w);
}

static bool is_kept(const struct server_answer *a, const struct msg_ask *m)
{
    return m->offset > 0 && (a->text != NULL || a->spill != NULL) && a->kind == m->kind &&
           strcmp(a->job, msg_text(m->job)) == 0 && strcmp(a->arg, msg_text(m->arg)) == 0;
}

void operator_handle(struct server *s, struct server_peer *peer, const struct msg *m,
                     struct link_request *request)
{
    if (m->kind == MSG_SUBMIT)
        give_to_worker(s, peer, m, request, work_submit, answer_submit);
    else if (m->kind == MSG_BLOB)
        give_to_worker(s, peer, m, request, work_blob, answer_blob);
    else if (m->kind == MSG_WATCH)
        give_to_worker(s, peer, m, request, work_watch, answer_watch);
    else if (m->kind != MSG_ASK)
        link_refuse(&request, ERR_UNSUPPORTED, "operators do not send %s", msg_kind_name(m->kind));
    else if (is_kept(&peer->answer, &m->u.ask))
        answer_kept(s, peer, m, request);
    else if (m->u.ask.kind == MSG_ASK_HOSTS)
        answer_hosts(s, &m->u.ask, &request);
    else if (m->u.ask.kind == MSG_ASK_CANCEL && is_alive(s, msg_text(m->u.ask.job)))
        answer_cancel(s, m->u.ask.job, link_peer_name(peer->link), &request);
    else if (m->u.ask.kind == MSG_ASK_CANCEL)
        give_to_worker(s, peer, m, request, work_ask, answer_cancel_named);
    else
        give_to_worker(s, peer, m, request, work_ask, answer_ask);
}
