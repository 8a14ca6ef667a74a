#ifndef AGENT_LOAD_WIRE_OUT_H
#define AGENT_LOAD_WIRE_OUT_H
/*
 * How much of what a socket was given has left this host. The kernel takes megabytes for a peer that reads
 * none of them: what it took is not what left. No state.
 */
#include "common/base.h"

/* Bytes that TCP has sent on this connection, each once however often (tcpi_bytes_sent less
 * tcpi_bytes_retrans, where the length of what the kernel gives reaches them). `given_bytes` where that is
 * not known: other sockets, older kernels. */
uint64_t wire_out_left(int fd, uint64_t given_bytes);

#endif
