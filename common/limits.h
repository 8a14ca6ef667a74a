#ifndef COMMON_LIMITS_H
#define COMMON_LIMITS_H
/*
 * Every size that something outside can choose, with the reason for its cap. A value over a cap is
 * refused before it reaches an allocator. Tests sit at each limit and one beyond it. Written out, not as
 * products: an unsigned product that becomes a size_t hides overflows elsewhere, and the linter says so.
 */

/* Names of agents, targets, workloads: they become file names and table cells. */
#define LIMIT_NAME_BYTES 128u
/* One path in a workspace or on a command line (PATH_MAX is 4096 on Linux). */
#define LIMIT_PATH_BYTES 4096u
/* One argument vector: ARG_MAX is 128 KiB per string, and nobody types more than 256 words. */
#define LIMIT_ARGV_COUNT    256u
#define LIMIT_ENV_COUNT     256u
#define LIMIT_COMMAND_BYTES 98304u /* 96 KiB */
/* An experiment file; the largest published one is under 100 KiB. */
#define LIMIT_EXPERIMENT_BYTES 4194304u /* 4 MiB */
/* The same resolved, bodies from files included: it travels in one frame. */
#define LIMIT_RESOLVED_BYTES 1572864u /* 1536 KiB */
#define LIMIT_JSON_DEPTH     64u
/* Values and keys of one JSON text: a value costs about 100 bytes of heap, so this is at most 30 MB. */
#define LIMIT_JSON_VALUES    262144u /* 256 Ki */
#define LIMIT_TARGETS        256u
#define LIMIT_WORKLOADS      256u
#define LIMIT_SWEEP          64u
#define LIMIT_CHECKS         1024u
#define LIMIT_ROUNDS         1000u
#define LIMIT_HOSTS_PER_ROLE 64u
#define LIMIT_HOSTS          1024u
#define LIMIT_CONNECTIONS    100000u
/* Generator threads: one per CPU of the largest machines. */
#define LIMIT_THREADS 1024u
/* A schedule: a year of one-minute windows would be five times as many, and nobody reads such a table. */
#define LIMIT_WINDOWS    100000u
#define LIMIT_SCHEDULE_S 36000000u /* 10,000 h */
/* Further attempts of an invalid window. */
#define LIMIT_RETRIES 100u
#define LIMIT_VARS    1024u
#define LIMIT_GLOBS   256u
/* Problems of one experiment file that are kept; nobody fixes more in one go. */
#define LIMIT_PROBLEMS 200u
/* A request body given inline or from a file. */
#define LIMIT_BODY_BYTES   16777216u /* 16 MiB */
#define LIMIT_HEADERS      128u
#define LIMIT_HEADER_BYTES 16384u /* 16 KiB */
/* One frame on the wire: a file chunk and its envelope fit; a result with its histogram fits ten times. */
#define LIMIT_FRAME_BYTES 2097152u /* 2 MiB */
#define LIMIT_CHUNK_BYTES 1048576u /* 1 MiB */
/* Heap a decoder may use for one frame: protobuf-c may need several times the frame. */
#define LIMIT_DECODE_BYTES 8388608u /* 8 MiB */
/* Files of one job and their total size: sources and bundles, not data sets. */
#define LIMIT_FILES      4096u
#define LIMIT_FILE_BYTES (1024ull * 1024ull * 1024ull)
/* A server's or generator's log: the head and the tail are kept, the middle is counted and dropped. */
#define LIMIT_LOG_HEAD_BYTES 524288u /* 512 KiB */
#define LIMIT_LOG_TAIL_BYTES 65536u  /* 64 KiB */
/* What a generator may print as its result. */
#define LIMIT_RESULT_BYTES 4194304u /* 4 MiB */
/* Results an agent keeps on disk while nobody takes them. */
#define LIMIT_SPOOL_BYTES (256ull * 1024ull * 1024ull)
/* Connections a controller serves; a lab has tens of agents. */
#define LIMIT_PEERS 4096u
/* A duration that is typed or travels: 1,000 h. */
#define LIMIT_DURATION_NS 3600000000000000ull
/* What a host may count in one window, bytes and nanoseconds of CPU time too: a 100 Gbit/s link is full for
 * two months before. Added up over LIMIT_HOSTS_PER_ROLE hosts it still fits the store's signed column. */
#define LIMIT_COUNT (1ull << 56)
/* An instant of a host's clock, or what all its CPUs did since boot, ns. */
#define LIMIT_CLOCK_NS (1ull << 62)
/* A whole answer to an operator that is held in memory: a list, or a report as text. A report as JSON may be
 * longer. */
#define LIMIT_ANSWER_BYTES 67108864u /* 64 MiB */
/* Text of one error or cause. */
#define LIMIT_TEXT_BYTES 4096u

#endif
