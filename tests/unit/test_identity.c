#include "proto/identity/identity.h"

#include "common/clock.h"
#include "common/mem.h"
#include "tests/support/scratch.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
// clang-format on

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* tests/unit/test_x509.c has the certificates themselves. */

#define HOUR_NS (3600 * NS_PER_S)

struct home {
    struct scratch scratch;
    char lab[96];
    struct identity id;
};

static void home_init(struct home *h)
{
    struct err_detail d = {.text = ""};
    scratch_init(&h->scratch);
    snprintf(h->lab, sizeof h->lab, "%s/lab", h->scratch.dir);
    assert_int_equal(identity_create_lab(h->lab, &d), ERR_OK);
    assert_int_equal(identity_load(h->lab, &h->id, &d), ERR_OK);
}

static void home_fini(struct home *h)
{
    identity_fini(&h->id);
    scratch_fini(&h->scratch);
}

/* A key and its certificate by this lab; both are the caller's. */
static char *issue(const struct home *h, const char *name, enum msg_role role, char **key_pem)
{
    struct err_detail d = {.text = ""};
    char *csr = NULL, *cert = NULL;
    assert_int_equal(identity_make_request(name, key_pem, &csr, &d), ERR_OK);
    assert_int_equal(identity_sign_request(h->lab, csr, name, role, HOUR_NS, &cert, &d), ERR_OK);
    free(csr);
    return cert;
}

static void test_a_lab_is_made_once(void **state)
{
    (void)state;
    struct home h;
    struct err_detail d;
    struct stat st;
    char path[128];
    home_init(&h);
    assert_int_equal(identity_create_lab(h.lab, &d), ERR_EXISTS);
    static const char *const names[] = {"ca.pem", "ca.key.pem", "cert.pem", "key.pem"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        snprintf(path, sizeof path, "%s/%s", h.lab, names[i]);
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_mode & 0777, 0600);
    }
    assert_int_equal(stat(h.lab, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0700);
    home_fini(&h);
}

static void test_proof_of_a_key(void **state)
{
    (void)state;
    struct home h;
    struct err_detail d;
    uint8_t nonce[MSG_NONCE_BYTES], other[MSG_NONCE_BYTES];
    struct msg_bytes signature = {0};
    char *key = NULL, *other_key = NULL;
    home_init(&h);
    char *cert = issue(&h, "a1", MSG_ROLE_AGENT, &key);
    char *other_cert = issue(&h, "a2", MSG_ROLE_AGENT, &other_key);
    identity_random(nonce, sizeof nonce);
    memcpy(other, nonce, sizeof other);
    other[31] ^= 1;
    assert_int_equal(identity_sign(key, MSG_ROLE_AGENT, nonce, &signature, &d), ERR_OK);
    assert_int_equal(identity_verify(cert, MSG_ROLE_AGENT, nonce, &signature, &d), ERR_OK);
    assert_int_equal(identity_verify(cert, MSG_ROLE_OPERATOR, nonce, &signature, &d), ERR_DENIED);
    assert_int_equal(identity_verify(cert, MSG_ROLE_AGENT, other, &signature, &d), ERR_DENIED);
    assert_int_equal(identity_verify(other_cert, MSG_ROLE_AGENT, nonce, &signature, &d), ERR_DENIED);
    for (size_t i = 0; i < signature.len * 8; i++) {
        signature.data[i / 8] ^= (uint8_t)(1 << i % 8);
        assert_int_equal(identity_verify(cert, MSG_ROLE_AGENT, nonce, &signature, &d), ERR_DENIED);
        signature.data[i / 8] ^= (uint8_t)(1 << i % 8);
    }
    struct msg_bytes none = {0};
    assert_int_equal(identity_verify(cert, MSG_ROLE_AGENT, nonce, &none, &d), ERR_DENIED);
    free(signature.data);
    free(cert);
    free(key);
    free(other_cert);
    free(other_key);
    home_fini(&h);
}

static void test_files(void **state)
{
    (void)state;
    struct home h;
    struct err_detail d;
    struct identity id = {0}, back = {0};
    char dir[96], path[128];
    home_init(&h);
    id.ca_pem = mem_strdup(h.id.ca_pem);
    id.cert_pem = issue(&h, "a1", MSG_ROLE_AGENT, &id.key_pem);
    snprintf(dir, sizeof dir, "%s/agent", h.scratch.dir);
    assert_int_equal(identity_load(dir, &back, &d), ERR_NOT_FOUND);
    assert_non_null(strstr(d.text, "enroll"));
    assert_int_equal(identity_store(dir, &id, &d), ERR_OK);
    assert_int_equal(identity_load(dir, &back, &d), ERR_OK);
    assert_string_equal(back.cert_pem, id.cert_pem);
    assert_string_equal(back.key_pem, id.key_pem);
    assert_string_equal(back.ca_pem, id.ca_pem);
    identity_fini(&back);
    /* A key others can read is no key. */
    snprintf(path, sizeof path, "%s/key.pem", dir);
    assert_int_equal(chmod(path, 0640), 0);
    assert_int_equal(identity_load(dir, &back, &d), ERR_DENIED);
    assert_int_equal(chmod(path, 0600), 0);
    /* Nor is one of another certificate. */
    free(id.cert_pem);
    char *key = NULL;
    id.cert_pem = issue(&h, "a1", MSG_ROLE_AGENT, &key);
    assert_int_equal(identity_store(dir, &id, &d), ERR_INVALID);
    assert_int_equal(identity_load(dir, &back, &d), ERR_OK); /* untouched */
    identity_fini(&back);
    free(key);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    for (unsigned i = 0; i <= MSG_PEM_BYTES_MAX; i++)
        fputc('x', f);
    fclose(f);
    assert_int_equal(identity_load(dir, &back, &d), ERR_TOO_BIG);
    /* What is no file is refused, not waited for. */
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(identity_load(dir, &back, &d), ERR_INVALID);
    identity_fini(&id);
    home_fini(&h);
}

static void test_tokens(void **state)
{
    (void)state;
    struct home h;
    struct err_detail d;
    char token[IDENTITY_TOKEN_BYTES_MAX], again[IDENTITY_TOKEN_BYTES_MAX + 1], secret[64], parsed[64];
    uint8_t print[MSG_HASH_BYTES], carried[MSG_HASH_BYTES];
    home_init(&h);
    assert_int_equal(identity_make_token(h.id.ca_pem, token, secret, &d), ERR_OK);
    assert_int_equal(identity_make_token(h.id.ca_pem, again, parsed, &d), ERR_OK);
    assert_string_not_equal(token, again);
    assert_int_equal(identity_parse_token(token, parsed, carried, &d), ERR_OK);
    assert_string_equal(parsed, secret);
    assert_int_equal(strlen(secret), 27); /* 160 bits in base64 */
    assert_int_equal(identity_fingerprint(h.id.ca_pem, print, &d), ERR_OK);
    assert_memory_equal(print, carried, sizeof print);
    assert_int_equal(identity_parse_token("", parsed, carried, &d), ERR_INVALID);
    assert_int_equal(identity_parse_token("sb1.", parsed, carried, &d), ERR_INVALID);
    for (size_t len = strlen(token); len-- > 0;) { /* cut anywhere, and one too long */
        memcpy(again, token, len);
        again[len] = '\0';
        assert_int_equal(identity_parse_token(again, parsed, carried, &d), ERR_INVALID);
    }
    snprintf(again, sizeof again, "%sA", token);
    assert_int_equal(identity_parse_token(again, parsed, carried, &d), ERR_INVALID);
    snprintf(again, sizeof again, "%s", token);
    again[10] = '+';
    assert_int_equal(identity_parse_token(again, parsed, carried, &d), ERR_INVALID);
    home_fini(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_lab_is_made_once),
        cmocka_unit_test(test_proof_of_a_key),
        cmocka_unit_test(test_files),
        cmocka_unit_test(test_tokens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
