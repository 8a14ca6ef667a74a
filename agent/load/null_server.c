#include "agent/load/null_server.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define BACKLOG      4096
#define EVENTS       512
#define REQUEST_READ (64u * 1024u)

static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

static void accept_all(int listener, int epoll)
{
    int fd;
    while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
        int on = 1;
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        struct epoll_event e = {.events = EPOLLIN, .data.fd = fd};
        if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &e) != 0)
            close(fd);
    }
}

/* One answer per end of a head: the requests of a calibration have no body and come whole. */
static void serve_once(int fd)
{
    static char request[REQUEST_READ];
    ssize_t n = recv(fd, request, sizeof request, 0);
    if (n >= 4 && memcmp(request + n - 4, "\r\n\r\n", 4) == 0)
        n = send(fd, answer, sizeof answer - 1, MSG_NOSIGNAL);
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
        close(fd);
}

NORETURN static void serve(int listener)
{
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event e = {.events = EPOLLIN, .data.fd = listener};
    if (epoll < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &e) != 0)
        _exit(1);
    for (;;) {
        struct epoll_event events[EVENTS];
        int n = epoll_wait(epoll, events, EVENTS, -1);
        for (int i = 0; i < n; i++) {
            if (events[i].data.fd == listener)
                accept_all(listener, epoll);
            else
                serve_once(events[i].data.fd);
        }
    }
}

enum err null_server_start(struct null_server *s, struct err_detail *d)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof at;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    *s = (struct null_server){0};
    if (listener < 0 || bind(listener, (struct sockaddr *)&at, len) != 0 || listen(listener, BACKLOG) != 0 ||
        getsockname(listener, (struct sockaddr *)&at, &len) != 0) {
        enum err e = err_set(d, err_from_errno(errno), "--calibrate: cannot listen: %s", strerror(errno));
        if (listener >= 0)
            close(listener);
        return e;
    }
    pid_t parent = getpid();
    pid_t pid = fork();
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() == parent)
            serve(listener);
        _exit(1);
    }
    close(listener);
    if (pid < 0)
        return err_set(d, err_from_errno(errno), "--calibrate: cannot fork: %s", strerror(errno));
    s->pid = pid;
    s->port = ntohs(at.sin_port);
    return ERR_OK;
}

void null_server_stop(struct null_server *s)
{
    if (s->pid == 0)
        return;
    (void)kill(s->pid, SIGKILL);
    (void)waitpid(s->pid, NULL, 0);
    s->pid = 0;
}
