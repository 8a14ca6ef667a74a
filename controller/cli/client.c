#include "controller/cli/client.h"

#include "common/clock.h"
#include "common/mem.h"
#include "controller/cli/listener.h"
#include "proto/identity/identity.h"
#include "proto/link/link.h"

#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

#define CONNECT_TIMEOUT_NS (5 * NS_PER_S)
#define RETRY_NS           (15 * NS_PER_S) /* how long a lost controller is waited for */

struct client {
    uv_loop_t loop;
    uv_timer_t timer; /* turns the loop while a deadline runs */
    struct link_client *link;
    struct identity identity;
    char *address;
    char *name;
    bool up;
    bool final;    /* refused for good */
    enum err down; /* what ended the newest attempt; ERR_TIMEOUT before any has ended */
    struct err_detail why;
    client_check *check; /* NULL: a controller that is away may come back */
    void *check_arg;
    /* The call in hand. */
    bool answered;
    enum err result;
    struct err_detail result_detail;
    client_take *take;
    void *take_arg;
};

static void on_up(void *arg, const struct msg_welcome *welcome)
{
    (void)welcome;
    struct client *c = arg;
    c->up = true;
}

static void on_down(void *arg, enum err e, const char *why, bool final)
{
    struct client *c = arg;
    c->up = false;
    c->down = e;
    c->final = c->final || final;
    err_set(&c->why, ERR_UNREACHABLE, "%s", why);
}

static void on_tick(uv_timer_t *timer)
{
    (void)timer;
}

const char *client_login_name(void)
{
    const struct passwd *pw = getpwuid(geteuid());
    return pw != NULL ? pw->pw_name : "operator";
}

static enum err load_identity(struct client *c, const struct place *place, struct err_detail *d)
{
    struct identity_facts facts;
    char *dir = place_identity_dir(place);
    enum err e = identity_load(dir, &c->identity, d);
    if (e == ERR_OK)
        e = identity_check_certificate(c->identity.ca_pem, c->identity.cert_pem, &facts, d);
    if (e == ERR_OK)
        c->name = mem_strdup(facts.name);
    else if (e == ERR_NOT_FOUND)
        e = err_set(
            d, e,
            "%s wants an operator's certificate, and there is none in %s: 'splitbench token operator' on "
            "the controller's machine prints a TOKEN, 'splitbench enroll %s TOKEN' here uses it",
            c->address, dir, c->address);
    else
        e = err_prefix(d, e, "the operator's certificate for %s", c->address);
    free(dir);
    return e;
}

/* Turns the loop until we are connected, refused for good, or the deadline has passed. */
static enum err wait_up(struct client *c, uint64_t deadline_ns, struct err_detail *d)
{
    enum err e = ERR_OK;
    while (!c->up && !c->final && e == ERR_OK && clock_now_ns() < deadline_ns) {
        uv_run(&c->loop, UV_RUN_ONCE);
        if (!c->up && c->check != NULL)
            e = c->check(c->check_arg, d);
    }
    return e;
}

/* Somebody may be there: starting a second controller would be the wrong thing to do. */
static enum err say_silent(const struct client *c, enum err e, struct err_detail *d)
{
    struct listener l;
    bool here = listener_find(c->address, &l);
    if (here && l.stopped)
        return err_set(d, e, "the controller at %s is stopped (process %ld): 'kill -CONT %ld' lets it go on",
                       c->address, (long)l.pid, (long)l.pid);
    if (here && l.pid > 0)
        return err_set(
            d, e,
            "the controller at %s (process %ld) is there, but did not answer in time; its log may say why",
            c->address, (long)l.pid);
    return err_set(
        d, e,
        "the controller at %s did not answer in time: it is stopped or overloaded, or the network drops "
        "what is sent there",
        c->address);
}

static enum err say_unreached(const struct client *c, struct err_detail *d)
{
    if (c->down == ERR_TIMEOUT)
        return say_silent(c, ERR_UNREACHABLE, d);
    if (c->down == ERR_CLOSED && !c->final)
        return err_set(
            d, ERR_UNREACHABLE,
            "a connection to %s ends at once (%s): what listens there is no controller, or one that is "
            "ending; its log may say why",
            c->address, c->why.text);
    const char *why = c->why.text;
    const char *end = strchr(".?!", why[strlen(why) - 1]) != NULL ? "" : ".";
    bool named = strstr(why, c->address) != NULL;
    if (c->final)
        return err_set(d, ERR_DENIED, "the controller at %s refuses: %s", c->address, why);
    return err_set(d, ERR_UNREACHABLE,
                   "%s%s%s%s%s Start one with 'splitbench controller', name another with --controller, or "
                   "measure on this machine alone with 'run --local'",
                   named ? "" : "no controller at ", named ? "" : c->address, named ? "" : ": ", why, end);
}

enum err client_open(const struct place *place, struct client **out, struct err_detail *d)
{
    struct client *c = mem_zalloc(1, sizeof *c);
    c->down = ERR_TIMEOUT;
    must(uv_loop_init(&c->loop) == 0);
    must(uv_timer_init(&c->loop, &c->timer) == 0);
    must(uv_timer_start(&c->timer, on_tick, 50, 50) == 0);
    enum err e = place_address(place, &c->address, d);
    if (e != ERR_OK)
        goto out;
    bool over_ipc = strncmp(c->address, "ipc://", 6) == 0;
    if (over_ipc)
        c->name = mem_strdup(client_login_name());
    else if ((e = load_identity(c, place, d)) != ERR_OK)
        goto out;
    char build[] = SPLITBENCH_BUILD;
    struct msg_hello hello = {
        .protocol = MSG_PROTOCOL_VERSION, .build = build, .role = MSG_ROLE_OPERATOR, .name = c->name};
    identity_random(&hello.incarnation, sizeof hello.incarnation);
    e = link_client_new(&(struct link_client_options){.loop = &c->loop,
                                                      .address = c->address,
                                                      .identity = over_ipc ? NULL : &c->identity,
                                                      .connect_timeout_ns = CONNECT_TIMEOUT_NS,
                                                      .handlers = {c, on_up, on_down}},
                        &hello, &c->link, d);
    if (e != ERR_OK)
        goto out;
    e = wait_up(c, clock_now_ns() + CONNECT_TIMEOUT_NS, d);
    if (e == ERR_OK && !c->up)
        e = say_unreached(c, d);
out:
    if (e != ERR_OK)
        client_close(&c);
    *out = c;
    return e;
}

static void on_closed(void *arg)
{
    *(bool *)arg = true;
}

void client_close(struct client **client)
{
    struct client *c = *client;
    *client = NULL;
    if (c == NULL)
        return;
    if (c->link != NULL) {
        bool closed = false;
        link_client_close(&c->link, on_closed, &closed);
        while (!closed)
            uv_run(&c->loop, UV_RUN_ONCE);
    }
    uv_close((uv_handle_t *)&c->timer, NULL);
    uv_run(&c->loop, UV_RUN_DEFAULT);
    must(uv_loop_close(&c->loop) == 0);
    identity_fini(&c->identity);
    free(c->address);
    free(c->name);
    free(c);
}

const char *client_name(const struct client *c)
{
    return c->name;
}

void client_set_check(struct client *c, client_check *check, void *arg)
{
    c->check = check;
    c->check_arg = arg;
}

static void on_reply(void *arg, enum err e, const struct msg *reply, const struct err_detail *d)
{
    struct client *c = arg;
    c->answered = true;
    c->result = e;
    if (d != NULL)
        c->result_detail = *d;
    if (e == ERR_OK && c->take != NULL)
        c->take(c->take_arg, reply);
}

enum err client_call(struct client *c, const struct msg *m, uint64_t timeout_ns, client_take *take, void *arg,
                     struct err_detail *d)
{
    uint64_t give_up_ns = clock_now_ns() + RETRY_NS;
    for (;;) {
        enum err e = wait_up(c, give_up_ns, d);
        if (e != ERR_OK)
            return e;
        if (!c->up && c->final)
            return err_set(d, ERR_DENIED, "the controller at %s refuses: %s", c->address, c->why.text);
        if (!c->up && c->down == ERR_TIMEOUT)
            return say_silent(c, ERR_UNREACHABLE, d);
        if (!c->up)
            return err_set(d, ERR_UNREACHABLE, "the controller at %s is gone: %s", c->address, c->why.text);
        c->answered = false;
        c->result_detail.text[0] = '\0';
        c->take = take;
        c->take_arg = arg;
        e = link_client_call(c->link, m, timeout_ns, on_reply, c);
        if (e != ERR_OK)
            return err_set(d, e, "cannot ask the controller at %s", c->address);
        while (!c->answered)
            uv_run(&c->loop, UV_RUN_ONCE);
        if (c->result == ERR_TIMEOUT)
            return say_silent(c, ERR_TIMEOUT, d);
        if (c->result != ERR_CLOSED || clock_now_ns() >= give_up_ns) {
            if (c->result != ERR_OK)
                err_set(d, c->result, "%s",
                        c->result_detail.text[0] != '\0' ? c->result_detail.text : err_text(c->result));
            return c->result;
        }
    }
}

/* What is asked may take the controller this long before its first piece: a report of a long schedule. */
#define ASK_LIMIT_NS (300 * NS_PER_S)

struct piece {
    client_piece *take;
    void *arg;
    uint64_t taken_bytes;
    uint64_t total_bytes;
    enum err result;
    struct err_detail *d;
};

static void take_piece(void *arg, const struct msg *reply)
{
    struct piece *p = arg;
    if (reply->kind != MSG_ANSWER) {
        p->result = err_set(p->d, ERR_INVALID, "the controller's answer is %s", err_text(ERR_INVALID));
        return;
    }
    const char *text = msg_text(reply->u.answer.text);
    size_t len = strlen(text);
    p->total_bytes = reply->u.answer.total_bytes;
    if (len == 0 && p->taken_bytes < p->total_bytes)
        p->result = err_set(p->d, ERR_INVALID, "the controller's answer ends early");
    else
        p->result = p->take(p->arg, text, len, p->d);
    p->taken_bytes += len;
}

enum err client_ask_pieces(struct client *c, const struct client_ask *ask, client_piece *piece, void *arg,
                           struct err_detail *d)
{
    struct piece p = {.take = piece, .arg = arg, .d = d};
    enum err e = ERR_OK;
    do {
        struct msg m;
        msg_init(&m, MSG_ASK);
        m.u.ask.kind = ask->kind;
        mem_set_string(&m.u.ask.job, ask->job != NULL ? ask->job : "");
        mem_set_string(&m.u.ask.arg, ask->arg != NULL ? ask->arg : "");
        m.u.ask.number = ask->number;
        m.u.ask.offset = p.taken_bytes;
        e = client_call(c, &m, ASK_LIMIT_NS, take_piece, &p, d);
        msg_fini(&m);
        if (e == ERR_OK)
            e = p.result;
    } while (e == ERR_OK && p.taken_bytes < p.total_bytes);
    return e;
}

static enum err collect(void *arg, const char *data, size_t len, struct err_detail *d)
{
    enum err e = buf_append(arg, data, len);
    return e == ERR_OK ? e : err_set(d, e, "the controller's answer is %s", err_text(e));
}

enum err client_ask(struct client *c, const struct client_ask *ask, struct buf *out, struct err_detail *d)
{
    buf_init(out, LIMIT_ANSWER_BYTES);
    enum err e = client_ask_pieces(c, ask, collect, out, d);
    if (e != ERR_OK)
        buf_fini(out);
    return e;
}

enum err client_ask_once(const struct place *place, const struct client_ask *ask, struct buf *out,
                         struct err_detail *d)
{
    struct client *client = NULL;
    enum err e = client_open(place, &client, d);
    if (e == ERR_OK)
        e = client_ask(client, ask, out, d);
    client_close(&client);
    return e;
}
