#include "proto/msg/schema.h"

/* Who is speaking: the host, the session's first messages, enrollment. */

#define OURS struct msg_host
#define WIRE Splitbench__V1__Host
static const struct schema_field host_fields[] = {
    F_TEXT(hostname, PROSE, 255),  F_TEXT(boot_id, PROSE, 64),
    F_TEXT(kernel, PROSE, 256),    F_TEXT(os, PROSE, 256),
    F_TEXT(cpu_model, PROSE, 256), F_TEXT(address, ANY, 255),
    F_U32(cpus, 0, 65536),         F_TEXT(cpu_list, ANY, 4096),
    F_COUNT(memory_bytes),         F_STRINGS(labels, ANY, MSG_LABELS_MAX, 16384),
    F_TEXT(libraries, PROSE, 256),
};
const struct schema schema_host = SCHEMA_OF(OURS, host__descriptor, host_fields);
#undef OURS
#undef WIRE

/* The protocol number of a HELLO is its frame's: proto/msg/codec_decode.c. */
#define OURS struct msg_hello
#define WIRE Splitbench__V1__Hello
static const struct schema_field hello_fields[] = {
    F_TEXT(build, ANY, 64),
    F_ENUM(role, msg_role, Splitbench__V1__Role, MSG_ROLE_AGENT, MSG_ROLE_CONTROLLER),
    F_TEXT(name, NAME, LIMIT_NAME_BYTES),
    F_TEXT(certificate_pem, ANY, MSG_PEM_BYTES_MAX),
    F_ANY(incarnation),
    F_TEXT(held_job, NO_NAME, LIMIT_NAME_BYTES),
    F_ANY(held_run),
    F_STRUCT(host, msg_host, schema_host),
};
const struct schema schema_hello = SCHEMA_OF(OURS, hello__descriptor, hello_fields);
#undef OURS
#undef WIRE

#define OURS struct msg_challenge
#define WIRE Splitbench__V1__Challenge
static const struct schema_field challenge_fields[] = {F_FIXED(nonce, MSG_NONCE_BYTES)};
const struct schema schema_challenge = SCHEMA_OF(OURS, challenge__descriptor, challenge_fields);
#undef OURS
#undef WIRE

#define OURS struct msg_proof
#define WIRE Splitbench__V1__Proof
static const struct schema_field proof_fields[] = {F_BYTES(signature, 256)};
const struct schema schema_proof = SCHEMA_OF(OURS, proof__descriptor, proof_fields);
#undef OURS
#undef WIRE

#define OURS struct msg_welcome
#define WIRE Splitbench__V1__Welcome
static const struct schema_field welcome_fields[] = {
    F_U64(session, 1, UINT64_MAX), F_NS(lease_ns),     F_NS(poll_ns),
    F_TEXT(build, ANY, 64),        F_ANY(acked_event), F_ANY(incarnation),
};
const struct schema schema_welcome = SCHEMA_OF(OURS, welcome__descriptor, welcome_fields);
#undef OURS
#undef WIRE

#define OURS struct msg_refused
#define WIRE Splitbench__V1__Refused
static const struct schema_field refused_fields[] = {
    F_CODE(code, ERR_OK + 1),
    F_TEXT(text, PROSE, LIMIT_TEXT_BYTES),
};
const struct schema schema_refused = SCHEMA_OF(OURS, refused__descriptor, refused_fields);
#undef OURS
#undef WIRE

#define OURS struct msg_ca_give
#define WIRE Splitbench__V1__CaGive
static const struct schema_field ca_give_fields[] = {F_TEXT(ca_pem, ANY, MSG_PEM_BYTES_MAX)};
const struct schema schema_ca_give = SCHEMA_OF(OURS, ca_give__descriptor, ca_give_fields);
#undef OURS
#undef WIRE

#define OURS struct msg_enroll
#define WIRE Splitbench__V1__Enroll
static const struct schema_field enroll_fields[] = {
    F_TEXT(token, ANY, 64),
    F_TEXT(name, NAME, LIMIT_NAME_BYTES),
    F_ENUM(role, msg_role, Splitbench__V1__Role, MSG_ROLE_AGENT, MSG_ROLE_CONTROLLER),
    F_TEXT(csr_pem, ANY, MSG_PEM_BYTES_MAX),
};
const struct schema schema_enroll = SCHEMA_OF(OURS, enroll__descriptor, enroll_fields);
#undef OURS
#undef WIRE

#define OURS struct msg_enrolled
#define WIRE Splitbench__V1__Enrolled
static const struct schema_field enrolled_fields[] = {F_TEXT(certificate_pem, ANY, MSG_PEM_BYTES_MAX)};
const struct schema schema_enrolled = SCHEMA_OF(OURS, enrolled__descriptor, enrolled_fields);
