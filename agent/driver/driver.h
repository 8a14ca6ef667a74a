#ifndef AGENT_DRIVER_DRIVER_H
#define AGENT_DRIVER_DRIVER_H
/*
 * One load generator as the agent sees it: how it proves what it is, its command line for a load, and what
 * its output means. Everything it prints is taken as hostile. Constant tables; any thread.
 */
#include "proto/msg/msg.h"

#define DRIVER_VERSION_BYTES_MAX 4096u /* of its version output */

struct driver_input {
    const struct msg_load *load;
    const char *program;  /* path or name of the program */
    const char *work_dir; /* absolute, ours: long bodies go to a file here */
};

/* When the run took place by our own clock: a result that claims otherwise is refused. */
struct driver_span {
    uint64_t started_at_ns;
    uint64_t ended_at_ns;
};

struct driver {
    const char *name; /* the experiment's word for it */

    /* What is given to the program to make it say its version; NULL-terminated. */
    const char *const *version_arguments;
    /* `generator` ("name version", caller frees) from that output. ERR_INVALID when another program spoke. */
    enum err (*prove)(const char *output, size_t len, char **generator, struct err_detail *d);

    /* The whole command line; the caller frees it with mem_free_strings. ERR_INVALID for what the generator
     * cannot do or what must not be put on its command line. */
    enum err (*build)(const struct driver_input *in, struct msg_strings *argv, struct err_detail *d);

    /* Whether one line of its standard error is an event; other lines are for the log. */
    bool (*read_event)(const char *line, struct msg_progress *out);

    /* Whether it may have printed a result although it ended with this status. */
    bool (*has_result)(int32_t status);
    /* All of its output to figures. `out` is zeroed by the caller, who frees it as part of an event, filled
     * or not. ERR_INVALID says what is wrong with the output. */
    enum err (*parse)(const char *output, size_t len, const struct driver_span *span, struct msg_loaded *out,
                      struct err_detail *d);
};

/* By the experiment's word. ERR_UNSUPPORTED lists the known ones. */
NODISCARD enum err driver_find(const char *name, const struct driver **out, struct err_detail *d);

extern const struct driver driver_builtin;

/* ---- for drivers ---------------------------------------------------------------------------------- */

/* "http://host:port/path" (caller frees), from parts that were checked for what a URL cannot hold. */
NODISCARD enum err driver_url(const struct msg_load *load, char **url, struct err_detail *d);

/* Whether every request header is a valid HTTP header of one line. */
NODISCARD enum err driver_check_headers(const struct msg_headers *headers, struct err_detail *d);

/* Writes the request body to a file of `work_dir` and gives its path (caller frees). */
NODISCARD enum err driver_write_body(const struct driver_input *in, char **path, struct err_detail *d);

/* Takes away what a build may have written, once the generator has ended. */
void driver_remove_body(const struct driver_input *in);

/* A copy of UTF-8 text, cut between two characters when it is longer than `max` bytes. */
char *driver_cut_text(const char *text, size_t len, size_t max);

/* Appends one argument, made like printf. */
void driver_add(struct msg_strings *argv, const char *fmt, ...) PRINTF_LIKE(2, 3);

#endif
