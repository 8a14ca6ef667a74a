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

/* Every number of a message: as it is in the packet, as it is here, its name. Times are CLOCK_BOOTTIME for
 * leases (a suspended host does not keep them), monotonic else. */
#define SUPERVISOR_NUMBER_LIST(X)                                                                            \
    X(uint64_t, uint64_t, lease_until_ns) /* START, RENEW */                                                 \
    X(uint64_t, uint64_t, grace_ns)       /* START */                                                        \
    X(uint64_t, uint64_t, out_bytes_max)  /* START */                                                        \
    X(uint64_t, uint64_t, spawned_at_ns)  /* STARTED */                                                      \
    X(uint64_t, uint64_t, cpu_ns)         /* EXITED: of the tree */                                          \
    X(uint64_t, uint64_t, own_cpu_ns)     /* EXITED: of the supervisor */                                    \
    X(uint64_t, uint64_t, log_lost_bytes) /* EXITED: output that could not be written */                     \
    X(uint64_t, uint64_t, out_lost_bytes) /* EXITED */                                                       \
    X(uint32_t, uint32_t, left_behind)    /* EXITED */                                                       \
    X(int32_t, int32_t, pid)              /* STARTED */                                                      \
    X(int32_t, int32_t, status)           /* EXITED; -1 when a signal ended it */                            \
    X(int32_t, int32_t, signal)           /* EXITED */                                                       \
    X(uint32_t, enum err, error)          /* REFUSED */                                                      \
    X(uint8_t, bool, lines)               /* START */                                                        \
    X(uint8_t, bool, asked)               /* EXITED: a STOP came before the first process ended */           \
    X(uint8_t, bool, lapsed)              /* EXITED: the lease ran out */                                    \
    X(uint8_t, bool, in_leaf)             /* STARTED: the child was born in the leaf */

struct supervisor_msg {
    enum supervisor_msg_type type;
#define X(wire, own, name) own name;
    SUPERVISOR_NUMBER_LIST(X)
#undef X
    const char *text; /* REFUSED, LINE, NOTE */
    const char *dir;  /* START, like the rest; "" for none */
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
