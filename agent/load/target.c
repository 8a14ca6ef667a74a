#include "agent/load/target.h"

#include "common/clock.h"
#include "common/limits.h"
#include "common/mem.h"
#include "common/parse.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/un.h>
#include <unistd.h>

static enum err split_authority(struct target *t, const char *text, size_t len, struct err_detail *d)
{
    const char *end = text + len;
    const char *host = text;
    const char *host_end = NULL;
    const char *port = NULL;
    if (len != 0 && *text == '[') {
        host = text + 1;
        host_end = memchr(host, ']', len - 1);
        if (host_end == NULL || (host_end + 1 != end && host_end[1] != ':'))
            return err_set(d, ERR_INVALID, "URL '%s': an IPv6 address is written [::1]", t->url);
        port = host_end + 1 != end ? host_end + 2 : NULL;
    } else {
        const char *colon = memchr(text, ':', len);
        host_end = colon != NULL ? colon : end;
        port = colon != NULL ? colon + 1 : NULL;
    }
    size_t host_len = (size_t)(host_end - host);
    if (host_len == 0 || host_len >= sizeof t->host || memchr(host, '@', (size_t)(end - host)) != NULL)
        return err_set(d, ERR_INVALID, "URL '%s': needs a plain host name of at most %zu bytes", t->url,
                       sizeof t->host - 1);
    memcpy(t->host, host, host_len);
    t->host[host_len] = '\0';
    uint16_t standard = t->tls ? 443 : 80;
    uint64_t number = standard;
    if (port != NULL) {
        char digits[8];
        size_t n = (size_t)(end - port);
        snprintf(digits, sizeof digits, "%.*s", (int)(n < sizeof digits ? n : sizeof digits - 1), port);
        enum err e = parse_u64(digits, 1, 65535, &number, "the URL's port", d);
        if (e != ERR_OK)
            return e;
    }
    t->port = (uint16_t)number;
    bool v6 = strchr(t->host, ':') != NULL;
    int n = snprintf(t->authority, sizeof t->authority, "%s%s%s", v6 ? "[" : "", t->host, v6 ? "]" : "");
    if (t->port != standard)
        snprintf(t->authority + n, sizeof t->authority - (size_t)n, ":%u", t->port);
    return ERR_OK;
}

enum err target_parse(struct target *t, const char *url, const char *unix_socket, struct err_detail *d)
{
    *t = (struct target){0};
    if (strlen(url) > TARGET_URL_BYTES_MAX)
        return err_set(d, ERR_TOO_BIG, "URL: longer than %u bytes", TARGET_URL_BYTES_MAX);
    for (const char *p = url; *p != '\0'; p++)
        if (*p <= ' ' || *p > '~')
            return err_set(d, ERR_INVALID, "URL: blanks, control and non-ASCII bytes must be %%-encoded");
    t->url = mem_strdup(url);
    const char *rest = NULL;
    if (strncasecmp(url, "http://", 7) == 0)
        rest = url + 7;
    else if (strncasecmp(url, "https://", 8) == 0)
        rest = url + 8;
    else
        return err_set(d, ERR_INVALID, "URL '%s': must begin with http:// or https://", url);
    t->tls = rest == url + 8;
    if (strchr(rest, '#') != NULL)
        return err_set(d, ERR_INVALID, "URL '%s': a fragment (#...) is never sent to a server", url);
    size_t len = strcspn(rest, "/?");
    enum err e = split_authority(t, rest, len, d);
    if (e != ERR_OK)
        return e;
    const char *path = rest + len;
    t->path = *path == '/' ? mem_strdup(path) : mem_printf("/%s", path);
    if (unix_socket == NULL)
        return ERR_OK;
    if (strlen(unix_socket) >= sizeof((struct sockaddr_un *)NULL)->sun_path || *unix_socket == '\0')
        return err_set(d, ERR_TOO_BIG, "--unix-socket: the path must have 1 to %zu bytes",
                       sizeof((struct sockaddr_un *)NULL)->sun_path - 1);
    t->unix_socket = mem_strdup(unix_socket);
    return ERR_OK;
}

void target_fini(struct target *t)
{
    free(t->url);
    free(t->path);
    free(t->unix_socket);
    *t = (struct target){0};
}

static void use_unix_socket(struct target *t)
{
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    memcpy(un.sun_path, t->unix_socket, strlen(t->unix_socket) + 1);
    memcpy(&t->addresses[0].addr, &un, sizeof un);
    t->addresses[0].len = sizeof un;
    t->address_count = 1;
}

static bool address_answers(const struct target_address *a, uint64_t timeout_ns)
{
    int fd = socket(a->addr.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return false;
    bool up = connect(fd, (const struct sockaddr *)&a->addr, a->len) == 0;
    if (!up && errno == EINPROGRESS) {
        struct pollfd p = {.fd = fd, .events = POLLOUT};
        int error = 0;
        socklen_t len = sizeof error;
        up = poll(&p, 1, (int)(timeout_ns / NS_PER_MS)) == 1 &&
             getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) == 0 && error == 0;
    }
    close(fd);
    return up;
}

/* Keeps the addresses that answer; all of them when none does, so that the run reports the refusal. */
static void drop_silent_addresses(struct target *t, uint64_t timeout_ns)
{
    struct target_address alive[TARGET_ADDRESSES_MAX];
    size_t count = 0;
    for (size_t i = 0; i < t->address_count; i++)
        if (address_answers(&t->addresses[i], timeout_ns))
            alive[count++] = t->addresses[i];
    if (count == 0)
        return;
    memcpy(t->addresses, alive, count * sizeof alive[0]);
    t->address_count = count;
}

enum err target_resolve(struct target *t, uint64_t timeout_ns, struct err_detail *d)
{
    if (t->unix_socket != NULL) {
        use_unix_socket(t);
        return ERR_OK;
    }
    char port[8];
    snprintf(port, sizeof port, "%u", t->port);
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
    struct addrinfo *list = NULL;
    int rc = getaddrinfo(t->host, port, &hints, &list);
    if (rc != 0)
        return err_set(d, ERR_NOT_FOUND, "host '%s' cannot be resolved: %s", t->host, gai_strerror(rc));
    t->address_count = 0;
    for (struct addrinfo *a = list; a != NULL && t->address_count < TARGET_ADDRESSES_MAX; a = a->ai_next) {
        struct target_address *to = &t->addresses[t->address_count++];
        memcpy(&to->addr, a->ai_addr, a->ai_addrlen);
        to->len = a->ai_addrlen;
    }
    freeaddrinfo(list);
    if (t->address_count > 1)
        drop_silent_addresses(t, timeout_ns);
    return ERR_OK;
}

enum err target_parse_source(struct target_address *a, const char *text, struct err_detail *d)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6};
    *a = (struct target_address){0};
    if (inet_pton(AF_INET, text, &v4.sin_addr) == 1) {
        memcpy(&a->addr, &v4, sizeof v4);
        a->len = sizeof v4;
    } else if (inet_pton(AF_INET6, text, &v6.sin6_addr) == 1) {
        memcpy(&a->addr, &v6, sizeof v6);
        a->len = sizeof v6;
    } else {
        return err_set(d, ERR_INVALID, "--source: '%s' is not an IPv4 or IPv6 address", text);
    }
    return ERR_OK;
}
