#include "proto/link/nng_faults/own_sockets.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

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

static bool describe(int fd, struct own_socket *s)
{
    struct sockaddr_storage local = {0}, remote = {0};
    struct in6_addr unused;
    socklen_t len = sizeof local, remote_len = sizeof remote;
    if (getsockname(fd, (struct sockaddr *)&local, &len) != 0 ||
        getpeername(fd, (struct sockaddr *)&remote, &remote_len) != 0)
        return false; /* no socket, or not connected */
    s->fd = fd;
    if (split(&local, &unused, &s->local_port) && split(&remote, &s->remote, &s->remote_port))
        return true;
    if (local.ss_family != AF_UNIX)
        return false;
    s->ipc = true;
    const struct sockaddr_un *un = (const struct sockaddr_un *)&remote;
    if (remote_len > offsetof(struct sockaddr_un, sun_path))
        memcpy(s->remote_path, un->sun_path, sizeof s->remote_path - 1);
    return true;
}

void own_sockets_visit(void (*visit)(void *arg, const struct own_socket *s), void *arg)
{
    DIR *dir = opendir("/proc/self/fd");
    if (dir == NULL)
        return; /* no /proc, or no descriptor left: another time */
    for (const struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        char *end;
        long number = strtol(entry->d_name, &end, 10);
        struct own_socket s = {.fd = -1};
        /* The number itself, not a copy: closing a copy of a database's descriptor would drop its locks. */
        if (*end == '\0' && end != entry->d_name && describe((int)number, &s))
            visit(arg, &s);
    }
    closedir(dir);
}
