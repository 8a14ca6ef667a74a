#include "common/address.h"

#include "common/limits.h"
#include "common/mem.h"
#include "common/parse.h"

bool address_is_host(const char *s, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_:%", s[i]) == NULL)
            return false;
    }
    return len > 0 && len <= 253; /* a DNS name's most */
}

/* HOST, HOST:PORT, [V6] or [V6]:PORT. */
static enum err parse_tls_address(const char *whole, const char *text, char **out, struct err_detail *d)
{
    const char *host = text;
    const char *port;
    size_t len;
    bool bracketed = text[0] == '[';
    if (bracketed) {
        host = text + 1;
        len = strcspn(host, "]");
        port = host[len] == ']' ? host + len + 1 : "x";
    } else {
        len = strcspn(text, ":");
        port = text + len;
    }
    if (!bracketed && strchr(port + (*port == ':'), ':') != NULL)
        return err_set(d, ERR_INVALID,
                       "address \"%s\": an IPv6 address stands in brackets, as in [fe80::1]:%s", whole,
                       ADDRESS_PORT);
    if (!address_is_host(host, len) || (*port != '\0' && *port != ':'))
        return err_set(d, ERR_INVALID, "address \"%s\" is not HOST, HOST:PORT or a socket's absolute path",
                       whole);
    uint64_t number;
    if (*port == ':' && parse_u64(port + 1, 1, 65535, &number, "port", d) != ERR_OK)
        return err_prefix(d, ERR_INVALID, "address \"%s\"", whole);
    *out = mem_printf("tls+tcp://%s%.*s%s:%s", bracketed ? "[" : "", (int)len, host, bracketed ? "]" : "",
                      *port == ':' ? port + 1 : ADDRESS_PORT);
    return ERR_OK;
}

enum err address_parse(const char *text, char **out, struct err_detail *d)
{
    const char *scheme_end = strstr(text, "://");
    if (strlen(text) > LIMIT_PATH_BYTES)
        return err_set(d, ERR_INVALID, "address is longer than %u bytes", LIMIT_PATH_BYTES);
    if (scheme_end == NULL && text[0] != '/')
        return parse_tls_address(text, text, out, d);
    if (strncmp(text, "tls+tcp://", 10) == 0)
        return parse_tls_address(text, text + 10, out, d);
    const char *path = scheme_end == NULL ? text : strncmp(text, "ipc://", 6) == 0 ? text + 6 : NULL;
    if (strncmp(text, "tcp://", 6) == 0)
        return err_set(d, ERR_INVALID,
                       "address \"%s\": there is no plain TCP, only TLS: say HOST[:PORT] or "
                       "tls+tcp://HOST:PORT",
                       text);
    if (path == NULL)
        return err_set(d, ERR_INVALID, "address \"%s\": only tls+tcp:// and ipc:// are spoken", text);
    if (path[0] != '/')
        return err_set(d, ERR_INVALID, "address \"%s\": the socket's path must be absolute", text);
    *out = mem_printf("ipc://%s", path);
    return ERR_OK;
}
