#include "agent/uplink/outbox.h"

#include "agent/uplink/spool.h"
#include "common/buf.h"
#include "common/log.h"
#include "common/mem.h"
#include "proto/msg/codec.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct kept { /* an event in memory, encoded */
    uint64_t number;
    bool tick;
    size_t len;
    uint8_t *data;
};

struct outbox {
    struct spool *spool;
    uint64_t incarnation;
    uint64_t last_number;
    struct kept *kept; /* rising numbers */
    size_t count;
    size_t cap;
    size_t ticks;
    uint64_t memory_bytes;
    bool spool_failing; /* said so in the log */
};

enum err outbox_new(const struct outbox_options *options, struct outbox **out, struct err_detail *d)
{
    must(options->incarnation != 0);
    struct outbox *box = mem_zalloc(1, sizeof *box);
    box->incarnation = options->incarnation;
    enum err e =
        spool_new(&(struct spool_options){.dir = options->spool_dir, .bytes_max = options->spool_bytes_max},
                  &box->spool, d);
    if (e != ERR_OK) {
        outbox_free(box);
        return e;
    }
    if (spool_damaged_bytes(box->spool) > 0)
        log_warn("spool_damaged", "bytes=%" PRIu64 " results_kept=%zu", spool_damaged_bytes(box->spool),
                 spool_count(box->spool));
    else if (spool_count(box->spool) > 0)
        log_info("spool_found", "results=%zu", spool_count(box->spool));
    *out = box;
    return ERR_OK;
}

static void kept_remove(struct outbox *box, size_t index)
{
    struct kept *k = &box->kept[index];
    box->memory_bytes -= k->len;
    box->ticks -= k->tick;
    free(k->data);
    memmove(k, k + 1, (--box->count - index) * sizeof *k);
}

void outbox_free(struct outbox *box)
{
    if (box == NULL)
        return;
    while (box->count > 0)
        kept_remove(box, box->count - 1);
    free(box->kept);
    spool_free(box->spool);
    free(box);
}

/* An event as the bytes of a push that holds it alone. */
static enum err event_encode(const struct msg_event *event, struct buf *out, struct err_detail *d)
{
    struct msg_event copy = *event; /* shallow: only read */
    struct msg m;
    msg_init(&m, MSG_PUSH);
    m.u.push.items = &copy;
    m.u.push.count = 1;
    return codec_encode(&m, out, d);
}

static enum err event_decode(const void *data, size_t len, struct msg_event *out, struct err_detail *d)
{
    struct msg m;
    enum err e = codec_decode(data, len, &m, d);
    if (e != ERR_OK)
        return e;
    if (m.kind != MSG_PUSH || m.u.push.count != 1) {
        msg_fini(&m);
        return err_set(d, ERR_INVALID, "not an event");
    }
    *out = m.u.push.items[0];
    m.u.push.items[0] = (struct msg_event){0};
    msg_fini(&m);
    return ERR_OK;
}

static bool is_tick(const struct msg_event *event)
{
    return event->kind == MSG_EVENT_PROGRESS && event->u.progress.kind == MSG_PROGRESS_TICK;
}

/* Worth having after this program has ended: the numbers, and the logs that explain them. */
static bool is_result(const struct msg_event *event)
{
    return event->kind == MSG_EVENT_EXITED || event->kind == MSG_EVENT_CHECKED ||
           event->kind == MSG_EVENT_LOADED;
}

static void kept_add(struct outbox *box, uint64_t number, bool tick, struct buf *bytes)
{
    if (tick && box->ticks == OUTBOX_TICKS_MAX) {
        size_t oldest = 0;
        while (!box->kept[oldest].tick)
            oldest++;
        kept_remove(box, oldest);
    }
    if (box->count == box->cap) {
        box->cap = box->cap == 0 ? 16 : box->cap * 2;
        box->kept = mem_realloc(box->kept, box->cap, sizeof *box->kept);
    }
    size_t len = bytes->len;
    box->kept[box->count++] =
        (struct kept){.number = number, .tick = tick, .len = len, .data = (uint8_t *)buf_take(bytes)};
    box->memory_bytes += len;
    box->ticks += tick;
}

/* What is sent when the event itself can be neither kept nor sent. Small, so it always fits. */
static void add_replacement(struct outbox *box, const struct msg_event *event, uint64_t number, enum err code,
                            const char *why)
{
    log_error("result_lost", "job=%s event=%s answers=%" PRIu64 " why=\"%s\"", msg_text(event->job),
              msg_event_name(event->kind), event->answers, why);
    struct msg_event small = {
        .number = number, .answers = event->answers, .job = event->job, .kind = MSG_EVENT_DONE, .code = code};
    small.text = mem_printf("the agent lost the %s: %s", msg_event_name(event->kind), why);
    struct buf bytes;
    buf_init(&bytes, LIMIT_FRAME_BYTES);
    struct err_detail d = {""};
    if (event_encode(&small, &bytes, &d) == ERR_OK)
        kept_add(box, number, false, &bytes);
    else
        log_error("event_unsendable", "job=%s why=\"%s\"", msg_text(event->job), d.text);
    buf_fini(&bytes);
    free(small.text);
}

static bool spool_takes(struct outbox *box, uint64_t number, const struct buf *bytes)
{
    struct err_detail d = {""};
    if (spool_append(box->spool, box->incarnation, number, bytes->data, bytes->len, &d) == ERR_OK) {
        if (box->spool_failing)
            log_info("spool_recovered", "result=%" PRIu64, number);
        box->spool_failing = false;
        return true;
    }
    if (!box->spool_failing)
        log_error("spool_failing",
                  "why=\"%s\" consequence=\"results are kept in memory and are lost if the agent ends\"",
                  d.text);
    box->spool_failing = true;
    return false;
}

void outbox_add(struct outbox *box, const struct msg_event *event)
{
    struct msg_event numbered = *event; /* shallow: only read */
    numbered.number = ++box->last_number;
    struct buf bytes;
    buf_init(&bytes, LIMIT_FRAME_BYTES);
    struct err_detail d = {""};
    enum err e = event_encode(&numbered, &bytes, &d);
    if (e == ERR_OK && bytes.len > LIMIT_FRAME_BYTES - CODEC_ENVELOPE_BYTES)
        e = err_set(&d, ERR_TOO_BIG, "%zu bytes do not fit a message", bytes.len);
    if (e != ERR_OK) {
        add_replacement(box, event, numbered.number, e, d.text);
    } else if (!is_result(event) || !spool_takes(box, numbered.number, &bytes)) {
        if (box->memory_bytes + bytes.len > OUTBOX_MEMORY_BYTES)
            add_replacement(box, event, numbered.number, ERR_FULL, "neither disk nor memory has room for it");
        else
            kept_add(box, numbered.number, is_tick(event), &bytes);
    }
    buf_fini(&bytes);
}

/* Index of the first spooled entry of this incarnation (not `own`: of any other); spool_count if none. */
static size_t spool_find(const struct outbox *box, bool own)
{
    size_t i = 0;
    while (i < spool_count(box->spool) && (spool_at(box->spool, i).incarnation == box->incarnation) != own)
        i++;
    return i;
}

/* A result that the disk has lost is left out. */
static void push_take_spooled(struct outbox *box, size_t index, struct msg_push *out)
{
    struct spool_entry entry = spool_at(box->spool, index);
    uint8_t *data = mem_alloc(entry.len + 1);
    struct err_detail d = {""};
    enum err e = spool_read(box->spool, index, data, &d);
    if (e == ERR_OK)
        e = event_decode(data, entry.len, &out->items[out->count], &d);
    free(data);
    if (e == ERR_OK)
        out->count++;
    else
        log_error("result_lost", "number=%" PRIu64 " why=\"%s\"", entry.number, d.text);
}

static void push_take_kept(const struct kept *k, struct msg_push *out)
{
    struct err_detail d = {""};
    enum err e = event_decode(k->data, k->len, &out->items[out->count], &d);
    must(e == ERR_OK); /* we encoded it */
    out->count++;
}

static bool batch_has_room(const struct msg_push *out, uint64_t bytes, size_t len)
{
    return out->count < MSG_EVENTS_MAX && (bytes == 0 || bytes + len <= OUTBOX_BATCH_BYTES);
}

/* Merges memory and spool, each of rising numbers. Returns the last number from the spool, 0 if none. */
static uint64_t fill_own(struct outbox *box, struct msg_push *out)
{
    uint64_t last = 0;
    size_t on_disk = spool_find(box, true);
    uint64_t bytes = 0;
    for (size_t in_memory = 0;;) {
        struct spool_entry entry = {.number = UINT64_MAX};
        if (on_disk < spool_count(box->spool))
            entry = spool_at(box->spool, on_disk);
        const struct kept *k = in_memory < box->count ? &box->kept[in_memory] : NULL;
        bool from_memory = k != NULL && k->number < entry.number;
        size_t len = from_memory ? k->len : entry.len;
        if ((!from_memory && on_disk == spool_count(box->spool)) || !batch_has_room(out, bytes, len))
            return last;
        if (from_memory) {
            push_take_kept(k, out);
            in_memory++;
        } else {
            push_take_spooled(box, on_disk++, out);
            last = entry.number;
        }
        bytes += len;
    }
}

static uint64_t fill_earlier(struct outbox *box, struct msg_push *out)
{
    size_t i = spool_find(box, false);
    uint64_t bytes = 0;
    uint64_t last = 0;
    out->incarnation = spool_at(box->spool, i).incarnation;
    for (; i < spool_count(box->spool); i++) {
        struct spool_entry entry = spool_at(box->spool, i);
        if (entry.incarnation != out->incarnation || !batch_has_room(out, bytes, entry.len))
            break;
        push_take_spooled(box, i, out);
        bytes += entry.len;
        last = entry.number;
    }
    return last;
}

bool outbox_next(struct outbox *box, struct msg_push *out)
{
    *out = (struct msg_push){0};
    while (!outbox_is_empty(box)) {
        out->incarnation = box->incarnation;
        out->items = mem_zalloc(MSG_EVENTS_MAX, sizeof *out->items);
        bool own = box->count > 0 || spool_find(box, true) < spool_count(box->spool);
        uint64_t last = own ? fill_own(box, out) : fill_earlier(box, out);
        if (out->count > 0)
            return true;
        spool_ack(box->spool, out->incarnation, last); /* all unreadable: let them go */
        outbox_push_fini(out);
    }
    return false;
}

void outbox_push_fini(struct msg_push *push)
{
    for (size_t i = 0; i < push->count; i++)
        msg_event_fini(&push->items[i]);
    free(push->items);
    *push = (struct msg_push){0};
}

void outbox_ack(struct outbox *box, uint64_t incarnation, uint64_t number)
{
    spool_ack(box->spool, incarnation, number);
    if (incarnation != box->incarnation)
        return;
    while (box->count > 0 && box->kept[0].number <= number)
        kept_remove(box, 0);
}

bool outbox_is_empty(const struct outbox *box)
{
    return box->count == 0 && spool_count(box->spool) == 0;
}
