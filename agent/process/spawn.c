#include "agent/process/spawn.h"

#include "common/clock.h"
#include "common/file.h"
#include "common/mem.h"
#include "common/parse.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* What a child that did not get to its program says through a pipe that exec would have closed. */
enum stage { STAGE_SETUP, STAGE_CPUS, STAGE_DIR, STAGE_PROGRAM };
struct failure {
    enum stage stage;
    int errnum;
};

/* ---- in the child --------------------------------------------------------------------------------- */

NORETURN static void fail(int fd, enum stage stage)
{
    struct failure f = {.stage = stage, .errnum = errno};
    ssize_t n = write(fd, &f, sizeof f);
    _exit(n == sizeof f ? 126 : 127);
}

static void reset_signals(void)
{
    struct sigaction action = {.sa_handler = SIG_DFL};
    sigset_t none;
    for (int i = 1; i < NSIG; i++)
        (void)sigaction(i, &action, NULL); /* SIGKILL, SIGSTOP and libc's own refuse */
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

/* 0, 1, 2 and the pipe; the rest is closed, whoever left it open. */
static int arrange_fds(const struct spawn_options *o, int failure_fd)
{
    int null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    /* Out of the way of 0 to 3 first: the three may have any numbers. */
    int out_fd = fcntl(o->out_fd, F_DUPFD_CLOEXEC, 10);
    int err_fd = fcntl(o->err_fd, F_DUPFD_CLOEXEC, 10);
    int kept = fcntl(failure_fd, F_DUPFD_CLOEXEC, 10);
    if (null_fd < 0 || out_fd < 0 || err_fd < 0 || kept < 0)
        fail(failure_fd, STAGE_SETUP);
    if (dup2(null_fd, 0) < 0 || dup2(out_fd, 1) < 0 || dup2(err_fd, 2) < 0 || dup3(kept, 3, O_CLOEXEC) < 0)
        fail(kept, STAGE_SETUP);
    if (close_range(4, ~0u, 0) != 0)
        closefrom(4);
    return 3;
}

static void raise_oom_score(void)
{
    char text[16];
    int n = snprintf(text, sizeof text, "%d", SPAWN_OOM_SCORE_ADJ);
    int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    if (write(fd, text, (size_t)n) < 0)
        (void)close(fd); /* a sandbox may forbid it; then the OOM killer chooses as it likes */
    else
        close(fd);
}

static void arrange_env(const struct spawn_options *o, int failure_fd)
{
    /* What a service manager told the agent is not meant for its children. */
    static const char *const ours[] = {"NOTIFY_SOCKET",  "LISTEN_PID",   "LISTEN_FDS",
                                       "LISTEN_FDNAMES", "WATCHDOG_PID", "WATCHDOG_USEC"};
    for (size_t i = 0; i < ARRAY_LEN(ours); i++)
        (void)unsetenv(ours[i]);
    for (char *const *pair = o->env; pair != NULL && *pair != NULL; pair++) {
        if (putenv(*pair) != 0)
            fail(failure_fd, STAGE_SETUP);
    }
    (void)putenv(mem_printf("PWD=%s", o->dir));
}

/* The kernel drops CPUs that do not exist without an error; figures of fewer CPUs would be wrong. */
static bool pin(const cpu_set_t *cpus)
{
    cpu_set_t got;
    if (sched_setaffinity(0, sizeof *cpus, cpus) != 0 || sched_getaffinity(0, sizeof got, &got) != 0)
        return false;
    errno = EINVAL;
    return CPU_EQUAL(cpus, &got);
}

NORETURN static void run_child(const struct spawn_options *o, pid_t parent, int failure_fd)
{
    failure_fd = arrange_fds(o, failure_fd);
    reset_signals();
    (void)setsid();
    /* Its subreaper clears the tree; should that be killed outright, at least the first process goes too. */
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0)
        fail(failure_fd, STAGE_SETUP);
    if (getppid() != parent)
        _exit(127);
    raise_oom_score();
    if (o->cpus != NULL && !pin(o->cpus))
        fail(failure_fd, STAGE_CPUS);
    if (chdir(o->dir) != 0)
        fail(failure_fd, STAGE_DIR);
    arrange_env(o, failure_fd);
    execvp(o->argv[0], o->argv);
    fail(failure_fd, STAGE_PROGRAM);
}

/* ---- in the parent -------------------------------------------------------------------------------- */

/* Born inside, nothing of it runs uncounted, and the kernel need not stop the world to move it. */
static pid_t fork_into(const char *leaf)
{
    int fd = open(leaf, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    struct clone_args args = {
        .flags = CLONE_INTO_CGROUP,
        .exit_signal = SIGCHLD,
        .cgroup = (unsigned)fd,
    };
    pid_t pid = (pid_t)syscall(SYS_clone3, &args, sizeof args);
    int clone_errno = errno;
    if (pid != 0) {
        close(fd);
        errno = clone_errno;
    }
    return pid;
}

/* PATH as the child sees it: the last one of `env`, else ours. */
static const char *child_path(const struct spawn_options *o)
{
    const char *path = getenv("PATH");
    for (char *const *pair = o->env; pair != NULL && *pair != NULL; pair++) {
        if (strncmp(*pair, "PATH=", 5) == 0)
            path = *pair + 5;
    }
    return path != NULL ? path : "/bin:/usr/bin";
}

/* An ordinary user's PATH on Debian lacks the directories most servers are installed in. */
static const char *in_system_dirs(const char *program, char *out, size_t size)
{
    static const char *const dirs[] = {"/usr/local/sbin", "/usr/sbin", "/sbin"};
    for (size_t i = 0; i < ARRAY_LEN(dirs); i++) {
        snprintf(out, size, "%s/%s", dirs[i], program);
        if (access(out, X_OK) == 0)
            return out;
    }
    return NULL;
}

/* A file of that name in PATH, whether it can be run or not. */
static bool in_path(const struct spawn_options *o)
{
    char *path = mem_strdup(child_path(o));
    char *save = NULL;
    bool found = false;
    for (char *dir = strtok_r(path, ":", &save); dir != NULL && !found; dir = strtok_r(NULL, ":", &save)) {
        char *full = mem_printf("%s/%s", dir, o->argv[0]);
        found = access(full, F_OK) == 0;
        free(full);
    }
    free(path);
    return found;
}

static enum err explain_bare_name(const struct spawn_options *o, struct err_detail *d)
{
    const char *program = o->argv[0];
    char found[512];
    if (in_system_dirs(program, found, sizeof found) != NULL)
        return err_set(d, ERR_NOT_FOUND,
                       "cannot run '%s': no such program in PATH (%s), but there is %s: name it so", program,
                       child_path(o), found);
    return err_set(d, ERR_NOT_FOUND, "cannot run '%s': no such program in PATH (%s)", program, child_path(o));
}

static enum err explain_program(const struct spawn_options *o, int errnum, struct err_detail *d)
{
    const char *program = o->argv[0];
    bool has_path = strchr(program, '/') != NULL;
    char *full = has_path && program[0] != '/' ? mem_printf("%s/%s", o->dir, program) : mem_strdup(program);
    struct stat st;
    bool exists = has_path && stat(full, &st) == 0;
    bool is_dir = exists && S_ISDIR(st.st_mode);
    free(full);
    /* A directory in PATH that may not be searched makes the whole search end with EACCES. */
    if (!has_path && (errnum == ENOENT || errnum == EACCES) && !in_path(o))
        return explain_bare_name(o, d);
    if (errnum == ENOENT && (exists || !has_path))
        return err_set(d, ERR_NOT_FOUND, "cannot run '%s': the interpreter or loader it asks for is missing",
                       program);
    if (errnum == ENOENT && program[0] == '/')
        return err_set(d, ERR_NOT_FOUND, "cannot run '%s': no such file", program);
    if (errnum == ENOENT)
        return err_set(d, ERR_NOT_FOUND, "cannot run '%s': no such file (looked for in '%s')", program,
                       o->dir);
    if (is_dir)
        return err_set(d, ERR_DENIED, "cannot run '%s': it is a directory", program);
    if (errnum == EACCES)
        return err_set(d, ERR_DENIED, "cannot run '%s': it is not executable for this user", program);
    if (errnum == ENOEXEC)
        return err_set(d, ERR_INVALID, "cannot run '%s': not a program of this kind of machine", program);
    return err_set(d, err_from_errno(errnum), "cannot run '%s': %s", program, strerror(errnum));
}

static const char *online_cpus(char *out, size_t size)
{
    if (!file_read_line("/sys/devices/system/cpu/online", out, size))
        snprintf(out, size, "others");
    return out;
}

static enum err explain(const struct spawn_options *o, struct failure f, struct err_detail *d)
{
    char wanted[128];
    char online[128];
    switch (f.stage) {
    case STAGE_DIR:
        return err_set(d, err_from_errno(f.errnum), "cannot run '%s': cannot enter directory '%s': %s",
                       o->argv[0], o->dir, strerror(f.errnum));
    case STAGE_CPUS:
        return err_set(d, err_from_errno(f.errnum), "cannot run '%s' on CPUs %s: this host has %s online: %s",
                       o->argv[0], parse_cpus_text(o->cpus, wanted, sizeof wanted),
                       online_cpus(online, sizeof online), strerror(f.errnum));
    case STAGE_PROGRAM:
        return explain_program(o, f.errnum, d);
    case STAGE_SETUP:
        break;
    }
    return err_set(d, err_from_errno(f.errnum), "cannot prepare a process for '%s': %s", o->argv[0],
                   strerror(f.errnum));
}

static ssize_t read_failure(int fd, struct failure *f)
{
    ssize_t n = 0;
    do
        n = read(fd, f, sizeof *f);
    while (n < 0 && errno == EINTR);
    return n;
}

enum err spawn_program(const struct spawn_options *o, struct spawn_result *out, struct err_detail *d)
{
    int fds[2];
    struct failure f;
    pid_t parent = getpid();
    if (pipe2(fds, O_CLOEXEC) != 0)
        return err_set(d, err_from_errno(errno), "cannot run '%s': %s", o->argv[0], strerror(errno));
    uint64_t at_ns = clock_now_ns();
    pid_t pid = o->leaf != NULL ? fork_into(o->leaf) : -1;
    bool in_leaf = pid > 0;
    if (pid < 0)
        pid = fork();
    if (pid == 0)
        run_child(o, parent, fds[1]);
    int fork_errno = errno;
    close(fds[1]);
    if (pid < 0) {
        close(fds[0]);
        return err_set(d, err_from_errno(fork_errno), "cannot run '%s': cannot make a process: %s",
                       o->argv[0], strerror(fork_errno));
    }
    ssize_t n = read_failure(fds[0], &f);
    close(fds[0]);
    if (n == 0) {
        *out = (struct spawn_result){.pid = pid, .spawned_at_ns = at_ns, .in_leaf = in_leaf};
        return ERR_OK;
    }
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    if (n != sizeof f)
        f = (struct failure){.stage = STAGE_SETUP, .errnum = EIO};
    return explain(o, f, d);
}
