#include "agent/process/cull.h"

#include "agent/process/supervisor.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

void cull_children(void)
{
    char text[4096];
    int fd = open("/proc/thread-self/children", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, sizeof text - 1) : 0;
    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = '\0';
    char *at = text;
    for (;;) {
        char *end = NULL;
        long pid = strtol(at, &end, 10);
        if (end == at || *end != ' ') /* the last number may be cut */
            break;
        (void)kill((pid_t)pid, SIGKILL); /* a child keeps its number until we wait for it */
        at = end;
    }
}

static bool is_dead(const struct procstat *p)
{
    return p->state == 'Z' || p->state == 'X';
}

size_t cull_descendants(bool (*skip)(const struct procstat *p))
{
    struct procstat_list all;
    size_t alive = 0;
    if (procstat_list_init(&all, "/proc", NULL) == ERR_OK &&
        procstat_mark_descendants(&all, getpid(), skip) > 0) {
        for (size_t i = 0; i < all.count; i++) {
            if (!all.items[i].member || is_dead(&all.items[i]))
                continue;
            procstat_kill(&all.items[i]);
            alive++;
        }
    }
    procstat_list_fini(&all);
    return alive;
}

/* A supervisor runs our own file; nothing that a job starts does. A dead one has no file any more, only its
 * name: whoever started it waits for it. */
static bool is_supervisor(const struct procstat *p)
{
    if (is_dead(p))
        return strcmp(p->name, SUPERVISOR_NAME) == 0;
    char path[64];
    struct stat ours;
    struct stat theirs;
    snprintf(path, sizeof path, "/proc/%d/exe", (int)p->pid);
    return stat("/proc/self/exe", &ours) == 0 && stat(path, &theirs) == 0 && ours.st_dev == theirs.st_dev &&
           ours.st_ino == theirs.st_ino;
}

size_t cull_strays(void)
{
    struct procstat_list all;
    size_t found = 0;
    if (procstat_list_init(&all, "/proc", NULL) == ERR_OK &&
        procstat_mark_descendants(&all, getpid(), is_supervisor) > 0) {
        for (size_t i = 0; i < all.count; i++) {
            const struct procstat *p = &all.items[i];
            if (!p->member)
                continue;
            procstat_kill(p);
            if (p->ppid == getpid())
                (void)waitpid(p->pid, NULL, WNOHANG);
            found++;
        }
    }
    procstat_list_fini(&all);
    return found;
}

const char *cull_describe(char *out, size_t size)
{
    struct procstat_list all;
    size_t used = 0;
    out[0] = '\0';
    if (procstat_list_init(&all, "/proc", NULL) == ERR_OK) {
        (void)procstat_mark_descendants(&all, getpid(), NULL);
        for (size_t i = 0; i < all.count && used < size; i++) {
            const struct procstat *p = &all.items[i];
            if (p->member)
                used += (size_t)snprintf(out + used, size - used, "%s%d (%s, state %c)", used > 0 ? " " : "",
                                         (int)p->pid, p->name, p->state);
        }
    }
    procstat_list_fini(&all);
    return out;
}
