/* cgroup leaves: where they go (recorded mounts), and the kernel's own behaviour where one can be made. */
#include "agent/process/cgroup.h"
#include "agent/process/procstat.h"
#include "common/clock.h"
#include "common/mem.h"
#include "tests/support/scratch.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* ---- recorded ------------------------------------------------------------------------------------- */

static enum err find(const char *cgroup, const char *mountinfo, char *out, size_t size, struct err_detail *d)
{
    struct scratch s;
    scratch_init(&s);
    scratch_put(&s, "self/cgroup", cgroup);
    scratch_put(&s, "self/mountinfo", mountinfo);
    enum err e = cgroup_find_parent(s.dir, out, size, d);
    scratch_fini(&s);
    return e;
}

#define BEFORE "22 1 254:1 / / rw,relatime shared:1 - ext4 /dev/vda1 rw\n"
#define V2     "29 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"

static void test_found(void **state)
{
    (void)state;
    static const struct {
        const char *cgroup;
        const char *mountinfo;
        const char *expected;
    } cases[] = {
        /* Debian 12 under systemd; the same at the root; v1 and v2 side by side. */
        {"0::/system.slice/agent.service\n", BEFORE V2, "/sys/fs/cgroup/system.slice/agent.service"},
        {"0::/\n", BEFORE V2, "/sys/fs/cgroup"},
        {"4:memory:/x\n0::/\n",
         "34 31 0:31 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
         "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n",
         "/sys/fs/cgroup/unified"},
        /* A container that sees a part of the hierarchy, at its own place or below it. */
        {"0::/docker/c1\n", "50 40 0:26 /docker/c1 /sys/fs/cgroup rw - cgroup2 cgroup rw\n",
         "/sys/fs/cgroup"},
        {"0::/docker/c1/a\n", "50 40 0:26 /docker/c1 /sys/fs/cgroup rw - cgroup2 cgroup rw\n",
         "/sys/fs/cgroup/a"},
        /* The second mount is the one that shows us; a name that only begins the same does not. */
        {"0::/ab/c\n",
         "50 40 0:26 /a /mnt/one rw - cgroup2 cgroup rw\n51 40 0:26 /ab /mnt/two rw - cgroup2 cgroup rw\n",
         "/mnt/two/c"},
        /* Blanks in a path. */
        {"0::/\n", "50 40 0:26 / /mnt/a\\040b\\134c rw - cgroup2 cgroup rw\n", "/mnt/a b\\c"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char out[CGROUP_PATH_BYTES];
        struct err_detail d = {""};
        if (find(cases[i].cgroup, cases[i].mountinfo, out, sizeof out, &d) != ERR_OK)
            fail_msg("case %zu: %s", i, d.text);
        assert_string_equal(out, cases[i].expected);
    }
}

static void test_not_found(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"4:memory:/x\n1:name=systemd:/\n", BEFORE V2}, /* v1 alone */
        {"0::/\n", BEFORE},                             /* not mounted */
        {"0::/../other\n", BEFORE V2},                  /* outside our cgroup namespace */
        {"0::/x\n", "50 40 0:26 /y /sys/fs/cgroup rw - cgroup2 cgroup rw\n"},
        {"", ""},
        {"0::/\n", "- cgroup2 \n - cgroup2 x y\n1 2 3 - cgroup2 a b\n"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char out[CGROUP_PATH_BYTES] = "untouched";
        struct err_detail d = {""};
        assert_int_equal(find(cases[i][0], cases[i][1], out, sizeof out, &d), ERR_UNSUPPORTED);
        assert_string_equal(out, "untouched");
        assert_true(d.text[0] != '\0');
    }
    char small[8];
    assert_int_equal(find("0::/\n", BEFORE V2, small, sizeof small, NULL), ERR_UNSUPPORTED);
}

/* ---- the kernel's --------------------------------------------------------------------------------- */

/* The parent for leaves, or a skipped test with the reason. */
static void need_parent(char *parent, size_t size)
{
    struct err_detail d;
    char leaf[CGROUP_PATH_BYTES];
    enum err e = cgroup_find_parent("/proc", parent, size, &d);
    if (e == ERR_OK)
        e = cgroup_leaf_make(parent, "probe", 0, leaf, sizeof leaf, &d);
    if (e == ERR_OK)
        e = cgroup_leaf_remove(leaf, &d);
    if (e != ERR_OK) {
        print_message("skipped, no cgroup to use here: %s\n", d.text);
        skip();
    }
}

static void join(const char *leaf)
{
    char *path = mem_printf("%s/cgroup.procs", leaf);
    FILE *f = fopen(path, "w");
    must(f != NULL && fputs("0\n", f) >= 0 && fclose(f) == 0);
    free(path);
}

/* A child in the leaf that uses some CPU and waits; returns when it does. */
static pid_t start_member(const char *leaf, uint64_t cpu_ns)
{
    int fds[2];
    char byte = 0;
    assert_int_equal(pipe(fds), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        struct timespec ts = {0};
        join(leaf);
        while ((uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec < cpu_ns)
            must(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts) == 0);
        must(write(fds[1], "r", 1) == 1);
        for (;;)
            pause();
    }
    assert_int_equal(read(fds[0], &byte, 1), 1);
    close(fds[0]);
    close(fds[1]);
    return pid;
}

static void test_life(void **state)
{
    (void)state;
    char parent[CGROUP_PATH_BYTES];
    char leaf[CGROUP_PATH_BYTES];
    struct cgroup_counters *c = NULL;
    struct err_detail d;
    uint64_t cpu_ns = 0;
    pid_t *pids = NULL;
    size_t count = 9;
    int status = 0;
    need_parent(parent, sizeof parent);
    assert_int_equal(cgroup_leaf_make(parent, "a/../b c", 7, leaf, sizeof leaf, &d), ERR_OK);
    assert_true(strncmp(leaf, parent, strlen(parent)) == 0);
    assert_non_null(strstr(leaf, "-a____b_c-7"));
    assert_false(cgroup_leaf_populated(leaf));
    assert_int_equal(cgroup_counters_new(leaf, &c, &d), ERR_OK);
    assert_int_equal(cgroup_counters_members(c, &pids, &count, &d), ERR_OK);
    assert_int_equal(count, 0);
    free(pids);
    pid_t pid = start_member(leaf, 30 * NS_PER_MS);
    assert_true(cgroup_leaf_populated(leaf));
    assert_int_equal(cgroup_leaf_remove(leaf, &d), ERR_BUSY);
    assert_int_equal(cgroup_counters_members(c, &pids, &count, &d), ERR_OK);
    assert_int_equal(count, 1);
    assert_int_equal(pids[0], pid);
    free(pids);
    /* Without any controller the kernel counts CPU in every cgroup. */
    assert_int_equal(cgroup_counters_cpu(c, &cpu_ns, &d), ERR_OK);
    assert_in_range(cpu_ns, 25 * NS_PER_MS, 10 * NS_PER_S);
    cgroup_leaf_kill(leaf);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    cgroup_leaf_wait_empty(leaf, 10000);
    assert_false(cgroup_leaf_populated(leaf));
    uint64_t after_ns = 0;
    assert_int_equal(cgroup_counters_cpu(c, &after_ns, &d), ERR_OK);
    assert_true(after_ns >= cpu_ns);
    cgroup_counters_free(c);
    char *nested = mem_printf("%s/inner", leaf);
    assert_int_equal(mkdir(nested, 0700), 0);
    free(nested);
    assert_int_equal(cgroup_leaf_remove(leaf, &d), ERR_OK);
    assert_int_equal(cgroup_leaf_remove(leaf, &d), ERR_OK);
    assert_int_equal(access(leaf, F_OK), -1);
    assert_int_equal(cgroup_counters_new(leaf, &c, &d), ERR_NOT_FOUND);
    cgroup_leaf_kill(leaf);
}

static void test_stale(void **state)
{
    (void)state;
    char parent[CGROUP_PATH_BYTES];
    char ours[CGROUP_PATH_BYTES];
    char theirs[CGROUP_PATH_BYTES] = "";
    int fds[2];
    int status = 0;
    need_parent(parent, sizeof parent);
    assert_int_equal(cgroup_leaf_make(parent, "ours", 1, ours, sizeof ours, NULL), ERR_OK);
    /* Another agent makes a leaf, puts a child there, and dies. */
    assert_int_equal(pipe(fds), 0);
    pid_t agent = fork();
    assert_true(agent >= 0);
    if (agent == 0) {
        must(cgroup_leaf_make(parent, "theirs", 1, theirs, sizeof theirs, NULL) == ERR_OK);
        (void)start_member(theirs, 0);
        must(write(fds[1], theirs, sizeof theirs) == sizeof theirs);
        _exit(0);
    }
    assert_int_equal(read(fds[0], theirs, sizeof theirs), sizeof theirs);
    close(fds[0]);
    close(fds[1]);
    assert_int_equal(waitpid(agent, &status, 0), agent);
    assert_true(cgroup_leaf_populated(theirs));
    assert_true(cgroup_clean_stale(parent) >= 1);
    assert_int_equal(access(theirs, F_OK), -1);
    assert_int_equal(access(ours, F_OK), 0);
    assert_int_equal(cgroup_leaf_remove(ours, NULL), ERR_OK);
    assert_int_equal(cgroup_clean_stale("/no/such/dir"), 0);
}

static void test_unusable(void **state)
{
    (void)state;
    char leaf[CGROUP_PATH_BYTES];
    struct err_detail d = {""};
    /* Not a cgroup at all: the directory it made does not stay. */
    struct scratch s;
    scratch_init(&s);
    assert_int_equal(cgroup_leaf_make(s.dir, "x", 1, leaf, sizeof leaf, &d), ERR_UNSUPPORTED);
    assert_int_equal(rmdir(s.dir), 0);
    assert_int_equal(cgroup_leaf_make("/no/such", "x", 1, leaf, sizeof leaf, &d), ERR_UNSUPPORTED);
    assert_non_null(strstr(d.text, "/no/such"));
    char small[16];
    assert_int_equal(cgroup_leaf_make("/tmp", "x", 1, small, sizeof small, &d), ERR_UNSUPPORTED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_found), cmocka_unit_test(test_not_found), cmocka_unit_test(test_life),
        cmocka_unit_test(test_stale), cmocka_unit_test(test_unusable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
