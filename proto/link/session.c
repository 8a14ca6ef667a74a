#include "proto/link/session.h"

#include <string.h>

#define YES(kind) [MSG_##kind] = true

/* Every permitted cell: speaker, state of the session, message. What is not here is refused. A client reads
 * the controller's cells by its own state: it is NEW until challenged, OPEN once welcomed. */
static const bool permit[MSG_ROLE_COUNT][SESSION_STATE_COUNT][MSG_KIND_COUNT] = {
    [MSG_ROLE_NONE] = {[SESSION_NEW] = {YES(HELLO), YES(CA_ASK), YES(ENROLL)}},
    [MSG_ROLE_AGENT] = {[SESSION_CHALLENGED] = {YES(PROOF)}, [SESSION_OPEN] = {YES(POLL), YES(PUSH)}},
    [MSG_ROLE_OPERATOR] = {[SESSION_CHALLENGED] = {YES(PROOF)},
                           [SESSION_OPEN] = {YES(SUBMIT), YES(BLOB), YES(WATCH), YES(ASK)}},
    [MSG_ROLE_CONTROLLER] = {[SESSION_NEW] = {YES(CHALLENGE), YES(WELCOME), YES(REFUSED), YES(CA_GIVE),
                                              YES(ENROLLED)},
                             [SESSION_CHALLENGED] = {YES(WELCOME), YES(REFUSED)},
                             [SESSION_OPEN] = {YES(COMMANDS), YES(PUSHED), YES(SUBMITTED), YES(BLOB_TAKEN),
                                               YES(WATCHED), YES(ANSWER), YES(REFUSED)}},
};

static const struct {
    enum msg_kind question;
    enum msg_kind answer;
} pairs[] = {
    {MSG_HELLO, MSG_CHALLENGE}, {MSG_HELLO, MSG_WELCOME},    {MSG_PROOF, MSG_WELCOME},
    {MSG_CA_ASK, MSG_CA_GIVE},  {MSG_ENROLL, MSG_ENROLLED},  {MSG_POLL, MSG_COMMANDS},
    {MSG_PUSH, MSG_PUSHED},     {MSG_SUBMIT, MSG_SUBMITTED}, {MSG_BLOB, MSG_BLOB_TAKEN},
    {MSG_WATCH, MSG_WATCHED},   {MSG_ASK, MSG_ANSWER},
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

static const char *session_state_name(enum session_state s)
{
#define X(name, text) [SESSION_##name] = text,
    static const char *const names[] = { SESSION_STATE_LIST(X) };
#undef X
    return names[s];
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
