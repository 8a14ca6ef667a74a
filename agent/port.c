#include "agent/port.h"

#include "common/parse.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TCP_LISTEN_HEX "0A" /* state of a listener in /proc/net/tcp */

/* Inode of a listener's socket in one of the kernel's tables, 0 when there is none. Each line reads
 * "sl local_address:PORT remote:PORT st tx:rx tr:when retransmits uid timeout inode". */
static uint64_t find_listener(const char *table, uint16_t port)
{
    FILE *file = fopen(table, "re");
    char line[512];
    uint64_t inode = 0;
    while (file != NULL && inode == 0 && fgets(line, sizeof line, file) != NULL) {
        char local[64];
        char state[8];
        uint64_t found = 0;
        if (sscanf(line, "%*s %63s %*s %7s %*s %*s %*s %*s %*s %" SCNu64, local, state, &found) != 3)
            continue;
        const char *colon = strrchr(local, ':');
        if (strcmp(state, TCP_LISTEN_HEX) == 0 && colon != NULL && strtoul(colon + 1, NULL, 16) == port)
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
        char name[64] = "a program";
        snprintf(path, sizeof path, "/proc/%.20s/comm", entry->d_name);
        FILE *comm = fopen(path, "re");
        if (comm != NULL && fgets(name, sizeof name, comm) != NULL)
            name[strcspn(name, "\n")] = '\0';
        if (comm != NULL)
            fclose(comm);
        snprintf(out, size, "%s (pid %.20s)", name, entry->d_name);
    }
    if (proc != NULL)
        closedir(proc);
    return found;
}

enum err port_check_free(uint16_t port, struct err_detail *d)
{
    uint64_t inode = find_listener("/proc/net/tcp", port);
    if (inode == 0)
        inode = find_listener("/proc/net/tcp6", port);
    if (inode == 0)
        return ERR_OK;
    char holder[128];
    if (!name_holder(inode, holder, sizeof holder))
        snprintf(holder, sizeof holder, "a process of another user");
    return err_set(d, ERR_BUSY, "port %u is in use by %s: stop it, or choose another port", port, holder);
}
