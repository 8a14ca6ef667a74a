#include "agent/load/wire_out.h"

#include <linux/tcp.h> /* glibc's struct tcp_info ends before these members */
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

uint64_t wire_out_left(int fd, uint64_t given_bytes)
{
    struct tcp_info info;
    socklen_t len = sizeof info;
    memset(&info, 0, sizeof info);
    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) != 0 ||
        len < offsetof(struct tcp_info, tcpi_bytes_retrans) + sizeof info.tcpi_bytes_retrans)
        return given_bytes;
    uint64_t left = info.tcpi_bytes_sent - info.tcpi_bytes_retrans;
    return left < given_bytes ? left : given_bytes;
}
