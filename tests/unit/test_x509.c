#include "proto/identity/x509.h"

#include "common/clock.h"
#include "common/mem.h"
#include "tests/support/odd_cert.h"
#include "tests/support/old_lab.h"
#include "tests/support/scratch.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
// clang-format on

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What certificates are taken, and which not: of a lab that is made now, and of one from before OpenSSL. */

#define HOUR_NS (3600 * NS_PER_S)

static const char name_of_128[] = "n234567890123456789012345678901234567890123456789012345678901234"
                                  "5678901234567890123456789012345678901234567890123456789012345678";

struct stand {
    struct scratch scratch;
    char *dir; /* of a lab that is made now */
    struct identity lab;
    char *ca_key_pem;
    char *old_dir;
    struct identity old_lab;
};

static char *read_text(const char *path)
{
    char text[MSG_PEM_BYTES_MAX];
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    size_t len = fread(text, 1, sizeof text, f);
    fclose(f);
    return mem_strndup(text, len);
}

static int set_up(void **state)
{
    struct stand *s = mem_zalloc(1, sizeof *s);
    struct err_detail d;
    scratch_init(&s->scratch);
    s->dir = mem_strdup(scratch_at(&s->scratch, "lab"));
    s->old_dir = mem_strdup(scratch_at(&s->scratch, "old"));
    assert_int_equal(identity_create_lab(s->dir, &d), ERR_OK);
    assert_int_equal(identity_load(s->dir, &s->lab, &d), ERR_OK);
    s->ca_key_pem = read_text(scratch_at(&s->scratch, "lab/ca.key.pem"));
    old_lab_write(s->old_dir);
    assert_int_equal(identity_load(s->old_dir, &s->old_lab, &d), ERR_OK);
    *state = s;
    return 0;
}

/* Every case leaves the thread's queue of errors empty: what stays there is the next one's fault. */
static int tear_down(void **state)
{
    struct stand *s = *state;
    assert_int_equal(ERR_peek_error(), 0);
    identity_fini(&s->lab);
    identity_fini(&s->old_lab);
    scratch_fini(&s->scratch);
    free(s->dir);
    free(s->old_dir);
    free(s->ca_key_pem);
    free(s);
    return 0;
}

static void expect_text(const char *text, const char *part)
{
    if (strstr(text, part) == NULL)
        fail_msg("'%s' has no '%s'", text, part);
}

/* ---- certificates -------------------------------------------------------------------------------------- */

/* Takes the text. `why` NULL: it is good. */
static void check(const char *ca_pem, char *cert_pem, const char *why, struct identity_facts *facts)
{
    struct err_detail d = {.text = ""};
    struct identity_facts unused;
    enum err e = identity_check_certificate(ca_pem, cert_pem, facts != NULL ? facts : &unused, &d);
    free(cert_pem);
    assert_int_equal(ERR_peek_error(), 0);
    if (why == NULL && e != ERR_OK)
        fail_msg("refused: %s", d.text);
    if (why != NULL) {
        if (e == ERR_OK)
            fail_msg("taken, where '%s' was expected", why);
        assert_int_equal(e, ERR_DENIED);
        expect_text(d.text, why);
    }
}

/* By the lab's CA, what identity_sign_request does not choose being chosen here. */
static char *issue(const struct stand *s, const char *name, enum x509_use use, uint64_t from, uint64_t until)
{
    struct err_detail d;
    char *key = NULL, *cert = NULL;
    assert_int_equal(x509_make_key(&key, &d), ERR_OK);
    const struct x509_issue i = {.ca_pem = s->lab.ca_pem,
                                 .ca_key_pem = s->ca_key_pem,
                                 .key_pem = key,
                                 .name = name,
                                 .role = MSG_ROLE_AGENT,
                                 .use = use,
                                 .from_wall_ns = from,
                                 .until_wall_ns = until};
    assert_int_equal(x509_issue(&i, &cert, &d), ERR_OK);
    free(key);
    return cert;
}

static char *odd(const struct stand *s, struct odd_cert c)
{
    c.ca_pem = s->lab.ca_pem;
    c.ca_key_pem = s->ca_key_pem;
    return odd_cert_make(&c);
}

static char *sign_request(const char *dir, const char *csr, const char *name)
{
    struct err_detail d = {.text = ""};
    char *cert = NULL;
    enum err e = identity_sign_request(dir, csr, name, MSG_ROLE_AGENT, HOUR_NS, &cert, &d);
    if (e != ERR_OK)
        fail_msg("no certificate: %s", d.text);
    return cert;
}

static char *make_request(const char *name)
{
    struct err_detail d;
    char *key = NULL, *csr = NULL;
    assert_int_equal(identity_make_request(name, &key, &csr, &d), ERR_OK);
    free(key);
    return csr;
}

/* Of a whole other lab, whose CA has the same name. */
static char *issue_foreign(struct stand *s)
{
    struct err_detail d;
    char *dir = mem_strdup(scratch_at(&s->scratch, "foreign"));
    char *csr = make_request("a1");
    assert_int_equal(identity_create_lab(dir, &d), ERR_OK);
    char *cert = sign_request(dir, csr, "a1");
    free(csr);
    free(dir);
    return cert;
}

static void test_good_ones(void **state)
{
    struct stand *s = *state;
    struct identity_facts facts;
    uint64_t now = clock_wall_ns();
    check(s->lab.ca_pem, issue(s, "a1", X509_USE_CLIENT, now - HOUR_NS, now + HOUR_NS), NULL, &facts);
    assert_string_equal(facts.name, "a1");
    assert_int_equal(facts.role, MSG_ROLE_AGENT);
    assert_int_equal(strlen(facts.serial), 32);
    check(s->lab.ca_pem, issue(s, name_of_128, X509_USE_CLIENT, now - HOUR_NS, now + HOUR_NS), NULL, &facts);
    assert_string_equal(facts.name, name_of_128);
    check(s->lab.ca_pem, odd(s, (struct odd_cert){0}), NULL, &facts); /* without key identifiers */
    check(s->lab.ca_pem, odd(s, (struct odd_cert){.has_negative_serial = true}), NULL, &facts);
    assert_string_equal(facts.serial, "ff38");
    check(s->lab.ca_pem, odd(s, (struct odd_cert){.digest = "SHA384"}), NULL, &facts);
    assert_string_equal(facts.serial, "00c8"); /* the zero that makes it positive is a part of the text */

    check(s->old_lab.ca_pem, old_lab_read("agent.pem"), NULL, &facts);
    assert_string_equal(facts.name, "old-agent");
    assert_int_equal(facts.role, MSG_ROLE_AGENT);
    char *serial = old_lab_read("agent.serial");
    serial[strcspn(serial, "\n")] = '\0';
    assert_string_equal(facts.serial, serial);
    free(serial);
    check(s->old_lab.ca_pem, old_lab_read("operator.pem"), NULL, &facts);
    assert_string_equal(facts.name, "old-operator");
    assert_int_equal(facts.role, MSG_ROLE_OPERATOR);
    check(s->old_lab.ca_pem, old_lab_read("long_name.pem"), NULL, &facts);
    assert_string_equal(facts.name, name_of_128);
}

/* Each way to be wrong, in a certificate that is made now and in one of before. */
static void test_bad_ones(void **state)
{
    struct stand *s = *state;
    uint64_t now = clock_wall_ns();
    const struct {
        const char *file; /* of the old lab */
        char *cert;
        const char *why;
    } cases[] = {
        {"expired.pem", issue(s, "a1", X509_USE_CLIENT, now - 2 * HOUR_NS, now - HOUR_NS),
         "has expired: enroll again"},
        {"future.pem", issue(s, "a1", X509_USE_CLIENT, now + HOUR_NS, now + 2 * HOUR_NS),
         "not valid yet: check the clocks"},
        {"foreign.pem", issue_foreign(s), "not of this lab"},
        {"server.pem", issue(s, "a1", X509_USE_SERVER, now - HOUR_NS, now + HOUR_NS), "not for clients"},
        {"ca_use.pem", issue(s, "a1", X509_USE_CA, now - HOUR_NS, now + HOUR_NS), "not for clients"},
        {"lab/cert.pem", mem_strdup(s->lab.cert_pem), "not for clients"},
        {"lab/ca.pem", mem_strdup(s->lab.ca_pem), "not for clients"},
        {"no_purpose.pem",
         odd(s, (struct odd_cert){.extensions = {{"keyUsage", "critical,digitalSignature"}}}),
         "not for clients"},
        {"no_key_usage.pem", odd(s, (struct odd_cert){.extensions = {{"extendedKeyUsage", "clientAuth"}}}),
         "not for signing"},
        {"ca_true.pem",
         odd(s, (struct odd_cert){.extensions = {{"basicConstraints", "CA:TRUE"},
                                                 {"keyUsage", "digitalSignature"},
                                                 {"extendedKeyUsage", "clientAuth"}}}),
         "not for signing"},
        {"two_names.pem",
         odd(s,
             (struct odd_cert){.subject = {{"CN", "a1", 0, 0}, {"CN", "a2", 0, 0}, {"OU", "agent", 0, 0}}}),
         "subject is malformed"},
        {"two_roles.pem",
         odd(s,
             (struct odd_cert){
                 .subject = {{"CN", "a1", 0, 0}, {"OU", "agent", 0, 0}, {"OU", "operator", 0, 0}}}),
         "subject is malformed"},
        {"no_name.pem", odd(s, (struct odd_cert){.subject = {{"OU", "agent", 0, 0}}}),
         "subject is incomplete"},
        {"no_role.pem", odd(s, (struct odd_cert){.subject = {{"CN", "a1", 0, 0}}}), "subject is incomplete"},
        {"other_role.pem",
         odd(s, (struct odd_cert){.subject = {{"CN", "a1", 0, 0}, {"OU", "visitor", 0, 0}}}),
         "is for 'visitor'"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        check(s->lab.ca_pem, cases[i].cert, cases[i].why, NULL);
        check(s->old_lab.ca_pem, old_lab_read(cases[i].file), cases[i].why, NULL);
    }
    check(s->lab.ca_pem, old_lab_read("agent.pem"), "not of this lab", NULL);
}

/* What our CA never signs, if it had been made to. */
static void test_odd_ones(void **state)
{
    struct stand *s = *state;
    char *client_key = NULL, *csr = NULL;
    struct err_detail d;
#define PART(attribute, value)                                                                               \
    {                                                                                                        \
        attribute, value, 0, 0                                                                               \
    }
#define USUAL_USE                                                                                            \
    {"keyUsage", "digitalSignature"},                                                                        \
    {                                                                                                        \
        "extendedKeyUsage", "clientAuth"                                                                     \
    }
    const struct {
        struct odd_cert cert;
        const char *why;
    } cases[] = {
        {{.subject = {{"CN", "a1\0a2", 5, 0}, PART("OU", "agent")}}, "subject is malformed"},
        {{.subject = {{"CN", "\0a\0\x31", 4, V_ASN1_BMPSTRING}, PART("OU", "agent")}},
         "subject is malformed"},
        {{.subject = {{"CN", "\x61\x31", 2, V_ASN1_BMPSTRING}, PART("OU", "agent")}}, "subject is malformed"},
        {{.subject = {{"CN", "a1", 2, V_ASN1_T61STRING}, PART("OU", "agent")}}, "subject is malformed"},
        {{.subject = {PART("CN", ""), PART("OU", "agent")}}, "subject is malformed"},
        {{.subject = {PART("CN", "a1"), {"OU", "agent of the operators of the lab", 0, 0}}},
         "subject is malformed"},
        {{.extensions = {{"keyUsage", "keyAgreement"}, {"extendedKeyUsage", "clientAuth"}}},
         "not for signing"},
        {{.extensions = {{"keyUsage", "digitalSignature"}, {"extendedKeyUsage", "anyExtendedKeyUsage"}}},
         "not for clients"},
        {{.extensions = {USUAL_USE, {"extendedKeyUsage", "serverAuth"}}}, "malformed"},
        {{.extensions = {USUAL_USE, {"1.2.3.4", "critical,ASN1:NULL"}}}, "does not verify"},
        {{.version_1 = true}, "malformed"},
        {{.digest = "SHA1"}, "does not verify"},
        {{.key = ODD_KEY_RSA}, "not ECDSA P-256"},
        {{.key = ODD_KEY_P384}, "not ECDSA P-256"},
        {{.key = ODD_KEY_K256}, "not ECDSA P-256"},
        {{.key = ODD_KEY_P256_OFF_CURVE}, "not ECDSA P-256"},
        {{.key = ODD_KEY_P256_COMPRESSED}, "not ECDSA P-256"},
        {{.key = ODD_KEY_P256_EXPLICIT}, "not ECDSA P-256"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        check(s->lab.ca_pem, odd(s, cases[i].cert), cases[i].why, NULL);
    char longest[LIMIT_NAME_BYTES + 2];
    memset(longest, 'n', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    check(s->lab.ca_pem, odd(s, (struct odd_cert){.subject = {PART("CN", longest), PART("OU", "agent")}}),
          "subject is malformed", NULL);
    /* An agent that signs for another; a CA of the same name, and no key identifiers that tell them apart. */
    assert_int_equal(identity_make_request("a1", &client_key, &csr, &d), ERR_OK);
    char *client = sign_request(s->dir, csr, "a1");
    check(s->lab.ca_pem, odd_cert_make(&(struct odd_cert){.ca_pem = client, .ca_key_pem = client_key}),
          "not of this lab", NULL);
    check(s->lab.ca_pem, odd_cert_make(&(struct odd_cert){.ca_pem = s->lab.ca_pem, .ca_key_pem = client_key}),
          "not of this lab", NULL);
    free(client);
    free(client_key);
    free(csr);
}

/* ---- PEM ----------------------------------------------------------------------------------------------- */

static void test_one_block_of_pem(void **state)
{
    struct stand *s = *state;
    char *csr = make_request("a1");
    char *cert = sign_request(s->dir, csr, "a1");
    const char *ca = s->lab.ca_pem;
    const char *body = strchr(cert, '\n') + 1;
    check(ca, mem_printf("Subject: a1\n\n%s", cert), NULL, NULL);
    check(ca, mem_printf("%s \t\r\n\n", cert), NULL, NULL);
    check(ca, mem_printf("%s%*s", cert, (int)(MSG_PEM_BYTES_MAX - strlen(cert)), ""), NULL, NULL);
    check(ca, mem_printf("%s%*s", cert, (int)(MSG_PEM_BYTES_MAX + 1 - strlen(cert)), ""), "more than 8192",
          NULL);
    check(ca, mem_printf("%s%s", cert, ca), "more than one", NULL);
    check(ca, mem_printf("%sx", cert), "other text after it", NULL);
    check(ca, mem_printf("%s%s", csr, cert), "another kind of PEM block", NULL);
    check(ca, mem_printf("-----BEGIN TRUSTED CERTIFICATE-----\n%s", body), "does not parse", NULL);
    check(ca,
          mem_printf("-----BEGIN CERTIFICATE-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,"
                     "00112233445566778899AABBCCDDEEFF\n\n%s",
                     body),
          "encrypted", NULL);
    check(ca, mem_strdup(""), "not in PEM form", NULL);
    check(ca, mem_strdup("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"), "does not parse",
          NULL);
    check(ca, mem_strndup(cert, strlen(cert) - 10), "not in PEM form", NULL);
    check(ca, odd_pem_with_tail(cert, PEM_STRING_X509, 1), "too many bytes", NULL);
    /* One letter changed anywhere: it does not parse, or is signed by nobody. */
    for (size_t i = (size_t)(body - cert); i < strlen(cert); i += 17) {
        char *changed = mem_strdup(cert);
        changed[i] = changed[i] == 'A' ? '/' : 'A';
        check(ca, changed, "", NULL);
    }
    free(cert);
    free(csr);
}

/* Nobody is asked for a password, and no key is taken whose halves do not fit. */
static void test_keys(void **state)
{
    struct stand *s = *state;
    struct err_detail d;
    EVP_PKEY *key = NULL, *parsed = NULL;
    assert_int_equal(x509_parse_key(s->ca_key_pem, &key, &d), ERR_OK);
    static const char *const labels[] = {"encrypted", "another kind of PEM block"};
    for (int pkcs8 = 0; pkcs8 <= 1; pkcs8++) {
        BIO *bio = BIO_new(BIO_s_mem());
        if (pkcs8)
            assert_int_equal(
                PEM_write_bio_PKCS8PrivateKey(bio, key, EVP_aes_128_cbc(), "secret", 6, NULL, NULL), 1);
        else
            assert_int_equal(PEM_write_bio_PrivateKey_traditional(
                                 bio, key, EVP_aes_128_cbc(), (const unsigned char *)"secret", 6, NULL, NULL),
                             1);
        char *pem = x509_take_text(bio);
        assert_int_equal(x509_parse_key(pem, &parsed, &d), ERR_INVALID);
        expect_text(d.text, labels[pkcs8]);
        free(pem);
    }
    static const enum odd_key others[] = {ODD_KEY_RSA, ODD_KEY_P384, ODD_KEY_K256};
    for (size_t i = 0; i < ARRAY_LEN(others); i++) {
        EVP_PKEY *other = odd_key_new(others[i]);
        char *pem = odd_key_pem(other);
        assert_int_equal(x509_parse_key(pem, &parsed, &d), ERR_INVALID);
        expect_text(d.text, "not ECDSA P-256");
        free(pem);
        EVP_PKEY_free(other);
    }
    EVP_PKEY_free(key);
}

/* The private half of one key, the public half of the certificate's. */
static void test_a_key_of_two_halves(void **state)
{
    struct stand *s = *state;
    struct err_detail d;
    EVP_PKEY *own = NULL, *other = odd_key_new(ODD_KEY_P256);
    unsigned char *own_der = NULL, *other_der = NULL;
    assert_int_equal(x509_parse_key(s->lab.key_pem, &own, &d), ERR_OK);
    int len = i2d_PrivateKey(own, &own_der); /* RFC 5915: version, 32 bytes of secret, ... */
    assert_int_equal(i2d_PrivateKey(other, &other_der), len);
    memcpy(own_der + 7, other_der + 7, 32);
    BIO *bio = BIO_new(BIO_s_mem());
    assert_true(PEM_write_bio(bio, PEM_STRING_ECPRIVATEKEY, "", own_der, len) > 0);
    char *mixed = x509_take_text(bio);
    assert_int_equal(x509_check_pair(s->lab.cert_pem, s->lab.key_pem, &d), ERR_OK);
    assert_int_equal(x509_check_pair(s->lab.cert_pem, s->ca_key_pem, &d), ERR_INVALID);
    expect_text(d.text, "not the certificate's");
    assert_int_equal(x509_check_pair(s->lab.cert_pem, mixed, &d), ERR_INVALID);
    expect_text(d.text, "not the certificate's");
    free(mixed);
    OPENSSL_free(own_der);
    OPENSSL_free(other_der);
    EVP_PKEY_free(own);
    EVP_PKEY_free(other);
}

/* ---- what is issued ------------------------------------------------------------------------------------ */

static void test_a_ca_needs_its_key(void **state)
{
    struct stand *s = *state;
    struct err_detail d;
    char *cert = NULL;
    const struct x509_issue i = {.ca_pem = s->lab.ca_pem,
                                 .ca_key_pem = s->lab.key_pem,
                                 .key_pem = s->lab.key_pem,
                                 .name = "a1",
                                 .role = MSG_ROLE_AGENT,
                                 .use = X509_USE_CLIENT,
                                 .until_wall_ns = clock_wall_ns()};
    assert_int_equal(x509_issue(&i, &cert, &d), ERR_INVALID);
    expect_text(d.text, "CA's key");
}

static void test_a_certificate_lives_as_long_as_was_said(void **state)
{
    struct stand *s = *state;
    struct err_detail d;
    X509 *parsed = NULL;
    char *csr = make_request("a1");
    time_t before = (time_t)((clock_wall_ns() + HOUR_NS) / NS_PER_S) - 1;
    char *cert = sign_request(s->dir, csr, "a1");
    time_t after = (time_t)((clock_wall_ns() + HOUR_NS) / NS_PER_S) + 1;
    assert_int_equal(x509_parse(cert, &parsed, &d), ERR_OK);
    assert_int_equal(X509_cmp_time(X509_get0_notAfter(parsed), &before), 1);
    assert_int_equal(X509_cmp_time(X509_get0_notAfter(parsed), &after), -1);
    X509_free(parsed);
    free(cert);
    free(csr);
}

/* The fields that a TLS stack of another make looks at, as they always were. */
static void test_what_is_issued(void **state)
{
    struct stand *s = *state;
    struct err_detail d;
    const struct identity *labs[] = {&s->lab, &s->old_lab};
    for (size_t i = 0; i < ARRAY_LEN(labs); i++) {
        X509 *ca = NULL, *server = NULL;
        assert_int_equal(x509_parse(labs[i]->ca_pem, &ca, &d), ERR_OK);
        assert_int_equal(x509_parse(labs[i]->cert_pem, &server, &d), ERR_OK);
        assert_int_equal(X509_get_version(server), X509_VERSION_3);
        assert_int_equal(X509_get_signature_nid(server), NID_ecdsa_with_SHA256);
        assert_int_equal(X509_check_host(server, IDENTITY_CONTROLLER_NAME, 0, 0, NULL), 1);
        assert_int_equal(X509_get_extension_flags(ca) & EXFLAG_CA, EXFLAG_CA);
        assert_int_equal(X509_get_pathlen(ca), 0);
        assert_int_equal(X509_get_key_usage(ca), KU_KEY_CERT_SIGN | KU_CRL_SIGN);
        assert_int_equal(X509_get_key_usage(server), KU_DIGITAL_SIGNATURE);
        assert_int_equal(X509_get_extended_key_usage(server), XKU_SSL_SERVER);
        const ASN1_OCTET_STRING *id = X509_get0_subject_key_id(ca);
        assert_int_equal(ASN1_OCTET_STRING_cmp(id, X509_get0_authority_key_id(server)), 0);
        char name[64];
        X509_NAME_oneline(X509_get_issuer_name(server), name, sizeof name);
        assert_string_equal(name, "/CN=splitbench-lab/OU=ca");
        assert_int_equal(X509_NAME_cmp(X509_get_subject_name(ca), X509_get_issuer_name(server)), 0);
        X509_free(ca);
        X509_free(server);
    }
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_good_ones),
        TEST(test_bad_ones),
        TEST(test_odd_ones),
        TEST(test_one_block_of_pem),
        TEST(test_keys),
        TEST(test_a_key_of_two_halves),
        TEST(test_a_ca_needs_its_key),
        TEST(test_a_certificate_lives_as_long_as_was_said),
        TEST(test_what_is_issued),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
