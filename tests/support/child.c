#include "tests/support/child.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
// clang-format on

#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

void child_run(int (*body)(void *arg), void *arg)
{
    pid_t pid = fork();
    int status = 0;
    assert_true(pid >= 0);
    if (pid == 0)
        _exit(body(arg));
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == CHILD_SKIPS)
        skip();
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

bool child_limit_files(size_t bytes)
{
    const struct rlimit limit = {.rlim_cur = bytes, .rlim_max = bytes};
    return signal(SIGXFSZ, SIG_IGN) != SIG_ERR && setrlimit(RLIMIT_FSIZE, &limit) == 0;
}

static bool write_text(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    bool good = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
    if (fd >= 0)
        close(fd);
    return good;
}

/* Mounts of our own: as root; else as the root of a user namespace, in which we are the only user. */
static bool enter_namespace(void)
{
    char uid_map[64], gid_map[64];
    snprintf(uid_map, sizeof uid_map, "0 %u 1\n", geteuid());
    snprintf(gid_map, sizeof gid_map, "0 %u 1\n", getegid());
    return unshare(CLONE_NEWNS) == 0 ||
           (unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0 && write_text("/proc/self/setgroups", "deny") &&
            write_text("/proc/self/uid_map", uid_map) && write_text("/proc/self/gid_map", gid_map));
}

bool child_mount_small(const char *dir, size_t bytes)
{
    char size[32];
    snprintf(size, sizeof size, "size=%zu", bytes);
    return enter_namespace() && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
           mount("tmpfs", dir, "tmpfs", 0, size) == 0;
}

bool child_become_nobody(void)
{
    return geteuid() != 0 || (setgroups(0, NULL) == 0 && setgid(65534) == 0 && setuid(65534) == 0);
}
