#include "proto/link/link_peer.h"

#include "common/mem.h"
#include "proto/link/link_nng.h"
#include "proto/msg/codec.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- ending a connection ------------------------------------------------------------------------------- */

static void end(struct link_peer *peer, const char *why)
{
    if (peer->why[0] == '\0')
        snprintf(peer->why, sizeof peer->why, "%.*s", (int)sizeof peer->why - 1, why); /* cut, not refused */
    session_handle(&peer->session, SESSION_EV_END); /* it may have ended before */
}

static void close_connection(struct link_peer *peer)
{
    if (peer->ipc || !shut_first_peer(&peer->server->shut, &peer->shut_wanted, &peer->deadline_ns))
        nng_pipe_close(peer->pipe);
}

void link_peer_drop(struct link_peer *peer, const char *why)
{
    end(peer, why);
    close_connection(peer);
}

/* The peer broke a rule: it is reported for the log, and its connection closed without an answer. */
static void refuse_connection(struct link_peer *peer, const char *why)
{
    const struct link_server *s = peer->server;
    const char *name = link_peer_name(peer);
    char from[LIMIT_NAME_BYTES + sizeof peer->address + 8];
    snprintf(from, sizeof from, "%s%s%s", name, name[0] != '\0' ? "@" : "",
             peer->ipc ? "ipc" : peer->address);
    if (s->handlers.on_refused != NULL)
        s->handlers.on_refused(s->handlers.arg, from, why);
    link_peer_drop(peer, why);
}

void link_peer_check_deadline(struct link_peer *peer, uint64_t now_ns)
{
    if (peer->deadline_ns == 0 || now_ns < peer->deadline_ns)
        return;
    peer->deadline_ns = 0;
    if (peer->session.state == SESSION_ENDED)
        close_connection(peer);
    else if (peer->session.state == SESSION_OPEN)
        link_peer_drop(peer, "silent for too long");
    else
        refuse_connection(peer, "connected without saying who it is");
}

void link_peer_free(struct link_peer *peer, const char *why)
{
    for (struct link_request *r = peer->requests, *next; r != NULL; r = next) {
        next = r->next;
        r->peer = NULL;
        r->prev = r->next = NULL;
    }
    const struct link_server *s = peer->server;
    if (peer->announced && s->handlers.on_gone != NULL)
        s->handlers.on_gone(s->handlers.arg, peer, peer->why[0] != '\0' ? peer->why : why);
    msg_fini(&peer->hello);
    free(peer);
}

/* ---- answering ----------------------------------------------------------------------------------------- */

static void take_request(struct link_request *r)
{
    struct link_peer *peer = r->peer;
    if (r->prev != NULL)
        r->prev->next = r->next;
    else
        peer->requests = r->next;
    if (r->next != NULL)
        r->next->prev = r->prev;
    peer->request_count--;
}

/* `m` may be borrowed and stays as it is: session and serial are set in a copy that shares what it points to.
 */
static enum err send_answer(struct link_peer *peer, const struct link_request *r, const struct msg *m,
                            struct err_detail *d)
{
    struct msg out = *m;
    nng_msg *packed = NULL;
    out.session = peer->session.id;
    out.serial = r->serial;
    enum err e = link_pack(&out, &packed, d);
    if (e != ERR_OK)
        return e;
    must(nng_msg_header_append_u32(packed, (uint32_t)nng_pipe_id(peer->pipe)) == 0);
    must(nng_msg_header_append_u32(packed, r->number) == 0);
    int rv = nng_sendmsg(peer->server->socket, packed, 0);
    if (rv != 0) {
        nng_msg_free(packed);
        link_peer_drop(peer, nng_strerror(rv));
    }
    return ERR_OK;
}

static void send_refusal(struct link_peer *peer, const struct link_request *r, enum err code,
                         const char *text)
{
    struct err_detail d;
    struct msg m;
    msg_init(&m, MSG_REFUSED);
    m.u.refused.code = code;
    m.u.refused.text = mem_strdup(text);
    must(send_answer(peer, r, &m, &d) == ERR_OK);
    msg_fini(&m);
}

void link_answer(struct link_request **request, const struct msg *m)
{
    struct link_request *r = *request;
    *request = NULL;
    struct link_peer *peer = r->peer;
    if (peer != NULL) {
        struct err_detail d;
        must(session_answers(r->kind, m->kind));
        take_request(r);
        enum err e = peer->session.state == SESSION_ENDED ? ERR_OK : send_answer(peer, r, m, &d);
        if (e != ERR_OK)
            send_refusal(peer, r, e, d.text);
    }
    free(r);
}

/* The peer has been told why: the connection goes once that has had time to arrive. */
void link_peer_dismiss(struct link_peer *peer, const char *why)
{
    end(peer, why);
    peer->deadline_ns = clock_now_ns() + LINK_LINGER_NS;
}

void link_refuse(struct link_request **request, enum err code, const char *fmt, ...)
{
    struct link_request *r = *request;
    *request = NULL;
    struct link_peer *peer = r->peer;
    if (peer != NULL) {
        char text[LIMIT_TEXT_BYTES];
        va_list ap;
        va_start(ap, fmt);
        vsnprintf(text, sizeof text, fmt, ap);
        va_end(ap);
        take_request(r);
        bool heard = peer->session.state != SESSION_ENDED;
        if (heard)
            send_refusal(peer, r, code, text);
        if (heard && r->kind == MSG_ENROLL)
            link_peer_dismiss(peer,
                              text); /* one try for each connection: the next costs another TLS handshake */
    }
    free(r);
}

/* Refuses the peer itself: it is told why, and the connection goes once that has had time to arrive. */
static void refuse_peer(struct link_peer *peer, const struct link_request *r, enum err code, const char *text)
{
    const struct link_server *s = peer->server;
    if (s->handlers.on_refused != NULL)
        s->handlers.on_refused(s->handlers.arg, peer->ipc ? "ipc" : peer->address, text);
    send_refusal(peer, r, code, text);
    link_peer_dismiss(peer, text);
}

/* ---- the conversation, in the order of a connection's life --------------------------------------------- */

static void welcome(struct link_peer *peer, const struct link_request *r)
{
    struct link_server *s = peer->server;
    struct err_detail d = {.text = ""};
    struct msg m;
    msg_init(&m, MSG_WELCOME);
    peer->announced = true; /* before the call: on_hello may drop the peer, and on_gone must follow then */
    enum err e = s->handlers.on_hello(s->handlers.arg, peer, &peer->hello.u.hello, &m.u.welcome, &d);
    if (e != ERR_OK) {
        peer->announced = false;
        refuse_peer(peer, r, e, d.text[0] != '\0' ? d.text : err_text(e));
    } else if (peer->session.state != SESSION_ENDED) {
        uint64_t id;
        do
            identity_random(&id, sizeof id);
        while (id == 0);
        m.u.welcome.session = id;
        e = send_answer(peer, r, &m, &d);
        must(e == ERR_OK);
        must(session_handle(&peer->session, SESSION_EV_WELCOME));
        peer->session.id = id;
        peer->deadline_ns = clock_now_ns() + LINK_SILENT_NS;
    }
    msg_fini(&m);
}

static void challenge(struct link_peer *peer, const struct link_request *r)
{
    const struct msg_hello *hello = &peer->hello.u.hello;
    struct err_detail d;
    enum err e =
        identity_check_certificate(peer->server->identity->ca_pem, hello->certificate_pem, &peer->facts, &d);
    if (e == ERR_OK && !peer->trusted)
        e = err_set(&d, ERR_DENIED, "connected without a certificate of this lab");
    if (e == ERR_OK && (strcmp(peer->facts.name, hello->name) != 0 || peer->facts.role != hello->role))
        e = err_set(&d, ERR_DENIED, "claims to be %s '%s' with the certificate of %s '%s'",
                    msg_role_name(hello->role), hello->name, msg_role_name(peer->facts.role),
                    peer->facts.name);
    if (e != ERR_OK) {
        refuse_peer(peer, r, e, d.text);
        return;
    }
    struct msg m;
    msg_init(&m, MSG_CHALLENGE);
    identity_random(peer->nonce, sizeof peer->nonce);
    memcpy(m.u.challenge.nonce, peer->nonce, sizeof peer->nonce);
    must(send_answer(peer, r, &m, &d) == ERR_OK);
    must(session_handle(&peer->session, SESSION_EV_CHALLENGE));
}

static void hear_hello(struct link_peer *peer, const struct link_request *r, struct msg *m)
{
    const struct msg_hello *hello = &m->u.hello;
    if (hello->protocol != MSG_PROTOCOL_VERSION) {
        char text[256];
        snprintf(text, sizeof text,
                 "you speak protocol version %u, this controller (%s) speaks %u: install the same version of "
                 "splitbench on both",
                 hello->protocol, SPLITBENCH_BUILD, MSG_PROTOCOL_VERSION);
        refuse_peer(peer, r, ERR_UNSUPPORTED, text);
        return;
    }
    if (peer->ipc && !peer->trusted) {
        refuse_peer(peer, r, ERR_DENIED, "the socket belongs to another user");
        return;
    }
    peer->hello = *m; /* taken */
    msg_init(m, MSG_HELLO);
    peer->session.role = peer->hello.u.hello.role;
    if (peer->ipc) {
        peer->facts.role = peer->session.role;
        snprintf(peer->facts.name, sizeof peer->facts.name, "%s", peer->hello.u.hello.name);
        welcome(peer, r);
    } else {
        challenge(peer, r);
    }
}

static void hear_proof(struct link_peer *peer, const struct link_request *r, const struct msg *m)
{
    struct err_detail d;
    enum err e = identity_verify(peer->hello.u.hello.certificate_pem, peer->session.role, peer->nonce,
                                 &m->u.proof.signature, &d);
    if (e != ERR_OK)
        refuse_peer(peer, r, e, d.text);
    else
        welcome(peer, r);
}

static void hear_ca_ask(struct link_peer *peer, const struct link_request *r)
{
    const struct identity *id = peer->server->identity;
    if (id == NULL) {
        send_refusal(peer, r, ERR_UNSUPPORTED, "this controller has no certificates: it serves one machine");
        return;
    }
    struct err_detail d;
    struct msg m;
    msg_init(&m, MSG_CA_GIVE);
    m.u.ca_give.ca_pem = mem_strdup(id->ca_pem);
    must(send_answer(peer, r, &m, &d) == ERR_OK);
    msg_fini(&m);
}

/* Gives the request to the handlers, who answer it now or later. */
static void hear_request(struct link_peer *peer, const struct link_request *r, const struct msg *m)
{
    const struct link_server_handlers *h = &peer->server->handlers;
    if (peer->request_count == LINK_REQUESTS_MAX) {
        refuse_connection(peer, "more unanswered requests than a client may have");
        return;
    }
    if (peer->session.state == SESSION_OPEN)
        peer->deadline_ns = clock_now_ns() + LINK_SILENT_NS;
    struct link_request *request = mem_dup(r, sizeof *r);
    request->next = peer->requests;
    if (request->next != NULL)
        request->next->prev = request;
    peer->requests = request;
    peer->request_count++;
    if (m->kind != MSG_ENROLL)
        h->on_request(h->arg, peer, m, request);
    else if (h->on_enroll != NULL)
        h->on_enroll(h->arg, &m->u.enroll, request);
    else
        link_refuse(&request, ERR_UNSUPPORTED, "this controller enrolls nobody");
}

void link_peer_hear(struct link_peer *peer, uint32_t number, const void *data, size_t len)
{
    if (peer->session.state == SESSION_ENDED)
        return;
    struct err_detail d;
    struct msg m;
    enum err e = codec_decode(data, len, &m, &d);
    if (e != ERR_OK) {
        refuse_connection(peer, d.text);
        return;
    }
    const struct link_request r = {.peer = peer, .number = number, .kind = m.kind, .serial = m.serial};
    e = session_hear(&peer->session, &m, &d);
    if (e != ERR_OK)
        refuse_connection(peer, d.text);
    else if (m.kind == MSG_HELLO)
        hear_hello(peer, &r, &m);
    else if (m.kind == MSG_PROOF)
        hear_proof(peer, &r, &m);
    else if (m.kind == MSG_CA_ASK)
        hear_ca_ask(peer, &r);
    else
        hear_request(peer, &r, &m);
    msg_fini(&m);
}

/* ---- what handlers may ask ----------------------------------------------------------------------------- */

uint64_t link_request_network(const struct link_request *request)
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
    uint64_t network = 0;
    if (request->peer == NULL || request->peer->ipc)
        return 0;
    const uint8_t *bytes = request->peer->remote.s6_addr;
    memcpy(&network, memcmp(bytes, mapped, sizeof mapped) == 0 ? bytes + 8 : bytes, sizeof network);
    return network;
}

const char *link_peer_name(const struct link_peer *peer)
{
    return peer->facts.name;
}

enum msg_role link_peer_role(const struct link_peer *peer)
{
    return peer->facts.role;
}

const char *link_peer_serial(const struct link_peer *peer)
{
    return peer->facts.serial;
}

const char *link_peer_address(const struct link_peer *peer)
{
    return peer->address;
}

void link_peer_set_data(struct link_peer *peer, void *data)
{
    peer->data = data;
}

void *link_peer_data(const struct link_peer *peer)
{
    return peer->data;
}
