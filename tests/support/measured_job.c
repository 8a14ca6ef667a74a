#include "tests/support/measured_job.h"

#include "common/clock.h"
#include "common/mem.h"
#include "tests/support/store_sample.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* With the number of rounds and their order. */
static const char experiment[] =
    "{ \"name\": \"three-servers\", \"targets\": ["
    " { \"name\": \"node/ultimate-express-with-a-long-name\", \"start\": [\"a\"], \"port\": 8001 },"
    " { \"name\": \"nginx\", \"labels\": { \"runtime\": \"C\", \"version\": \"1.22\" }, \"start\": [\"b\"],"
    "   \"port\": 8002 },"
    " { \"name\": \"lighttpd\", \"start\": [\"c\"], \"port\": 8003 } ],"
    " \"workloads\": ["
    " { \"name\": \"small\", \"request\": { \"path\": \"/small\" }, \"connections\": [10, 100],"
    "   \"warmup\": \"1s\", \"duration\": \"2s\" },"
    " { \"name\": \"large\", \"request\": { \"path\": \"/large\" }, \"connections\": 4,"
    "   \"warmup\": \"1s\", \"duration\": \"2s\" } ],"
    " \"design\": { \"rounds\": %u, \"order\": \"%s\" } }";

int measured_set_up(void **state)
{
    struct measured *m = mem_zalloc(1, sizeof(*m));
    scratch_init(&m->scratch);
    assert_int_equal(store_open(scratch_at(&m->scratch, "lab.db"), false, &m->store, NULL), ERR_OK);
    *state = m;
    return 0;
}

int measured_tear_down(void **state)
{
    struct measured *m = *state;
    store_close(m->store);
    design_free(m->design);
    experiment_free(m->experiment);
    scratch_fini(&m->scratch);
    free(m);
    return 0;
}

struct msg_host measured_host_facts(const char *hostname, const char *cpu_model, const char *boot_id)
{
    return (struct msg_host){
        .hostname = SAMPLE_TEXT(hostname),
        .boot_id = SAMPLE_TEXT(boot_id),
        .kernel = SAMPLE_TEXT("6.1.0-18-amd64"),
        .os = SAMPLE_TEXT("Debian GNU/Linux 12 (bookworm)"),
        .cpu_model = SAMPLE_TEXT(cpu_model),
        .cpus = 8,
        .cpu_list = SAMPLE_TEXT("0-7"),
        .memory_bytes = UINT64_C(33285996544),
        .libraries = SAMPLE_TEXT("nng 1.5.2, libuv 1.44.2"),
    };
}

void measured_put_host(struct measured *m, const char *role, const char *agent, struct msg_host facts)
{
    struct store_host host = {.role = role, .agent = agent, .facts = &facts};
    assert_int_equal(store_put_host(m->store, "j1", &host, NULL), ERR_OK);
}

void measured_add_job(struct measured *m, unsigned rounds)
{
    char text[sizeof(experiment) + 16];
    snprintf(text, sizeof(text), experiment, rounds, rounds % 3 == 0 ? "latin-square" : "fixed");
    struct experiment_options options = {.file = "test"};
    struct experiment_problems problems = {0};
    if (experiment_parse(text, strlen(text), &options, &m->experiment, &problems) != ERR_OK)
        fail_msg("%s", problems.count != 0 ? problems.items[0].text : "experiment_parse");
    assert_int_equal(design_build(m->experiment, &m->design, NULL), ERR_OK);
    struct store_job job = sample_job("j1");
    job.name = SAMPLE_TEXT("three-servers");
    job.experiment_json = text;
    job.base_dir = m->local ? SAMPLE_TEXT("/srv/suite") : SAMPLE_TEXT("");
    job.windows_total = (uint32_t)m->design->window_count;
    assert_int_equal(store_add_job(m->store, &job, NULL), ERR_OK);
    assert_int_equal(store_set_job_state(m->store, "j1", STORE_JOB_RUNNING, "", 0, NULL), ERR_OK);
    measured_put_host(m, "server", "sut1", measured_host_facts("box1", "Intel(R) Core(TM) i7-13700K", "b1"));
    measured_put_host(m, "load", "gen1",
                      measured_host_facts("box2", "AMD Ryzen 9 7950X 16-Core Processor", "b2"));
}

void measured_end_job(struct measured *m)
{
    assert_int_equal(store_set_job_state(m->store, "j1", STORE_JOB_DONE, "", 0, NULL), ERR_OK);
}

void measured_add_run(struct measured *m, uint32_t round, uint32_t target, const char *failed_check,
                      const char *error)
{
    struct store_target_run run = {
        .target = target,
        .round = round,
        .slot = target,
        .ok = error == NULL,
        .error = error,
        .failed_check = failed_check,
        .startup_ns = error == NULL ? (10 + target + round) * NS_PER_MS : 0,
        .rss_before_bytes = error == NULL ? (50 + target) << 20 : 0,
        .started_wall_ns = UINT64_C(1796000000000000000) + round * NS_PER_S,
    };
    assert_int_equal(store_add_target_run(m->store, "j1", &run, &m->runs[round][target], NULL), ERR_OK);
    assert_int_equal(
        store_end_target_run(m->store, m->runs[round][target], (60 + target) << 20, NULL, "log", 3, NULL),
        ERR_OK);
}

uint32_t measured_window(const struct measured *m, uint32_t round, uint32_t target, uint32_t connections)
{
    for (size_t i = 0; i < m->design->window_count; i++) {
        const struct design_cell *c = &m->design->cells[m->design->windows[i].cell];
        if (m->design->windows[i].round == round && c->target == target && c->connections == connections)
            return (uint32_t)i;
    }
    fail_msg("no window");
    return 0;
}

/* A result of `ok` requests in a window of 2 s, each of which took `latency_ns`. */
static struct msg_loaded loaded_with(uint64_t ok, uint64_t latency_ns)
{
    struct hist *h = hist_new();
    for (uint64_t i = 0; i < ok; i++)
        hist_record(h, latency_ns);
    struct buf text;
    buf_init(&text, HIST_TEXT_BYTES_MAX);
    assert_int_equal(hist_encode(h, &text), ERR_OK);
    hist_free(h);
    size_t len = text.len;
    return (struct msg_loaded){
        .generator = SAMPLE_TEXT("splitbench-load 0.1.0"),
        .window_start_ns = 5 * NS_PER_S,
        .window_end_ns = 7 * NS_PER_S,
        .window = {.scheduled = ok + 3, .ok = ok, .in_flight = 3},
        .figures = {[FIGURE_REQUESTS_SENT] = figure_known(ok + 3),
                    [FIGURE_RESPONSES] = figure_known(ok),
                    [FIGURE_BODY_BYTES] = figure_known(ok * 1000)},
        .latency_hist = {.data = (uint8_t *)buf_take(&text), .len = len},
    };
}

void measured_add_attempt(struct measured *m, struct measured_attempt a)
{
    struct msg_loaded loaded = loaded_with(a.ok, a.latency_ns != 0 ? a.latency_ns : NS_PER_MS);
    struct store_attempt stored = {
        .window = measured_window(m, a.round, a.target, a.connections),
        .attempt = a.attempt != 0 ? a.attempt : 1,
        .run_id = m->runs[a.round][a.target],
        .valid = a.gate == NULL,
        .final = a.gate == NULL,
        .gate = a.gate,
        .reason = a.gate != NULL ? "others used 2.40 cores, at most 2.00 are allowed" : "",
        .started_wall_ns = UINT64_C(1796000000000000000),
        .loaded = &loaded,
        .server_cpu_s = 0.5,
        .server_cpu_cores = 0.25,
        .generator_cpu_s = 1,
        .generator_cpu_cores = 0.5,
        .foreign_cpu_cores_server = a.busy_cores > 0 ? a.busy_cores : 0.02 * (a.round + 1),
        .foreign_cpu_cores_load = a.load_busy_cores > 0 ? a.load_busy_cores : -1,
        .own_cpu_cores = 0.01,
    };
    assert_int_equal(store_add_attempt(m->store, "j1", &stored, NULL), ERR_OK);
    free(loaded.latency_hist.data);
}

void measured_add_all(struct measured *m, unsigned rounds)
{
    static const uint64_t ok[3][3] = {{400, 420, 410}, {2000, 2040, 2060}, {1990, 2010, 2030}};
    for (uint32_t round = 0; round < rounds; round++) {
        for (uint32_t target = 0; target < 3; target++) {
            measured_add_run(m, round, target, NULL, NULL);
            static const uint32_t connections[] = {10, 100, 4};
            for (size_t i = 0; i < 3; i++)
                measured_add_attempt(m, (struct measured_attempt){.round = round,
                                                                  .target = target,
                                                                  .connections = connections[i],
                                                                  .ok = ok[target][round % 3] + 10 * i});
        }
    }
}

struct report *measured_report(struct measured *m)
{
    struct report *r = NULL;
    struct err_detail d = {{0}};
    if (report_build(m->store, "j1", &r, &d) != ERR_OK)
        fail_msg("%s", d.text);
    return r;
}
