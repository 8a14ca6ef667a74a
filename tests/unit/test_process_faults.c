/* Process sets when things go wrong: trees that flee, storms, lapsed leases, killed and stopped supervisors
 * and agents. Afterwards nobody lives, wherever it went. */
#include "agent/process/cgroup.h"
#include "agent/process/procstat.h"
#include "agent/process/supervisor.h"
#include "common/clock.h"
#include "common/mem.h"
#include "tests/support/process_world.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* A server at its worst: deaf, with children, and twice out of its session. */
#define STUBBORN           "ignore daemon children=3 daemon ready wait"
#define STUBBORN_PROCESSES 6

static const struct world_options with_cgroup = {.no_cgroup = false};
static const struct world_options without_cgroup = {.no_cgroup = true};
static const struct process_spec with_lines = {.lines = true};

static int setup(void **state)
{
    struct world *w = mem_zalloc(1, sizeof *w);
    world_init(w, *state);
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;
    world_fini(w);
    free(w);
    return 0;
}

static void run_stubborn(struct world *w, uint32_t proc)
{
    world_run(w, proc, STUBBORN, &with_lines);
    world_wait_count(w, &w->procs[proc].lines, 1);
}

static pid_t supervisor_of(pid_t pid)
{
    struct procstat p;
    assert_int_equal(procstat_read("/proc", pid, &p), ERR_OK);
    pid_t supervisor = p.ppid;
    assert_int_equal(procstat_read("/proc", supervisor, &p), ERR_OK);
    assert_string_equal(p.name, SUPERVISOR_NAME);
    return supervisor;
}

/* ---- trees that flee ------------------------------------------------------------------------------ */

static void test_rolling_storm(void **state)
{
    struct world *w = *state;
    world_run(w, 1, "storm=20000 storm=20000 ready wait", &with_lines);
    world_wait_count(w, &w->procs[1].lines, 1);
    process_stop(w->set, 1);
    world_wait_count(w, &w->procs[1].exits, 1);
    assert_int_equal(world_survivors(w->mark), 0);
}

static void test_bomb(void **state)
{
    struct world *w = *state;
    world_run(w, 1, "bomb=8 ignore ready wait", &with_lines);
    world_wait_count(w, &w->procs[1].lines, 1);
    process_stop(w->set, 1);
    world_wait_count(w, &w->procs[1].exits, 1);
    assert_int_equal(world_survivors(w->mark), 0);
}

static void test_storm_then_exit(void **state)
{
    struct world *w = *state;
    world_run(w, 1, "storm=5000 bomb=6 daemon exit=1", NULL);
    world_wait_count(w, &w->procs[1].exits, 1);
    assert_int_equal(w->procs[1].exit.status, 1);
    assert_int_equal(world_survivors(w->mark), 0);
}

static void test_leaves_its_cgroup(void **state)
{
    struct world *w = *state;
    char parent[CGROUP_PATH_BYTES];
    if (cgroup_find_parent("/proc", parent, sizeof parent, NULL) != ERR_OK || access(parent, W_OK) != 0) {
        print_message("skipped, no cgroup to use here\n");
        skip();
    }
    char *words = mem_printf("daemon group=%s/cgroup.procs " STUBBORN, parent);
    world_run(w, 1, words, &with_lines);
    world_wait_count(w, &w->procs[1].lines, 1);
    process_stop(w->set, 1);
    world_wait_count(w, &w->procs[1].exits, 1);
    assert_int_equal(world_survivors(w->mark), 0);
    free(words);
}

static void test_flood_while_killed(void **state)
{
    struct world *w = *state;
    world_run(w, 1, "ignore floodlines=1 flood=100000000", &with_lines);
    world_wait_count(w, &w->procs[1].lines, 1);
    process_stop(w->set, 1);
    world_wait_count(w, &w->procs[1].exits, 1);
    assert_int_equal(w->procs[1].exit.signal, SIGKILL);
}

/* ---- supervisors ---------------------------------------------------------------------------------- */

static void test_supervisor_killed(void **state)
{
    struct world *w = *state;
    struct process_usage u;
    struct err_detail d;
    run_stubborn(w, 1);
    run_stubborn(w, 2);
    assert_int_equal(world_survivors(w->mark), 2 * STUBBORN_PROCESSES);
    assert_int_equal(kill(supervisor_of(w->procs[1].pid), SIGKILL), 0);
    world_wait(w, &w->lost);
    assert_int_equal(world_survivors(w->mark), 0);
    assert_non_null(strstr(w->why, "'tool/tree': the supervisor "));
    assert_non_null(strstr(w->why, "was killed by signal 9"));
    assert_int_equal(w->procs[1].exits, 0);
    assert_int_equal(w->procs[2].exits, 1);
    assert_false(w->procs[2].exit.asked);
    assert_int_equal(process_usage(w->set, 1, &u), ERR_OK);
    assert_false(u.alive);
    assert_int_equal(world_start(w, 3, "wait", NULL, &d), ERR_CLOSED);
    process_set_renew(w->set, NS_PER_S);
    process_stop(w->set, 1);
}

static void test_supervisor_killed_and_closed(void **state)
{
    struct world *w = *state;
    run_stubborn(w, 1);
    assert_int_equal(kill(supervisor_of(w->procs[1].pid), SIGKILL), 0);
    world_close(w);
    assert_int_equal(world_survivors(w->mark), 0);
    assert_false(w->lost);
}

static void test_closed_when_lost(void **state)
{
    struct world *w = *state;
    run_stubborn(w, 1);
    w->close_in_callback = true;
    assert_int_equal(kill(supervisor_of(w->procs[1].pid), SIGKILL), 0);
    world_wait(w, &w->closed);
    assert_true(w->lost);
}

/* Our only child is the supervisor that was just started. */
static pid_t only_child(void)
{
    struct procstat_list list;
    pid_t found = 0;
    assert_int_equal(procstat_list_init(&list, "/proc", NULL), ERR_OK);
    for (size_t i = 0; i < list.count; i++) {
        if (list.items[i].ppid == getpid() && list.items[i].state != 'Z') {
            assert_int_equal(found, 0);
            found = list.items[i].pid;
        }
    }
    procstat_list_fini(&list);
    assert_true(found > 0);
    return found;
}

static void test_supervisor_killed_at_once(void **state)
{
    struct world *w = *state;
    struct err_detail d;
    assert_int_equal(world_start(w, 1, STUBBORN, NULL, &d), ERR_OK);
    assert_int_equal(kill(only_child(), SIGKILL), 0);
    world_wait(w, &w->lost);
    assert_true(w->procs[1].answered);
    assert_int_equal(world_survivors(w->mark), 0);
}

static void test_supervisor_stopped(void **state)
{
    struct world *w = *state;
    run_stubborn(w, 1);
    run_stubborn(w, 2);
    assert_int_equal(kill(supervisor_of(w->procs[1].pid), SIGSTOP), 0);
    assert_int_equal(kill(supervisor_of(w->procs[2].pid), SIGSTOP), 0);
    process_stop(w->set, 1);
    world_wait_count(w, &w->procs[1].exits, 1);
    world_close(w);
}

static void test_supervisor_ignores_signals(void **state)
{
    struct world *w = *state;
    run_stubborn(w, 1);
    pid_t supervisor = supervisor_of(w->procs[1].pid);
    assert_int_equal(kill(supervisor, SIGTERM), 0);
    assert_int_equal(kill(supervisor, SIGINT), 0);
    assert_int_equal(kill(supervisor, SIGHUP), 0);
    process_stop(w->set, 1);
    world_wait_count(w, &w->procs[1].exits, 1);
    assert_false(w->lost);
}

static void test_children_ignored(void **state)
{
    (void)state;
    struct world *w = mem_zalloc(1, sizeof *w);
    signal(SIGCHLD, SIG_IGN);
    world_init(w, &with_cgroup);
    world_run(w, 1, "exit=7", NULL);
    world_wait_count(w, &w->procs[1].exits, 1);
    assert_int_equal(w->procs[1].exit.status, 7);
    world_fini(w);
    assert_false(w->lost);
    free(w);
}

/* ---- leases --------------------------------------------------------------------------------------- */

static void test_lease(void **state)
{
    struct world *w = *state;
    struct err_detail d = {""};
    run_stubborn(w, 1);
    process_set_renew(w->set, 1);
    world_wait_count(w, &w->procs[1].exits, 1);
    assert_true(w->procs[1].exit.lapsed);
    assert_false(w->procs[1].exit.asked);
    assert_int_equal(world_survivors(w->mark), 0);
    assert_int_equal(world_start(w, 2, "wait", NULL, &d), ERR_TIMEOUT);
    assert_non_null(strstr(d.text, "lease"));
    process_set_renew(w->set, 300 * NS_PER_S);
    run_stubborn(w, 2);
    assert_false(w->lost);
}

static void test_lease_renewed(void **state)
{
    struct world *w = *state;
    run_stubborn(w, 1);
    /* The last word counts, whatever came before it. */
    process_set_renew(w->set, 200 * NS_PER_S);
    process_set_renew(w->set, 100 * NS_PER_S);
    process_stop(w->set, 1);
    world_wait_count(w, &w->procs[1].exits, 1);
    assert_false(w->procs[1].exit.lapsed);
}

/* ---- agents --------------------------------------------------------------------------------------- */

/* An agent of its own: this program forked, with one stubborn tree. It tells "r" when the tree is ready and,
 * should it live to see it, "l" when the lease has lapsed; then it ends. */
struct victim {
    pid_t pid;
    int fd;
    char mark[64];
    char dir[64];
    pid_t tree; /* its first process */
    pid_t supervisor;
    int supervisor_fd;
};

NORETURN static void be_victim(int fd, const struct world_options *options)
{
    struct world *w = mem_zalloc(1, sizeof *w);
    world_init(w, options);
    run_stubborn(w, 1);
    must(write(fd, w->mark, sizeof w->mark) == sizeof w->mark);
    must(write(fd, w->scratch.dir, sizeof w->scratch.dir) == sizeof w->scratch.dir);
    must(write(fd, &w->procs[1].pid, sizeof(pid_t)) == sizeof(pid_t));
    world_wait_count(w, &w->procs[1].exits, 1);
    must(write(fd, w->procs[1].exit.lapsed ? "l" : "e", 1) == 1);
    world_fini(w);
    free(w);
    _exit(0);
}

static void start_victim(struct victim *v, const struct world_options *options)
{
    int fds[2];
    assert_int_equal(pipe(fds), 0);
    v->pid = fork();
    assert_true(v->pid >= 0);
    if (v->pid == 0) {
        close(fds[0]);
        be_victim(fds[1], options);
    }
    close(fds[1]);
    v->fd = fds[0];
    assert_int_equal(read(v->fd, v->mark, sizeof v->mark), sizeof v->mark);
    assert_int_equal(read(v->fd, v->dir, sizeof v->dir), sizeof v->dir);
    assert_int_equal(read(v->fd, &v->tree, sizeof v->tree), sizeof v->tree);
    assert_int_equal(world_survivors(v->mark), STUBBORN_PROCESSES);
    v->supervisor = supervisor_of(v->tree);
    v->supervisor_fd = pidfd_open(v->supervisor, 0);
    assert_true(v->supervisor_fd >= 0);
}

static void wait_supervisor(struct victim *v)
{
    struct pollfd end = {.fd = v->supervisor_fd, .events = POLLIN};
    assert_int_equal(poll(&end, 1, (int)(WAIT_NS / NS_PER_MS)), 1);
    close(v->supervisor_fd);
}

static size_t leaves_of(pid_t pid)
{
    char parent[CGROUP_PATH_BYTES];
    char number[32];
    size_t count = 0;
    if (cgroup_find_parent("/proc", parent, sizeof parent, NULL) != ERR_OK)
        return 0;
    snprintf(number, sizeof number, "-%d-", (int)pid);
    DIR *dir = opendir(parent);
    assert_non_null(dir);
    for (struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir))
        count += strncmp(entry->d_name, "splitbench-", 11) == 0 && strstr(entry->d_name, number) != NULL;
    closedir(dir);
    return count;
}

/* The logs stay: they are the agent's to send. */
static void expect_logs(struct victim *v)
{
    char *log = mem_printf("%s/1-tool_tree.log", v->dir);
    assert_int_equal(unlink(log), 0);
    assert_int_equal(rmdir(v->dir), 0);
    free(log);
}

static void end_victim(struct victim *v)
{
    int status = 0;
    assert_int_equal(waitpid(v->pid, &status, 0), v->pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    close(v->fd);
    expect_logs(v);
}

static void test_agent_killed(void **state)
{
    struct victim v;
    start_victim(&v, *state);
    assert_int_equal(kill(v.pid, SIGKILL), 0);
    world_wait_nobody(v.mark);
    wait_supervisor(&v);
    assert_int_equal(leaves_of(v.pid), 0);
    end_victim(&v);
}

static void test_agent_stopped(void **state)
{
    struct victim v;
    struct world_options options = *(const struct world_options *)*state;
    char byte = 0;
    int status = 0;
    options.lease_ns = 2 * NS_PER_S;
    start_victim(&v, &options);
    assert_int_equal(kill(v.pid, SIGSTOP), 0);
    world_wait_nobody(v.mark);
    wait_supervisor(&v);
    assert_int_equal(leaves_of(v.pid), 0);
    /* What happened meanwhile is told when it goes on. */
    assert_int_equal(kill(v.pid, SIGCONT), 0);
    assert_int_equal(read(v.fd, &byte, 1), 1);
    assert_int_equal(byte, 'l');
    assert_int_equal(waitpid(v.pid, &status, 0), v.pid);
    assert_int_equal(status, 0);
    close(v.fd);
}

/* Agent and supervisor at one blow: the first process goes by its death signal, the rest of a leaf when the
 * next agent or set begins; without a leaf those that left are beyond reach, which is why the supervisor has
 * another name. */
static void test_agent_and_supervisor_killed(void **state)
{
    struct victim v;
    start_victim(&v, *state);
    int tree_fd = pidfd_open(v.tree, 0);
    assert_true(tree_fd >= 0);
    assert_int_equal(kill(v.pid, SIGSTOP), 0);
    assert_int_equal(kill(v.supervisor, SIGSTOP), 0);
    size_t leaves = leaves_of(v.pid);
    assert_int_equal(kill(v.pid, SIGKILL), 0);
    assert_int_equal(kill(v.supervisor, SIGKILL), 0);
    struct pollfd end = {.fd = tree_fd, .events = POLLIN};
    assert_int_equal(poll(&end, 1, (int)(WAIT_NS / NS_PER_MS)), 1);
    close(tree_fd);
    wait_supervisor(&v);
    end_victim(&v);
    if (leaves == 0) {
        print_message("no cgroup to use here: the rest of the tree is ended by the test\n");
        struct procstat_list list;
        assert_int_equal(procstat_list_init(&list, "/proc", NULL), ERR_OK);
        for (size_t i = 0; i < list.count; i++) {
            if (world_carries(list.items[i].pid, v.mark))
                procstat_kill(&list.items[i]);
        }
        procstat_list_fini(&list);
    } else {
        process_clean_stale();
    }
    world_wait_nobody(v.mark);
    assert_int_equal(leaves_of(v.pid), 0);
}

#define PLAIN(f, options)                                                                                    \
    {                                                                                                        \
#f " " #options, f, NULL, NULL, (void *)(uintptr_t) & (options)                                      \
    }
#define WORLD(f, options)                                                                                    \
    {                                                                                                        \
#f " " #options, f, setup, teardown, (void *)(uintptr_t) & (options)                                 \
    }
#define BOTH(f) WORLD(f, with_cgroup), WORLD(f, without_cgroup)

int main(int argc, char **argv)
{
    int code = 0;
    if (supervisor_main(argc, argv, &code))
        return code;
    const struct CMUnitTest tests[] = {
        BOTH(test_rolling_storm),
        BOTH(test_bomb),
        BOTH(test_storm_then_exit),
        WORLD(test_leaves_its_cgroup, with_cgroup),
        BOTH(test_flood_while_killed),
        BOTH(test_supervisor_killed),
        BOTH(test_supervisor_killed_and_closed),
        BOTH(test_closed_when_lost),
        BOTH(test_supervisor_killed_at_once),
        BOTH(test_supervisor_stopped),
        BOTH(test_supervisor_ignores_signals),
        cmocka_unit_test(test_children_ignored),
        BOTH(test_lease),
        BOTH(test_lease_renewed),
        PLAIN(test_agent_killed, with_cgroup),
        PLAIN(test_agent_killed, without_cgroup),
        PLAIN(test_agent_stopped, with_cgroup),
        PLAIN(test_agent_stopped, without_cgroup),
        PLAIN(test_agent_and_supervisor_killed, with_cgroup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
