#include "common/clock.h"
#include "common/mem.h"
#include "proto/link/nng_faults/faults.h"
#include "tests/support/nng_reproducers.h"
#include "tests/support/scratch.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
// clang-format on

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/*
 * Does the nng that runs have the faults that proto/link/nng_faults/faults.h says of the one we were compiled
 * against? One that it has, and that nothing bends around, fails; so does one that is bent around and
 * certainly gone. Each is tried in a process of its own, since it may hang or abort. Linked without
 * proto/link/nng_faults/sendmsg.c, which would hide a fault from its reproducer.
 */

struct fault {
    const char *name; /* the macro's, small, without NNG_FAULT_ */
    bool expected;
    bool certain; /* no race: without the fault, expecting it fails as well */
    bool aborts;  /* beside what the reproducer says, it may end like this */
    bool hangs;   /* or not end */
    reproducer *reproduce;
    unsigned tries;
    unsigned limit_s;
    bool in_background; /* it waits: started before the others */
    pid_t pid;
    int end_fd; /* readable when the process has ended */
};

#define FAULT(MACRO, word) .name = #word, .expected = NNG_FAULT_##MACRO, .reproduce = reproduce_##word

static struct fault faults[] = {
    {FAULT(GREETING_ENDS_LISTENER, greeting_ends_listener), .certain = true, .tries = 20, .limit_s = 10},
    {FAULT(CLOSE_HANGS, close_hangs), .hangs = true, .tries = 3000, .limit_s = 15},
    {FAULT(ABORT_IS_EARLY, abort_is_early), .aborts = true, .tries = 30000, .limit_s = 15},
    {FAULT(DIAL_NEVER_ENDS, dial_never_ends), .tries = 5000, .limit_s = 15},
    {FAULT(CONTEXT_OUTLIVES_SOCKET, context_outlives_socket), .aborts = true, .hangs = true, .tries = 5000,
     .limit_s = 10},
    {FAULT(REDIALS_AT_ONCE, redials_at_once), .certain = true, .tries = 32, .limit_s = 15},
    {FAULT(HANDSHAKE_NEVER_ENDS, handshake_never_ends), .certain = true, .tries = 1, .limit_s = 30,
     .in_background = true},
    {FAULT(END_UNNOTICED, end_unnoticed), .tries = 200, .limit_s = 30, .in_background = true},
};

static struct scratch scratch;
static struct identity identity;

static void run_child(const struct fault *f)
{
    struct rlimit limit;
    int null_fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (null_fd >= 0)
        dup2(null_fd, STDERR_FILENO); /* where nng says that it aborts, with a trace */
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
    limit.rlim_cur = limit.rlim_max = 0;
    (void)setrlimit(RLIMIT_CORE, &limit);
    char *dir = mem_printf("%s/%s", scratch.dir, f->name);
    if (mkdir(dir, 0700) != 0)
        _exit(REPRODUCER_BROKEN);
    const struct reproducer_place place = {.dir = dir, .identity = &identity};
    _exit(f->reproduce(&place, f->tries) ? EXIT_FAILURE : EXIT_SUCCESS);
}

static void start(struct fault *f)
{
    int fds[2];
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    fflush(stdout);
    f->pid = fork();
    assert_true(f->pid >= 0);
    if (f->pid == 0)
        run_child(f);
    close(fds[1]);
    f->end_fd = fds[0];
}

/* Whether the fault was seen. Ends as soon as the process does. */
static bool finish(struct fault *f)
{
    struct pollfd pfd = {.fd = f->end_fd, .events = POLLIN};
    int status;
    bool hung = poll(&pfd, 1, (int)f->limit_s * 1000) == 0;
    if (hung)
        kill(f->pid, SIGKILL);
    close(f->end_fd);
    assert_int_equal(waitpid(f->pid, &status, 0), f->pid);
    if (hung) {
        assert_true(f->hangs);
        return true;
    }
    if (WIFSIGNALED(status)) {
        print_message("the reproducer ends by signal %d\n", WTERMSIG(status));
        assert_true(f->aborts);
        return true;
    }
    assert_true(WEXITSTATUS(status) == EXIT_SUCCESS || WEXITSTATUS(status) == EXIT_FAILURE);
    return WEXITSTATUS(status) == EXIT_FAILURE;
}

static void try_fault(void **state)
{
    struct fault *f = *state;
    if (!f->in_background)
        start(f);
    bool seen = finish(f);
    print_message("fault %s: nng %s ", f->name, nng_version());
    if (seen)
        print_message("has it\n");
    else if (f->certain || !f->expected)
        print_message("does not have it\n");
    else
        print_message("has it by its version; not seen in %u tries\n", f->tries);
    if (seen && !f->expected)
        fail_msg("compiled for nng %d.%d, which has no %s: nothing bends around it", NNG_MAJOR_VERSION,
                 NNG_MINOR_VERSION, f->name);
    if (!seen && f->expected && f->certain)
        fail_msg("compiled for nng %d.%d, which has %s: what bends around it can go", NNG_MAJOR_VERSION,
                 NNG_MINOR_VERSION, f->name);
}

static int set_up(void **state)
{
    struct err_detail d = {.text = ""};
    (void)state;
    scratch_init(&scratch);
    char *ca_dir = mem_strdup(scratch_at(&scratch, "ca"));
    assert_int_equal(identity_create_lab(ca_dir, &d), ERR_OK);
    assert_int_equal(identity_load(ca_dir, &identity, &d), ERR_OK);
    free(ca_dir);
    for (size_t i = 0; i < ARRAY_LEN(faults); i++)
        if (faults[i].in_background)
            start(&faults[i]);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    identity_fini(&identity);
    scratch_fini(&scratch);
    return 0;
}

int main(void)
{
    struct CMUnitTest tests[ARRAY_LEN(faults)];
    for (size_t i = 0; i < ARRAY_LEN(faults); i++)
        tests[i] = (struct CMUnitTest){faults[i].name, try_fault, NULL, NULL, &faults[i]};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
