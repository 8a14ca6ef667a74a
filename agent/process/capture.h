#ifndef AGENT_PROCESS_CAPTURE_H
#define AGENT_PROCESS_CAPTURE_H
/*
 * The output of one child: pipes for its stdout and stderr, capped files they go to, and lines cut out of
 * stderr for whoever wants them at once. Owned by the supervisor; one thread.
 */
#include "agent/process/logfile.h"
#include "agent/process/supervisor_msg.h"

#include <poll.h>

struct capture_options {
    const char *log_path;
    const char *out_path;   /* used when out_bytes_max is not 0 */
    uint64_t out_bytes_max; /* stdout goes there instead of to the log; at most LIMIT_RESULT_BYTES */
    bool lines;
    void (*on_line)(void *arg, const char *line);
    void *arg;
};

enum { CAPTURE_OUT, CAPTURE_ERR, CAPTURE_STREAMS };

struct capture {
    struct logfile log;
    struct logfile out;
    int read_fds[CAPTURE_STREAMS];  /* -1: closed, or shared with the other */
    int write_fds[CAPTURE_STREAMS]; /* for the child; equal when nothing keeps the streams apart */
    bool lines;
    bool skipping; /* the rest of a line that was cut */
    size_t line_len;
    char line[SUPERVISOR_LINE_BYTES_MAX + 1];
    void (*on_line)(void *arg, const char *line);
    void *arg;
};

NODISCARD enum err capture_init(struct capture *c, const struct capture_options *options,
                                struct err_detail *d);
void capture_fini(struct capture *c);

/* The child has its ends: closes ours, so that the pipes end with the tree. */
void capture_started(struct capture *c);

/* Reads what is there from one stream, 64 KiB at most; closes it at its end. */
void capture_read(struct capture *c, int stream);

/* The tree is gone: reads what is left (a stranger may still hold a pipe; it is not waited for). */
void capture_drain(struct capture *c);

#endif
