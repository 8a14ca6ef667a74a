#include "common/streams.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void streams_init(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) >= 0)
            continue;
        /* Opened for the direction in which nobody uses it, so that its use fails as a closed one's does.
         * open() gives the lowest number that is free, and all below `fd` are taken. */
        int got = open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
        must(got == fd || got < 0);
    }
}

int streams_end(const char *program, int code, int failed)
{
    bool lost = ferror(stdout) != 0;
    errno = 0;
    if (fflush(stdout) == 0 && !lost)
        return code;
    if (code != 0)
        return code; /* the program has said what failed, which matters more than a line that got lost */
    fprintf(stderr, "%s: cannot write to standard output%s%s\n", program, errno != 0 ? ": " : "",
            errno != 0 ? strerror(errno) : "");
    return failed;
}
