#include "agent/load/live.h"

#include "common/clock.h"

#include <inttypes.h>

#define WIPE      "\r\033[K"
#define BAR_CELLS 24u

struct live_text live_time(uint64_t ns)
{
    struct live_text out;
    static const struct {
        const char *unit;
        double ns;
    } units[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};
    size_t u = 0;
    while (u + 1 < ARRAY_LEN(units) && (double)ns >= 1000 * units[u].ns)
        u++;
    double v = (double)ns / units[u].ns;
    snprintf(out.text, sizeof out.text, "%.*f%s", u == 0 || v >= 100 ? 0 : v >= 10 ? 1 : 2, v, units[u].unit);
    return out;
}

static double rate(const struct timeline_point *p)
{
    return p->end_ns > p->start_ns ? (double)p->ok * 1e9 / (double)(p->end_ns - p->start_ns) : 0;
}

static void print_figures(const struct timeline_point *p)
{
    fprintf(stderr, "%10.1f/s", rate(p));
    if (p->ok != 0)
        fprintf(stderr, "  50 %% %s  99 %% %s  max %s", live_time(p->p50_ns).text, live_time(p->p99_ns).text,
                live_time(p->max_ns).text);
    if (p->failed != 0)
        fprintf(stderr, "  FAILED %" PRIu64, p->failed);
}

void live_point(struct live *l, const struct timeline_point *p, uint64_t elapsed_ns, uint64_t total_ns)
{
    live_end(l);
    if (l->lines) {
        fprintf(stderr, "%8.1fs", (double)elapsed_ns / 1e9);
        print_figures(p);
        fputc('\n', stderr);
    }
    if (!l->redraw)
        return;
    unsigned cells = (unsigned)(elapsed_ns * BAR_CELLS / total_ns);
    fprintf(stderr, "[%.*s%*s] %.0fs of %.0fs ", (int)cells,
            "========================", (int)(BAR_CELLS - cells), "", (double)elapsed_ns / 1e9,
            (double)total_ns / 1e9);
    if (!l->lines)
        print_figures(p);
    l->drawn = true;
}

void live_say(struct live *l, const char *text)
{
    if (!l->redraw)
        return;
    live_end(l);
    fputs(text, stderr);
    l->drawn = true;
}

void live_end(struct live *l)
{
    if (l->drawn)
        fputs(WIPE, stderr);
    l->drawn = false;
}
