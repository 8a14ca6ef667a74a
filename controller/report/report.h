#ifndef CONTROLLER_REPORT_REPORT_H
#define CONTROLLER_REPORT_REPORT_H
/*
 * What a job found: per cell the figures over rounds, with where they were measured and what disturbed them.
 * Built from the store by report_build; written by the format files beside this one. Owned by the caller; the
 * thread of the store's handle.
 *
 * It holds the figures of cells, not the attempts: a job may have a hundred thousand. They are read one by
 * one, cell by cell, once when it is built, and again when all of them are written.
 */
#include "common/buf.h"
#include "controller/store/store.h"

struct report;

/* Until report_free it reads `s`, at the moment of this call whatever others store meanwhile; nothing else
 * may be done with `s` until then. */
NODISCARD enum err report_build(struct store *s, const char *job, struct report **out, struct err_detail *d);
void report_free(struct report *r);

/* A table that fits `width` columns (80 at least), with the notes a reader needs. */
NODISCARD enum err report_write_text(const struct report *r, unsigned width, struct buf *out);

/* Where a long report goes: pieces in their order, some of them in the middle of a character. */
struct report_sink {
    enum err (*write)(void *arg, const char *data, size_t len, struct err_detail *d);
    void *arg;
};
/* "splitbench-report/1", documented in docs/report.md. */
NODISCARD enum err report_write_json(const struct report *r, const struct report_sink *sink,
                                     struct err_detail *d);

#endif
