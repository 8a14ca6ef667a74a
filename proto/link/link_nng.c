#include "proto/link/link_nng.h"

#include "proto/msg/codec.h"

#include <nng/protocol/reqrep0/req.h>

#include <string.h>
#include <sys/un.h>

bool link_is_ipc(const char *address)
{
    return strncmp(address, LINK_IPC, strlen(LINK_IPC)) == 0;
}

enum err link_check_address(const char *address, struct err_detail *d)
{
    if (link_is_ipc(address)) {
        const char *path = address + strlen(LINK_IPC);
        if (path[0] != '/')
            return err_set(d, ERR_INVALID, "address '%s': use ipc:///absolute/path", address);
        if (strlen(path) >= sizeof((struct sockaddr_un *)NULL)->sun_path)
            return err_set(d, ERR_INVALID, "address '%s': a socket path has at most %zu bytes", address,
                           sizeof((struct sockaddr_un *)NULL)->sun_path - 1);
        return ERR_OK;
    }
    const char *host = address + strlen(LINK_TLS);
    if (strncmp(address, LINK_TLS, strlen(LINK_TLS)) != 0)
        return err_set(d, ERR_INVALID, "address '%s': use tls+tcp://HOST:PORT or ipc:///PATH", address);
    const char *colon = strrchr(host, ':');
    if (colon == NULL || colon == host || colon[1] == '\0' ||
        strspn(colon + 1, "0123456789") != strlen(colon + 1) || strlen(colon + 1) > 5 ||
        strlen(address) >= NNG_MAXADDRLEN)
        return err_set(d, ERR_INVALID, "address '%s': use tls+tcp://HOST:PORT", address);
    return ERR_OK;
}

enum err link_err(int nng_code)
{
    switch (nng_code) {
    case 0:
        return ERR_OK;
    case NNG_ETIMEDOUT:
        return ERR_TIMEOUT;
    case NNG_ECONNREFUSED:
    case NNG_EUNREACHABLE:
    case NNG_EADDRINVAL:
    case NNG_ENOENT:
        return ERR_UNREACHABLE;
    case NNG_ECLOSED:
    case NNG_ECONNRESET:
    case NNG_ECONNABORTED:
    case NNG_ECONNSHUT:
        return ERR_CLOSED;
    case NNG_ECANCELED:
        return ERR_CANCELLED;
    case NNG_EADDRINUSE:
    case NNG_EBUSY:
        return ERR_BUSY;
    case NNG_EPERM:
    case NNG_ECRYPTO:
    case NNG_EPEERAUTH:
        return ERR_DENIED;
    case NNG_EMSGSIZE:
        return ERR_TOO_BIG;
    case NNG_ENOFILES:
    case NNG_ENOSPC:
    case NNG_ENOMEM:
        return ERR_FULL;
    case NNG_EPROTO:
    case NNG_EINVAL:
        return ERR_INVALID;
    default:
        return ERR_IO;
    }
}

enum err link_dial_err(int nng_code, const char *address, struct err_detail *d)
{
    enum err e = link_err(nng_code);
    switch (nng_code) {
    case NNG_ECONNREFUSED:
    case NNG_ENOENT:
        return err_set(d, e, "no controller answers at %s: is it running there?", address);
    case NNG_EADDRINVAL:
        return err_set(d, e, "%s: no such host", address);
    case NNG_ECRYPTO:
    case NNG_EPEERAUTH:
        return err_set(d, e, "%s is not this lab's controller: its certificate does not prove it", address);
    case NNG_EPERM:
        return err_set(d, e, "%s: no permission to open the socket", address);
    case NNG_EPROTO:
        return err_set(d, e, "%s does not speak this protocol", address);
    default:
        return err_set(d, e, "cannot connect to %s: %s", address, nng_strerror(nng_code));
    }
}

enum err link_tls_server(const struct identity *id, nng_tls_config **out, struct err_detail *d)
{
    nng_tls_config *tls = NULL;
    int rv = nng_tls_config_alloc(&tls, NNG_TLS_MODE_SERVER);
    if (rv == 0)
        rv = nng_tls_config_own_cert(tls, id->cert_pem, id->key_pem, NULL);
    if (rv == 0)
        rv = nng_tls_config_ca_chain(tls, id->ca_pem, NULL);
    if (rv == 0)
        rv = nng_tls_config_auth_mode(tls, NNG_TLS_AUTH_MODE_OPTIONAL);
    if (rv == 0)
        rv = nng_tls_config_version(tls, NNG_TLS_1_2, NNG_TLS_1_2);
    if (rv != 0) {
        if (tls != NULL)
            nng_tls_config_free(tls);
        return err_set(d, ERR_INVALID, "the controller's certificate or key cannot be used: %s",
                       nng_strerror(rv));
    }
    *out = tls;
    return ERR_OK;
}

enum err link_tls_client(const char *ca_pem, const char *cert_pem, const char *key_pem, nng_tls_config **out,
                         struct err_detail *d)
{
    nng_tls_config *tls = NULL;
    int rv = nng_tls_config_alloc(&tls, NNG_TLS_MODE_CLIENT);
    /* The name is set on every configuration: without one the host-name check is off. */
    if (rv == 0)
        rv = nng_tls_config_server_name(tls, IDENTITY_CONTROLLER_NAME);
    if (rv == 0 && ca_pem != NULL)
        rv = nng_tls_config_ca_chain(tls, ca_pem, NULL);
    if (rv == 0)
        rv = nng_tls_config_auth_mode(tls,
                                      ca_pem != NULL ? NNG_TLS_AUTH_MODE_REQUIRED : NNG_TLS_AUTH_MODE_NONE);
    if (rv == 0 && cert_pem != NULL)
        rv = nng_tls_config_own_cert(tls, cert_pem, key_pem, NULL);
    if (rv == 0)
        rv = nng_tls_config_version(tls, NNG_TLS_1_2, NNG_TLS_1_2);
    if (rv != 0) {
        if (tls != NULL)
            nng_tls_config_free(tls);
        return err_set(d, ERR_INVALID, "the certificates or the key cannot be used: %s", nng_strerror(rv));
    }
    *out = tls;
    return ERR_OK;
}

enum err link_open_client(const char *address, nng_tls_config *tls, nng_socket *socket, nng_dialer *dialer,
                          struct err_detail *d)
{
    nng_socket s;
    int rv = nng_req0_open(&s);
    if (rv != 0)
        return err_set(d, link_err(rv), "cannot open a socket: %s", nng_strerror(rv));
    rv = nng_socket_set_size(s, NNG_OPT_RECVMAXSZ, LINK_RECV_BYTES_MAX);
    if (rv == 0)
        rv = nng_socket_set_ms(s, NNG_OPT_REQ_RESENDTIME, NNG_DURATION_INFINITE);
    if (rv == 0)
        rv = nng_dialer_create(dialer, s, address);
    if (rv == 0 && tls != NULL)
        rv = nng_dialer_set_ptr(*dialer, NNG_OPT_TLS_CONFIG, tls);
    if (rv != 0) {
        nng_close(s);
        return err_set(d, ERR_INVALID, "address '%s': %s", address, nng_strerror(rv));
    }
    *socket = s;
    return ERR_OK;
}

enum err link_pack(const struct msg *m, nng_msg **out, struct err_detail *d)
{
    struct buf b;
    buf_init(&b, LIMIT_FRAME_BYTES);
    enum err e = codec_encode(m, &b, d);
    if (e == ERR_OK) {
        must(nng_msg_alloc(out, 0) == 0);
        must(nng_msg_append(*out, b.data, b.len) == 0);
    }
    buf_fini(&b);
    return e;
}
