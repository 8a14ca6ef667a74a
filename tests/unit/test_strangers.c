#include "common/clock.h"
#include "common/mem.h"
#include "proto/identity/x509.h"
#include "tests/support/lab.h"
#include "tests/support/raw_peer.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
// clang-format on

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Peers that keep no rules, beside one that does: they are refused and dropped, and its answers go on. */

struct scene {
    struct lab lab;
    struct lab_client good;
    struct identity id;
    struct raw_peer *raw;
};

static struct raw_peer *open_tcp(const struct scene *s)
{
    return raw_open_tcp("127.0.0.1", strrchr(lab_tls_address(&s->lab), ':') + 1);
}

static void scene_init(struct scene *s)
{
    memset(s, 0, sizeof *s);
    lab_init(&s->lab, true);
    lab_make_identity(&s->lab, "a1", MSG_ROLE_AGENT, &s->id);
    lab_connect(&s->lab, &s->good, lab_tls_address(&s->lab), &s->id, MSG_ROLE_AGENT, "a1");
    lab_wait(&s->lab, &s->good.ups, 1);
}

/* The good peer noticed nothing, and another one can still come. */
static void scene_fini(struct scene *s)
{
    struct lab_client late;
    raw_free(s->raw);
    lab_connect(&s->lab, &late, lab_tls_address(&s->lab), &s->id, MSG_ROLE_AGENT, "a1");
    lab_wait(&s->lab, &late.ups, 1);
    lab_disconnect(&late);
    for (int i = 0; i < 3; i++) {
        lab_poll(&s->good);
        lab_wait(&s->lab, &s->good.answers, s->good.answers + 1);
    }
    assert_int_equal(s->good.downs, 0);
    assert_int_equal(s->good.failures, 0);
    lab_disconnect(&s->good);
    identity_fini(&s->id);
    lab_fini(&s->lab);
}

/* Runs the server until the raw peer can read. */
static void wait_readable(struct scene *s)
{
    uint64_t end_ns = clock_now_ns() + 10 * NS_PER_S;
    while (!raw_readable(s->raw, 1)) {
        assert_true(clock_now_ns() < end_ns);
        uv_run(&s->lab.loop, UV_RUN_NOWAIT);
    }
}

static void wait_closed(struct scene *s)
{
    uint64_t end_ns = clock_now_ns() + 10 * NS_PER_S;
    while (!raw_closed(s->raw)) {
        assert_true(clock_now_ns() < end_ns);
        wait_readable(s);
    }
}

static void expect_refused(struct scene *s, const char *why)
{
    lab_wait(&s->lab, &s->lab.refused, 1);
    if (strstr(s->lab.refused_why, why) == NULL)
        fail_msg("'%s' has no '%s'", s->lab.refused_why, why);
    wait_closed(s);
}

static void make_hello(struct msg *m, const char *name, enum msg_role role, const char *cert_pem)
{
    msg_init(m, MSG_HELLO);
    m->serial = 1;
    m->u.hello.protocol = MSG_PROTOCOL_VERSION;
    m->u.hello.name = mem_strdup(name);
    m->u.hello.role = role;
    m->u.hello.certificate_pem = mem_strdup(cert_pem);
}

/* Says hello and reads the first answer. */
static void hello(struct scene *s, const char *name, enum msg_role role, const char *cert_pem,
                  struct msg *answer)
{
    struct msg m;
    make_hello(&m, name, role, cert_pem);
    assert_true(raw_send_msg(s->raw, 1, &m));
    msg_fini(&m);
    wait_readable(s);
    assert_int_equal(raw_receive(s->raw, answer, 5000), RAW_MESSAGE);
}

static void expect_hello_denied(struct scene *s, const char *name, enum msg_role role, const char *cert_pem,
                                const char *why)
{
    struct msg answer;
    hello(s, name, role, cert_pem, &answer);
    assert_int_equal(answer.kind, MSG_REFUSED);
    assert_int_equal(answer.u.refused.code, ERR_DENIED);
    if (strstr(answer.u.refused.text, why) == NULL)
        print_message("'%s' has no '%s'\n", answer.u.refused.text, why);
    assert_non_null(strstr(answer.u.refused.text, why));
    msg_fini(&answer);
    wait_closed(s);
    assert_int_equal(s->lab.hellos, 1); /* the good one's */
}

static void open_tls(struct scene *s, const struct identity *id)
{
    s->raw = open_tcp(s);
    assert_non_null(s->raw);
    assert_true(raw_start_tls(s->raw, id));
    assert_true(raw_greet(s->raw));
}

/* A session by hand, to break rules in. Returns its id. */
static uint64_t open_session(struct scene *s)
{
    struct msg answer, proof;
    struct err_detail d;
    open_tls(s, &s->id);
    hello(s, "a1", MSG_ROLE_AGENT, s->id.cert_pem, &answer);
    assert_int_equal(answer.kind, MSG_CHALLENGE);
    msg_init(&proof, MSG_PROOF);
    proof.serial = 1;
    assert_int_equal(
        identity_sign(s->id.key_pem, MSG_ROLE_AGENT, answer.u.challenge.nonce, &proof.u.proof.signature, &d),
        ERR_OK);
    assert_true(raw_send_msg(s->raw, 2, &proof));
    msg_fini(&proof);
    wait_readable(s);
    assert_int_equal(raw_receive(s->raw, &answer, 5000), RAW_MESSAGE);
    assert_int_equal(answer.kind, MSG_WELCOME);
    uint64_t session = answer.u.welcome.session;
    msg_fini(&answer);
    return session;
}

/* ---- before a session ---------------------------------------------------------------------------------- */

static void test_garbage_instead_of_tls(void **state)
{
    (void)state;
    struct scene s;
    char junk[4096];
    scene_init(&s);
    identity_random(junk, sizeof junk);
    s.raw = open_tcp(&s);
    assert_non_null(s.raw);
    (void)raw_send(s.raw, junk, sizeof junk);
    wait_closed(&s);
    scene_fini(&s);
}

static void test_garbage_instead_of_a_greeting(void **state)
{
    (void)state;
    struct scene s;
    scene_init(&s);
    s.raw = open_tcp(&s);
    assert_non_null(s.raw);
    assert_true(raw_start_tls(s.raw, NULL));
    assert_true(raw_send(s.raw, "GET / HTTP/1.1\r\n\r\n", 18));
    wait_closed(&s);
    scene_fini(&s);
}

static void test_a_frame_of_a_gibibyte(void **state)
{
    (void)state;
    struct scene s;
    scene_init(&s);
    open_tls(&s, NULL);
    assert_true(raw_send(s.raw, "\0\0\0\0\x40\0\0\0begin", 13));
    wait_closed(&s);
    scene_fini(&s);
}

static void test_a_frame_beyond_the_cap(void **state)
{
    (void)state;
    struct scene s;
    scene_init(&s);
    open_tls(&s, NULL);
    char *big = mem_zalloc(1, LIMIT_FRAME_BYTES + 1);
    (void)raw_send_request(s.raw, 1, big, LIMIT_FRAME_BYTES + 1);
    free(big);
    wait_closed(&s);
    scene_fini(&s);
}

static void test_a_frame_that_does_not_decode(void **state)
{
    (void)state;
    struct scene s;
    scene_init(&s);
    open_tls(&s, NULL);
    assert_true(raw_send_request(s.raw, 1, "\xff\xff\xff\xff", 4));
    expect_refused(&s, "not a frame");
    scene_fini(&s);
}

static void test_a_message_without_a_session(void **state)
{
    (void)state;
    static const enum msg_kind kinds[] = {MSG_POLL,    MSG_PUSH,   MSG_PROOF,
                                          MSG_WELCOME, MSG_PUSHED, MSG_COMMANDS};
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        struct scene s;
        struct msg m;
        scene_init(&s);
        open_tls(&s, NULL);
        msg_init(&m, kinds[i]);
        m.serial = 1;
        if (kinds[i] == MSG_WELCOME)
            m.u.welcome.session = 1;
        assert_true(raw_send_msg(s.raw, 1, &m));
        expect_refused(&s, msg_kind_name(kinds[i]));
        assert_int_equal(s.lab.requests, 0);
        scene_fini(&s);
    }
}

static void test_no_certificate(void **state)
{
    (void)state;
    struct scene s;
    scene_init(&s);
    open_tls(&s, NULL);
    expect_hello_denied(&s, "a1", MSG_ROLE_AGENT, "", "certificate");
    scene_fini(&s);
}

/* The certificate is known to everybody who saw a handshake; the key is not. */
static void test_anothers_certificate(void **state)
{
    (void)state;
    struct scene s;
    scene_init(&s);
    open_tls(&s, NULL);
    expect_hello_denied(&s, "a1", MSG_ROLE_AGENT, s.id.cert_pem, "connected without a certificate");
    scene_fini(&s);
}

static void test_a_foreign_ca(void **state)
{
    (void)state;
    struct scene s;
    struct lab other;
    struct identity foreign;
    scene_init(&s);
    lab_init(&other, true);
    lab_make_identity(&other, "a1", MSG_ROLE_AGENT, &foreign);
    open_tls(&s, &foreign);
    expect_hello_denied(&s, "a1", MSG_ROLE_AGENT, foreign.cert_pem, "not of this lab");
    identity_fini(&foreign);
    lab_fini(&other);
    scene_fini(&s);
}

static void test_posing_as_another_agent(void **state)
{
    (void)state;
    struct scene s;
    scene_init(&s);
    open_tls(&s, &s.id);
    expect_hello_denied(&s, "a2", MSG_ROLE_AGENT, s.id.cert_pem, "claims to be agent 'a2'");
    scene_fini(&s);
}

static void test_an_agent_posing_as_an_operator(void **state)
{
    (void)state;
    struct scene s;
    scene_init(&s);
    open_tls(&s, &s.id);
    expect_hello_denied(&s, "a1", MSG_ROLE_OPERATOR, s.id.cert_pem, "claims to be operator");
    scene_fini(&s);
}

static void test_a_signature_by_another_key(void **state)
{
    (void)state;
    struct scene s;
    struct identity second;
    struct msg answer, proof;
    struct err_detail d;
    scene_init(&s);
    /* TLS with a certificate of the lab, HELLO with another's: the nonce cannot be signed. */
    lab_make_identity(&s.lab, "a2", MSG_ROLE_AGENT, &second);
    open_tls(&s, &second);
    hello(&s, "a1", MSG_ROLE_AGENT, s.id.cert_pem, &answer);
    assert_int_equal(answer.kind, MSG_CHALLENGE);
    msg_init(&proof, MSG_PROOF);
    proof.serial = 1;
    assert_int_equal(
        identity_sign(second.key_pem, MSG_ROLE_AGENT, answer.u.challenge.nonce, &proof.u.proof.signature, &d),
        ERR_OK);
    assert_true(raw_send_msg(s.raw, 2, &proof));
    msg_fini(&proof);
    wait_readable(&s);
    assert_int_equal(raw_receive(s.raw, &answer, 5000), RAW_MESSAGE);
    assert_int_equal(answer.kind, MSG_REFUSED);
    assert_non_null(strstr(answer.u.refused.text, "signature"));
    msg_fini(&answer);
    wait_closed(&s);
    assert_int_equal(s.lab.hellos, 1);
    identity_fini(&second);
    scene_fini(&s);
}

static void test_another_protocol_version(void **state)
{
    (void)state;
    struct scene s;
    struct msg m, answer;
    scene_init(&s);
    open_tls(&s, &s.id);
    make_hello(&m, "a1", MSG_ROLE_AGENT, s.id.cert_pem);
    m.u.hello.protocol = MSG_PROTOCOL_VERSION + 1;
    assert_true(raw_send_msg(s.raw, 1, &m));
    msg_fini(&m);
    wait_readable(&s);
    assert_int_equal(raw_receive(s.raw, &answer, 5000), RAW_MESSAGE);
    assert_int_equal(answer.kind, MSG_REFUSED);
    assert_int_equal(answer.u.refused.code, ERR_UNSUPPORTED);
    assert_non_null(strstr(answer.u.refused.text, "install the same version"));
    msg_fini(&answer);
    wait_closed(&s);
    scene_fini(&s);
}

static void test_two_hellos(void **state)
{
    (void)state;
    struct scene s;
    struct msg m, answer;
    scene_init(&s);
    open_tls(&s, &s.id);
    hello(&s, "a1", MSG_ROLE_AGENT, s.id.cert_pem, &answer);
    msg_fini(&answer);
    make_hello(&m, "a1", MSG_ROLE_AGENT, s.id.cert_pem);
    m.serial = 2;
    assert_true(raw_send_msg(s.raw, 2, &m));
    msg_fini(&m);
    expect_refused(&s, "hello");
    scene_fini(&s);
}

/* ---- within a session ---------------------------------------------------------------------------------- */

static void send_poll(struct scene *s, uint32_t number, uint64_t session, uint64_t serial)
{
    struct msg m;
    msg_init(&m, MSG_POLL);
    m.session = session;
    m.serial = serial;
    assert_true(raw_send_msg(s->raw, number, &m));
}

static void test_a_replayed_message(void **state)
{
    (void)state;
    struct scene s;
    struct msg answer;
    scene_init(&s);
    uint64_t session = open_session(&s);
    send_poll(&s, 3, session, 3);
    wait_readable(&s);
    assert_int_equal(raw_receive(s.raw, &answer, 5000), RAW_MESSAGE);
    assert_int_equal(answer.kind, MSG_COMMANDS);
    msg_fini(&answer);
    int requests = s.lab.requests;
    send_poll(&s, 4, session, 3);
    expect_refused(&s, "replayed");
    assert_int_equal(s.lab.requests, requests);
    scene_fini(&s);
}

static void test_another_sessions_message(void **state)
{
    (void)state;
    struct scene s;
    scene_init(&s);
    (void)open_session(&s);
    send_poll(&s, 3, s.good.session, 3);
    expect_refused(&s, "another session");
    assert_int_equal(s.lab.requests, 0);
    scene_fini(&s);
}

static void test_an_operators_message_from_an_agent(void **state)
{
    (void)state;
    struct scene s;
    struct msg m;
    scene_init(&s);
    msg_init(&m, MSG_ASK);
    m.u.ask.kind = MSG_ASK_TOKEN;
    m.session = open_session(&s);
    m.serial = 3;
    assert_true(raw_send_msg(s.raw, 3, &m));
    expect_refused(&s, "ask from role agent");
    assert_int_equal(s.lab.requests, 0);
    scene_fini(&s);
}

static void test_too_many_open_requests(void **state)
{
    (void)state;
    struct scene s;
    scene_init(&s);
    uint64_t session = open_session(&s);
    s.lab.hold = true;
    for (uint32_t i = 0; i < 17; i++)
        send_poll(&s, 3 + i, session, 3 + i);
    expect_refused(&s, "unanswered requests");
    assert_int_equal(s.lab.held_count, 16);
    s.lab.hold = false;
    scene_fini(&s);
}

/* ---- peers that leave at the worst moment
 * ------------------------------------------------------------------ */

static void test_gone_before_the_greeting(void **state)
{
    (void)state;
    struct scene s;
    struct lab_client late;
    scene_init(&s);
    for (int i = 0; i < 50; i++)
        raw_reset(raw_open_ipc(s.lab.ipc + strlen("ipc://")));
    for (int i = 0; i < 20; i++)
        raw_reset(open_tcp(&s));
    for (int i = 0; i < 20; i++) {
        s.raw = open_tcp(&s);
        assert_non_null(s.raw);
        assert_true(raw_start_half_tls(s.raw));
        raw_reset(s.raw);
    }
    s.raw = NULL;
    lab_connect(&s.lab, &late, s.lab.ipc, NULL, MSG_ROLE_OPERATOR, "o1");
    lab_wait(&s.lab, &late.ups, 1);
    lab_disconnect(&late);
    scene_fini(&s);
}

/* Dropped while it goes on sending: its pipe must end all the same, and the server be able to close. */
static void test_a_stream_of_garbage(void **state)
{
    (void)state;
    struct scene s;
    char junk[300];
    scene_init(&s);
    memset(junk, 0xff, sizeof junk);
    for (int i = 0; i < 10; i++) {
        open_tls(&s, NULL);
        int refused = s.lab.refused;
        uint64_t end_ns = clock_now_ns() + 10 * NS_PER_S;
        while (raw_send_request(s.raw, 1, junk, sizeof junk) && !raw_closed(s.raw)) {
            assert_true(clock_now_ns() < end_ns);
            uv_run(&s.lab.loop, UV_RUN_NOWAIT);
        }
        lab_wait(&s.lab, &s.lab.refused, refused + 1);
        raw_free(s.raw);
        s.raw = NULL;
    }
    scene_fini(&s);
}

/* ---- on the socket file ----------------------------------------------------------------------------------
 */

static void test_garbage_over_ipc(void **state)
{
    (void)state;
    struct scene s;
    char junk[4096];
    scene_init(&s);
    identity_random(junk, sizeof junk);
    s.raw = raw_open_ipc(s.lab.ipc + strlen("ipc://"));
    assert_non_null(s.raw);
    assert_true(raw_greet(s.raw));
    assert_true(raw_send_request(s.raw, 1, junk, sizeof junk));
    expect_refused(&s, "");
    scene_fini(&s);
}

/* ---- the other way round
 * ----------------------------------------------------------------------------------- */

/* A server that shows an agent's certificate: nobody talks to it. */
static void test_an_agent_posing_as_the_controller(void **state)
{
    (void)state;
    struct scene s;
    struct lab_client victim;
    struct link_server *fake = NULL;
    struct err_detail d = {.text = ""};
    const char *any = "tls+tcp://127.0.0.1:0";
    scene_init(&s);
    const struct link_server_options options = {
        .loop = &s.lab.loop, .addresses = &any, .address_count = 1, .identity = &s.id};
    assert_int_equal(link_server_new(&options, &fake, &d), ERR_OK);
    lab_connect(&s.lab, &victim, link_server_address(fake, 0), &s.id, MSG_ROLE_AGENT, "a1");
    lab_wait(&s.lab, &victim.downs, 2);
    assert_int_equal(victim.ups, 0);
    assert_int_equal(victim.down_code, ERR_DENIED);
    assert_non_null(strstr(victim.down_why, "not this lab's controller"));
    assert_false(victim.final); /* the right one may come back */
    lab_disconnect(&victim);
    link_server_close(&fake, NULL, NULL);
    scene_fini(&s);
}

static void test_a_controller_of_another_lab(void **state)
{
    (void)state;
    struct scene s;
    struct lab other;
    struct lab_client victim;
    struct identity theirs;
    scene_init(&s);
    lab_init(&other, true);
    lab_make_identity(&other, "a1", MSG_ROLE_AGENT, &theirs);
    lab_connect(&s.lab, &victim, lab_tls_address(&s.lab), &theirs, MSG_ROLE_AGENT, "a1");
    lab_wait(&s.lab, &victim.downs, 1);
    assert_int_equal(victim.ups, 0);
    assert_int_equal(victim.down_code, ERR_DENIED);
    lab_disconnect(&victim);
    identity_fini(&theirs);
    lab_fini(&other);
    scene_fini(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_garbage_instead_of_tls),
        cmocka_unit_test(test_garbage_instead_of_a_greeting),
        cmocka_unit_test(test_a_frame_of_a_gibibyte),
        cmocka_unit_test(test_a_frame_beyond_the_cap),
        cmocka_unit_test(test_a_frame_that_does_not_decode),
        cmocka_unit_test(test_a_message_without_a_session),
        cmocka_unit_test(test_no_certificate),
        cmocka_unit_test(test_anothers_certificate),
        cmocka_unit_test(test_a_foreign_ca),
        cmocka_unit_test(test_posing_as_another_agent),
        cmocka_unit_test(test_an_agent_posing_as_an_operator),
        cmocka_unit_test(test_a_signature_by_another_key),
        cmocka_unit_test(test_another_protocol_version),
        cmocka_unit_test(test_two_hellos),
        cmocka_unit_test(test_a_replayed_message),
        cmocka_unit_test(test_another_sessions_message),
        cmocka_unit_test(test_an_operators_message_from_an_agent),
        cmocka_unit_test(test_too_many_open_requests),
        cmocka_unit_test(test_gone_before_the_greeting),
        cmocka_unit_test(test_a_stream_of_garbage),
        cmocka_unit_test(test_garbage_over_ipc),
        cmocka_unit_test(test_an_agent_posing_as_the_controller),
        cmocka_unit_test(test_a_controller_of_another_lab),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
