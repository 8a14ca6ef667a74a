#include "common/sha256.h"

#include <openssl/evp.h>

#include <errno.h>
#include <pthread.h>
#include <unistd.h>

/* Looking an algorithm up by its name takes locks that all threads share: done once, for the process's life.
 */
static EVP_MD *algorithm;
static pthread_once_t algorithm_once = PTHREAD_ONCE_INIT;

static void fetch_algorithm(void)
{
    algorithm = EVP_MD_fetch(NULL, "SHA256", NULL);
    must(algorithm != NULL);
}

void sha256_init(struct sha256 *s)
{
    int failed = pthread_once(&algorithm_once, fetch_algorithm);
    must(failed == 0);
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
    if (lseek(fd, 0, SEEK_SET) < 0)
        return err_set(d, err_from_errno(errno), "a file cannot be read from its beginning: %s",
                       strerror(errno));
    struct sha256 s;
    sha256_init(&s);
    char block[64 * 1024];
    ssize_t n;
    do {
        n = read(fd, block, sizeof block);
        if (n > 0)
            sha256_add(&s, block, (size_t)n);
    } while (n > 0 || (n < 0 && errno == EINTR));
    int errnum = errno;
    sha256_end(&s, out);
    sha256_fini(&s);
    if (n < 0)
        return err_set(d, err_from_errno(errnum), "a file cannot be read: %s", strerror(errnum));
    return ERR_OK;
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
