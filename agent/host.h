#ifndef AGENT_HOST_H
#define AGENT_HOST_H
/*
 * What this machine is, read once at the start and told in every HELLO: name, boot, kernel, system,
 * processor, usable CPUs, memory, the libraries that run here. No state; the main thread.
 */
#include "proto/msg/msg.h"

/* Fills all of `out` but labels and address, from ROOT/proc, ROOT/etc and ROOT/sys ("" = the real ones; a
 * recorded tree in tests) and from this process's CPU affinity. A fact that cannot be read is "" or 0, never
 * a guess; only an unreadable boot id is ERR_IO, because placement (one machine or two) is judged by it. The
 * caller frees with msg_host_fini, also after a failure. */
NODISCARD enum err host_read(const char *root, struct msg_host *out, struct err_detail *d);

/* "hardware=i7-13700k": a key of letters, digits, '-', '_', '.', and a value without control characters.
 * ERR_EXISTS when the key is there already. */
NODISCARD enum err host_add_label(struct msg_host *host, const char *label, struct err_detail *d);

#endif
