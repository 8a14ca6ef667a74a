#include "agent/process/supervised.h"

#include "agent/process/supervisor.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* Messages taken in one go: a flood of lines must not keep the loop from everything else. */
#define MESSAGES_PER_WAKE 64
/* The descriptor of the socket in the supervisor. */
#define SUPERVISOR_FD 3

struct supervised {
    struct supervised_handlers handlers;
    uv_loop_t *loop;
    pid_t pid;
    int pid_fd;
    int socket_fd;
    bool gone;
    uv_poll_t on_pid;
    uv_poll_t on_socket;
    uv_timer_t on_silence;
    unsigned handles; /* open */
    void (*close_cb)(void *arg);
    void *close_arg;
};

/* ---- messages in ---------------------------------------------------------------------------------- */

/* False when there is none now, or none ever. */
static bool take_message(struct supervised *s)
{
    char data[SUPERVISOR_REPLY_BYTES_MAX];
    struct supervisor_msg m;
    ssize_t n = recv(s->socket_fd, data, sizeof data, MSG_DONTWAIT);
    if (n < 0 && errno == EINTR)
        return true;
    if (n <= 0) {
        if (n == 0 || errno != EAGAIN)
            uv_poll_stop(&s->on_socket); /* that the process has ended is told by the pidfd */
        return false;
    }
    if (uv_is_active((uv_handle_t *)&s->on_silence) &&
        uv_timer_get_due_in(&s->on_silence) < SUPERVISED_SILENCE_MAX_MS)
        supervised_expect(s, 0);
    if (supervisor_msg_decode(data, (size_t)n, &m) != ERR_OK) {
        log_error("supervisor_garbage", "pid=%d", (int)s->pid);
        (void)kill(s->pid, SIGKILL);
        return true;
    }
    s->handlers.on_message(s->handlers.arg, &m);
    supervisor_msg_fini(&m);
    return true;
}

static void on_socket(uv_poll_t *handle, int status, int events)
{
    struct supervised *s = handle->data;
    (void)status;
    (void)events;
    for (int i = 0; i < MESSAGES_PER_WAKE && take_message(s); i++)
        continue;
}

static void on_pid(uv_poll_t *handle, int status, int events)
{
    struct supervised *s = handle->data;
    char how[128];
    siginfo_t info = {0};
    (void)status;
    (void)events;
    int rc = waitid(P_PIDFD, (id_t)s->pid_fd, &info, WEXITED | WNOHANG);
    if (rc == 0 && info.si_pid == 0)
        return;
    uv_poll_stop(&s->on_pid);
    uv_poll_stop(&s->on_socket);
    uv_timer_stop(&s->on_silence);
    while (take_message(s))
        continue;
    s->gone = true;
    if (rc == 0 && info.si_code == CLD_EXITED && info.si_status == 0) {
        s->handlers.on_gone(s->handlers.arg, NULL);
        return;
    }
    if (rc != 0)
        snprintf(how, sizeof how, "the supervisor %d vanished: %s", (int)s->pid, strerror(errno));
    else if (info.si_code == CLD_EXITED)
        snprintf(how, sizeof how, "the supervisor %d left with status %d", (int)s->pid, info.si_status);
    else
        snprintf(how, sizeof how, "the supervisor %d was killed by signal %d (%s)", (int)s->pid,
                 info.si_status, strsignal(info.si_status));
    s->handlers.on_gone(s->handlers.arg, how);
}

static void on_silence(uv_timer_t *handle)
{
    struct supervised *s = handle->data;
    char byte;
    if (recv(s->socket_fd, &byte, sizeof byte, MSG_PEEK | MSG_DONTWAIT) > 0) {
        supervised_expect(s, 0); /* it did speak: this loop was late to read it */
        return;
    }
    log_error("supervisor_hangs", "pid=%d", (int)s->pid);
    (void)kill(s->pid, SIGKILL);
}

/* ---- life ----------------------------------------------------------------------------------------- */

/* Away from our terminal and our signals, with nothing of ours open but the socket and stderr. */
static int spawn_self(pid_t *pid, int socket_fd)
{
    char name[] = "splitbench-supervisor";
    char option[] = SUPERVISOR_OPTION;
    char fd_text[] = "3";
    char *argv[] = {name, option, fd_text, NULL};
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attr;
    sigset_t all;
    sigset_t none;
    sigfillset(&all);
    sigemptyset(&none);
    must(posix_spawn_file_actions_init(&files) == 0 && posix_spawnattr_init(&attr) == 0);
    must(posix_spawnattr_setflags(&attr,
                                  POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK) == 0);
    must(posix_spawnattr_setsigdefault(&attr, &all) == 0 && posix_spawnattr_setsigmask(&attr, &none) == 0);
    must(posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0) == 0);
    must(posix_spawn_file_actions_addopen(&files, 1, "/dev/null", O_WRONLY, 0) == 0);
    must(posix_spawn_file_actions_adddup2(&files, socket_fd, SUPERVISOR_FD) == 0);
    must(posix_spawn_file_actions_addclosefrom_np(&files, SUPERVISOR_FD + 1) == 0);
    int rc = posix_spawn(pid, "/proc/self/exe", &files, &attr, argv, environ);
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attr);
    return rc;
}

static void init_handles(struct supervised *s)
{
    must(uv_poll_init(s->loop, &s->on_pid, s->pid_fd) == 0);
    must(uv_poll_init(s->loop, &s->on_socket, s->socket_fd) == 0);
    must(uv_timer_init(s->loop, &s->on_silence) == 0);
    s->handles = 3;
    s->on_pid.data = s;
    s->on_socket.data = s;
    s->on_silence.data = s;
    must(uv_poll_start(&s->on_pid, UV_READABLE, on_pid) == 0);
    must(uv_poll_start(&s->on_socket, UV_READABLE, on_socket) == 0);
}

enum err supervised_new(uv_loop_t *loop, const struct supervised_handlers *handlers, struct supervised **out,
                        struct err_detail *d)
{
    int fds[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) != 0)
        return err_set(d, err_from_errno(errno), "cannot start a supervisor: %s", strerror(errno));
    struct supervised *s = mem_zalloc(1, sizeof *s);
    s->handlers = *handlers;
    s->loop = loop;
    s->socket_fd = fds[0];
    int rc = spawn_self(&s->pid, fds[1]);
    close(fds[1]);
    if (rc == 0) {
        s->pid_fd = pidfd_open(s->pid, 0);
        rc = s->pid_fd < 0 ? errno : 0;
        if (rc != 0) /* closing the socket ends it; nobody else will wait for it */
            (void)waitpid(s->pid, NULL, kill(s->pid, SIGKILL) == 0 ? 0 : WNOHANG);
    }
    if (rc != 0) {
        close(s->socket_fd);
        free(s);
        return err_set(d, err_from_errno(rc), "cannot start a supervisor: %s", strerror(rc));
    }
    init_handles(s);
    *out = s;
    return ERR_OK;
}

static void on_closed(uv_handle_t *handle)
{
    struct supervised *s = handle->data;
    if (--s->handles > 0)
        return;
    close(s->pid_fd);
    close(s->socket_fd);
    void (*cb)(void *arg) = s->close_cb;
    void *arg = s->close_arg;
    free(s);
    cb(arg);
}

void supervised_close(struct supervised **slot, void (*cb)(void *arg), void *arg)
{
    struct supervised *s = *slot;
    *slot = NULL;
    must(s->gone);
    s->close_cb = cb;
    s->close_arg = arg;
    uv_close((uv_handle_t *)&s->on_pid, on_closed);
    uv_close((uv_handle_t *)&s->on_socket, on_closed);
    uv_close((uv_handle_t *)&s->on_silence, on_closed);
}

/* ---- messages out --------------------------------------------------------------------------------- */

enum err supervised_send(struct supervised *s, const struct supervisor_msg *m)
{
    struct buf packet;
    buf_init(&packet, SUPERVISOR_MSG_BYTES_MAX);
    enum err e = supervisor_msg_encode(m, &packet);
    if (e == ERR_OK && send(s->socket_fd, packet.data, packet.len, MSG_DONTWAIT | MSG_NOSIGNAL) < 0) {
        if (errno == EAGAIN || errno == ENOBUFS)
            e = ERR_BUSY;
        else
            e = errno == EMSGSIZE ? ERR_TOO_BIG : ERR_CLOSED;
    }
    buf_fini(&packet);
    return e;
}

void supervised_stop(struct supervised *s, uint64_t grace_ns)
{
    if (s->gone)
        return;
    (void)kill(s->pid, SIGCONT);
    if (supervised_send(s, &(struct supervisor_msg){.type = SUPERVISOR_STOP}) == ERR_OK)
        supervised_expect(s, grace_ns / NS_PER_MS);
    else
        supervised_cut(s);
}

void supervised_cut(struct supervised *s)
{
    if (s->gone)
        return;
    (void)kill(s->pid, SIGCONT); /* somebody may have sent it SIGSTOP, and it has a tree to kill */
    (void)shutdown(s->socket_fd, SHUT_WR);
    supervised_expect(s, 0);
}

void supervised_expect(struct supervised *s, uint64_t ms)
{
    if (s->gone)
        return;
    must(uv_timer_start(&s->on_silence, on_silence, ms + SUPERVISED_SILENCE_MAX_MS, 0) == 0);
}

uint64_t supervised_cpu_ns(const struct supervised *s)
{
    return s->gone ? 0 : clock_cpu_ns(s->pid);
}

pid_t supervised_pid(const struct supervised *s)
{
    return s->pid;
}
