#ifndef AGENT_LOAD_TARGET_H
#define AGENT_LOAD_TARGET_H
/*
 * Where the load goes: a URL in its parts, and the addresses behind its name. Owned by main; read by every
 * worker, changed by none after target_resolve.
 */
#include "common/err.h"

#include <sys/socket.h>

#define TARGET_URL_BYTES_MAX 8192u
#define TARGET_HOST_BYTES    256u
#define TARGET_ADDRESSES_MAX 16u

struct target_address {
    struct sockaddr_storage addr;
    socklen_t len;
};

struct target {
    char *url;                              /* as given */
    bool tls;                               /* https */
    char host[TARGET_HOST_BYTES];           /* without brackets */
    char authority[TARGET_HOST_BYTES + 16]; /* for the Host header: brackets and port where needed */
    uint16_t port;
    char *path;        /* path and query; "/" when the URL has none */
    char *unix_socket; /* NULL for TCP */
    struct target_address addresses[TARGET_ADDRESSES_MAX];
    size_t address_count;
};

/* Reads http://host[:port][/path] and https://... User names, fragments, blanks and control bytes are
 * refused. `unix_socket` may be NULL; it replaces the address, not the Host header. */
NODISCARD enum err target_parse(struct target *t, const char *url, const char *unix_socket,
                                struct err_detail *d);
void target_fini(struct target *t);

/* Fills the addresses. A name with several is tried out once, and those that do not answer are dropped, so
 * that a name for both IPv6 and IPv4 works when the server listens on one of them.
 * ERR_NOT_FOUND for an unknown name. Blocks (name service), at most `timeout_ns` for each address tried. */
NODISCARD enum err target_resolve(struct target *t, uint64_t timeout_ns, struct err_detail *d);

/* A numeric IPv4 or IPv6 address without a port. */
NODISCARD enum err target_parse_source(struct target_address *a, const char *text, struct err_detail *d);

#endif
