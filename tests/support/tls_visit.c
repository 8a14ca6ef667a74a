#include "tests/support/tls_visit.h"

#include "common/mem.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/evp.h>
#include <openssl/x509.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define HEAD_BYTES_MAX   (64u * 1024u)
#define RECORD_BYTES_MAX (5u + 65535u)
#define READ_BYTES       (16u * 1024u)
#define PATTERN_BYTES    251u /* bodies repeat the numbers from 0 to 250 */
#define PATTERN_TIMES    64u

/* The books of the visit's service, for one entry. */
static struct tls_counts *open_books(struct visit *v)
{
    pthread_mutex_lock(&v->service->lock);
    return &v->service->counts;
}

static void close_books(struct visit *v)
{
    pthread_mutex_unlock(&v->service->lock);
}

/* ---- what OpenSSL tells on the way --------------------------------------------------------------------- */

static void on_info(const SSL *ssl, int where, int value)
{
    struct visit *v = SSL_get_app_data(ssl);
    struct tls_counts *n = open_books(v);
    if (where == SSL_CB_READ_ALERT)
        snprintf(n->alert, sizeof n->alert, "%s", SSL_alert_desc_string_long(value));
    if (where == SSL_CB_HANDSHAKE_DONE && !v->asking && v->shakes++ != 0 &&
        SSL_version(ssl) <= TLS1_2_VERSION)
        n->renegotiated++;
    close_books(v);
}

/* The lines are those of SSLKEYLOGFILE: a label, the client's random number, the secret. */
static void on_key(const SSL *ssl, const char *line)
{
    static const char label[] = "SERVER_TRAFFIC_SECRET_0 ";
    struct visit *v = SSL_get_app_data(ssl);
    if (strncmp(line, label, sizeof label - 1) != 0)
        return;
    const char *hex = strrchr(line, ' ') + 1;
    size_t len = 0;
    if (OPENSSL_hexstr2buf_ex(v->secret, sizeof v->secret, &len, hex, '\0') != 1)
        len = 0; /* a suite with a longer one, of which nobody forges records */
}

void visit_watch(SSL_CTX *ctx)
{
    SSL_CTX_set_info_callback(ctx, on_info);
    SSL_CTX_set_keylog_callback(ctx, on_key);
}

static void note_certificate(struct tls_counts *n, const SSL *ssl)
{
    X509 *cert = SSL_get0_peer_certificate(ssl);
    n->certificate[0] = '\0';
    if (cert != NULL)
        (void)X509_NAME_get_text_by_NID(X509_get_subject_name(cert), NID_commonName, n->certificate,
                                        sizeof n->certificate);
}

void visit_note_certificate(struct visit *v)
{
    note_certificate(open_books(v), v->ssl);
    close_books(v);
}

static void note_session(struct tls_counts *n, SSL *ssl)
{
    const char *group = SSL_group_to_name(ssl, (int)SSL_get_negotiated_group(ssl));
    *(SSL_session_reused(ssl) ? &n->resumed : &n->full) += 1;
    snprintf(n->version, sizeof n->version, "%s", SSL_get_version(ssl));
    snprintf(n->cipher, sizeof n->cipher, "%s", SSL_get_cipher_name(ssl));
    snprintf(n->group, sizeof n->group, "%s", group != NULL ? group : "");
    note_certificate(n, ssl);
}

static void note_client(struct visit *v, bool shaken)
{
    const char *name = SSL_get_servername(v->ssl, TLSEXT_NAMETYPE_host_name);
    struct tls_counts *n = open_books(v);
    snprintf(n->name, sizeof n->name, "%s", name != NULL ? name : "");
    if (shaken)
        note_session(n, v->ssl);
    close_books(v);
}

void visit_note_offer(struct visit *v, const uint8_t *list, size_t len)
{
    struct tls_counts *n = open_books(v);
    size_t at = 0;
    n->offered[0] = '\0';
    for (size_t i = 0; i < len && at < sizeof n->offered; i += 1 + (size_t)list[i])
        at += (size_t)snprintf(n->offered + at, sizeof n->offered - at, "%s%.*s", i != 0 ? "," : "", list[i],
                               (const char *)list + i + 1);
    close_books(v);
}

/* ---- the hand-shake ------------------------------------------------------------------------------------ */

static void make_session(struct visit *v)
{
    v->ssl = SSL_new(v->service->ctx);
    must(v->ssl != NULL && SSL_set_app_data(v->ssl, v) == 1);
}

bool visit_end_hands(struct visit *v)
{
    must(SSL_set_fd(v->ssl, v->fd) == 1);
    bool ok = SSL_accept(v->ssl) == 1;
    note_client(v, ok);
    return ok;
}

bool visit_shake_hands(struct visit *v)
{
    make_session(v);
    return visit_end_hands(v);
}

void visit_ask_to_renegotiate(struct visit *v)
{
    v->asking = true; /* OpenSSL takes the sending of the request for a whole hand-shake */
    (void)SSL_renegotiate(v->ssl);
    (void)SSL_do_handshake(v->ssl);
    v->asking = false;
}

static bool receive(struct visit *v, struct buf *into, size_t len)
{
    uint8_t data[RECORD_BYTES_MAX];
    must(len <= sizeof data);
    ssize_t n = recv(v->fd, data, len, MSG_WAITALL);
    if (n > 0)
        v->raw_in += (uint64_t)n;
    return n == (ssize_t)len && buf_append(into, data, len) == ERR_OK;
}

bool visit_read_hello(struct visit *v, struct buf *hello)
{
    if (!receive(v, hello, 5))
        return false;
    const uint8_t *head = (const uint8_t *)hello->data;
    return receive(v, hello, (size_t)head[3] << 8 | head[4]);
}

bool visit_make_flight(struct visit *v, struct buf *flight)
{
    struct buf hello;
    buf_init(&hello, RECORD_BYTES_MAX);
    bool ok = visit_read_hello(v, &hello);
    if (ok) {
        BIO *in = BIO_new(BIO_s_mem());
        BIO *out = BIO_new(BIO_s_mem());
        must(in != NULL && out != NULL && BIO_write(in, hello.data, (int)hello.len) == (int)hello.len);
        make_session(v);
        SSL_set_bio(v->ssl, in, out);
        ok = SSL_accept(v->ssl) < 0 && SSL_want_read(v->ssl);
        char *data = NULL;
        long len = BIO_get_mem_data(out, &data);
        must(buf_append(flight, data, (size_t)len) == ERR_OK);
        note_client(v, false);
    }
    buf_fini(&hello);
    return ok;
}

/* ---- requests and answers ------------------------------------------------------------------------------ */

void visit_say(struct visit *v, const void *data, size_t len)
{
    /* A client that is gone shows in the next read. */
    if (len != 0)
        (void)SSL_write(v->ssl, data, (int)len);
}

void visit_say_text(struct visit *v, const char *text)
{
    visit_say(v, text, strlen(text));
}

void visit_say_raw(struct visit *v, const void *data, size_t len)
{
    (void)!send(v->fd, data, len, MSG_NOSIGNAL);
}

static bool read_more(struct visit *v)
{
    uint8_t data[READ_BYTES];
    int n = SSL_read(v->ssl, data, sizeof data);
    return n > 0 && buf_append(&v->in, data, (size_t)n) == ERR_OK;
}

/* Reads and sums up the body; what of it came with the head is in `v->in`. */
static bool read_body(struct visit *v, uint64_t len)
{
    uint8_t hash[32];
    unsigned hash_len = 0;
    EVP_MD_CTX *sum = EVP_MD_CTX_new();
    must(sum != NULL && EVP_DigestInit_ex(sum, EVP_sha256(), NULL) == 1);
    bool ok = true;
    while (len != 0 && ok) {
        ok = v->in.len != 0 || read_more(v);
        size_t n = v->in.len < len ? v->in.len : (size_t)len;
        must(EVP_DigestUpdate(sum, v->in.data, n) == 1);
        buf_consume(&v->in, n);
        len -= n;
        open_books(v)->body_bytes += n;
        close_books(v);
    }
    must(EVP_DigestFinal_ex(sum, hash, &hash_len) == 1);
    EVP_MD_CTX_free(sum);
    for (size_t i = 0; i < sizeof hash; i++)
        snprintf(v->sum + 2 * i, 3, "%02x", hash[i]);
    return ok;
}

bool visit_read_request(struct visit *v)
{
    const char *end = NULL;
    while (v->in.len == 0 || (end = memmem(v->in.data, v->in.len, "\r\n\r\n", 4)) == NULL)
        if (!read_more(v))
            return false;
    size_t head_len = (size_t)(end + 4 - v->in.data);
    const char *length = memmem(v->in.data, head_len, "Content-Length: ", 16);
    v->last = memmem(v->in.data, head_len, "Connection: close\r\n", 19) != NULL;
    uint64_t body_len = length != NULL ? strtoull(length + 16, NULL, 10) : 0;
    bool ok = sscanf(v->in.data, "%*15s %127s", v->path) == 1;
    buf_consume(&v->in, head_len);
    v->sum[0] = '\0';
    if (!ok || (body_len != 0 && !read_body(v, body_len)))
        return false;
    open_books(v)->requests++;
    close_books(v);
    return true;
}

static void say_pattern(struct visit *v, uint64_t len)
{
    uint8_t block[PATTERN_BYTES * PATTERN_TIMES];
    for (size_t i = 0; i < sizeof block; i++)
        block[i] = (uint8_t)(i % PATTERN_BYTES);
    for (; len >= sizeof block; len -= sizeof block)
        visit_say(v, block, sizeof block);
    visit_say(v, block, (size_t)len);
}

void visit_answer(struct visit *v)
{
    char text[256];
    unsigned long long len = 0;
    const char *body = v->sum[0] != '\0' ? v->sum : "ok";
    bool pattern = sscanf(v->path, "/bytes/%llu", &len) == 1;
    if (!pattern)
        len = strlen(body);
    snprintf(text, sizeof text, "HTTP/1.1 200 OK\r\nContent-Length: %llu\r\n\r\n%s", len,
             pattern ? "" : body);
    visit_say_text(v, text);
    if (pattern)
        say_pattern(v, len);
}

/* ---- the connection ------------------------------------------------------------------------------------ */

static uint64_t read_so_far(const struct visit *v)
{
    BIO *rbio = v->ssl != NULL ? SSL_get_rbio(v->ssl) : NULL;
    bool socket = rbio != NULL && BIO_method_type(rbio) == BIO_TYPE_SOCKET;
    return v->raw_in + (socket ? BIO_number_read(rbio) : 0);
}

void visit_await_end(struct visit *v)
{
    struct pollfd p[] = {{.fd = v->fd, .events = POLLRDHUP},
                         {.fd = v->service->release_fd, .events = POLLIN}};
    while (poll(p, ARRAY_LEN(p), VISIT_PATIENCE_S * 1000) < 0 && errno == EINTR)
        ;
    int queued = 0;
    must(ioctl(v->fd, FIONREAD, &queued) == 0);
    open_books(v)->arrived += read_so_far(v) + (uint64_t)queued;
    close_books(v);
}

void visit_init(struct visit *v, struct tls_service *s, int fd)
{
    struct timeval patience = {.tv_sec = VISIT_PATIENCE_S};
    int on = 1;
    *v = (struct visit){.service = s, .fd = fd};
    buf_init(&v->in, HEAD_BYTES_MAX);
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    open_books(v)->accepted++;
    close_books(v);
}

/* A socket that is closed with bytes unread sends RST, which would take from the client what it was sent. */
static void read_to_the_end(struct visit *v)
{
    uint8_t data[READ_BYTES];
    (void)shutdown(v->fd, SHUT_WR);
    ssize_t n;
    while ((n = recv(v->fd, data, sizeof data, 0)) > 0)
        v->raw_in += (uint64_t)n;
}

void visit_fini(struct visit *v)
{
    struct linger hard = {.l_onoff = 1, .l_linger = 0};
    if (v->reset)
        (void)setsockopt(v->fd, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
    else
        read_to_the_end(v);
    close(v->fd);
    open_books(v)->wire_in += read_so_far(v);
    close_books(v);
    SSL_free(v->ssl);
    buf_fini(&v->in);
}
