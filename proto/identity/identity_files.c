#include "proto/identity/identity.h"

#include "common/clock.h"
#include "common/mem.h"
#include "proto/identity/x509.h"

#include <openssl/crypto.h>
#include <openssl/x509.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The directory of an identity: made, read, written, and the CA's signature given with what lies in it. */

#define YEAR_NS        (UINT64_C(365) * 24 * 3600 * NS_PER_S)
#define CA_LIFE_NS     (20 * YEAR_NS)
#define SERVER_LIFE_NS (10 * YEAR_NS)
/* Certificates are valid from a little before they are made: laboratory clocks differ. */
#define CLOCK_SLACK_NS (UINT64_C(3600) * NS_PER_S)

static char *path_of(const char *dir, const char *name)
{
    return mem_printf("%s/%s", dir, name);
}

static enum err make_dir(const char *dir, struct err_detail *d)
{
    if (mkdir(dir, 0700) != 0 && errno != EEXIST)
        return err_set(d, err_from_errno(errno), "cannot create %s: %s", dir, strerror(errno));
    return ERR_OK;
}

/* ---- reading ------------------------------------------------------------------------------------------- */

static enum err read_open_file(int fd, const char *path, char **out, struct err_detail *d)
{
    char text[MSG_PEM_BYTES_MAX + 1];
    size_t len = 0;
    enum err e = ERR_OK;
    ssize_t n;
    do {
        n = read(fd, text + len, sizeof text - len);
        len += n > 0 ? (size_t)n : 0;
    } while (n > 0 && len < sizeof text);
    if (n < 0)
        e = err_set(d, ERR_IO, "cannot read %s: %s", path, strerror(errno));
    else if (len >= sizeof text)
        e = err_set(d, ERR_TOO_BIG, "%s has more than %u bytes", path, MSG_PEM_BYTES_MAX);
    else if (memchr(text, '\0', len) != NULL)
        e = err_set(d, ERR_INVALID, "%s is not a PEM file", path);
    else
        *out = mem_strndup(text, len);
    OPENSSL_cleanse(text, len); /* it may be a key */
    return e;
}

static enum err read_file(const char *dir, const char *name, bool secret, char **out, struct err_detail *d)
{
    char *path = path_of(dir, name);
    struct stat st;
    enum err e = ERR_OK;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a FIFO is refused, not waited for */
    if (fd < 0)
        e = err_set(d, err_from_errno(errno), "cannot read %s: %s%s", path, strerror(errno),
                    errno != ENOENT ? ""
                                    : "; 'splitbench controller init' makes a lab, 'splitbench-agent enroll' "
                                      "joins one");
    else if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
        e = err_set(d, ERR_INVALID, "%s is not a file", path);
    else if (secret && (st.st_mode & 077) != 0)
        e = err_set(d, ERR_DENIED, "%s can be read by others: chmod 600 it", path);
    else
        e = read_open_file(fd, path, out, d);
    if (fd >= 0)
        close(fd);
    free(path);
    return e;
}

enum err identity_load(const char *dir, struct identity *out, struct err_detail *d)
{
    struct identity id = {0};
    X509 *ca = NULL;
    enum err e = read_file(dir, "ca.pem", false, &id.ca_pem, d);
    if (e == ERR_OK)
        e = read_file(dir, "cert.pem", false, &id.cert_pem, d);
    if (e == ERR_OK)
        e = read_file(dir, "key.pem", true, &id.key_pem, d);
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

static enum err write_new(const char *path, const char *text, struct err_detail *d)
{
    (void)unlink(path); /* of an attempt that was cut short */
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return err_set(d, err_from_errno(errno), "cannot create %s: %s", path, strerror(errno));
    size_t len = strlen(text), done = 0;
    while (done < len) {
        ssize_t n = write(fd, text + done, len - done);
        if (n <= 0)
            break;
        done += (size_t)n;
    }
    bool ok = done == len && fsync(fd) == 0;
    int code = errno;
    if (close(fd) != 0 || !ok)
        return err_set(d, err_from_errno(code), "cannot write %s: %s", path, strerror(code));
    return ERR_OK;
}

/* All are written beside their places, then moved there in order: the last one is the sign of a whole set. */
static enum err write_files(const char *dir, const struct new_file *files, size_t count, struct err_detail *d)
{
    enum err e = make_dir(dir, d);
    for (size_t i = 0; i < count && e == ERR_OK; i++) {
        char *path = mem_printf("%s/%s.new", dir, files[i].name);
        e = write_new(path, files[i].text, d);
        free(path);
    }
    for (size_t i = 0; i < count; i++) {
        char *from = mem_printf("%s/%s.new", dir, files[i].name);
        char *to = path_of(dir, files[i].name);
        if (e == ERR_OK && rename(from, to) != 0)
            e = err_set(d, err_from_errno(errno), "cannot create %s: %s", to, strerror(errno));
        if (e != ERR_OK)
            (void)unlink(from);
        free(from);
        free(to);
    }
    int fd = e == ERR_OK ? open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (fd >= 0) {
        (void)fsync(fd); /* the names; the contents are on disk already */
        close(fd);
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
    enum err e = read_file(dir, "ca.pem", false, &secret.ca_pem, d);
    if (e == ERR_OK)
        e = read_file(dir, "ca.key.pem", true, &secret.key_pem, d);
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
