#include "proto/link_guard.h"

#include "common/mem.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

void guard_fini(struct link_guard *g)
{
    free(g->strangers);
    g->strangers = NULL;
    g->stranger_count = 0;
}

void guard_add_port(struct link_guard *g, uint16_t port)
{
    if (g->port_count < GUARD_PORTS_MAX)
        g->ports[g->port_count++] = port;
}

static int by_cookie(const void *a, const void *b)
{
    uint64_t x = ((const struct guard_stranger *)a)->cookie, y = ((const struct guard_stranger *)b)->cookie;
    return x < y ? -1 : x > y;
}

/* An IPv6 address and port of any internet socket address; false for other families. */
static bool split(const struct sockaddr_storage *from, struct in6_addr *address, uint16_t *port)
{
    if (from->ss_family == AF_INET) {
        const struct sockaddr_in *in = (const struct sockaddr_in *)from;
        memset(address, 0, sizeof *address);
        address->s6_addr[10] = address->s6_addr[11] = 0xff;
        memcpy(address->s6_addr + 12, &in->sin_addr, 4);
        *port = ntohs(in->sin_port);
        return true;
    }
    if (from->ss_family == AF_INET6) {
        const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)from;
        *address = in6->sin6_addr;
        *port = ntohs(in6->sin6_port);
        return true;
    }
    return false;
}

/* Whether this socket is an accepted connection to a watched port of which nng has said nothing. */
static bool is_stranger(const struct link_guard *g, int fd, uint64_t *cookie)
{
    struct sockaddr_storage local, remote;
    struct in6_addr address;
    uint16_t port;
    socklen_t len = sizeof local;
    int listening = 1;
    if (getsockname(fd, (struct sockaddr *)&local, &len) != 0 || !split(&local, &address, &port))
        return false;
    bool watched = false;
    for (size_t i = 0; i < g->port_count; i++)
        watched = watched || g->ports[i] == port;
    len = sizeof listening;
    if (!watched || getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &len) != 0 || listening)
        return false;
    len = sizeof remote;
    if (getpeername(fd, (struct sockaddr *)&remote, &len) != 0 || !split(&remote, &address, &port))
        return false;
    len = sizeof *cookie;
    return !g->is_known(g->arg, &address, port) && getsockopt(fd, SOL_SOCKET, SO_COOKIE, cookie, &len) == 0;
}

size_t guard_check(struct link_guard *g, uint64_t now_ns)
{
    DIR *dir = opendir("/proc/self/fd");
    if (dir == NULL)
        return 0; /* no /proc, or no descriptor left: another time */
    uint64_t patience_ns = g->stranger_count > GUARD_STRANGERS_MAX ? GUARD_CROWDED_NS : GUARD_SHY_NS;
    struct guard_stranger *found = NULL;
    size_t count = 0, capacity = 0, ended = 0;
    for (const struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        char *end;
        long number = strtol(entry->d_name, &end, 10);
        if (*end != '\0' || end == entry->d_name)
            continue;
        /* A copy, so that the number cannot change its meaning between the look and the shutdown. */
        int fd = fcntl((int)number, F_DUPFD_CLOEXEC, 0);
        struct guard_stranger one = {.since_ns = now_ns};
        if (fd >= 0 && is_stranger(g, fd, &one.cookie)) {
            const struct guard_stranger *old =
                g->stranger_count != 0 ? bsearch(&one, g->strangers, g->stranger_count, sizeof one, by_cookie)
                                       : NULL;
            if (old != NULL)
                one.since_ns = old->since_ns;
            if (now_ns - one.since_ns >= patience_ns && shutdown(fd, SHUT_RDWR) == 0)
                ended++;
            if (count == capacity)
                found = mem_realloc(found, capacity = capacity * 2 + 64, sizeof *found);
            found[count++] = one;
        }
        if (fd >= 0)
            close(fd);
    }
    closedir(dir);
    if (count != 0)
        qsort(found, count, sizeof *found, by_cookie);
    free(g->strangers);
    g->strangers = found;
    g->stranger_count = count;
    return ended;
}
