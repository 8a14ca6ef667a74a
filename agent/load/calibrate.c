#include "agent/load/calibrate.h"

#include "agent/load/live.h"
#include "agent/load/null_server.h"
#include "agent/load/run.h"
#include "common/clock.h"
#include "common/mem.h"

static void take_figures(struct calibration_figures *f, const struct run_result *r, uint32_t connections)
{
    const struct tally *t = r->tally;
    uint64_t answers = t->accounts[PHASE_WINDOW].responses;
    double seconds = (double)(r->window_end_ns - r->window_start_ns) / (double)NS_PER_S;
    *f = (struct calibration_figures){.connections = connections,
                                      .ok_per_s = (double)t->accounts[PHASE_WINDOW].ok / seconds,
                                      .min_ns = t->hists[TALLY_LATENCY].min,
                                      .p50_ns = hist_percentile(&t->hists[TALLY_LATENCY], 50),
                                      .p99_ns = hist_percentile(&t->hists[TALLY_LATENCY], 99),
                                      .cpu_user_ns = t->cpu_user_ns / answers,
                                      .cpu_system_ns = t->cpu_system_ns / answers};
}

static enum err measure(struct calibration_figures *f, const struct options *o, struct err_detail *d)
{
    struct target target = {0};
    struct request_set *requests = mem_zalloc(1, sizeof *requests);
    struct run_result result = {0};
    enum err e = target_parse(&target, o->url, NULL, d);
    if (e == ERR_OK)
        e = request_set_build(requests, &target, o, d);
    if (e == ERR_OK)
        e = target_resolve(&target, o->timeout_ns, d);
    struct run_plan plan = {.options = o, .target = &target, .requests = requests};
    if (e == ERR_OK)
        e = run_load(&result, &plan, d);
    if (e == ERR_OK && result.interrupted)
        e = err_set(d, ERR_CANCELLED, "--calibrate: interrupted");
    if (e == ERR_OK && result.tally->accounts[PHASE_WINDOW].ok == 0)
        e = err_set(d, ERR_FAILED, "--calibrate: the null server did not answer");
    if (e == ERR_OK)
        take_figures(f, &result, o->connections);
    run_result_fini(&result);
    request_set_fini(requests);
    free(requests);
    target_fini(&target);
    return e;
}

enum err calibrate(struct calibration *out, const struct options *o, struct err_detail *d)
{
    struct null_server server;
    char url[64];
    enum err e = null_server_start(&server, d);
    if (e != ERR_OK)
        return e;
    snprintf(url, sizeof url, "http://127.0.0.1:%u/", server.port);
    struct options *quiet = mem_zalloc(1, sizeof *quiet);
    *quiet = (struct options){.url = url,
                              .output = OUTPUT_JSON, /* no live line */
                              .backend = o->backend,
                              .connections = 1,
                              .threads = 1,
                              .duration_ns = CALIBRATE_DURATION_NS,
                              .warmup_ns = CALIBRATE_DURATION_NS / 10,
                              .drain_ns = NS_PER_S,
                              .timeout_ns = NS_PER_S,
                              .has_cpus = o->has_cpus,
                              .cpus = o->cpus};
    expect_init(&quiet->expect);
    e = measure(&out->one, quiet, d);
    quiet->connections = o->connections;
    quiet->threads = o->threads;
    if (e == ERR_OK)
        e = measure(&out->all, quiet, d);
    free(quiet);
    null_server_stop(&server);
    return e;
}

static void print_one(const struct calibration_figures *f)
{
    printf("  %5u connection%s  %.0f requests/s, latency min %s, 50 %% %s, 99 %% %s; CPU per request %s "
           "user, %s system\n",
           f->connections, f->connections != 1 ? "s" : " ", f->ok_per_s, live_time(f->min_ns).text,
           live_time(f->p50_ns).text, live_time(f->p99_ns).text, live_time(f->cpu_user_ns).text,
           live_time(f->cpu_system_ns).text);
}

void calibrate_print_text(const struct calibration *c)
{
    puts("floor of the generator on this host, against its own null server:");
    print_one(&c->one);
    print_one(&c->all);
}

static void print_json(const struct calibration_figures *f, struct json_writer *j, const char *key)
{
    json_write_object(j, key);
    json_write_u64(j, "connections", f->connections);
    json_write_double(j, "ok_per_s", f->ok_per_s);
    json_write_u64(j, "min_ns", f->min_ns);
    json_write_u64(j, "p50_ns", f->p50_ns);
    json_write_u64(j, "p99_ns", f->p99_ns);
    json_write_u64(j, "cpu_user_ns_per_request", f->cpu_user_ns);
    json_write_u64(j, "cpu_system_ns_per_request", f->cpu_system_ns);
    json_write_close(j);
}

void calibrate_print_json(const struct calibration *c, struct json_writer *j, const char *key)
{
    json_write_object(j, key);
    print_json(&c->one, j, "one_connection");
    print_json(&c->all, j, "all_connections");
    json_write_close(j);
}
