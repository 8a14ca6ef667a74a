#include "controller/experiment/experiment_keys.h"

#include "common/clock.h"
#include "common/path.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define PAUSE_NS_MAX (24 * 3600 * NS_PER_S)
#define ERRORS_MAX   1000000000000ull
#define CORES_MAX    4096

const char *const experiment_orders[] = {
    [EXPERIMENT_ORDER_FIXED] = "fixed", [EXPERIMENT_ORDER_LATIN_SQUARE] = "latin-square", NULL};
const char *const experiment_fresh[] = {[EXPERIMENT_FRESH_ROUND] = "round",
                                        [EXPERIMENT_FRESH_WINDOW] = "window",
                                        [EXPERIMENT_FRESH_JOB] = "job",
                                        NULL};

#define OF struct experiment_design
static const struct key design_rows[] = {
    {"rounds", "passes over all targets, up to 1000", .initial = "1", AS_NUMBER(rounds, 1, LIMIT_ROUNDS)},
    {"order", "`fixed`: as in the file. `latin-square`: in round r, slot s is target (r + s) mod n",
     .initial = "\"fixed\"", AS_WORD(order, experiment_orders)},
    {"cooldown", "idle time before each target", .initial = "\"0s\"", AS_TIME(cooldown_ns, 0, PAUSE_NS_MAX)},
    {"gap", "idle time between the windows of a target", .initial = "\"0s\"",
     AS_TIME(gap_ns, 0, PAUSE_NS_MAX)},
    {"fresh_process", "a target is started anew each `round`, for each `window`, or once for the whole `job`",
     .initial = "\"round\"", AS_WORD(fresh, experiment_fresh)},
};
#undef OF
const struct keys keys_design = {KEYS("design", design_rows)};

#define OF struct experiment_gates
static const struct key gates_rows[] = {
    {"errors", "failed requests that are allowed in a window", .initial = "0",
     AS_NUMBER(errors_max, 0, ERRORS_MAX)},
    {"foreign_cpu", "cores that everything else on either host may use, on average",
     .without = "not looked at", AS_SHARE(foreign_cpu_max, CORES_MAX), KEY_IF(has_foreign_cpu)},
    {"generator_cpu",
     "share of its CPUs that the generator may use, over 0 to 1: more, and the number is the generator's",
     .without = "not looked at", AS_SHARE(generator_cpu_max, 1), KEY_IF(has_generator_cpu)},
    {"retries", "further attempts, up to 100", .initial = "2", AS_NUMBER(retries, 0, LIMIT_RETRIES)},
};
#undef OF
const struct keys keys_gates = {KEYS("gates", gates_rows)};

/* ---- what only the whole shows ------------------------------------------------------------------ */

/* The place for a problem of `object.key`: the value, the object, or the whole file. */
static const struct json_value *place(const struct experiment_reader *r, const char *object, const char *key)
{
    const struct json_value *o = json_member(r->root, object);
    const struct json_value *v = json_member(o, key);
    return v != NULL ? v : o != NULL ? o : r->root;
}

static void check_latin_square(struct experiment_reader *r, const struct experiment *e)
{
    size_t n = e->target_count;
    uint32_t rounds = e->design.rounds;
    if (e->design.order != EXPERIMENT_ORDER_LATIN_SQUARE || n == 0 || rounds % n == 0)
        return;
    size_t more = (rounds / n + 1) * n;
    reader_problem(r, place(r, "design", "rounds"),
                   "%" PRIu32 " with order latin-square and %zu targets gives them unequal slots: "
                   "rounds must be a multiple of %zu, like %zu, or the order fixed",
                   rounds, n, n, more);
}

/* Servers that live as long as the job are up side by side. */
static void check_ports(struct experiment_reader *r, const struct experiment *e)
{
    const struct json_value *v = json_first(json_member(r->root, "targets"));
    for (size_t n = 0; e->design.fresh == EXPERIMENT_FRESH_JOB && n < e->target_count;
         n++, v = json_next(v)) {
        uint16_t port = e->targets[n].port;
        size_t i = 0;
        while (i < n && e->targets[i].port != port)
            i++;
        const struct json_value *at = json_member(v, "port");
        if (i < n && port != 0)
            reader_problem(r, at != NULL ? at : v,
                           "%u is the port of targets[%zu] already: with fresh_process \"job\" all targets "
                           "run at once",
                           port, i);
    }
}

/* Load hosts share the connections of a window; each needs one. */
static void check_load_hosts(struct experiment_reader *r, const struct experiment *e)
{
    uint32_t hosts = experiment_role(e, "load")->count;
    const struct json_value *v = json_first(json_member(r->root, "workloads"));
    for (size_t n = 0; n < e->workload_count; n++, v = json_next(v)) {
        const struct experiment_workload *w = &e->workloads[n];
        size_t i = 0;
        while (i < w->connection_count && (w->connections[i] == 0 || w->connections[i] >= hosts))
            i++;
        if (i < w->connection_count)
            reader_problem(r, json_member(v, "connections"),
                           "%" PRIu32 " cannot be shared by %" PRIu32 " load hosts: each needs one",
                           w->connections[i], hosts);
    }
}

static void check_size(struct experiment_reader *r, const struct experiment *e)
{
    uint64_t windows = 0;          /* of one target in one round; at most 2^14 */
    unsigned __int128 busy_ns = 0; /* cannot overflow: 10^6 windows of 10^14 ns */
    for (size_t i = 0; i < e->workload_count; i++) {
        const struct experiment_workload *w = &e->workloads[i];
        windows += w->connection_count;
        busy_ns += (unsigned __int128)(w->warmup_ns + w->duration_ns) * w->connection_count;
    }
    uint64_t slots = (uint64_t)e->design.rounds * e->target_count;
    if (windows > 0)
        busy_ns += (unsigned __int128)e->design.gap_ns * (windows - 1);
    busy_ns += e->design.cooldown_ns;
    if (windows * slots > LIMIT_WINDOWS)
        reader_problem(r, place(r, "design", "rounds"),
                       "the schedule has %" PRIu64 " windows, at most %u are allowed", windows * slots,
                       LIMIT_WINDOWS);
    else if (busy_ns * slots / NS_PER_S > LIMIT_SCHEDULE_S)
        reader_problem(r, place(r, "design", "rounds"), "the schedule takes over %u h",
                       LIMIT_SCHEDULE_S / 3600);
}

/* On another host a relative directory is in the workspace, to which files are copied. */
static void check_dirs(struct experiment_reader *r, const struct experiment *e)
{
    const struct json_value *v = json_first(json_member(r->root, "targets"));
    for (size_t i = 0; r->options->use == EXPERIMENT_USE_REMOTE && i < e->target_count;
         i++, v = json_next(v)) {
        const char *dir = e->targets[i].dir;
        if (dir == NULL || dir[0] == '/')
            continue;
        if (e->files.count == 0)
            reader_problem(r, json_member(v, "dir"),
                           "\"%s\" is relative, but `files` names nothing to copy to the server "
                           "host: name the files, or give a directory there that starts with /",
                           dir);
        else if (path_has_part(dir, ".."))
            reader_problem(r, json_member(v, "dir"), "\"%s\" leads out of the workspace on the server host",
                           dir);
    }
}

void experiment_check_whole(struct experiment_reader *r, const struct json_value *v, void *experiment)
{
    (void)v;
    const struct experiment *e = experiment;
    check_latin_square(r, e);
    check_ports(r, e);
    check_load_hosts(r, e);
    check_size(r, e);
    check_dirs(r, e);
}
