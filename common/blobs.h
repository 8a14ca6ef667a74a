#ifndef COMMON_BLOBS_H
#define COMMON_BLOBS_H
/*
 * File contents kept by their SHA-256 from job to job: DIR/<hash>, and DIR/<hash>.part while pieces are still
 * coming. Bounded in size; the ones used longest ago go first. Owned by the workspace; any thread, one at a
 * time.
 *
 * A blob is verified when its last byte arrives and again each time it is copied out: it lies on a disk that
 * the programs of earlier jobs could write to.
 */
#include "common/sha256.h"

struct blobs;

NODISCARD enum err blobs_open(const char *dir, uint64_t bytes_max, struct blobs **out, struct err_detail *d);
void blobs_free(struct blobs *b);

/* How much of it is here: `size_bytes` when whole. Counts as a use. */
uint64_t blobs_have(struct blobs *b, const uint8_t hash[SHA256_BYTES], uint64_t size_bytes);

/*
 * Takes a piece. `*have` is how much is here afterwards. A piece that is here already is fine; one that
 * leaves a gap or passes the size is ERR_INVALID, and so is the last one when the whole has another hash
 * (then nothing of it is left). ERR_FULL when the disk is.
 */
NODISCARD enum err blobs_write(struct blobs *b, const uint8_t hash[SHA256_BYTES], uint64_t size_bytes,
                               uint64_t offset, const void *data, size_t len, uint64_t *have,
                               struct err_detail *d);

/* Writes a whole blob to `fd`. ERR_NOT_FOUND when it is not here, or was damaged and is therefore gone now.
 */
NODISCARD enum err blobs_copy(struct blobs *b, const uint8_t hash[SHA256_BYTES], uint64_t size_bytes, int fd,
                              struct err_detail *d);

/* Reads a whole blob against its hash. ERR_NOT_FOUND when it is not here, or was damaged and is therefore
 * gone. */
NODISCARD enum err blobs_check(struct blobs *b, const uint8_t hash[SHA256_BYTES], struct err_detail *d);

/* Exactly `len` bytes of a whole blob from `offset` on. ERR_NOT_FOUND when it is not here or shorter. */
NODISCARD enum err blobs_read(struct blobs *b, const uint8_t hash[SHA256_BYTES], uint64_t offset, void *out,
                              size_t len, struct err_detail *d);

/* Do `more_bytes` fit as it is? */
bool blobs_have_room(struct blobs *b, uint64_t more_bytes);

/* What somebody still needs; each list in ascending order, with doubles or without. Borrowed for the call. */
struct blobs_wanted {
    const uint8_t (*always)[SHA256_BYTES]; /* never removed */
    size_t always_count;
    const uint8_t (*longest)[SHA256_BYTES]; /* removed when all others are gone */
    size_t longest_count;
};

/* Removes blobs, those that nobody wants first and of them the oldest, until `more_bytes` fit too. ERR_FULL
 * when they cannot. */
NODISCARD enum err blobs_make_room(struct blobs *b, const struct blobs_wanted *wanted, uint64_t more_bytes,
                                   struct err_detail *d);

#endif
