#include "tests/support/store_sample.h"

#include "common/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct store_job sample_job(const char *id)
{
    return (struct store_job){
        .id = SAMPLE_TEXT(id),
        .name = SAMPLE_TEXT("two \"servers\""),
        .state = STORE_JOB_QUEUED,
        .mode = MSG_MODE_RUN,
        .cause = SAMPLE_TEXT(""),
        .placement = STORE_PLACEMENT_SPLIT_CPUS,
        .created_wall_ns = UINT64_C(1796000000000000001),
        .experiment_json = SAMPLE_TEXT("{ \"name\" : \"\xc3\xa4\" }\n"),
        .base_dir = SAMPLE_TEXT("/srv/suite"),
        .windows_total = 40,
    };
}

struct msg_loaded *sample_loaded(uint32_t seed)
{
    static const uint8_t hist[] = {0x1c, 0x84, 0x93, 0x14, 0, 0, 0, 0x20, 0x78, 0x9c};
    struct msg_loaded *l = mem_zalloc(1, sizeof(*l));
    uint64_t n = 1000 * (uint64_t)seed;
    *l = (struct msg_loaded){
        .generator = mem_strdup("splitbench-load 0.1.0"),
        .window_start_ns = n + 1,
        .window_end_ns = n + 2,
        .window = {.scheduled = n + 34, .ok = n + 3, .failed = 4, .in_flight = 5, .never_sent = 22},
        .warmup = {.scheduled = n + 6, .ok = n + 7, .failed = 8, .in_flight = 9, .never_sent = 10},
        .errors = mem_zalloc(2, sizeof(*l->errors)),
        .error_count = 2,
        .statuses = mem_zalloc(2, sizeof(*l->statuses)),
        .status_count = 2,
        .latency_hist = {.data = mem_dup(hist, sizeof(hist)), .len = sizeof(hist)},
        .raw = mem_strdup("{}"),
    };
    for (unsigned i = 0; i < FIGURE_LOAD_COUNT; i++)
        l->figures[i] = figure_known(n + 11 + i);
    l->errors[0] =
        (struct msg_error_class){mem_strdup("connect"), mem_strdup("refused"), 3, mem_strdup("a: b")};
    l->errors[1] = (struct msg_error_class){mem_strdup("receive"), mem_strdup("timeout"), 1, mem_strdup("")};
    l->statuses[0] = (struct msg_status_count){.status = 200, .count = n + 3};
    l->statuses[1] = (struct msg_status_count){.status = 503, .count = 2};
    return l;
}

void sample_loaded_free(struct msg_loaded *l)
{
    msg_loaded_fini(l);
    free(l);
}

struct store_attempt sample_attempt(uint32_t window, uint32_t attempt, const struct msg_loaded *loaded)
{
    struct store_attempt a = {
        .window = window,
        .attempt = attempt,
        .valid = true,
        .gate = "",
        .reason = "",
        .final = true,
        .started_wall_ns = UINT64_C(1796000000000000000) + window,
        .loaded = loaded,
        .server_cpu_s = 1.5,
        .server_cpu_cores = 0.75,
        .generator_cpu_s = 2.5,
        .generator_cpu_cores = 1.25,
        .foreign_cpu_cores_server = 0.125,
        .foreign_cpu_cores_load = 0,
        .own_cpu_cores = 0.0625,
        .dead_ns = 42,
    };
    for (int i = 0; i < FIGURE_TREE_COUNT; i++)
        a.server[i] = figure_known(71 + (uint64_t)i);
    return a;
}

static void assert_figures_equal(const struct figure *a, const struct figure *b, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(a[i].known, b[i].known);
        assert_true(!a[i].known || a[i].value == b[i].value);
    }
}

static void assert_accounts_equal(const struct msg_accounts *a, const struct msg_accounts *b)
{
    assert_int_equal(a->scheduled, b->scheduled);
    assert_int_equal(a->ok, b->ok);
    assert_int_equal(a->failed, b->failed);
    assert_int_equal(a->in_flight, b->in_flight);
    assert_int_equal(a->never_sent, b->never_sent);
}

static void assert_loaded_equal(const struct msg_loaded *a, const struct msg_loaded *b)
{
    assert_string_equal(a->generator, b->generator);
    assert_int_equal(a->window_start_ns, b->window_start_ns);
    assert_int_equal(a->window_end_ns, b->window_end_ns);
    assert_accounts_equal(&a->window, &b->window);
    assert_accounts_equal(&a->warmup, &b->warmup);
    assert_figures_equal(a->figures, b->figures, FIGURE_LOAD_COUNT);
    assert_int_equal(a->error_count, b->error_count);
    for (size_t i = 0; i < a->error_count; i++) {
        assert_string_equal(a->errors[i].phase, b->errors[i].phase);
        assert_string_equal(a->errors[i].cause, b->errors[i].cause);
        assert_int_equal(a->errors[i].count, b->errors[i].count);
        assert_string_equal(a->errors[i].sample, b->errors[i].sample);
    }
    assert_int_equal(a->status_count, b->status_count);
    for (size_t i = 0; i < a->status_count; i++) {
        assert_int_equal(a->statuses[i].status, b->statuses[i].status);
        assert_int_equal(a->statuses[i].count, b->statuses[i].count);
    }
    assert_int_equal(a->latency_hist.len, b->latency_hist.len);
    assert_memory_equal(a->latency_hist.data, b->latency_hist.data, b->latency_hist.len);
    assert_null(a->raw); /* kept, and never read */
}

void assert_attempt_equal(const struct store_attempt *got, const struct store_attempt *expected)
{
    assert_int_equal(got->window, expected->window);
    assert_int_equal(got->attempt, expected->attempt);
    assert_int_equal(got->valid, expected->valid);
    assert_int_equal(got->final, expected->final);
    assert_string_equal(got->gate, expected->gate);
    assert_string_equal(got->reason, expected->reason);
    assert_int_equal(got->started_wall_ns, expected->started_wall_ns);
    assert_int_equal(got->dead_ns, expected->dead_ns);
#define X(name, ...) assert_true(got->name == expected->name);
    FIGURE_WINDOW_LIST(X)
#undef X
    assert_figures_equal(got->server, expected->server, FIGURE_TREE_COUNT);
    assert_int_equal(got->loaded != NULL, expected->loaded != NULL);
    if (got->loaded != NULL)
        assert_loaded_equal(got->loaded, expected->loaded);
}
