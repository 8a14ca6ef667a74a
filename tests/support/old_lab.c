#include "tests/support/old_lab.h"

#include "common/mem.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
// clang-format on

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PLACE "tests/unit/data/lab_mbedtls/"

char *old_lab_read(const char *name)
{
    char text[MSG_PEM_BYTES_MAX];
    char *path = mem_printf(PLACE "%s", name);
    FILE *f = fopen(path, "r");
    if (f == NULL)
        fail_msg("%s cannot be read", path);
    size_t len = fread(text, 1, sizeof text, f);
    fclose(f);
    free(path);
    return mem_strndup(text, len);
}

void old_lab_write(const char *dir)
{
    static const char *const names[] = {"ca.pem", "ca.key.pem", "cert.pem", "key.pem"};
    assert_int_equal(mkdir(dir, 0700), 0);
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        char *from = mem_printf("lab/%s", names[i]);
        char *to = mem_printf("%s/%s", dir, names[i]);
        char *text = old_lab_read(from);
        int fd = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        assert_true(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
        close(fd);
        free(text);
        free(to);
        free(from);
    }
}

void old_lab_party(const char *name, struct identity *out)
{
    char *cert = mem_printf("%s.pem", name);
    char *key = mem_printf("%s.key.pem", name);
    *out = (struct identity){
        .ca_pem = old_lab_read("lab/ca.pem"), .cert_pem = old_lab_read(cert), .key_pem = old_lab_read(key)};
    free(cert);
    free(key);
}
