#include "proto/identity/x509.h"

#include "common/base64.h"
#include "common/clock.h"
#include "common/mem.h"
#include "tests/support/lab.h"
#include "tests/support/odd_cert.h"
#include "tests/support/old_lab.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
// clang-format on

#include <stdlib.h>
#include <string.h>

/*
 * A lab that was made before OpenSSL goes on, files and links. Which certificates of it are refused is in
 * tests/unit/test_x509.c.
 */

/* ---- files --------------------------------------------------------------------------------------------- */

static void expect_certificate(const struct lab *lab, const char *csr, const char *name)
{
    struct err_detail d = {.text = ""};
    struct identity_facts facts;
    char *cert = NULL;
    if (identity_sign_request(lab->ca_dir, csr, name, MSG_ROLE_AGENT, 3600 * NS_PER_S, &cert, &d) != ERR_OK ||
        identity_check_certificate(lab->identity.ca_pem, cert, &facts, &d) != ERR_OK)
        fail_msg("no certificate: %s", d.text);
    assert_string_equal(facts.name, name);
    assert_int_equal(strlen(facts.serial), 32);
    free(cert);
}

/* A request of before gets a certificate of both labs. */
static void test_an_agents_request(void **state)
{
    (void)state;
    struct lab old, young;
    char *csr = old_lab_read("agent.csr.pem");
    lab_init_old(&old);
    lab_init(&young, true);
    expect_certificate(&old, csr, "old-agent");
    expect_certificate(&young, csr, "old-agent");
    lab_fini(&young);
    lab_fini(&old);
    free(csr);
}

static void test_directories(void **state)
{
    (void)state;
    struct lab lab;
    struct identity agent, back;
    struct err_detail d;
    lab_init_old(&lab);
    old_lab_party("agent", &agent);
    assert_int_equal(identity_create_lab(lab.ca_dir, &d), ERR_EXISTS);
    assert_int_equal(identity_store(lab.enroll_dir, &agent, &d), ERR_OK);
    assert_int_equal(identity_load(lab.enroll_dir, &back, &d), ERR_OK);
    assert_string_equal(back.key_pem, agent.key_pem);
    identity_fini(&back);
    identity_fini(&agent);
    lab_fini(&lab);
}

static void test_an_agents_proof(void **state)
{
    (void)state;
    struct err_detail d;
    struct identity agent;
    uint8_t nonce[MSG_NONCE_BYTES], data[128];
    struct msg_bytes signature = {.data = data}, own = {0};
    old_lab_party("agent", &agent);
    char *text = old_lab_read("agent.proof");
    for (size_t i = 0; i < sizeof nonce; i++)
        nonce[i] = (uint8_t)i;
    assert_true(base64_decode(text, strcspn(text, "\n"), data, &signature.len));
    assert_int_equal(identity_verify(agent.cert_pem, MSG_ROLE_AGENT, nonce, &signature, &d), ERR_OK);
    assert_int_equal(identity_verify(agent.cert_pem, MSG_ROLE_OPERATOR, nonce, &signature, &d), ERR_DENIED);
    /* One byte more behind it is no signature. */
    signature.len++;
    assert_int_equal(identity_verify(agent.cert_pem, MSG_ROLE_AGENT, nonce, &signature, &d), ERR_DENIED);
    /* Its key signs as before. */
    assert_int_equal(identity_sign(agent.key_pem, MSG_ROLE_AGENT, nonce, &own, &d), ERR_OK);
    assert_int_equal(identity_verify(agent.cert_pem, MSG_ROLE_AGENT, nonce, &own, &d), ERR_OK);
    free(own.data);
    free(text);
    identity_fini(&agent);
}

/* ---- links --------------------------------------------------------------------------------------------- */

static void expect_session(struct lab *lab, const struct identity *id, enum msg_role role, const char *name)
{
    struct lab_client c;
    int gone = lab->gone;
    lab_connect(lab, &c, lab_tls_address(lab), id, role, name);
    lab_wait(lab, &c.ups, 1);
    assert_string_equal(link_peer_name(lab->peer), name);
    if (role == MSG_ROLE_AGENT) {
        lab_poll(&c);
        lab_wait(lab, &c.answers, 1);
    }
    lab_disconnect(&c);
    lab_wait(lab, &lab->gone, gone + 1);
    assert_int_equal(lab->refused, 0);
}

/* Agents and an operator of before, one that has a certificate since now, and one that enrolls. */
static void expect_everybody(struct lab *lab)
{
    struct identity agent, operator, young;
    struct err_detail d = {.text = ""};
    old_lab_party("agent", &agent);
    old_lab_party("operator", &operator);
    lab_make_identity(lab, "young", MSG_ROLE_AGENT, &young);
    expect_session(lab, &agent, MSG_ROLE_AGENT, "old-agent");
    expect_session(lab, &operator, MSG_ROLE_OPERATOR, "old-operator");
    expect_session(lab, &young, MSG_ROLE_AGENT, "young");
    assert_int_equal(lab_enroll(lab, "a7", NULL, &d), ERR_OK);
    identity_fini(&agent);
    identity_fini(&operator);
    identity_fini(&young);
}

static void test_a_lab_of_before(void **state)
{
    (void)state;
    struct lab lab;
    lab_init_old(&lab);
    expect_everybody(&lab);
    lab_fini(&lab);
}

/* The CA and the agents are of before, the controller's certificate is not. */
static void test_a_lab_of_before_with_a_new_controller(void **state)
{
    (void)state;
    struct lab lab;
    struct err_detail d;
    uint64_t now = clock_wall_ns();
    lab_init_old(&lab);
    lab_stop_server(&lab);
    char *ca_key = old_lab_read("lab/ca.key.pem");
    free(lab.identity.cert_pem);
    free(lab.identity.key_pem);
    assert_int_equal(x509_make_key(&lab.identity.key_pem, &d), ERR_OK);
    const struct x509_issue issue = {.ca_pem = lab.identity.ca_pem,
                                     .ca_key_pem = ca_key,
                                     .key_pem = lab.identity.key_pem,
                                     .name = IDENTITY_CONTROLLER_NAME,
                                     .role = MSG_ROLE_CONTROLLER,
                                     .use = X509_USE_SERVER,
                                     .from_wall_ns = now - 60 * NS_PER_S,
                                     .until_wall_ns = now + 3600 * NS_PER_S};
    assert_int_equal(x509_issue(&issue, &lab.identity.cert_pem, &d), ERR_OK);
    lab_start_server(&lab);
    expect_everybody(&lab);
    free(ca_key);
    lab_fini(&lab);
}

/* A server's certificate of the lab, with another name in it: made before, and now. */
static void test_a_controller_of_another_name(void **state)
{
    (void)state;
    for (int made_now = 0; made_now <= 1; made_now++) {
        struct lab lab;
        struct lab_client c;
        struct identity agent;
        lab_init_old(&lab);
        lab_stop_server(&lab);
        char *ca_key = old_lab_read("lab/ca.key.pem");
        free(lab.identity.cert_pem);
        free(lab.identity.key_pem);
        lab.identity.cert_pem =
            made_now ? odd_cert_make(&(struct odd_cert){.ca_pem = lab.identity.ca_pem,
                                                        .ca_key_pem = ca_key,
                                                        .key_pem = &lab.identity.key_pem,
                                                        .subject = {{.attribute = "CN", .value = "other"}},
                                                        .extensions = {{"keyUsage", "digitalSignature"},
                                                                       {"extendedKeyUsage", "serverAuth"},
                                                                       {"subjectAltName", "DNS:other"}}})
                     : old_lab_read("other_server.pem");
        if (!made_now)
            lab.identity.key_pem = old_lab_read("other_server.key.pem");
        lab_start_server(&lab);
        old_lab_party("agent", &agent);
        lab_connect(&lab, &c, lab_tls_address(&lab), &agent, MSG_ROLE_AGENT, "old-agent");
        lab_wait(&lab, &c.downs, 1);
        assert_int_equal(c.down_code, ERR_DENIED);
        assert_non_null(strstr(c.down_why, "not this lab's controller"));
        assert_int_equal(lab.hellos, 0);
        lab_disconnect(&c);
        identity_fini(&agent);
        free(ca_key);
        lab_fini(&lab);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_agents_request),
        cmocka_unit_test(test_directories),
        cmocka_unit_test(test_an_agents_proof),
        cmocka_unit_test(test_a_lab_of_before),
        cmocka_unit_test(test_a_lab_of_before_with_a_new_controller),
        cmocka_unit_test(test_a_controller_of_another_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
