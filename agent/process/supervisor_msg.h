#ifndef AGENT_PROCESS_SUPERVISOR_MSG_H
#define AGENT_PROCESS_SUPERVISOR_MSG_H
/*
 * What an agent and its supervisors say to each other over a SOCK_SEQPACKET pair: one message a packet, host
 * byte order, both ends the same program. Owned by whoever decodes; any thread.
 */
#include "common/buf.h"
#include "common/limits.h"

#include <sys/types.h>

/* The largest is START: an argument vector and an environment of LIMIT_COMMAND_BYTES each, and paths. It has
 * to fit into the default send buffer of a socket (net.core.wmem_default, 208 KiB) as a whole. */
#define SUPERVISOR_MSG_BYTES_MAX (LIMIT_COMMAND_BYTES + LIMIT_COMMAND_BYTES + 12288u)
/* What comes back is short: a line or a sentence. */
#define SUPERVISOR_REPLY_BYTES_MAX 8192u
/* A line of a child, cut here. */
#define SUPERVISOR_LINE_BYTES_MAX 4096u

enum supervisor_msg_type {
    /* agent to supervisor; the end of the connection means: kill everything at once */
    SUPERVISOR_START = 1,
    SUPERVISOR_STOP,
    SUPERVISOR_RENEW,
    /* supervisor to agent */
    SUPERVISOR_STARTED,
    SUPERVISOR_REFUSED,
    SUPERVISOR_LINE,
    SUPERVISOR_NOTE,
    SUPERVISOR_EXITED,
};

/* Times are CLOCK_BOOTTIME for leases (a suspended host does not keep them), monotonic else. */
struct supervisor_msg {
    enum supervisor_msg_type type;
    uint64_t lease_until_ns; /* START, RENEW */
    uint64_t grace_ns;       /* START */
    uint64_t out_bytes_max;  /* START */
    bool lines;              /* START */
    bool asked;              /* EXITED: a STOP came before the first process ended */
    bool lapsed;             /* EXITED: the lease ran out */
    bool in_leaf;            /* STARTED: the child was born in the leaf */
    int32_t pid;             /* STARTED */
    int32_t status;          /* EXITED; -1 when a signal ended it */
    int32_t signal;          /* EXITED */
    enum err error;          /* REFUSED */
    uint64_t spawned_at_ns;  /* STARTED */
    uint64_t cpu_ns;         /* EXITED: of the tree */
    uint64_t own_cpu_ns;     /* EXITED: of the supervisor */
    uint64_t log_lost_bytes; /* EXITED: output that could not be written */
    uint64_t out_lost_bytes; /* EXITED */
    uint32_t left_behind;    /* EXITED */
    const char *text;        /* REFUSED, LINE, NOTE */
    const char *dir;         /* START, like the rest; "" for none */
    const char *cpus;
    const char *leaf;
    const char *log_path;
    const char *out_path;
    char **argv; /* NULL-terminated */
    char **env;
};

/* Appends the packet. ERR_TOO_BIG when a part is over its limit. */
NODISCARD enum err supervisor_msg_encode(const struct supervisor_msg *m, struct buf *out);

/* The texts of `m` point into `data`; its vectors are freed by supervisor_msg_fini. ERR_INVALID for anything
 * supervisor_msg_encode of this very version does not make. */
NODISCARD enum err supervisor_msg_decode(const void *data, size_t len, struct supervisor_msg *m);
void supervisor_msg_fini(struct supervisor_msg *m);

#endif
