#include "agent/process/procstat.h"

#include "agent/telemetry/fields.h"
#include "common/mem.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/pidfd.h>
#include <unistd.h>

/* "PID (NAME) STATE PPID ...", proc(5). */
static bool parse_stat(const char *text, struct procstat *p)
{
    /* The name may hold blanks and brackets: its end is the last ')'. */
    const char *open_at = strchr(text, '(');
    const char *close_at = strrchr(text, ')');
    if (open_at == NULL || close_at == NULL || close_at < open_at || close_at[1] != ' ' ||
        close_at[2] == '\0')
        return false;
    uint64_t pid = 0;
    uint64_t ppid = 0;
    uint64_t user = 0;
    uint64_t sys = 0;
    uint64_t reaped_user = 0;
    uint64_t reaped_sys = 0;
    const char *head = text;
    const char *at = close_at + 3;
    if (!fields_take(&head, &pid) || !fields_take(&at, &ppid) || !fields_skip(&at, 9) ||
        !fields_take(&at, &user) || !fields_take(&at, &sys) || !fields_take(&at, &reaped_user) ||
        !fields_take(&at, &reaped_sys) || !fields_skip(&at, 4) || !fields_take(&at, &p->start_ticks) ||
        !fields_skip(&at, 1) || !fields_take(&at, &p->rss_pages))
        return false;
    if (pid == 0 || pid > INT32_MAX || ppid > INT32_MAX)
        return false;
    p->pid = (pid_t)pid;
    p->ppid = (pid_t)ppid;
    p->state = close_at[2];
    p->cpu_ticks = user + sys;
    p->reaped_cpu_ticks = reaped_user + reaped_sys;
    snprintf(p->name, sizeof p->name, "%.*s", (int)(close_at - open_at - 1), open_at + 1);
    return true;
}

enum err procstat_read(const char *proc_root, pid_t pid, struct procstat *out)
{
    char path[512];
    char text[1024];
    struct procstat p = {0};
    snprintf(path, sizeof path, "%s/%d/stat", proc_root, (int)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return err_from_errno(errno);
    ssize_t n = read(fd, text, sizeof text - 1);
    int read_errno = errno;
    close(fd);
    if (n < 0)
        return err_from_errno(read_errno);
    text[n] = '\0';
    if (!parse_stat(text, &p))
        return ERR_INVALID;
    *out = p;
    return ERR_OK;
}

static int by_pid(const void *a, const void *b)
{
    const struct procstat *x = a;
    const struct procstat *y = b;
    return x->pid < y->pid ? -1 : x->pid > y->pid;
}

enum err procstat_list_init(struct procstat_list *list, const char *proc_root, struct err_detail *d)
{
    size_t cap = 0;
    *list = (struct procstat_list){0};
    DIR *dir = opendir(proc_root);
    if (dir == NULL)
        return err_set(d, err_from_errno(errno), "cannot list processes: %s: %s", proc_root, strerror(errno));
    for (struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        char *end = NULL;
        long pid = strtol(entry->d_name, &end, 10);
        struct procstat p;
        if (*end != '\0' || pid <= 0 || pid > INT32_MAX)
            continue;
        if (procstat_read(proc_root, (pid_t)pid, &p) != ERR_OK)
            continue; /* gone meanwhile */
        if (list->count == cap) {
            cap = cap == 0 ? 256 : 2 * cap;
            list->items = mem_realloc(list->items, cap, sizeof *list->items);
        }
        list->items[list->count++] = p;
    }
    closedir(dir);
    if (list->count > 1)
        qsort(list->items, list->count, sizeof *list->items, by_pid);
    return ERR_OK;
}

void procstat_list_fini(struct procstat_list *list)
{
    free(list->items);
    *list = (struct procstat_list){0};
}

static struct procstat *find(struct procstat_list *list, pid_t pid)
{
    struct procstat key = {.pid = pid};
    if (list->count == 0)
        return NULL;
    return bsearch(&key, list->items, list->count, sizeof *list->items, by_pid);
}

size_t procstat_mark_descendants(struct procstat_list *list, pid_t root,
                                 bool (*skip)(const struct procstat *p))
{
    size_t marked = 0;
    size_t found = 0;
    for (size_t i = 0; i < list->count; i++)
        list->items[i].member = false;
    /* Children mostly have higher numbers than their parents, so that one pass finds nearly all. */
    do {
        found = 0;
        for (size_t i = 0; i < list->count; i++) {
            struct procstat *p = &list->items[i];
            if (p->member || p->pid == root)
                continue;
            const struct procstat *parent = find(list, p->ppid);
            bool below = p->ppid == root || (parent != NULL && parent->member);
            if (!below || (skip != NULL && skip(p)))
                continue;
            p->member = true;
            found++;
        }
        marked += found;
    } while (found > 0);
    return marked;
}

void procstat_kill(const struct procstat *p)
{
    struct procstat now = {0};
    int fd = pidfd_open(p->pid, 0);
    if (fd < 0)
        return;
    /* The descriptor is bound to whoever has the number now: ours only if it started when ours did. */
    if (procstat_read("/proc", p->pid, &now) == ERR_OK && now.start_ticks == p->start_ticks)
        (void)pidfd_send_signal(fd, SIGKILL, NULL, 0);
    close(fd);
}
