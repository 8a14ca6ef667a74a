#include "common/sha256.h"

#include "common/file.h"

#include <openssl/conf.h>
#include <openssl/evp.h>

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* Looking an algorithm up by its name takes locks that all threads share: done once, for the process's life.
 */
static EVP_MD *algorithm;
static pthread_once_t algorithm_once = PTHREAD_ONCE_INIT;

static void fetch_algorithm(void)
{
    algorithm = EVP_MD_fetch(NULL, "SHA256", NULL);
}

enum err sha256_check(struct err_detail *d)
{
    int failed = pthread_once(&algorithm_once, fetch_algorithm);
    must(failed == 0);
    if (algorithm != NULL)
        return ERR_OK;
    char *file = CONF_get1_default_config_file();
    enum err e =
        err_set(d, ERR_UNSUPPORTED,
                "OpenSSL has no SHA-256 here: its configuration, %s, leaves out the default provider. "
                "Activate that there, or let OPENSSL_CONF name another file",
                file != NULL ? file : "openssl.cnf");
    OPENSSL_free(file);
    return e;
}

void sha256_init(struct sha256 *s)
{
    must(sha256_check(NULL) == ERR_OK);
    s->inner = EVP_MD_CTX_new();
    must(s->inner != NULL);
    sha256_restart(s);
}

void sha256_fini(struct sha256 *s)
{
    EVP_MD_CTX_free(s->inner);
    s->inner = NULL;
}

void sha256_restart(struct sha256 *s)
{
    int ok = EVP_DigestInit_ex2(s->inner, algorithm, NULL);
    must(ok == 1);
}

void sha256_add(struct sha256 *s, const void *data, size_t len)
{
    int ok = EVP_DigestUpdate(s->inner, data, len);
    must(ok == 1);
}

void sha256_end(struct sha256 *s, uint8_t out[SHA256_BYTES])
{
    int ok = EVP_DigestFinal_ex(s->inner, out, NULL);
    must(ok == 1);
}

void sha256_of(const void *data, size_t len, uint8_t out[SHA256_BYTES])
{
    struct sha256 s;
    sha256_init(&s);
    sha256_add(&s, data, len);
    sha256_end(&s, out);
    sha256_fini(&s);
}

enum err sha256_of_fd(int fd, uint8_t out[SHA256_BYTES], struct err_detail *d)
{
    struct sha256 s;
    sha256_init(&s);
    char block[64 * 1024];
    size_t n = sizeof block;
    enum err e = ERR_OK;
    for (uint64_t offset = 0; e == ERR_OK && n == sizeof block; offset += n) {
        e = file_read_at(fd, block, sizeof block, offset, &n);
        sha256_add(&s, block, n);
    }
    if (e != ERR_OK)
        err_set(d, e, "a file cannot be read: %s", strerror(errno));
    sha256_end(&s, out);
    sha256_fini(&s);
    return e;
}

const char *sha256_text(const uint8_t hash[SHA256_BYTES], char out[SHA256_TEXT_BYTES])
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < SHA256_BYTES; i++) {
        out[2 * i] = digits[hash[i] >> 4];
        out[2 * i + 1] = digits[hash[i] & 15];
    }
    out[SHA256_TEXT_BYTES - 1] = '\0';
    return out;
}

bool sha256_parse(const char *text, uint8_t out[SHA256_BYTES])
{
    static const char digits[] = "0123456789abcdefABCDEF";
    if (strspn(text, digits) < SHA256_TEXT_BYTES - 1)
        return false;
    for (size_t i = 0; i < SHA256_BYTES; i++) {
        const char pair[3] = {text[2 * i], text[2 * i + 1], '\0'};
        out[i] = (uint8_t)strtoul(pair, NULL, 16);
    }
    return true;
}
