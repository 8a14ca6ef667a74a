#include "agent/process/cull.h"
#include "tests/support/child.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
// clang-format on

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* What ends processes, on real ones. Each body runs in a child process that is a subreaper, and so has
 * nothing below it but what it starts. */

/* A process that waits to be killed, with a child of the same kind when `deep`. It stands when this returns.
 */
static pid_t start(bool deep)
{
    int ready[2];
    char byte;
    if (pipe(ready) != 0)
        return -1;
    pid_t pid = fork();
    if (pid == 0) {
        if (deep && fork() < 0)
            _exit(1);
        if (write(ready[1], "", 1) != 1)
            _exit(1);
        close(ready[1]);
        alarm(120); /* when the test fails before it kills us */
        for (;;)
            pause();
    }
    close(ready[1]);
    for (int i = 0; i < (deep ? 2 : 1); i++)
        pid = read(ready[0], &byte, 1) == 1 ? pid : -1;
    close(ready[0]);
    return pid;
}

static bool was_killed(pid_t pid)
{
    int status = 0;
    return waitpid(pid, &status, 0) == pid && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
}

static bool has_no_children(void)
{
    return waitpid(-1, NULL, 0) == -1 && errno == ECHILD;
}

static int begin(void)
{
    return prctl(PR_SET_CHILD_SUBREAPER, 1);
}

static int one_descendant(void *arg)
{
    (void)arg;
    CHILD_CHECK(begin() == 0);
    CHILD_CHECK(cull_descendants(NULL) == 0);
    pid_t pid = start(false);
    CHILD_CHECK(pid > 0);
    CHILD_CHECK(cull_descendants(NULL) == 1);
    siginfo_t info;
    CHILD_CHECK(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT) == 0);
    CHILD_CHECK(cull_descendants(NULL) == 0); /* dead, though nobody has waited for it yet */
    CHILD_CHECK(was_killed(pid));
    CHILD_CHECK(has_no_children());
    return 0;
}

static void test_one_descendant(void **state)
{
    (void)state;
    child_run(one_descendant, NULL);
}

static int grandchildren(void *arg)
{
    (void)arg;
    CHILD_CHECK(begin() == 0);
    pid_t first = start(true);
    pid_t second = start(true);
    CHILD_CHECK(first > 0 && second > 0);
    CHILD_CHECK(cull_descendants(NULL) == 4);
    for (int i = 0; i < 4; i++) { /* the grandchildren are ours once their parents are gone */
        int status = 0;
        CHILD_CHECK(waitpid(-1, &status, 0) > 0 && WIFSIGNALED(status));
    }
    CHILD_CHECK(has_no_children());
    return 0;
}

static void test_grandchildren(void **state)
{
    (void)state;
    child_run(grandchildren, NULL);
}

static pid_t spared;

static bool is_spared(const struct procstat *p)
{
    return p->pid == spared;
}

static int skipped(void *arg)
{
    (void)arg;
    CHILD_CHECK(begin() == 0);
    spared = start(true);
    pid_t other = start(false);
    CHILD_CHECK(spared > 0 && other > 0);
    CHILD_CHECK(cull_descendants(is_spared) == 1);
    CHILD_CHECK(was_killed(other));
    CHILD_CHECK(cull_descendants(is_spared) == 0); /* nor what is below it */
    CHILD_CHECK(cull_descendants(NULL) == 2);
    CHILD_CHECK(was_killed(spared));
    CHILD_CHECK(waitpid(-1, NULL, 0) > 0);
    CHILD_CHECK(has_no_children());
    return 0;
}

static void test_skipped_with_all_below(void **state)
{
    (void)state;
    child_run(skipped, NULL);
}

static int children(void *arg)
{
    (void)arg;
    CHILD_CHECK(begin() == 0);
    cull_children(); /* none */
    pid_t deep = start(true);
    pid_t flat = start(false);
    CHILD_CHECK(deep > 0 && flat > 0);
    cull_children();
    CHILD_CHECK(was_killed(deep) && was_killed(flat));
    char who[256];
    CHILD_CHECK(strstr(cull_describe(who, sizeof who), " (test_cull, state ") != NULL); /* it rose to us */
    cull_children();
    CHILD_CHECK(waitpid(-1, NULL, 0) > 0);
    CHILD_CHECK(has_no_children());
    CHILD_CHECK(strcmp(cull_describe(who, sizeof who), "") == 0);
    return 0;
}

static void test_children_and_what_rises(void **state)
{
    (void)state;
    child_run(children, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_descendant),
        cmocka_unit_test(test_grandchildren),
        cmocka_unit_test(test_skipped_with_all_below),
        cmocka_unit_test(test_children_and_what_rises),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
