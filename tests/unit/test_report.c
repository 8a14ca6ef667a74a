#include "controller/report/model.h"

#include "common/clock.h"
#include "common/json.h"
#include "common/mem.h"
#include "controller/report/table.h"
#include "tests/support/store_sample.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define TEXT_BYTES_MAX (8u * 1024u * 1024u)

/* Three targets, two workloads, one of them with two numbers of connections: 3 cells a target. */
static const char experiment_text[] =
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

struct lab {
    bool local; /* the job is a local run */
    char dir[64];
    char path[96];
    struct store *store;
    struct experiment *experiment;
    struct design *design;
    int64_t runs[8][3]; /* by round and target */
};

enum { EXPRESS, NGINX, LIGHTTPD };

static struct msg_host host_facts(const char *hostname, const char *cpu_model, const char *boot_id)
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
    };
}

static void put_host(struct lab *lab, const char *role, const char *agent, struct msg_host facts)
{
    struct store_host host = {.role = role, .agent = agent, .facts = &facts};
    assert_int_equal(store_put_host(lab->store, "j1", &host, NULL), ERR_OK);
}

/* A job of `rounds` rounds whose targets have all started; nothing is measured yet. */
static void add_job(struct lab *lab, unsigned rounds)
{
    char text[sizeof(experiment_text) + 16];
    snprintf(text, sizeof(text), experiment_text, rounds, rounds % 3 == 0 ? "latin-square" : "fixed");
    struct experiment_options options = {.file = "test"};
    struct experiment_problems problems = {0};
    if (experiment_parse(text, strlen(text), &options, &lab->experiment, &problems) != ERR_OK)
        fail_msg("%s", problems.count != 0 ? problems.items[0].text : "experiment_parse");
    assert_int_equal(design_build(lab->experiment, &lab->design, NULL), ERR_OK);
    struct store_job job = sample_job("j1");
    job.name = SAMPLE_TEXT("three-servers");
    job.experiment_json = text;
    job.base_dir = lab->local ? SAMPLE_TEXT("/srv/suite") : SAMPLE_TEXT("");
    job.windows_total = (uint32_t)lab->design->window_count;
    assert_int_equal(store_add_job(lab->store, &job, NULL), ERR_OK);
    assert_int_equal(store_set_job_state(lab->store, "j1", STORE_JOB_RUNNING, "", 0, NULL), ERR_OK);
    put_host(lab, "server", "sut1", host_facts("box1", "Intel(R) Core(TM) i7-13700K", "b1"));
    put_host(lab, "load", "gen1", host_facts("box2", "AMD Ryzen 9 7950X 16-Core Processor", "b2"));
}

static void add_run(struct lab *lab, uint32_t round, uint32_t target, const char *failed_check,
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
    assert_int_equal(store_add_target_run(lab->store, "j1", &run, &lab->runs[round][target], NULL), ERR_OK);
    assert_int_equal(
        store_end_target_run(lab->store, lab->runs[round][target], (60 + target) << 20, NULL, "log", 3, NULL),
        ERR_OK);
}

static uint32_t window_of(const struct lab *lab, uint32_t round, uint32_t target, uint32_t connections)
{
    for (size_t i = 0; i < lab->design->window_count; i++) {
        const struct design_cell *c = &lab->design->cells[lab->design->windows[i].cell];
        if (lab->design->windows[i].round == round && c->target == target && c->connections == connections)
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
        .requests_sent = ok + 3,
        .responses = ok,
        .body_bytes = ok * 1000,
        .latency_hist = {.data = (uint8_t *)buf_take(&text), .len = len},
    };
}

struct measured {
    uint32_t round, target, connections, attempt;
    uint64_t ok;
    uint64_t latency_ns;
    const char *gate; /* NULL = valid */
    double busy_cores;
};

static void add_attempt(struct lab *lab, struct measured m)
{
    struct msg_loaded loaded = loaded_with(m.ok, m.latency_ns != 0 ? m.latency_ns : NS_PER_MS);
    struct store_attempt a = {
        .window = window_of(lab, m.round, m.target, m.connections),
        .attempt = m.attempt != 0 ? m.attempt : 1,
        .run_id = lab->runs[m.round][m.target],
        .valid = m.gate == NULL,
        .final = m.gate == NULL,
        .gate = m.gate,
        .reason = m.gate != NULL ? "others used 2.40 cores, at most 2.00 are allowed" : "",
        .started_wall_ns = UINT64_C(1796000000000000000),
        .loaded = &loaded,
        .server_cpu_s = 0.5,
        .server_cpu_cores = 0.25,
        .generator_cpu_s = 1,
        .generator_cpu_cores = 0.5,
        .foreign_cpu_cores_server = m.busy_cores > 0 ? m.busy_cores : 0.02 * (m.round + 1),
        .foreign_cpu_cores_load = -1,
        .own_cpu_cores = 0.01,
    };
    assert_int_equal(store_add_attempt(lab->store, "j1", &a, NULL), ERR_OK);
    free(loaded.latency_hist.data);
}

/* Every window of every round: express far behind, nginx and lighttpd with overlapping ranges. */
static void measure_all(struct lab *lab, unsigned rounds)
{
    static const uint64_t ok[3][3] = {{400, 420, 410}, {2000, 2040, 2060}, {1990, 2010, 2030}};
    for (uint32_t round = 0; round < rounds; round++) {
        for (uint32_t target = 0; target < 3; target++) {
            add_run(lab, round, target, NULL, NULL);
            static const uint32_t connections[] = {10, 100, 4};
            for (size_t i = 0; i < 3; i++)
                add_attempt(lab, (struct measured){.round = round,
                                                   .target = target,
                                                   .connections = connections[i],
                                                   .ok = ok[target][round % 3] + 10 * i});
        }
    }
}

static int set_up(void **state)
{
    struct lab *lab = mem_zalloc(1, sizeof(*lab));
    snprintf(lab->dir, sizeof(lab->dir), "/tmp/splitbench-test-report-XXXXXX");
    assert_non_null(mkdtemp(lab->dir));
    snprintf(lab->path, sizeof(lab->path), "%s/lab.db", lab->dir);
    assert_int_equal(store_open(lab->path, false, &lab->store, NULL), ERR_OK);
    *state = lab;
    return 0;
}

static int tear_down(void **state)
{
    struct lab *lab = *state;
    store_close(lab->store);
    design_free(lab->design);
    experiment_free(lab->experiment);
    unlink(lab->path);
    rmdir(lab->dir);
    free(lab);
    return 0;
}

static void end_job(struct lab *lab)
{
    assert_int_equal(store_set_job_state(lab->store, "j1", STORE_JOB_DONE, "", 0, NULL), ERR_OK);
}

static struct report *build(struct lab *lab)
{
    struct report *r = NULL;
    struct err_detail d = {{0}};
    if (report_build(lab->store, "j1", &r, &d) != ERR_OK)
        fail_msg("%s", d.text);
    return r;
}

static const struct report_cell *cell_of(const struct report *r, uint32_t target, uint32_t connections)
{
    for (size_t i = 0; i < r->design->cell_count; i++)
        if (r->cells[i].design->target == target && r->cells[i].design->connections == connections)
            return &r->cells[i];
    fail_msg("no cell");
    return NULL;
}

static char *text_of(const struct report *r, unsigned width)
{
    struct buf out;
    buf_init(&out, TEXT_BYTES_MAX);
    assert_int_equal(report_write_text(r, width, &out), ERR_OK);
    return buf_take(&out);
}

static void assert_near(double got, double expected)
{
    if (!(fabs(got - expected) <= 1e-9 * fabs(expected)))
        fail_msg("%.12g, expected %.12g", got, expected);
}

static void assert_says(const char *text, const char *what)
{
    if (strstr(text, what) == NULL)
        fail_msg("\"%s\" is missing in:\n%s", what, text);
}

static bool warned(const struct report *r, const char *what)
{
    for (size_t i = 0; i < r->warnings.count; i++)
        if (strstr(r->warnings.items[i], what) != NULL)
            return true;
    return false;
}

/* ---- figures --------------------------------------------------------------------------------------- */

static void test_figures_of_a_cell(void **state)
{
    struct lab *lab = *state;
    add_job(lab, 3);
    measure_all(lab, 3);
    end_job(lab);
    struct report *r = build(lab);
    const struct report_cell *c = cell_of(r, NGINX, 10);
    /* 2000, 2040 and 2060 in 2 s each */
    assert_int_equal(c->rate.n, 3);
    assert_near(c->rate.mean, 3050.0 / 3);
    assert_near(c->rate.min, 1000);
    assert_near(c->rate.max, 1030);
    assert_near(
        c->rate.sd,
        sqrt((pow(1000 - 3050.0 / 3, 2) + pow(1020 - 3050.0 / 3, 2) + pow(1030 - 3050.0 / 3, 2)) / 2));
    assert_int_equal(c->ok, 6100);
    assert_near(c->ok_per_server_cpu_s, 6100 / 1.5);
    assert_near(c->body_bytes_per_s, 6100 * 1000 / 6.0);
    assert_near(c->server_cores.mean, 0.25);
    assert_near(c->foreign_server.mean, 0.04);
    assert_near(c->foreign_server.max, 0.06);
    assert_true(isnan(c->foreign_load.mean)); /* never reported: not known, not zero */
    assert_int_equal(c->latency.count, 6100);
    assert_int_equal(c->made, 3);
    assert_int_equal(r->windows_present, 27);
    assert_int_equal(r->windows_missing, 0);
    assert_int_equal(r->warnings.count, 0);

    const struct report_target *t = &r->targets[NGINX];
    assert_int_equal(t->starts, 3);
    assert_near(t->startup_ns.median, 12e6);
    assert_near(t->startup_ns.min, 11e6);
    assert_near(t->startup_ns.max, 13e6);
    assert_near(t->rss_before_bytes.median, 51 << 20);
    assert_near(t->rss_after_bytes.median, 61 << 20);
    report_free(r);
}

static void test_standings(void **state)
{
    struct lab *lab = *state;
    add_job(lab, 3);
    measure_all(lab, 3);
    end_job(lab);
    struct report *r = build(lab);
    assert_int_equal(cell_of(r, NGINX, 10)->standing, REPORT_BEST);
    assert_int_equal(cell_of(r, LIGHTTPD, 10)->standing, REPORT_TIE);
    assert_int_equal(cell_of(r, EXPRESS, 10)->standing, REPORT_BEHIND);
    assert_near(cell_of(r, EXPRESS, 10)->against_best, 1230.0 / 6100 - 1);
    size_t group[3];
    assert_int_equal(report_group(r, 0, 10, group), 3);
    assert_int_equal(r->cells[group[0]].design->target, NGINX);
    assert_int_equal(r->cells[group[1]].design->target, LIGHTTPD);
    assert_int_equal(r->cells[group[2]].design->target, EXPRESS);
    char *text = text_of(r, 80);
    assert_says(text, "tie -1.1%");
    assert_says(text, "-79.8%");
    free(text);
    text = text_of(r, 200);
    assert_says(text, "with 3 rounds, two equal servers would look so in 10% of cases");
    free(text);
    report_free(r);
}

static void test_one_round_is_no_ranking(void **state)
{
    struct lab *lab = *state;
    add_job(lab, 1);
    measure_all(lab, 1);
    end_job(lab);
    struct report *r = build(lab);
    assert_int_equal(cell_of(r, NGINX, 10)->standing, REPORT_BEST);
    assert_int_equal(cell_of(r, EXPRESS, 10)->standing, REPORT_UNKNOWN);
    assert_true(isnan(cell_of(r, NGINX, 10)->rate.sd));
    char *text = text_of(r, 80);
    assert_says(text, "? -80.0%");
    assert_says(text, "one round only");
    free(text);
    report_free(r);
}

static void test_invalid_attempts_are_in_no_figure(void **state)
{
    struct lab *lab = *state;
    add_job(lab, 2);
    for (uint32_t round = 0; round < 2; round++)
        add_run(lab, round, NGINX, NULL, NULL);
    add_attempt(
        lab,
        (struct measured){
            .target = NGINX, .connections = 10, .ok = 9000, .gate = "foreign_cpu", .latency_ns = NS_PER_S});
    add_attempt(lab, (struct measured){.target = NGINX, .connections = 10, .ok = 200, .attempt = 2});
    add_attempt(lab,
                (struct measured){
                    .round = 1, .target = NGINX, .connections = 10, .ok = 100, .latency_ns = 3 * NS_PER_MS});
    struct report *r = build(lab);
    const struct report_cell *c = cell_of(r, NGINX, 10);
    assert_int_equal(c->rate.n, 2);
    assert_near(c->rate.mean, 75);
    assert_int_equal(c->made, 3);
    assert_int_equal(c->invalid, 1);
    assert_int_equal(c->standing, REPORT_ALONE);
    /* 200 at 1 ms and 100 at 3 ms, merged: p50 is 1 ms, p90 3 ms; their averages would be 2 */
    assert_int_equal(c->latency.count, 300);
    assert_in_range(c->latency.p50, 999000, 1001000);
    assert_in_range(c->latency.p90, 2990000, 3010000);
    assert_in_range(c->latency.max, 2990000, 3010000);
    char *text = text_of(r, 160);
    assert_says(text, "nginx, small with 10 connections, round 1, attempt 1: foreign_cpu: others used");
    assert_says(text, "3, 1 bad");
    free(text);
    report_free(r);
}

/* ---- what a reader must be told -------------------------------------------------------------------- */

static void test_wrong_answers_have_no_number(void **state)
{
    struct lab *lab = *state;
    add_job(lab, 2);
    for (uint32_t round = 0; round < 2; round++) {
        add_run(lab, round, EXPRESS, NULL, NULL);
        add_run(lab, round, NGINX, round == 1 ? "ping" : NULL,
                round == 1 ? "check 'ping' failed: expected body \"Hi\", got \"Ho\x1b[31m\"" : NULL);
        static const uint32_t connections[] = {10, 100, 4};
        for (size_t i = 0; i < 3; i++) {
            add_attempt(lab, (struct measured){
                                 .round = round, .target = EXPRESS, .connections = connections[i], .ok = 10});
            if (round == 0)
                add_attempt(lab, (struct measured){.target = NGINX, .connections = connections[i], .ok = 99});
        }
    }
    end_job(lab);
    struct report *r = build(lab);
    assert_true(r->targets[NGINX].withheld);
    assert_int_equal(cell_of(r, NGINX, 10)->rate.n, 0); /* although round 1 had measured it */
    assert_int_equal(cell_of(r, NGINX, 10)->standing, REPORT_NONE);
    assert_int_equal(cell_of(r, EXPRESS, 10)->standing, REPORT_ALONE);
    assert_int_equal(r->windows_missing, 6); /* lighttpd's; those of nginx are not wanted */
    char *text = text_of(r, 120);
    assert_says(text,
                "nginx has no number: check \"ping\" failed in round 2: expected body \"Hi\", got \"Ho");
    assert_null(strchr(text, '\x1b'));
    free(text);
    report_free(r);
}

static void test_a_failed_start_is_told(void **state)
{
    struct lab *lab = *state;
    add_job(lab, 2);
    add_run(lab, 0, NGINX, NULL, "not ready after 10s: connection refused");
    add_run(lab, 1, NGINX, NULL, NULL);
    add_attempt(lab, (struct measured){.round = 1, .target = NGINX, .connections = 10, .ok = 10});
    end_job(lab);
    struct report *r = build(lab);
    assert_false(r->targets[NGINX].withheld);
    assert_int_equal(r->targets[NGINX].failed_starts, 1);
    assert_int_equal(r->targets[NGINX].startup_ns.n, 1);
    assert_int_equal(cell_of(r, NGINX, 10)->rate.n, 1);
    char *text = text_of(r, 80);
    assert_says(text, "nginx failed in 1 of 2 runs, first in round 1: not ready after 10s:");
    assert_says(text, "2, 1 bad");
    free(text);
    report_free(r);
}

static void test_an_incomplete_job_says_so_first(void **state)
{
    struct lab *lab = *state;
    add_job(lab, 2);
    struct report *r = build(lab); /* running, nothing measured */
    assert_int_equal(r->windows_missing, 18);
    char *text = text_of(r, 80);
    char *second = strchr(text, '\n') + 1;
    assert_int_equal(
        strncmp(second, "  ! NOT COMPLETE: the job is running. 18 of 18 windows are missing.", 66), 0);
    free(text);
    report_free(r);

    measure_all(lab, 1);
    assert_int_equal(store_set_job_state(lab->store, "j1", STORE_JOB_FAILED, "sut1 is silent", 3, NULL),
                     ERR_OK);
    r = build(lab);
    assert_string_equal(r->warnings.items[0],
                        "NOT COMPLETE: the job failed: sut1 is silent. 9 of 18 windows are "
                        "missing. `splitbench resume j1` goes on.");
    report_free(r);
    assert_int_equal(store_set_job_state(lab->store, "j1", STORE_JOB_CANCELLED, "by ann", 3, NULL), ERR_OK);
    r = build(lab);
    assert_true(warned(r, "NOT COMPLETE: the job was cancelled: by ann"));
    report_free(r);
    assert_int_equal(
        store_set_job_state(lab->store, "j1", STORE_JOB_CANCELLED, "cancelled by 'ann'", 3, NULL), ERR_OK);
    r = build(lab);
    assert_string_equal(r->warnings.items[0],
                        "NOT COMPLETE: the job was cancelled by 'ann'. 9 of 18 windows are missing. "
                        "`splitbench resume j1` goes on.");
    report_free(r);
    end_job(lab); /* done, but a target never came up */
    r = build(lab);
    assert_string_equal(r->warnings.items[0], "NOT COMPLETE: 9 of 18 windows are missing.");
    report_free(r);
}

static void test_a_local_run_is_resumed_as_one(void **state)
{
    struct lab *lab = *state;
    lab->local = true;
    add_job(lab, 2);
    assert_int_equal(store_set_job_state(lab->store, "j1", STORE_JOB_CANCELLED, "by ann", 3, NULL), ERR_OK);
    struct report *r = build(lab);
    assert_true(warned(r, "`splitbench resume --local j1` goes on."));
    report_free(r);
}

static void test_retries_used_up(void **state)
{
    struct lab *lab = *state;
    add_job(lab, 2);
    measure_all(lab, 1);
    add_run(lab, 1, NGINX, NULL, NULL);
    struct store_attempt a = sample_attempt(window_of(lab, 1, NGINX, 10), 1, NULL);
    a.valid = false;
    a.gate = "zero";
    assert_int_equal(store_add_attempt(lab->store, "j1", &a, NULL), ERR_OK);
    end_job(lab);
    struct report *r = build(lab);
    assert_int_equal(cell_of(r, NGINX, 10)->rate.n, 1);
    assert_int_equal(cell_of(r, NGINX, 10)->present, 2);
    assert_true(warned(r, "1 window has no number: no attempt passed the gates. It is in no figure."));
    report_free(r);
}

static void test_mixtures_are_not_silent(void **state)
{
    struct lab *lab = *state;
    add_job(lab, 2);
    measure_all(lab, 1);
    put_host(lab, "server", "sut2", host_facts("box3", "Apple M5", "b3"));
    put_host(lab, "load", "gen1", host_facts("box2", "AMD Ryzen 9 7950X 16-Core Processor", "b9"));
    assert_int_equal(store_set_placement(lab->store, "j1", STORE_PLACEMENT_SHARED, NULL), ERR_OK);
    struct report *r = build(lab); /* nothing has been measured there yet */
    assert_false(warned(r, "MIXED"));
    report_free(r);
    add_run(lab, 1, NGINX, NULL, NULL);
    add_attempt(lab, (struct measured){.round = 1, .target = NGINX, .connections = 10, .ok = 10});
    r = build(lab);
    assert_true(warned(r, "MIXED: some rounds ran split-cpus and shared."));
    assert_true(
        warned(r, "MIXED: role server was played by sut1 (box1, Intel(R) Core(TM) i7-13700K) and by sut2"));
    assert_true(warned(r, "gen1 was rebooted between rounds"));
    report_free(r);
}

static void test_shared_cpus_are_told(void **state)
{
    struct lab *lab = *state;
    add_job(lab, 2);
    assert_int_equal(store_set_placement(lab->store, "j1", STORE_PLACEMENT_SHARED, NULL), ERR_OK);
    measure_all(lab, 2);
    end_job(lab);
    struct report *r = build(lab);
    assert_true(warned(r, "shared CPUs"));
    char *text = text_of(r, 80);
    assert_says(text, "shared: one machine, server and generator on the same CPUs");
    free(text);
    report_free(r);
}

static void test_a_busy_host_is_told(void **state)
{
    struct lab *lab = *state;
    add_job(lab, 2);
    for (uint32_t round = 0; round < 2; round++)
        add_run(lab, round, NGINX, NULL, NULL);
    add_attempt(lab, (struct measured){.target = NGINX, .connections = 10, .ok = 10, .busy_cores = 0.79});
    struct report *r = build(lab); /* 8 CPUs: up to 0.8 is quiet */
    assert_false(warned(r, "BUSY"));
    report_free(r);
    add_attempt(
        lab, (struct measured){.round = 1, .target = NGINX, .connections = 10, .ok = 10, .busy_cores = 0.83});
    r = build(lab);
    assert_true(
        warned(r, "BUSY: other programs used 0.81 of the 8 CPUs of the server host while nginx was measured "
                  "(small, 10 connections; mean of rounds)."));
    report_free(r);
}

static void test_lies_in_results_make_no_figure(void **state)
{
    struct lab *lab = *state;
    add_job(lab, 2);
    measure_all(lab, 1);
    add_run(lab, 1, NGINX, NULL, NULL);
    struct msg_loaded loaded = {.window_start_ns = 9, .window_end_ns = 9, .window.ok = 1000000};
    struct store_attempt a = sample_attempt(window_of(lab, 1, NGINX, 10), 1, &loaded);
    assert_int_equal(store_add_attempt(lab->store, "j1", &a, NULL), ERR_OK);
    a = sample_attempt(window_of(lab, 1, NGINX, 100), 1, &loaded);
    loaded.window_end_ns = 9 + 2 * NS_PER_S;
    loaded.latency_hist = (struct msg_bytes){.data = (uint8_t *)SAMPLE_TEXT("HISTxx"), .len = 6};
    assert_int_equal(store_add_attempt(lab->store, "j1", &a, NULL), ERR_OK);
    a = sample_attempt(4000000000u, 1, NULL);
    assert_int_equal(store_add_attempt(lab->store, "j1", &a, NULL), ERR_OK);
    end_job(lab);
    struct report *r = build(lab);
    assert_int_equal(cell_of(r, NGINX, 10)->rate.n, 1);
    assert_int_equal(cell_of(r, NGINX, 100)->rate.n, 2);
    assert_int_equal(cell_of(r, NGINX, 100)->latency_missing, 1);
    assert_true(warned(r, "1 valid attempt without a result or with a window of no length"));
    assert_true(warned(r, "1 stored attempt belongs to no window"));
    free(text_of(r, 80));
    report_free(r);
}

/* ---- form ------------------------------------------------------------------------------------------ */

static size_t longest_line(const char *text)
{
    size_t longest = 0;
    char *copy = mem_strdup(text);
    char *rest = copy;
    while (rest != NULL) {
        size_t width = table_text_width(strsep(&rest, "\n"));
        longest = width > longest ? width : longest;
    }
    free(copy);
    return longest;
}

static void test_text_fits_its_width(void **state)
{
    struct lab *lab = *state;
    add_job(lab, 3);
    measure_all(lab, 3);
    struct report *r = build(lab);
    static const unsigned widths[] = {80, 81, 100, 120, 160, 200};
    for (size_t i = 0; i < ARRAY_LEN(widths); i++) {
        char *text = text_of(r, widths[i]);
        assert_in_range(longest_line(text), 60, widths[i]);
        free(text);
    }
    char *narrow = text_of(r, 40); /* taken as 80 */
    assert_in_range(longest_line(narrow), 60, 80);
    if (getenv("SPLITBENCH_SHOW") != NULL) {
        char *wide = text_of(r, 120);
        printf("%s\n\n%s\n", narrow, wide);
        free(wide);
    }
    free(narrow);
    struct buf small;
    buf_init(&small, 500);
    assert_int_equal(report_write_text(r, 80, &small), ERR_TOO_BIG);
    assert_int_equal(report_write_json(r, &small), ERR_TOO_BIG);
    buf_fini(&small);
    report_free(r);
}

static const struct json_value *at(const struct json_value *array, size_t index)
{
    const struct json_value *v = array->child;
    for (size_t i = 0; v != NULL && i < index; i++)
        v = v->next;
    assert_non_null(v);
    return v;
}

static void test_json_has_everything(void **state)
{
    struct lab *lab = *state;
    add_job(lab, 2);
    measure_all(lab, 2);
    end_job(lab);
    struct report *r = build(lab);
    struct buf out;
    buf_init(&out, TEXT_BYTES_MAX);
    assert_int_equal(report_write_json(r, &out), ERR_OK);
    struct json_value *root = NULL;
    struct err_detail d = {{0}};
    if (json_parse(out.data, out.len, NULL, &root, &d) != ERR_OK)
        fail_msg("%s", d.text);
    const char *text = NULL;
    assert_int_equal(json_get_string(root, "format", &text, NULL), ERR_OK);
    assert_string_equal(text, "splitbench-report/1");
    bool complete = false;
    assert_int_equal(json_get_bool(root, "complete", &complete, NULL), ERR_OK);
    assert_true(complete);
    assert_int_equal(json_get_string(root, "experiment_sha256", &text, NULL), ERR_OK);
    assert_int_equal(strlen(text), 64);
    assert_int_equal(json_get_string(json_member(root, "experiment"), "name", &text, NULL), ERR_OK);
    assert_string_equal(text, "three-servers");
    assert_int_equal(json_member(root, "hosts")->count, 2);
    assert_int_equal(json_member(root, "targets")->count, 3);
    assert_int_equal(json_member(at(json_member(root, "targets"), 1), "runs")->count, 2);
    const struct json_value *labels = json_member(at(json_member(root, "targets"), 1), "labels");
    assert_int_equal(labels->count, 2);
    assert_int_equal(json_get_string(labels, "version", &text, NULL), ERR_OK);
    assert_string_equal(text, "1.22");
    assert_int_equal(json_member(at(json_member(root, "targets"), 0), "labels")->count, 0);

    const struct json_value *cells = json_member(root, "cells");
    assert_int_equal(cells->count, 9);
    size_t attempts = 0;
    for (const struct json_value *c = cells->child; c != NULL; c = c->next)
        attempts += json_member(c, "attempts")->count;
    assert_int_equal(attempts, 18);
    const struct json_value *cell = at(cells, 3); /* nginx, small, 10 */
    double mean = 0;
    assert_int_equal(json_get_double(json_member(cell, "rate_per_s"), "mean", 0, 1e9, &mean, NULL), ERR_OK);
    assert_near(mean, 1010);
    assert_int_equal(json_member(json_member(cell, "foreign_cpu_cores_load"), "mean")->kind, JSON_NULL);
    const struct json_value *result = json_member(at(json_member(cell, "attempts"), 0), "result");
    uint64_t ok = 0;
    assert_int_equal(json_get_u64(json_member(result, "window"), "ok", 0, 1u << 30, &ok, NULL), ERR_OK);
    assert_int_equal(ok, 2000);
    assert_int_equal(json_get_string(result, "latency_hdr", &text, NULL), ERR_OK);
    struct hist *h = hist_new();
    assert_int_equal(hist_decode(h, text, strlen(text), NULL), ERR_OK);
    assert_int_equal(h->count, 2000);
    hist_free(h);
    json_free(root);
    buf_fini(&out);
    report_free(r);
}

static void test_a_queued_job_has_no_placement(void **state)
{
    struct lab *lab = *state;
    add_job(lab, 2); /* for its text */
    struct store_job first;
    assert_int_equal(store_get_job(lab->store, "j1", &first, NULL), ERR_OK);
    struct store_job job = sample_job("j2");
    job.experiment_json = first.experiment_json;
    job.placement = STORE_PLACEMENT_SHARED; /* as a job is stored before it has hosts */
    assert_int_equal(store_add_job(lab->store, &job, NULL), ERR_OK);
    store_job_fini(&first);
    struct report *r = NULL;
    assert_int_equal(report_build(lab->store, "j2", &r, NULL), ERR_OK);
    assert_false(warned(r, "shared CPUs"));
    for (int i = 0; i < STORE_PLACEMENT_COUNT; i++)
        assert_false(r->placements[i]);
    char *text = text_of(r, 80);
    assert_says(text, "not placed yet");
    assert_says(text, "no number yet");
    assert_null(strstr(text, "req/s")); /* nothing to put into a table, nothing to explain */
    free(text);
    report_free(r);
}

static void test_failures_come_before_numbers(void **state)
{
    struct lab *lab = *state;
    add_job(lab, 2);
    add_run(lab, 0, NGINX, NULL, NULL);
    add_attempt(lab, (struct measured){.target = NGINX, .connections = 10, .ok = 10});
    add_run(lab, 0, LIGHTTPD, NULL, "port 8003 is in use by \"cat\"");
    end_job(lab);
    struct report *r = build(lab);
    char *text = text_of(r, 80);
    const char *failure = strstr(text, "port 8003 is in use");
    const char *number = strstr(text, "req/s");
    assert_true(failure != NULL && number != NULL && failure < number);
    assert_says(text, "    no number\n"); /* the cells of 100 and 4 connections */
    assert_says(text, "    nginx: runtime=C, version=1.22\n");
    free(text);
    report_free(r);
}

static void test_a_verified_job_has_targets_only(void **state)
{
    struct lab *lab = *state;
    add_job(lab, 2);
    report_free(build(lab));
    struct store_job job = sample_job("j2");
    struct store_job first;
    assert_int_equal(store_get_job(lab->store, "j1", &first, NULL), ERR_OK);
    job.mode = MSG_MODE_VERIFY;
    job.experiment_json = first.experiment_json;
    assert_int_equal(store_add_job(lab->store, &job, NULL), ERR_OK);
    assert_int_equal(store_set_job_state(lab->store, "j2", STORE_JOB_DONE, "", 0, NULL), ERR_OK);
    store_job_fini(&first);
    struct report *r = NULL;
    assert_int_equal(report_build(lab->store, "j2", &r, NULL), ERR_OK);
    assert_int_equal(r->windows_missing, 0);
    assert_int_equal(r->warnings.count, 0);
    char *text = text_of(r, 80);
    assert_says(text, "verified only");
    assert_null(strstr(text, "req/s"));
    free(text);
    report_free(r);
}

static void test_no_such_job(void **state)
{
    struct lab *lab = *state;
    struct report *r = NULL;
    struct err_detail d;
    assert_int_equal(report_build(lab->store, "nope", &r, &d), ERR_NOT_FOUND);
    struct store_job job = sample_job("bad");
    job.experiment_json = SAMPLE_TEXT("{}");
    assert_int_equal(store_add_job(lab->store, &job, NULL), ERR_OK);
    assert_int_equal(report_build(lab->store, "bad", &r, &d), ERR_INVALID);
    assert_non_null(strstr(d.text, "job bad"));
    assert_null(r);
}

#define REPORT_TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        REPORT_TEST(test_figures_of_a_cell),
        REPORT_TEST(test_standings),
        REPORT_TEST(test_one_round_is_no_ranking),
        REPORT_TEST(test_invalid_attempts_are_in_no_figure),
        REPORT_TEST(test_wrong_answers_have_no_number),
        REPORT_TEST(test_a_failed_start_is_told),
        REPORT_TEST(test_an_incomplete_job_says_so_first),
        REPORT_TEST(test_a_local_run_is_resumed_as_one),
        REPORT_TEST(test_retries_used_up),
        REPORT_TEST(test_mixtures_are_not_silent),
        REPORT_TEST(test_shared_cpus_are_told),
        REPORT_TEST(test_a_busy_host_is_told),
        REPORT_TEST(test_lies_in_results_make_no_figure),
        REPORT_TEST(test_text_fits_its_width),
        REPORT_TEST(test_json_has_everything),
        REPORT_TEST(test_a_queued_job_has_no_placement),
        REPORT_TEST(test_failures_come_before_numbers),
        REPORT_TEST(test_a_verified_job_has_targets_only),
        REPORT_TEST(test_no_such_job),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
