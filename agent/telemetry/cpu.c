#include "agent/telemetry/cpu.h"

#include "agent/telemetry/fields.h"
#include "common/clock.h"
#include "common/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

/* The cpu lines come first; 64 KiB hold those of 600 CPUs at full width. The interrupts after them may be
 * cut. */
#define STAT_BYTES 65536u

/* Columns of a cpu line, proc(5). */
enum column { USER, NICE, SYSTEM, IDLE, IOWAIT, IRQ, SOFTIRQ, STEAL, COLUMNS };

struct cpu_counters {
    int fd;
    uint64_t tick_ns;
    char path[512];
    char text[STAT_BYTES];
};

enum err cpu_counters_new(const char *proc_root, struct cpu_counters **out, struct err_detail *d)
{
    struct cpu_counters *c = mem_zalloc(1, sizeof *c);
    snprintf(c->path, sizeof c->path, "%s/stat", proc_root);
    c->tick_ns = NS_PER_S / (uint64_t)sysconf(_SC_CLK_TCK);
    c->fd = open(c->path, O_RDONLY | O_CLOEXEC);
    if (c->fd < 0) {
        enum err e =
            err_set(d, err_from_errno(errno), "cannot read CPU counters: %s: %s", c->path, strerror(errno));
        free(c);
        return e;
    }
    *out = c;
    return ERR_OK;
}

void cpu_counters_free(struct cpu_counters *c)
{
    if (c == NULL)
        return;
    close(c->fd);
    free(c);
}

/* Later kernels have more columns behind these, and guests are in user time already. */
static bool parse_total(const char *text, uint64_t columns[COLUMNS])
{
    if (strncmp(text, "cpu ", 4) != 0)
        return false;
    const char *at = text + 4;
    for (int i = 0; i < COLUMNS; i++) {
        if (!fields_take(&at, &columns[i]))
            return false;
    }
    return true;
}

static uint32_t count_cpus(const char *text)
{
    uint32_t cpus = 0;
    for (const char *line = strchr(text, '\n'); line != NULL && strncmp(line, "\ncpu", 4) == 0;
         line = strchr(line + 1, '\n'))
        cpus++;
    return cpus;
}

enum err cpu_counters_read(struct cpu_counters *c, struct cpu_reading *out, struct err_detail *d)
{
    ssize_t n = pread(c->fd, c->text, sizeof c->text - 1, 0);
    uint64_t now_ns = clock_now_ns();
    if (n < 0)
        return err_set(d, err_from_errno(errno), "cannot read %s: %s", c->path, strerror(errno));
    c->text[n] = '\0';
    uint64_t columns[COLUMNS];
    if (!parse_total(c->text, columns))
        return err_set(d, ERR_INVALID, "%s: its first line is not the 'cpu' line of proc(5)", c->path);
    uint64_t busy = columns[USER] + columns[NICE] + columns[SYSTEM] + columns[IRQ] + columns[SOFTIRQ];
    *out = (struct cpu_reading){
        .taken_at_ns = now_ns,
        .busy_ns = busy * c->tick_ns,
        .steal_ns = columns[STEAL] * c->tick_ns,
        .own_ns = clock_cpu_ns(0),
        .cpus = count_cpus(c->text),
    };
    return ERR_OK;
}
