#include "proto/msg/schema.h"

/* What an agent tells the controller. Texts of foreign programs are PROSE: made valid and cut when sent, so
 * that no server's output can keep its own result from arriving. */

#define OURS struct msg_missing
#define WIRE Splitbench__V1__Missing
static const struct schema_field missing_fields[] = {
    F_FIXED(hash, MSG_HASH_BYTES),
    F_U64(have_bytes, 0, LIMIT_FILE_BYTES),
};
static const struct schema schema_missing = SCHEMA_OF(OURS, missing__descriptor, missing_fields);
#undef OURS
#undef WIRE

#define OURS struct msg_files_missing
#define WIRE Splitbench__V1__FilesMissing
static const struct schema_field files_missing_fields[] = {
    F_LIST(items, count, LIMIT_FILES, msg_missing, schema_missing)};
const struct schema schema_files_missing = SCHEMA_OF(OURS, files_missing__descriptor, files_missing_fields);
#undef OURS
#undef WIRE

#define OURS struct msg_started
#define WIRE Splitbench__V1__Started
static const struct schema_field started_fields[] = {
    F_U32(proc, 0, UINT32_MAX),
    F_U32(pid, 0, INT32_MAX),
    F_NS(startup_ns),
    F_TEXT(exe, PROSE, LIMIT_PATH_BYTES),
};
static const struct schema schema_started = SCHEMA_OF(OURS, started__descriptor, started_fields);
#undef OURS
#undef WIRE

#define OURS struct msg_exited
#define WIRE Splitbench__V1__Exited
static const struct schema_field exited_fields[] = {
    F_U32(proc, 0, UINT32_MAX),
    F_BOOL(asked),
    F_I32(status, -1, 255),
    F_I32(signal, 0, 128),
    F_TEXT(log_tail, PROSE, LIMIT_LOG_TAIL_BYTES),
    F_BYTES(log, LIMIT_LOG_HEAD_BYTES + LIMIT_LOG_TAIL_BYTES),
    F_COUNT(log_dropped_bytes),
};
static const struct schema schema_exited = SCHEMA_OF(OURS, exited__descriptor, exited_fields);
#undef OURS
#undef WIRE

#define OURS struct msg_checked
#define WIRE Splitbench__V1__Checked
static const struct schema_field checked_fields[] = {
    F_BOOL(ok),
    F_TEXT(difference, PROSE, LIMIT_TEXT_BYTES),
    F_NS(took_ns),
};
static const struct schema schema_checked = SCHEMA_OF(OURS, checked__descriptor, checked_fields);
#undef OURS
#undef WIRE

#define OURS struct msg_progress
#define WIRE Splitbench__V1__Progress
static const struct schema_field progress_fields[] = {
    F_ENUM(kind, msg_progress_kind, Splitbench__V1__ProgressKind, 0, MSG_PROGRESS_COUNT),
    F_CLOCK(at_ns),
    F_COUNT(ok),
    F_COUNT(failed),
};
static const struct schema schema_progress = SCHEMA_OF(OURS, progress__descriptor, progress_fields);
#undef OURS
#undef WIRE

#define OURS struct msg_accounts
#define WIRE Splitbench__V1__Accounts
static const struct schema_field accounts_fields[] = {
#define X(name) F_COUNT(name),
    MSG_ACCOUNTS_LIST(X)
#undef X
};
static const struct schema schema_accounts = SCHEMA_OF(OURS, accounts__descriptor, accounts_fields);
#undef OURS
#undef WIRE

#define OURS struct msg_error_class
#define WIRE Splitbench__V1__ErrorClass
static const struct schema_field error_class_fields[] = {
    F_TEXT(phase, ANY, 32),
    F_TEXT(cause, ANY, 64),
    F_COUNT(count),
    F_TEXT(sample, PROSE, 512),
};
static const struct schema schema_error_class = SCHEMA_OF(OURS, error_class__descriptor, error_class_fields);
#undef OURS
#undef WIRE

#define OURS struct msg_status_count
#define WIRE Splitbench__V1__StatusCount
static const struct schema_field status_count_fields[] = {
    F_U32(status, 0, 999),
    F_COUNT(count),
};
static const struct schema schema_status_count =
    SCHEMA_OF(OURS, status_count__descriptor, status_count_fields);
#undef OURS
#undef WIRE

#define OURS struct msg_loaded
#define WIRE Splitbench__V1__Loaded
static const struct schema_field loaded_fields[] = {
    F_TEXT(generator, PROSE, 256),
    F_CLOCK(window_start_ns),
    F_CLOCK(window_end_ns),
    F_STRUCT(window, msg_accounts, schema_accounts),
    F_STRUCT(warmup, msg_accounts, schema_accounts),
    F_LIST(errors, error_count, MSG_ERRORS_MAX, msg_error_class, schema_error_class),
    F_LIST(statuses, status_count, MSG_STATUSES_MAX, msg_status_count, schema_status_count),
    F_BYTES(latency_hist, MSG_HIST_BYTES_MAX),
    F_TEXT(raw, PROSE, MSG_RAW_BYTES_MAX),
#define X(NAME, name, number, since, ...) F_FIGURE(NAME, name, figures, number, since),
    FIGURE_LOAD_LIST(X)
#undef X
};
const struct schema schema_loaded = SCHEMA_OF(OURS, loaded__descriptor, loaded_fields);
#undef OURS
#undef WIRE

#define OURS struct msg_proc_sample
#define WIRE Splitbench__V1__ProcSample
static const struct schema_field proc_sample_fields[] = {F_U32(proc, 0, UINT32_MAX),
                                                         F_BOOL(alive),
                                                         F_CLOCK(cpu_ns),
                                                         F_COUNT(rss_bytes),
                                                         F_U32(processes, 0, UINT32_MAX),
#define X(NAME, name, number, since, ...) F_FIGURE(NAME, name, counters, number, since),
                                                         FIGURE_TREE_LIST(X)
#undef X
};
static const struct schema schema_proc_sample = SCHEMA_OF(OURS, proc_sample__descriptor, proc_sample_fields);
#undef OURS
#undef WIRE

#define OURS struct msg_sampled
#define WIRE Splitbench__V1__Sampled
static const struct schema_field sampled_fields[] = {
    F_CLOCK(at_ns),
    F_CLOCK(busy_ns),
    F_CLOCK(steal_ns),
    F_CLOCK(own_ns),
    F_ARRAY(procs, proc_count, MSG_PROCS_MAX, msg_proc_sample, schema_proc_sample),
};
static const struct schema schema_sampled = SCHEMA_OF(OURS, sampled__descriptor, sampled_fields);
#undef OURS
#undef WIRE

static const struct schema *const kinds[] = {
    [MSG_EVENT_DONE] = &schema_empty,      [MSG_EVENT_FILES] = &schema_files_missing,
    [MSG_EVENT_STARTED] = &schema_started, [MSG_EVENT_EXITED] = &schema_exited,
    [MSG_EVENT_CHECKED] = &schema_checked, [MSG_EVENT_PROGRESS] = &schema_progress,
    [MSG_EVENT_LOADED] = &schema_loaded,   [MSG_EVENT_SAMPLED] = &schema_sampled,
};
_Static_assert(ARRAY_LEN(kinds) == MSG_EVENT_COUNT, "every event has a schema");
#define CASE(kind, text)                                                                                     \
    _Static_assert(SPLITBENCH__V1__EVENT__BODY_##kind == SCHEMA_FIRST_CASE + MSG_EVENT_##kind, #kind);
MSG_EVENT_LIST(CASE)

#define OURS struct msg_event
#define WIRE Splitbench__V1__Event
static const struct schema_field event_fields[] = {
    F_U64(number, 1, UINT64_MAX),
    F_ANY(answers),
    F_TEXT(job, NO_NAME, LIMIT_NAME_BYTES),
    F_CODE(code, ERR_OK),
    F_TEXT(text, PROSE, LIMIT_TEXT_BYTES),
    F_ANY(run),
    F_ANY(controller),
};
const struct schema schema_event = {
    .wire = &splitbench__v1__event__descriptor,
    .ours_size = sizeof(OURS),
    .fields = event_fields,
    .field_count = ARRAY_LEN(event_fields),
    .kinds = kinds,
    .kind_count = MSG_EVENT_COUNT,
    .kind_at = offsetof(OURS, kind),
    .union_at = offsetof(OURS, u),
    .case_at = offsetof(WIRE, body_case),
    .body_at = offsetof(WIRE, done),
};
