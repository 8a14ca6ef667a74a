#ifndef CONTROLLER_REPORT_REPORT_H
#define CONTROLLER_REPORT_REPORT_H
/*
 * What a job found: per cell the figures over rounds, with where they were measured and what disturbed them.
 * Built from the store by report_build; written by the format files beside this one. Owned by the caller.
 */
#include "common/buf.h"
#include "controller/store/store.h"

struct report;

NODISCARD enum err report_build(struct store *s, const char *job, struct report **out, struct err_detail *d);
void report_free(struct report *r);

/* A table that fits `width` columns (80 at least), with the notes a reader needs. */
NODISCARD enum err report_write_text(const struct report *r, unsigned width, struct buf *out);
/* "splitbench-report/1", documented in docs/report.md. */
NODISCARD enum err report_write_json(const struct report *r, struct buf *out);

#endif
