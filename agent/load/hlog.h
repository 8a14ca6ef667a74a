#ifndef AGENT_LOAD_HLOG_H
#define AGENT_LOAD_HLOG_H
/*
 * An interval log as HdrHistogram's own tools read it (HistogramLogWriter of the Java library, format 1.3):
 * one line per interval with its start, length, maximum and V2 compressed histogram. Main's thread.
 */
#include "common/err.h"
#include "common/hist.h"

struct hlog {
    FILE *file;
    uint64_t start_ns; /* monotonic: the log's time 0 */
    bool failed;       /* a write has: told by hlog_close */
    const char *path;  /* borrowed */
};

/* Creates or empties the file. */
NODISCARD enum err hlog_open(struct hlog *l, const char *path, struct err_detail *d);
void hlog_start(struct hlog *l, uint64_t start_ns);
void hlog_add(struct hlog *l, uint64_t start_ns, uint64_t end_ns, const struct hist *h);
/* Safe on a zeroed struct. ERR_IO when anything could not be written. */
NODISCARD enum err hlog_close(struct hlog *l, struct err_detail *d);

#endif
