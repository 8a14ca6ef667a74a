#ifndef CONTROLLER_DAEMON_SERVER_H
#define CONTROLLER_DAEMON_SERVER_H
/*
 * The controller on its loop: what agents and operators ask goes to the fleet, the jobs and the worker. Owned
 * by the daemon; everything on the loop's thread.
 */
#include "common/clock.h"
#include "controller/fleet/fleet.h"
#include "controller/job/job_table.h"
#include "controller/store/store_worker.h"
#include "proto/link/link.h"

#define SERVER_CERTIFICATE_NS (UINT64_C(2) * 365 * 86400 * NS_PER_S) /* life of an enrolled certificate */
#define SERVER_BLOB_BYTES     (UINT64_C(16) * 1024 * 1024 * 1024)    /* of operators' files that are kept */

struct server_options { /* borrowed for the server's life */
    uv_loop_t *loop;
    const char *const *addresses;
    size_t address_count;
    const char *state_dir;
    const char *store_path;
    const char *identity_dir;        /* NULL: ipc only */
    const struct identity *identity; /* NULL: ipc only */
    uint64_t lease_ns;
    uint64_t blob_bytes_max; /* 0: SERVER_BLOB_BYTES */
};

struct server;

NODISCARD enum err server_new(const struct server_options *options, struct server **out,
                              struct err_detail *d);
/* Fails what runs with `cause`, closes what agents hold, then everything; `cb` runs when nothing is left. */
void server_close(struct server **server, const char *cause, void (*cb)(void *arg), void *arg);

const char *server_address(const struct server *s, size_t i);

/* Queued jobs of an earlier controller are alive again. */
NODISCARD enum err server_adopt_jobs(struct server *s, struct err_detail *d);

#endif
