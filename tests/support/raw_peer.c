#include "tests/support/raw_peer.h"

#include "common/mem.h"
#include "proto/codec.h"

#include <mbedtls/net_sockets.h>
#include <mbedtls/ssl.h>
#include <mbedtls/ssl_internal.h>

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

struct raw_peer {
    int fd;
    bool ipc;
    bool tls;
    mbedtls_ssl_context ssl;
    mbedtls_ssl_config config;
    mbedtls_x509_crt cert;
    mbedtls_pk_context key;
};

static int random_bytes(void *unused, unsigned char *out, size_t len)
{
    (void)unused;
    identity_random(out, len);
    return 0;
}

static int on_send(void *arg, const unsigned char *data, size_t len)
{
    ssize_t n = send(*(int *)arg, data, len, MSG_NOSIGNAL);
    return n >= 0 ? (int)n : MBEDTLS_ERR_NET_SEND_FAILED;
}

static int on_receive(void *arg, unsigned char *data, size_t len)
{
    struct pollfd pfd = {.fd = *(int *)arg, .events = POLLIN};
    if (poll(&pfd, 1, 5000) <= 0)
        return MBEDTLS_ERR_SSL_TIMEOUT;
    ssize_t n = recv(*(int *)arg, data, len, 0);
    return n >= 0 ? (int)n : MBEDTLS_ERR_NET_RECV_FAILED;
}

static struct raw_peer *open_socket(int family, const struct sockaddr *address, socklen_t len)
{
    struct raw_peer *p = mem_zalloc(1, sizeof *p);
    p->fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    mbedtls_ssl_init(&p->ssl);
    mbedtls_ssl_config_init(&p->config);
    mbedtls_x509_crt_init(&p->cert);
    mbedtls_pk_init(&p->key);
    if (p->fd >= 0 && connect(p->fd, address, len) == 0)
        return p;
    raw_free(p);
    return NULL;
}

struct raw_peer *raw_open_ipc(const char *path)
{
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    snprintf(sa.sun_path, sizeof sa.sun_path, "%s", path);
    struct raw_peer *p = open_socket(AF_UNIX, (struct sockaddr *)&sa, sizeof sa);
    if (p != NULL)
        p->ipc = true;
    return p;
}

struct raw_peer *raw_open_tcp(int port)
{
    struct sockaddr_in sa = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    sa.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return open_socket(AF_INET, (struct sockaddr *)&sa, sizeof sa);
}

static int prepare_tls(struct raw_peer *p, const struct identity *id)
{
    p->tls = true;
    int rv = mbedtls_ssl_config_defaults(&p->config, MBEDTLS_SSL_IS_CLIENT, MBEDTLS_SSL_TRANSPORT_STREAM,
                                         MBEDTLS_SSL_PRESET_DEFAULT);
    mbedtls_ssl_conf_authmode(&p->config, MBEDTLS_SSL_VERIFY_NONE);
    mbedtls_ssl_conf_rng(&p->config, random_bytes, NULL);
    if (rv == 0 && id != NULL)
        rv = mbedtls_x509_crt_parse(&p->cert, (const unsigned char *)id->cert_pem, strlen(id->cert_pem) + 1);
    if (rv == 0 && id != NULL)
        rv = mbedtls_pk_parse_key(&p->key, (const unsigned char *)id->key_pem, strlen(id->key_pem) + 1, NULL,
                                  0);
    if (rv == 0 && id != NULL)
        rv = mbedtls_ssl_conf_own_cert(&p->config, &p->cert, &p->key);
    if (rv == 0)
        rv = mbedtls_ssl_setup(&p->ssl, &p->config);
    mbedtls_ssl_set_bio(&p->ssl, &p->fd, on_send, on_receive, NULL);
    return rv;
}

struct raw_peer *raw_open_tls(int port, const struct identity *id)
{
    struct raw_peer *p = raw_open_tcp(port);
    if (p != NULL && prepare_tls(p, id) == 0 && mbedtls_ssl_handshake(&p->ssl) == 0)
        return p;
    raw_free(p);
    return NULL;
}

struct raw_peer *raw_open_half_tls(int port)
{
    struct raw_peer *p = raw_open_tcp(port);
    int rv = p != NULL ? prepare_tls(p, NULL) : -1;
    while (rv == 0 && p->ssl.state != MBEDTLS_SSL_SERVER_HELLO)
        rv = mbedtls_ssl_handshake_step(&p->ssl);
    if (rv == 0)
        rv = mbedtls_ssl_flush_output(&p->ssl);
    if (rv == 0)
        return p;
    raw_free(p);
    return NULL;
}

void raw_reset(struct raw_peer *p)
{
    const struct linger linger = {.l_onoff = 1};
    (void)setsockopt(p->fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
    raw_free(p);
}

void raw_free(struct raw_peer *p)
{
    if (p == NULL)
        return;
    if (p->fd >= 0)
        close(p->fd);
    mbedtls_ssl_free(&p->ssl);
    mbedtls_ssl_config_free(&p->config);
    mbedtls_x509_crt_free(&p->cert);
    mbedtls_pk_free(&p->key);
    free(p);
}

bool raw_send(struct raw_peer *p, const void *data, size_t len)
{
    const unsigned char *at = data;
    while (len > 0) {
        int n = p->tls ? mbedtls_ssl_write(&p->ssl, at, len) : on_send(&p->fd, at, len);
        if (n <= 0)
            return false;
        at += n;
        len -= (size_t)n;
    }
    return true;
}

static bool receive(struct raw_peer *p, void *data, size_t len)
{
    unsigned char *at = data;
    while (len > 0) {
        int n = p->tls ? mbedtls_ssl_read(&p->ssl, at, len) : on_receive(&p->fd, at, len);
        if (n <= 0)
            return false;
        at += n;
        len -= (size_t)n;
    }
    return true;
}

bool raw_greet(struct raw_peer *p)
{
    char theirs[8];
    return raw_send(p, "\0SP\0\0\x30\0\0", 8) && receive(p, theirs, sizeof theirs);
}

static void put(uint8_t *out, uint64_t value, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        out[i] = (uint8_t)(value >> (8 * (bytes - 1 - i)));
}

bool raw_send_frame(struct raw_peer *p, uint32_t number, const void *data, size_t len)
{
    uint8_t head[13];
    size_t start = p->ipc ? 0 : 1; /* over ipc a type byte comes first */
    head[0] = 1;
    put(head + 1, len + 4, 8);
    put(head + 9, number | 0x80000000u, 4);
    return raw_send(p, head + start, sizeof head - start) && raw_send(p, data, len);
}

bool raw_send_msg(struct raw_peer *p, uint32_t number, const struct msg *m)
{
    struct buf b;
    struct err_detail d;
    buf_init(&b, LIMIT_FRAME_BYTES);
    enum err e = codec_encode(m, &b, &d);
    if (e != ERR_OK)
        fprintf(stderr, "%s\n", d.text);
    bool ok = e == ERR_OK && raw_send_frame(p, number, b.data, b.len);
    buf_fini(&b);
    return ok;
}

bool raw_receive(struct raw_peer *p, struct msg *out)
{
    uint8_t head[9], number[4];
    uint64_t len = 0;
    size_t size = p->ipc ? 9 : 8;
    if (!receive(p, head, size))
        return false;
    for (size_t i = size - 8; i < size; i++)
        len = len << 8 | head[i];
    if (len < 4 || len > LIMIT_FRAME_BYTES + 4 || !receive(p, number, 4))
        return false;
    uint8_t *data = mem_alloc(len - 4);
    bool ok = receive(p, data, len - 4) && codec_decode(data, len - 4, out, NULL) == ERR_OK;
    free(data);
    return ok;
}

bool raw_readable(struct raw_peer *p, int ms)
{
    struct pollfd pfd = {.fd = p->fd, .events = POLLIN};
    return (p->tls && mbedtls_ssl_get_bytes_avail(&p->ssl) > 0) || poll(&pfd, 1, ms) > 0;
}

bool raw_closed(struct raw_peer *p)
{
    char rest[4096];
    ssize_t n;
    do
        n = recv(p->fd, rest, sizeof rest, MSG_DONTWAIT);
    while (n > 0);
    return n == 0 || (errno != EAGAIN && errno != EWOULDBLOCK);
}
