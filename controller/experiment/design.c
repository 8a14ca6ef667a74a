#include "controller/experiment/design.h"

#include "common/clock.h"
#include "common/mem.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

uint32_t design_target_at(const struct experiment *e, uint32_t round, uint32_t slot)
{
    uint32_t n = (uint32_t)e->target_count;
    must(slot < n);
    if (e->design.order == EXPERIMENT_ORDER_LATIN_SQUARE)
        return (uint32_t)(((uint64_t)slot + round) % n);
    return slot;
}

static size_t cells_per_target(const struct experiment *e)
{
    size_t n = 0;
    for (size_t w = 0; w < e->workload_count; w++)
        n += e->workloads[w].connection_count;
    return n;
}

static void fill_cells(const struct experiment *e, struct design *d)
{
    size_t n = 0;
    for (uint32_t t = 0; t < e->target_count; t++)
        for (uint32_t w = 0; w < e->workload_count; w++)
            for (size_t c = 0; c < e->workloads[w].connection_count; c++)
                d->cells[n++] = (struct design_cell){
                    .target = t, .workload = w, .connections = e->workloads[w].connections[c]};
    must(n == d->cell_count);
}

/* What a window takes: its warm-up and itself. */
static uint64_t window_ns(const struct experiment *e, const struct design *d, const struct design_window *w)
{
    const struct experiment_workload *load = &e->workloads[d->cells[w->cell].workload];
    return load->warmup_ns + load->duration_ns;
}

static void fill_windows(const struct experiment *e, struct design *d)
{
    size_t per_target = cells_per_target(e);
    uint64_t now_ns = 0;
    uint32_t index = 0;
    for (uint32_t round = 0; round < e->design.rounds; round++) {
        for (uint32_t slot = 0; slot < e->target_count; slot++) {
            uint32_t target = design_target_at(e, round, slot);
            now_ns += e->design.cooldown_ns;
            for (size_t c = 0; c < per_target; c++) {
                struct design_window *w = &d->windows[index];
                if (c > 0)
                    now_ns += e->design.gap_ns;
                *w = (struct design_window){.index = index,
                                            .cell = (uint32_t)(target * per_target + c),
                                            .round = round,
                                            .slot = slot};
                w->planned_start_ns = now_ns + e->workloads[d->cells[w->cell].workload].warmup_ns;
                now_ns += window_ns(e, d, w);
                index++;
            }
        }
    }
    must(index == d->window_count);
    d->duration_ns = now_ns;
}

enum err design_build(const struct experiment *e, struct design **out, struct err_detail *d)
{
    size_t per_target = cells_per_target(e);
    uint64_t windows = (uint64_t)e->design.rounds * e->target_count * per_target;
    if (windows == 0 || windows > LIMIT_WINDOWS)
        return err_set(d, ERR_INVALID, "%" PRIu64 " windows: an experiment has 1 to %u", windows,
                       LIMIT_WINDOWS);
    struct design *design = mem_zalloc(1, sizeof *design);
    design->cell_count = e->target_count * per_target;
    design->cells = mem_zalloc(design->cell_count, sizeof *design->cells);
    design->window_count = (size_t)windows;
    design->windows = mem_zalloc(design->window_count, sizeof *design->windows);
    fill_cells(e, design);
    fill_windows(e, design);
    *out = design;
    return ERR_OK;
}

void design_free(struct design *d)
{
    if (d == NULL)
        return;
    free(d->cells);
    free(d->windows);
    free(d);
}

uint64_t design_load_to_end_ns(const struct experiment *e, const struct design *d, size_t index)
{
    if (index >= d->window_count)
        return 0;
    const struct design_window *w = &d->windows[index];
    return d->duration_ns - w->planned_start_ns + e->workloads[d->cells[w->cell].workload].warmup_ns;
}

uint64_t design_remaining_ns(const struct experiment *e, const struct design *d, size_t index)
{
    if (index >= d->window_count)
        return 0;
    const struct design_window *w = &d->windows[index];
    bool first_of_target =
        index == 0 || d->windows[index - 1].round != w->round || d->windows[index - 1].slot != w->slot;
    return design_load_to_end_ns(e, d, index) + (first_of_target ? e->design.cooldown_ns : e->design.gap_ns);
}

const char *design_cell_name(const struct experiment *e, const struct design *d, uint32_t cell, char *out,
                             size_t size)
{
    must(cell < d->cell_count);
    const struct design_cell *c = &d->cells[cell];
    snprintf(out, size, "%s %s c=%" PRIu32, e->targets[c->target].name, e->workloads[c->workload].name,
             c->connections);
    return out;
}
