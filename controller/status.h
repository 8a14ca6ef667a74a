#ifndef CONTROLLER_STATUS_H
#define CONTROLLER_STATUS_H
/*
 * Jobs as the store knows them, as JSON: what the STATUS request answers and what `splitbench status` prints.
 * Any thread with a store handle of its own.
 */
#include "common/buf.h"
#include "controller/store/store.h"

/* {"format":"splitbench-status/1","jobs":[{"id","name","state","mode","cause","created","started","ended",
 * "windows_done","windows_total","placement"}]}, newest first; times as text. `job` "" = all. */
NODISCARD enum err status_write_json(struct store *s, const char *job, struct buf *out, struct err_detail *d);

#endif
