#include "agent/process/cgroup.h"

#include "agent/process/procstat.h"
#include "agent/telemetry/fields.h"
#include "common/clock.h"
#include "common/file.h"
#include "common/mem.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#define LEAF_PREFIX "splitbench-"
/* mountinfo of a container host has thousands of lines; members of a leaf are at most pid_max (4 million). */
#define FILE_BYTES_MAX 33554432u /* 32 MiB */
/* Groups a member may have nested in its leaf; deeper ones are left to the kernel's own limit and to root. */
#define NESTING_MAX 16
/* Killed members of a dead agent's leaf have this long to go; the next set tries again. */
#define STALE_WAIT_MS 500

static enum err read_file(const char *path, char **out, struct err_detail *d)
{
    size_t len = 0;
    return file_read(path, FILE_ANY, FILE_BYTES_MAX, out, &len, d);
}

static enum err write_file(const char *dir, const char *name, const char *text)
{
    char path[CGROUP_PATH_BYTES + 64];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return err_from_errno(errno);
    enum err e = write(fd, text, strlen(text)) < 0 ? err_from_errno(errno) : ERR_OK;
    close(fd);
    return e;
}

/* ---- where leaves go ------------------------------------------------------------------------------ */

static bool is_octal(char c)
{
    return c >= '0' && c <= '7';
}

/* In mountinfo, blanks and backslashes of a path are written as \ooo. */
static void unescape(char *text)
{
    char *to = text;
    for (char *from = text; *from != '\0'; to++) {
        if (from[0] == '\\' && is_octal(from[1]) && is_octal(from[2]) && is_octal(from[3])) {
            *to = (char)((from[1] - '0') * 64 + (from[2] - '0') * 8 + (from[3] - '0'));
            from += 4;
        } else {
            *to = *from++;
        }
    }
    *to = '\0';
}

/* One line of mountinfo, proc(5): is it a cgroup2 mount, what part of the hierarchy, and where. */
static bool parse_mount(char *line, char **root, char **point)
{
    char *rest = strstr(line, " - ");
    char *save = NULL;
    if (rest == NULL || strncmp(rest + 3, "cgroup2 ", 8) != 0)
        return false;
    *rest = '\0';
    char *field = strtok_r(line, " ", &save);
    for (int i = 0; i < 3 && field != NULL; i++)
        field = strtok_r(NULL, " ", &save);
    *root = field;
    *point = field != NULL ? strtok_r(NULL, " ", &save) : NULL;
    if (*root == NULL || *point == NULL)
        return false;
    unescape(*root);
    unescape(*point);
    return true;
}

/* The part of `own` below the mounted `root`, or NULL when it lies elsewhere. */
static const char *below(const char *own, const char *root)
{
    size_t len = strcmp(root, "/") == 0 ? 0 : strlen(root);
    if (strncmp(own, root, len) != 0 || (own[len] != '/' && own[len] != '\0'))
        return NULL;
    return own + len;
}

enum err cgroup_find_parent(const char *proc_root, char *out, size_t size, struct err_detail *d)
{
    char path[512];
    char *groups = NULL;
    char *mounts = NULL;
    char *save = NULL;
    const char *own = NULL;
    snprintf(path, sizeof path, "%s/self/cgroup", proc_root);
    enum err e = read_file(path, &groups, d);
    snprintf(path, sizeof path, "%s/self/mountinfo", proc_root);
    if (e == ERR_OK)
        e = read_file(path, &mounts, d);
    if (e != ERR_OK)
        goto out;
    for (char *line = strtok_r(groups, "\n", &save); line != NULL; line = strtok_r(NULL, "\n", &save)) {
        if (strncmp(line, "0::/", 4) == 0)
            own = line + 3;
    }
    e = err_set(d, ERR_UNSUPPORTED, "no cgroup2 mount shows the cgroup of this process (%s)",
                own != NULL ? own : "not in a v2 hierarchy");
    if (own == NULL || strstr(own, "/..") != NULL)
        goto out;
    for (char *line = strtok_r(mounts, "\n", &save); line != NULL; line = strtok_r(NULL, "\n", &save)) {
        char *root = NULL;
        char *point = NULL;
        const char *rest = parse_mount(line, &root, &point) ? below(own, root) : NULL;
        if (rest == NULL)
            continue;
        int n = snprintf(out, size, "%s%s", point, strcmp(rest, "/") == 0 ? "" : rest);
        if (n > 0 && (size_t)n < size)
            e = ERR_OK;
        break;
    }
out:
    free(groups);
    free(mounts);
    return e;
}

/* ---- leaves --------------------------------------------------------------------------------------- */

/* A process is known by its number and start; a number only means something in its pid namespace. */
static uint64_t pid_namespace(void)
{
    struct stat st;
    return stat("/proc/self/ns/pid", &st) == 0 ? (uint64_t)st.st_ino : 0;
}

/* Migration is not tried here: children are born inside (CLONE_INTO_CGROUP), which wants the same rights. */
static enum err check_usable(const char *parent, const char *leaf, struct err_detail *d)
{
    char path[CGROUP_PATH_BYTES + 64];
    char *type = NULL;
    snprintf(path, sizeof path, "%s/cgroup.procs", parent);
    if (access(path, W_OK) != 0)
        return err_set(d, ERR_UNSUPPORTED, "%s is not writable", path);
    snprintf(path, sizeof path, "%s/cgroup.procs", leaf);
    if (access(path, W_OK) != 0)
        return err_set(d, ERR_UNSUPPORTED, "%s is not writable", path);
    snprintf(path, sizeof path, "%s/cgroup.type", leaf);
    enum err e = read_file(path, &type, d);
    if (e == ERR_OK && strcmp(type, "domain\n") != 0)
        e = err_set(d, ERR_UNSUPPORTED, "%s: a group of this type takes no processes", path);
    free(type);
    return e == ERR_OK ? ERR_OK : ERR_UNSUPPORTED;
}

enum err cgroup_leaf_make(const char *parent, const char *job, uint32_t number, char *out, size_t size,
                          struct err_detail *d)
{
    struct procstat self;
    char name[CGROUP_JOB_BYTES_MAX + 1];
    snprintf(name, sizeof name, "%s", job);
    for (char *p = name; *p != '\0'; p++) {
        if (!isalnum((unsigned char)*p))
            *p = '_';
    }
    if (procstat_read("/proc", getpid(), &self) != ERR_OK)
        return err_set(d, ERR_UNSUPPORTED, "/proc does not show this process");
    int n = snprintf(out, size, "%s/" LEAF_PREFIX "%" PRIu64 "-%d-%" PRIu64 "-%s-%" PRIu32, parent,
                     pid_namespace(), (int)getpid(), self.start_ticks, name, number);
    if (n < 0 || (size_t)n >= size)
        return err_set(d, ERR_UNSUPPORTED, "the path of the cgroup is too long: %s", parent);
    if (mkdir(out, 0755) != 0 && errno != EEXIST)
        return err_set(d, ERR_UNSUPPORTED, "cannot make cgroup %s: %s", out, strerror(errno));
    enum err e = check_usable(parent, out, d);
    if (e != ERR_OK)
        (void)rmdir(out);
    return e;
}

/* Where there is no cgroup.kill (Linux before its commit 661ee628, in 5.14): freeze, so that nobody forks,
 * then kill one by one. */
static void kill_members(const char *leaf)
{
    struct cgroup_counters *c = NULL;
    pid_t *pids = NULL;
    size_t count = 0;
    if (cgroup_counters_new(leaf, &c, NULL) != ERR_OK)
        return;
    (void)write_file(leaf, "cgroup.freeze", "1");
    if (cgroup_counters_members(c, &pids, &count, NULL) == ERR_OK) {
        for (size_t i = 0; i < count; i++)
            (void)kill(pids[i], SIGKILL);
    }
    (void)write_file(leaf, "cgroup.freeze", "0");
    free(pids);
    cgroup_counters_free(c);
}

void cgroup_leaf_kill(const char *leaf)
{
    if (write_file(leaf, "cgroup.kill", "1") != ERR_OK)
        kill_members(leaf);
}

bool cgroup_leaf_populated(const char *leaf)
{
    char path[CGROUP_PATH_BYTES + 64];
    char *text = NULL;
    snprintf(path, sizeof path, "%s/cgroup.events", leaf);
    bool populated = read_file(path, &text, NULL) == ERR_OK && strstr(text, "populated 1") != NULL;
    free(text);
    return populated;
}

void cgroup_leaf_wait_empty(const char *leaf, int timeout_ms)
{
    char path[CGROUP_PATH_BYTES + 64];
    char seen[256];
    uint64_t deadline_ns = clock_now_ns() + (uint64_t)timeout_ms * NS_PER_MS;
    snprintf(path, sizeof path, "%s/cgroup.events", leaf);
    struct pollfd poller = {.fd = open(path, O_RDONLY | O_CLOEXEC), .events = POLLPRI};
    if (poller.fd < 0)
        return;
    for (;;) {
        ssize_t n = pread(poller.fd, seen, sizeof seen - 1, 0);
        seen[n > 0 ? n : 0] = '\0';
        uint64_t now_ns = clock_now_ns();
        if (strstr(seen, "populated 1") == NULL || now_ns >= deadline_ns)
            break;
        (void)poll(&poller, 1, (int)((deadline_ns - now_ns) / NS_PER_MS) + 1);
    }
    close(poller.fd);
}

static void remove_nested(const char *dir, int depth)
{
    DIR *d = depth < NESTING_MAX ? opendir(dir) : NULL;
    if (d == NULL)
        return;
    for (struct dirent *entry = readdir(d); entry != NULL; entry = readdir(d)) {
        if (entry->d_type != DT_DIR || strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        char *path = mem_printf("%s/%s", dir, entry->d_name);
        remove_nested(path, depth + 1);
        (void)rmdir(path);
        free(path);
    }
    closedir(d);
}

enum err cgroup_leaf_remove(const char *leaf, struct err_detail *d)
{
    if (rmdir(leaf) == 0 || errno == ENOENT)
        return ERR_OK;
    remove_nested(leaf, 0);
    if (rmdir(leaf) == 0 || errno == ENOENT)
        return ERR_OK;
    return err_set(d, err_from_errno(errno), "cannot remove cgroup %s: %s", leaf, strerror(errno));
}

/* One of the numbers in a leaf's name, each with a '-' behind it. */
static bool take_number(const char **at, uint64_t *out)
{
    char *end = NULL;
    errno = 0;
    *out = strtoull(*at, &end, 10);
    if (errno != 0 || end == *at || *end != '-')
        return false;
    *at = end + 1;
    return true;
}

static bool is_stale(const char *name)
{
    uint64_t space = 0;
    uint64_t pid = 0;
    uint64_t start_ticks = 0;
    struct procstat p;
    if (strncmp(name, LEAF_PREFIX, strlen(LEAF_PREFIX)) != 0)
        return false;
    const char *at = name + strlen(LEAF_PREFIX);
    if (!take_number(&at, &space) || !take_number(&at, &pid) || !take_number(&at, &start_ticks) ||
        pid > INT32_MAX)
        return false;
    if (space != pid_namespace())
        return false; /* from here nobody can tell whether that process lives */
    return procstat_read("/proc", (pid_t)pid, &p) != ERR_OK || p.start_ticks != start_ticks;
}

size_t cgroup_clean_stale(const char *parent)
{
    size_t found = 0;
    DIR *dir = opendir(parent);
    if (dir == NULL)
        return 0;
    for (struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        if (!is_stale(entry->d_name))
            continue;
        char *leaf = mem_printf("%s/%s", parent, entry->d_name);
        cgroup_leaf_kill(leaf);
        cgroup_leaf_wait_empty(leaf, STALE_WAIT_MS);
        if (cgroup_leaf_remove(leaf, NULL) == ERR_OK)
            found++;
        free(leaf);
    }
    closedir(dir);
    return found;
}

/* ---- counters ------------------------------------------------------------------------------------- */

struct cgroup_counters {
    int cpu_fd;
    int procs_fd;
    char *text; /* read last */
    size_t len;
};

enum err cgroup_counters_new(const char *leaf, struct cgroup_counters **out, struct err_detail *d)
{
    char path[CGROUP_PATH_BYTES + 64];
    struct cgroup_counters *c = mem_zalloc(1, sizeof *c);
    snprintf(path, sizeof path, "%s/cgroup.procs", leaf);
    c->procs_fd = open(path, O_RDONLY | O_CLOEXEC);
    snprintf(path, sizeof path, "%s/cpu.stat", leaf);
    c->cpu_fd = open(path, O_RDONLY | O_CLOEXEC);
    if (c->procs_fd < 0 || c->cpu_fd < 0) {
        enum err e = err_set(d, err_from_errno(errno), "cannot read cgroup %s: %s", leaf, strerror(errno));
        must(e != ERR_OK);
        cgroup_counters_free(c);
        return e;
    }
    *out = c;
    return ERR_OK;
}

void cgroup_counters_free(struct cgroup_counters *c)
{
    if (c == NULL)
        return;
    if (c->cpu_fd >= 0)
        close(c->cpu_fd);
    if (c->procs_fd >= 0)
        close(c->procs_fd);
    free(c->text);
    free(c);
}

static enum err refill(struct cgroup_counters *c, int fd, struct err_detail *d)
{
    free(c->text);
    c->text = NULL;
    enum err e = ERR_IO;
    if (lseek(fd, 0, SEEK_SET) == 0)
        e = file_read_fd(fd, FILE_BYTES_MAX, &c->text, &c->len);
    if (e != ERR_OK)
        err_set(d, e, "cannot read the counters of a cgroup: %s", err_text(e));
    return e;
}

enum err cgroup_counters_cpu(struct cgroup_counters *c, uint64_t *out_ns, struct err_detail *d)
{
    uint64_t usage_us = 0;
    enum err e = refill(c, c->cpu_fd, d);
    if (e != ERR_OK)
        return e;
    const char *at = c->text + strlen("usage_usec ");
    if (strncmp(c->text, "usage_usec ", strlen("usage_usec ")) != 0 || !fields_take(&at, &usage_us))
        return err_set(d, ERR_INVALID, "cpu.stat of a cgroup does not begin with usage_usec");
    *out_ns = usage_us * NS_PER_US;
    return ERR_OK;
}

enum err cgroup_counters_members(struct cgroup_counters *c, pid_t **out, size_t *count, struct err_detail *d)
{
    enum err e = refill(c, c->procs_fd, d);
    if (e != ERR_OK)
        return e;
    size_t lines = 0;
    for (size_t i = 0; i < c->len; i++)
        lines += c->text[i] == '\n';
    pid_t *pids = mem_zalloc(lines + 1, sizeof *pids);
    size_t used = 0;
    char *at = c->text;
    while (used < lines) {
        char *end = NULL;
        long pid = strtol(at, &end, 10);
        if (end == at || *end != '\n')
            break;
        if (pid > 0) /* 0 is a member another pid namespace hides */
            pids[used++] = (pid_t)pid;
        at = end + 1;
        lines -= pid <= 0;
    }
    *out = pids;
    *count = used;
    return ERR_OK;
}
