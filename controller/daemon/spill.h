#ifndef CONTROLLER_DAEMON_SPILL_H
#define CONTROLLER_DAEMON_SPILL_H
/*
 * A long answer, made once and read in pieces: it lies in a file without a name, so it costs disk while it is
 * wanted and no memory, and is gone with its last owner. Owned by whoever made or shared it; one thread at a
 * time. All calls may wait for a disk.
 */
#include "common/err.h"

struct spill;

/* `dir` exists. ERR_FULL, ERR_DENIED, ERR_IO. */
NODISCARD enum err spill_new(const char *dir, struct spill **out, struct err_detail *d);
void spill_free(struct spill *s);

/* Adds to its end. ERR_FULL when the disk is. */
NODISCARD enum err spill_write(struct spill *s, const char *data, size_t len, struct err_detail *d);
uint64_t spill_bytes(const struct spill *s);

/* The same text for another owner, to be read only. NULL when there are no descriptors left. */
struct spill *spill_share(const struct spill *s);

/* At most `max` (4 at least) bytes from `offset` on, whole characters of UTF-8; "" behind the end. The caller
 * frees `*text`. */
NODISCARD enum err spill_read(const struct spill *s, uint64_t offset, size_t max, char **text,
                              struct err_detail *d);

#endif
