#include "controller/run/placement.h"

#include "common/file.h"
#include "common/parse.h"

void placement_plain_cores(struct placement_cores *out)
{
    for (size_t i = 0; i < CPU_SETSIZE; i++)
        out->core_of[i] = (uint16_t)i;
}

void placement_read_cores(const char *sys_root, struct placement_cores *out)
{
    placement_plain_cores(out);
    for (size_t i = 0; i < CPU_SETSIZE; i++) {
        char path[512], line[512];
        cpu_set_t siblings;
        snprintf(path, sizeof path, "%s/devices/system/cpu/cpu%zu/topology/thread_siblings_list", sys_root,
                 i);
        if (!file_read_line(path, line, sizeof line))
            continue;
        if (parse_cpus(line, &siblings, "siblings", NULL) != ERR_OK)
            continue;
        for (size_t k = 0; k < CPU_SETSIZE; k++) {
            if (CPU_ISSET(k, &siblings)) {
                out->core_of[i] = (uint16_t)k;
                break;
            }
        }
    }
}

bool placement_same_machine(const struct msg_host *a, const struct msg_host *b)
{
    const char *x = msg_text(a->boot_id);
    return x[0] != '\0' && strcmp(x, msg_text(b->boot_id)) == 0;
}

uint32_t placement_threads(uint32_t wanted, uint32_t connections, uint32_t cpus)
{
    uint32_t threads = wanted > 0 ? wanted : cpus;
    if (threads > PLACEMENT_THREADS_MAX)
        threads = PLACEMENT_THREADS_MAX;
    if (threads > connections)
        threads = connections;
    return threads > 0 ? threads : 1;
}

static void set_seat(struct placement_seat *seat, const cpu_set_t *set, bool pin)
{
    seat->cpu_count = (uint32_t)CPU_COUNT(set);
    seat->cpus[0] = '\0';
    if (pin)
        parse_cpus_text(set, seat->cpus, sizeof seat->cpus);
}

/* The first `wanted` groups of `from` move to `out`: whole cores, or single CPUs when `whole` is not set. */
static void take_first(const cpu_set_t *from, const struct placement_cores *cores, bool whole, size_t wanted,
                       cpu_set_t *out)
{
    cpu_set_t seen;
    CPU_ZERO(&seen);
    CPU_ZERO(out);
    for (size_t i = 0; i < CPU_SETSIZE && wanted > 0; i++) {
        size_t core = whole ? cores->core_of[i] : i;
        if (!CPU_ISSET(i, from) || CPU_ISSET(core, &seen))
            continue;
        CPU_SET(core, &seen);
        wanted--;
        for (size_t k = i; k < CPU_SETSIZE; k++) {
            size_t other = whole ? cores->core_of[k] : k;
            if (CPU_ISSET(k, from) && other == core)
                CPU_SET(k, out);
        }
    }
}

static size_t count_cores(const cpu_set_t *set, const struct placement_cores *cores)
{
    cpu_set_t seen;
    CPU_ZERO(&seen);
    for (size_t i = 0; i < CPU_SETSIZE; i++) {
        if (CPU_ISSET(i, set))
            CPU_SET(cores->core_of[i], &seen);
    }
    return (size_t)CPU_COUNT(&seen);
}

/* The server's half of a machine that both use: half the cores and the odd one; half the CPUs of a single
 * core; all of a single CPU. */
static void server_half(const cpu_set_t *all, const struct placement_cores *cores, cpu_set_t *out)
{
    size_t core_count = count_cores(all, cores), cpu_count = (size_t)CPU_COUNT(all);
    if (core_count > 1)
        take_first(all, cores, true, (core_count + 1) / 2, out);
    else if (cpu_count > 1)
        take_first(all, cores, false, (cpu_count + 1) / 2, out);
    else
        *out = *all;
}

static void subtract(const cpu_set_t *from, const cpu_set_t *what, cpu_set_t *out)
{
    cpu_set_t both;
    CPU_AND(&both, from, what);
    CPU_XOR(out, from, &both);
}

static enum err read_cpus(const struct msg_host *host, cpu_set_t *out, struct err_detail *d)
{
    enum err e = parse_cpus(msg_text(host->cpu_list), out, "its CPU list", d);
    return e == ERR_OK ? ERR_OK : err_prefix(d, e, "host '%s'", msg_text(host->hostname));
}

static enum err place_load(const struct msg_host *host, bool with_server, const cpu_set_t *server,
                           struct placement_seat *seat, enum store_placement *kind, struct err_detail *d)
{
    cpu_set_t own, rest;
    enum err e = read_cpus(host, &own, d);
    if (e != ERR_OK)
        return e;
    if (!with_server) {
        set_seat(seat, &own, false);
        return ERR_OK;
    }
    subtract(&own, server, &rest);
    if (CPU_COUNT(&rest) == 0) {
        *kind = STORE_PLACEMENT_SHARED;
        set_seat(seat, &own, true);
        return ERR_OK;
    }
    if (*kind != STORE_PLACEMENT_SHARED)
        *kind = STORE_PLACEMENT_SPLIT_CPUS;
    set_seat(seat, &rest, true);
    return ERR_OK;
}

enum err placement_make(const struct msg_host *server, const struct msg_host *const *load, size_t load_count,
                        const char *target_cpus, const struct placement_cores *cores, struct placement *out,
                        struct err_detail *d)
{
    struct placement_cores plain;
    cpu_set_t all, mine, outside, others;
    bool together = false, pinned = false;
    must(load_count <= LIMIT_HOSTS_PER_ROLE);
    if (cores == NULL) {
        placement_plain_cores(&plain);
        cores = &plain;
    }
    *out = (struct placement){.kind = STORE_PLACEMENT_SPLIT_HOSTS};
    enum err e = read_cpus(server, &all, d);
    if (e != ERR_OK)
        return e;
    CPU_ZERO(&others);
    for (size_t i = 0; i < load_count; i++) {
        cpu_set_t own;
        e = read_cpus(load[i], &own, d);
        if (e != ERR_OK)
            return e;
        if (placement_same_machine(server, load[i])) {
            together = true;
            CPU_OR(&others, &others, &own);
        }
    }
    mine = all;
    if (target_cpus != NULL && target_cpus[0] != '\0') {
        e = parse_cpus(target_cpus, &mine, "cpus", d);
        if (e != ERR_OK)
            return e;
        subtract(&mine, &all, &outside);
        if (CPU_COUNT(&outside) > 0)
            return err_set(d, ERR_INVALID, "cpus %s: host '%s' has only CPUs %s", target_cpus,
                           msg_text(server->hostname), msg_text(server->cpu_list));
        pinned = true;
    } else if (together) {
        cpu_set_t common;
        CPU_AND(&common, &all, &others);
        /* Agents that were given CPUs of their own already keep them. */
        if (CPU_COUNT(&common) > 0)
            server_half(&all, cores, &mine);
        pinned = true;
    }
    set_seat(&out->server, &mine, pinned);
    for (size_t i = 0; i < load_count; i++) {
        e = place_load(load[i], placement_same_machine(server, load[i]), &mine, &out->load[i], &out->kind, d);
        if (e != ERR_OK)
            return e;
    }
    return ERR_OK;
}
