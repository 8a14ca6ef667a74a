#include "agent/process/supervisor.h"

#include "agent/process/capture.h"
#include "agent/process/cgroup.h"
#include "agent/process/cull.h"
#include "agent/process/spawn.h"
#include "agent/process/supervisor_msg.h"
#include "common/clock.h"
#include "common/machine.h"
#include "common/mem.h"
#include "common/parse.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

/* Between two passes over a tree that is being killed, should no child's end wake us earlier. */
#define PASS_FIRST_NS (20 * NS_PER_MS)
#define PASS_LAST_NS  (1 * NS_PER_S)
/* A tree that takes this long to die is reported, and again after the same time. */
#define SLOW_NOTE_NS (5 * NS_PER_S)
#define GRACE_MAX_NS (UINT64_C(86400) * NS_PER_S) /* fits poll() */
#define LEAF_WAIT_MS 2000
/* Lines and replies for an agent that does not read; lines beyond are dropped (the log has them). */
#define QUEUE_BYTES_MAX 262144u /* 256 KiB */

#define STATE_LIST(X)                                                                                        \
    X(IDLE)                                                                                                  \
    X(RUNNING)                                                                                               \
    X(STOPPING)                                                                                              \
    X(KILLING)                                                                                               \
    X(GONE)
#define EVENT_LIST(X)                                                                                        \
    X(STARTED)                                                                                               \
    X(REFUSED) /* there is nothing to start */                                                               \
    X(STOP)                                                                                                  \
    X(FIRST_ENDED)                                                                                           \
    X(ALL_ENDED)                                                                                             \
    X(GRACE_OVER)                                                                                            \
    X(CUT)

enum state { STATE_LIST(MACHINE_STATE) STATE_COUNT };

enum event { EVENT_LIST(MACHINE_EVENT) EVENT_COUNT };

struct supervisor {
    enum state state;
    int socket_fd;
    int signal_fd;
    int lease_fd;
    bool readable; /* until the agent ends its side */
    bool writable;
    bool asked;
    bool lapsed;
    bool first_ended;
    pid_t pid;
    int wait_status;
    uint64_t grace_ns;
    uint64_t deadline_ns; /* of the grace or the next pass; 0 = none */
    uint64_t pass_ns;
    uint64_t note_at_ns;
    char *leaf; /* NULL without one */
    struct capture capture;
    struct buf queue; /* packets not sent yet, each after its uint32_t length */
    uint64_t lines_dropped;
    uint32_t left_behind;
};

/* ---- talking to the agent ------------------------------------------------------------------------- */

static void flush_queue(struct supervisor *s)
{
    size_t at = 0;
    while (at < s->queue.len) {
        uint32_t len = 0;
        memcpy(&len, s->queue.data + at, sizeof len);
        const char *packet = s->queue.data + at + sizeof len;
        ssize_t n = s->writable ? send(s->socket_fd, packet, len, MSG_DONTWAIT | MSG_NOSIGNAL) : 0;
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            break;
        if (n < 0)
            s->writable = false; /* the agent is gone: nobody to tell */
        at += sizeof len + len;
    }
    buf_consume(&s->queue, at);
}

static void say(struct supervisor *s, const struct supervisor_msg *m)
{
    struct buf packet;
    buf_init(&packet, SUPERVISOR_REPLY_BYTES_MAX);
    must(supervisor_msg_encode(m, &packet) == ERR_OK);
    uint32_t len = (uint32_t)packet.len;
    bool optional = m->type == SUPERVISOR_LINE || m->type == SUPERVISOR_NOTE;
    if (optional && s->queue.len + sizeof len + len > QUEUE_BYTES_MAX) {
        s->lines_dropped += m->type == SUPERVISOR_LINE;
    } else {
        must(buf_append(&s->queue, &len, sizeof len) == ERR_OK);
        must(buf_append(&s->queue, packet.data, packet.len) == ERR_OK);
    }
    buf_fini(&packet);
    flush_queue(s);
}

PRINTF_LIKE(2, 3) static void note(struct supervisor *s, const char *fmt, ...)
{
    char text[1024];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    say(s, &(struct supervisor_msg){.type = SUPERVISOR_NOTE, .text = text});
}

static void on_line(void *arg, const char *line)
{
    say(arg, &(struct supervisor_msg){.type = SUPERVISOR_LINE, .text = line});
}

static uint64_t time_ns(const struct timeval *tv)
{
    return (uint64_t)tv->tv_sec * NS_PER_S + (uint64_t)tv->tv_usec * NS_PER_US;
}

/* The whole tree is over: the leaf's account, or what all who were waited for had used. */
static uint64_t tree_cpu_ns(const struct supervisor *s)
{
    struct cgroup_counters *c = NULL;
    struct rusage usage;
    uint64_t cpu_ns = 0;
    bool counted = s->leaf != NULL && cgroup_counters_new(s->leaf, &c, NULL) == ERR_OK &&
                   cgroup_counters_cpu(c, &cpu_ns, NULL) == ERR_OK;
    cgroup_counters_free(c);
    if (counted)
        return cpu_ns;
    must(getrusage(RUSAGE_CHILDREN, &usage) == 0);
    return time_ns(&usage.ru_utime) + time_ns(&usage.ru_stime);
}

/* ---- killing -------------------------------------------------------------------------------------- */

static void kill_pass(struct supervisor *s)
{
    uint64_t now_ns = clock_now_ns();
    if (s->leaf != NULL)
        cgroup_leaf_kill(s->leaf);
    cull_children();
    (void)cull_descendants(NULL);
    s->deadline_ns = now_ns + s->pass_ns;
    s->pass_ns = 2 * s->pass_ns < PASS_LAST_NS ? 2 * s->pass_ns : PASS_LAST_NS;
    if (now_ns >= s->note_at_ns) {
        char who[512];
        cull_describe(who, sizeof who);
        note(s, "killed but not dead yet: %s", who);
        s->note_at_ns = now_ns + SLOW_NOTE_NS;
    }
}

/* ---- states --------------------------------------------------------------------------------------- */

static enum state do_run(struct supervisor *s)
{
    (void)s;
    return STATE_RUNNING;
}

static enum state do_stop(struct supervisor *s)
{
    s->asked = true;
    if (kill(-s->pid, SIGTERM) != 0)
        (void)kill(s->pid, SIGTERM);
    (void)kill(-s->pid, SIGCONT); /* a stopped process obeys only when it goes on */
    s->deadline_ns = clock_now_ns() + s->grace_ns;
    return STATE_STOPPING;
}

static enum state do_kill(struct supervisor *s)
{
    s->pass_ns = PASS_FIRST_NS;
    s->note_at_ns = clock_now_ns() + SLOW_NOTE_NS;
    kill_pass(s);
    return STATE_KILLING;
}

/* It ended by itself: whoever it left running would have lived on, and the user should hear of that. */
static enum state do_kill_left(struct supervisor *s)
{
    s->left_behind = (uint32_t)cull_descendants(NULL);
    return do_kill(s);
}

static enum state do_pass(struct supervisor *s)
{
    kill_pass(s);
    return STATE_KILLING;
}

static enum state do_report(struct supervisor *s)
{
    s->deadline_ns = 0;
    /* A member of the leaf that does not descend from us came in by its own means; it goes all the same. */
    if (s->leaf != NULL && cgroup_leaf_populated(s->leaf)) {
        cgroup_leaf_kill(s->leaf);
        cgroup_leaf_wait_empty(s->leaf, LEAF_WAIT_MS);
    }
    capture_drain(&s->capture);
    if (s->lines_dropped > 0)
        note(s, "%" PRIu64 " lines were not passed on, the agent read too slowly", s->lines_dropped);
    int failed = s->capture.log.failed_errno != 0 ? s->capture.log.failed_errno : s->capture.out.failed_errno;
    if (failed != 0)
        note(s, "output of %" PRIu64 " bytes was lost: %s", s->capture.log.lost + s->capture.out.lost,
             strerror(failed));
    bool signalled = WIFSIGNALED(s->wait_status);
    struct supervisor_msg m = {
        .type = SUPERVISOR_EXITED,
        .status = signalled ? -1 : WEXITSTATUS(s->wait_status),
        .signal = signalled ? WTERMSIG(s->wait_status) : 0,
        .asked = s->asked,
        .lapsed = s->lapsed,
        .cpu_ns = tree_cpu_ns(s),
        .own_cpu_ns = clock_cpu_ns(0),
        .log_lost_bytes = s->capture.log.lost,
        .out_lost_bytes = s->capture.out.lost,
        .left_behind = s->left_behind,
    };
    struct err_detail d;
    if (s->leaf != NULL && cgroup_leaf_remove(s->leaf, &d) != ERR_OK)
        note(s, "%s", d.text);
    say(s, &m);
    return STATE_GONE;
}

static enum state do_leave(struct supervisor *s)
{
    (void)s;
    return STATE_GONE;
}

static enum state keep(struct supervisor *s)
{
    return s->state;
}

/* What each event does in each state; an empty cell cannot happen. */
static enum state (*const table[STATE_COUNT][EVENT_COUNT])(struct supervisor *) = {
    [STATE_IDLE] = {ON(STARTED, do_run), ON(REFUSED, do_leave), ON(STOP, keep), ON(CUT, do_leave)},
    [STATE_RUNNING] = {ON(STOP, do_stop), ON(FIRST_ENDED, do_kill_left), ON(CUT, do_kill)},
    /* When the first process has obeyed, the others still have the rest of the grace. */
    [STATE_STOPPING] = {ON(STOP, keep), ON(FIRST_ENDED, keep), ON(ALL_ENDED, do_report),
                        ON(GRACE_OVER, do_kill), ON(CUT, do_kill)},
    [STATE_KILLING] = {ON(STOP, keep), ON(FIRST_ENDED, keep), ON(ALL_ENDED, do_report),
                       ON(GRACE_OVER, do_pass), ON(CUT, keep)},
    [STATE_GONE] = {ON(STOP, keep), ON(CUT, keep)},
};

bool supervisor_permits(unsigned state, unsigned event)
{
    return state < STATE_COUNT && event < EVENT_COUNT && table[state][event] != NULL;
}

/* Not traced: a supervisor has no log. */
static void handle(struct supervisor *s, enum event event)
{
    must(supervisor_permits(s->state, event));
    s->state = table[s->state][event](s);
}

/* ---- events --------------------------------------------------------------------------------------- */

static void set_lease(struct supervisor *s, uint64_t until_ns)
{
    /* 0 would switch the timer off. A moment that has passed makes it expire at once. */
    uint64_t at_ns = until_ns > 0 ? until_ns : 1;
    struct itimerspec spec = {
        .it_value = {.tv_sec = (time_t)(at_ns / NS_PER_S), .tv_nsec = (long)(at_ns % NS_PER_S)}};
    must(timerfd_settime(s->lease_fd, TFD_TIMER_ABSTIME, &spec, NULL) == 0);
}

static enum err start(struct supervisor *s, const struct supervisor_msg *m, struct spawn_result *result,
                      struct err_detail *d)
{
    cpu_set_t cpus;
    struct capture_options options = {
        .log_path = m->log_path,
        .out_path = m->out_path,
        .out_bytes_max = m->out_bytes_max,
        .lines = m->lines,
        .on_line = on_line,
        .arg = s,
    };
    enum err e = m->cpus[0] != '\0' ? parse_cpus(m->cpus, &cpus, "cpus", d) : ERR_OK;
    if (e == ERR_OK)
        e = capture_init(&s->capture, &options, d);
    if (e != ERR_OK)
        return e;
    struct spawn_options spawn = {
        .argv = m->argv,
        .env = m->env,
        .dir = m->dir,
        .cpus = m->cpus[0] != '\0' ? &cpus : NULL,
        .leaf = m->leaf[0] != '\0' ? m->leaf : NULL,
        .out_fd = s->capture.write_fds[CAPTURE_OUT],
        .err_fd = s->capture.write_fds[CAPTURE_ERR],
    };
    e = spawn_program(&spawn, result, d);
    if (e != ERR_OK)
        capture_fini(&s->capture);
    else
        capture_started(&s->capture);
    return e;
}

static void on_start(struct supervisor *s, const struct supervisor_msg *m)
{
    struct spawn_result result;
    struct err_detail d = {""};
    set_lease(s, m->lease_until_ns);
    s->grace_ns = m->grace_ns < GRACE_MAX_NS ? m->grace_ns : GRACE_MAX_NS;
    enum err e = start(s, m, &result, &d);
    bool in_leaf = e == ERR_OK && result.in_leaf;
    struct err_detail leaf_detail;
    if (m->leaf[0] != '\0' && !in_leaf && cgroup_leaf_remove(m->leaf, &leaf_detail) != ERR_OK)
        note(s, "%s", leaf_detail.text);
    handle(s, e == ERR_OK ? EVENT_STARTED : EVENT_REFUSED);
    if (e != ERR_OK) {
        say(s, &(struct supervisor_msg){.type = SUPERVISOR_REFUSED, .error = e, .text = d.text});
        return;
    }
    if (in_leaf)
        s->leaf = mem_strdup(m->leaf);
    s->pid = result.pid;
    say(s, &(struct supervisor_msg){.type = SUPERVISOR_STARTED,
                                    .pid = result.pid,
                                    .spawned_at_ns = result.spawned_at_ns,
                                    .in_leaf = in_leaf});
}

static void on_message(struct supervisor *s, const char *data, size_t len)
{
    struct supervisor_msg m;
    if (supervisor_msg_decode(data, len, &m) != ERR_OK) {
        s->readable = false; /* no agent speaks so: as if it were lost */
        handle(s, EVENT_CUT);
        return;
    }
    if (m.type == SUPERVISOR_RENEW)
        set_lease(s, m.lease_until_ns);
    else if (m.type == SUPERVISOR_STOP)
        handle(s, EVENT_STOP);
    else if (m.type == SUPERVISOR_START && s->state == STATE_IDLE && m.argv[0] != NULL)
        on_start(s, &m);
    supervisor_msg_fini(&m);
}

static void on_socket(struct supervisor *s)
{
    static char data[SUPERVISOR_MSG_BYTES_MAX]; /* there is one supervisor in a process */
    ssize_t n = recv(s->socket_fd, data, sizeof data, MSG_DONTWAIT);
    if (n > 0) {
        on_message(s, data, (size_t)n);
    } else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
        s->readable = false;
        handle(s, EVENT_CUT);
    }
}

static void on_child(struct supervisor *s)
{
    struct signalfd_siginfo info[16];
    ssize_t ignored = read(s->signal_fd, info, sizeof info); /* one signal may stand for many children */
    (void)ignored;
    for (;;) {
        int status = 0;
        pid_t pid = waitpid(-1, &status, WNOHANG);
        if (pid == 0 || (pid < 0 && errno != ECHILD))
            break;
        if (pid < 0) {
            if (s->state == STATE_STOPPING || s->state == STATE_KILLING)
                handle(s, EVENT_ALL_ENDED);
            return;
        }
        if (pid == s->pid && !s->first_ended) {
            s->wait_status = status;
            s->first_ended = true;
            handle(s, EVENT_FIRST_ENDED);
        }
    }
    if (s->state == STATE_KILLING)
        cull_children();
}

static void on_lease(struct supervisor *s)
{
    uint64_t expirations = 0;
    if (read(s->lease_fd, &expirations, sizeof expirations) != sizeof expirations)
        return; /* renewed in between */
    s->lapsed = true;
    handle(s, EVENT_CUT);
}

/* ---- life ----------------------------------------------------------------------------------------- */

static void run(struct supervisor *s)
{
    while (s->state != STATE_GONE || s->queue.len > 0) {
        bool waiting = s->queue.len > 0;
        struct pollfd fds[] = {
            /* Once there is nothing to read or write, its end must not wake us again and again. */
            {.fd = s->readable || waiting ? s->socket_fd : -1,
             .events = (short)((s->readable ? POLLIN : 0) | (waiting ? POLLOUT : 0))},
            {.fd = s->signal_fd, .events = POLLIN},
            {.fd = s->lease_fd, .events = POLLIN},
            {.fd = s->capture.read_fds[CAPTURE_OUT], .events = POLLIN},
            {.fd = s->capture.read_fds[CAPTURE_ERR], .events = POLLIN},
        };
        uint64_t now_ns = clock_now_ns();
        uint64_t wait_ns = s->deadline_ns > now_ns ? s->deadline_ns - now_ns : 0;
        int timeout_ms = s->deadline_ns == 0 ? -1 : (int)((wait_ns + NS_PER_MS - 1) / NS_PER_MS);
        if (poll(fds, ARRAY_LEN(fds), timeout_ms) < 0)
            must(errno == EINTR);
        if (waiting && fds[0].revents != 0)
            flush_queue(s);
        if (s->readable && (fds[0].revents & (POLLIN | POLLHUP | POLLERR)) != 0)
            on_socket(s);
        if (fds[3].revents != 0)
            capture_read(&s->capture, CAPTURE_OUT);
        if (fds[4].revents != 0)
            capture_read(&s->capture, CAPTURE_ERR);
        if (fds[1].revents != 0)
            on_child(s);
        if (fds[2].revents != 0)
            on_lease(s);
        if (s->deadline_ns != 0 && clock_now_ns() >= s->deadline_ns)
            handle(s, EVENT_GRACE_OVER);
    }
}

/* Only the agent, or the end of its socket, ends this process: no terminal, and not kill(1). */
static bool setup(struct supervisor *s, int fd)
{
    static const int ignored[] = {SIGTERM, SIGINT,  SIGHUP,  SIGQUIT, SIGPIPE,
                                  SIGXFSZ, SIGUSR1, SIGUSR2, SIGTSTP};
    sigset_t mask;
    for (size_t i = 0; i < ARRAY_LEN(ignored); i++)
        (void)signal(ignored[i], SIG_IGN);
    sigemptyset(&mask);
    sigaddset(&mask, SIGCHLD);
    *s = (struct supervisor){
        .socket_fd = fd,
        .readable = true,
        .writable = true,
        .capture = {.log.fd = -1, .out.fd = -1, .read_fds = {-1, -1}, .write_fds = {-1, -1}},
    };
    buf_init(&s->queue, (size_t)2 * QUEUE_BYTES_MAX);
    if (prctl(PR_SET_CHILD_SUBREAPER, 1) != 0 || sigprocmask(SIG_BLOCK, &mask, NULL) != 0 ||
        fcntl(fd, F_SETFD, FD_CLOEXEC) != 0)
        return false;
    (void)prctl(PR_SET_NAME, SUPERVISOR_NAME);
    s->signal_fd = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
    s->lease_fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    return s->signal_fd >= 0 && s->lease_fd >= 0;
}

bool supervisor_main(int argc, char **argv, int *exit_code)
{
    uint64_t fd = 0;
    struct supervisor s;
    struct err_detail d;
    if (argc != 3 || strcmp(argv[1], SUPERVISOR_OPTION) != 0)
        return false;
    *exit_code = 2;
    if (parse_u64(argv[2], 3, 1024, &fd, SUPERVISOR_OPTION, &d) != ERR_OK || !setup(&s, (int)fd)) {
        fprintf(stderr, "%s: only the agent starts its supervisors\n", argv[0]);
        return true;
    }
    run(&s);
    capture_fini(&s.capture);
    buf_fini(&s.queue);
    free(s.leaf);
    close(s.signal_fd);
    close(s.lease_fd);
    close(s.socket_fd);
    *exit_code = 0;
    return true;
}
