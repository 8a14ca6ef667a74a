#include "controller/run/run_cpu.h"

/* A second of a machine with a million cores: more is nonsense from a broken or hostile agent. */
#define CPU_NS_MAX UINT64_C(1000000000000000)

static bool difference(uint64_t after, uint64_t before, uint64_t *out)
{
    if (after < before || after - before > CPU_NS_MAX)
        return false;
    *out = after - before;
    return true;
}

static const struct msg_proc_sample *find(const struct msg_sampled *s, uint32_t proc)
{
    for (size_t i = 0; i < s->proc_count; i++) {
        if (s->procs[i].proc == proc)
            return &s->procs[i];
    }
    return NULL;
}

bool run_cpu_interval(const struct run_cpu_host *h, uint64_t *out_ns)
{
    if (h->before == NULL || h->after == NULL)
        return false;
    return difference(h->after->at_ns, h->before->at_ns, out_ns) && *out_ns > 0;
}

bool run_cpu_of_proc(const struct run_cpu_host *h, uint32_t proc, uint64_t *out_ns)
{
    if (h->before == NULL || h->after == NULL)
        return false;
    const struct msg_proc_sample *a = find(h->before, proc), *b = find(h->after, proc);
    return a != NULL && b != NULL && difference(b->cpu_ns, a->cpu_ns, out_ns);
}

void run_cpu_counters(const struct run_cpu_host *h, uint32_t proc, struct figure *out)
{
    if (h->before == NULL || h->after == NULL)
        return;
    const struct msg_proc_sample *a = find(h->before, proc), *b = find(h->after, proc);
    for (int i = 0; a != NULL && b != NULL && i < FIGURE_TREE_COUNT; i++)
        out[i] = figure_grown(a->counters[i], b->counters[i]);
}

/* All trees of the job on one host, and its agent. */
static bool job_use(const struct run_cpu_host *h, uint64_t *out_ns)
{
    uint64_t sum = 0, one = 0;
    if (h->before == NULL || h->after == NULL || !difference(h->after->own_ns, h->before->own_ns, &sum))
        return false;
    for (size_t i = 0; i < h->after->proc_count; i++) {
        const struct msg_proc_sample *before = find(h->before, h->after->procs[i].proc);
        if (before == NULL || !difference(h->after->procs[i].cpu_ns, before->cpu_ns, &one))
            return false;
        sum += one;
    }
    *out_ns = sum;
    return true;
}

double run_cpu_foreign(const struct run_cpu_host *hosts, size_t count, size_t i, uint64_t more_own_ns)
{
    const struct run_cpu_host *h = &hosts[i];
    uint64_t interval = 0, busy = 0, used = more_own_ns, one = 0;
    if (!run_cpu_interval(h, &interval) || !difference(h->after->busy_ns, h->before->busy_ns, &busy))
        return -1;
    for (size_t k = 0; k < count; k++) {
        bool same = k == i || (h->boot_id[0] != '\0' && strcmp(h->boot_id, hosts[k].boot_id) == 0);
        if (!same)
            continue;
        if (!job_use(&hosts[k], &one))
            return -1;
        used += one;
    }
    return busy > used ? (double)(busy - used) / (double)interval : 0;
}

double run_cpu_own(const struct run_cpu_host *hosts, size_t count)
{
    double cores = 0;
    for (size_t k = 0; k < count; k++) {
        uint64_t interval = 0, own = 0;
        if (!run_cpu_interval(&hosts[k], &interval) ||
            !difference(hosts[k].after->own_ns, hosts[k].before->own_ns, &own))
            return -1;
        cores += (double)own / (double)interval;
    }
    return cores;
}
