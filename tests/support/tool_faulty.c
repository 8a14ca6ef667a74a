/*
 * A server that does what the path says, for tests of the load generator:
 *     /ok /chunked /interim /eof /close /head100 /empty    proper answers
 *     /delay/MS                                             a proper answer, that much later
 *     /short /shortchunk /reset /closed /garbage /surplus   broken ones
 *     /hang                                                 none
 *     /after/N                                              proper ones, then the connection ends unannounced
 *     /count                                                how many requests came, this kind not counted
 * usage: tool_faulty [--stall STALL_MS PERIOD_MS] [--unix PATH]; prints "port N base NS" and serves until
 * killed. With --stall the whole server stands still for STALL_MS at the start of each period, counted from
 * `base`.
 */
#include "common/buf.h"
#include "common/clock.h"
#include "common/mem.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define REQUEST_BYTES_MAX (17u * 1024u * 1024u)
#define EVENTS            256

struct client {
    int fd;
    struct buf in;
    uint64_t answered;
    uint64_t due_ns; /* of a delayed answer; 0: none */
    struct client *next;
};

static struct client *clients;
static uint64_t request_count;
static int epoll;

static void drop(struct client *c)
{
    struct client **at = &clients;
    while (*at != c)
        at = &(*at)->next;
    *at = c->next;
    close(c->fd);
    buf_fini(&c->in);
    free(c);
}

static void drop_with_reset(struct client *c)
{
    struct linger hard = {.l_onoff = 1, .l_linger = 0};
    (void)setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
    drop(c);
}

/* Small answers to a peer that reads: the socket takes them whole. */
static void say(struct client *c, const char *text)
{
    size_t len = strlen(text);
    must(send(c->fd, text, len, MSG_NOSIGNAL) == (ssize_t)len || errno == EPIPE || errno == ECONNRESET);
    c->answered++;
}

#define HEAD "HTTP/1.1 200 OK\r\n"

static const struct {
    const char *path;
    const char *answer;
    enum { KEEP, CLOSE, RESET } then;
} scripts[] = {
    {"/ok", HEAD "Content-Length: 2\r\n\r\nok", KEEP},
    {"/chunked", HEAD "Transfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n4\r\ndefg\r\n0\r\nX-End: 1\r\n\r\n",
     KEEP},
    {"/interim", "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" HEAD "Content-Length: 2\r\n\r\nok", KEEP},
    {"/eof", HEAD "\r\nuntil the end", CLOSE},
    {"/close", HEAD "Connection: close\r\nContent-Length: 2\r\n\r\nok", CLOSE},
    {"/head100", HEAD "Content-Length: 100\r\n\r\n", KEEP}, /* to be asked for with HEAD */
    {"/empty", "HTTP/1.1 204 No Content\r\n\r\n", KEEP},
    {"/short", HEAD "Content-Length: 100\r\n\r\nnot so many", CLOSE},
    {"/shortchunk", HEAD "Transfer-Encoding: chunked\r\n\r\n64\r\nnot so many", CLOSE},
    {"/reset", "", RESET},
    {"/closed", "", CLOSE},
    {"/garbage", "220 mail ready\r\n\r\n", KEEP},
    {"/surplus", HEAD "Content-Length: 2\r\n\r\nok and more", KEEP},
};

static void answer(struct client *c, const char *path)
{
    for (size_t i = 0; i < ARRAY_LEN(scripts); i++) {
        if (strcmp(path, scripts[i].path) != 0)
            continue;
        if (scripts[i].answer[0] != '\0')
            say(c, scripts[i].answer);
        if (scripts[i].then == CLOSE)
            drop(c);
        else if (scripts[i].then == RESET)
            drop_with_reset(c);
        return;
    }
    if (strncmp(path, "/delay/", 7) == 0) {
        c->due_ns = clock_now_ns() + strtoull(path + 7, NULL, 10) * NS_PER_MS;
    } else if (strncmp(path, "/after/", 7) == 0) {
        say(c, scripts[0].answer);
        if (c->answered >= strtoull(path + 7, NULL, 10))
            drop(c);
    } else if (strcmp(path, "/count") == 0) {
        char text[128];
        char number[24];
        int n = snprintf(number, sizeof number, "%llu", (unsigned long long)--request_count);
        snprintf(text, sizeof text, HEAD "Content-Length: %d\r\n\r\n%s", n, number);
        say(c, text);
    } else if (strcmp(path, "/hang") != 0) {
        say(c, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
    }
}

/* The length of the whole request at the start of the buffer, 0 when it is not whole. */
static size_t request_len(const struct buf *b)
{
    const char *end = b->len != 0 ? memmem(b->data, b->len, "\r\n\r\n", 4) : NULL;
    if (end == NULL)
        return 0;
    size_t head = (size_t)(end + 4 - b->data);
    const char *length = memmem(b->data, head, "Content-Length: ", 16);
    size_t body = length != NULL ? strtoull(length + 16, NULL, 10) : 0;
    return b->len >= head + body ? head + body : 0;
}

static void on_readable(struct client *c)
{
    static char data[256 * 1024];
    ssize_t n = recv(c->fd, data, sizeof data, 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        drop(c);
        return;
    }
    must(buf_append(&c->in, data, (size_t)n) == ERR_OK);
    size_t len = request_len(&c->in);
    if (len == 0)
        return;
    char path[256];
    must(sscanf(c->in.data, "%*s %255s", path) == 1);
    buf_consume(&c->in, len);
    request_count++;
    answer(c, path);
}

static void accept_all(int listener)
{
    int fd;
    while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
        int on = 1;
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        struct client *c = mem_zalloc(1, sizeof *c);
        c->fd = fd;
        buf_init(&c->in, REQUEST_BYTES_MAX);
        c->next = clients;
        clients = c;
        struct epoll_event e = {.events = EPOLLIN, .data.ptr = c};
        must(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &e) == 0);
    }
}

/* Sends the delayed answers that are due; returns when the next one is, UINT64_MAX for none. */
static uint64_t send_due(void)
{
    uint64_t next = UINT64_MAX;
    for (struct client *c = clients; c != NULL; c = c->next) {
        if (c->due_ns != 0 && c->due_ns <= clock_now_ns()) {
            c->due_ns = 0;
            say(c, scripts[0].answer);
        }
        if (c->due_ns != 0 && c->due_ns < next)
            next = c->due_ns;
    }
    return next;
}

static void stand_still(uint64_t base_ns, uint64_t stall_ns, uint64_t period_ns)
{
    if (period_ns == 0)
        return;
    uint64_t now = clock_now_ns();
    uint64_t into = (now - base_ns) % period_ns;
    if (into >= stall_ns)
        return;
    uint64_t until = now + (stall_ns - into);
    struct timespec ts = {.tv_sec = (time_t)(until / NS_PER_S), .tv_nsec = (long)(until % NS_PER_S)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL) == EINTR)
        ;
}

static int listen_on(const char *unix_path, unsigned *port)
{
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    struct sockaddr *at = (struct sockaddr *)&in;
    socklen_t len = sizeof in;
    if (unix_path != NULL) {
        snprintf(un.sun_path, sizeof un.sun_path, "%s", unix_path);
        at = (struct sockaddr *)&un;
        len = sizeof un;
    }
    int fd = socket(at->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    must(fd >= 0 && bind(fd, at, len) == 0 && listen(fd, 4096) == 0);
    len = sizeof in;
    must(unix_path != NULL || getsockname(fd, (struct sockaddr *)&in, &len) == 0);
    *port = ntohs(in.sin_port);
    return fd;
}

int main(int argc, char **argv)
{
    uint64_t stall_ns = 0;
    uint64_t period_ns = 0;
    const char *unix_path = NULL;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--stall") == 0 && i + 2 < argc) {
            stall_ns = strtoull(argv[++i], NULL, 10) * NS_PER_MS;
            period_ns = strtoull(argv[++i], NULL, 10) * NS_PER_MS;
        } else if (strcmp(argv[i], "--unix") == 0 && i + 1 < argc) {
            unix_path = argv[++i];
        }
    }
    unsigned port = 0;
    int listener = listen_on(unix_path, &port);
    epoll = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event e = {.events = EPOLLIN};
    must(epoll >= 0 && epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &e) == 0);
    uint64_t base_ns = clock_now_ns();
    printf("port %u base %llu\n", port, (unsigned long long)base_ns);
    fflush(stdout);
    for (;;) {
        uint64_t due_ns = send_due();
        uint64_t now = clock_now_ns();
        uint64_t left = due_ns == UINT64_MAX ? NS_PER_S : due_ns > now ? due_ns - now : 0;
        struct timespec ts = {.tv_sec = (time_t)(left / NS_PER_S), .tv_nsec = (long)(left % NS_PER_S)};
        struct epoll_event events[EVENTS];
        int n = epoll_pwait2(epoll, events, period_ns != 0 ? 1 : EVENTS, &ts, NULL);
        stand_still(base_ns, stall_ns, period_ns);
        for (int i = 0; i < n; i++) {
            if (events[i].data.ptr == NULL)
                accept_all(listener);
            else
                on_readable(events[i].data.ptr);
        }
    }
}
