#include "proto/msg/schema.h"

/* What the controller asks of an agent. */

#define OURS struct msg_job_open
#define WIRE Splitbench__V1__JobOpen
static const struct schema_field job_open_fields[] = {
    F_TEXT(role, ANY, LIMIT_NAME_BYTES),
    F_BOOL(workspace),
};
static const struct schema schema_job_open = SCHEMA_OF(OURS, job_open__descriptor, job_open_fields);
#undef OURS
#undef WIRE

#define OURS struct msg_file
#define WIRE Splitbench__V1__File
static const struct schema_field file_fields[] = {
    F_TEXT(path, PATH, LIMIT_PATH_BYTES - 1),
    F_FIXED(hash, MSG_HASH_BYTES),
    F_U64(size_bytes, 0, LIMIT_FILE_BYTES),
    F_U32(mode, 0, 0777),
};
static const struct schema schema_file = SCHEMA_OF(OURS, file__descriptor, file_fields);
#undef OURS
#undef WIRE

#define OURS struct msg_files
#define WIRE Splitbench__V1__Files
static const struct schema_field files_fields[] = {F_LIST(items, count, LIMIT_FILES, msg_file, schema_file)};
const struct schema schema_files = SCHEMA_OF(OURS, files__descriptor, files_fields);
#undef OURS
#undef WIRE

#define OURS struct msg_chunk
#define WIRE Splitbench__V1__Chunk
static const struct schema_field chunk_fields[] = {
    F_FIXED(hash, MSG_HASH_BYTES),
    F_U64(offset, 0, LIMIT_FILE_BYTES),
    F_BYTES(data, LIMIT_CHUNK_BYTES),
};
static const struct schema schema_chunk = SCHEMA_OF(OURS, chunk__descriptor, chunk_fields);
#undef OURS
#undef WIRE

#define OURS struct msg_start
#define WIRE Splitbench__V1__Start
static const struct schema_field start_fields[] = {
    F_U32(proc, 0, UINT32_MAX),
    F_TEXT(label, ANY, 256),
    F_STRINGS(argv, ANY, LIMIT_ARGV_COUNT, LIMIT_COMMAND_BYTES),
    F_STRINGS(env, ENV, LIMIT_ENV_COUNT, LIMIT_COMMAND_BYTES),
    F_TEXT(dir, ANY, LIMIT_PATH_BYTES),
    F_TEXT(cpus, ANY, 4096),
    F_ENUM(ready, msg_ready_kind, Splitbench__V1__Ready, 0, MSG_READY_COUNT),
    F_TEXT(ready_host, ANY, 255),
    F_U16(ready_port, 0, UINT16_MAX),
    F_TEXT(ready_path, ANY, LIMIT_PATH_BYTES),
    F_NS(ready_timeout_ns),
    F_NS(grace_ns),
};
static const struct schema schema_start = SCHEMA_OF(OURS, start__descriptor, start_fields);
#undef OURS
#undef WIRE

#define OURS struct msg_stop
#define WIRE Splitbench__V1__Stop
static const struct schema_field stop_fields[] = {F_U32(proc, 0, UINT32_MAX)};
static const struct schema schema_stop = SCHEMA_OF(OURS, stop__descriptor, stop_fields);
#undef OURS
#undef WIRE

#define OURS struct msg_header
#define WIRE Splitbench__V1__Header
static const struct schema_field header_fields[] = {
    F_TEXT(name, ANY, LIMIT_HEADER_BYTES),
    F_TEXT(value, ANY, LIMIT_HEADER_BYTES),
};
static const struct schema schema_header = SCHEMA_OF(OURS, header__descriptor, header_fields);
#undef OURS
#undef WIRE

#define OURS struct msg_request
#define WIRE Splitbench__V1__Request
static const struct schema_field request_fields[] = {
    F_TEXT(method, ANY, 32),
    F_TEXT(path, ANY, LIMIT_HEADER_BYTES),
    F_LIST_IN(headers, items, count, LIMIT_HEADERS, msg_header, schema_header),
    F_BYTES(body, LIMIT_CHUNK_BYTES),
};
static const struct schema schema_request = SCHEMA_OF(OURS, request__descriptor, request_fields);
#undef OURS
#undef WIRE

#define OURS struct msg_match
#define WIRE Splitbench__V1__Match
static const struct schema_field match_fields[] = {
    F_ENUM(kind, msg_match_kind, Splitbench__V1__MatchKind, 0, MSG_MATCH_COUNT),
    F_TEXT(name, ANY, LIMIT_HEADER_BYTES),
    F_BYTES(text, LIMIT_CHUNK_BYTES),
};
static const struct schema schema_match = SCHEMA_OF(OURS, match__descriptor, match_fields);
#undef OURS
#undef WIRE

#define OURS struct msg_check
#define WIRE Splitbench__V1__Check
static const struct schema_field check_fields[] = {
    F_TEXT(name, ANY, 256),
    F_TEXT(host, ANY, 255),
    F_U16(port, 0, UINT16_MAX),
    F_STRUCT(request, msg_request, schema_request),
    F_U32(status, 0, 999),
    F_STRUCT(body, msg_match, schema_match),
    F_LIST(headers, header_count, LIMIT_HEADERS, msg_match, schema_match),
    F_BOOL(has_body_bytes),
    F_ANY(body_bytes),
    F_NS(timeout_ns),
};
static const struct schema schema_check = SCHEMA_OF(OURS, check__descriptor, check_fields);
#undef OURS
#undef WIRE

#define OURS struct msg_load
#define WIRE Splitbench__V1__Load
static const struct schema_field load_fields[] = {
    F_U32(proc, 0, UINT32_MAX),
    F_TEXT(tool, ANY, 64),
    F_TEXT(host, ANY, 255),
    F_U16(port, 0, UINT16_MAX),
    F_STRUCT(request, msg_request, schema_request),
    F_U32(connections, 1, LIMIT_CONNECTIONS),
    F_U32(threads, 0, 1024),
    F_NS(warmup_ns),
    F_NS(duration_ns),
    F_NS(timeout_ns),
    F_BOOL(has_body_bytes),
    F_ANY(body_bytes),
    F_TEXT(cpus, ANY, 4096),
};
static const struct schema schema_load = SCHEMA_OF(OURS, load__descriptor, load_fields);
#undef OURS
#undef WIRE

#define OURS struct msg_sample
#define WIRE Splitbench__V1__Sample
static const struct schema_field sample_fields[] = {F_U32S(procs, proc_count, MSG_PROCS_MAX)};
static const struct schema schema_sample = SCHEMA_OF(OURS, sample__descriptor, sample_fields);
#undef OURS
#undef WIRE

static const struct schema *const kinds[] = {
    [MSG_COMMAND_JOB_OPEN] = &schema_job_open, [MSG_COMMAND_JOB_CLOSE] = &schema_empty,
    [MSG_COMMAND_FILES] = &schema_files,       [MSG_COMMAND_CHUNK] = &schema_chunk,
    [MSG_COMMAND_START] = &schema_start,       [MSG_COMMAND_STOP] = &schema_stop,
    [MSG_COMMAND_CHECK] = &schema_check,       [MSG_COMMAND_LOAD] = &schema_load,
    [MSG_COMMAND_SAMPLE] = &schema_sample,
};
_Static_assert(ARRAY_LEN(kinds) == MSG_COMMAND_COUNT, "every command has a schema");
#define CASE(kind, text)                                                                                     \
    _Static_assert(SPLITBENCH__V1__COMMAND__BODY_##kind == SCHEMA_FIRST_CASE + MSG_COMMAND_##kind, #kind);
MSG_COMMAND_LIST(CASE)

#define OURS struct msg_command
#define WIRE Splitbench__V1__Command
static const struct schema_field command_fields[] = {
    F_U64(number, 1, UINT64_MAX),
    F_TEXT(job, NAME, LIMIT_NAME_BYTES),
    F_ANY(run),
    F_ANY(controller),
};
const struct schema schema_command = {
    .wire = &splitbench__v1__command__descriptor,
    .ours_size = sizeof(OURS),
    .fields = command_fields,
    .field_count = ARRAY_LEN(command_fields),
    .kinds = kinds,
    .kind_count = MSG_COMMAND_COUNT,
    .kind_at = offsetof(OURS, kind),
    .union_at = offsetof(OURS, u),
    .case_at = offsetof(WIRE, body_case),
    .body_at = offsetof(WIRE, job_open),
};
