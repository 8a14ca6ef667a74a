#ifndef CONTROLLER_VIEW_STATUS_H
#define CONTROLLER_VIEW_STATUS_H
/*
 * Jobs as the store knows them, as JSON: what the STATUS request answers and what `splitbench status` prints.
 * Any thread with a store handle of its own.
 */
#include "common/buf.h"
#include "controller/store/store.h"

/* `waits`: pairs of a queued job and why it waits, which only the running controller knows.
 *
 * {"format":"splitbench-status/1","jobs":[{"id","name","state","mode","cause","created","started","ended",
 * "windows_done","windows_total","placement"}]}, newest first; times as text; null for what is not known.
 * `job`
 * "" = all. */
NODISCARD enum err status_write_json(struct store *s, const char *job, const struct msg_strings *waits,
                                     struct buf *out, struct err_detail *d);

#endif
