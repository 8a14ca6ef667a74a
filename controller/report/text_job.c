#include "controller/report/text.h"

#include "common/clock.h"
#include "common/parse.h"
#include "controller/report/units.h"

#include <string.h>

#define INDENT          12u
#define ROLE_BYTES      (LIMIT_NAME_BYTES + 16u)
#define ROLES_BYTES_MAX 65536u

static void put_when(struct page *p, const struct store_job *job)
{
    char from[CLOCK_TEXT_BYTES];
    char to[CLOCK_TEXT_BYTES];
    char took[32];
    if (job->started_wall_ns == 0)
        page_say(p, "when", INDENT, "not started yet");
    else if (job->ended_wall_ns <= job->started_wall_ns)
        page_say(p, "when", INDENT, "since %s", clock_wall_text(job->started_wall_ns, from));
    else
        page_say(p, "when", INDENT, "%s to %s (%s)", clock_wall_text(job->started_wall_ns, from),
                 clock_wall_text(job->ended_wall_ns, to),
                 parse_duration_text(job->ended_wall_ns - job->started_wall_ns, took, sizeof took));
}

static void put_placement(struct page *p, const struct report *r)
{
    static const char *const means[STORE_PLACEMENT_COUNT] = {
        [STORE_PLACEMENT_SPLIT_HOSTS] = "server and generator on different machines",
        [STORE_PLACEMENT_SPLIT_CPUS] = "one machine, server and generator on CPUs of their own",
        [STORE_PLACEMENT_SHARED] = "one machine, server and generator on the same CPUs",
    };
    bool any = false;
    for (int i = 0; i < STORE_PLACEMENT_COUNT; i++) {
        any = any || r->placements[i];
        if (r->placements[i])
            page_say(p, "placement", INDENT, "%s: %s", store_placement_name((enum store_placement)i),
                     means[i]);
    }
    if (!any)
        page_say(p, "placement", INDENT, "%s",
                 text_is_over(r) ? "none: it never had its hosts" : "not placed yet");
}

/* ---- hosts ---- */

/* Only the newest of each part is shown; older ones that figures come from are in the warnings. */
static bool is_newest(const struct store_results *results, size_t host)
{
    const struct store_read_host *h = &results->hosts[host];
    for (size_t i = host + 1; i < results->host_count; i++)
        if (results->hosts[i].ordinal == h->ordinal && strcmp(results->hosts[i].role, h->role) == 0)
            return false;
    return true;
}

/* "server", "load 2" */
static const char *role_text(const struct store_read_host *h, char out[ROLE_BYTES])
{
    int n = snprintf(out, ROLE_BYTES, "%.*s", (int)LIMIT_NAME_BYTES, h->role);
    if (h->ordinal != 0)
        snprintf(out + n, ROLE_BYTES - (size_t)n, " %u", h->ordinal + 1);
    return out;
}

/* The part before it that ran on the same machine, or NULL. */
static const struct store_read_host *find_same(const struct store_results *results, size_t host)
{
    const char *boot = results->hosts[host].facts.boot_id;
    const struct store_read_host *same = NULL;
    for (size_t i = 0; i < host && boot[0] != '\0'; i++)
        if (strcmp(results->hosts[i].facts.boot_id, boot) == 0)
            same = &results->hosts[i];
    return same;
}

static void put_hosts(struct page *p, const struct store_results *results)
{
    for (size_t i = 0; i < results->host_count; i++) {
        const struct store_read_host *h = &results->hosts[i];
        const struct store_read_host *same = find_same(results, i);
        char role[ROLE_BYTES];
        char memory[UNITS_TEXT_BYTES];
        if (!is_newest(results, i))
            continue;
        if (same != NULL)
            page_say(p, role_text(h, role), INDENT, "%s on %s: the machine of %s", h->agent,
                     h->facts.hostname, same->role);
        else
            page_say(p, role_text(h, role), INDENT, "%s on %s: %s, %u CPUs (%s), %s, %s, Linux %s", h->agent,
                     h->facts.hostname, h->facts.cpu_model, h->facts.cpus, h->facts.cpu_list,
                     units_bytes((double)h->facts.memory_bytes, memory), h->facts.os, h->facts.kernel);
    }
}

/* The libraries that ran: each list once, with the parts that ran it before it. */
static void put_libraries(struct page *p, const struct store_results *results)
{
    const char *lead = "libraries";
    for (size_t i = 0; i < results->host_count; i++) {
        const char *list = results->hosts[i].facts.libraries;
        bool told = false;
        struct buf roles;
        buf_init(&roles, ROLES_BYTES_MAX);
        for (size_t j = 0; j < results->host_count; j++) {
            char role[ROLE_BYTES];
            if (!is_newest(results, j) || strcmp(results->hosts[j].facts.libraries, list) != 0)
                continue;
            told = told || j < i;
            if (p->e == ERR_OK)
                p->e = buf_printf(&roles, "%s%s", roles.len != 0 ? ", " : "",
                                  role_text(&results->hosts[j], role));
        }
        if (is_newest(results, i) && !told) {
            page_say(p, lead, INDENT, "%s: %s", roles.data,
                     list[0] != '\0' ? list : "unknown, the agent did not say");
            lead = "";
        }
        buf_fini(&roles);
    }
}

/* ---- design ---- */

/* "cooldown 75s", "no gap" */
static const char *pause_text(const char *what, uint64_t ns, char out[64])
{
    char text[32];
    if (ns != 0)
        snprintf(out, 64, "%s %s", what, parse_duration_text(ns, text, sizeof text));
    else
        snprintf(out, 64, "no %s", what);
    return out;
}

static void put_design(struct page *p, const struct report *r)
{
    const struct experiment *x = r->experiment;
    const char *order = experiment_orders[x->design.order];
    char cooldown[64];
    char gap[64];
    page_say(p, "design", INDENT, "%zu target%s, %zu workload%s, %u round%s, %s order, %s, %s",
             x->target_count, units_plural(x->target_count), x->workload_count,
             units_plural(x->workload_count), x->design.rounds, units_plural(x->design.rounds), order,
             pause_text("cooldown", x->design.cooldown_ns, cooldown),
             pause_text("gap", x->design.gap_ns, gap));
    if (r->results.job.mode == MSG_MODE_RUN)
        page_say(p, "windows", INDENT, "%zu of %zu, %zu invalid attempt%s", r->windows_present,
                 r->design->window_count, r->attempts_invalid, units_plural(r->attempts_invalid));
}

void text_put_job(struct page *p, const struct report *r)
{
    const struct store_job *job = &r->results.job;
    page_say(p, "", 0, "%s: job %s, %s%s", job->name, job->id, store_job_state_name(job->state),
             job->mode == MSG_MODE_VERIFY ? " (verified only: no load)" : "");
    for (size_t i = 0; i < r->warnings.count; i++)
        page_say(p, "  !", 4, "%s", r->warnings.items[i]);
    page_end_line(p);
    put_when(p, job);
    put_placement(p, r);
    put_hosts(p, &r->results);
    put_libraries(p, &r->results);
    put_design(p, r);
}
