#include "proto/identity/identity.h"

#include "common/clock.h"
#include "common/file.h"
#include "common/mem.h"
#include "proto/identity/x509.h"

#include <openssl/crypto.h>
#include <openssl/x509.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The directory in which an identity lies: making, reading and writing its files, and signing requests with
 * the CA's key that is among them. */

#define YEAR_NS        (UINT64_C(365) * 24 * 3600 * NS_PER_S)
#define CA_LIFE_NS     (20 * YEAR_NS)
#define SERVER_LIFE_NS (10 * YEAR_NS)
/* Certificates are valid from a little before they are made: laboratory clocks differ. */
#define CLOCK_SLACK_NS (UINT64_C(3600) * NS_PER_S)

static char *path_of(const char *dir, const char *name)
{
    return mem_printf("%s/%s", dir, name);
}

/* ---- reading ------------------------------------------------------------------------------------------- */

static enum err read_file(const char *dir, const char *name, enum file_kind kind, char **out,
                          struct err_detail *d)
{
    char *path = path_of(dir, name);
    size_t len = 0;
    enum err e = file_read(path, kind, MSG_PEM_BYTES_MAX, out, &len, d);
    if (e == ERR_NOT_FOUND)
        err_set(
            d, e,
            "%s is missing: 'splitbench controller init' makes a lab, 'splitbench-agent enroll' joins one",
            path);
    if (e == ERR_OK && strlen(*out) != len) {
        e = err_set(d, ERR_INVALID, "%s is not a PEM file", path);
        OPENSSL_cleanse(*out, len); /* it may be a key */
        free(*out);
        *out = NULL;
    }
    free(path);
    return e;
}

enum err identity_load(const char *dir, struct identity *out, struct err_detail *d)
{
    struct identity id = {0};
    X509 *ca = NULL;
    enum err e = read_file(dir, "ca.pem", FILE_REGULAR, &id.ca_pem, d);
    if (e == ERR_OK)
        e = read_file(dir, "cert.pem", FILE_REGULAR, &id.cert_pem, d);
    if (e == ERR_OK)
        e = read_file(dir, "key.pem", FILE_SECRET, &id.key_pem, d);
    if (e == ERR_OK)
        e = x509_parse(id.ca_pem, &ca, d);
    if (e == ERR_OK)
        e = x509_check_pair(id.cert_pem, id.key_pem, d);
    if (e == ERR_OK)
        *out = id;
    else
        identity_fini(&id);
    X509_free(ca);
    return e == ERR_INVALID ? err_prefix(d, e, "%s", dir) : e;
}

/* ---- writing ------------------------------------------------------------------------------------------- */

struct new_file {
    const char *name;
    const char *text;
};

/* All are written beside their places, then put there in order: the last one is the sign of a whole set. */
static enum err write_files(const char *dir, const struct new_file *files, size_t count, struct err_detail *d)
{
    enum err e = file_make_dir(dir, 0700, d);
    for (size_t i = 0; i < count && e == ERR_OK; i++) {
        char *path = path_of(dir, files[i].name);
        e = file_write_beside(path, 0600, files[i].text, strlen(files[i].text), d);
        free(path);
    }
    for (size_t i = 0; i < count; i++) {
        char *path = path_of(dir, files[i].name);
        if (e == ERR_OK)
            e = file_put_in_place(path, d);
        if (e != ERR_OK)
            file_drop_beside(path);
        free(path);
    }
    return e;
}

enum err identity_store(const char *dir, const struct identity *id, struct err_detail *d)
{
    enum err e = x509_check_pair(id->cert_pem, id->key_pem, d);
    const struct new_file files[] = {
        {"key.pem", id->key_pem}, {"cert.pem", id->cert_pem}, {"ca.pem", id->ca_pem}};
    return e == ERR_OK ? write_files(dir, files, ARRAY_LEN(files), d) : e;
}

enum err identity_create_lab(const char *dir, struct err_detail *d)
{
    char *ca_key = NULL, *ca = NULL, *key = NULL, *cert = NULL;
    char *path = path_of(dir, "ca.pem");
    uint64_t now = clock_wall_ns();
    struct x509_issue issue = {.name = "splitbench-lab",
                               .use = X509_USE_CA,
                               .from_wall_ns = now - CLOCK_SLACK_NS,
                               .until_wall_ns = now + CA_LIFE_NS};
    enum err e = access(path, F_OK) == 0 ? err_set(d, ERR_EXISTS, "%s exists: this lab is made already", path)
                                         : x509_make_key(&ca_key, d);
    if (e == ERR_OK) {
        issue.key_pem = ca_key;
        e = x509_issue(&issue, &ca, d);
    }
    if (e == ERR_OK)
        e = x509_make_key(&key, d);
    if (e == ERR_OK) {
        issue.ca_pem = ca;
        issue.ca_key_pem = ca_key;
        issue.key_pem = key;
        issue.name = IDENTITY_CONTROLLER_NAME;
        issue.role = MSG_ROLE_CONTROLLER;
        issue.use = X509_USE_SERVER;
        issue.until_wall_ns = now + SERVER_LIFE_NS;
        e = x509_issue(&issue, &cert, d);
    }
    const struct new_file files[] = {
        {"ca.key.pem", ca_key}, {"key.pem", key}, {"cert.pem", cert}, {"ca.pem", ca}};
    if (e == ERR_OK)
        e = write_files(dir, files, ARRAY_LEN(files), d);
    struct identity secret = {.key_pem = ca_key};
    struct identity rest = {.ca_pem = ca, .cert_pem = cert, .key_pem = key};
    identity_fini(&secret);
    identity_fini(&rest);
    free(path);
    return e;
}

enum err identity_sign_request(const char *dir, const char *csr_pem, const char *name, enum msg_role role,
                               uint64_t life_ns, char **cert_pem, struct err_detail *d)
{
    struct identity secret = {0};
    must(role == MSG_ROLE_AGENT || role == MSG_ROLE_OPERATOR);
    enum err e = read_file(dir, "ca.pem", FILE_REGULAR, &secret.ca_pem, d);
    if (e == ERR_OK)
        e = read_file(dir, "ca.key.pem", FILE_SECRET, &secret.key_pem, d);
    uint64_t now = clock_wall_ns();
    const struct x509_issue issue = {.ca_pem = secret.ca_pem,
                                     .ca_key_pem = secret.key_pem,
                                     .csr_pem = csr_pem,
                                     .name = name,
                                     .role = role,
                                     .use = X509_USE_CLIENT,
                                     .from_wall_ns = now - CLOCK_SLACK_NS,
                                     .until_wall_ns = now + life_ns};
    if (e == ERR_OK)
        e = x509_issue(&issue, cert_pem, d);
    identity_fini(&secret);
    return e;
}
