#include "controller/experiment/experiment_reader.h"

#include "common/clock.h"
#include "common/parse.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define PAUSE_NS_MAX    (24 * 3600 * NS_PER_S)
#define ERRORS_MAX      1000000000000ull
#define CORES_MAX       4096.0
#define RETRIES_DEFAULT 2u

void experiment_read_design(struct experiment_reader *r, const struct json_value *v, struct experiment *e)
{
    static const char *const keys[] = {"rounds", "order", "cooldown", "gap", "fresh_process"};
    static const char *const orders[] = {
        [EXPERIMENT_ORDER_FIXED] = "fixed", [EXPERIMENT_ORDER_LATIN_SQUARE] = "latin-square"};
    static const char *const fresh[] = {[EXPERIMENT_FRESH_ROUND] = "round",
                                        [EXPERIMENT_FRESH_WINDOW] = "window",
                                        [EXPERIMENT_FRESH_JOB] = "job"};
    struct experiment_design *d = &e->design;
    size_t order = EXPERIMENT_ORDER_FIXED;
    size_t per = EXPERIMENT_FRESH_ROUND;
    *d = (struct experiment_design){.rounds = 1};
    if (v == NULL || !reader_object(r, v, keys, ARRAY_LEN(keys)))
        return;
    reader_get_u32(r, json_member(v, "rounds"), 1, LIMIT_ROUNDS, &d->rounds);
    reader_get_word(r, json_member(v, "order"), orders, ARRAY_LEN(orders), &order);
    reader_get_duration(r, json_member(v, "cooldown"), 0, PAUSE_NS_MAX, &d->cooldown_ns);
    reader_get_duration(r, json_member(v, "gap"), 0, PAUSE_NS_MAX, &d->gap_ns);
    reader_get_word(r, json_member(v, "fresh_process"), fresh, ARRAY_LEN(fresh), &per);
    d->order = (enum experiment_order)order;
    d->fresh = (enum experiment_fresh)per;
}

void experiment_read_gates(struct experiment_reader *r, const struct json_value *v, struct experiment *e)
{
    static const char *const keys[] = {"errors", "foreign_cpu", "generator_cpu", "retries"};
    struct experiment_gates *g = &e->gates;
    *g = (struct experiment_gates){.retries = RETRIES_DEFAULT};
    if (v == NULL || !reader_object(r, v, keys, ARRAY_LEN(keys)))
        return;
    const struct json_value *foreign = json_member(v, "foreign_cpu");
    const struct json_value *generator = json_member(v, "generator_cpu");
    g->has_foreign_cpu = foreign != NULL;
    g->has_generator_cpu = generator != NULL;
    reader_get_u64(r, json_member(v, "errors"), 0, ERRORS_MAX, &g->errors_max);
    reader_get_positive(r, foreign, CORES_MAX, &g->foreign_cpu_max);
    reader_get_positive(r, generator, 1, &g->generator_cpu_max);
    reader_get_u32(r, json_member(v, "retries"), 0, LIMIT_RETRIES, &g->retries);
}

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
    const struct json_value *targets = json_member(r->root, "targets");
    if (e->design.fresh != EXPERIMENT_FRESH_JOB || targets == NULL)
        return;
    for (const struct json_value *v = json_first(targets); v != NULL; v = json_next(v)) {
        const struct experiment_target *t = &e->targets[v->index];
        for (size_t i = 0; i < v->index && t->port != 0; i++) {
            if (e->targets[i].port != t->port)
                continue;
            const struct json_value *port = json_member(v, "port");
            reader_problem(r, port != NULL ? port : v,
                           "%u is the port of targets[%zu] already: with fresh_process \"job\" all targets "
                           "run at once",
                           t->port, i);
            break;
        }
    }
}

/* Load hosts share the connections of a window; each needs one. */
static void check_load_hosts(struct experiment_reader *r, const struct experiment *e)
{
    uint32_t hosts = e->roles[1].count;
    const struct json_value *list = json_member(r->root, "workloads");
    for (const struct json_value *v = json_first(list); v != NULL; v = json_next(v)) {
        const struct experiment_workload *w = v->index < e->workload_count ? &e->workloads[v->index] : NULL;
        for (size_t i = 0; w != NULL && i < w->connection_count; i++) {
            if (w->connections[i] >= hosts)
                continue;
            reader_problem(r, json_member(v, "connections"),
                           "%" PRIu32 " cannot be shared by %" PRIu32 " load hosts: each needs one",
                           w->connections[i], hosts);
            break;
        }
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

void experiment_check_whole(struct experiment_reader *r, const struct experiment *e)
{
    check_latin_square(r, e);
    check_ports(r, e);
    check_load_hosts(r, e);
    check_size(r, e);
    const struct json_value *targets = json_member(r->root, "targets");
    if (r->options->use != EXPERIMENT_USE_REMOTE || targets == NULL)
        return;
    for (const struct json_value *v = json_first(targets); v != NULL; v = json_next(v)) {
        const struct json_value *dir = json_member(v, "dir");
        if (v->index >= e->target_count || dir == NULL || json_text(dir) == NULL || json_text(dir)[0] == '/')
            continue;
        if (e->files.count == 0)
            reader_problem(r, dir,
                           "\"%s\" is relative, but `files` names nothing to copy to the server "
                           "host: name the files, or give a directory there that starts with /",
                           json_text(dir));
        else if (strstr(json_text(dir), "..") != NULL)
            reader_problem(r, dir, "\"%s\" leads out of the workspace on the server host", json_text(dir));
    }
}
