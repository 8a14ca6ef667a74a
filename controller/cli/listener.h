#ifndef CONTROLLER_CLI_LISTENER_H
#define CONTROLLER_CLI_LISTENER_H
/*
 * Who listens at an ipc address of this machine, and whether it runs at all: for the words of an error, when
 * a controller does not answer. Main thread only.
 */
#include "common/base.h"

#include <sys/types.h>

struct listener {
    pid_t pid;    /* 0 = not to be seen from here */
    bool stopped; /* by a signal, or a debugger */
};

/* False when nobody listens there, or `address` is not "ipc://PATH". */
bool listener_find(const char *address, struct listener *out);

#endif
