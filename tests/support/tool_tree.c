/* A program that behaves as badly as it is told to, for the tests of process trees.
 *   tool_tree WORD...
 * Words run in order; the program ends after the last one:
 *   ignore       SIGTERM, SIGINT and SIGHUP are ignored from here on
 *   daemon       a child that forked twice and left the session stays (it ignores signals too)
 *   slowchild=MS a child that on SIGTERM uses MS of CPU time, says goodbye on stdout and ends
 *   children=N   N children that sleep
 *   storm=N      a process that forks and dies, N times over, each one a stranger to the last
 *   bomb=N       a tree of forks N deep, two at each level
 *   flood=N      N lines of 100 bytes on stdout
 *   floodlines=N N lines on stderr
 *   spin=MS      uses that much CPU time
 *   spinchild=MS a child does, and is waited for
 *   touch=MB     memory in use
 *   out=TEXT err=TEXT  one line on stdout, stderr
 *   nul          a line on stdout that begins with a NUL
 *   part=TEXT    text on stderr without an end of line
 *   env=NAME     its value on stdout
 *   cwd cpus fds session oom  on stdout
 *   ready        "ready PID" on stderr
 *   group=PATH   writes its pid into that file (a cgroup.procs)
 *   exit=N abort segv
 *   wait         until killed
 */
#include "common/clock.h"
#include "common/mem.h"
#include "common/parse.h"

#include <dirent.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *argument; /* behind the '=' of the word */

static uint64_t number(void)
{
    uint64_t n = 0;
    struct err_detail d;
    if (parse_u64(argument, 0, UINT32_MAX, &n, "argument", &d) != ERR_OK) {
        fprintf(stderr, "%s\n", d.text);
        exit(99);
    }
    return n;
}

static void do_ignore(void)
{
    signal(SIGTERM, SIG_IGN);
    signal(SIGINT, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
}

NORETURN static void wait_for_ever(void)
{
    for (;;)
        pause();
}

static void do_spin(void);

static void do_daemon(void)
{
    int fds[2];
    char byte = 0;
    must(pipe(fds) == 0);
    pid_t pid = fork();
    must(pid >= 0);
    if (pid == 0) {
        (void)setsid();
        if (fork() != 0)
            _exit(0);
        do_ignore();
        (void)setsid();
        must(write(fds[1], "x", 1) == 1);
        close(fds[0]);
        close(fds[1]);
        wait_for_ever();
    }
    must(waitpid(pid, NULL, 0) == pid);
    must(read(fds[0], &byte, 1) == 1);
    close(fds[0]);
    close(fds[1]);
}

static void do_slowchild(void)
{
    sigset_t term;
    int got = 0;
    sigemptyset(&term);
    sigaddset(&term, SIGTERM);
    /* In the group, so that SIGTERM reaches it. */
    must(sigprocmask(SIG_BLOCK, &term, NULL) == 0);
    pid_t pid = fork();
    must(pid >= 0);
    if (pid == 0) {
        must(sigwait(&term, &got) == 0);
        do_spin();
        dprintf(1, "said goodbye\n");
        _exit(0);
    }
    must(sigprocmask(SIG_UNBLOCK, &term, NULL) == 0);
}

static void do_children(void)
{
    for (uint64_t i = number(); i > 0; i--) {
        pid_t pid = fork();
        must(pid >= 0);
        if (pid == 0)
            wait_for_ever();
    }
}

static void do_storm(void)
{
    uint64_t left = number();
    pid_t pid = fork();
    must(pid >= 0);
    if (pid != 0)
        return;
    do_ignore();
    for (; left > 0; left--) {
        (void)setsid();
        pid = fork();
        if (pid != 0)
            _exit(0);
    }
    wait_for_ever();
}

static void do_bomb(void)
{
    pid_t pid = fork();
    must(pid >= 0);
    if (pid != 0)
        return;
    for (uint64_t left = number(); left > 0; left--) {
        if (fork() == 0)
            (void)setsid();
    }
    wait_for_ever();
}

static void write_all(int fd, const char *text, size_t len)
{
    while (len > 0) {
        ssize_t n = write(fd, text, len);
        if (n <= 0)
            exit(98);
        text += n;
        len -= (size_t)n;
    }
}

static void flood(int fd, uint64_t lines)
{
    char chunk[64 * 100];
    for (size_t i = 0; i < sizeof chunk; i++)
        chunk[i] = i % 100 == 99 ? '\n' : (char)('a' + i % 26);
    for (; lines >= 64; lines -= 64)
        write_all(fd, chunk, sizeof chunk);
    write_all(fd, chunk, lines * 100);
}

static void do_flood(void)
{
    flood(1, number());
}

static void do_floodlines(void)
{
    flood(2, number());
}

static void do_spin(void)
{
    uint64_t until_ns = number() * NS_PER_MS;
    struct timespec ts;
    do
        must(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts) == 0);
    while ((uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec < until_ns);
}

static void do_spinchild(void)
{
    pid_t pid = fork();
    must(pid >= 0);
    if (pid == 0) {
        do_spin();
        _exit(0);
    }
    must(waitpid(pid, NULL, 0) == pid);
}

static void do_touch(void)
{
    size_t bytes = number() * 1024 * 1024;
    char *memory = mem_alloc(bytes);
    for (size_t i = 0; i < bytes; i += 4096)
        ((volatile char *)memory)[i] = 1;
}

static void do_out(void)
{
    dprintf(1, "%s\n", argument);
}

static void do_nul(void)
{
    must(write(1, "\0nul\n", 5) == 5);
}

static void do_err(void)
{
    dprintf(2, "%s\n", argument);
}

static void do_part(void)
{
    write_all(2, argument, strlen(argument));
}

static void do_env(void)
{
    const char *value = getenv(argument);
    dprintf(1, "%s\n", value != NULL ? value : "(none)");
}

static void do_cwd(void)
{
    char path[4096];
    must(getcwd(path, sizeof path) != NULL);
    dprintf(1, "%s\n", path);
}

static void do_cpus(void)
{
    cpu_set_t set;
    char text[256];
    must(sched_getaffinity(0, sizeof set, &set) == 0);
    dprintf(1, "%s\n", parse_cpus_text(&set, text, sizeof text));
}

/* "0 1 2" when nothing leaked in. */
static void do_fds(void)
{
    DIR *dir = opendir("/proc/self/fd");
    must(dir != NULL);
    for (struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        long fd = strtol(entry->d_name, NULL, 10);
        if (entry->d_name[0] != '.' && fd != dirfd(dir))
            dprintf(1, "%ld ", fd);
    }
    closedir(dir);
    dprintf(1, "\n");
}

static void do_session(void)
{
    sigset_t mask;
    sigprocmask(SIG_BLOCK, NULL, &mask);
    int odd = 0;
    for (int i = 1; i < NSIG; i++) {
        struct sigaction action;
        if (sigaction(i, NULL, &action) == 0 && action.sa_handler == SIG_IGN)
            odd++;
        odd += sigismember(&mask, i) == 1;
    }
    dprintf(1, "%s odd=%d\n", getsid(0) == getpid() && getpgrp() == getpid() ? "own" : "shared", odd);
}

static void do_oom(void)
{
    char text[32] = "";
    FILE *f = fopen("/proc/self/oom_score_adj", "r");
    must(f != NULL && fgets(text, sizeof text, f) != NULL);
    fclose(f);
    dprintf(1, "%s", text);
}

static void do_ready(void)
{
    dprintf(2, "ready %d\n", (int)getpid());
}

static void do_group(void)
{
    FILE *f = fopen(argument, "w");
    must(f != NULL);
    fprintf(f, "%d\n", (int)getpid());
    must(fclose(f) == 0);
}

static void do_exit(void)
{
    _exit((int)number());
}

static void do_segv(void)
{
    struct rlimit none = {0};
    setrlimit(RLIMIT_CORE, &none);
    signal(SIGSEGV, SIG_DFL);
    raise(SIGSEGV);
}

static void do_abort(void)
{
    struct rlimit none = {0};
    setrlimit(RLIMIT_CORE, &none);
    abort();
}

static void do_wait(void)
{
    wait_for_ever();
}

static const struct {
    const char *word;
    void (*run)(void);
} words[] = {
    {"ignore", do_ignore},
    {"daemon", do_daemon},
    {"slowchild", do_slowchild},
    {"children", do_children},
    {"storm", do_storm},
    {"bomb", do_bomb},
    {"flood", do_flood},
    {"floodlines", do_floodlines},
    {"spin", do_spin},
    {"spinchild", do_spinchild},
    {"touch", do_touch},
    {"out", do_out},
    {"nul", do_nul},
    {"err", do_err},
    {"part", do_part},
    {"env", do_env},
    {"cwd", do_cwd},
    {"cpus", do_cpus},
    {"fds", do_fds},
    {"session", do_session},
    {"oom", do_oom},
    {"ready", do_ready},
    {"group", do_group},
    {"exit", do_exit},
    {"segv", do_segv},
    {"abort", do_abort},
    {"wait", do_wait},
};

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        char *equals = strchr(argv[i], '=');
        size_t len = equals != NULL ? (size_t)(equals - argv[i]) : strlen(argv[i]);
        size_t w = 0;
        while (w < ARRAY_LEN(words) &&
               (strlen(words[w].word) != len || strncmp(words[w].word, argv[i], len) != 0))
            w++;
        if (w == ARRAY_LEN(words)) {
            fprintf(stderr, "tool_tree: no such word: %s\n", argv[i]);
            return 99;
        }
        argument = equals != NULL ? equals + 1 : "";
        words[w].run();
    }
    return 0;
}
