#include "agent/process/usage.h"

#include "agent/process/cgroup.h"
#include "agent/process/procstat.h"
#include "common/clock.h"
#include "common/mem.h"

#include <unistd.h>

struct usage {
    char *proc_root;
    struct cgroup_counters *leaf; /* NULL without one */
    pid_t reaper;
    bool live; /* the pids are those of this host now, not of a record */
    uint64_t tick_ns;
    uint64_t page_bytes;
    uint64_t cpu_ns;
};

enum err usage_new(const struct usage_options *options, struct usage **out, struct err_detail *d)
{
    struct usage *u = mem_zalloc(1, sizeof *u);
    u->proc_root = mem_strdup(options->proc_root);
    u->reaper = options->reaper;
    u->live = strcmp(options->proc_root, "/proc") == 0;
    u->tick_ns = NS_PER_S / (uint64_t)sysconf(_SC_CLK_TCK);
    u->page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
    enum err e = options->leaf != NULL ? cgroup_counters_new(options->leaf, &u->leaf, d) : ERR_OK;
    if (e != ERR_OK) {
        usage_free(u);
        return e;
    }
    *out = u;
    return ERR_OK;
}

void usage_free(struct usage *u)
{
    if (u == NULL)
        return;
    cgroup_counters_free(u->leaf);
    free(u->proc_root);
    free(u);
}

static uint64_t cpu_of(const struct usage *u, const struct procstat *p)
{
    clockid_t clock;
    struct timespec ts;
    if (u->live && clock_getcpuclockid(p->pid, &clock) == 0 && clock_gettime(clock, &ts) == 0)
        return (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
    return p->cpu_ticks * u->tick_ns;
}

static void add_member(const struct usage *u, const struct procstat *p, struct usage_reading *r)
{
    r->rss_bytes += p->rss_pages * u->page_bytes;
    if (p->state != 'Z' && p->state != 'X')
        r->processes++;
}

static enum err read_leaf(struct usage *u, struct usage_reading *r, struct err_detail *d)
{
    pid_t *pids = NULL;
    size_t count = 0;
    enum err e = cgroup_counters_cpu(u->leaf, &r->cpu_ns, d);
    if (e == ERR_OK)
        e = cgroup_counters_members(u->leaf, &pids, &count, d);
    for (size_t i = 0; e == ERR_OK && i < count; i++) {
        struct procstat p;
        if (procstat_read(u->proc_root, pids[i], &p) == ERR_OK)
            add_member(u, &p, r);
    }
    free(pids);
    return e;
}

static enum err read_descendants(struct usage *u, struct usage_reading *r, struct err_detail *d)
{
    struct procstat_list all;
    struct procstat reaper;
    enum err e = procstat_list_init(&all, u->proc_root, d);
    if (e == ERR_OK && procstat_read(u->proc_root, u->reaper, &reaper) == ERR_OK) {
        r->cpu_ns += reaper.reaped_cpu_ticks * u->tick_ns;
        (void)procstat_mark_descendants(&all, u->reaper, NULL);
        for (size_t i = 0; i < all.count; i++) {
            if (!all.items[i].member)
                continue;
            add_member(u, &all.items[i], r);
            r->cpu_ns += cpu_of(u, &all.items[i]) + all.items[i].reaped_cpu_ticks * u->tick_ns;
        }
    }
    procstat_list_fini(&all);
    return e;
}

enum err usage_read(struct usage *u, struct usage_reading *out, struct err_detail *d)
{
    struct usage_reading r = {0};
    enum err e = u->leaf != NULL ? read_leaf(u, &r, d) : read_descendants(u, &r, d);
    if (e != ERR_OK)
        return e;
    if (r.cpu_ns < u->cpu_ns)
        r.cpu_ns = u->cpu_ns; /* a member ended between two of our reads, or ticks rounded down */
    u->cpu_ns = r.cpu_ns;
    *out = r;
    return ERR_OK;
}
