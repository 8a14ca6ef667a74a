#include "proto/identity/x509.h"

#include "common/clock.h"
#include "common/mem.h"
#include "tests/support/odd_cert.h"
#include "tests/support/scratch.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
// clang-format on

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>

#include <stdlib.h>
#include <string.h>

/* Certificate requests: which get a certificate, and for what name. tests/unit/test_old_lab.c has one of
 * mbedTLS. */

#define HOUR_NS (3600 * NS_PER_S)

struct stand {
    struct scratch scratch;
    char *dir; /* of the lab */
    char *ca_pem;
    char *csr; /* a good one */
};

static int set_up(void **state)
{
    struct stand *s = mem_zalloc(1, sizeof *s);
    struct err_detail d;
    struct identity lab;
    char *key = NULL;
    scratch_init(&s->scratch);
    s->dir = mem_strdup(scratch_at(&s->scratch, "lab"));
    assert_int_equal(identity_create_lab(s->dir, &d), ERR_OK);
    assert_int_equal(identity_load(s->dir, &lab, &d), ERR_OK);
    s->ca_pem = mem_strdup(lab.ca_pem);
    identity_fini(&lab);
    assert_int_equal(identity_make_request("wanted", &key, &s->csr, &d), ERR_OK);
    free(key);
    *state = s;
    return 0;
}

static int tear_down(void **state)
{
    struct stand *s = *state;
    assert_int_equal(ERR_peek_error(), 0);
    scratch_fini(&s->scratch);
    free(s->dir);
    free(s->ca_pem);
    free(s->csr);
    free(s);
    return 0;
}

static void expect_text(const char *text, const char *part)
{
    if (strstr(text, part) == NULL)
        fail_msg("'%s' has no '%s'", text, part);
}

static void expect_certificate(const struct stand *s, const char *csr, const char *name)
{
    struct err_detail d = {.text = ""};
    struct identity_facts facts;
    char *cert = NULL;
    if (identity_sign_request(s->dir, csr, name, MSG_ROLE_AGENT, HOUR_NS, &cert, &d) != ERR_OK ||
        identity_check_certificate(s->ca_pem, cert, &facts, &d) != ERR_OK)
        fail_msg("no certificate: %s", d.text);
    assert_string_equal(facts.name, name);
    free(cert);
}

/* Takes the request. */
static void expect_no_certificate(const struct stand *s, const char *name, char *csr, const char *why)
{
    struct err_detail d = {.text = ""};
    char *cert = NULL;
    assert_int_equal(identity_sign_request(s->dir, csr, name, MSG_ROLE_AGENT, HOUR_NS, &cert, &d),
                     ERR_INVALID);
    expect_text(d.text, why);
    assert_null(cert);
    assert_int_equal(ERR_peek_error(), 0);
    free(csr);
}

/* The name that was agreed counts, not the request's. */
static void test_names(void **state)
{
    struct stand *s = *state;
    struct err_detail d;
    char *key = NULL, *csr = NULL;
    char name[LIMIT_NAME_BYTES + 2];
    memset(name, 'n', sizeof name);
    name[LIMIT_NAME_BYTES + 1] = '\0';
    static const char *const bad[] = {"../evil", "", "a,OU=operator", "a/b", "a\nb"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        assert_int_equal(identity_make_request(bad[i], &key, &csr, &d), ERR_INVALID);
        expect_no_certificate(s, bad[i], mem_strdup(s->csr), "name '");
    }
    assert_int_equal(identity_make_request(name, &key, &csr, &d), ERR_INVALID);
    expect_no_certificate(s, name, mem_strdup(s->csr), "is too long");
    name[LIMIT_NAME_BYTES] = '\0';
    expect_certificate(s, s->csr, name);
    assert_int_equal(identity_make_request(name, &key, &csr, &d), ERR_OK);
    expect_certificate(s, csr, "given");
    free(csr);
    free(key);
}

static void test_one_block_of_pem(void **state)
{
    struct stand *s = *state;
    expect_no_certificate(s, "a1", mem_strdup("junk"), "not in PEM form");
    expect_no_certificate(s, "a1", mem_strdup(s->ca_pem), "another kind of PEM block");
    expect_no_certificate(s, "a1", mem_printf("%s%s", s->csr, s->csr), "more than one");
    expect_no_certificate(s, "a1", odd_pem_with_tail(s->csr, PEM_STRING_X509_REQ, 3), "too many bytes");
    /* Changed anywhere: another's public key cannot be certified. */
    for (size_t i = strcspn(s->csr, "\n"); i < strlen(s->csr); i += 7) {
        char *changed = mem_strdup(s->csr);
        changed[i] = changed[i] == 'A' ? '/' : 'A';
        expect_no_certificate(s, "a1", changed, "");
    }
}

static void test_other_kinds(void **state)
{
    struct stand *s = *state;
    static const enum odd_key kinds[] = {ODD_KEY_RSA, ODD_KEY_P384, ODD_KEY_K256, ODD_KEY_P256_COMPRESSED,
                                         ODD_KEY_P256_EXPLICIT};
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        EVP_PKEY *key = odd_key_new(kinds[i]);
        expect_no_certificate(s, "a1", odd_csr_make(key, key, "SHA256", X509_REQ_VERSION_1),
                              "not ECDSA P-256");
        EVP_PKEY_free(key);
    }
    EVP_PKEY *key = odd_key_new(ODD_KEY_P256), *other = odd_key_new(ODD_KEY_P256);
    char *csr = odd_csr_make(key, key, "SHA256", X509_REQ_VERSION_1);
    expect_certificate(s, csr, "a1");
    expect_no_certificate(s, "a1", odd_csr_make(key, other, "SHA256", X509_REQ_VERSION_1),
                          "not signed by its own key");
    expect_no_certificate(s, "a1", odd_csr_make(key, key, "SHA1", X509_REQ_VERSION_1),
                          "not ECDSA P-256 with SHA-256");
    expect_no_certificate(s, "a1", odd_csr_make(key, key, "SHA384", X509_REQ_VERSION_1),
                          "not ECDSA P-256 with SHA-256");
    expect_no_certificate(s, "a1", odd_csr_make(key, key, "SHA256", 1), "of a version");
    free(csr);
    EVP_PKEY_free(key);
    EVP_PKEY_free(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_names, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_one_block_of_pem, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_other_kinds, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
