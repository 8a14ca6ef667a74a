#include "proto/msg/schema.h"

/* Requests of agents and operators and their answers, and the frame around every message. */

#define OURS struct msg_poll
#define WIRE Splitbench__V1__Poll
static const struct schema_field poll_fields[] = {F_ANY(acked_command)};
static const struct schema schema_poll = SCHEMA_OF(OURS, poll__descriptor, poll_fields);
#undef OURS
#undef WIRE

#define OURS struct msg_commands
#define WIRE Splitbench__V1__Commands
static const struct schema_field commands_fields[] = {
    F_LIST(items, count, MSG_COMMANDS_MAX, msg_command, schema_command)};
static const struct schema schema_commands = SCHEMA_OF(OURS, commands__descriptor, commands_fields);
#undef OURS
#undef WIRE

#define OURS struct msg_push
#define WIRE Splitbench__V1__Push
static const struct schema_field push_fields[] = {
    F_ANY(incarnation),
    F_LIST(items, count, MSG_EVENTS_MAX, msg_event, schema_event),
};
static const struct schema schema_push = SCHEMA_OF(OURS, push__descriptor, push_fields);
#undef OURS
#undef WIRE

#define OURS struct msg_pushed
#define WIRE Splitbench__V1__Pushed
static const struct schema_field pushed_fields[] = {F_ANY(acked_event)};
static const struct schema schema_pushed = SCHEMA_OF(OURS, pushed__descriptor, pushed_fields);
#undef OURS
#undef WIRE

#define OURS struct msg_submit
#define WIRE Splitbench__V1__Submit
static const struct schema_field submit_fields[] = {
    F_TEXT(job, NAME, LIMIT_NAME_BYTES),
    F_ENUM(mode, msg_mode, Splitbench__V1__Mode, 0, MSG_MODE_COUNT),
    F_TEXT(experiment, ANY, LIMIT_FRAME_BYTES),
    F_STRUCT(files, msg_files, schema_files),
    F_TEXT(base_dir, ANY, LIMIT_PATH_BYTES),
    F_TEXT(nonce, NO_NAME, LIMIT_NAME_BYTES),
};
static const struct schema schema_submit = SCHEMA_OF(OURS, submit__descriptor, submit_fields);
#undef OURS
#undef WIRE

#define OURS struct msg_submitted
#define WIRE Splitbench__V1__Submitted
static const struct schema_field submitted_fields[] = {
    F_STRUCT(missing, msg_files_missing, schema_files_missing)};
static const struct schema schema_submitted = SCHEMA_OF(OURS, submitted__descriptor, submitted_fields);
#undef OURS
#undef WIRE

#define OURS struct msg_blob
#define WIRE Splitbench__V1__Blob
static const struct schema_field blob_fields[] = {
    F_FIXED(hash, MSG_HASH_BYTES),
    F_U64(offset, 0, LIMIT_FILE_BYTES),
    F_U64(size_bytes, 0, LIMIT_FILE_BYTES),
    F_BYTES(data, LIMIT_CHUNK_BYTES),
};
static const struct schema schema_blob = SCHEMA_OF(OURS, blob__descriptor, blob_fields);
#undef OURS
#undef WIRE

#define OURS struct msg_blob_taken
#define WIRE Splitbench__V1__BlobTaken
static const struct schema_field blob_taken_fields[] = {F_U64(have_bytes, 0, LIMIT_FILE_BYTES)};
static const struct schema schema_blob_taken = SCHEMA_OF(OURS, blob_taken__descriptor, blob_taken_fields);
#undef OURS
#undef WIRE

#define OURS struct msg_watch
#define WIRE Splitbench__V1__Watch
static const struct schema_field watch_fields[] = {
    F_TEXT(job, NAME, LIMIT_NAME_BYTES),
    F_ANY(after_line),
};
static const struct schema schema_watch = SCHEMA_OF(OURS, watch__descriptor, watch_fields);
#undef OURS
#undef WIRE

#define OURS struct msg_watched
#define WIRE Splitbench__V1__Watched
static const struct schema_field watched_fields[] = {
    F_TEXT(state, ANY, 32),
    F_TEXT(cause, PROSE, LIMIT_TEXT_BYTES),
    F_I32(exit_code, 0, 255),
    F_U32(windows_done, 0, UINT32_MAX),
    F_U32(windows_total, 0, UINT32_MAX),
    F_ANY(remaining_ns),
    F_TEXT(doing, PROSE, LIMIT_TEXT_BYTES),
    F_ANY(ok_per_s),
    F_ANY(next_line),
    F_STRINGS(lines, PROSE, MSG_LINES_MAX, LIMIT_CHUNK_BYTES),
    F_TEXT(job, NO_NAME, LIMIT_NAME_BYTES),
};
static const struct schema schema_watched = SCHEMA_OF(OURS, watched__descriptor, watched_fields);
#undef OURS
#undef WIRE

#define OURS struct msg_ask
#define WIRE Splitbench__V1__Ask
static const struct schema_field ask_fields[] = {
    F_ENUM(kind, msg_ask_kind, Splitbench__V1__AskKind, 0, MSG_ASK_COUNT),
    F_TEXT(job, NO_NAME, LIMIT_NAME_BYTES),
    F_TEXT(arg, ANY, LIMIT_TEXT_BYTES),
    F_ANY(number),
    F_ANY(offset),
};
static const struct schema schema_ask = SCHEMA_OF(OURS, ask__descriptor, ask_fields);
#undef OURS
#undef WIRE

#define OURS struct msg_answer
#define WIRE Splitbench__V1__Answer
static const struct schema_field answer_fields[] = {
    F_RAW(text, LIMIT_CHUNK_BYTES),
    F_ANY(total_bytes),
};
static const struct schema schema_answer = SCHEMA_OF(OURS, answer__descriptor, answer_fields);
#undef OURS
#undef WIRE

const struct schema schema_empty = {.wire = &splitbench__v1__empty__descriptor};

static const struct schema *const kinds[] = {
    [MSG_HELLO] = &schema_hello,           [MSG_CHALLENGE] = &schema_challenge,
    [MSG_PROOF] = &schema_proof,           [MSG_WELCOME] = &schema_welcome,
    [MSG_REFUSED] = &schema_refused,       [MSG_CA_ASK] = &schema_empty,
    [MSG_CA_GIVE] = &schema_ca_give,       [MSG_ENROLL] = &schema_enroll,
    [MSG_ENROLLED] = &schema_enrolled,     [MSG_POLL] = &schema_poll,
    [MSG_COMMANDS] = &schema_commands,     [MSG_PUSH] = &schema_push,
    [MSG_PUSHED] = &schema_pushed,         [MSG_SUBMIT] = &schema_submit,
    [MSG_SUBMITTED] = &schema_submitted,   [MSG_BLOB] = &schema_blob,
    [MSG_BLOB_TAKEN] = &schema_blob_taken, [MSG_WATCH] = &schema_watch,
    [MSG_WATCHED] = &schema_watched,       [MSG_ASK] = &schema_ask,
    [MSG_ANSWER] = &schema_answer,
};
_Static_assert(ARRAY_LEN(kinds) == MSG_KIND_COUNT, "every kind has a schema");
#define CASE(kind, field)                                                                                    \
    _Static_assert(SPLITBENCH__V1__FRAME__BODY_##kind == SCHEMA_FIRST_CASE + MSG_##kind, #kind);
MSG_KIND_LIST(CASE)

#define OURS struct msg
#define WIRE Splitbench__V1__Frame
static const struct schema_field frame_fields[] = {
    F_ANY(session),
    F_ANY(serial),
};
const struct schema schema_frame = {
    .wire = &splitbench__v1__frame__descriptor,
    .ours_size = sizeof(OURS),
    .fields = frame_fields,
    .field_count = ARRAY_LEN(frame_fields),
    .kinds = kinds,
    .kind_count = MSG_KIND_COUNT,
    .kind_at = offsetof(OURS, kind),
    .union_at = offsetof(OURS, u),
    .case_at = offsetof(WIRE, body_case),
    .body_at = offsetof(WIRE, hello),
};

/* The generated enums and ours are numbered alike. */
#define SAME(ours, theirs) _Static_assert((int)(ours) == (int)(theirs), #ours)
SAME(MSG_ROLE_CONTROLLER, SPLITBENCH__V1__ROLE__ROLE_CONTROLLER);
SAME(MSG_ROLE_AGENT, SPLITBENCH__V1__ROLE__ROLE_AGENT);
SAME(MSG_ROLE_OPERATOR, SPLITBENCH__V1__ROLE__ROLE_OPERATOR);
#define READY(name)    SAME(MSG_READY_##name, SPLITBENCH__V1__READY__READY_##name);
#define MATCH(name)    SAME(MSG_MATCH_##name, SPLITBENCH__V1__MATCH_KIND__MATCH_##name);
#define PROGRESS(name) SAME(MSG_PROGRESS_##name, SPLITBENCH__V1__PROGRESS_KIND__PROGRESS_##name);
#define MODE(name)     SAME(MSG_MODE_##name, SPLITBENCH__V1__MODE__MODE_##name);
#define ASK(name)      SAME(MSG_ASK_##name, SPLITBENCH__V1__ASK_KIND__ASK_##name);
MSG_READY_LIST(READY)
MSG_MATCH_LIST(MATCH)
MSG_PROGRESS_LIST(PROGRESS)
MSG_MODE_LIST(MODE)
MSG_ASK_LIST(ASK)
