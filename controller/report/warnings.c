#include "common/mem.h"
#include "controller/report/model.h"
#include "controller/report/units.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void warn(struct report *r, const char *fmt, ...) PRINTF_LIKE(2, 3);
static void warn(struct report *r, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    char *text = mem_vprintf(fmt, ap);
    va_end(ap);
    r->warnings.items = mem_realloc(r->warnings.items, r->warnings.count + 1, sizeof(*r->warnings.items));
    r->warnings.items[r->warnings.count++] = text;
}

/* ---- what is missing ------------------------------------------------------------------------------- */

/* A local run works where its files lie; a lab's works on copies. */
static bool is_local(const struct store_job *job)
{
    return job->base_dir != NULL && job->base_dir[0] != '\0';
}

static void warn_of_state(struct report *r)
{
    const struct store_job *job = &r->results.job;
    size_t missing = r->windows_missing;
    const char *none = job->state == STORE_JOB_CANCELLED ? "cancelled" : "no cause was stored";
    const char *cause = job->cause[0] != '\0' ? job->cause : none;
    const char *end =
        cause[strlen(cause) - 1] == '.' ? "" : "."; /* some causes end their sentence themselves */
    char *resume = mem_printf("`splitbench resume %s%s` goes on.", is_local(job) ? "--local " : "", job->id);
    char *windows = missing != 0 ? mem_printf(" %zu of %zu window%s missing.", missing,
                                              r->design->window_count, missing == 1 ? " is" : "s are")
                                 : mem_strdup("");
    switch (job->state) {
    case STORE_JOB_QUEUED:
    case STORE_JOB_RUNNING:
        warn(r, "NOT COMPLETE: the job is %s.%s", store_job_state_name(job->state), windows);
        break;
    case STORE_JOB_FAILED:
        if (missing != 0)
            warn(r, "NOT COMPLETE: the job failed: %s%s%s %s", cause, end, windows, resume);
        else
            warn(r, "The job failed: %s%s", cause, end);
        break;
    case STORE_JOB_CANCELLED: /* the cause is the rest of the sentence: cancelled by 'ann' */
        warn(r, "NOT COMPLETE: the job was %s%s%s %s", cause, end, windows, resume);
        break;
    case STORE_JOB_DONE:
        if (missing != 0)
            warn(r, "NOT COMPLETE:%s", windows);
        break;
    case STORE_JOB_STATE_COUNT:
        break;
    }
    free(windows);
    free(resume);
}

static void warn_of_gaps(struct report *r)
{
    size_t unusable = r->attempts_unusable;
    size_t foreign = r->attempts_foreign;
    size_t invalid = r->windows_invalid;
    if (invalid != 0)
        warn(r, "%zu window%s no number: no attempt passed the gates. %s in no figure.", invalid,
             invalid == 1 ? " has" : "s have", invalid == 1 ? "It is" : "They are");
    if (unusable != 0)
        warn(r, "%zu valid attempt%s without a result or with a window of no length: in no figure.", unusable,
             units_plural(unusable));
    if (foreign != 0)
        warn(r, "%zu stored attempt%s no window of this schedule: in no figure.", foreign,
             foreign == 1 ? " belongs to" : "s belong to");
    if (r->results.late_events != 0)
        warn(r, "%" PRIu64 " result%s of agents came after their controller had gone: kept, in no figure.",
             r->results.late_events, units_plural(r->results.late_events));
}

/* ---- what is mixed --------------------------------------------------------------------------------- */

/* Marks the machines and placements that the figures come from. */
static void find_used(struct report *r, bool *hosts)
{
    bool any = false;
    for (size_t i = 0; i < r->results.run_count; i++) {
        const struct store_read_run *run = &r->results.runs[i];
        if (!r->run_counts[i])
            continue;
        any = true;
        r->placements[run->placement] = true;
        for (size_t h = 0; h < r->results.host_count; h++)
            for (size_t k = 0; k < run->host_count; k++)
                hosts[h] = hosts[h] || run->hosts[k] == r->results.hosts[h].id;
    }
    if (!any && r->results.host_count != 0) /* no hosts: not placed yet */
        r->placements[r->results.job.placement] = true;
}

static void warn_of_placement(struct report *r)
{
    char names[64] = "";
    size_t count = 0;
    for (int p = 0; p < STORE_PLACEMENT_COUNT; p++) {
        if (!r->placements[p])
            continue;
        size_t at = strlen(names);
        snprintf(names + at, sizeof(names) - at, "%s%s", count != 0 ? " and " : "",
                 store_placement_name((enum store_placement)p));
        count++;
    }
    if (count > 1)
        warn(r, "MIXED: some rounds ran %s. Figures over all of them compare unlike things.", names);
    else if (r->placements[STORE_PLACEMENT_SHARED])
        warn(r,
             "Server and generator shared CPUs: each took time from the other, and not the same from every "
             "target.");
}

static void warn_of_pair(struct report *r, const struct store_read_host *a, const struct store_read_host *b)
{
    bool same = strcmp(a->agent, b->agent) == 0 && strcmp(a->facts.hostname, b->facts.hostname) == 0 &&
                strcmp(a->facts.cpu_model, b->facts.cpu_model) == 0 &&
                a->facts.memory_bytes == b->facts.memory_bytes;
    bool cpus = strcmp(a->facts.cpu_list, b->facts.cpu_list) == 0 && a->facts.cpus == b->facts.cpus;
    bool kernel = strcmp(a->facts.kernel, b->facts.kernel) == 0;
    if (!same)
        warn(r,
             "MIXED: role %s was played by %s (%s, %s) and by %s (%s, %s): figures come from both machines.",
             a->role, a->agent, a->facts.hostname, a->facts.cpu_model, b->agent, b->facts.hostname,
             b->facts.cpu_model);
    else if (!cpus)
        warn(r, "MIXED: %s had CPUs %s for some rounds and %s for others.", a->agent, a->facts.cpu_list,
             b->facts.cpu_list);
    else if (!kernel)
        warn(r, "MIXED: %s ran kernel %s for some rounds and %s for others.", a->agent, a->facts.kernel,
             b->facts.kernel);
    else if (a->facts.libraries[0] != '\0' && b->facts.libraries[0] != '\0' &&
             strcmp(a->facts.libraries, b->facts.libraries) != 0)
        warn(r, "MIXED: %s ran %s for some rounds and %s for others.", a->agent, a->facts.libraries,
             b->facts.libraries);
    else if (strcmp(a->facts.boot_id, b->facts.boot_id) != 0)
        warn(r, "%s was rebooted between rounds.", a->agent);
}

static void warn_of_hosts(struct report *r, const bool *used)
{
    for (size_t i = 0; i < r->results.host_count; i++) {
        const struct store_read_host *a = &r->results.hosts[i];
        for (size_t j = i + 1; used[i] && j < r->results.host_count; j++) {
            const struct store_read_host *b = &r->results.hosts[j];
            if (!used[j] || a->ordinal != b->ordinal || strcmp(a->role, b->role) != 0)
                continue;
            warn_of_pair(r, a, b);
            break; /* each with the next one */
        }
    }
}

/* ---- what disturbed it ----------------------------------------------------------------------------- */

/* A share of a host's CPUs that others take before a reader must hear of it at once. */
#define BUSY_SHARE 0.1

/* CPUs of the newest host in a role, 0 when there is none. */
static uint32_t cpus_of(const struct report *r, const char *role)
{
    uint32_t cpus = 0;
    for (size_t i = 0; i < r->results.host_count; i++)
        if (strcmp(r->results.hosts[i].role, role) == 0)
            cpus = r->results.hosts[i].facts.cpus;
    return cpus;
}

static void warn_of_busy(struct report *r, const char *role, bool load)
{
    uint32_t cpus = cpus_of(r, role);
    const struct report_cell *worst = NULL;
    double most = BUSY_SHARE * cpus;
    for (size_t i = 0; i < r->design->cell_count; i++) {
        const struct report_usage *u =
            load ? &r->cells[i].foreign_cpu_cores_load : &r->cells[i].foreign_cpu_cores_server;
        if (u->n != 0 && u->mean > most) {
            most = u->mean;
            worst = &r->cells[i];
        }
    }
    if (cpus == 0 || worst == NULL)
        return;
    warn(r,
         "BUSY: other programs used %.2f of the %u CPUs of the %s host while %s was measured "
         "(%s, %u connection%s; mean of rounds).",
         most, cpus, role, r->experiment->targets[worst->design->target].name,
         r->experiment->workloads[worst->design->workload].name, worst->design->connections,
         worst->design->connections == 1 ? "" : "s");
}

void report_find_warnings(struct report *r)
{
    bool *used = mem_zalloc(r->results.host_count, sizeof(*used));
    find_used(r, used);
    warn_of_state(r);
    warn_of_placement(r);
    warn_of_hosts(r, used);
    warn_of_busy(r, "server", false);
    if (r->placements[STORE_PLACEMENT_SPLIT_HOSTS]) /* else it is the same machine */
        warn_of_busy(r, "load", true);
    warn_of_gaps(r);
    free(used);
}
