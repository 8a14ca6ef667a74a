#include "tests/support/raw_peer.h"

#include "common/mem.h"
#include "proto/identity/x509.h"
#include "proto/msg/codec.h"

#include <openssl/err.h>
#include <openssl/ssl.h>

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define HANDSHAKE_MS 10000

struct raw_peer {
    int fd;
    bool ipc;
    SSL *ssl; /* NULL: bytes go as they are */
    BIO *in;  /* of `ssl`: what came from the socket */
    BIO *out; /* of `ssl`: what the socket has not sent yet */
};

/* ---- a socket ------------------------------------------------------------------------------------------ */

static struct raw_peer *open_socket(int family, const struct sockaddr *address, socklen_t len)
{
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, address, len) != 0) {
        if (fd >= 0)
            close(fd);
        return NULL;
    }
    struct raw_peer *p = mem_zalloc(1, sizeof *p);
    p->fd = fd;
    p->ipc = family == AF_UNIX;
    return p;
}

struct raw_peer *raw_open_ipc(const char *path)
{
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    snprintf(sa.sun_path, sizeof sa.sun_path, "%s", path);
    return open_socket(AF_UNIX, (struct sockaddr *)&sa, sizeof sa);
}

struct raw_peer *raw_open_tcp(const char *host, const char *port)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    struct raw_peer *p = NULL;
    if (getaddrinfo(host, port, &hints, &found) != 0)
        return NULL;
    for (const struct addrinfo *a = found; a != NULL && p == NULL; a = a->ai_next)
        p = open_socket(a->ai_family, a->ai_addr, a->ai_addrlen);
    freeaddrinfo(found);
    return p;
}

void raw_free(struct raw_peer *p)
{
    if (p == NULL)
        return;
    close(p->fd);
    SSL_free(p->ssl); /* and its BIOs */
    free(p);
}

void raw_reset(struct raw_peer *p)
{
    const struct linger linger = {.l_onoff = 1};
    (void)setsockopt(p->fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
    raw_free(p);
}

void raw_end_sending(struct raw_peer *p)
{
    (void)shutdown(p->fd, SHUT_WR);
}

static bool send_plain(struct raw_peer *p, const char *data, size_t len)
{
    while (len > 0) {
        ssize_t n = send(p->fd, data, len, MSG_NOSIGNAL);
        if (n <= 0)
            return false;
        data += n;
        len -= (size_t)n;
    }
    return true;
}

/* Bytes, 0 = closed, -1 = nothing in time. */
static int receive_plain(struct raw_peer *p, void *data, size_t len, int timeout_ms)
{
    struct pollfd pfd = {.fd = p->fd, .events = POLLIN};
    if (poll(&pfd, 1, timeout_ms) <= 0)
        return -1;
    ssize_t n = recv(p->fd, data, len, 0);
    return n > 0 ? (int)n : 0;
}

/* ---- TLS on it ----------------------------------------------------------------------------------------- */

static bool flush(struct raw_peer *p)
{
    char data[4096];
    int n;
    while ((n = BIO_read(p->out, data, sizeof data)) > 0)
        if (!send_plain(p, data, (size_t)n))
            return false;
    return true;
}

/* What OpenSSL lacked when it returned `rv`: as receive_plain. */
static int feed(struct raw_peer *p, int rv, int timeout_ms)
{
    char data[4096];
    int error = SSL_get_error(p->ssl, rv);
    ERR_clear_error();
    if (!flush(p) || error != SSL_ERROR_WANT_READ)
        return 0;
    int n = receive_plain(p, data, sizeof data, timeout_ms);
    return n > 0 ? BIO_write(p->in, data, n) : n;
}

static bool use_identity(SSL *ssl, const struct identity *id)
{
    struct err_detail d;
    X509 *cert = NULL;
    EVP_PKEY *key = NULL;
    bool good = x509_parse(id->cert_pem, &cert, &d) == ERR_OK &&
                x509_parse_key(id->key_pem, &key, &d) == ERR_OK && SSL_use_certificate(ssl, cert) == 1 &&
                SSL_use_PrivateKey(ssl, key) == 1;
    X509_free(cert);
    EVP_PKEY_free(key);
    return good;
}

static bool prepare_tls(struct raw_peer *p, const struct identity *id)
{
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
    must(ctx != NULL);
    SSL_CTX_set_verify(ctx, SSL_VERIFY_NONE, NULL);
    p->ssl = SSL_new(ctx);
    p->in = BIO_new(BIO_s_mem());
    p->out = BIO_new(BIO_s_mem());
    must(p->ssl != NULL && p->in != NULL && p->out != NULL);
    SSL_CTX_free(ctx);
    SSL_set_bio(p->ssl, p->in, p->out);
    SSL_set_connect_state(p->ssl);
    return id == NULL || use_identity(p->ssl, id);
}

bool raw_start_tls(struct raw_peer *p, const struct identity *id)
{
    if (!prepare_tls(p, id))
        return false;
    int rv;
    while ((rv = SSL_do_handshake(p->ssl)) != 1)
        if (feed(p, rv, HANDSHAKE_MS) <= 0)
            return false;
    return flush(p);
}

bool raw_start_half_tls(struct raw_peer *p)
{
    return prepare_tls(p, NULL) && SSL_do_handshake(p->ssl) != 1 && flush(p);
}

bool raw_send(struct raw_peer *p, const void *data, size_t len)
{
    if (p->ssl == NULL)
        return send_plain(p, data, len);
    size_t written = 0;
    return len == 0 || (SSL_write_ex(p->ssl, data, len, &written) == 1 && written == len && flush(p));
}

/* 1 = all there, 0 = closed, -1 = nothing in time. */
static int receive(struct raw_peer *p, void *data, size_t len, int timeout_ms)
{
    for (size_t done = 0; done < len;) {
        char *at = (char *)data + done;
        size_t got = 0;
        if (p->ssl == NULL) {
            int n = receive_plain(p, at, len - done, timeout_ms);
            if (n <= 0)
                return n;
            got = (size_t)n;
        } else {
            int rv = SSL_read_ex(p->ssl, at, len - done, &got);
            int n = rv != 1 ? feed(p, rv, timeout_ms) : 1;
            if (n <= 0)
                return n;
        }
        done += got;
    }
    return 1;
}

bool raw_readable(struct raw_peer *p, int ms)
{
    struct pollfd pfd = {.fd = p->fd, .events = POLLIN};
    return (p->ssl != NULL && (SSL_pending(p->ssl) > 0 || BIO_pending(p->in) > 0)) || poll(&pfd, 1, ms) > 0;
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

/* ---- frames -------------------------------------------------------------------------------------------- */

bool raw_greet(struct raw_peer *p)
{
    static const char greeting[8] = "\0SP\0\0\x30\0"; /* REQ */
    char theirs[8];
    return raw_send(p, greeting, sizeof greeting) && receive(p, theirs, sizeof theirs, HANDSHAKE_MS) == 1 &&
           memcmp(theirs, greeting, 4) == 0;
}

static void put(uint8_t *out, uint64_t value, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        out[i] = (uint8_t)(value >> (8 * (bytes - 1 - i)));
}

bool raw_send_frame(struct raw_peer *p, uint64_t len_said, const void *data, size_t len)
{
    uint8_t head[9] = {1};
    size_t start = p->ipc ? 0 : 1; /* over ipc a type byte comes first */
    put(head + 1, len_said, 8);
    return raw_send(p, head + start, sizeof head - start) && raw_send(p, data, len);
}

bool raw_send_request(struct raw_peer *p, uint32_t number, const void *data, size_t len)
{
    uint8_t head[4];
    put(head, number | 0x80000000u, sizeof head);
    return raw_send_frame(p, len + sizeof head, head, sizeof head) && raw_send(p, data, len);
}

bool raw_send_msg(struct raw_peer *p, uint32_t number, const struct msg *m)
{
    struct buf b;
    struct err_detail d;
    buf_init(&b, LIMIT_FRAME_BYTES);
    enum err e = codec_encode(m, &b, &d);
    if (e != ERR_OK)
        fprintf(stderr, "cannot encode: %s\n", d.text);
    bool ok = e == ERR_OK && raw_send_request(p, number, b.data, b.len);
    buf_fini(&b);
    return ok;
}

enum raw_outcome raw_receive(struct raw_peer *p, struct msg *out, int timeout_ms)
{
    uint8_t head[13];
    uint64_t len = 0;
    size_t start = p->ipc ? 0 : 1;
    int got = receive(p, head + start, sizeof head - start, timeout_ms);
    if (got <= 0)
        return got < 0 ? RAW_SILENT : RAW_CLOSED;
    for (size_t i = 1; i < 9; i++)
        len = len << 8 | head[i];
    if (len < 4 || len > LIMIT_FRAME_BYTES + 4)
        return RAW_GARBAGE;
    uint8_t *data = mem_alloc(len - 4);
    enum raw_outcome outcome = RAW_CLOSED;
    if (receive(p, data, len - 4, timeout_ms) == 1)
        outcome = codec_decode(data, len - 4, out, NULL) == ERR_OK ? RAW_MESSAGE : RAW_GARBAGE;
    free(data);
    return outcome;
}
