#include "agent/process/usage.h"

#include "agent/process/cgroup.h"
#include "agent/process/procstat.h"
#include "agent/telemetry/fields.h"
#include "common/clock.h"
#include "common/file.h"
#include "common/mem.h"

#include <dirent.h>
#include <unistd.h>

/* Reading one costs 20 us, at the edge of a window, on the server's host: at most 10 ms. */
#define THREADS_MAX      512u
#define STATUS_BYTES_MAX 16384u

/* Context switches of one thread so far. */
struct thread {
    pid_t tid;
    uint64_t voluntary;
    uint64_t involuntary;
};

/*
 * The threads of a tree at one moment. The kernel's counts go with a thread: a sum over those that live is
 * what all of them did only while none of them ends.
 */
struct threads {
    struct thread *items;
    size_t count;
    uint64_t reaped_ticks; /* CPU of children that somebody waited for: it grows when one ends unseen */
    bool complete;         /* every one could be read */
};

struct usage {
    char *proc_root;
    struct cgroup_counters *leaf; /* NULL without one */
    pid_t reaper;
    bool live; /* the pids are those of this host now, not of a record */
    uint64_t tick_ns;
    uint64_t page_bytes;
    uint64_t cpu_ns;
    struct threads threads; /* as last read */
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
    free(u->threads.items);
    free(u->proc_root);
    free(u);
}

static uint64_t cpu_of(const struct usage *u, const struct procstat *p)
{
    uint64_t exact_ns = u->live ? clock_cpu_ns(p->pid) : 0;
    return exact_ns != 0 ? exact_ns : p->cpu_ticks * u->tick_ns;
}

/* The number behind `label` in a status file. */
static bool take_status(const char *text, const char *label, uint64_t *out)
{
    const char *at = strstr(text, label);
    at = at != NULL ? strchr(at, '\t') : NULL;
    return at != NULL && (at++, fields_take(&at, out));
}

static bool read_thread(const char *dir, pid_t tid, struct thread *out)
{
    char *path = mem_printf("%s/%d/status", dir, (int)tid);
    char *text = NULL;
    size_t len = 0;
    *out = (struct thread){.tid = tid};
    bool good = file_read(path, FILE_ANY, STATUS_BYTES_MAX, &text, &len, NULL) == ERR_OK &&
                take_status(text, "\nvoluntary_ctxt_switches:", &out->voluntary) &&
                take_status(text, "\nnonvoluntary_ctxt_switches:", &out->involuntary);
    free(text);
    free(path);
    return good;
}

static void add_threads(const struct usage *u, const struct procstat *p, struct threads *t)
{
    char *path = mem_printf("%s/%d/task", u->proc_root, (int)p->pid);
    DIR *dir = opendir(path);
    t->reaped_ticks += p->reaped_cpu_ticks;
    t->complete = t->complete && dir != NULL;
    for (struct dirent *entry = dir != NULL ? readdir(dir) : NULL; entry != NULL; entry = readdir(dir)) {
        long tid = strtol(entry->d_name, NULL, 10);
        struct thread one;
        if (tid <= 0 || tid > INT32_MAX)
            continue;
        t->complete = t->complete && t->count < THREADS_MAX && read_thread(path, (pid_t)tid, &one);
        if (!t->complete)
            break;
        t->items = mem_realloc(t->items, t->count + 1, sizeof *t->items);
        t->items[t->count++] = one;
    }
    if (dir != NULL)
        closedir(dir);
    free(path);
}

static int by_tid(const void *a, const void *b)
{
    const struct thread *x = a, *y = b;
    return x->tid < y->tid ? -1 : x->tid > y->tid;
}

/* Do all that were there before live, and has nobody else ended? */
static bool none_ended(const struct threads *was, const struct threads *is)
{
    bool all = was->reaped_ticks == is->reaped_ticks;
    for (size_t i = 0; all && i < was->count; i++) {
        const struct thread *now =
            is->count != 0 ? bsearch(&was->items[i], is->items, is->count, sizeof *is->items, by_tid) : NULL;
        all = now != NULL && now->voluntary >= was->items[i].voluntary &&
              now->involuntary >= was->items[i].involuntary; /* else another has its number */
    }
    return all;
}

/* Takes `is` in place of what was read before. */
static void count_switches(struct usage *u, struct threads *is, struct usage_reading *r)
{
    uint64_t voluntary = 0, involuntary = 0;
    if (is->count != 0)
        qsort(is->items, is->count, sizeof *is->items, by_tid);
    for (size_t i = 0; i < is->count; i++) {
        voluntary += is->items[i].voluntary;
        involuntary += is->items[i].involuntary;
    }
    if (is->complete && none_ended(&u->threads, is)) {
        r->counters[FIGURE_SERVER_CONTEXT_SWITCHES_VOLUNTARY] = figure_known(voluntary);
        r->counters[FIGURE_SERVER_CONTEXT_SWITCHES_INVOLUNTARY] = figure_known(involuntary);
    }
    free(u->threads.items);
    u->threads = *is;
}

static void add_member(const struct usage *u, const struct procstat *p, struct usage_reading *r,
                       struct threads *t)
{
    add_threads(u, p, t);
    r->rss_bytes += p->rss_pages * u->page_bytes;
    if (p->state != 'Z' && p->state != 'X')
        r->processes++;
}

static enum err read_leaf(struct usage *u, struct usage_reading *r, struct threads *t, struct err_detail *d)
{
    pid_t *pids = NULL;
    size_t count = 0;
    enum err e = cgroup_counters_cpu(u->leaf, &r->cpu_ns, d);
    if (e == ERR_OK)
        e = cgroup_counters_members(u->leaf, &pids, &count, d);
    for (size_t i = 0; e == ERR_OK && i < count; i++) {
        struct procstat p;
        if (procstat_read(u->proc_root, pids[i], &p) == ERR_OK)
            add_member(u, &p, r, t);
    }
    free(pids);
    return e;
}

static enum err read_descendants(struct usage *u, struct usage_reading *r, struct threads *t,
                                 struct err_detail *d)
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
            add_member(u, &all.items[i], r, t);
            r->cpu_ns += cpu_of(u, &all.items[i]) + all.items[i].reaped_cpu_ticks * u->tick_ns;
        }
    }
    procstat_list_fini(&all);
    return e;
}

enum err usage_read(struct usage *u, struct usage_reading *out, struct err_detail *d)
{
    struct usage_reading r = {0};
    struct threads threads = {.complete = true};
    struct procstat reaper;
    if (procstat_read(u->proc_root, u->reaper, &reaper) == ERR_OK)
        threads.reaped_ticks = reaper.reaped_cpu_ticks;
    enum err e = u->leaf != NULL ? read_leaf(u, &r, &threads, d) : read_descendants(u, &r, &threads, d);
    if (e != ERR_OK) {
        free(threads.items);
        return e;
    }
    count_switches(u, &threads, &r);
    if (r.cpu_ns < u->cpu_ns)
        r.cpu_ns = u->cpu_ns; /* a member ended between two of our reads, or ticks rounded down */
    u->cpu_ns = r.cpu_ns;
    *out = r;
    return ERR_OK;
}
