#include "common/clock.h"
#include "common/mem.h"
#include "tests/support/lab.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
// clang-format on

#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Links between parties that keep the rules; tests/unit/test_strangers.c has the others. */

static void wait_answers(struct lab *lab, struct lab_client *c, int count)
{
    for (int i = 0; i < count; i++) {
        lab_poll(c);
        lab_wait(lab, &c->answers, c->answers + 1);
    }
}

static void test_calls_over_ipc(void **state)
{
    (void)state;
    struct lab lab;
    struct lab_client c;
    lab_init(&lab, false);
    assert_string_equal(link_server_address(lab.server, 0), lab.ipc);
    lab_connect(&lab, &c, lab.ipc, NULL, MSG_ROLE_AGENT, "a1");
    lab_wait(&lab, &c.ups, 1);
    assert_string_equal(link_peer_name(lab.peer), "a1");
    assert_int_equal(link_peer_role(lab.peer), MSG_ROLE_AGENT);
    assert_string_equal(link_peer_serial(lab.peer), "");
    assert_string_equal(link_peer_address(lab.peer), "");
    wait_answers(&lab, &c, 100);
    assert_int_equal(c.last_kind, MSG_COMMANDS);
    lab_disconnect(&c);
    lab_wait(&lab, &lab.gone, 1);
    assert_int_equal(lab.refused, 0);
    lab_fini(&lab);
}

static void test_calls_over_tls(void **state)
{
    (void)state;
    struct lab lab;
    struct lab_client c;
    struct identity id;
    lab_init(&lab, true);
    assert_null(strstr(lab_tls_address(&lab), ":0"));
    lab_make_identity(&lab, "a1", MSG_ROLE_AGENT, &id);
    lab_connect(&lab, &c, lab_tls_address(&lab), &id, MSG_ROLE_AGENT, "a1");
    lab_wait(&lab, &c.ups, 1);
    assert_string_equal(link_peer_name(lab.peer), "a1");
    assert_string_equal(link_peer_address(lab.peer), "127.0.0.1");
    assert_int_equal(strlen(link_peer_serial(lab.peer)), 32);
    wait_answers(&lab, &c, 100);
    lab_disconnect(&c);
    lab_wait(&lab, &lab.gone, 1);
    assert_int_equal(lab.refused, 0);
    identity_fini(&id);
    lab_fini(&lab);
}

static void test_a_refusal_reaches_the_caller(void **state)
{
    (void)state;
    struct lab lab;
    struct lab_client c;
    struct msg m;
    lab_init(&lab, false);
    lab_connect(&lab, &c, lab.ipc, NULL, MSG_ROLE_OPERATOR, "o1");
    lab_wait(&lab, &c.ups, 1);
    msg_init(&m, MSG_WATCH);
    m.u.watch.job = mem_strdup("j");
    assert_int_equal(lab_call(&c, &m, 5 * NS_PER_S), ERR_OK);
    lab_wait(&lab, &c.failures, 1);
    assert_int_equal(c.last_code, ERR_NOT_FOUND);
    assert_string_equal(c.last_text, "no watch here");
    assert_int_equal(c.downs, 0);
    msg_fini(&m);
    /* What cannot be encoded is not sent. */
    msg_init(&m, MSG_WATCH);
    assert_int_equal(lab_call(&c, &m, NS_PER_S), ERR_INVALID);
    lab_disconnect(&c);
    lab_fini(&lab);
}

static void test_answers_come_in_any_order(void **state)
{
    (void)state;
    struct lab lab;
    struct lab_client c;
    lab_init(&lab, false);
    lab_connect(&lab, &c, lab.ipc, NULL, MSG_ROLE_AGENT, "a1");
    lab_wait(&lab, &c.ups, 1);
    lab.hold = true;
    for (int i = 0; i < 8; i++)
        lab_poll(&c);
    struct msg m;
    msg_init(&m, MSG_POLL);
    assert_int_equal(lab_call(&c, &m, NS_PER_S), ERR_BUSY); /* the ninth */
    lab_wait(&lab, &lab.held_count, 8);
    for (int i = 7; i >= 0; i--) {
        struct msg answer;
        msg_init(&answer, MSG_COMMANDS);
        link_answer(&lab.held[i], &answer);
        assert_null(lab.held[i]);
    }
    lab.held_count = 0;
    lab_wait(&lab, &c.answers, 8);
    lab_disconnect(&c);
    lab_fini(&lab);
}

static void test_a_call_times_out(void **state)
{
    (void)state;
    struct lab lab;
    struct lab_client c;
    struct msg m;
    lab_init(&lab, false);
    lab_connect(&lab, &c, lab.ipc, NULL, MSG_ROLE_AGENT, "a1");
    lab_wait(&lab, &c.ups, 1);
    lab.hold = true;
    msg_init(&m, MSG_POLL);
    assert_int_equal(lab_call(&c, &m, 50 * NS_PER_MS), ERR_OK);
    lab_wait(&lab, &c.failures, 1);
    assert_int_equal(c.last_code, ERR_TIMEOUT);
    assert_int_equal(c.downs, 0);
    lab.hold = false;
    /* The late answer is for nobody; the link goes on. */
    lab_wait(&lab, &lab.held_count, 1);
    link_refuse(&lab.held[0], ERR_NOT_NOW, "late");
    lab.held_count = 0;
    wait_answers(&lab, &c, 3);
    lab_disconnect(&c);
    lab_fini(&lab);
}

static void test_a_client_comes_back(void **state)
{
    (void)state;
    struct lab lab;
    struct lab_client c;
    struct identity id;
    lab_init(&lab, true);
    lab_make_identity(&lab, "a1", MSG_ROLE_AGENT, &id);
    lab_connect(&lab, &c, lab_tls_address(&lab), &id, MSG_ROLE_AGENT, "a1");
    lab_wait(&lab, &c.ups, 1);
    uint64_t first = c.session;
    lab.hold = true;
    lab_poll(&c);
    lab_wait(&lab, &lab.held_count, 1);
    link_peer_drop(lab.peer, "for the test");
    lab_wait(&lab, &c.downs, 1);
    assert_int_equal(c.down_code, ERR_CLOSED);
    assert_false(c.final);
    assert_int_equal(c.failures, 1); /* told before */
    assert_int_equal(c.last_code, ERR_CLOSED);
    lab_wait(&lab, &c.ups, 2);
    assert_true(c.session != first);
    /* Answering one who has gone does nothing. */
    struct msg answer;
    msg_init(&answer, MSG_COMMANDS);
    link_answer(&lab.held[0], &answer);
    lab.held_count = 0;
    lab.hold = false;
    wait_answers(&lab, &c, 3);
    lab_disconnect(&c);
    identity_fini(&id);
    lab_fini(&lab);
}

static void test_a_client_survives_its_controller(void **state)
{
    (void)state;
    struct lab lab;
    struct lab_client c;
    lab_init(&lab, false);
    lab_connect(&lab, &c, lab.ipc, NULL, MSG_ROLE_AGENT, "a1");
    lab_wait(&lab, &c.ups, 1);
    lab_stop_server(&lab);
    lab_wait(&lab, &c.downs, 2); /* lost, and at least once nobody there */
    assert_int_equal(c.down_code, ERR_UNREACHABLE);
    assert_non_null(strstr(c.down_why, "is it running"));
    assert_false(c.final);
    lab_start_server(&lab);
    lab_wait(&lab, &c.ups, 2);
    wait_answers(&lab, &c, 3);
    lab_disconnect(&c);
    lab_fini(&lab);
}

static void test_redial_makes_a_new_connection(void **state)
{
    (void)state;
    struct lab lab;
    struct lab_client c;
    lab_init(&lab, false);
    lab_connect(&lab, &c, lab.ipc, NULL, MSG_ROLE_AGENT, "a1");
    lab_wait(&lab, &c.ups, 1);
    lab.hold = true;
    lab_poll(&c);
    lab_wait(&lab, &lab.held_count, 1);
    link_client_redial(c.link, "silence");
    assert_int_equal(c.downs, 0); /* not within the call */
    lab_wait(&lab, &c.downs, 1);
    assert_string_equal(c.down_why, "silence");
    assert_int_equal(c.failures, 1);
    lab_wait(&lab, &lab.gone, 1);
    lab_wait(&lab, &c.ups, 2);
    lab.hold = false;
    wait_answers(&lab, &c, 3);
    lab_disconnect(&c);
    lab_fini(&lab);
}

static void test_closing_answers_open_calls(void **state)
{
    (void)state;
    struct lab lab;
    struct lab_client c;
    lab_init(&lab, false);
    lab_connect(&lab, &c, lab.ipc, NULL, MSG_ROLE_AGENT, "a1");
    lab_wait(&lab, &c.ups, 1);
    lab.hold = true;
    lab_poll(&c);
    lab_wait(&lab, &lab.held_count, 1);
    lab_disconnect(&c);
    assert_int_equal(c.failures, 1);
    assert_int_equal(c.last_code, ERR_CLOSED);
    assert_int_equal(c.downs, 0);
    lab_fini(&lab);
}

static void test_closing_while_dialling(void **state)
{
    (void)state;
    struct lab lab;
    struct lab_client c;
    lab_init(&lab, false);
    for (int turns = 0; turns < 12; turns++) {
        lab_connect(&lab, &c, lab.ipc, NULL, MSG_ROLE_AGENT, "a1");
        for (int i = 0; i < turns; i++)
            uv_run(&lab.loop, UV_RUN_NOWAIT);
        lab_disconnect(&c);
    }
    lab_fini(&lab);
}

/* A listening socket that nobody accepts from: the connection is made, the handshake never comes. */
static void test_a_controller_that_never_answers(void **state)
{
    (void)state;
    struct lab lab;
    struct lab_client c;
    struct identity id;
    char address[64];
    struct sockaddr_in sa = {.sin_family = AF_INET};
    socklen_t len = sizeof sa;
    sa.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&sa, sizeof sa), 0);
    assert_int_equal(listen(fd, 8), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&sa, &len), 0);
    snprintf(address, sizeof address, "tls+tcp://127.0.0.1:%d", ntohs(sa.sin_port));
    lab_init(&lab, true);
    lab_make_identity(&lab, "a1", MSG_ROLE_AGENT, &id);
    lab.connect_timeout_ns = 200 * NS_PER_MS;
    lab_connect(&lab, &c, address, &id, MSG_ROLE_AGENT, "a1");
    lab_wait(&lab, &c.downs, 2);
    assert_int_equal(c.down_code, ERR_TIMEOUT);
    assert_non_null(strstr(c.down_why, address));
    assert_false(c.final);
    lab_disconnect(&c);
    close(fd);
    identity_fini(&id);
    lab_fini(&lab);
}

static void test_a_controller_that_says_no(void **state)
{
    (void)state;
    struct lab lab;
    struct lab_client c;
    lab_init(&lab, false);
    lab.hello_code = ERR_BUSY; /* perhaps later */
    lab_connect(&lab, &c, lab.ipc, NULL, MSG_ROLE_AGENT, "a1");
    lab_wait(&lab, &c.downs, 2);
    assert_int_equal(c.down_code, ERR_BUSY);
    assert_string_equal(c.down_why, "the lab says no");
    assert_false(c.final);
    lab.hello_code = ERR_DENIED; /* never */
    int downs = c.downs;
    lab_wait(&lab, &c.downs, downs + 1);
    while (!c.final)
        lab_wait(&lab, &c.downs, c.downs + 1);
    assert_int_equal(c.down_code, ERR_DENIED);
    struct msg m;
    msg_init(&m, MSG_POLL);
    assert_int_equal(lab_call(&c, &m, NS_PER_S), ERR_CLOSED);
    lab_disconnect(&c);
    assert_int_equal(lab.gone, 0); /* nobody had come */
    lab_fini(&lab);
}

static void test_an_address_is_taken_once(void **state)
{
    (void)state;
    struct lab lab;
    struct link_server *second = NULL;
    struct err_detail d;
    lab_init(&lab, true);
    for (size_t i = 0; i < 2; i++) {
        const char *address = link_server_address(lab.server, i);
        const struct link_server_options options = {
            .loop = &lab.loop, .addresses = &address, .address_count = 1, .identity = &lab.identity};
        assert_int_equal(link_server_new(&options, &second, &d), ERR_BUSY);
        assert_non_null(strstr(d.text, i == 0 ? lab.ipc + strlen("ipc://") : address));
        assert_non_null(strstr(d.text, "in use"));
    }
    /* The first one is unharmed. */
    struct lab_client c;
    lab_connect(&lab, &c, lab.ipc, NULL, MSG_ROLE_AGENT, "a1");
    lab_wait(&lab, &c.ups, 1);
    lab_disconnect(&c);
    lab_fini(&lab);
}

static void test_addresses_are_checked(void **state)
{
    (void)state;
    static const char *const bad[] = {"",
                                      "tcp://127.0.0.1:1",
                                      "ipc://relative",
                                      "ipc://",
                                      "tls+tcp://",
                                      "tls+tcp://host",
                                      "tls+tcp://:1",
                                      "tls+tcp://host:x",
                                      "tls+tcp://host:",
                                      "tls+tcp://host:123456"};
    struct lab lab;
    struct err_detail d;
    const struct msg_hello hello = {.role = MSG_ROLE_AGENT};
    lab_init(&lab, false);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct link_client *c = NULL;
        struct link_server *s = NULL;
        const struct link_client_options options = {
            .loop = &lab.loop, .address = bad[i], .identity = &lab.identity, .connect_timeout_ns = NS_PER_S};
        const struct link_server_options server = {
            .loop = &lab.loop, .addresses = &bad[i], .address_count = 1};
        assert_int_equal(link_client_new(&options, &hello, &c, &d), ERR_INVALID);
        assert_int_equal(link_server_new(&server, &s, &d), ERR_INVALID);
    }
    lab_fini(&lab);
}

static void test_enrolling(void **state)
{
    (void)state;
    struct lab lab;
    struct err_detail d = {.text = ""};
    struct identity id;
    struct lab_client c;
    lab_init(&lab, true);
    assert_int_equal(lab_enroll(&lab, "a7", NULL, &d), ERR_OK);
    assert_int_equal(lab.enrolled, 1);
    assert_int_equal(identity_load(lab.enroll_dir, &id, &d), ERR_OK);
    lab_connect(&lab, &c, lab_tls_address(&lab), &id, MSG_ROLE_AGENT, "a7");
    lab_wait(&lab, &c.ups, 1);
    lab_disconnect(&c);
    identity_fini(&id);
    lab_fini(&lab);
}

static void test_enrolling_with_a_used_token(void **state)
{
    (void)state;
    struct lab lab;
    struct identity id;
    struct err_detail d = {.text = ""};
    lab_init(&lab, true);
    lab.enroll_code = ERR_DENIED;
    assert_int_equal(lab_enroll(&lab, "a7", NULL, &d), ERR_DENIED);
    assert_non_null(strstr(d.text, "token was used"));
    assert_int_equal(identity_load(lab.enroll_dir, &id, &d), ERR_NOT_FOUND); /* nothing is left */
    lab_fini(&lab);
}

static void test_enrolling_with_the_wrong_lab(void **state)
{
    (void)state;
    struct lab lab, other;
    char token[IDENTITY_TOKEN_BYTES_MAX], secret[64];
    struct err_detail d = {.text = ""};
    lab_init(&lab, true);
    lab_init(&other, true);
    assert_int_equal(identity_make_token(other.identity.ca_pem, token, secret, &d), ERR_OK);
    assert_int_equal(lab_enroll(&lab, "a7", token, &d), ERR_DENIED);
    assert_non_null(strstr(d.text, "not the controller that made this token"));
    assert_int_equal(lab.enrolled, 0); /* the token did not travel */
    lab_fini(&other);
    lab_fini(&lab);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_calls_over_ipc),
        cmocka_unit_test(test_calls_over_tls),
        cmocka_unit_test(test_a_refusal_reaches_the_caller),
        cmocka_unit_test(test_answers_come_in_any_order),
        cmocka_unit_test(test_a_call_times_out),
        cmocka_unit_test(test_a_client_comes_back),
        cmocka_unit_test(test_a_client_survives_its_controller),
        cmocka_unit_test(test_redial_makes_a_new_connection),
        cmocka_unit_test(test_closing_answers_open_calls),
        cmocka_unit_test(test_closing_while_dialling),
        cmocka_unit_test(test_a_controller_that_never_answers),
        cmocka_unit_test(test_a_controller_that_says_no),
        cmocka_unit_test(test_an_address_is_taken_once),
        cmocka_unit_test(test_addresses_are_checked),
        cmocka_unit_test(test_enrolling),
        cmocka_unit_test(test_enrolling_with_a_used_token),
        cmocka_unit_test(test_enrolling_with_the_wrong_lab),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
