#include "controller/cli/listener.h"

#include "common/file.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define IPC "ipc://"

/* The kernel connects as long as the socket is listened at, whether its owner runs or not. */
static bool connect_to(const char *path, int *out)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof address.sun_path)
        return false;
    memcpy(address.sun_path, path, strlen(path) + 1);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return false;
    if (connect(fd, (const struct sockaddr *)(const void *)&address, sizeof address) != 0) {
        (void)close(fd);
        return false;
    }
    *out = fd;
    return true;
}

/* proc(5): the state is the letter behind the name, which stands in brackets and may hold any byte. */
static bool is_stopped(pid_t pid)
{
    char path[64];
    char line[512];
    snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid);
    if (!file_read_line(path, line, sizeof line))
        return false;
    const char *end = strrchr(line, ')');
    return end != NULL && (strncmp(end, ") T", 3) == 0 || strncmp(end, ") t", 3) == 0);
}

bool listener_find(const char *address, struct listener *out)
{
    struct ucred owner = {0};
    socklen_t len = sizeof owner;
    int fd = -1;
    if (strncmp(address, IPC, strlen(IPC)) != 0 || !connect_to(address + strlen(IPC), &fd))
        return false;
    *out = (struct listener){0};
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &owner, &len) == 0 && owner.pid > 0)
        *out = (struct listener){.pid = owner.pid, .stopped = is_stopped(owner.pid)};
    (void)close(fd);
    return true;
}
