#include "tests/support/process_world.h"

#include "agent/process/cgroup.h"
#include "agent/process/cull.h"
#include "agent/process/procstat.h"
#include "common/clock.h"
#include "common/mem.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/pidfd.h>
#include <unistd.h>

#include <cmocka.h>

const char *world_tools(void)
{
    static char dir[4096];
    ssize_t n = readlink("/proc/self/exe", dir, sizeof dir - 1);
    assert_true(n > 0);
    dir[n] = '\0';
    char *slash = strrchr(dir, '/');
    assert_non_null(slash);
    *slash = '\0';
    return dir;
}

/* ---- what the callbacks say ---------------------------------------------------------------------------- */

/* UV_RUN_ONCE runs due timers and then waits for more: what a timer told must keep it from that. */
static void told(struct world *w)
{
    uv_stop(&w->loop);
}

static void on_closed(void *arg)
{
    struct world *w = arg;
    w->closed = true;
    told(w);
}

static void close_if_wanted(struct world *w)
{
    if (w->close_in_callback && w->set != NULL)
        process_set_close(&w->set, on_closed, w);
}

static void on_exit_of(void *arg, uint32_t proc, const struct process_exit *exit_of)
{
    struct world *w = arg;
    w->procs[proc].exits++;
    w->procs[proc].exit = *exit_of;
    told(w);
    close_if_wanted(w);
}

static void on_line(void *arg, uint32_t proc, const char *line)
{
    struct world *w = arg;
    w->procs[proc].lines++;
    told(w);
    assert_int_equal(buf_printf(&w->procs[proc].text, "%s\n", line), ERR_OK);
    close_if_wanted(w);
}

static void on_lost(void *arg, const char *why)
{
    struct world *w = arg;
    assert_false(w->lost);
    w->lost = true;
    told(w);
    snprintf(w->why, sizeof w->why, "%s", why);
    close_if_wanted(w);
}

/* ---- life ---------------------------------------------------------------------------------------------- */

void world_init(struct world *w, const struct world_options *options)
{
    static unsigned count;
    struct err_detail d;
    *w = (struct world){0};
    scratch_init(&w->scratch);
    snprintf(w->mark, sizeof w->mark, "WORLD_MARK=%d.%u.%llu", (int)getpid(), count++,
             (unsigned long long)clock_now_ns());
    for (size_t i = 0; i < WORLD_PROCS; i++) {
        w->procs[i].world = w;
        buf_init(&w->procs[i].text, (size_t)64 * 1024 * 1024);
    }
    assert_int_equal(uv_loop_init(&w->loop), 0);
    struct process_set_options set = {
        .loop = &w->loop,
        .job = "job/1 of test",
        .log_dir = w->scratch.dir,
        .lease_ns = options->lease_ns != 0 ? options->lease_ns : 300 * NS_PER_S,
        .no_cgroup = options->no_cgroup,
        .handlers = {.arg = w, .on_exit = on_exit_of, .on_line = on_line, .on_lost = on_lost},
    };
    if (process_set_new(&set, &w->set, &d) != ERR_OK)
        fail_msg("%s", d.text);
}

/* Leaves of this very process. */
static size_t count_leaves(void)
{
    char parent[CGROUP_PATH_BYTES];
    char pid[32];
    size_t count = 0;
    if (cgroup_find_parent("/proc", parent, sizeof parent, NULL) != ERR_OK)
        return 0;
    snprintf(pid, sizeof pid, "-%d-", (int)getpid());
    DIR *dir = opendir(parent);
    assert_non_null(dir);
    for (struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir))
        count += strncmp(entry->d_name, "splitbench-", 11) == 0 && strstr(entry->d_name, pid) != NULL;
    closedir(dir);
    return count;
}

void world_close(struct world *w)
{
    if (w->set != NULL)
        process_set_close(&w->set, on_closed, w);
    world_wait(w, &w->closed);
}

void world_fini(struct world *w)
{
    world_close(w);
    assert_int_equal(world_survivors(w->mark), 0);
    assert_int_equal(count_leaves(), 0);
    assert_int_equal(uv_run(&w->loop, UV_RUN_DEFAULT), 0);
    assert_int_equal(uv_loop_close(&w->loop), 0);
    for (size_t i = 0; i < WORLD_PROCS; i++)
        buf_fini(&w->procs[i].text);
    scratch_fini(&w->scratch);
}

static void turn(struct world *w, uint64_t limit_ns)
{
    char alive[1024];
    if (!wait_turn(&w->loop, limit_ns))
        fail_msg("waited too long; below us live: %s", cull_describe(alive, sizeof alive));
}

void world_wait(struct world *w, const bool *flag)
{
    for (uint64_t limit_ns = wait_limit(); !*flag;)
        turn(w, limit_ns);
}

void world_wait_count(struct world *w, const unsigned *count, unsigned wanted)
{
    for (uint64_t limit_ns = wait_limit(); *count < wanted;)
        turn(w, limit_ns);
}

/* ---- starting ------------------------------------------------------------------------------------------ */

static void on_started(void *arg, enum err e, pid_t pid, uint64_t spawned_at_ns, const struct err_detail *d)
{
    struct world_proc *p = arg;
    assert_false(p->answered);
    p->answered = true;
    told(p->world);
    p->start_error = e;
    p->pid = pid;
    p->spawned_at_ns = spawned_at_ns;
    snprintf(p->start_text, sizeof p->start_text, "%s", d != NULL ? d->text : "");
}

enum err world_start(struct world *w, uint32_t proc, const char *words, const struct process_spec *spec,
                     struct err_detail *d)
{
    struct process_spec s = spec != NULL ? *spec : (struct process_spec){0};
    char *text = mem_strdup(words);
    char *tool = mem_printf("%s/tool_tree", world_tools());
    char *argv[32] = {tool};
    char *env[8] = {w->mark};
    size_t argc = 1;
    char *save = NULL;
    for (char *word = strtok_r(text, " ", &save); word != NULL && argc < 31;
         word = strtok_r(NULL, " ", &save))
        argv[argc++] = word;
    for (size_t i = 0; s.env != NULL && s.env[i] != NULL && i < 6; i++)
        env[i + 1] = s.env[i];
    s.proc = proc;
    s.env = env;
    s.label = s.label != NULL ? s.label : "tool/tree";
    s.argv = s.argv != NULL ? s.argv : argv;
    s.dir = s.dir != NULL ? s.dir : w->scratch.dir;
    s.grace_ns = s.grace_ns != 0 ? s.grace_ns : 50 * NS_PER_MS;
    w->procs[proc].answered = false;
    enum err e = process_start(w->set, &s, on_started, &w->procs[proc], d);
    free(text);
    free(tool);
    return e;
}

void world_run(struct world *w, uint32_t proc, const char *words, const struct process_spec *spec)
{
    struct err_detail d;
    if (world_start(w, proc, words, spec, &d) != ERR_OK)
        fail_msg("%s", d.text);
    world_wait(w, &w->procs[proc].answered);
    if (w->procs[proc].start_error != ERR_OK)
        fail_msg("%s", w->procs[proc].start_text);
    assert_true(w->procs[proc].pid > 0);
}

/* ---- survivors ----------------------------------------------------------------------------------------- */

bool world_carries(pid_t pid, const char *mark)
{
    char path[64];
    char text[65536];
    size_t used = 0;
    ssize_t n = 0;
    snprintf(path, sizeof path, "/proc/%d/environ", (int)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    while (used < sizeof text && (n = read(fd, text + used, sizeof text - used)) > 0)
        used += (size_t)n;
    close(fd);
    return memmem(text, used, mark, strlen(mark) + 1) != NULL;
}

static size_t find_marked(const char *mark, pid_t *first)
{
    struct procstat_list all;
    size_t count = 0;
    assert_int_equal(procstat_list_init(&all, "/proc", NULL), ERR_OK);
    for (size_t i = 0; i < all.count; i++) {
        const struct procstat *p = &all.items[i];
        if (p->state == 'Z' || p->state == 'X' || !world_carries(p->pid, mark))
            continue;
        if (count++ == 0)
            *first = p->pid;
    }
    procstat_list_fini(&all);
    return count;
}

size_t world_survivors(const char *mark)
{
    pid_t first = 0;
    return find_marked(mark, &first);
}

void world_wait_nobody(const char *mark)
{
    pid_t first = 0;
    while (find_marked(mark, &first) > 0) {
        struct pollfd end = {.fd = pidfd_open(first, 0), .events = POLLIN};
        if (end.fd < 0)
            continue;
        int rc = poll(&end, 1, (int)(WAIT_NS / NS_PER_MS));
        close(end.fd);
        assert_int_equal(rc, 1);
    }
}
