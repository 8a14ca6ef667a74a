#include "proto/link/nng_faults/faults.h"

#if NNG_FAULT_GREETING_ENDS_LISTENER

#include "common/base.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

/*
 * Stands before libc's sendmsg for the whole program, so for nng too. When a peer is gone before nng has sent
 * its greeting, the kernel says EPIPE, of which nng makes NNG_ECLOSED. ECONNRESET means the same to everybody
 * else, and nng goes on listening. tests/unit/test_strangers.c has the peers that do this.
 */
ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
    long n = syscall(SYS_sendmsg, fd, message, flags);
    if (n < 0 && errno == EPIPE)
        errno = ECONNRESET;
    return (ssize_t)n;
}

#endif
