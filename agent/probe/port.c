#include "agent/probe/port.h"

#include "common/file.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define TCP_LISTEN_HEX "0A" /* state of a listener in /proc/net/tcp */

/* Inode of a socket that has the port in one of the kernel's tables, a listener's if there is one; 0 when
 * there is none. Each line reads "sl local_address:PORT remote:PORT st tx:rx tr:when retransmits uid timeout
 * inode". Takes 100 ms where tens of thousands of connections have just ended. */
static uint64_t find_socket(const char *table, uint16_t port)
{
    FILE *file = fopen(table, "re");
    char line[512];
    uint64_t inode = 0;
    bool listens = false;
    while (file != NULL && !listens && fgets(line, sizeof line, file) != NULL) {
        char local[64];
        char state[8];
        char number[24];
        if (sscanf(line, "%*s %63s %*s %7s %*s %*s %*s %*s %*s %23s", local, state, number) != 3)
            continue;
        const char *colon = strrchr(local, ':');
        uint64_t found = strtoull(number, NULL, 10); /* 0 in the table's head and where nobody has it open */
        if (colon == NULL || found == 0 || strtoul(colon + 1, NULL, 16) != port)
            continue;
        listens = strcmp(state, TCP_LISTEN_HEX) == 0;
        inode = found;
    }
    if (file != NULL)
        fclose(file);
    return inode;
}

/* Whether the process has the socket `link` ("socket:[N]") open. */
static bool holds_socket(const char *pid, const char *link)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%.20s/fd", pid);
    DIR *fds = opendir(path);
    bool holds = false;
    struct dirent *entry;
    while (fds != NULL && !holds && (entry = readdir(fds)) != NULL) {
        char target[64];
        ssize_t n = readlinkat(dirfd(fds), entry->d_name, target, sizeof target - 1);
        if (n <= 0)
            continue;
        target[n] = '\0';
        holds = strcmp(target, link) == 0;
    }
    if (fds != NULL)
        closedir(fds);
    return holds;
}

/* "nginx (pid 71)" into `out`; false when no process we may look at has the socket. */
static bool name_holder(uint64_t inode, char *out, size_t size)
{
    char link[64];
    snprintf(link, sizeof link, "socket:[%" PRIu64 "]", inode);
    DIR *proc = opendir("/proc");
    bool found = false;
    struct dirent *entry;
    while (proc != NULL && !found && (entry = readdir(proc)) != NULL) {
        if (!isdigit((unsigned char)entry->d_name[0]) || !holds_socket(entry->d_name, link))
            continue;
        found = true;
        char path[64];
        char name[64];
        snprintf(path, sizeof path, "/proc/%.20s/comm", entry->d_name);
        bool named = file_read_line(path, name, sizeof name);
        snprintf(out, size, "%s (pid %.20s)", named ? name : "a program", entry->d_name);
    }
    if (proc != NULL)
        closedir(proc);
    return found;
}

/* errno of an attempt to have the port on every address of a family, 0 when it can be had. */
static int try_bind(int family, uint16_t port)
{
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } at = {0};
    int one = 1;
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return errno;
    if (family == AF_INET)
        at.v4 = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(port)};
    else
        at.v6 = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_port = htons(port)};
    /* Connections that are over must not count, and on IPv6 the other family neither. */
    bool bound = setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) == 0 &&
                 (family == AF_INET || setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof one) == 0) &&
                 bind(fd, &at.any, family == AF_INET ? sizeof at.v4 : sizeof at.v6) == 0;
    int errnum = bound ? 0 : errno;
    close(fd);
    return errnum;
}

enum err port_check_free(uint16_t port, struct err_detail *d)
{
    int v4 = try_bind(AF_INET, port);
    int v6 = try_bind(AF_INET6, port);
    bool in_use = v4 == EADDRINUSE || v6 == EADDRINUSE;
    /* A port below 1024 may not be ours to try, but the server's to have. */
    if (!in_use && v4 != EACCES && v6 != EACCES)
        return ERR_OK;
    uint64_t inode = find_socket("/proc/net/tcp", port);
    if (inode == 0)
        inode = find_socket("/proc/net/tcp6", port);
    if (inode == 0 && !in_use)
        return ERR_OK;
    char holder[128];
    if (inode == 0)
        snprintf(holder, sizeof holder, "connections that have just ended, or a socket that is only bound");
    else if (!name_holder(inode, holder, sizeof holder))
        snprintf(holder, sizeof holder, "a process of another user");
    return err_set(d, ERR_BUSY, "port %u is in use by %s: stop it, or choose another port", port, holder);
}
