#include "tests/support/wire.h"

#include "common/buf.h"
#include "common/mem.h"
#include "proto/codec.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define GREETING_BYTES 8u
static const uint8_t greeting[GREETING_BYTES] = {0, 'S', 'P', 0, 0, 0x30, 0, 0}; /* REQ */

bool wire_connect(struct wire *w, const char *host, const char *port)
{
    memset(w, 0, sizeof *w);
    mbedtls_net_init(&w->net);
    mbedtls_ssl_init(&w->ssl);
    mbedtls_ssl_config_init(&w->config);
    mbedtls_entropy_init(&w->entropy);
    mbedtls_ctr_drbg_init(&w->random);
    mbedtls_x509_crt_init(&w->cert);
    mbedtls_pk_init(&w->key);
    w->next_request = 0x80000001u;
    if (mbedtls_net_connect(&w->net, host, port, MBEDTLS_NET_PROTO_TCP) == 0)
        return true;
    fprintf(stderr, "cannot connect to %s:%s\n", host, port);
    return false;
}

static bool use_identity(struct wire *w, const struct identity *id)
{
    return mbedtls_x509_crt_parse(&w->cert, (const uint8_t *)id->cert_pem, strlen(id->cert_pem) + 1) == 0 &&
           mbedtls_pk_parse_key(&w->key, (const uint8_t *)id->key_pem, strlen(id->key_pem) + 1, NULL, 0) ==
               0 &&
           mbedtls_ssl_conf_own_cert(&w->config, &w->cert, &w->key) == 0;
}

bool wire_start_tls(struct wire *w, const struct identity *id)
{
    if (mbedtls_ctr_drbg_seed(&w->random, mbedtls_entropy_func, &w->entropy, NULL, 0) != 0 ||
        mbedtls_ssl_config_defaults(&w->config, MBEDTLS_SSL_IS_CLIENT, MBEDTLS_SSL_TRANSPORT_STREAM,
                                    MBEDTLS_SSL_PRESET_DEFAULT) != 0)
        return false;
    mbedtls_ssl_conf_authmode(&w->config, MBEDTLS_SSL_VERIFY_NONE);
    mbedtls_ssl_conf_rng(&w->config, mbedtls_ctr_drbg_random, &w->random);
    mbedtls_ssl_conf_read_timeout(&w->config, 10000);
    if ((id != NULL && !use_identity(w, id)) || mbedtls_ssl_setup(&w->ssl, &w->config) != 0)
        return false;
    mbedtls_ssl_set_bio(&w->ssl, &w->net, mbedtls_net_send, NULL, mbedtls_net_recv_timeout);
    w->tls = true;
    return mbedtls_ssl_handshake(&w->ssl) == 0;
}

bool wire_write(struct wire *w, const void *data, size_t len)
{
    const uint8_t *p = data;
    while (len > 0) {
        int n = w->tls ? mbedtls_ssl_write(&w->ssl, p, len) : mbedtls_net_send(&w->net, p, len);
        if (n <= 0)
            return false;
        p += n;
        len -= (size_t)n;
    }
    return true;
}

/* 1 = all there, 0 = closed, -1 = nothing in time. */
static int read_all(struct wire *w, void *out, size_t len, uint32_t timeout_ms)
{
    uint8_t *p = out;
    mbedtls_ssl_conf_read_timeout(&w->config, timeout_ms);
    while (len > 0) {
        int n = w->tls ? mbedtls_ssl_read(&w->ssl, p, len)
                       : mbedtls_net_recv_timeout(&w->net, p, len, timeout_ms);
        if (n == MBEDTLS_ERR_SSL_TIMEOUT)
            return -1;
        if (n <= 0)
            return 0;
        p += n;
        len -= (size_t)n;
    }
    return 1;
}

bool wire_greet(struct wire *w)
{
    uint8_t theirs[GREETING_BYTES];
    return wire_write(w, greeting, sizeof greeting) && read_all(w, theirs, sizeof theirs, 10000) == 1 &&
           memcmp(theirs, greeting, 4) == 0;
}

void wire_close(struct wire *w)
{
    mbedtls_net_free(&w->net);
    mbedtls_ssl_free(&w->ssl);
    mbedtls_ssl_config_free(&w->config);
    mbedtls_ctr_drbg_free(&w->random);
    mbedtls_entropy_free(&w->entropy);
    mbedtls_x509_crt_free(&w->cert);
    mbedtls_pk_free(&w->key);
}

bool wire_write_frame(struct wire *w, uint64_t len_said, const void *body, size_t len)
{
    uint8_t head[8];
    for (size_t i = 0; i < sizeof head; i++)
        head[i] = (uint8_t)(len_said >> (8 * (7 - i)));
    return wire_write(w, head, sizeof head) && wire_write(w, body, len);
}

bool wire_send(struct wire *w, const struct msg *m)
{
    uint32_t request = w->next_request++;
    uint8_t number[4] = {(uint8_t)(request >> 24), (uint8_t)(request >> 16), (uint8_t)(request >> 8),
                         (uint8_t)request};
    struct buf b;
    struct err_detail d = {""};
    buf_init(&b, LIMIT_FRAME_BYTES + sizeof number);
    enum err e = buf_append(&b, number, sizeof number);
    if (e == ERR_OK)
        e = codec_encode(m, &b, &d);
    if (e != ERR_OK)
        fprintf(stderr, "cannot encode: %s\n", d.text);
    bool sent = e == ERR_OK && wire_write_frame(w, b.len, b.data, b.len);
    buf_fini(&b);
    return sent;
}

enum wire_outcome wire_receive(struct wire *w, struct msg *out, uint32_t timeout_ms)
{
    uint8_t head[12];
    int got = read_all(w, head, sizeof head, timeout_ms);
    if (got <= 0)
        return got < 0 ? WIRE_SILENT : WIRE_CLOSED;
    uint64_t len = 0;
    for (size_t i = 0; i < 8; i++)
        len = len << 8 | head[i];
    if (len < 4 || len > LIMIT_FRAME_BYTES + 4)
        return WIRE_GARBAGE;
    uint8_t *body = mem_alloc(len);
    struct err_detail d;
    enum wire_outcome outcome = WIRE_CLOSED;
    if (read_all(w, body, len - 4, timeout_ms) == 1)
        outcome = codec_decode(body, len - 4, out, &d) == ERR_OK ? WIRE_MESSAGE : WIRE_GARBAGE;
    free(body);
    return outcome;
}
