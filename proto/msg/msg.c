#include "proto/msg/msg.h"

#include "proto/msg/schema.h"

#include <string.h>

void msg_init(struct msg *m, enum msg_kind kind)
{
    memset(m, 0, sizeof *m);
    m->kind = kind;
}

void msg_fini(struct msg *m)
{
    schema_fini(&schema_frame, m);
    memset(m, 0, sizeof *m);
}

void msg_copy(struct msg *to, const struct msg *from)
{
    schema_copy(&schema_frame, to, from);
}

#define X(name)                                                                                              \
    void msg_##name##_fini(struct msg_##name *m)                                                             \
    {                                                                                                        \
        schema_fini(&schema_##name, m);                                                                      \
        memset(m, 0, sizeof *m);                                                                             \
    }                                                                                                        \
                                                                                                             \
    void msg_##name##_copy(struct msg_##name *to, const struct msg_##name *from)                             \
    {                                                                                                        \
        schema_copy(&schema_##name, to, from);                                                               \
    }
MSG_OWNER_LIST(X)
#undef X

const char *msg_text(const char *s)
{
    return s != NULL ? s : "";
}

char *msg_borrowed(const char *text)
{
    return schema_get_pointer(&text);
}

#define CASE(name, field) [MSG_##name] = #field,
const char *msg_kind_name(enum msg_kind k)
{
    static const char *const names[] = {MSG_KIND_LIST(CASE)};
    return (unsigned)k < MSG_KIND_COUNT ? names[k] : "unknown";
}
#undef CASE

#define X(name, text) [MSG_COMMAND_##name] = #text,
const char *msg_command_name(enum msg_command_kind k)
{
    static const char *const names[] = { MSG_COMMAND_LIST(X) };
    return (unsigned)k < MSG_COMMAND_COUNT ? names[k] : "unknown";
}
#undef X

#define X(name, text) [MSG_EVENT_##name] = #text,
const char *msg_event_name(enum msg_event_kind k)
{
    static const char *const names[] = { MSG_EVENT_LIST(X) };
    return (unsigned)k < MSG_EVENT_COUNT ? names[k] : "unknown";
}
#undef X

const char *msg_role_name(enum msg_role r)
{
#define X(name, text) [MSG_ROLE_##name] = text,
    static const char *const names[] = { MSG_ROLE_LIST(X) };
#undef X
    return (unsigned)r < MSG_ROLE_COUNT ? names[r] : "unknown";
}
