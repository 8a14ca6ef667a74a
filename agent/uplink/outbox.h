#ifndef AGENT_UPLINK_OUTBOX_H
#define AGENT_UPLINK_OUTBOX_H
/*
 * Events on their way to the controller: numbered, kept until acknowledged, handed out in batches that fit a
 * frame. Results (EXITED, CHECKED, LOADED) are in the spool on disk; answers that are worth nothing once this
 * program is gone are kept in memory; ticks of progress may be lost, oldest first. Owned by the uplink; the
 * loop's thread.
 *
 * Numbers begin at 1 with each incarnation and rise; a dropped tick leaves a gap. What an earlier incarnation
 * left in the spool comes out with that incarnation's number, after everything of this one.
 */
#include "proto/msg/msg.h"

#define OUTBOX_TICKS_MAX    64u                         /* ticks of progress waiting: a minute of them */
#define OUTBOX_MEMORY_BYTES (16ull * 1024ull * 1024ull) /* results when the disk takes none, and answers */
#define OUTBOX_BATCH_BYTES  (1024ull * 1024ull)         /* of events in one push, when it is more than one */

struct outbox;

struct outbox_options {
    const char *spool_dir;
    uint64_t spool_bytes_max;
    uint64_t incarnation; /* of this program, not 0 */
};

NODISCARD enum err outbox_new(const struct outbox_options *options, struct outbox **out,
                              struct err_detail *d);
void outbox_free(struct outbox *box); /* the spool stays on disk */

/* Numbers and keeps a copy. A result is on disk when this returns; when the disk takes none it is kept in
 * memory, which is logged. What fits neither is replaced by a DONE with code FULL or TOO_BIG that says so:
 * the question is answered in any case. */
void outbox_add(struct outbox *box, const struct msg_event *event);

/* The oldest events not acknowledged, at most MSG_EVENTS_MAX and OUTBOX_BATCH_BYTES of one incarnation; false
 * when there is nothing. Free `out` with outbox_push_fini. The same again until outbox_ack. */
bool outbox_next(struct outbox *box, struct msg_push *out);
void outbox_push_fini(struct msg_push *push);

/* The controller has everything of `incarnation` up to `number`. */
void outbox_ack(struct outbox *box, uint64_t incarnation, uint64_t number);

bool outbox_is_empty(const struct outbox *box);

#endif
