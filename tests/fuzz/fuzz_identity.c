/*
 * What strangers send before anybody knows them: a certificate, a certificate request, a signature, a token,
 * and base64. Each is refused with a reason or holds what it must, and nothing stays in OpenSSL's queue of
 * errors. The first byte chooses. As text; as DER, which is put into PEM here; or as DER whose signature is
 * made to fit, since no mutation ever finds one. The CA is the one in tests/unit/data/lab_mbedtls.
 */
#include "common/base64.h"
#include "common/clock.h"
#include "common/mem.h"
#include "proto/identity/x509.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LAB "tests/unit/data/lab_mbedtls/"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char *ca_pem, *ca_key_pem, *agent_pem;
static EVP_PKEY *ca_key, *agent_key;

static char *read_text(const char *path)
{
    char text[MSG_PEM_BYTES_MAX];
    FILE *f = fopen(path, "r");
    if (f == NULL) {
        fprintf(stderr, "%s cannot be read: start this in the root of the tree\n", path);
        exit(2);
    }
    size_t len = fread(text, 1, sizeof text, f);
    fclose(f);
    return mem_strndup(text, len);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    ca_pem = read_text(LAB "lab/ca.pem");
    ca_key_pem = read_text(LAB "lab/ca.key.pem");
    agent_pem = read_text(LAB "agent.pem");
    char *agent_key_pem = read_text(LAB "agent.key.pem");
    must(x509_parse_key(ca_key_pem, &ca_key, NULL) == ERR_OK);
    must(x509_parse_key(agent_key_pem, &agent_key, NULL) == ERR_OK);
    free(agent_key_pem);
    return 0;
}

static void check_outcome(enum err e, const struct err_detail *d)
{
    must((e == ERR_OK) == (d->text[0] == '\0'));
    must(ERR_peek_error() == 0);
}

/* ---- certificates and requests ------------------------------------------------------------------------- */

static void try_certificate(const char *pem)
{
    struct err_detail d = {""};
    struct identity_facts facts;
    enum err e = identity_check_certificate(ca_pem, pem, &facts, &d);
    check_outcome(e, &d);
    must(e == ERR_OK || e == ERR_DENIED);
    if (e == ERR_OK) {
        size_t digits = strlen(facts.serial);
        must(facts.name[0] != '\0' && strlen(facts.name) <= LIMIT_NAME_BYTES);
        must(facts.role == MSG_ROLE_AGENT || facts.role == MSG_ROLE_OPERATOR);
        must(digits >= 2 && digits % 2 == 0 && strspn(facts.serial, "0123456789abcdef") == digits);
    }
}

/* A request that is taken gives a certificate that is, whatever else it asks for. */
static void try_request(const char *pem)
{
    struct err_detail d = {""};
    struct identity_facts facts;
    char *cert = NULL;
    uint64_t now = clock_wall_ns();
    const struct x509_issue issue = {.ca_pem = ca_pem,
                                     .ca_key_pem = ca_key_pem,
                                     .csr_pem = pem,
                                     .name = "given",
                                     .role = MSG_ROLE_AGENT,
                                     .use = X509_USE_CLIENT,
                                     .from_wall_ns = now - 60 * NS_PER_S,
                                     .until_wall_ns = now + 60 * NS_PER_S};
    enum err e = x509_issue(&issue, &cert, &d);
    check_outcome(e, &d);
    must(e == ERR_OK || e == ERR_INVALID);
    if (e == ERR_OK) {
        must(identity_check_certificate(ca_pem, cert, &facts, &d) == ERR_OK);
        must(strcmp(facts.name, "given") == 0 && facts.role == MSG_ROLE_AGENT);
    }
    free(cert);
}

static void try_key(const char *pem)
{
    struct err_detail d = {""};
    EVP_PKEY *key = NULL;
    enum err e = x509_parse_key(pem, &key, &d);
    check_outcome(e, &d);
    EVP_PKEY_free(key);
}

static void try_der(const char *label, const uint8_t *der, size_t len, void (*try)(const char *pem))
{
    BIO *bio = BIO_new(BIO_s_mem());
    must(PEM_write_bio(bio, label, "", der, (long)len) >= 0);
    char *pem = x509_take_text(bio);
    try(pem);
    free(pem);
}

static void try_signed_certificate(const uint8_t *der, size_t len)
{
    const uint8_t *at = der;
    unsigned char *fresh = NULL;
    X509 *cert = d2i_X509(NULL, &at, (long)len);
    int fresh_len = cert != NULL && X509_sign(cert, ca_key, EVP_sha256()) > 0 ? i2d_X509(cert, &fresh) : 0;
    ERR_clear_error();
    if (fresh_len > 0)
        try_der(PEM_STRING_X509, fresh, (size_t)fresh_len, try_certificate);
    OPENSSL_free(fresh);
    X509_free(cert);
}

static void try_signed_request(const uint8_t *der, size_t len)
{
    const uint8_t *at = der;
    unsigned char *fresh = NULL;
    X509_REQ *csr = d2i_X509_REQ(NULL, &at, (long)len);
    int fresh_len = csr != NULL && X509_REQ_set_pubkey(csr, agent_key) == 1 &&
                            X509_REQ_sign(csr, agent_key, EVP_sha256()) > 0
                        ? i2d_X509_REQ(csr, &fresh)
                        : 0;
    ERR_clear_error();
    if (fresh_len > 0)
        try_der(PEM_STRING_X509_REQ, fresh, (size_t)fresh_len, try_request);
    OPENSSL_free(fresh);
    X509_REQ_free(csr);
}

/* ---- the rest ------------------------------------------------------------------------------------------ */

static void try_signature(uint8_t *data, size_t len)
{
    struct err_detail d = {""};
    uint8_t nonce[MSG_NONCE_BYTES];
    const struct msg_bytes signature = {.data = data, .len = len};
    for (size_t i = 0; i < sizeof nonce; i++)
        nonce[i] = (uint8_t)i;
    check_outcome(identity_verify(agent_pem, MSG_ROLE_AGENT, nonce, &signature, &d), &d);
}

/* What is taken is the token of its own parts, but for the bits that the last letters have too many. */
static void try_token(const char *text)
{
    struct err_detail d = {""};
    char secret[64], again_secret[64], print_text[BASE64_CHARS(MSG_HASH_BYTES) + 1];
    uint8_t print[MSG_HASH_BYTES], again_print[MSG_HASH_BYTES];
    enum err e = identity_parse_token(text, secret, print, &d);
    check_outcome(e, &d);
    if (e != ERR_OK)
        return;
    base64url_encode(print, sizeof print, print_text);
    char *again = mem_printf("sb1.%s.%s", secret, print_text);
    must(strncmp(text, again, strlen(again) - 1) == 0 && strlen(text) == strlen(again));
    must(identity_parse_token(again, again_secret, again_print, &d) == ERR_OK);
    must(strcmp(secret, again_secret) == 0 && memcmp(print, again_print, sizeof print) == 0);
    free(again);
}

static void try_base64(const char *text, size_t chars,
                       bool (*decode)(const char *, size_t, uint8_t *, size_t *),
                       size_t (*encode)(const void *, size_t, char *))
{
    uint8_t *data = mem_alloc(BASE64_BYTES(chars)), *back = mem_alloc(BASE64_BYTES(chars));
    size_t len = 0, back_len = 0;
    if (decode(text, chars, data, &len)) {
        must(len <= BASE64_BYTES(chars));
        char *again = mem_alloc(BASE64_CHARS(len) + 1);
        must(encode(data, len, again) == chars && again[chars] == '\0');
        must(decode(again, chars, back, &back_len));
        must(back_len == len && memcmp(data, back, len) == 0);
        free(again);
    }
    free(data);
    free(back);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0 || size > MSG_PEM_BYTES_MAX)
        return 0;
    const uint8_t *rest = data + 1;
    size_t len = size - 1;
    char *text = mem_strndup((const char *)rest, len);
    char *exact = mem_dup(rest, len); /* reading on is caught */
    switch (data[0]) {
    case 'C':
        try_certificate(text);
        break;
    case 'c':
        try_der(PEM_STRING_X509, rest, len, try_certificate);
        break;
    case 's':
        try_signed_certificate((uint8_t *)exact, len);
        break;
    case 'R':
        try_request(text);
        break;
    case 'r':
        try_der(PEM_STRING_X509_REQ, rest, len, try_request);
        break;
    case 'q':
        try_signed_request((uint8_t *)exact, len);
        break;
    case 'k':
        try_der(PEM_STRING_PKCS8INF, rest, len, try_key);
        break;
    case 'v':
        try_signature((uint8_t *)exact, len);
        break;
    case 't':
        try_token(text);
        break;
    case 'b':
        try_base64(exact, len, base64_decode, base64_encode);
        break;
    case 'u':
        try_base64(exact, len, base64url_decode, base64url_encode);
        break;
    default:
        break;
    }
    free(exact);
    free(text);
    return 0;
}
