#include "controller/experiment/plan.h"

#include "common/clock.h"
#include "common/json_write.h"
#include "common/parse.h"
#include "common/sha256.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define PLAN_BYTES_MAX (128u * 1024u * 1024u) /* LIMIT_WINDOWS lines of two names each */
#define TIME_BYTES     32u

/* "01:02:03", or "01:02:03.250": people compare these in a column. */
static const char *clock_text(uint64_t ns, bool fine, char *out)
{
    uint64_t s = ns / NS_PER_S;
    int n =
        snprintf(out, TIME_BYTES, "%02" PRIu64 ":%02" PRIu64 ":%02" PRIu64, s / 3600, s / 60 % 60, s % 60);
    if (fine)
        snprintf(out + n, TIME_BYTES - (size_t)n, ".%03" PRIu64, ns % NS_PER_S / NS_PER_MS);
    return out;
}

/* In whole seconds, windows shorter than that would seem to begin together. None is shorter than 10 ms. */
static bool is_fine(const struct experiment *e)
{
    for (size_t i = 0; i < e->workload_count; i++)
        if (e->workloads[i].duration_ns < NS_PER_S)
            return true;
    return false;
}

static int width_of(const struct experiment *e, bool targets)
{
    size_t width = targets ? strlen("TARGET") : strlen("WORKLOAD");
    size_t n = targets ? e->target_count : e->workload_count;
    for (size_t i = 0; i < n; i++) {
        size_t len = strlen(targets ? e->targets[i].name : e->workloads[i].name);
        width = len > width ? len : width;
    }
    return (int)width;
}

static enum err write_head(const struct experiment *e, const struct design *d, struct buf *out)
{
    char total[TIME_BYTES];
    char cooldown[TIME_BYTES];
    char gap[TIME_BYTES];
    return buf_printf(
        out,
        "%s: %zu target%s, %zu cell%s x %" PRIu32 " round%s = %zu window%s, %s\n"
        "order %s, cooldown %s, gap %s, a fresh process per %s\n"
        "starting servers, checks and retries come on top\n\n",
        e->name, e->target_count, e->target_count == 1 ? "" : "s", d->cell_count,
        d->cell_count == 1 ? "" : "s", e->design.rounds, e->design.rounds == 1 ? "" : "s", d->window_count,
        d->window_count == 1 ? "" : "s", parse_duration_text(d->duration_ns, total, sizeof total),
        experiment_orders[e->design.order], parse_duration_text(e->design.cooldown_ns, cooldown, TIME_BYTES),
        parse_duration_text(e->design.gap_ns, gap, TIME_BYTES), experiment_fresh[e->design.fresh]);
}

enum err plan_write_text(const struct experiment *e, const struct design *d, struct buf *out)
{
    int target_width = width_of(e, true);
    int workload_width = width_of(e, false);
    bool fine = is_fine(e);
    char start[TIME_BYTES];
    char warmup[TIME_BYTES];
    char duration[TIME_BYTES];
    enum err err = write_head(e, d, out);
    if (err == ERR_OK)
        err = buf_printf(out, "%6s  %-*s  %5s  %4s  %-*s  %-*s  %6s  %7s  %8s\n", "WINDOW", fine ? 12 : 8,
                         "START", "ROUND", "SLOT", target_width, "TARGET", workload_width, "WORKLOAD",
                         "CONNS", "WARM-UP", "DURATION");
    for (size_t i = 0; err == ERR_OK && i < d->window_count; i++) {
        const struct design_window *w = &d->windows[i];
        const struct design_cell *c = &d->cells[w->cell];
        const struct experiment_workload *load = &e->workloads[c->workload];
        err = buf_printf(out, "%6zu  %s  %5" PRIu32 "  %4" PRIu32 "  %-*s  %-*s  %6" PRIu32 "  %7s  %8s\n",
                         i + 1, clock_text(w->planned_start_ns, fine, start), w->round + 1, w->slot + 1,
                         target_width, e->targets[c->target].name, workload_width, load->name, c->connections,
                         parse_duration_text(load->warmup_ns, warmup, TIME_BYTES),
                         parse_duration_text(load->duration_ns, duration, TIME_BYTES));
    }
    return err;
}

static void write_windows(struct json_writer *w, const struct experiment *e, const struct design *d)
{
    json_write_array(w, "windows");
    for (size_t i = 0; i < d->window_count; i++) {
        const struct design_window *window = &d->windows[i];
        const struct design_cell *cell = &d->cells[window->cell];
        const struct experiment_workload *load = &e->workloads[cell->workload];
        json_write_object(w, NULL);
        json_write_u64(w, "index", window->index);
        json_write_u64(w, "cell", window->cell);
        json_write_u64(w, "round", window->round + UINT64_C(1));
        json_write_u64(w, "slot", window->slot + UINT64_C(1));
        json_write_string(w, "target", e->targets[cell->target].name);
        json_write_string(w, "workload", load->name);
        json_write_u64(w, "connections", cell->connections);
        json_write_u64(w, "start_ns", window->planned_start_ns);
        json_write_u64(w, "warmup_ns", load->warmup_ns);
        json_write_u64(w, "duration_ns", load->duration_ns);
        json_write_close(w);
    }
    json_write_close(w);
}

enum err plan_write_json(const struct experiment *e, const struct design *d, struct buf *out)
{
    struct json_writer w;
    char hash[SHA256_TEXT_BYTES];
    char name[2 * LIMIT_NAME_BYTES + 32];
    json_write_init(&w, out, 2);
    json_write_object(&w, NULL);
    json_write_string(&w, "format", "splitbench-plan/1");
    json_write_string(&w, "name", e->name);
    json_write_string(&w, "hash", sha256_text(e->hash, hash));
    json_write_u64(&w, "rounds", e->design.rounds);
    json_write_u64(&w, "windows_total", d->window_count);
    json_write_u64(&w, "duration_ns", d->duration_ns);
    json_write_array(&w, "cells");
    for (uint32_t i = 0; i < d->cell_count; i++)
        json_write_string(&w, NULL, design_cell_name(e, d, i, name, sizeof name));
    json_write_close(&w);
    write_windows(&w, e, d);
    json_write_close(&w);
    enum err err = json_write_end(&w);
    return err == ERR_OK ? buf_append_text(out, "\n") : err;
}

enum err plan_print(const struct experiment *e, const struct design *d, bool json, struct err_detail *detail)
{
    struct buf out;
    buf_init(&out, PLAN_BYTES_MAX);
    enum err err = json ? plan_write_json(e, d, &out) : plan_write_text(e, d, &out);
    if (err != ERR_OK)
        err_set(detail, err, "the plan has over %u bytes", PLAN_BYTES_MAX);
    else if (fwrite(out.data, 1, out.len, stdout) != out.len || fflush(stdout) != 0)
        err = err_set(detail, ERR_IO, "standard output: %s", strerror(errno));
    buf_fini(&out);
    return err;
}
