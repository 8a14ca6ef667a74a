#include "common/sha256.h"

#include <errno.h>
#include <unistd.h>

void sha256_init(struct sha256 *s)
{
    mbedtls_sha256_init(&s->inner);
    int failed = mbedtls_sha256_starts_ret(&s->inner, 0);
    must(failed == 0);
}

void sha256_add(struct sha256 *s, const void *data, size_t len)
{
    int failed = len != 0 ? mbedtls_sha256_update_ret(&s->inner, data, len) : 0;
    must(failed == 0);
}

void sha256_end(struct sha256 *s, uint8_t out[SHA256_BYTES])
{
    int failed = mbedtls_sha256_finish_ret(&s->inner, out);
    must(failed == 0);
    mbedtls_sha256_free(&s->inner);
}

void sha256_of(const void *data, size_t len, uint8_t out[SHA256_BYTES])
{
    struct sha256 s;
    sha256_init(&s);
    sha256_add(&s, data, len);
    sha256_end(&s, out);
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
