#include "proto/link/session.h"

#include <string.h>

/* Every permitted cell: speaker, state of the session, message. What is not here is refused. A client reads
 * the controller's cells by its own state: it is NEW until challenged, OPEN once welcomed. */
#define PERMIT_LIST(X)                                                                                       \
    X(NONE, NEW, HELLO)                                                                                      \
    X(NONE, NEW, CA_ASK)                                                                                     \
    X(NONE, NEW, ENROLL)                                                                                     \
    X(AGENT, CHALLENGED, PROOF)                                                                              \
    X(AGENT, OPEN, POLL)                                                                                     \
    X(AGENT, OPEN, PUSH)                                                                                     \
    X(OPERATOR, CHALLENGED, PROOF)                                                                           \
    X(OPERATOR, OPEN, SUBMIT)                                                                                \
    X(OPERATOR, OPEN, BLOB)                                                                                  \
    X(OPERATOR, OPEN, WATCH)                                                                                 \
    X(OPERATOR, OPEN, ASK)                                                                                   \
    X(CONTROLLER, NEW, CHALLENGE)                                                                            \
    X(CONTROLLER, NEW, WELCOME)                                                                              \
    X(CONTROLLER, NEW, REFUSED)                                                                              \
    X(CONTROLLER, NEW, CA_GIVE)                                                                              \
    X(CONTROLLER, NEW, ENROLLED)                                                                             \
    X(CONTROLLER, CHALLENGED, WELCOME)                                                                       \
    X(CONTROLLER, CHALLENGED, REFUSED)                                                                       \
    X(CONTROLLER, OPEN, COMMANDS)                                                                            \
    X(CONTROLLER, OPEN, PUSHED)                                                                              \
    X(CONTROLLER, OPEN, SUBMITTED)                                                                           \
    X(CONTROLLER, OPEN, BLOB_TAKEN)                                                                          \
    X(CONTROLLER, OPEN, WATCHED)                                                                             \
    X(CONTROLLER, OPEN, ANSWER)                                                                              \
    X(CONTROLLER, OPEN, REFUSED)

static const bool permit[MSG_ROLE_COUNT][SESSION_STATE_COUNT][MSG_KIND_COUNT] = {
#define X(role, state, kind) [MSG_ROLE_##role][SESSION_##state][MSG_##kind] = true,
    PERMIT_LIST(X)
#undef X
};

#define QUESTION_LIST(X)                                                                                     \
    X(HELLO, CHALLENGE)                                                                                      \
    X(HELLO, WELCOME)                                                                                        \
    X(PROOF, WELCOME)                                                                                        \
    X(CA_ASK, CA_GIVE)                                                                                       \
    X(ENROLL, ENROLLED)                                                                                      \
    X(POLL, COMMANDS)                                                                                        \
    X(PUSH, PUSHED)                                                                                          \
    X(SUBMIT, SUBMITTED)                                                                                     \
    X(BLOB, BLOB_TAKEN)                                                                                      \
    X(WATCH, WATCHED)                                                                                        \
    X(ASK, ANSWER)

static const struct {
    enum msg_kind question;
    enum msg_kind answer;
} pairs[] = {
#define X(question, answer) {MSG_##question, MSG_##answer},
    QUESTION_LIST(X)
#undef X
};

/* 0 is no state to move to: only END leaves OPEN, nothing leaves ENDED. */
static const enum session_state next[SESSION_STATE_COUNT][SESSION_EVENT_COUNT] = {
    [SESSION_NEW] = {[SESSION_EV_CHALLENGE] = SESSION_CHALLENGED,
                     [SESSION_EV_WELCOME] = SESSION_OPEN,
                     [SESSION_EV_END] = SESSION_ENDED},
    [SESSION_CHALLENGED] = {[SESSION_EV_WELCOME] = SESSION_OPEN, [SESSION_EV_END] = SESSION_ENDED},
    [SESSION_OPEN] = {[SESSION_EV_END] = SESSION_ENDED},
};
_Static_assert(SESSION_NEW == 0, "an empty cell of the table is the state nothing moves to");

void session_init(struct session *s, enum msg_role role)
{
    memset(s, 0, sizeof *s);
    s->role = role;
}

bool session_permits(enum msg_role role, enum session_state state, enum msg_kind kind)
{
    return (unsigned)role < MSG_ROLE_COUNT && (unsigned)state < SESSION_STATE_COUNT &&
           (unsigned)kind < MSG_KIND_COUNT && permit[role][state][kind];
}

bool session_handle(struct session *s, enum session_event event)
{
    enum session_state to = next[s->state][event];
    if (to == SESSION_NEW)
        return false;
    s->state = to;
    return true;
}

enum err session_hear(struct session *s, const struct msg *m, struct err_detail *d)
{
    if (!session_permits(s->role, s->state, m->kind))
        return err_set(d, ERR_DENIED, "%s from role %s in a session that is %s", msg_kind_name(m->kind),
                       msg_role_name(s->role), session_state_name(s->state));
    if (m->session != s->id)
        return err_set(d, ERR_DENIED, "%s for another session", msg_kind_name(m->kind));
    if (s->role == MSG_ROLE_CONTROLLER)
        return ERR_OK;
    if (m->serial <= s->last_serial[m->kind])
        return err_set(d, ERR_DENIED, "%s replayed: serial %llu after %llu", msg_kind_name(m->kind),
                       (unsigned long long)m->serial, (unsigned long long)s->last_serial[m->kind]);
    s->last_serial[m->kind] = m->serial;
    return ERR_OK;
}

bool session_answers(enum msg_kind question, enum msg_kind answer)
{
    for (size_t i = 0; i < ARRAY_LEN(pairs); i++)
        if (pairs[i].question == question && (pairs[i].answer == answer || answer == MSG_REFUSED))
            return true;
    return false;
}

const char *session_state_name(enum session_state s)
{
#define X(name, text) [SESSION_##name] = text,
    static const char *const names[] = { SESSION_STATE_LIST(X) };
#undef X
    return (unsigned)s < SESSION_STATE_COUNT ? names[s] : "unknown";
}
