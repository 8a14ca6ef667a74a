#ifndef CONTROLLER_DAEMON_DAEMON_H
#define CONTROLLER_DAEMON_DAEMON_H
/*
 * The controller as a process: one state directory, one lock, one loop, from the start to the signal that
 * ends it. Called by main(); blocks.
 */
#include "common/clock.h"
#include "common/err.h"

#define DAEMON_LEASE_MIN_NS (1 * NS_PER_S)
#define DAEMON_LEASE_MAX_NS (600 * NS_PER_S)

struct daemon_options {
    const char *state_dir;        /* made when missing, 0700; one controller at a time */
    const char *const *addresses; /* "ipc:///run/...", "tls+tcp://[::]:7411" */
    size_t address_count;
    const char *identity_dir; /* NULL: ipc only */
    bool leash;               /* end when standard input does: a parent owns us */
    uint64_t lease_ns;        /* DAEMON_LEASE_MIN_NS to DAEMON_LEASE_MAX_NS */
    /* Listening: the addresses as bound, port 0 replaced. May be NULL. */
    void (*on_ready)(void *arg, const char *const *addresses, size_t count);
    void *arg;
};

/* STATE/store.db; the caller frees. */
char *daemon_store_path(const char *state_dir);

/* ERR_OK after SIGTERM, SIGINT or the end of the leash, when everything is closed. ERR_BUSY: another
 * controller has the state directory or an address. */
NODISCARD enum err daemon_run(const struct daemon_options *options, struct err_detail *d);

#endif
