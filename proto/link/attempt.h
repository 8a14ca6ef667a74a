#ifndef PROTO_LINK_ATTEMPT_H
#define PROTO_LINK_ATTEMPT_H
/*
 * One connection of a client, from dialling to closing: an nng socket of its own, so that nothing of an old
 * connection reaches a new one. Dialling and closing block in nng and run on threads of their own. Owned by
 * link_client.c and enroll.c; the loop's thread. For proto/link/ only.
 */
#include "proto/link/link.h"
#include "proto/link/mailbox.h"
#include "proto/link/nng_faults/shut_first.h"
#include "proto/link/nng_faults/side_thread.h"

#include <nng/nng.h>
#include <nng/supplemental/tls/tls.h>

#define ATTEMPT_CALLS 9u /* eight of the user's and the session's own */

struct attempt;

/* One question and its answer. Free when `busy` is false. */
struct attempt_call {
    struct mailbox_node node; /* first: posted when it is over */
    struct attempt *attempt;
    nng_ctx ctx;
    nng_aio *aio;
    bool receiving; /* touched by the aio's callback only while busy */
    uint64_t deadline_ns;
    bool busy;
    /* For the client: whom to tell. NULL once told. */
    enum msg_kind kind;
    uint64_t serial;
    link_reply_cb *cb;
    void *arg;
};

struct attempt_handlers {
    void *arg;
    void (*on_dialled)(void *arg, enum err e, const struct err_detail *d);
    /* `reply` is NULL unless `nng_code` is 0; the handler frees it. */
    void (*on_call_over)(void *arg, struct attempt_call *call, int nng_code, nng_msg *reply);
    void (*on_lost)(void *arg);
    void (*on_closed)(void *arg); /* the last thing heard of it; the others stop at attempt_close */
};

struct attempt {
    uv_loop_t *loop;
    struct attempt_handlers handlers;
    char *address;
    nng_socket socket;
    nng_dialer dialer;
    struct mailbox box;
    struct mailbox_node lost;
    struct side_thread *dial; /* NULL once it is over */
    uv_timer_t timer;         /* of a dial that is too young to be cancelled */
    uint64_t started_ns;
    bool closing;
    bool abandoned; /* nng has hung: it stays behind */
    int dial_code;
    struct shut_first_client shut;
    struct attempt_call calls[ATTEMPT_CALLS];
};

/* Starts dialling. `tls` is NULL over ipc, and borrowed. */
NODISCARD enum err attempt_new(uv_loop_t *loop, const char *address, nng_tls_config *tls,
                               const struct attempt_handlers *handlers, struct attempt **out,
                               struct err_detail *d);

/* A free call, or NULL. */
struct attempt_call *attempt_take_call(struct attempt *a);

/* Sends; on_call_over follows once, at the latest after the deadline. `m` is consumed. */
void attempt_start_call(struct attempt_call *call, nng_msg *m, uint64_t timeout_ns);

/* Gives the connection up. Only on_closed follows. */
void attempt_close(struct attempt **a);

#endif
