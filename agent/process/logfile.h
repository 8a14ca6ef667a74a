#ifndef AGENT_PROCESS_LOGFILE_H
#define AGENT_PROCESS_LOGFILE_H
/*
 * A log on disk that cannot outgrow its cap: the head and the tail are kept, the middle is counted and
 * dropped. Written by one supervisor, read by the agent at any time. Owned by whoever embeds it; one thread.
 *
 * Layout: the bytes as they came while they fit into head_max + tail_max. From then on the bytes behind
 * head_max are a ring, and the 8 bytes behind the ring hold how many bytes were ever appended (host order:
 * the file never leaves the host).
 */
#include "common/err.h"

struct logfile {
    int fd;
    size_t head_max;
    size_t tail_max;
    uint64_t total;   /* bytes appended, kept or not */
    int failed_errno; /* first write that failed: nothing is written after it */
    uint64_t lost;    /* bytes that came after that */
};

/* Creates or empties `path` (mode 0600). A symbolic link there is refused. */
NODISCARD enum err logfile_init(struct logfile *f, const char *path, size_t head_max, size_t tail_max,
                                struct err_detail *d);
/* Safe on a zeroed struct that logfile_init refused (its fd is -1) and twice. */
void logfile_fini(struct logfile *f);

/* Never fails and never blocks on anything but the disk: a full disk shows in failed_errno and `lost`. */
void logfile_append(struct logfile *f, const void *data, size_t len);

/* Head and tail joined, NUL-terminated; the caller frees. `dropped` counts the bytes missing between the
 * first head_max and the rest. While a writer floods the file the seam of the ring may be off. */
NODISCARD enum err logfile_read(const char *path, size_t head_max, size_t tail_max, char **out, size_t *len,
                                uint64_t *dropped, struct err_detail *d);

/* The last `lines_max` lines of `text`, a pointer into it. */
const char *logfile_last_lines(const char *text, size_t len, size_t lines_max);

#endif
