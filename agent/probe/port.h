#ifndef AGENT_PROBE_PORT_H
#define AGENT_PROBE_PORT_H
/*
 * Whether a TCP port of this host is free to be listened on, and who holds it when it is not: a server that
 * is already there would be measured in place of ours. Reads /proc; no state; any thread.
 */
#include "common/err.h"

/* ERR_BUSY names the port and, where /proc tells, the process. A listener on any address counts, and whatever
 * else would keep a server from having it on every address; connections that are over do not. */
NODISCARD enum err port_check_free(uint16_t port, struct err_detail *d);

#endif
