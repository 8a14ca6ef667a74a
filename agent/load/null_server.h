#ifndef AGENT_LOAD_NULL_SERVER_H
#define AGENT_LOAD_NULL_SERVER_H
/*
 * The cheapest HTTP server there is: answers everything with the same small response. What is measured
 * against it is the generator, the kernel and the host. A child process, ended with its parent. Main's
 * thread, before any other thread is started.
 */
#include "common/err.h"

#include <sys/types.h>

struct null_server {
    pid_t pid; /* 0: none */
    uint16_t port;
};

/* Listens on 127.0.0.1, on a free port. */
NODISCARD enum err null_server_start(struct null_server *s, struct err_detail *d);
void null_server_stop(struct null_server *s);

#endif
