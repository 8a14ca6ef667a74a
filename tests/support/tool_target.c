/*
 * tool_target PORT [DELAY_MS]: a small HTTP server on 127.0.0.1 for tests. Answers every request with "Hi"
 * and keeps connections open. With DELAY_MS it begins to listen only then.
 */
#include "common/base.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#define PEERS_MAX 256

static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\nHi";

/* One request a segment is all that the tests send. False: the connection is over. */
static bool serve(int fd)
{
    char request[4096];
    ssize_t n = read(fd, request, sizeof request);
    if (n < 4 || memcmp(request + n - 4, "\r\n\r\n", 4) != 0)
        return false;
    return write(fd, answer, sizeof answer - 1) == (ssize_t)sizeof answer - 1;
}

static int listen_on(uint16_t port)
{
    int one = 1;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in at = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) != 0 ||
        bind(fd, (const struct sockaddr *)&at, sizeof at) != 0 || listen(fd, 128) != 0) {
        perror("tool_target");
        exit(1);
    }
    return fd;
}

int main(int argc, char **argv)
{
    if (argc < 2)
        return 2;
    if (argc > 2)
        poll(NULL, 0, (int)strtol(argv[2], NULL, 10));
    struct pollfd fds[1 + PEERS_MAX] = {
        {.fd = listen_on((uint16_t)strtol(argv[1], NULL, 10)), .events = POLLIN}};
    nfds_t count = 1;
    printf("listening on %s\n", argv[1]);
    fflush(stdout);
    while (poll(fds, count, -1) >= 0 || errno == EINTR) {
        for (nfds_t i = count; i-- > 1;) {
            if (fds[i].revents == 0 || serve(fds[i].fd))
                continue;
            close(fds[i].fd);
            fds[i] = fds[--count];
        }
        if ((fds[0].revents & POLLIN) != 0 && count <= PEERS_MAX)
            fds[count++] = (struct pollfd){.fd = accept(fds[0].fd, NULL, NULL), .events = POLLIN};
    }
    return 1;
}
