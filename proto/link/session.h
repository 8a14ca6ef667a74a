#ifndef PROTO_LINK_SESSION_H
#define PROTO_LINK_SESSION_H
/*
 * Who may say what, when: one table of (speaker's role, state of the session, message). An empty cell is
 * refused. Both ends hold a struct session for a connection: the controller checks what it hears from a
 * peer, a client what it hears from the controller. Owned by the link; the loop's thread.
 */
#include "proto/msg/msg.h"

#define SESSION_STATE_LIST(X)                                                                                \
    X(NEW, "new")               /* connected; nobody knows who it is */                                      \
    X(CHALLENGED, "challenged") /* a certificate was shown; its key must sign the nonce */                   \
    X(OPEN, "open")             /* proved, or trusted by file permissions over ipc */                        \
    X(ENDED, "ended")           /* refused or dropped: nothing is heard any more */
enum session_state {
#define X(name, text) SESSION_##name,
    SESSION_STATE_LIST(X)
#undef X
        SESSION_STATE_COUNT
};

#define SESSION_EVENT_LIST(X)                                                                                \
    X(CHALLENGE) /* the controller has asked for proof */                                                    \
    X(WELCOME)   /* the session stands */                                                                    \
    X(END)
enum session_event {
#define X(name) SESSION_EV_##name,
    SESSION_EVENT_LIST(X)
#undef X
        SESSION_EVENT_COUNT
};

struct session {
    enum msg_role role; /* of who is heard: NONE until a HELLO is taken; CONTROLLER at a client */
    enum session_state state;
    uint64_t id;                          /* 0 before WELCOME */
    uint64_t last_serial[MSG_KIND_COUNT]; /* highest heard of each kind */
};

void session_init(struct session *s, enum msg_role role);

/* The table. */
bool session_permits(enum msg_role role, enum session_state state, enum msg_kind kind);

/* Moves on; false (and no change) when the event makes no sense in this state. */
bool session_handle(struct session *s, enum session_event event);

/* Takes a message that has been heard, or says why not: the table, the session's id, and a serial that must
 * be higher than every one of this kind before. Serials of answers are the question's and are not checked
 * here. ERR_DENIED with the reason. */
NODISCARD enum err session_hear(struct session *s, const struct msg *m, struct err_detail *d);

/* Whether `answer` is of a kind that can answer `question`. REFUSED answers everything. */
bool session_answers(enum msg_kind question, enum msg_kind answer);

#endif
