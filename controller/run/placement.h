#ifndef CONTROLLER_RUN_PLACEMENT_H
#define CONTROLLER_RUN_PLACEMENT_H
/*
 * Which CPUs server and generators get, and what that makes of the measurement: split-hosts, split-cpus or
 * shared. Pure but for placement_read_cores. Any thread.
 */
#include "controller/store/store.h"

#include <sched.h>

#define PLACEMENT_CPUS_BYTES  512u
#define PLACEMENT_THREADS_MAX 64u

/* Which CPUs belong to one core: siblings should not be split between server and generator. */
struct placement_cores {
    uint16_t core_of[CPU_SETSIZE]; /* number of the first CPU of its core */
};

/* From SYS_ROOT/devices/system/cpu; a CPU that says nothing is a core of its own. */
void placement_read_cores(const char *sys_root, struct placement_cores *out);
/* Nothing known: every CPU is a core. */
void placement_plain_cores(struct placement_cores *out);

struct placement_seat {              /* of the server, or of one generator */
    char cpus[PLACEMENT_CPUS_BYTES]; /* "" = not pinned */
    uint32_t cpu_count;              /* it may use */
};

struct placement {
    enum store_placement kind;
    struct placement_seat server;
    struct placement_seat load[LIMIT_HOSTS_PER_ROLE];
};

/* `target_cpus` is the experiment's word for the server, or NULL. `cores` is NULL when not known. ERR_INVALID
 * when a CPU list is none, or the target names CPUs that its agent may not use. */
NODISCARD enum err placement_make(const struct msg_host *server, const struct msg_host *const *load,
                                  size_t load_count, const char *target_cpus,
                                  const struct placement_cores *cores, struct placement *out,
                                  struct err_detail *d);

/* Generator threads: as the workload says, or one per CPU, no more than connections. */
uint32_t placement_threads(uint32_t wanted, uint32_t connections, uint32_t cpus);

/* Whether two hosts are one machine. */
bool placement_same_machine(const struct msg_host *a, const struct msg_host *b);

#endif
