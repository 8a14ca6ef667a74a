#ifndef COMMON_ADDRESS_H
#define COMMON_ADDRESS_H
/*
 * Where a controller listens, as people write it. No state; any thread.
 */
#include "common/err.h"

#define ADDRESS_PORT "7411" /* of an address given without one */

/* "lab1" or "10.0.0.1:7411" to "tls+tcp://lab1:7411", "/run/x" to "ipc:///run/x"; a text with "://" must be
 * one of these two schemes. The caller frees `*out`; ERR_INVALID says what is wrong. */
NODISCARD enum err address_parse(const char *text, char **out, struct err_detail *d);

/* Letters that a host's name or address is made of, and not more than a DNS name has. */
bool address_is_host(const char *s, size_t len);

#endif
