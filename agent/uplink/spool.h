#ifndef AGENT_UPLINK_SPOOL_H
#define AGENT_UPLINK_SPOOL_H
/*
 * Results on disk until somebody has taken them: append-only segment files of checksummed records, each
 * flushed to the disk before spool_append returns. Owned by the outbox; one thread, one process at a time
 * (the agent's lock on its state directory sees to that).
 *
 * DIR/NNNNNNNNNNNNNNNN.seg, hex, rising: 8 bytes "SBSPOOL1", then records, little endian:
 *   u32 crc (zlib crc32 of the rest of the record)   u32 kind (1 event, 2 acknowledged up to here)
 *   u64 incarnation   u64 number   u32 length   u32 zero   `length` bytes
 * A segment is removed when nothing of it is wanted. A torn or damaged record ends its segment when it is
 * read again; what stands before it is kept. After a start, a new segment is written.
 */
#include "common/err.h"
#include "common/limits.h"

#define SPOOL_SEGMENT_BYTES (4u * 1024u * 1024u) /* a new segment begins beyond this */
#define SPOOL_RECORD_BYTES  LIMIT_FRAME_BYTES    /* one record's payload: it must fit a frame to be sent */

struct spool;

struct spool_options {
    const char *dir;    /* made when missing, 0700 */
    uint64_t bytes_max; /* of all segments together; an append beyond it is ERR_FULL */
};

/* What is known of a record without reading it. */
struct spool_entry {
    uint64_t incarnation;
    uint64_t number;
    size_t len; /* payload bytes */
};

/* Opens and reads what an earlier process left. */
NODISCARD enum err spool_new(const struct spool_options *options, struct spool **out, struct err_detail *d);
void spool_free(struct spool *spool); /* files stay */

/* On disk when this returns ERR_OK. ERR_FULL (no space, or `bytes_max`), ERR_TOO_BIG or ERR_IO otherwise, and
 * then nothing of it is in the spool. Numbers rise within an incarnation. */
NODISCARD enum err spool_append(struct spool *spool, uint64_t incarnation, uint64_t number, const void *data,
                                size_t len, struct err_detail *d);

/* Entries not acknowledged yet, oldest first; index 0 ... spool_count - 1. */
size_t spool_count(const struct spool *spool);
struct spool_entry spool_at(const struct spool *spool, size_t index);

/* The payload; `out` must hold `len` bytes of its entry. ERR_IO when the disk lost it. */
NODISCARD enum err spool_read(struct spool *spool, size_t index, void *out, struct err_detail *d);

/* Forgets every entry of `incarnation` up to `number`. The note of it on disk is not flushed: a power cut may
 * bring an entry back, and its receiver knows it by its number. */
void spool_ack(struct spool *spool, uint64_t incarnation, uint64_t number);

/* Bytes of all segments; bytes found damaged at the start (0 = none). */
uint64_t spool_bytes(const struct spool *spool);
uint64_t spool_damaged_bytes(const struct spool *spool);

#endif
