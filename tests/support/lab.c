#include "tests/support/lab.h"

#include "common/mem.h"
#include "tests/support/old_lab.h"
#include "tests/support/wait.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
// clang-format on

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static enum err on_hello(void *arg, struct link_peer *peer, const struct msg_hello *hello,
                         struct msg_welcome *welcome, struct err_detail *d)
{
    struct lab *lab = arg;
    (void)hello;
    lab->hellos++;
    if (lab->hello_code != ERR_OK)
        return err_set(d, lab->hello_code, "the lab says no");
    lab->peer = peer;
    welcome->lease_ns = 10 * NS_PER_S;
    welcome->poll_ns = 2 * NS_PER_S;
    welcome->build = mem_strdup("test");
    return ERR_OK;
}

static void answer(struct link_request **request, const struct msg *question)
{
    struct msg m;
    msg_init(&m, question->kind == MSG_POLL   ? MSG_COMMANDS
                 : question->kind == MSG_PUSH ? MSG_PUSHED
                                              : MSG_ANSWER);
    link_answer(request, &m);
    msg_fini(&m);
}

static void on_request(void *arg, struct link_peer *peer, const struct msg *m, struct link_request *request)
{
    struct lab *lab = arg;
    (void)peer;
    lab->requests++;
    if (lab->hold && lab->held_count < (int)ARRAY_LEN(lab->held))
        lab->held[lab->held_count++] = request;
    else if (m->kind == MSG_POLL || m->kind == MSG_PUSH || m->kind == MSG_ASK)
        answer(&request, m);
    else
        link_refuse(&request, ERR_NOT_FOUND, "no %s here", msg_kind_name(m->kind));
}

static void on_enroll(void *arg, const struct msg_enroll *m, struct link_request *request)
{
    struct lab *lab = arg;
    struct err_detail d;
    struct msg out;
    lab->enrolled++;
    if (lab->enroll_code != ERR_OK) {
        link_refuse(&request, lab->enroll_code, "the token was used");
        return;
    }
    msg_init(&out, MSG_ENROLLED);
    enum err e = identity_sign_request(lab->ca_dir, m->csr_pem, m->name, m->role, 3600 * NS_PER_S,
                                       &out.u.enrolled.certificate_pem, &d);
    if (e == ERR_OK)
        link_answer(&request, &out);
    else
        link_refuse(&request, e, "%s", d.text);
    msg_fini(&out);
}

static void on_gone(void *arg, struct link_peer *peer, const char *why)
{
    struct lab *lab = arg;
    (void)why;
    lab->gone++;
    if (lab->peer == peer)
        lab->peer = NULL;
}

static void on_refused(void *arg, const char *from, const char *why)
{
    struct lab *lab = arg;
    (void)from;
    lab->refused++;
    snprintf(lab->refused_why, sizeof lab->refused_why, "%s", why);
}

void lab_wait_at(struct lab *lab, const int *counter, int value, const char *file, int line)
{
    uint64_t limit_ns = wait_limit();
    while (*counter < value && wait_turn(&lab->loop, limit_ns)) {
    }
    if (*counter < value) {
        print_message("%d of %d came; hellos %d requests %d gone %d refused %d %s\n", *counter, value,
                      lab->hellos, lab->requests, lab->gone, lab->refused, lab->refused_why);
        _fail(file, line);
    }
}

static void begin(struct lab *lab)
{
    memset(lab, 0, sizeof *lab);
    lab->connect_timeout_ns = 5 * NS_PER_S;
    scratch_init(&lab->scratch);
    snprintf(lab->ca_dir, sizeof lab->ca_dir, "%s/ca", lab->scratch.dir);
    snprintf(lab->ipc, sizeof lab->ipc, "ipc://%s/socket", lab->scratch.dir);
    assert_int_equal(uv_loop_init(&lab->loop), 0);
    snprintf(lab->tls_address, sizeof lab->tls_address, "tls+tcp://127.0.0.1:0");
    snprintf(lab->enroll_dir, sizeof lab->enroll_dir, "%s/enrolled", lab->scratch.dir);
}

void lab_init(struct lab *lab, bool tls)
{
    struct err_detail d = {.text = ""};
    begin(lab);
    if (tls) {
        assert_int_equal(identity_create_lab(lab->ca_dir, &d), ERR_OK);
        assert_int_equal(identity_load(lab->ca_dir, &lab->identity, &d), ERR_OK);
    }
    lab_start_server(lab);
}

void lab_init_old(struct lab *lab)
{
    struct err_detail d = {.text = ""};
    begin(lab);
    old_lab_write(lab->ca_dir);
    assert_int_equal(identity_load(lab->ca_dir, &lab->identity, &d), ERR_OK);
    lab_start_server(lab);
}

void lab_start_server(struct lab *lab)
{
    struct err_detail d = {.text = ""};
    bool tls = lab->identity.ca_pem != NULL;
    const char *addresses[] = {lab->ipc, lab->tls_address};
    const struct link_server_options options = {
        .loop = &lab->loop,
        .addresses = addresses,
        .address_count = tls ? 2 : 1,
        .identity = tls ? &lab->identity : NULL,
        .handlers = {.arg = lab,
                     .on_hello = on_hello,
                     .on_request = on_request,
                     .on_enroll = on_enroll,
                     .on_gone = on_gone,
                     .on_refused = on_refused},
    };
    enum err e = link_server_new(&options, &lab->server, &d);
    if (e != ERR_OK)
        print_message("%s\n", d.text);
    assert_int_equal(e, ERR_OK);
    if (tls)
        snprintf(lab->tls_address, sizeof lab->tls_address, "%s", link_server_address(lab->server, 1));
}

static void on_server_closed(void *arg)
{
    struct lab *lab = arg;
    lab->closing++;
}

void lab_stop_server(struct lab *lab)
{
    int before = lab->closing;
    link_server_close(&lab->server, on_server_closed, lab);
    lab_wait(lab, &lab->closing, before + 1);
}

void lab_fini(struct lab *lab)
{
    if (lab->server != NULL)
        lab_stop_server(lab);
    for (int i = 0; i < lab->held_count; i++)
        if (lab->held[i] != NULL)
            link_refuse(&lab->held[i], ERR_CLOSED, "too late");
    uv_run(&lab->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&lab->loop), 0);
    identity_fini(&lab->identity);
    scratch_fini(&lab->scratch);
}

const char *lab_tls_address(const struct lab *lab)
{
    return link_server_address(lab->server, 1);
}

void lab_make_identity(struct lab *lab, const char *name, enum msg_role role, struct identity *out)
{
    struct err_detail d;
    char *csr = NULL;
    memset(out, 0, sizeof *out);
    assert_int_equal(identity_make_request(name, &out->key_pem, &csr, &d), ERR_OK);
    assert_int_equal(identity_sign_request(lab->ca_dir, csr, name, role, 3600 * NS_PER_S, &out->cert_pem, &d),
                     ERR_OK);
    out->ca_pem = mem_strdup(lab->identity.ca_pem);
    free(csr);
}

/* ---- a client ------------------------------------------------------------------------------------------ */

static void on_up(void *arg, const struct msg_welcome *welcome)
{
    struct lab_client *c = arg;
    c->session = welcome->session;
    c->ups++;
}

static void on_down(void *arg, enum err e, const char *why, bool final)
{
    struct lab_client *c = arg;
    c->downs++;
    c->down_code = e;
    c->final = final;
    snprintf(c->down_why, sizeof c->down_why, "%s", why);
}

void lab_connect(struct lab *lab, struct lab_client *c, const char *address, const struct identity *identity,
                 enum msg_role role, const char *name)
{
    struct err_detail d = {.text = ""};
    memset(c, 0, sizeof *c);
    c->lab = lab;
    if (identity != NULL) {
        c->identity.ca_pem = mem_strdup(identity->ca_pem);
        c->identity.cert_pem = mem_strdup(identity->cert_pem);
        c->identity.key_pem = mem_strdup(identity->key_pem);
    }
    struct msg_hello hello = {.protocol = MSG_PROTOCOL_VERSION, .role = role};
    char name_copy[LIMIT_NAME_BYTES + 1];
    snprintf(name_copy, sizeof name_copy, "%s", name);
    hello.name = name_copy;
    const struct link_client_options options = {
        .loop = &lab->loop,
        .address = address,
        .identity = identity != NULL ? &c->identity : NULL,
        .connect_timeout_ns = lab->connect_timeout_ns,
        .handlers = {.arg = c, .on_up = on_up, .on_down = on_down},
    };
    enum err e = link_client_new(&options, &hello, &c->link, &d);
    if (e != ERR_OK)
        print_message("%s\n", d.text);
    assert_int_equal(e, ERR_OK);
}

static void on_client_closed(void *arg)
{
    struct lab_client *c = arg;
    c->lab->closing++;
}

void lab_disconnect(struct lab_client *c)
{
    int before = c->lab->closing;
    link_client_close(&c->link, on_client_closed, c);
    lab_wait(c->lab, &c->lab->closing, before + 1);
    identity_fini(&c->identity);
}

static void on_reply(void *arg, enum err e, const struct msg *m, const struct err_detail *d)
{
    struct lab_client *c = arg;
    c->last_code = e;
    if (e == ERR_OK) {
        c->last_kind = m->kind;
        c->answers++;
    } else {
        snprintf(c->last_text, sizeof c->last_text, "%s", d->text);
        c->failures++;
    }
}

enum err lab_call(struct lab_client *c, const struct msg *m, uint64_t timeout_ns)
{
    return link_client_call(c->link, m, timeout_ns, on_reply, c);
}

void lab_poll(struct lab_client *c)
{
    struct msg m;
    msg_init(&m, MSG_POLL);
    assert_int_equal(lab_call(c, &m, 5 * NS_PER_S), ERR_OK);
    msg_fini(&m);
}

/* ---- enrolling ----------------------------------------------------------------------------------------- */

struct enrollment {
    struct link_enroll_options options;
    struct err_detail *d;
    enum err result;
    uv_async_t over;
    int done;
};

static void enroll_thread(void *arg)
{
    struct enrollment *x = arg;
    x->result = link_enroll(&x->options, x->d);
    uv_async_send(&x->over);
}

static void on_enrolled(uv_async_t *async)
{
    struct enrollment *x = async->data;
    x->done = 1;
}

enum err lab_enroll(struct lab *lab, const char *name, const char *token, struct err_detail *d)
{
    char own_token[IDENTITY_TOKEN_BYTES_MAX], secret[64];
    assert_int_equal(identity_make_token(lab->identity.ca_pem, own_token, secret, d), ERR_OK);
    struct enrollment x = {.options = {.address = lab_tls_address(lab),
                                       .token = token != NULL ? token : own_token,
                                       .name = name,
                                       .role = MSG_ROLE_AGENT,
                                       .dir = lab->enroll_dir,
                                       .timeout_ns = 5 * NS_PER_S},
                           .d = d};
    uv_thread_t thread;
    assert_int_equal(uv_async_init(&lab->loop, &x.over, on_enrolled), 0);
    x.over.data = &x;
    assert_int_equal(uv_thread_create(&thread, enroll_thread, &x), 0);
    lab_wait(lab, &x.done, 1);
    uv_thread_join(&thread);
    uv_close((uv_handle_t *)&x.over, NULL);
    uv_run(&lab->loop, UV_RUN_NOWAIT);
    return x.result;
}
