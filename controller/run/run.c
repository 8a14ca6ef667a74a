#include "controller/run/run.h"

#include "common/clock.h"
#include "common/log.h"
#include "common/mem.h"
#include "controller/run/run_inner.h"

static enum err run_init(struct run *r, const struct run_options *o, struct err_detail *d)
{
    *r = (struct run){.o = o,
                      .e = o->experiment,
                      .design = o->design,
                      .channel = o->channel,
                      .servers = mem_zalloc(o->experiment->target_count, sizeof(struct run_server)),
                      .next_proc = 1};
    r->server = &r->servers[0];
    enum err e = store_open(o->store_path, false, &r->store, d);
    if (e != ERR_OK)
        return e;
    e = store_set_job_state(r->store, o->job, STORE_JOB_RUNNING, "", 0, d);
    if (e != ERR_OK)
        return e;
    e = store_windows_present(r->store, o->job, o->design->window_count, &r->present, d);
    if (e != ERR_OK)
        return e;
    e = store_count_invalid(r->store, o->job, &r->windows_invalid, d);
    if (e != ERR_OK)
        return e;
    r->view.windows_total = o->mode == MSG_MODE_RUN ? (uint32_t)o->design->window_count : 0;
    for (size_t i = 0; i < o->design->window_count; i++)
        r->view.windows_done += r->present[i];
    if (o->host_count > 0 && run_is_here(r, 0)) {
        r->cores = mem_alloc(sizeof *r->cores);
        placement_read_cores("/sys", r->cores);
    }
    return ERR_OK;
}

static void run_fini(struct run *r)
{
    store_close(r->store);
    for (size_t t = 0; t < r->e->target_count; t++)
        free(r->servers[t].log);
    free(r->servers);
    free(r->present);
    free(r->cores);
}

/* First window from `i` on that is missing and whose target is not out; the count when there is none. */
static size_t next_missing(const struct run *r, size_t i)
{
    const struct design *d = r->design;
    while (i < d->window_count && (r->present[i] || r->servers[d->cells[d->windows[i].cell].target].failed))
        i++;
    return i;
}

static enum err cool_down(struct run *r, size_t window, const char *target, struct err_detail *d)
{
    uint64_t cooldown_ns = r->e->design.cooldown_ns;
    if (cooldown_ns == 0)
        return ERR_OK;
    run_doing(r, cooldown_ns, design_load_to_end_ns(r->e, r->design, window), "round %u/%u %s cooldown",
              r->design->windows[window].round + 1, r->e->design.rounds, target);
    return run_pause(r, clock_now_ns() + cooldown_ns, d);
}

/* Ends the process before when this window must not share it. */
static enum err make_way(struct run *r, const struct design_window *previous, const struct design_window *w,
                         struct err_detail *d)
{
    bool same_slot = previous != NULL && previous->round == w->round && previous->slot == w->slot;
    switch (r->e->design.fresh) {
    case EXPERIMENT_FRESH_JOB:
        return ERR_OK;
    case EXPERIMENT_FRESH_ROUND:
        return same_slot ? ERR_OK : run_stop_target(r, d);
    case EXPERIMENT_FRESH_WINDOW:
        break;
    }
    return run_stop_target(r, d);
}

/* A server that lives as long as the job: others had the CPUs and the time meanwhile. */
static void take_turn_again(struct run *r, uint32_t target)
{
    must(run_place_target(r, target, NULL) == ERR_OK);
    r->server->ready_ns = clock_now_ns();
}

static enum err measure_all(struct run *r, struct err_detail *d)
{
    const struct design_window *previous = NULL;
    enum err e = ERR_OK;
    for (size_t i = next_missing(r, 0); e == ERR_OK && i < r->design->window_count;
         i = next_missing(r, i + 1)) {
        const struct design_window *w = &r->design->windows[i];
        uint32_t target = r->design->cells[w->cell].target;
        bool new_slot = previous == NULL || previous->round != w->round || previous->slot != w->slot;
        e = make_way(r, previous, w, d);
        if (e == ERR_OK && new_slot)
            e = cool_down(r, i, r->e->targets[target].name, d);
        r->server = &r->servers[target];
        r->has_previous = r->has_previous && !new_slot;
        if (e == ERR_OK && new_slot && r->server->up)
            take_turn_again(r, target);
        if (e == ERR_OK && !r->server->up)
            e = run_wait_gap(r, w, d); /* before the fresh process, as the cooldown is */
        if (e == ERR_OK && !r->server->up) {
            run_doing(r, 0, design_load_to_end_ns(r->e, r->design, i), "round %u/%u %s start", w->round + 1,
                      r->e->design.rounds, r->e->targets[target].name);
            e = run_start_target(r, target, w->round, w->slot, d);
        }
        if (e == ERR_OK && !r->servers[target].failed)
            e = run_measure_window(r, w, d);
        previous = w;
    }
    return e == ERR_OK ? run_stop_all(r, d) : e;
}

static enum err say_verified(struct run *r, const char *target, struct err_detail *d)
{
    size_t n = r->e->check_count;
    if (n == 0)
        return run_say(r, d, "target '%s': started and stopped; the experiment has no checks", target);
    return run_say(r, d, "target '%s': started, answered %zu check%s as expected, stopped", target, n,
                   n == 1 ? "" : "s");
}

static enum err verify_all(struct run *r, struct err_detail *d)
{
    enum err e = ERR_OK;
    for (uint32_t t = 0; e == ERR_OK && t < r->e->target_count; t++) {
        if (r->servers[t].failed)
            continue;
        run_doing(r, 0, 0, "verifying '%s'", r->e->targets[t].name);
        e = run_start_target(r, t, 0, t, d);
        if (e == ERR_OK && r->server->up)
            e = run_stop_target(r, d);
        if (e == ERR_OK && !r->servers[t].failed)
            e = say_verified(r, r->e->targets[t].name, d);
    }
    return e;
}

static enum err run_phases(struct run *r, struct err_detail *d)
{
    enum err e = run_seat_hosts(r, d);
    if (e == ERR_OK)
        e = run_open_hosts(r, d);
    if (e == ERR_OK)
        e = run_send_files(r, d);
    if (e == ERR_OK)
        e = run_build_all(r, d);
    if (e == ERR_OK)
        e = r->o->mode == MSG_MODE_VERIFY ? verify_all(r, d) : measure_all(r, d);
    return e;
}

static void conclude(const struct run *r, enum err e, const struct err_detail *d, struct run_outcome *out)
{
    bool failed = r->targets_failed > 0;
    out->state = e == ERR_CANCELLED      ? STORE_JOB_CANCELLED
                 : e != ERR_OK || failed ? STORE_JOB_FAILED
                                         : STORE_JOB_DONE;
    out->exit_code = e != ERR_OK                        ? RUN_EXIT_INFRA
                     : failed || r->windows_invalid > 0 ? RUN_EXIT_FAILED
                                                        : RUN_EXIT_DONE;
    out->cause[0] = '\0';
    if (e != ERR_OK)
        snprintf(out->cause, sizeof out->cause, "%s", d->text);
    else if (r->targets_failed == 1)
        snprintf(out->cause, sizeof out->cause, "%s", r->first_failure);
    else if (failed)
        snprintf(out->cause, sizeof out->cause, "%u of %zu targets failed; the first: %s", r->targets_failed,
                 r->e->target_count, r->first_failure);
    else if (r->windows_invalid > 0)
        snprintf(out->cause, sizeof out->cause, "%u of %zu windows did not pass the gates in %u attempt%s",
                 r->windows_invalid, r->design->window_count, r->e->gates.retries + 1,
                 r->e->gates.retries == 0 ? "" : "s");
}

void run_job(const struct run_options *options, struct run_outcome *out)
{
    struct run r;
    struct err_detail d = {{0}};
    enum err e = run_init(&r, options, &d);
    log_info("job_start", "job=%s experiment=%s hosts=%zu", options->job, options->experiment->name,
             options->host_count);
    if (e == ERR_OK)
        e = run_phases(&r, &d);
    if (r.store != NULL)
        run_doing(&r, 0, 0, "closing hosts");
    run_close_hosts(&r, e == ERR_CLOSED ? RUN_STOP_NS : RUN_CLOSE_NS);
    conclude(&r, e, &d, out);
    out->stored = r.store != NULL && store_set_job_state(r.store, options->job, out->state, out->cause,
                                                         out->exit_code, &d) == ERR_OK;
    if (!out->stored)
        log_error("job_state", "job=%s why=\"%s\"", options->job, d.text);
    log_info("job_end", "job=%s state=%s cause=\"%s\"", options->job, store_job_state_name(out->state),
             out->cause);
    run_fini(&r);
}
